"""One way into the engine for programs that want a score and some words: futures, a memo, one scale, a rule for NaN."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, partial
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np

from debate.errors import ConfigError, TaskError, UnscoredError
from debate.evaluation import Evaluation, why_no_score
from debate.evaluators.debate.settings import CELL_SCALE
from debate.scoring.tensor import component_means
from debate.settings import check_value, names_what_was_meant
from debate.types import FloatArray, Scale, Task

if TYPE_CHECKING:
    from debate.config.names import GivenEvaluator
    from debate.engine import Engine

T = TypeVar("T")
OnUnscored = Literal["raise", "fallback"]
_TO_DO = 'pass Judge(..., on_unscored="fallback", fallback=0.0) to go on with a score that stands for it'


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """Where scores are put, and what stands for one that is missing."""

    scale: Scale
    """Low and high end; higher is better."""
    on_unscored: OnUnscored
    fallback: float

    def placed(self, unit: float) -> float:
        """A score from 0 to 1 on the scale."""
        return self.scale.low + unit * (self.scale.high - self.scale.low)


@dataclass(frozen=True)
class Judged:
    """An evaluation in the terms of a `Judge`. Candidates are counted from 0."""

    evaluation: Evaluation
    rule: ScoreRule

    def is_scored(self, candidate: int = 0) -> bool:
        """Whether the candidate has a score of its own. Raises IndexError where there is no such candidate."""
        return not math.isnan(self._scores[self._checked(candidate)])

    def score(self, candidate: int = 0) -> float:
        """The candidate's score on the judge's scale, where more is better; it is never NaN.

        Raises:
            UnscoredError: without one, under `on_unscored="raise"`.
            IndexError: where there is no such candidate.
        """
        return self._by_rule(self._scores[self._checked(candidate)], candidate, "")

    def scores(self) -> list[float]:
        """The score of each candidate, as `score`."""
        return [self.score(j) for j in range(len(self._scores))]

    def components(self, candidate: int = 0) -> dict[str, float]:
        """The candidate's mean on each component, on the judge's scale; NaN where it has none, whatever the rule.

        Of a candidate without a score they are the means over the cells that agents did score. Evaluators without
        components have none.
        """
        return dict(zip(self._names, self._components[self._checked(candidate)], strict=True))

    def objectives(self, candidate: int = 0) -> dict[str, float]:
        """The components, with what the rule says in place of NaN. Raises as `score` does."""
        found = self.components(candidate)
        return {name: self._by_rule(score, candidate, f" on {name}") for name, score in found.items()}

    def feedback(self, candidate: int = 0, max_characters: int | None = None) -> str:
        """What was said of the candidate, worst component first; of one without a score, why, and what stands for it.

        Args:
            candidate: counted from 0.
            max_characters: the most that the text may have; whole lines are kept from its beginning. None for all.

        Raises:
            IndexError: where there is no such candidate.
            ConfigError: for `max_characters` that is not a whole number above 0.
        """
        text = self._said(self._checked(candidate))
        return text if max_characters is None else cut(text, max_characters)

    def why_unscored(self, candidate: int = 0) -> str | None:
        """Why the candidate has no score, in a few words; None with one."""
        return None if self.is_scored(candidate) else why_no_score(self.evaluation, candidate)

    def _checked(self, candidate: int) -> int:
        if not 0 <= candidate < len(self._scores):
            raise IndexError(f"there is no candidate {candidate}: the task has {len(self._scores)}, counted from 0")
        return candidate

    def _by_rule(self, score: float, candidate: int, where: str) -> float:
        if not math.isnan(score):
            return score
        if self.rule.on_unscored == "fallback":
            return self.rule.fallback
        why = why_no_score(self.evaluation, candidate)
        message = f"candidate {candidate} of the task {self.evaluation.task_id!r} has no score{where}: {why}"
        raise UnscoredError(message, hint=_TO_DO)

    def _said(self, candidate: int) -> str:
        if candidate not in self._texts:
            first, *rest = self.evaluation.feedback(candidate).split("\n")
            if not self.is_scored(candidate) and self.rule.on_unscored == "fallback":
                rest = [f"Its score of {self.rule.fallback:g} only stands for the missing one.", *rest]
            self._texts[candidate] = "\n".join([first, *rest])
        return self._texts[candidate]

    @cached_property
    def _texts(self) -> dict[int, str]:
        return {}

    @cached_property
    def _scores(self) -> list[float]:
        own = self.evaluation.scale
        return [self.rule.placed(own.to_unit(score)) for score in self.evaluation.scores.tolist()]

    @cached_property
    def _components(self) -> list[list[float]]:
        """(J, K), on the judge's scale; (J, 0) without components."""
        means = self.evaluation.by_component
        if means is None:
            return [[] for _ in self._scores]
        if self.evaluation.tensor is not None:
            means = np.where(np.isnan(means), _cell_means(self.evaluation.tensor), means)
        return [[self.rule.placed(CELL_SCALE.to_unit(mean)) for mean in row] for row in means.tolist()]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        own = self.evaluation.scored_components
        return own if len(own) == len(self._components[0]) else ()


def _cell_means(tensor: FloatArray) -> FloatArray:
    """Means (J, K) over rounds and agents, each component by itself: an agent that left another one out counts."""
    alone = [component_means(tensor[..., [k]]) for k in range(tensor.shape[3])]
    return np.concatenate(alone, axis=1)


def cut(text: str, max_characters: int) -> str:
    """A text of at most so many characters: as many whole lines as fit and `...`, or a part of the first one."""
    if not isinstance(max_characters, int) or max_characters < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"must be a whole number, at least 1, got {max_characters!r:.80}", field="max_characters")
    if len(text) <= max_characters:
        return text
    mark = "..."[:max_characters]
    room = max_characters - len(mark)
    return text[: text.rfind("\n", 0, room) + 1 or room] + mark


class _Shared(Future[Judged]):
    """The future of a task, which all who ask for an equal one get: it is cancelled when each of them cancels it."""

    def __init__(self, leave: Callable[[_Shared], bool]) -> None:
        super().__init__()
        self._leave = leave
        self.waiting = 1
        """How many asked for it and have not cancelled; guarded by the judge's lock."""

    def cancel(self) -> bool:
        """Cancel for one of those who asked. Returns whether the evaluation is cancelled, which takes the last one."""
        return self._leave(self) and super().cancel()

    def end(self) -> None:
        """Cancel for all of them."""
        super().cancel()


class Judge:
    """Scores and feedback for programs that evaluate one thing at a time from many threads, such as optimizers.

        judge = Judge(engine, DebateEvaluator("general"), on_unscored="fallback")
        judged = judge.submit(Task("What is 2 + 2?", ["4"])).result()
        judged.score(), judged.feedback(0, max_characters=2000)

    All that is submitted, from any thread, shares the engine's batch. Equal tasks share one future, also when the first
    is long done, so what is asked twice is paid once and answered alike. Nothing that an engine raises is kept: after
    a lost backend the next call asks anew. An evaluation without a score is kept as it is.

    Args:
        engine: it stays the caller's to close.
        evaluator: one, or the name of one or of a profile, as `Engine.evaluate_batch` takes it.
        on_unscored: what `score` does where a candidate has none: `raise` an `UnscoredError`, or return the `fallback`.
            NaN is never returned: optimizers compare with it in vain until their budget is spent.
        fallback: the score that stands for a missing one; the reason is the first line of the feedback.
        scale: the low and the high end of all scores. The best possible score is the high end, also for evaluators
            whose lowest score is the best.
        memo: how many finished evaluations are kept; those that were asked for least recently are dropped.
        run: name of a run of the engine's store, as `evaluate_batch` takes it: what it holds is not asked again.

    Raises:
        ConfigError: for settings that do not fit, and an evaluator that the engine's backend cannot serve.
    """

    @names_what_was_meant
    def __init__(
        self,
        engine: Engine,
        evaluator: GivenEvaluator = None,
        on_unscored: OnUnscored = "raise",
        fallback: float = 0.0,
        scale: tuple[float, float] = (0, 1),
        *,
        memo: int = 10_000,
        run: str | None = None,
    ) -> None:
        self.engine = engine
        (self.evaluator,) = engine.check(evaluator)
        on_unscored = check_value("on_unscored", on_unscored, OnUnscored)
        self.rule = ScoreRule(_scale(scale), on_unscored, float(check_value("fallback", fallback, float)))
        self._most: int = check_value("memo", memo, int, ge=0)
        self._run: str | None = check_value("run", run, str | None)
        self._lock = Lock()
        self._under_way: dict[Task, _Shared] = {}
        self._kept: OrderedDict[Task, Future[Judged]] = OrderedDict()

    def submit(self, task: Task) -> Future[Judged]:
        """Begin to judge a task, unless an equal one was asked for before, and return its future at once.

        Tasks are equal when all that was given for them is. Each who asked for a task may cancel its future, once:
        when all of them have, its calls are canceled. In asyncio, `await asyncio.wrap_future(judge.submit(task))`.

        Raises:
            TaskError: for what is no task.
            EngineError: in a forked process. What else goes wrong, the future has.
        """
        if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "a task is made of an input and its candidates: Task(x, [text])"
            raise TaskError(f"must be a Task, got {type(task).__name__}", field="task", hint=hint)
        with self._lock:
            if (kept := self._kept.get(task)) is not None:
                self._kept.move_to_end(task)
                return kept
            if (shared := self._under_way.get(task)) is not None:
                shared.waiting += 1
                return shared
            shared = self._under_way[task] = _Shared(partial(self._leave, task))
        self._begin(task, shared)
        return shared

    def many(self, tasks: Iterable[Task]) -> list[Judged]:
        """Judge all tasks side by side and wait for them; what they came to, in their order.

        Interrupted, and when one of them ends in an exception, it cancels those that are under way. Raises as the
        engine's `evaluate_batch` does: an EngineError in the engine's own thread, such as in a display, an async script
        and the callback of a future, where it would wait for itself.
        """
        self.engine.check_can_wait()
        futures: list[Future[Judged]] = []
        try:
            for task in tasks:
                futures.append(self.submit(task))
            return waited(futures)
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def score(self, task: Task, candidate: int = 0) -> float:
        """Judge a task, and wait for the score of one of its candidates: `Judged.score`."""
        return self.many([task])[0].score(candidate)

    def feedback(self, task: Task, candidate: int = 0, max_characters: int | None = None) -> str:
        """Judge a task, and wait for what was said of one of its candidates: `Judged.feedback`."""
        return self.many([task])[0].feedback(candidate, max_characters)

    def close(self) -> None:
        """Cancel what is under way, for all who wait, and forget what is kept. The engine stays open."""
        with self._lock:
            futures = [*self._under_way.values()]
            self._under_way.clear()
            self._kept.clear()
        for future in futures:
            future.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, task: Task, shared: _Shared) -> None:
        try:
            work = self.engine.submit(task, self.evaluator, self._run)
        except BaseException as error:
            self._forget(task, shared)
            shared.set_exception(error)  # others may have it by now
            raise
        shared.add_done_callback(lambda _: work.cancel())
        work.add_done_callback(partial(self._finish, task, shared))

    def _finish(self, task: Task, shared: _Shared, work: Future[Evaluation]) -> None:
        """Pass on what the engine came to, and keep an evaluation that somebody still waits for."""
        error = None if work.cancelled() else work.exception()
        is_awaited = shared.set_running_or_notify_cancel()  # it cannot be canceled from here on
        with self._lock:
            is_wanted = self._forget_locked(task, shared) and is_awaited
            if is_wanted and error is None and not work.cancelled():
                self._keep(task, shared)
        if not is_awaited:
            return
        if error is not None:
            shared.set_exception(error)
        else:
            shared.set_result(Judged(work.result(), self.rule))

    def _keep(self, task: Task, shared: _Shared) -> None:
        self._kept[task] = shared
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def _leave(self, task: Task, shared: _Shared) -> bool:
        """Count one of those who wait out; whether nobody is left."""
        with self._lock:
            shared.waiting -= 1
            return shared.waiting <= 0 and (self._forget_locked(task, shared) or not shared.done())

    def _forget(self, task: Task, shared: _Shared) -> None:
        with self._lock:
            self._forget_locked(task, shared)

    def _forget_locked(self, task: Task, shared: _Shared) -> bool:
        """Take a future out of those under way; whether it was there."""
        return self._under_way.get(task) is shared and self._under_way.pop(task) is shared


def waited(futures: Sequence[Future[T]]) -> list[T]:
    """What some futures come to, once all are done.

    It waits at a queue, not for the futures: an interrupt can leave a future's lock taken.
    """
    ended: SimpleQueue[Future[T]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(ended.put)  # at once for one that is done
    for _ in futures:
        if (first := ended.get()).cancelled() or first.exception() is not None:
            break
    else:
        return [future.result() for future in futures]
    first.result()
    raise AssertionError("unreachable: the future had an exception")


def _scale(given: Any) -> Scale:
    """The ends of a scale, which are finite numbers. Raises ConfigError for anything else."""
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ConfigError(f"must be two numbers, got {given!r:.80}", field="scale", hint="scale=(0, 1)") from None
    scale = Scale(low, high)
    if not math.isfinite(scale.high):
        raise ConfigError(f"must end at a finite number, got {high}", field="scale", hint="scale=(0, 1)")
    return scale
