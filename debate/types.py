"""The values of the domain: what is evaluated, and what was said.

They check themselves when made and never change. `debate.evaluation` turns them into plain data and back, with pydantic
schemas made from their annotations; nothing here imports pydantic for that.

Axes, here and everywhere: r rounds R, i agents I, j candidates J, k components K.
"""

from __future__ import annotations

import hashlib
import json
import math
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from debate.errors import ConfigError, TaskError
from debate.settings import REQUIRED, check_settings, documented, names_what_was_meant, setting
from debate.tasks.components import Component, criteria_text, task_components
from debate.tasks.conversations import Message, checked_messages, is_conversation, transcript


class _Lists:
    """Schema of a float array: nested lists, with null for NaN."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            lambda data: np.array(data, dtype=np.float64),  # None becomes NaN
            serialization=core_schema.plain_serializer_function_ser_schema(lambda array: array.tolist()),
        )

    @staticmethod
    def __get_pydantic_json_schema__(schema: Any, handler: Any) -> dict[str, Any]:
        """Lists of any depth, down to numbers."""
        return {"type": "array", "items": {"type": ["number", "null", "array"]}}


@dataclass(frozen=True)
class _Null:
    """Schema of a number for which null stands in place of NaN or infinity."""

    value: float

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            lambda data: self.value if data is None else data,
            handler.generate_schema(int | float),  # a whole number stays one
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda number: number if math.isfinite(number) else None
            ),
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": ["number", "null"]}


class Displayed:
    """A value that a notebook shows as HTML. What makes it is above this module, and imported when it is asked for."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The value as HTML, without a script."""
        return import_module("debate.notebook.cards").html_of(self)


class OmitsEmpty:
    """A dataclass whose plain data leave out some fields where they are empty."""

    omitted: ClassVar[tuple[str, ...]]
    """Their names."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """The schema of the dataclass, with those fields left out."""
        schema = handler(source)
        for each in handler.resolve_ref_schema(schema)["schema"]["fields"]:
            if each["name"] in cls.omitted:
                each["serialization_exclude_if"] = _is_empty
        return schema


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, tuple | str | int) and not value)


FloatArray = Annotated[NDArray[np.float64], _Lists]
FloatOrNaN = Annotated[float, _Null(math.nan)]
FORBID_UNKNOWN = {"extra": "forbid"}
"""Configuration for pydantic: a key that is not a field is an error."""
Status = Literal["ok", "partial", "failed"]
ScoreStatus = Literal["ok", "failed", "skipped", "penalty", "duplicate"]
"""How a candidate came by its score: `failed` and `skipped` have none, `penalty` and `duplicate` were given theirs."""
Verdict = Literal["right", "wrong", "tied", "unscored"]
"""How an evaluation's choice stands to the label of its task."""
StopReason = Literal[
    "settled", "silent", "converged", "stop_rule", "abstained", "max_rounds", "token_budget", "time_budget", "failed"
]
"""Why a debate ended: `settled` before anybody had spoken (see `debate.evaluators.debate.settling`), `silent` because
only a silent round was asked for, `converged` by its CV, `stop_rule` by another rule (see `debate.stop_rules`)."""
UNSPOKEN: tuple[Literal["settled"], Literal["silent"]] = ("settled", "silent")
"""Of these, the ends of a debate in which nobody spoke: its scores are those of its silent round."""


def check_choice(name: str, value: str, choices: Any) -> None:
    """Refuse a value that is not among the `choices`, a `Literal`, with a ValueError that calls it `name`."""
    if value not in get_args(choices):
        raise ValueError(f"unknown {name} {value!r}, expected one of {', '.join(get_args(choices))}")


def score_array(scores: Any, shape: str = "(J,)", name: str = "scores") -> FloatArray:
    """Scores in an array of this shape, in C order; None becomes NaN.

    Raises ValueError for another number of axes, and infinite scores.
    """
    array = np.asarray(scores, dtype=np.float64, order="C")
    if array.ndim != len(shape.split(", ")):
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if np.isinf(array).any():
        raise ValueError("scores must be finite, or NaN for unscored")
    return array


@dataclass(frozen=True, slots=True)
class Scale:
    """The range a score lives in, and its direction. Scales are mixed through `to_unit` alone."""

    __pydantic_config__ = FORBID_UNKNOWN

    low: Annotated[float, _Null(-math.inf)] = 0.0
    high: Annotated[float, _Null(math.inf)] = 10.0
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            number: object = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, Real):
                raise ConfigError(f"must be a number, got {number!r}", field=f"scale.{name}")
            if isinstance(number, np.generic):
                object.__setattr__(self, name, number.item())
        if not self.low < self.high or math.isinf(self.low):
            raise ConfigError(f"a scale needs low < high, got {self.low} and {self.high}", field="scale")

    def hold(self, scores: FloatArray) -> FloatArray:
        """The scores (J,), with those that rounding has moved off the scale at its end; NaN stays NaN."""
        if not ((scores < self.low) | (scores > self.high)).any():
            return scores
        ends = np.clip(scores, self.low, self.high)  # (J,)
        return np.where(np.isclose(scores, ends, rtol=1e-9, atol=1e-12), ends, scores)

    def to_unit(self, score: float) -> float:
        """Map a score to 0..1, where 1 is best. Without an upper end, it comes closer to an end and never there."""
        if math.isinf(self.high):
            distance = 1.0 / (1.0 + score - self.low)
            return 1.0 - distance if self.higher_is_better else distance
        unit = (score - self.low) / (self.high - self.low)
        return unit if self.higher_is_better else 1.0 - unit


@dataclass(frozen=True, slots=True)
class Candidate:
    """One response to be judged: a text, or `messages` in the form of OpenAI's chat API, of which `text` is made.

    >>> Candidate(messages=[{"role": "assistant", "content": "It is 4."}])
    """

    text: str = cast("str", None)
    id: str | None = None
    generator: str | None = None
    """Name of the model or person that wrote it, where known."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    messages: Sequence[Message] = field(default=(), hash=False)
    """What `text` is the transcript of; empty for a plain text. Where both are given, judges see the text."""

    def __post_init__(self) -> None:
        if self.messages:
            object.__setattr__(self, "messages", checked_messages(self.messages, "messages"))
            if self.text is None:  # pyright: ignore[reportUnnecessaryComparison] - the default
                object.__setattr__(self, "text", transcript(self.messages, "assistant"))
        _check_text(self.text, "text")
        for name in ("id", "generator"):
            if (value := getattr(self, name)) is not None:
                _check_text(value, name)
        object.__setattr__(self, "metadata", _own_copy(self.metadata))


@dataclass(frozen=True, init=False)
class Task(Displayed):
    """An input `x` and the candidate responses to it.

    Strings are accepted as candidates. Without an `id`, the task is named by a hash of its content, which is the
    same in every process. `context` holds further texts about the input, such as earlier steps; `reference` is an
    answer that is known to be right, which every judge with a prompt of ours sees. Lists and mappings in `metadata` are
    copied; a store can keep them if they are plain JSON data.

    An input that is a conversation, and a candidate of several messages or with calls of tools, is a list of messages
    in the form of OpenAI's chat API. Judges see its transcript, which `x` and `Candidate.text` hold, and `messages`
    keeps what it was made of; see `debate.tasks.conversations`. Give `messages` beside an `x` that is their transcript.

    `best` is the label: the right candidate by index, by its letter ("A" is the first), by its id or its generator, or
    a list of those that are equally right. It is kept as an index, or a sorted list of them, in `metadata["best"]`,
    where it can be given too. No agent sees it.

    `components` are what the candidates of this task are scored on besides the components of a debate's profile:
    `Component`s, or mappings of `name`, `description` and perhaps `weight`; see the setting `task_components`.

    >>> Task("What is 2 + 2?", ["4", "5"], reference="4", best=0)
    >>> Task([{"role": "user", "content": "What is 2 + 2?"}], ["4", "5"])

    Raises:
        TaskError: for what is no task, and for a label that does not name candidates plainly.
    """

    x: str
    candidates: tuple[Candidate, ...]
    id: str
    context: tuple[str, ...]
    metadata: Mapping[str, Any] = field(hash=False)
    reference: str | None
    components: tuple[Component, ...]
    messages: tuple[Message, ...] = field(hash=False)
    has_given_id: bool

    @names_what_was_meant
    def __init__(
        self,
        x: str | Sequence[Message],
        candidates: Iterable[str | Candidate | Sequence[Message]],
        id: str | None = None,  # noqa: A002 - pinned name
        context: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        reference: str | None = None,
        *,
        best: Any = None,
        components: Iterable[Component | Mapping[str, Any]] = (),
        messages: Sequence[Message] = (),
    ) -> None:
        checked = tuple(_as_candidate(each, n) for n, each in enumerate(_in_order(candidates, "candidates")))
        if not checked:
            raise TaskError("is empty: a task needs at least one candidate", field="candidates")
        if id is not None and (not isinstance(id, str) or not id.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TaskError("must be a non-empty string", field="id")
        _check_text(id or "", "id")
        said = checked_messages(messages, "messages") if messages else ()
        if is_conversation(x):
            said = checked_messages(x, "x")
            x = transcript(said, "user")
        x = _check_text(x, "x")
        texts = tuple(_check_text(text, f"context.{n}") for n, text in enumerate(_in_order(context, "context")))
        reference = None if reference is None else _check_text(reference, "reference") or None
        own = task_components(components)
        for n, each in enumerate(own):
            _check_text(each.name, f"components.{n}.name")
            _check_text(each.description, f"components.{n}.description")
        set_ = object.__setattr__
        set_(self, "x", x)
        set_(self, "candidates", checked)
        set_(self, "context", texts)
        set_(self, "metadata", _with_label(_own_copy(metadata), best, checked))
        set_(self, "reference", reference)
        set_(self, "components", own)
        set_(self, "messages", said)
        set_(self, "has_given_id", id is not None)
        set_(self, "id", str(id) if id is not None else _content_id(x, checked, texts, reference, own))

    def __repr__(self) -> str:
        """Its id, and the beginnings of its texts."""
        texts = [shortened(each.text) for each in self.candidates[:4]]
        more = ", ..." if len(self.candidates) > 4 else ""
        label = f", best={[*self.best]}" if self.best else ""
        about = f"id={shortened(self.id)}, x={shortened(self.x)}, candidates=[{', '.join(texts)}{more}]"
        return f"Task({about}{label})"

    def renamed(self, id: str) -> Task:  # noqa: A002 - pinned name
        """The same task under an id that is given."""
        return self.with_candidates(self.candidates, id=id)

    def with_candidates(
        self,
        candidates: Iterable[str | Candidate | Sequence[Message]],
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002 - pinned name
    ) -> Task:
        """The same task with other candidates, under its id or a given one; `metadata` None is the task's own."""
        about = (id or self.id, self.context, self.metadata if metadata is None else metadata, self.reference)
        return Task(self.x, candidates, *about, components=self.components, messages=self.messages)

    @property
    def best(self) -> tuple[int, ...]:
        """Indices of the right candidates; empty without a label."""
        return labeled_best(self.metadata)

    @property
    def background(self) -> tuple[str, ...]:
        """What judges are told about the input: the context, and after it the reference answer."""
        return self.context if self.reference is None else (*self.context, f"Reference answer:\n{self.reference}")

    @property
    def criteria(self) -> tuple[str, ...]:
        """The task's own components as a text, for judges that give one value for all of them; none without any."""
        return (criteria_text(self.components),) if self.components else ()


def shortened(text: str, longest: int = 60) -> str:
    """A text as Python writes it, in which nothing is invisible; of a long one the beginning."""
    return repr(text if len(text) <= longest else f"{text[: longest - 3]}...")


def labeled_best(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    """Indices of the right candidates, from the metadata of a task; empty without a label."""
    label: int | list[int] | None = metadata.get("best")
    return () if label is None else (label,) if isinstance(label, int) else tuple(label)


def _with_label(metadata: Mapping[str, Any], best: Any, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """The metadata with a label that is an index or a sorted list of them; `best` was given beside it."""
    inside = metadata.get("best")
    if best is None and inside is None:
        return dict(metadata)
    names = [(each.id, each.generator) for each in candidates]
    given = {name: named_candidates(value, names, name) for name, value in (("metadata.best", inside), ("best", best))}
    found = [label for label in given.values() if label]
    if found[0] != found[-1]:
        raise TaskError(f"contradicts metadata.best, which is {inside!r}", field="best", hint="give one of the two")
    return {**metadata, "best": found[0] if len(found[0]) > 1 else found[0][0]}


Names = Sequence[tuple[str | None, str | None]]
"""The id and the generator of each candidate."""


def named_candidates(label: Any, names: Names, where: str) -> list[int]:
    """The indices of the candidates that a label names, as `Task.best` may; none without a label.

    Raises:
        TaskError: for what does not name candidates plainly; `where` is its field.
    """
    if not isinstance(label, list | tuple):
        return [] if label is None else [_index(label, names, where)]
    several = cast("Sequence[Any]", label)
    if not several:
        raise TaskError("is an empty list", field=where, hint="leave it out where no right candidate is known")
    return sorted({_index(each, names, f"{where}.{n}") for n, each in enumerate(several)})


def _index(label: Any, names: Names, where: str) -> int:
    """The candidate that one label names."""
    count = len(names)
    if isinstance(label, str):
        named = {j for j, each in enumerate(names) if label in (*each, _LETTERS.get(j))}
        if len(named) == 1:
            return named.pop()
        problem = f"{label!r} names {'several candidates' if named else 'no candidate'}"
    elif isinstance(label, int | float | np.integer) and not isinstance(label, bool) and label in range(count):
        return int(cast("float", label))
    else:
        problem = f"must be the index of one of {count} candidates, got {label!r}"
    raise TaskError(problem, field=where, hint=_LABEL_HINT)


_LETTERS = dict(enumerate(string.ascii_uppercase))
_LABEL_HINT = "it is an index from 0, a letter from A, the id or generator of one candidate, or a list of these"


SHARED_IDS = "--prefix-ids true puts the name of its file before each id"
"""What to do where several eval sets of a run share ids."""


class UniqueIds:
    """Gives every task of a batch or an eval set an id of its own.

    Args:
        is_taken: whether an earlier task has this id.
    """

    def __init__(self, is_taken: Callable[[str], bool]) -> None:
        self._is_taken = is_taken
        self._numbers: Counter[str] = Counter()

    def of(self, task: Task) -> str:
        """The task's id; of equal tasks without a given id, later ones get `-2`, `-3`, ...

        Raises:
            TaskError: when its id was given and is taken.
        """
        if not self._is_taken(task.id):
            return task.id
        if task.has_given_id:
            hint = "leave out the ids, and tasks are known by their content"
            raise TaskError(f"duplicate id {task.id!r}", field="id", hint=hint)
        number = self._numbers[task.id] or 2
        while self._is_taken(name := f"{task.id}-{number}"):
            number += 1
        self._numbers[task.id] = number + 1
        return name


def _in_order(given: Any, name: str) -> Any:
    """What was given for a list of texts: a list, a generator, an array, but nothing without an order of its own."""
    if isinstance(given, str | bytes):
        raise TaskError("must be a list of texts, not one string", field=name, hint="put it in [ ]")
    if isinstance(given, set | frozenset | Mapping) or not isinstance(given, Iterable):
        kind = type(cast("object", given)).__name__
        raise TaskError(f"must be a list of texts in an order, got {kind}", field=name)
    return cast("Any", given)


def _own_copy(metadata: object) -> dict[str, Any]:
    """A copy whose lists and mappings are its own at every depth; what else it holds is shared."""
    try:
        copied = _copied({} if metadata is None else metadata)
    except RecursionError:
        raise TaskError("holds itself, or is nested too deeply", field="metadata") from None
    if not isinstance(copied, dict):
        raise TaskError(f"must be a mapping, got {type(metadata).__name__}", field="metadata")
    return cast("dict[str, Any]", copied)


def _copied(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _copied(value) for key, value in cast("Mapping[Any, Any]", data).items()}
    return [_copied(each) for each in cast("list[Any]", data)] if isinstance(data, list) else data


def _as_candidate(candidate: object, n: int) -> Candidate:
    if isinstance(candidate, Candidate):
        return candidate
    if is_conversation(candidate):
        said = checked_messages(candidate, f"candidates.{n}")
        return Candidate(transcript(said, "assistant"), messages=said)
    return Candidate(_check_text(candidate, f"candidates.{n}"))


def _check_text(text: object, where: str) -> str:
    if not isinstance(text, str):
        raise TaskError(f"must be a string, got {type(text).__name__}", field=where)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        problem = f"is not valid Unicode: lone surrogate at character {error.start}"
        hint = "the text was cut inside a character; repair or drop that character"
        raise TaskError(problem, field=where, hint=hint) from None
    return str(text)  # of numpy's strings, which are strings too


def _content_id(
    x: str,
    candidates: tuple[Candidate, ...],
    context: tuple[str, ...],
    reference: str | None,
    components: tuple[Component, ...],
) -> str:
    content: list[Any] = [x, [[c.text, c.id, c.generator] for c in candidates], list(context)]
    content += [] if reference is None else [reference]
    content += [{"components": [[c.name, c.description, c.weight] for c in components]}] if components else []
    canonical = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode("utf-8"), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Usage(OmitsEmpty):
    """What was asked of the model, in tokens and calls. Adds with `+`."""

    __pydantic_config__ = FORBID_UNKNOWN
    omitted = ("thinking_tokens",)

    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that were read from the prefix cache."""
    completion_tokens: int = 0
    calls: int = 0
    thinking_tokens: int = 0
    """Completion tokens in which the model thought before its reply, where that is known."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
            self.thinking_tokens + other.thinking_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


@documented
@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost, per million, in any currency."""

    input: float = setting(REQUIRED, "Of a million tokens of prompts.", ge=0)
    output: float = setting(REQUIRED, "Of a million tokens of replies.", ge=0)
    cached: float | None = setting(
        None, "Of a million tokens of prompts that the server had in its cache; None is the price of the others.", ge=0
    )

    def __post_init__(self) -> None:
        check_settings(self, "price.")

    @classmethod
    def read(cls, text: str) -> Price:
        """The price that `IN,OUT` or `IN,CACHED,OUT` says.

        Raises:
            ConfigError: for anything else.
        """
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3):
            problem = f"must be IN,OUT or IN,CACHED,OUT, numbers per million tokens, got {text!r}"
            raise ConfigError(problem, field="price", hint="0.15,0.60 or 0.15,0.075,0.60")
        return cls(numbers[0], numbers[-1], numbers[1] if len(numbers) == 3 else None)

    def cost(self, usage: Usage) -> float:
        """What a usage costs; `cached_tokens` are some of its `prompt_tokens`."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        of_cached = self.input if self.cached is None else self.cached
        parts = (usage.prompt_tokens - cached) * self.input, cached * of_cached, usage.completion_tokens * self.output
        return sum(parts) / 1e6

    def __str__(self) -> str:
        """As `read` takes it."""
        parts = (self.input, self.output) if self.cached is None else (self.input, self.cached, self.output)
        return ",".join(f"{part:.12g}" for part in parts)


def cost_of(used: Mapping[str, Usage], prices: Mapping[str, Price]) -> float:
    """What was used of several models costs together; models without a price count nothing."""
    return sum(prices[name].cost(usage) for name, usage in used.items() if name in prices)


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong inside an evaluation, kept as a value. `reason` is a short code."""

    __pydantic_config__ = FORBID_UNKNOWN

    reason: str
    message: str
    round: int | None = None
    agent: str | None = None
    call: str | None = None
    """Address of the call that failed, as the run's record has it; None when no single call did."""


@dataclass(frozen=True, slots=True)
class InvalidReply(OmitsEmpty):
    """A reply that could not be read, kept whole, with why."""

    __pydantic_config__ = FORBID_UNKNOWN
    omitted = ("thinking",)

    text: str
    reason: str
    message: str
    thinking: str = ""
    """What the model thought before it."""


@dataclass(frozen=True, slots=True)
class LabelDistribution:
    """How likely a model held each label at one place of its reply."""

    __pydantic_config__ = FORBID_UNKNOWN

    probabilities: Mapping[str, float] = field(hash=False)
    """By label; they sum to 1, and labels of less than 1e-7 are left out."""
    mass: float = 1.0
    """Probability that the model gave to all labels together, before they were made to sum to 1; from 0 to 1."""


Distributions = tuple[tuple[LabelDistribution, ...], ...]
"""Of cells, (J, K)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment(OmitsEmpty):
    """One reply of a judge outside a debate: on one candidate or one of its steps, or a ballot on several."""

    __pydantic_config__ = FORBID_UNKNOWN
    omitted = ("distribution", "thinking")

    candidates: tuple[int, ...]
    """Indices of those it is about, in the order shown."""
    labels: tuple[str, ...] = ()
    """What they were called in the prompt, where they had labels."""
    sample: int = 0
    """Which of several of the same kind, from 0."""
    step: int | None = None
    """Which step of the candidate, from 0; None where it is about the whole."""
    value: float | None = None
    """What it was found to be worth, on the judge's own scale; None for a ballot, and where there is none."""
    ranking: tuple[int, ...] = ()
    """A ballot's candidates, best first; a choice is a ranking of one, and no preference of none."""
    text: str = ""
    """The reply, raw."""
    thinking: str = ""
    """What the model thought before it; no other prompt and no feedback shows it."""
    distribution: LabelDistribution | None = None
    """Of the value, where it was read out."""
    failure: Failure | None = None
    invalid_replies: tuple[InvalidReply, ...] = ()
    """Replies that could not be read, before this one or until the tries ran out."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A recalled memory and the parts of its score."""

    __pydantic_config__ = FORBID_UNKNOWN

    text: str
    id: str = ""
    collection: str = ""
    score: FloatOrNaN = math.nan
    relevance: FloatOrNaN = math.nan
    recency: FloatOrNaN = math.nan
    importance: FloatOrNaN = math.nan
    kind: str = ""
    """`episodic`, `semantic` or `reflection`."""
    source: str | None = None
    """Where it came from: a task, a document."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn(OmitsEmpty):
    """What one agent said in one round. All arrays follow the task's own candidate order, whatever was shown."""

    __pydantic_config__ = FORBID_UNKNOWN
    omitted = ("distributions", "thinking")

    round: int
    """From 0."""
    agent: str
    labels: Mapping[str, int]
    """Label shown -> candidate index, in the order shown."""
    scores: FloatArray
    """(J, K), NaN where the turn failed, the agent abstained, or the labels had too little of the probability."""
    distributions: Distributions = ()
    """(J, K), of which `scores` are the expectations; empty where the scores were not read out."""
    overall: str = ""
    comments: tuple[str, ...] = ()
    """One per candidate; empty when no reply could be read. A turn whose scores could not be read out has them."""
    thinking: str = ""
    """What the model thought before the reply that was read; no other prompt and no feedback shows it."""
    failure: Failure | None = None
    invalid_replies: tuple[InvalidReply, ...] = ()
    """Replies that could not be read, before this one or until the tries ran out."""
    memories: tuple[Memory, ...] = ()
    escaped_special_tokens: int = 0
    """Control strings in the prompt's content that were broken; see `Completion.escaped_special_tokens`."""

    def __repr__(self) -> str:
        """Who said it when, the scores, and the beginning of the words."""
        failure = "" if self.failure is None else f", failure={self.failure.reason!r}"
        scores = self.scores.tolist() if self.scores.size <= 24 else f"<{' x '.join(map(str, self.scores.shape))}>"
        about = f"round={self.round}, agent={shortened(self.agent)}, scores={scores}"
        return f"Turn({about}, overall={shortened(self.overall)}{failure})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SilentReadout:
    """How an agent would have scored, had it been asked without a word of its own."""

    __pydantic_config__ = FORBID_UNKNOWN

    agent: str
    scores: FloatArray
    """(J, K), NaN where it could not be read."""
    distributions: Distributions = ()
    """(J, K); empty where the call failed."""


@dataclass(frozen=True, slots=True)
class Transcript(Displayed):
    """All turns of a debate, in the order taken."""

    turns: tuple[Turn, ...] = ()

    def __repr__(self) -> str:
        """How many turns of how many rounds, and who spoke."""
        names = [*dict.fromkeys(turn.agent for turn in self.turns)]
        told = ", ".join(map(shortened, names[:8])) + (", ..." if len(names) > 8 else "")
        return (
            f"Transcript({len(self.turns)} turns, {len({turn.round for turn in self.turns})} rounds, agents=[{told}])"
        )

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        """As plain data, a transcript is the list of its turns."""
        from pydantic_core import core_schema

        turns = handler.generate_schema(tuple[Turn, ...])
        return core_schema.no_info_after_validator_function(
            Transcript,
            turns,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda transcript: transcript.turns, return_schema=turns
            ),
        )

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)

    def __len__(self) -> int:
        return len(self.turns)

    def of_round(self, round: int) -> tuple[Turn, ...]:  # noqa: A002
        """The turns of one round, from 0."""
        return tuple(turn for turn in self.turns if turn.round == round)


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a model samples its tokens. None leaves a value to the evaluator, or to the model's own default."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    temperature: float | None = setting(None, "Sampling temperature; 0 takes the likeliest token.", ge=0)
    top_p: float | None = setting(None, "Sample from the likeliest tokens of this total probability.", ge=0, le=1)
    top_k: int | None = setting(None, "Sample from this many of the likeliest tokens; 0 and -1 are all.", ge=-1)
    min_p: float | None = setting(None, "Least probability of a token, relative to the likeliest one's.", ge=0, le=1)
    max_tokens: int | None = setting(None, "Upper bound of the reply, in tokens.", ge=1)

    def __post_init__(self) -> None:
        check_settings(self)

    def over(self, defaults: Sampling) -> Sampling:
        """These settings, with what is None taken from `defaults`."""
        mine = self.to_dict()
        return Sampling(**{**defaults.to_dict(), **mine})

    def to_dict(self) -> dict[str, Any]:
        """What is set, by name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
