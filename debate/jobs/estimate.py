"""What a run would ask of its models, found by rehearsal: its evaluations are held with stand-ins for the replies.

A rehearsal renders every prompt as the run would, with the profile, the templates and the tasks, and needs no model. It
is held twice per task: with replies that agree at once and say nothing, and with the longest replies that their schemas
allow, of agents that never agree. What the run will ask lies between the two, apart from replies that cannot be read
and are asked for again. Functions of the user's are not called, and nothing is recalled.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, cast

from debate.backends.scripted import estimated_usage
from debate.concurrency.exits import ends_more
from debate.evaluators.base import Evaluator
from debate.evaluators.contract import checked_flow
from debate.flow import CallFunction, Completion, Flow, Gather, Generate, Recall, RunContext
from debate.parsing.places import value_spans
from debate.scoring.distributions import distribution_of
from debate.types import Failure, LabelDistribution, Price, Task, Usage

MOST_REHEARSED = 50
"""Tasks that are rehearsed; of more, these stand for the others."""
_STOPS: Mapping[str, Any] = {"stop_rule": "none", "early_stop": None}
"""Settings without which an evaluator asks for all that it may ask for."""
_GROUPS = ("members", "reserves", "judges")
_FILLER = "Some words of a reply, none of which is meant. " * 200
_SEPARATORS = (" > ", ">", ", ", " ")
_UNBOUNDED_TOKENS = 250
"""Of a reply that neither a schema nor the sampling bounds."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will ask for, tokens at about four characters each.

    Attributes:
        least: where everybody agrees at once and says next to nothing.
        most: where nobody ever agrees, and everybody says as much as may be said.
        rehearsed: number of tasks that this is known of; of the others it is assumed.
    """

    least: Usage
    most: Usage
    rehearsed: int

    def cost(self, prices: Collection[Price]) -> tuple[float, float]:
        """What it costs at least and at most, where models of these prices are asked, whichever of them how often."""
        return min(price.cost(self.least) for price in prices), max(price.cost(self.most) for price in prices)


def estimate(evaluator: Evaluator, tasks: Iterable[Task], run: RunContext | None = None) -> Estimate | None:
    """What evaluating some tasks asks for; None where no task can be rehearsed.

    Of many tasks, some that lie evenly among them are rehearsed.

    Args:
        evaluator: any; one of the user's that raises in a rehearsal is not counted.
        tasks: in their order; read once.
        run: whose seed and date the prompts have.
    """
    sample, n_tasks = evenly(tasks, MOST_REHEARSED)
    run, whole = run or RunContext(), _without_stops(evaluator)
    pairs = [(_rehearsed(evaluator, task, run, fullest=False), _rehearsed(whole, task, run, fullest=True))
             for task in sample]  # fmt: skip
    known = [(least, most) for least, most in pairs if least is not None and most is not None]
    if not known:
        return None
    share = n_tasks / len(known)
    least, most = (_times(sum(each, Usage()), share) for each in zip(*known, strict=True))
    return Estimate(least, most, len(known))


def evenly(tasks: Iterable[Task], most: int) -> tuple[list[Task], int]:
    """At most so many of the tasks, at even distances, and how many tasks there are; the tasks are read once."""
    kept: list[Task] = []
    step, count = 1, 0
    for task in tasks:
        if count % step == 0:
            kept.append(task)
        count += 1
        if len(kept) == 2 * most:
            kept, step = kept[::2], 2 * step
    return [kept[n * len(kept) // most] for n in range(most)] if len(kept) > most else kept, count


def _times(usage: Usage, share: float) -> Usage:
    counted = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.calls)
    return Usage(*(round(each * share) for each in counted))


def _without_stops(evaluator: Evaluator) -> Evaluator:
    """The evaluator, and those in it, without what ends an evaluation early."""
    if not is_dataclass(evaluator) or isinstance(evaluator, type):
        return evaluator
    names = {each.name for each in fields(evaluator) if each.init}
    changes: dict[str, Any] = {name: value for name, value in _STOPS.items() if name in names}
    for group in names & {*_GROUPS}:
        inner: Mapping[str, Evaluator] = getattr(evaluator, group)
        changes[group] = {name: _without_stops(each) for name, each in inner.items()}
    return cast("Evaluator", replace(evaluator, **changes))


def _rehearsed(evaluator: Evaluator, task: Task, run: RunContext, *, fullest: bool) -> Usage | None:
    """What one task asks for; None where the evaluator raises."""
    understudy = _Understudy(fullest)
    try:
        understudy.drive(checked_flow(evaluator, task, run))
    except BaseException as error:  # an evaluator of the user's may do anything with what it is told
        if ends_more(error):
            raise
        return None
    return understudy.used


class _Understudy:
    """Answers what flows ask for, and counts it. `fullest`: with long replies that differ; else short and alike."""

    def __init__(self, fullest: bool) -> None:
        self.used = Usage()
        self._fullest = fullest
        self._draw = random.Random(0)

    def drive(self, flow: Flow[Any]) -> Any:
        """Drive a flow, and those that it waits for, to its end."""
        answer: Any = None
        while True:
            try:
                request = flow.send(answer)
            except StopIteration as end:
                return end.value
            match request:
                case Generate():
                    answer = self._reply(request)
                case Recall():
                    answer = ()
                case CallFunction():
                    answer = Failure("rehearsal", "no function is called in a rehearsal")
                case Gather(flows):
                    answer = tuple([self.drive(each) for each in flows])

    def _reply(self, request: Generate) -> Completion | Failure:
        if request.attempt:  # what stands in for a reply could not be read, and the model's own is not asked for twice
            return Failure("rehearsal", "nothing is asked for again in a rehearsal")
        text = self._text(request)
        usage = estimated_usage(request, text)
        if self._fullest and request.schema is None and not request.read_out:
            usage = replace(usage, completion_tokens=request.sampling.max_tokens or _UNBOUNDED_TOKENS)
        self.used += usage
        return Completion(text, usage=usage, distributions=self._distributions(request, text))

    def _text(self, request: Generate) -> str:
        if request.read_out is not None and request.read_out.continuations:
            return ""
        if request.schema is None:
            return "5"
        return json.dumps(self._value(request.schema, [*request.info.get("labels", ())]))

    def _distributions(self, request: Generate, text: str) -> tuple[LabelDistribution, ...]:
        if request.read_out is None:
            return ()
        labels, places = request.read_out.labels, request.read_out.continuations or value_spans(text)
        if "moment" in request.info:
            return self._silent(request, len(places))
        return tuple(distribution_of({self._one_of(labels): 0.95}) for _ in places)

    def _silent(self, request: Generate, n_places: int) -> tuple[LabelDistribution, ...]:
        """A silent round that settles a task where little is asked for, and leaves it open where all is."""
        shown = [*request.info["labels"].values()]
        scores = [] if self._fullest else ["9" if j == 0 else "1" for j in shown]
        each = n_places // len(shown)
        return tuple(distribution_of({label: 1.0}) for label in scores or ["5"] * len(shown) for _ in range(each))

    def _one_of(self, values: Sequence[Any]) -> Any:
        return self._draw.choice(values) if self._fullest else values[-1]

    def _value(self, schema: Mapping[str, Any], labels: Sequence[str]) -> Any:
        """A value that a schema allows."""
        if "enum" in schema:
            return self._one_of(schema["enum"])
        kind: Any = schema.get("type")
        match cast("list[Any]", kind)[0] if isinstance(kind, list) else kind:
            case "object":
                return {name: self._value(part, labels) for name, part in schema["properties"].items()}
            case "array":
                fewest = schema.get("minItems", 0)
                n = schema.get("maxItems", fewest + 1) if self._fullest else fewest
                return [self._value(schema["items"], labels) for _ in range(n)]
            case "boolean":
                return self._one_of([False, True])
            case "integer" | "number":
                return self._one_of(range(int(schema.get("minimum", 0)), int(schema.get("maximum", 10)) + 1))
            case _:
                return self._string(schema, labels)

    def _string(self, schema: Mapping[str, Any], labels: Sequence[str]) -> str:
        pattern, bounds = schema.get("pattern", ""), (schema.get("minLength", 0), schema.get("maxLength", len(_FILLER)))
        longest = _longest(pattern, *bounds)
        if longest is not None:
            return _FILLER[: longest if self._fullest else max(bounds[0], min(longest, 1))]
        shown = self._draw.sample(labels, len(labels)) if self._fullest else labels
        joined = (separator.join(shown) for separator in _SEPARATORS)
        return next((text for text in joined if re.search(pattern, text)), "")


@lru_cache(maxsize=128)
def _longest(pattern: str, shortest: int, longest: int) -> int | None:
    """How many characters of the filler a pattern that bounds a text's length allows at most; None where it is none."""
    fits, too_long = shortest, min(longest, len(_FILLER)) + 1
    if not re.search(pattern, _FILLER[:fits]):
        return None
    while fits + 1 < too_long:
        middle = (fits + too_long) // 2
        fits, too_long = (middle, too_long) if re.search(pattern, _FILLER[:middle]) else (fits, middle)
    return fits
