"""Reads what is recorded of some tasks, one query per table however many tasks there are; counts what a run came to."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, func, select

from debate.evaluation import Evaluation
from debate.journal import Answer
from debate.sql.connect import reading
from debate.statistics import Accuracy
from debate.store.fork import INHERITED, Inherited
from debate.store.serialization import as_answer, with_texts
from debate.store.tables import CALLS, EVALUATIONS, TASKS, TURNS
from debate.store.task_journal import Kept
from debate.types import Usage, Verdict


def kept_answers(
    connection: Connection, run_id: int, positions: Sequence[int]
) -> tuple[dict[int, dict[tuple[str, int], Kept]], dict[int, Inherited]]:
    """Answers by position: those of the run, of each call that of the latest retry generation, and the inherited."""
    query = with_texts(CALLS, CALLS)
    query = query.where(CALLS.c.run_id == run_id, CALLS.c.position.in_(positions)).order_by(CALLS.c.retry_generation)
    kept: dict[int, dict[tuple[str, int], Kept]] = {}
    inherited: dict[int, dict[tuple[str, int | None], Answer]] = {}
    for row in connection.execute(query):
        answer = as_answer(row)
        if row.retry_generation == INHERITED:
            inherited.setdefault(row.position, {})[row.prompt_hash, row.seed] = answer
        else:
            found = kept.setdefault(row.position, {})
            found[row.address, row.attempt] = Kept(row.retry_generation, row.prompt_hash, answer, row.info or {})
    return kept, dict(inherited)


def has_answers(connection: Connection, run_id: int) -> bool:
    """Whether a model's reply or an evaluation is recorded: what has neither may be begun anew."""
    reply = select(CALLS.c.run_id).where(CALLS.c.run_id == run_id, CALLS.c.text_hash.is_not(None))
    evaluation = select(EVALUATIONS.c.run_id).where(EVALUATIONS.c.run_id == run_id)
    return any(connection.execute(query.limit(1)).first() is not None for query in (reply, evaluation))


def delete_records(connection: Connection, run_id: int) -> None:
    """Delete the tasks of a run and everything that is recorded of them."""
    for table in (TURNS, EVALUATIONS, CALLS, TASKS):
        connection.execute(delete(table).where(table.c.run_id == run_id))


@reading("an evaluation")
def kept_evaluation(data: str) -> Evaluation:
    """The evaluation that a row's `data` holds."""
    return Evaluation.from_dict(json.loads(data))


@dataclass(frozen=True, slots=True)
class Decoded:
    """What one call of a model decoded.

    Attributes:
        position: of the task in the run.
        address: path of child positions and the ordinal there.
        round: of a debate, from 0; None elsewhere.
        agent: name of the persona; None elsewhere.
        tokens: decoded.
    """

    position: int
    address: str
    round: int | None
    agent: str | None
    tokens: int


def decoded_calls(connection: Connection, run_id: int, first: int, last: int) -> list[Decoded]:
    """The calls of models of the tasks at positions first..last; where calls were asked again, the latest alone."""
    columns = (CALLS.c.position, CALLS.c.address, CALLS.c.retry_generation, CALLS.c.info, CALLS.c.completion_tokens)
    here = and_(CALLS.c.run_id == run_id, CALLS.c.kind == "generate", CALLS.c.position.between(first, last))
    latest: dict[tuple[int, str], list[Any]] = {}
    for row in connection.execute(select(*columns).where(here).order_by(CALLS.c.retry_generation)):
        kept = latest.setdefault((row.position, row.address), [])
        if kept and kept[0].retry_generation < row.retry_generation:
            kept.clear()
        kept.append(row)
    return [_decoded(row) for kept in latest.values() for row in kept]


def _decoded(row: Any) -> Decoded:
    info: dict[str, Any] = row.info or {}
    return Decoded(row.position, row.address, info.get("round"), info.get("agent"), row.completion_tokens)


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the tasks of the latest revision of the eval set, and over all calls of the run."""

    tasks: int
    statuses: dict[str, int]
    """Evaluated tasks by status; what is missing to `tasks` is not evaluated."""
    stops: dict[str, int]
    """Evaluated tasks by stop reason; the empty one is of evaluators that have none."""
    rounds: int
    """Summed over the evaluated tasks."""
    failures: int
    cells: int
    """Scores that the turns could hold, over the evaluated tasks."""
    abstained: int
    """Those of them that have no score because an agent abstained."""
    usage: Usage
    """Of the evaluations: what they would have cost in one go."""
    accuracy: Accuracy
    """Over the evaluated tasks with a label."""
    calls: int
    """Answers of models in the store, without those of the run that this one was forked from."""
    answered: int
    """Those of them that are replies, not failures."""
    cached: int
    """Those of them that came from the cache."""
    used: dict[str, Usage]
    """What was asked of each model; see `used`."""
    n_evaluated: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_evaluated", sum(self.statuses.values()))


_EVALUATED = TASKS.join(
    EVALUATIONS, and_(EVALUATIONS.c.run_id == TASKS.c.run_id, EVALUATIONS.c.position == TASKS.c.position)
)


def _evaluated(connection: Connection, run_id: int, revision: int) -> list[ColumnElement[bool]]:
    """The evaluations of the tasks of a revision; where all tasks are of it, none is looked up for each evaluation."""
    of_run = TASKS.c.run_id == run_id
    others = select(TASKS.c.run_id).where(of_run, TASKS.c.evalset_revision != revision).limit(1)
    here = [EVALUATIONS.c.run_id == run_id]
    if connection.execute(others).first() is None:
        return here
    its = (of_run, TASKS.c.position == EVALUATIONS.c.position, TASKS.c.evalset_revision == revision)
    return [*here, select(TASKS.c.run_id).where(*its).exists()]


def totals(connection: Connection, run_id: int, revision: int) -> Totals:
    """Count them, in one pass over the rows of the evaluations, and one over an index of them."""
    here, e = _evaluated(connection, run_id, revision), EVALUATIONS.c
    tokens = (e.prompt_tokens, e.cached_tokens, e.completion_tokens, e.calls, e.thinking_tokens)
    sums = [func.coalesce(func.sum(column), 0) for column in (e.rounds, e.n_failures, e.cells, e.abstained, *tokens)]
    summed = connection.execute(select(*sums, *_ACCURACY).where(*here)).one()
    rounds, failures, cells, abstained, *usage = map(int, summed[: len(sums)])

    counted = select(e.status, e.stop_reason, func.count()).where(*here).group_by(e.status, e.stop_reason)
    statuses, stops = Counter[str](), Counter[str]()
    for status, stop, count in connection.execute(counted):
        statuses[status] += count
        stops[stop or ""] += count
    recorded = and_(CALLS.c.run_id == run_id, CALLS.c.kind == "generate", CALLS.c.is_inherited.is_(False))
    asked = select(func.count(), func.count(CALLS.c.text_hash), func.count().filter(CALLS.c.is_cached))
    calls, answered, cached = connection.execute(asked.where(recorded)).one()
    tasks = select(func.count()).where(TASKS.c.run_id == run_id, TASKS.c.evalset_revision == revision)
    return Totals(
        tasks=connection.execute(tasks).scalar_one(),
        statuses=dict(sorted(statuses.items())),
        stops=dict(sorted(stops.items())),
        rounds=rounds,
        failures=failures,
        cells=cells,
        abstained=abstained,
        usage=Usage(*usage),
        accuracy=_accuracy(summed),
        calls=calls,
        answered=answered,
        cached=cached,
        used=used(connection, run_id),
    )


def used(connection: Connection, run_id: int) -> dict[str, Usage]:
    """What was asked of each model in all sessions of a run, replies that could not be read and retries included.

    Replies out of the cache, and those of the run that this one was forked from, were paid for before.
    """
    c = CALLS.c
    counts = (func.sum(c.prompt_tokens), func.sum(c.cached_tokens), func.sum(c.completion_tokens), func.count())
    here = and_(c.run_id == run_id, c.kind == "generate", ~c.is_cached, ~c.is_inherited)
    rows = connection.execute(select(c.model, *counts).where(here).group_by(c.model).order_by(c.model))
    return {row[0]: Usage(*map(int, row[1:])) for row in rows}


def accuracy(connection: Connection, chosen: Any) -> Accuracy:
    """Accuracy over the evaluations of a query, which holds their table."""
    return _accuracy(connection.execute(chosen.with_only_columns(*_ACCURACY)).one())


def accuracy_by_group(connection: Connection, run_id: int, revision: int) -> dict[str, Accuracy]:
    """Accuracy over the evaluated tasks with a label, by the `group` in a task's metadata, in the order of the tasks.

    Empty where the first task names none.
    """
    e = EVALUATIONS.c
    here = and_(TASKS.c.run_id == run_id, TASKS.c.evalset_revision == revision, e.verdict.is_not(None))
    query = select(e.task_group, *_ACCURACY).select_from(_EVALUATED).where(here).group_by(e.task_group)
    rows = connection.execute(query.order_by(func.min(TASKS.c.position))).all()
    if not rows or rows[0].task_group is None:
        return {}
    return {row.task_group or "no group": _accuracy(row) for row in rows}


class Part(NamedTuple):
    """Some of the evaluated tasks, how right they are and what they took."""

    tasks: int
    accuracy: Accuracy
    usage: Usage


def parts_by_settling(connection: Connection, run_id: int, revision: int) -> dict[bool, Part]:
    """The evaluated tasks that were settled without a debate (True), and the others; empty where none was settled."""
    e = EVALUATIONS.c
    sums = [func.sum(column) for column in (e.prompt_tokens, e.cached_tokens, e.completion_tokens, e.calls)]
    is_settled = func.coalesce(e.stop_reason, "") == "settled"
    here = and_(TASKS.c.run_id == run_id, TASKS.c.evalset_revision == revision)
    query = select(is_settled.label("settled"), func.count().label("tasks"), *_ACCURACY, *sums)
    rows = connection.execute(query.select_from(_EVALUATED).where(here).group_by(is_settled)).all()
    found = {bool(row.settled): Part(row.tasks, _accuracy(row), Usage(*map(int, row[-4:]))) for row in rows}
    return found if True in found else {}


_VERDICTS: tuple[Verdict, ...] = ("right", "tied", "unscored")
_ACCURACY = (
    func.count(EVALUATIONS.c.verdict).label("labeled"),
    *(func.count().filter(EVALUATIONS.c.verdict == name).label(name) for name in _VERDICTS),
    func.avg(EVALUATIONS.c.chance).label("chance"),
)
"""Columns of a query that `_accuracy` reads."""


def _accuracy(row: Any) -> Accuracy:
    counts = {name: getattr(row, name) for name in ("labeled", *_VERDICTS)}
    return Accuracy(**counts, chance=math.nan if row.chance is None else row.chance)
