"""The first schema, which version 0.1.0 made without migrations: facts, collections, memories, vectors."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER: sa.types.TypeEngine[float] = sa.Double()
SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "memory_about", sa.Column("key", sa.String(64), primary_key=True), sa.Column("value", sa.Text(), nullable=False)
    )
    op.create_table(
        "memory_collections",
        sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("erased", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "memories",
        sa.Column("seq", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(200), nullable=False, unique=True),
        sa.Column("collection_id", SERIAL, sa.ForeignKey("memory_collections.id"), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.String(64), nullable=False, index=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("importance", NUMBER, nullable=False),
        sa.Column("created_at", NUMBER, nullable=False),
        sa.Column("source", sa.String(500), nullable=True, index=True),
        sa.Column("metadata", sa.Text(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("memories_in_order", "memories", ["collection_id", "seq"])
    op.create_table(
        "memory_vectors",
        sa.Column("embedder", sa.String(300), primary_key=True),
        sa.Column("text_hash", sa.String(64), primary_key=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )


def downgrade() -> None:
    """Drop all tables."""
    for table in ("memory_vectors", "memories", "memory_collections", "memory_about"):
        op.drop_table(table)
