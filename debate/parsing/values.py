"""Reads what a judge's reply says a candidate or a step is worth, and ballots on several candidates.

    LabelMap({"sure": 20, "likely": 1, "impossible": 0.001})     the label on the last line
    NumberLine(0, 10)                                            the number on the last line
    TagNumber("score", -100, 100)                                the number inside <score>...</score>
    JsonField("value", 0, 20)                                    the number under a key of the one JSON object

Each is called with the reply and how it ended, returns the value, or raises `ReplyError`. The number of a `JsonField`
can also be read out: the field says which labels it has, and where in a reply they stand.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, cast

from debate.errors import ConfigError
from debate.files import json_text
from debate.parsing.json_extract import extract_json
from debate.parsing.json_values import Number, shown, unreadable
from debate.parsing.places import value_spans, with_ordinals
from debate.parsing.schema import bounded_text, number_in, object_of, whole_number_in
from debate.parsing.text import in_range, last_line, only_number, read_number, tagged
from debate.types import Scale

_MOST_LABELS = 201
_READ_OUT_HINT = "take a JsonField with other ends, or readout='reply'"


class ValueReader(Protocol):
    """Reads the value that a reply states."""

    @property
    def scale(self) -> Scale:
        """The range that every value it reads lies in."""
        ...

    @property
    def instruction(self) -> str:
        """How a prompt asks for such a reply."""
        ...

    def schema(self, reasoning_chars: int) -> dict[str, Any] | None:
        """JSON schema of the reply; None where it is no JSON."""
        ...

    def describe(self) -> dict[str, Any]:
        """The reader as plain data, for a run's identity."""
        ...

    def __call__(self, reply: str, *, finish_reason: str = "stop") -> float:
        """The value. Raises `ReplyError` when the reply states none."""
        ...


@dataclass(frozen=True)
class LabelMap:
    """Labels and what each is worth. The label is the last line that is not blank, in capitals or not.

    Punctuation around it and what stands before a colon (`Judgement: sure.`) are dropped; "not likely" is no label.
    """

    values: Mapping[str, float] = field(hash=False)

    def __post_init__(self) -> None:
        if len(set(map(_bare, self.values))) < max(2, len(self.values)):
            raise ConfigError("needs two labels or more that differ by more than capitals", field="labels")

    @property
    def scale(self) -> Scale:
        """The range from the least to the most valuable label."""
        return Scale(min(self.values.values()), max(self.values.values()))

    @property
    def instruction(self) -> str:
        """Asks for a last line with one of the labels."""
        return f"End with a line that holds one of these words and nothing else: {', '.join(self.values)}."

    def schema(self, reasoning_chars: int) -> None:
        """None: the reply is no JSON."""

    def describe(self) -> dict[str, Any]:
        """The reader as plain data."""
        return {"kind": "labels", "values": {label: float(value) for label, value in self.values.items()}}

    def __call__(self, reply: str, *, finish_reason: str = "stop") -> float:
        """The worth of the reply's label.

        Raises:
            ReplyError: empty, cut_off or unknown_label.
        """
        said = last_line(reply, finish_reason=finish_reason)
        known = {_bare(label): value for label, value in self.values.items()}
        said = next((name for name in (_bare(said), _bare(said.rpartition(":")[2])) if name in known), said)
        if said not in known:
            raise unreadable("unknown_label", f"The last line is {shown(said)}; give one of {', '.join(self.values)}.")
        return known[said]


class _NumberReader:
    """Reads a number from `low` to `high`."""

    kind: ClassVar[str]
    low: float
    high: float

    @property
    def scale(self) -> Scale:
        """The range from `low` to `high`."""
        return Scale(self.low, self.high)

    def schema(self, reasoning_chars: int) -> dict[str, Any] | None:
        """None: the reply is no JSON."""

    def describe(self) -> dict[str, Any]:
        """The reader as plain data."""
        own = {name: value for name, value in vars(self).items() if name not in ("low", "high")}
        return {"kind": self.kind, **own, "low": float(self.low), "high": float(self.high)}


@dataclass(frozen=True)
class NumberLine(_NumberReader):
    """The one number on the last line that is not blank: `7`, `Score: **7/10**`, `Thus the coherency score is 7.`."""

    kind = "number"

    low: float = 0.0
    high: float = 10.0

    @property
    def instruction(self) -> str:
        """Asks for a last line with the number."""
        return f"End with a line that holds one number from {self.low:g} to {self.high:g} and nothing else."

    def __call__(self, reply: str, *, finish_reason: str = "stop") -> float:
        """The number.

        Raises:
            ReplyError: empty, cut_off, not_a_number, ambiguous, wrong_limit or out_of_range.
        """
        return only_number(last_line(reply, finish_reason=finish_reason), self.low, self.high)


@dataclass(frozen=True)
class TagNumber(_NumberReader):
    """The number inside the last `<tag>...</tag>`."""

    kind = "tag"

    tag: str
    low: float = 0.0
    high: float = 10.0

    @property
    def instruction(self) -> str:
        """Asks for an analysis, then the number, each in tags."""
        return f"Reply with\n<analysis>your analysis</analysis>\n<{self.tag}>the number</{self.tag}>"

    def __call__(self, reply: str, *, finish_reason: str = "stop") -> float:
        """The number.

        Raises:
            ReplyError: no_tag, cut_off, not_a_number, wrong_limit or out_of_range.
        """
        return read_number(tagged(reply, self.tag, finish_reason=finish_reason), self.low, self.high)


@dataclass(frozen=True)
class JsonField(_NumberReader):
    """The number under a key of the one JSON object in the reply, which may hold other keys."""

    kind = "json"

    key: str
    low: float = 0.0
    high: float = 10.0

    @property
    def instruction(self) -> str:
        """Asks for an object with reasoning, then the number."""
        return self._asking_for("number")

    def schema(self, reasoning_chars: int) -> dict[str, Any]:
        """Schema of an object with reasoning, then the number."""
        return object_of({"reasoning": bounded_text(reasoning_chars), self.key: number_in(self.low, self.high)})

    @property
    def labels(self) -> tuple[str, ...]:
        """The whole numbers from `low` to `high` as texts, among which the number is read out.

        Raises:
            ConfigError: for ends that are no whole numbers, and more than 201 labels.
        """
        if not (float(self.low).is_integer() and float(self.high).is_integer()):
            problem = f"needs whole numbers as the reader's ends, got {self.low:g} and {self.high:g}"
            raise ConfigError(problem, field="readout", hint=_READ_OUT_HINT)
        if self.high - self.low >= _MOST_LABELS:
            problem = f"reads out at most {_MOST_LABELS} whole numbers, got those from {self.low:g} to {self.high:g}"
            raise ConfigError(problem, field="readout", hint=_READ_OUT_HINT)
        return tuple(map(str, range(int(self.low), int(self.high) + 1)))

    @property
    def label_instruction(self) -> str:
        """As `instruction`, for a whole number."""
        return self._asking_for("whole number")

    def label_schema(self, reasoning_chars: int) -> dict[str, Any]:
        """As `schema`, for a whole number."""
        number = whole_number_in(int(self.low), int(self.high))
        return object_of({"reasoning": bounded_text(reasoning_chars), self.key: number})

    def reasoning_schema(self, reasoning_chars: int) -> dict[str, Any]:
        """Schema of an object with reasoning alone."""
        return object_of({"reasoning": bounded_text(reasoning_chars)})

    def __call__(self, reply: str, *, finish_reason: str = "stop") -> float:
        """The number.

        Raises:
            ReplyError: those of `extract_json`; missing_key, not_a_number or out_of_range.
        """
        return in_range(self._literal(reply, finish_reason), self.low, self.high)

    def place(self, reply: str, *, finish_reason: str = "stop") -> int:
        """Which of the reply's values the number is, in the order of `debate.parsing.places.value_spans`.

        Raises:
            ReplyError: as a call does; not_json where the number stands in JSON too damaged to find it.
        """
        said = self._literal(reply, finish_reason)
        in_range(said, self.low, self.high)
        ordinal = self._literal(with_ordinals(reply), finish_reason)
        for place, (start, end) in enumerate(value_spans(reply)):
            if str(place) == ordinal and reply[start:end] == said:
                return place
        raise unreadable("not_json", f"Where {shown(self.key)} stands cannot be told; give sound JSON.")

    def reasoning(self, reply: str, *, finish_reason: str = "stop") -> str:
        """The reasoning in a reply, which need hold nothing else.

        Raises:
            ReplyError: those of `extract_json`; wrong_shape or missing_key.
        """
        said = self._member("reasoning", reply, finish_reason)
        if not isinstance(said, str):
            raise unreadable("missing_key", f"'reasoning' must be a text, not {shown(said)}.")
        return said

    def continuation(self, reasoning: str) -> str:
        """What a reply with this reasoning has said, as compact JSON, when the number comes next."""
        return json_text({"reasoning": reasoning, self.key: 0}).removesuffix("0}")

    def _asking_for(self, value: str) -> str:
        form = f'{{"reasoning": "<what is right, what is wrong or missing>", "{self.key}": <{value}>}}'
        return f"Reply with one JSON object and nothing else:\n{form}"

    def _literal(self, reply: str, finish_reason: str) -> str:
        """The number as it is written."""
        number = self._member(self.key, reply, finish_reason)
        if not isinstance(number, Number):
            raise unreadable("not_a_number", f"{shown(self.key)} must be a number, not {shown(number)}.")
        return number.literal

    def _member(self, key: str, reply: str, finish_reason: str) -> object:
        value = extract_json(reply, finish_reason=finish_reason)
        if not isinstance(value, dict):
            raise unreadable("wrong_shape", f"An object was asked for, not {shown(value)}.")
        members = cast("dict[str, object]", value)
        if key not in members:
            raise unreadable("missing_key", f"The object has no {shown(key)}.")
        return members[key]


def _bare(label: str) -> str:
    return label.strip(string.whitespace + string.punctuation).casefold()


def read_is_solved(reply: str, *, finish_reason: str = "stop") -> bool:
    """Whether the step is said to be the complete solution: yes or no inside `<is solved>` or `<is_solved>`.

    Capitals, blanks and a full stop do not matter.

    Raises:
        ReplyError: no_tag, cut_off, or unknown_label for another answer.
    """
    said = tagged(reply, "is solved", "is_solved", finish_reason=finish_reason)
    answer = said.strip(" \t\r\n.!*`\"'").casefold()
    if answer not in ("yes", "no"):
        raise unreadable("unknown_label", f"Inside <is solved> stands {shown(said)}; give yes or no.")
    return answer == "yes"


def read_json_ballot(
    reply: str, key: str, labels: Mapping[str, int], *, finish_reason: str = "stop", tie: str | None = None
) -> tuple[int, ...]:
    """Indices of the candidates under a key of the one JSON object in a reply: `B > A`, one label, or a list of them.

    labels: {label: index}; compared without capitals. What `tie` names is a ballot that prefers none, `()`.

    Raises:
        ReplyError: as `extract_json`; missing_key, no_ranking, unknown_candidate or duplicate.
    """
    value = extract_json(reply, finish_reason=finish_reason)
    members = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if key not in members:
        raise unreadable("missing_key", f"The reply must be an object with {shown(key)}.")
    said = members[key]
    if isinstance(said, str) and ">" in said:
        said = said.split(">")
    named = cast("list[object]", said) if isinstance(said, list) else [said]
    if not named:
        raise unreadable("no_ranking", f"{shown(key)} names no candidate.")
    known = {label.casefold(): j for label, j in labels.items()}
    words = [item.strip().casefold() if isinstance(item, str) else None for item in named]
    if tie is not None and words == [tie.casefold()]:
        return ()
    for item, word in zip(named, words, strict=True):
        if word not in known:
            raise unreadable("unknown_candidate", f"There is no candidate {shown(item)}, only {', '.join(labels)}.")
    ranking = tuple(known[word] for word in words if word is not None)
    if len(set(ranking)) < len(ranking):
        raise unreadable("duplicate", f"{shown(key)} names a candidate twice; name each once.")
    return ranking
