"""Several processes on one run: what is left of it in shards, and who works on them."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from debate.sql.types import Json

revision = "0004"
down_revision = "0003"

SECONDS: sa.types.TypeEngine[float] = sa.Double()


def upgrade() -> None:
    """Make the tables, empty."""
    op.create_table(
        "shards",
        sa.Column("run_id", sa.Integer(), primary_key=True),
        sa.Column("shard", sa.Integer(), primary_key=True),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.Column("worker", sa.BigInteger()),
        sa.Column("claim", sa.Integer(), nullable=False),
        sa.Column("is_done", sa.Boolean(), nullable=False),
    )
    undone: Any = sa.not_(sa.column("is_done", sa.Boolean()))
    op.create_index("undone_shards", "shards", ["run_id", "shard"], postgresql_where=undone, sqlite_where=undone)
    op.create_table(
        "workers",
        sa.Column("run_id", sa.Integer(), primary_key=True),
        sa.Column("worker", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("about", Json(), nullable=False),
        sa.Column("started_at", SECONDS, nullable=False),
        sa.Column("last_commit", SECONDS, nullable=False),
        sa.Column("ended_at", SECONDS),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
    )
