"""Label distributions of calls, and how many cells of an evaluation have no score because its agents abstained."""

from typing import Any, cast

import sqlalchemy as sa
from alembic import op

from debate.sql.types import Json

revision = "0005"
down_revision = "0004"

TEMPLATES = {
    "54b68299626390d332569105c941f97b": "053c15fde226abafc5ebdcacbcc6fb93",  # debate
}
"""Fingerprints of the built-in templates before this version, and of the same templates now: what they print did not
change."""

RUNS: Any = sa.table("runs", sa.column("id"), sa.column("identity", Json))


def upgrade() -> None:
    """Add the columns, empty, as nothing was read out before and nobody could abstain; rename the templates."""
    op.add_column("calls", sa.Column("distributions", sa.Text()))
    op.add_column("evaluations", sa.Column("cells", sa.Integer()))
    op.add_column("evaluations", sa.Column("abstained", sa.Integer()))
    _rename_templates()


def _rename_templates() -> None:
    connection = op.get_bind()
    for run_id, identity in connection.execute(sa.select(RUNS.c.id, RUNS.c.identity)).all():
        if (now := _as_now(identity)) != identity:
            connection.execute(sa.update(RUNS).where(RUNS.c.id == run_id).values(identity=now))


def _as_now(identity: Any) -> Any:
    """What shapes a run's prompts, with the fingerprints of now."""
    if isinstance(identity, list):
        return [_as_now(each) for each in cast("list[Any]", identity)]
    if isinstance(identity, dict):
        return {key: _as_now(value) for key, value in cast("dict[str, Any]", identity).items()}
    return TEMPLATES.get(identity, identity) if isinstance(identity, str) else identity
