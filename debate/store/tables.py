"""The tables, as SQLAlchemy types. A new store is made from them, an older one by `migrations/`; a test compares both.

    runs ── tasks ── calls          every answer of a model or a memory, the truth from which the rest is replayed
                 └── evaluations    the result of each task, as JSON, with columns made from it for queries
                 └── turns          score matrix of each turn
         ── shards                  what is left of its tasks, in pieces that processes claim
         ── workers                 the processes that work on it, or did
    replies                         the cache of replies, shared by all runs of the store
    texts                           the raw replies that calls and the cache refer to, and thinking; each once

Times are seconds since 1970 in UTC. Texts that a model or a user wrote are JSON-encoded, so that NULs and half
surrogate pairs survive in every database.

Two indexes, `task_ids` and `evaluations_at_a_glance`, hold whatever a list of evaluations is narrowed by, in the order
of the tasks. So any filters together, and a search, are answered by one pass over them, however wide the rows are.

A label distribution is `[{"7": 0.98, "8": 0.02}, 0.9994]` in JSON: the probability of each label that has any, and the
mass of all labels. Calls hold a list of them, turns a matrix.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, Text, UniqueConstraint, false
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from debate.sql.types import Json, table_of


class Base(DeclarativeBase):
    """All tables of the store."""


class RunRow(Base):
    """One run: a set of tasks under one evaluator, one set of models and one seed."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[float]
    identity: Mapped[Any] = mapped_column(Json)
    """What shapes prompts: evaluator, models, seed. It never changes."""
    seed: Mapped[int] = mapped_column(BigInteger)
    today: Mapped[str]
    """The date that the run's prompts state."""
    about: Mapped[Any] = mapped_column(Json)
    """Eval set, settings and versions, for people."""
    holder: Mapped[Any | None] = mapped_column(Json)
    """Process that works on it, or did last."""


class TaskRow(Base):
    """One task of a run, whole, so that a run needs its eval set no more."""

    __tablename__ = "tasks"
    __table_args__ = (
        UniqueConstraint("run_id", "task_id"),
        Index("task_ids", "run_id", "position", "evalset_revision", "task_id"),
    )

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    """From 0, in the order in which the tasks came."""
    task_id: Mapped[str]
    place: Mapped[str | None]
    """FILE:LINE it was read from."""
    content_hash: Mapped[str]
    data: Mapped[Any] = mapped_column(Json)
    evalset_revision: Mapped[int]
    """Latest revision of the eval set that has it; 0 for tasks that came one by one."""
    retry_generation: Mapped[int] = mapped_column(default=0)
    """How often its failed calls were asked again."""
    reopened: Mapped[Any | None] = mapped_column(Json)
    """Addresses of the calls that the latest retry generation asks again."""


class CallRow(Base):
    """One answer, of a model or of a memory."""

    __tablename__ = "calls"

    run_id: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    address: Mapped[str] = mapped_column(primary_key=True)
    """Path of child positions and the ordinal there: `0.2.1`."""
    attempt: Mapped[int] = mapped_column(primary_key=True)
    retry_generation: Mapped[int] = mapped_column(primary_key=True)
    """The task's when it was asked; -1 for what a fork took over."""
    kind: Mapped[str]
    """`generate` or `recall`."""
    prompt_hash: Mapped[str]
    model: Mapped[str | None]
    sampling: Mapped[Any | None] = mapped_column(Json)
    seed: Mapped[int | None]
    info: Mapped[Any | None] = mapped_column(Json)
    """Round, agent and the like, as the evaluator names them."""
    text_hash: Mapped[str | None]
    """Key of the raw reply in `texts`."""
    thinking_hash: Mapped[str | None]
    """Key in `texts` of what the model thought before it; NULL where it did not say."""
    finish_reason: Mapped[str | None]
    escaped_special_tokens: Mapped[int] = mapped_column(default=0)
    is_cached: Mapped[bool] = mapped_column(default=False)
    """Whether the reply came from the cache."""
    is_inherited: Mapped[bool] = mapped_column(default=False)
    """Whether it was taken over from the run that this one was forked from."""
    failure: Mapped[Any | None] = mapped_column(Json)
    memories: Mapped[Any | None] = mapped_column(Json)
    """What was recalled, with ids, collections and part scores."""
    distributions: Mapped[Any | None] = mapped_column(Json)
    """What was read out, one distribution per place; NULL where nothing was."""
    prompt_tokens: Mapped[int] = mapped_column(default=0)
    cached_tokens: Mapped[int] = mapped_column(default=0)
    completion_tokens: Mapped[int] = mapped_column(default=0)
    thinking_tokens: Mapped[int | None]
    """Those of them in which the model thought; NULL where that is not known."""
    created_at: Mapped[float]


class EvaluationRow(Base):
    """The result of a task under one set of settings; the columns up to `completion_tokens` are made from `data`."""

    __tablename__ = "evaluations"
    __table_args__ = (
        Index(
            "evaluations_at_a_glance",
            *("run_id", "position", "status", "verdict", "selected", "tied", "flipped", "unscored", "orders_disagree"),
            *("rounds", "task_group", "stop_reason"),
        ),
    )

    run_id: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    settings: Mapped[str]
    """Digest of the evaluator's settings, those that shape no prompt included."""
    evaluator: Mapped[str]
    status: Mapped[str]
    selected: Mapped[int | None]
    tied: Mapped[bool]
    """Whether several candidates share the best score."""
    flipped: Mapped[bool | None]
    """Whether the last round had another winner than the first, by the mean score; NULL without two scored rounds."""
    unscored: Mapped[bool] = mapped_column(server_default=false())
    """Whether a candidate has no score."""
    orders_disagree: Mapped[bool] = mapped_column(server_default=false())
    """Whether the two orders of a balanced debate chose differently."""
    task_group: Mapped[str | None]
    """The `group` in the task's metadata."""
    verdict: Mapped[str | None]
    """`right`, `wrong`, `tied` or `unscored`, by the label in the task's metadata; NULL without one."""
    chance: Mapped[float | None]
    """Share of the candidates that are right by the label; NULL without one."""
    margin: Mapped[float | None]
    """Distance of the best score from the second best; NULL where fewer than two candidates were scored."""
    cv: Mapped[float | None]
    """Coefficient of variation of the last round."""
    stop_reason: Mapped[str | None]
    rounds: Mapped[int]
    n_failures: Mapped[int]
    cells: Mapped[int | None]
    """Scores that its turns and those of its members could hold; NULL without turns, and in older records."""
    abstained: Mapped[int | None]
    """Those of them that have no score because an agent abstained; NULL with `cells`."""
    calls: Mapped[int]
    prompt_tokens: Mapped[int]
    cached_tokens: Mapped[int]
    completion_tokens: Mapped[int]
    thinking_tokens: Mapped[int | None]
    """NULL where none are known."""
    data: Mapped[str] = mapped_column(Text)
    """The evaluation as JSON: its line of `results.jsonl`."""
    created_at: Mapped[float]


class TurnRow(Base):
    """One turn of an evaluation."""

    __tablename__ = "turns"
    __table_args__ = (Index("one_turn_each", "run_id", "position", "member", "round", "agent", unique=True),)

    run_id: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    member: Mapped[str] = mapped_column(primary_key=True)
    """Path to the member evaluation it belongs to: empty, `0`, `0.1`."""
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    round: Mapped[int]
    agent: Mapped[str]
    scores: Mapped[Any] = mapped_column(Json)
    """(J, K) in the task's own candidate order, null where unscored."""
    distribution: Mapped[Any | None] = mapped_column(Json)
    """(J, K) label distributions of the scores; NULL where they were not read out."""
    failure: Mapped[Any | None] = mapped_column(Json)


class ShardRow(Base):
    """Some tasks of a run, which one worker at a time evaluates."""

    __tablename__ = "shards"

    run_id: Mapped[int] = mapped_column(primary_key=True)
    shard: Mapped[int] = mapped_column(primary_key=True)
    """From 0."""
    first: Mapped[int]
    """Position of its first task."""
    last: Mapped[int]
    """Position of its last task."""
    worker: Mapped[int | None] = mapped_column(BigInteger)
    """Number of the worker that claimed it last."""
    claim: Mapped[int] = mapped_column(default=0)
    """How often it was claimed: who finishes it says which claim that was."""
    is_done: Mapped[bool] = mapped_column(default=False)


_UNDONE = ~ShardRow.is_done
Index("undone_shards", ShardRow.run_id, ShardRow.shard, postgresql_where=_UNDONE, sqlite_where=_UNDONE)


class WorkerRow(Base):
    """One process that works on a run. Whether it lives, its lock says."""

    __tablename__ = "workers"

    run_id: Mapped[int] = mapped_column(primary_key=True)
    worker: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    """A random number, under which it holds its lock."""
    about: Mapped[Any] = mapped_column(Json)
    """Host, process and device."""
    started_at: Mapped[float]
    last_commit: Mapped[float]
    """When it last reported that something was recorded."""
    ended_at: Mapped[float | None]
    """NULL for one that works, or died."""
    tasks: Mapped[int] = mapped_column(default=0)
    """How many it has evaluated."""
    tokens: Mapped[int] = mapped_column(BigInteger, default=0)
    """Prompt and completion tokens of the calls that it asked."""


class TextRow(Base):
    """One raw reply."""

    __tablename__ = "texts"
    __table_args__ = ({"info": {"keep_first": True}},)

    hash: Mapped[str] = mapped_column(primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)
    """UTF-8, by zlib where `is_compressed`."""
    is_compressed: Mapped[bool]


class ReplyRow(Base):
    """One cached reply."""

    __tablename__ = "replies"

    key: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str]
    text_hash: Mapped[str]
    """Key of the raw reply in `texts`."""
    thinking_hash: Mapped[str | None]
    """Key in `texts` of what the model thought before it; NULL where it did not say."""
    data: Mapped[Any] = mapped_column(Json)
    """The rest of the reply: finish reason, usage, and `distributions` where some were read out."""
    created_at: Mapped[float]
    expires_at: Mapped[float] = mapped_column(index=True)
    hits: Mapped[int] = mapped_column(default=0)


RUNS, TASKS, CALLS, EVALUATIONS, TURNS, SHARDS, WORKERS, TEXTS, REPLIES = map(
    table_of, (RunRow, TaskRow, CallRow, EvaluationRow, TurnRow, ShardRow, WorkerRow, TextRow, ReplyRow)
)
"""The same tables for statements that deal in many rows."""
