"""Memories made from runs: `remember` writes down what agents concluded, `reflection` distills insights from memories.

Both are asked for after a run, never during one. Reflection follows Generative Agents (arXiv 2304.03442, section 4.2):
a model reads an agent's recent memories and states what follows, with links to its evidence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from debate.errors import ReplyError
from debate.evaluation import Evaluation
from debate.flow import Completion, Flow, Generate, Parsed, Prompt, generate_parsed
from debate.memory.records import CAME_OF, EVIDENCE, origins_of
from debate.memory.store import MemoryStore
from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import Number
from debate.parsing.schema import bounded_text, number_in, object_of
from debate.selection import keep_best, tied_best
from debate.templates import Templates, Trusted, delimiter_of
from debate.types import Memory, Sampling, Task, Turn

_SHOWN = 240
"""Characters of an input or a candidate in an episodic memory."""
_LONGEST = 400
"""Characters of an insight."""
_TEMPLATES = ("memory/reflect.j2", "memory/retry.j2")


@dataclass(frozen=True, slots=True)
class Insight:
    """What a model made of some memories."""

    text: str
    evidence: tuple[str, ...]
    """Ids of the memories it rests on."""
    importance: float
    """In 0..10."""


def remember(
    store: MemoryStore, results: Iterable[tuple[Task, Evaluation]], evaluator: Mapping[str, Any], run: str
) -> int:
    """Write down what each agent concluded in its last turn on each task, as episodic memories; returns how many.

    An agent's memories go where it recalls from: its own collection, `PROFILE/AGENT`, or the first of those that its
    memory settings name instead. The task they came of never recalls them itself. What is there already is not written
    again.

    Args:
        store: where they are kept.
        results: the run's tasks with their evaluations.
        evaluator: what the run's evaluator says in `describe()`; turns of agents it does not describe are left out.
        run: the run's name.
    """
    count = 0
    for task, evaluation in results:
        came_of = {"run": run, CAME_OF: origins_of(task)[:2]}
        for debate, collections in debates_of(evaluation, evaluator):
            for turn in {turn.agent: turn for turn in debate.transcript if turn.failure is None}.values():
                said = _conclusion(task, turn)
                store.add(collections[turn.agent], said, source=task.id, kind="episodic", metadata=came_of)
                count += 1
    return count


def debates_of(evaluation: Evaluation, described: Mapping[str, Any]) -> Iterator[tuple[Evaluation, dict[str, str]]]:
    """The debates that an evaluation is made of, each with the collections of its agents by their names.

    A debate in two orders is one, told by the first. A panel's members are described by name; any other debate is known
    by its agents.
    """
    if evaluation.transcript.turns:
        agents = {turn.agent for turn in evaluation.transcript}
        fitting = (each for each in _profiles(described) if each.keys() >= agents)
        yield from ((evaluation, each) for each in itertools.islice(fitting, 1))
        return
    seats = {n: name for name, n in evaluation.details.get("members", {}).items()}
    is_one_debate = "personas" in described
    for n, member in enumerate(evaluation.members[:1] if is_one_debate else evaluation.members):
        its_own = described.get("members", {}).get(seats.get(n))
        yield from (found := list(debates_of(member, its_own or described)))
        if its_own and not found:  # its reserve has taken its seat
            yield from debates_of(member, described)


def _profiles(described: object) -> Iterator[dict[str, str]]:
    """The agents of every debate in an evaluator's description, and the collection of each."""
    if isinstance(described, Mapping):
        data = cast("Mapping[str, Any]", described)
        if "personas" in data:
            yield {each["name"]: _collection(data["profile"], each) for each in data["personas"]}
        for each in data.values():
            yield from _profiles(each)


def _collection(profile: str, persona: Mapping[str, Any]) -> str:
    """Where an agent recalls from, and so where its memories go."""
    own = f"{profile}/{persona['name']}"
    settings: Mapping[str, Any] = persona["memory"] or {}
    named: Sequence[str] = settings.get("collections") or (own,)
    return own if own in named else named[0]


def _conclusion(task: Task, turn: Turn) -> str:
    scores = turn.scores.mean(axis=1)  # (J,); NaN for candidates that were not shown to the agent
    (best,), (worst,) = keep_best(scores, 1), keep_best(scores, 1, higher_is_better=False)
    said = [
        f'Asked "{shortened(task.x)}", I found "{shortened(task.candidates[best].text)}" best: {turn.comments[best]}'
    ]
    if worst not in (best, *tied_best(scores)):
        said.append(f'Worst was "{shortened(task.candidates[worst].text)}": {turn.comments[worst]}')
    return " ".join(said)


def shortened(text: str) -> str:
    """A text on one line, cut off where it is longer than an episodic memory shows."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 3] + "..."


def reflection(
    collection: str, memories: Sequence[Memory], *, n: int = 3, retries: int = 2, templates: Templates | None = None
) -> Flow[Parsed[list[Insight]]]:
    """Ask a model for at most `n` insights from an agent's memories; an unreadable reply is asked again."""
    shown = [{"text": memory.text} for memory in memories]
    delimiter = Trusted(delimiter_of(collection, *(memory.text for memory in memories)))
    context: dict[str, Any] = {"owner": collection, "memories": shown, "n": n, "delimiter": delimiter}
    render = partial((templates or Templates()).render, among=_TEMPLATES)
    ask, retry = _TEMPLATES
    block = render(ask, context)

    def call(attempt: int, error: ReplyError | None) -> Generate:
        problem = () if error is None else (render(retry, {"error": error.message}),)
        return Generate(
            prompt=Prompt(system=(), user=(block, *problem)),
            sampling=Sampling(temperature=0.3, max_tokens=200 + 300 * n),
            schema=insights_schema(n, len(memories)),
            sample_key=(collection,),
            attempt=attempt,
        )

    def read(said: Completion) -> list[Insight]:
        return _insights(extract_json(said.text, finish_reason=said.finish_reason), memories)

    return (yield from generate_parsed(call, read, retries))


def insights_schema(n: int, n_memories: int) -> dict[str, Any]:
    """The JSON schema of at most `n` insights, each with the numbers of 1 to 8 memories."""
    number = {"type": "integer", "minimum": 1, "maximum": n_memories}
    insight = {
        "text": bounded_text(_LONGEST),
        "evidence": {"type": "array", "items": number, "minItems": 1, "maxItems": 8},
        "importance": number_in(0, 10),
    }
    return object_of({"insights": {"type": "array", "items": object_of(insight), "maxItems": n}})


def _insights(value: object, memories: Sequence[Memory]) -> list[Insight]:
    found = cast("Mapping[str, Any]", value).get("insights") if isinstance(value, Mapping) else None
    if not isinstance(found, list):
        raise ReplyError("shape", 'the reply must be an object with a list "insights"')
    return [_insight(each, memories) for each in cast("list[Any]", found)]


def _insight(value: Any, memories: Sequence[Memory]) -> Insight:
    if not isinstance(value, Mapping):
        raise ReplyError("shape", "every insight must be an object")
    fields = cast("Mapping[str, Any]", value)
    text, evidence, importance = (fields.get(name) for name in ("text", "evidence", "importance"))
    if not isinstance(text, str) or not text.strip():
        raise ReplyError("shape", "every insight needs a text")
    if not isinstance(evidence, list) or not evidence:
        raise ReplyError("shape", "every insight needs the numbers of the memories it rests on")
    numbers = [_number(number) for number in cast("list[Any]", evidence)]
    if not all(n.is_integer() and 1 <= n <= len(memories) for n in numbers):
        raise ReplyError("range", f"evidence must be numbers from 1 to {len(memories)}")
    if not 0 <= _number(importance) <= 10:
        raise ReplyError("range", "importance must lie in 0 to 10")
    ids = dict.fromkeys(memories[int(n) - 1].id for n in numbers)
    return Insight(text.strip(), tuple(ids), _number(importance))


def _number(value: Any) -> float:
    """NaN for what is no number."""
    return value.value if isinstance(value, Number) else math.nan


def write_insights(store: MemoryStore, collection: str, insights: Sequence[Insight]) -> list[str]:
    """Add insights to a collection as reflections, with their evidence and the tasks it came of; returns their ids."""
    ids: list[str] = []
    for each in insights:
        rests_on = {EVIDENCE: list(each.evidence), CAME_OF: store.origins(each.evidence)}
        given: dict[str, Any] = {"importance": each.importance, "metadata": rests_on}
        ids += store.add(collection, each.text, source="reflection", kind="reflection", **given)
    return ids
