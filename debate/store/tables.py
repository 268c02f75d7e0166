"""The tables, as SQLAlchemy types. `migrations/` makes them; a test holds the two together.

    runs ── tasks ── calls          every answer of a model or a memory, the truth from which the rest is replayed
                 └── evaluations    what a task came to, without its turns
                 └── turns          what each agent said, with its score matrix and the memories it was given
    replies                         the cache of raw replies, shared by all runs of the store

Times are seconds since 1970 in UTC. Texts that a model or a user wrote are JSON-encoded, so that NULs and half
surrogate pairs survive in every database.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
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
    __table_args__ = (UniqueConstraint("run_id", "task_id"),)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    """From 0, in the order in which the tasks came."""
    task_id: Mapped[str]
    place: Mapped[str | None]
    """FILE:LINE it was read from."""
    content_hash: Mapped[str]
    data: Mapped[Any] = mapped_column(Json)
    reading: Mapped[int]
    """Number of the eval set's reading that saw it last; 0 for tasks that came one by one."""
    best: Mapped[int | None]
    """Index of the candidate that is known to be the best, where the eval set says so."""
    take: Mapped[int] = mapped_column(default=0)
    """How often its failed calls were asked for again."""
    reopened: Mapped[Any | None] = mapped_column(Json)
    """Addresses of the calls that the latest take asks again."""


class CallRow(Base):
    """One answer, of a model or of a memory."""

    __tablename__ = "calls"

    run_id: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    address: Mapped[str] = mapped_column(primary_key=True)
    """Path of child positions and the ordinal there: `0.2.1`."""
    attempt: Mapped[int] = mapped_column(primary_key=True)
    take: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    """`generate` or `recall`."""
    prompt_hash: Mapped[str]
    model: Mapped[str | None]
    sampling: Mapped[Any | None] = mapped_column(Json)
    seed: Mapped[int | None]
    info: Mapped[Any | None] = mapped_column(Json)
    """Round, agent and the like, as the evaluator names them."""
    text: Mapped[Any | None] = mapped_column(Json)
    """The raw reply."""
    finish_reason: Mapped[str | None]
    neutralised: Mapped[int] = mapped_column(default=0)
    is_cached: Mapped[bool] = mapped_column(default=False)
    """Whether the reply came from the cache."""
    is_inherited: Mapped[bool] = mapped_column(default=False)
    """Whether it was taken over from the run that this one was forked from."""
    failure: Mapped[Any | None] = mapped_column(Json)
    memories: Mapped[Any | None] = mapped_column(Json)
    """What was recalled, with ids, collections and part scores."""
    prompt_tokens: Mapped[int] = mapped_column(default=0)
    cached_tokens: Mapped[int] = mapped_column(default=0)
    completion_tokens: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[float]


class EvaluationRow(Base):
    """What a task came to under one set of settings."""

    __tablename__ = "evaluations"

    run_id: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    settings: Mapped[str]
    """Digest of the evaluator's settings, those that shape no prompt included."""
    evaluator: Mapped[str]
    status: Mapped[str] = mapped_column(index=True)
    selected: Mapped[int | None]
    stop_reason: Mapped[str | None]
    rounds: Mapped[int]
    n_failures: Mapped[int]
    calls: Mapped[int]
    prompt_tokens: Mapped[int]
    cached_tokens: Mapped[int]
    completion_tokens: Mapped[int]
    data: Mapped[Any] = mapped_column(Json)
    """The evaluation without its transcripts."""
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
    memories: Mapped[Any] = mapped_column(Json)
    failure: Mapped[Any | None] = mapped_column(Json)
    data: Mapped[Any] = mapped_column(Json)
    """The rest: overall, comments, labels shown, rejected replies."""


class ReplyRow(Base):
    """One cached reply."""

    __tablename__ = "replies"

    key: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str]
    data: Mapped[Any] = mapped_column(Json)
    created_at: Mapped[float]
    expires_at: Mapped[float] = mapped_column(index=True)
    hits: Mapped[int] = mapped_column(default=0)


RUNS, TASKS, CALLS, EVALUATIONS, TURNS, REPLIES = map(
    table_of, (RunRow, TaskRow, CallRow, EvaluationRow, TurnRow, ReplyRow)
)
"""The same tables for statements that deal in many rows."""
