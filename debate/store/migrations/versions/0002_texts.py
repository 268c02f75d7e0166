"""Raw texts once and compressed; evaluations as one JSON line, with columns made from it; plainer names.

Evaluations are read and written by the code of this package, so that their rows are those of a new run.
"""

import ast
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

from debate.evaluation import Evaluation
from debate.sql.types import Json, insert_new
from debate.store.serialization import evaluation_row, group_of, text_row

revision = "0002"
down_revision = "0001"

KEYS = {"samples": "judgments", "rejected": "invalid_replies", "neutralised": "escaped_special_tokens"}
TEMPLATES = {
    "ae15e9a8a20613d0dc95065fbbfad919": "54b68299626390d332569105c941f97b",  # debate
    "97c5d906d35c23e805aac8a43f55be49": "d6ca9d808928e953dd67cae7deca930d",  # debate, compact
    "c3eb584675ac0d0fb3708c974fcf2c9e": "19e9df4a5c464b7732f5fbb1ee1cbc05",  # value
    "c9af78c99313280fa0f076498024747e": "5039b7cb464372c2d6897c0c1519535f",  # game24
    "73f9fead73cdf2c6506a69d97b33266d": "5c62c71679543eb9d7495f48083d059d",  # vote
    "5c08b0750ecb5cc1c9459d6c69868612": "883ec39faae7786c075ab36b78cd3372",  # step, solved
    "551ed69de653b7a8bd2212fef13fa22e": "f8bcacbb0373594eeba05cf21502bcbe",  # step, solved_x1
    "f5f1f9752005e8f9ac70cc5c9f508498": "6817d285f9b5d61c8f654c8683e1bc68",  # step_x1, solved
    "281f5d779f76d4fd9e5028b60e28af83": "ddcd0c26884fb42360539b6f25f11d38",  # step_x1, solved_x1
}
"""Fingerprints of the built-in templates of 0.1.0, and of the same templates now: their comments and the names of their
variables changed, what they print did not."""

READERS = {"JsonField": "json", "TagNumber": "tag", "NumberLine": "number", "LabelMap": "labels"}

Row = dict[str, Any]
NUMBER: sa.types.TypeEngine[float] = sa.Double()


def upgrade() -> None:
    """Bring a store of 0.1.0 to this schema."""
    _add_columns()
    _runs()
    _evaluations()
    _calls()
    _replies()
    _drop_and_rename()


def _add_columns() -> None:
    op.create_table(
        "texts",
        sa.Column("hash", sa.String(), primary_key=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("is_compressed", sa.Boolean(), nullable=False),
    )
    new: dict[str, list[sa.Column[Any]]] = {
        "calls": [sa.Column("text_hash", sa.String())],
        "replies": [sa.Column("text_hash", sa.String(), nullable=False, server_default="")],
        "turns": [sa.Column("distribution", sa.Text())],
        "evaluations": [
            sa.Column("best", sa.Integer()),
            sa.Column("tied", sa.Boolean(), nullable=False, server_default=sa.false()),
            sa.Column("flipped", sa.Boolean()),
            sa.Column("task_group", sa.String()),
            sa.Column("margin", NUMBER),
            sa.Column("cv", NUMBER),
        ],
    }
    for table, columns in new.items():
        for column in columns:
            op.add_column(table, column)


def _rows(statement: str, **values: Any) -> list[Row]:
    return [dict(row) for row in op.get_bind().execute(sa.text(statement), values).mappings()]


def _update(table: str, key: Row, values: Row) -> None:
    changed = sa.table(table, *map(sa.column, {**key, **values}))
    where = [changed.c[name] == value for name, value in key.items()]
    op.get_bind().execute(sa.update(changed).where(*where).values(values))


def _tasks() -> Iterator[Row]:
    """The keys of all tasks, and their data."""
    for run in _rows("SELECT id FROM runs"):
        yield from _rows("SELECT run_id, position FROM tasks WHERE run_id = :id", **run)


def _runs() -> None:
    for run in _rows("SELECT id, identity, about FROM runs"):
        about = json.loads(run["about"])
        if "reading" in about:
            about["evalset_revision"] = about.pop("reading")
        identity = _as_now(json.loads(run["identity"]))
        _update("runs", {"id": run["id"]}, {"identity": _json(identity), "about": _json(about)})


def _as_now(identity: Any) -> Any:
    """What shapes a run's prompts, as it is written now."""
    if isinstance(identity, list):
        return [_as_now(each) for each in cast("list[Any]", identity)]
    if isinstance(identity, dict):
        items = cast("dict[str, Any]", identity).items()
        return {key: _reader(value) if key == "reader" else _as_now(value) for key, value in items}
    return TEMPLATES.get(identity, identity) if isinstance(identity, str) else identity


def _reader(text: str) -> Any:
    """A reader of values as plain data, in place of the `repr` that 0.1.0 recorded; a user's own stays as it is."""
    with suppress(SyntaxError, ValueError):
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            options = {str(option.arg): ast.literal_eval(option.value) for option in call.keywords}
            if options.pop("exact", False) is False and call.func.id in READERS:
                return {"kind": READERS[call.func.id], **{key: _floats(value) for key, value in options.items()}}
    return {"kind": "x1"} if text == "x1" else text


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _floats(each) for key, each in cast("dict[str, Any]", value).items()}
    return float(value) if isinstance(value, int) else value


def _json(value: Any) -> str:
    return str(Json().process_bind_param(value, op.get_bind().dialect))


def _evaluations() -> None:
    same = "WHERE run_id = :run_id AND position = :position"
    for key in _tasks():
        for row in _rows(f"SELECT settings, data, created_at FROM evaluations {same}", **key):
            turns: dict[str, list[Row]] = {}
            for turn in _rows(f"SELECT * FROM turns {same} ORDER BY ordinal", **key):
                turns.setdefault(turn["member"], []).append(_turn(turn))
            evaluation = Evaluation.from_dict(_with_turns(json.loads(row["data"]), turns, ""))
            task = json.loads(_rows(f"SELECT data FROM tasks {same}", **key)[0]["data"])
            made = {**evaluation_row(evaluation, row["settings"]), "task_group": group_of(task["metadata"])}
            _update("evaluations", key, {**made, "created_at": row["created_at"]})


def _turn(row: Row) -> Row:
    apart = {name: row[name] and json.loads(row[name]) for name in ("scores", "memories", "failure")}
    return {"round": row["round"], "agent": row["agent"], **json.loads(row["data"]), **apart}


def _with_turns(data: Row, turns: dict[str, list[Row]], member: str) -> Row:
    """An evaluation as JSON has it now, from its data without turns and its turns by member."""
    data["transcript"] = turns.get(member, [])
    data["members"] = [_with_turns(each, turns, f"{member}.{n}".lstrip(".")) for n, each in enumerate(data["members"])]
    for each in (*data["transcript"], *data.get("samples", ()), data):
        for old in KEYS.keys() & each.keys():
            each[KEYS[old]] = each.pop(old)
    return data


def _calls() -> None:
    key = ("run_id", "position", "address", "attempt", "take")
    for task in _tasks():
        query = f"SELECT {', '.join(key)}, text FROM calls WHERE run_id = :run_id AND position = :position"
        for row in _rows(f"{query} AND text IS NOT NULL", **task):
            _update("calls", {name: row[name] for name in key}, {"text_hash": _keep(json.loads(row["text"]))})


def _replies() -> None:
    for key in _rows("SELECT key FROM replies"):
        data = json.loads(_rows("SELECT data FROM replies WHERE key = :key", **key)[0]["data"])
        text_hash = _keep(data.pop("text"))
        data["escaped_special_tokens"] = data.pop("neutralised")
        _update("replies", key, {"text_hash": text_hash, "data": _json(data)})


def _keep(text: str) -> str:
    """Put a text into `texts`; returns its key."""
    columns: list[Any] = [
        sa.column("hash"),
        sa.column("data", sa.LargeBinary()),
        sa.column("is_compressed", sa.Boolean()),
    ]
    row = text_row(text)
    insert_new(op.get_bind(), sa.table("texts", *columns), [row])  # pyright: ignore[reportArgumentType]
    return row["hash"]


def _drop_and_rename() -> None:
    with op.batch_alter_table("calls") as table:
        table.drop_column("text")
        table.alter_column("take", new_column_name="retry_generation")
        table.alter_column("neutralised", new_column_name="escaped_special_tokens")
    with op.batch_alter_table("tasks") as table:
        table.drop_column("best")
        table.alter_column("take", new_column_name="retry_generation")
        table.alter_column("reading", new_column_name="evalset_revision")
    with op.batch_alter_table("turns") as table:
        table.drop_column("data")
        table.drop_column("memories")
