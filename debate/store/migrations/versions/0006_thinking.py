"""What models thought before their replies, and how many tokens that took."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns, empty: nothing was kept of it before."""
    for table in ("calls", "replies"):
        op.add_column(table, sa.Column("thinking_hash", sa.String()))
    for table in ("calls", "evaluations"):
        op.add_column(table, sa.Column("thinking_tokens", sa.Integer()))
