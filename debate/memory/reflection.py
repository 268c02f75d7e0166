"""Memories made from runs: `remember` writes down what agents concluded, `reflection` distills insights from memories.

Both are asked for after a run, never during one. Reflection follows Generative Agents (arXiv 2304.03442, section 4.2):
a model reads an agent's recent memories and states what follows, with links to its evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from debate.errors import ReplyError
from debate.evaluation import Evaluation
from debate.flow import Completion, Flow, Generate, Parsed, Prompt, generate_parsed
from debate.memory.store import MemoryStore
from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import Number
from debate.parsing.schema import bounded_text, number_in, object_of
from debate.templates import Templates, Trusted, delimiter_of
from debate.types import Memory, Sampling, Task, Transcript, Turn

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


def remember(store: MemoryStore, results: Iterable[tuple[Task, Evaluation]], profile: str, run: str) -> int:
    """Write down what each agent concluded in its last turn on each task, as episodic memories; returns how many.

    An agent's memories go to its own collection, `profile/agent`; their source is the task, which never recalls
    them itself. What is there already is not written again.
    """
    count = 0
    for task, evaluation in results:
        for turn in _last_turns(evaluation):
            said = _conclusion(task, turn)
            store.add(f"{profile}/{turn.agent}", said, source=task.id, kind="episodic", metadata={"run": run})
            count += 1
    return count


def _last_turns(evaluation: Evaluation) -> Iterable[Turn]:
    """Each agent's last turn that did not fail; of the first member where the evaluation has turns in members alone."""
    transcript: Transcript = evaluation.transcript
    if not transcript.turns and evaluation.members:
        transcript = evaluation.members[0].transcript
    return {turn.agent: turn for turn in transcript if turn.failure is None}.values()


def _conclusion(task: Task, turn: Turn) -> str:
    scores = turn.scores.mean(axis=1)  # (J,)
    best, worst = int(scores.argmax()), int(scores.argmin())
    said = [f'Asked "{_short(task.x)}", I found "{_short(task.candidates[best].text)}" best: {turn.comments[best]}']
    if scores[worst] < scores[best]:
        said.append(f'Worst was "{_short(task.candidates[worst].text)}": {turn.comments[worst]}')
    return " ".join(said)


def _short(text: str) -> str:
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
    """Add insights to a collection as reflections, with the ids of their evidence; returns their own ids."""
    ids: list[str] = []
    for each in insights:
        given: dict[str, Any] = {"importance": each.importance, "metadata": {"evidence": list(each.evidence)}}
        ids += store.add(collection, each.text, source="reflection", kind="reflection", **given)
    return ids
