"""Indexes of what a list of evaluations is narrowed by, in place of one that nothing asked."""

from alembic import op

revision = "0007"
down_revision = "0006"

GLANCE = ("run_id", "position", "status", "verdict", "selected", "tied", "flipped", "task_group", "stop_reason")


def upgrade() -> None:
    """Make the indexes; no row changes."""
    op.create_index("task_ids", "tasks", ["run_id", "position", "evalset_revision", "task_id"])
    op.create_index("evaluations_at_a_glance", "evaluations", list(GLANCE))
    op.drop_index("ix_evaluations_status", "evaluations")
