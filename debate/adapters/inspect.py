"""The scorer `debate/debate` for inspect, which finds it by its entry point; this module imports inspect."""

from __future__ import annotations

import atexit
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from debate.adapters.frameworks import framework
from debate.adapters.judge import Judge, Judged
from debate.config.settings import RunSettings
from debate.dataset.inspect_log import context_of_choices
from debate.jobs.unrecorded import unrecorded_engine, unrecorded_settings
from debate.types import Task

Scoring = Callable[[Any, Any], Awaitable[Any]]
_inspect = framework("inspect_ai.scorer", "inspect-ai")
_anyio = framework("anyio")
_log = logging.getLogger("debate")
_METRICS = {"*": [_inspect.mean(), _inspect.stderr()]}
_OUTSIDE = "debate_inspect"
"""Inspect puts a package's name before those of its scorers, but not in all kinds of installations of ours, whose
distribution has another name. It leaves alone the name of a function whose module it cannot find."""


def as_scorer(judge: Judge, *, max_characters: int | None = 4000) -> Scoring:
    """A scorer for a task, which scores with a judge of yours.

    The value is a dict of `overall` and the components, with NaN where one is unscored, which inspect's metrics leave
    out; the judge's rule for missing scores is not asked. The explanation is the feedback. The judges see the sample's
    input, its choices as the context, the output as the candidate, and the target as the reference answer. All
    samples are judged at once, under asyncio and under trio; a sample that is canceled cancels its calls.

    Args:
        judge: see `debate.Judge`.
        max_characters: the most that an explanation may have; None for all.
    """

    def with_judge() -> Scoring:
        return _scoring(lambda: judge, max_characters)

    return _registered(with_judge, "debate/judge")()


def _debate(profile: str | None = None, config: str | None = None, model: str | None = None) -> Scoring:
    """Score with a debate, on the scale from 0 to 1: `inspect score LOG.eval --scorer debate/debate`.

    Args:
        profile: name or file of a profile; None is `general`, or what the model's folder asks for.
        config: a file of settings, as for `debate run --config`: another evaluator, a backend, a memory. What it says
            of eval sets and records is not used, since inspect keeps the log.
        model: the model; None is the one of `config`, or without that the bundled judge.
    """
    return _scoring(lambda: _judge(profile, config, model), 4000)


def _registered(make: Callable[..., Scoring], name: str) -> Callable[..., Scoring]:
    make.__module__ = _OUTSIDE
    return _inspect.scorer(metrics=_METRICS, name=name)(make)


debate_scorer = _registered(_debate, "debate/debate")


@cache
def _judge(profile: str | None, config: str | None, model: str | None) -> Judge:
    """One engine for all samples and logs of the process with the same settings."""
    flags = {"profile": profile, "model": model or (None if config else "built-in")}
    given = {name: value for name, value in flags.items() if value is not None}
    settings = unrecorded_settings(None if config is None else Path(config), given, RunSettings)
    evaluator = settings.make_evaluator()
    until_the_end = ExitStack()
    engine = until_the_end.enter_context(
        unrecorded_engine(settings, settings.open_backends(evaluator), partial(_log.warning, "%s"))
    )
    atexit.register(until_the_end.close)
    return Judge(engine, evaluator)


def _scoring(judge: Callable[[], Judge], max_characters: int | None) -> Scoring:
    async def score(state: Any, target: Any) -> Any:
        its = judge()
        answer = state.output.completion
        context = context_of_choices([choice.value for choice in getattr(state, "choices", None) or ()])
        task = Task(state.input_text, [answer], context=context, reference=target.text or None)
        judged = await _awaited(its, task)
        more = {} if (why := judged.why_unscored()) is None else {"reason": "scoring_failed", "metadata": {"why": why}}
        feedback = judged.feedback(0, max_characters)
        return _inspect.Score(value=_value(its, judged), answer=answer, explanation=feedback, **more)

    return score


def _value(judge: Judge, judged: Judged) -> dict[str, float]:
    """The score and the components, with NaN for those that are missing."""
    names = [each.name for each in getattr(judge.evaluator, "components", ())]
    overall = judged.score() if judged.is_scored() else math.nan
    return {"overall": overall, **dict.fromkeys(names, math.nan), **judged.components()}


async def _awaited(judge: Judge, task: Task) -> Judged:
    """What a task comes to, waited for on the loop that runs, of asyncio or of trio."""
    done, soon = _anyio.Event(), _soon(_anyio.lowlevel.current_token())
    future = judge.submit(task)
    future.add_done_callback(lambda _: soon(done.set))
    try:
        await done.wait()
    except BaseException:
        future.cancel()  # which tells of its end from this very thread
        raise
    return future.result()


def _soon(token: Any) -> Callable[[Callable[[], object]], None]:
    """What has a loop call something soon, from any thread and without waiting for it; a loop that has ended does not.

    token: of the loop, as anyio has it.
    """
    loop = getattr(token, "native_token", token)
    call: Callable[[Callable[[], object]], object] = getattr(loop, "run_sync_soon", None) or loop.call_soon_threadsafe

    def soon(what: Callable[[], object]) -> None:
        with suppress(RuntimeError):
            call(what)

    return soon
