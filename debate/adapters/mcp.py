"""A server of the Model Context Protocol over stdio with the tool `judge_candidates`, for agents that want a judgment.

This module imports the official SDK, `mcp`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Literal, TextIO

from pydantic import BaseModel, Field

from debate.adapters.frameworks import framework
from debate.adapters.judge import Judge, Judged
from debate.concurrency.daemon_thread import in_daemon_thread
from debate.config.settings import ServerLimits
from debate.dataset.native_jsonl import NativeTask
from debate.errors import DebateError
from debate.files import valid_unicode
from debate.flow import RoundEnd
from debate.registry import version_of
from debate.server.evaluations import Refused, Served
from debate.types import Task, Turn

_stdio = framework("mcp.server.stdio", "'debate-eval[mcp]'")
_server = framework("mcp.server.lowlevel", "'debate-eval[mcp]'")
_types = framework("mcp_types", "'debate-eval[mcp]'")
_anyio = framework("anyio")

TOOL = "judge_candidates"
_ABOUT = (
    "Have a panel of judges discuss and score candidate responses to one input, compared with each other. "
    "Give what was asked as `x`, and one or more responses as `candidates`; the answer has a score from 0 to 1 for "
    "each, the best one, and what the judges found wrong with each."
)
_FOR_EVAL_SETS = ("id", "best", "metadata")
"""Fields of a task that say nothing to judges."""
_log = logging.getLogger("debate")


class JudgedCandidates(BaseModel):
    """What the judges found. Candidates are counted from 0."""

    status: Literal["ok", "partial", "failed"] = Field(description="`failed`: nothing has a score; `error` says why.")
    selected: int | None = Field(description="The best candidate; null where none has a score.")
    tied: list[int] = Field(description="Candidates that share the best score; empty when one stands alone.")
    scores: list[float | None] = Field(description="From 0 to 1, more is better; null: without a score.")
    components: list[dict[str, float | None]] = Field(description="By candidate, its score on each component.")
    feedback: list[str] = Field(description="By candidate, what was said of it, worst component first.")
    error: str | None = Field(description="What went wrong, in a sentence.")


class Rounds:
    """Passes on what an engine tells of debates to those who wait for them: the `on_turn` of the engine."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listening: dict[Task, list[Callable[[RoundEnd], object]]] = defaultdict(list)

    def tell(self, task: Task, news: Turn | RoundEnd) -> None:
        """Tell of the end of a round to all who wait for that task."""
        if isinstance(news, RoundEnd):
            with self._lock:
                listening = [*self._listening.get(task, ())]
            for each in listening:
                each(news)

    @contextmanager
    def heard(self, task: Task, hear: Callable[[RoundEnd], object]) -> Generator[None]:
        """Call `hear`, in the engine's thread, at the end of each round of a task."""
        with self._lock:
            self._listening[task].append(hear)
        try:
            yield
        finally:
            with self._lock:
                self._listening[task].remove(hear)
                if not self._listening[task]:
                    del self._listening[task]


class _Lines:
    """The lines of a file as they come, read by a thread that holds up no exit."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        if line := await in_daemon_thread(self._file.readline, "debate-stdin"):
            return line
        raise StopAsyncIteration


@contextmanager
def own_streams() -> Generator[tuple[Any, Any]]:
    """Stdin and stdout for the protocol alone.

    Meanwhile what anything else here writes to stdout goes to stderr, and what it reads from stdin is empty; so it is
    for processes that are started.
    """
    reading = os.fdopen(os.dup(0), encoding="utf-8", errors="replace")
    writing = os.fdopen(os.dup(1), "w", encoding="utf-8")
    before, nothing = sys.stdout, os.open(os.devnull, os.O_RDONLY)
    before.flush()
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        yield _Lines(reading), _anyio.wrap_file(writing)
    finally:
        before.flush()  # to stderr
        sys.stdout = before
        os.dup2(writing.fileno(), 1)


async def serve_stdio(
    judge: Judge, streams: tuple[Any, Any], rounds: Rounds | None = None, *, max_characters: int | None = 4000
) -> None:
    """Answer on stdin and stdout until stdin ends. The engine is started at once, beside the first messages.

    Args:
        judge: see `debate.Judge`. Calls of any number of agents share its engine's batch.
        streams: of `own_streams`.
        rounds: the `on_turn` of the judge's engine, by which a call tells of its progress; None tells nothing.
        max_characters: the most that the feedback on a candidate may have; None for all.
    """
    server = tool_server(judge, rounds or Rounds(), max_characters)
    async with _stdio.stdio_server(*streams) as (reading, writing):
        starting = asyncio.ensure_future(_started(judge))
        try:
            await server.run(reading, writing, server.create_initialization_options())
        finally:
            starting.cancel()


def tool_server(judge: Judge, rounds: Rounds, max_characters: int | None) -> Any:
    """The SDK's server with the one tool."""
    served = Served(judge.engine, judge.evaluator)

    async def listed(context: Any, given: Any) -> Any:
        return _types.ListToolsResult(tools=[_tool()])

    async def called(context: Any, given: Any) -> Any:
        if given.name != TOOL:
            return _failure(f"there is no tool {given.name!r}, only {TOOL}")
        try:
            task = served.task_of(given.arguments or {}, ServerLimits())
            judged = await _judged(judge, task, rounds, context.session)
        except Refused as refusal:
            return _failure(refusal.problem.error, refusal.problem.hint)
        except DebateError as error:
            _log.error("a call could not be answered: %s", error)
            return _failure(f"the candidates could not be judged: {error.message}", error.hint)
        return _success(_found(judged, max_characters))

    version = version_of("debate-eval") or ""
    return _server.Server("debate", version=version, on_list_tools=listed, on_call_tool=called)


async def _started(judge: Judge) -> None:
    """Start the engine. What keeps it from that, the first call is told as well."""
    try:
        await in_daemon_thread(judge.engine.start, "debate-start")
    except DebateError as error:
        _log.error("the model could not be loaded: %s", error)


async def _judged(judge: Judge, task: Task, rounds: Rounds, session: Any) -> Judged:
    """What a task comes to. Being cancelled cancels its calls."""
    loop, ended = asyncio.get_running_loop(), asyncio.Queue[RoundEnd | None]()
    with rounds.heard(task, lambda end: loop.call_soon_threadsafe(ended.put_nowait, end)):
        telling = asyncio.ensure_future(_tell(ended, session, getattr(judge.evaluator, "rounds", None)))
        try:
            judged = await asyncio.wrap_future(judge.submit(task))
            ended.put_nowait(None)
            await telling
            return judged
        finally:
            telling.cancel()


async def _tell(ended: asyncio.Queue[RoundEnd | None], session: Any, total: float | None) -> None:
    """Report each round, until None comes; a client that did not ask for progress is sent nothing."""
    n = 0
    while (end := await ended.get()) is not None:
        n += 1
        disagreement = "" if math.isnan(end.cv) else f", the judges' disagreement is {end.cv:.2f}"
        await session.report_progress(n, total, f"round {end.round + 1} has ended{disagreement}")


def _tool() -> Any:
    schema = NativeTask.model_json_schema()
    for name in _FOR_EVAL_SETS:
        del schema["properties"][name]
    return _types.Tool(
        name=TOOL,
        title="Judge candidates",
        description=_ABOUT,
        input_schema=schema,
        output_schema=JudgedCandidates.model_json_schema(mode="serialization"),
        annotations=_types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )


def _found(judged: Judged, max_characters: int | None) -> JudgedCandidates:
    evaluation = judged.evaluation
    each = range(len(evaluation.scores))
    return JudgedCandidates(
        status=evaluation.status,
        selected=evaluation.selected,
        tied=[*evaluation.tied],
        scores=[judged.score(j) if judged.is_scored(j) else None for j in each],
        components=[{name: _or_null(score) for name, score in judged.components(j).items()} for j in each],
        feedback=[judged.feedback(j, max_characters) for j in each],
        error=evaluation.error,
    )


def _or_null(score: float) -> float | None:
    return None if math.isnan(score) else score


def _success(found: JudgedCandidates) -> Any:
    """The answer as structured content, and as a text for clients that know no other."""
    data = found.model_dump()
    text = valid_unicode(json.dumps(data, ensure_ascii=False))
    content = [_types.TextContent(type="text", text=text)]
    return _types.CallToolResult(content=content, structured_content=json.loads(text), is_error=False)


def _failure(problem: str, hint: str | None = None) -> Any:
    text = problem if hint is None else f"{problem} ({hint})"
    return _types.CallToolResult(content=[_types.TextContent(type="text", text=text)], is_error=True)
