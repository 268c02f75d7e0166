"""Plain data from a YAML file, with the line that every value stands on.

The file is read as a stream of parser events, never through a constructor: whatever it says, no object is made but
dict, list, str, int, float, bool and None. What would make a small file large or a clear one ambiguous is refused:
aliases, tags, duplicate keys, keys that are not strings. Only what plainly is a number is read as one: `010`, `1_000`,
`12:30` and `2024-01-01`, which YAML 1.1 turns into something else, stay text.

This module knows nothing of profiles or settings; `as_input_error` puts pydantic's findings, worded by
`debate.plain_words`, at their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from debate.errors import ConfigError, InputError
from debate.plain_words import Loc, first_finding

MAX_BYTES = 1_000_000
MAX_DEPTH = 20

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,99})")
_FLOAT = re.compile(r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_CONSTANTS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null"), None),
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
    **dict.fromkeys((".inf", "+.inf"), inf),
    "-.inf": -inf,
    ".nan": nan,
}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")


class FileModel(BaseModel):
    """A file's format: types as written, no unknown key, no infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Located:
    """The data of a file, and where in it each value stands."""

    data: Any
    """dict, list, str, int, float, bool and None, nested; None for an empty file."""
    lines: Mapping[Loc, int]
    """Path of each value -> its line, from 1; `()` is the whole. The line of a key for what stands under it."""
    file: Path

    def line_of(self, loc: Loc) -> int | None:
        """Line of the value at `loc`, or of the nearest thing around it that is there."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc)


def read_yaml(path: str | Path, error: type[InputError] = ConfigError) -> Located:
    """Read one YAML document of at most 1 MB in UTF-8.

    Raises `error`, with the file, and the line and field where there is one, for what cannot be read or is refused.
    """
    file = Path(path)
    return _Reader(file, _read_text(file, error), error).document()


def dotted(loc: Loc) -> str:
    """A path as it is shown: `personas.0.role`. What does not print is escaped, what is long is cut."""
    parts = (str(part)[:60] for part in loc)
    return ".".join(part if part.isprintable() else ascii(part) for part in parts)


def as_input_error(
    found: ValidationError, located: Located, model: type[BaseModel], error: type[InputError] = ConfigError
) -> InputError:
    """What pydantic found wrong with `located.data` as a `model`: the first finding, in plain words and at its line.

    The error is returned, not raised.
    """
    first = first_finding(found, model)
    line = located.line_of(first.loc)
    return error(first.message, file=located.file, line=line, field=dotted(first.loc) or None, hint=first.hint)


def _read_text(file: Path, error: type[InputError]) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise error("there is no such file", file=file) from None
    except (OSError, ValueError) as reason:
        raise error(f"cannot be read: {getattr(reason, 'strerror', None) or reason}", file=file) from None
    if len(raw) > MAX_BYTES:
        raise error(f"is larger than {MAX_BYTES // 1_000_000} MB", file=file)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = raw.count(b"\n", 0, reason.start) + 1
        raise error("is not UTF-8", file=file, line=line, hint="save the file as UTF-8") from None
    if found := _CONTROL.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise error(f"holds the control character {found.group()!a}", file=file, line=line, hint="remove it")
    return text


class _Reader:
    """Builds the data of one document from its events, and notes the lines as it goes."""

    def __init__(self, file: Path, text: str, error: type[InputError]) -> None:
        self.file = file
        self.text = text
        self.error = error
        self.events: Iterator[Event] = yaml.parse(text, Loader=_LOADER)
        self.lines: dict[Loc, int] = {(): 1}

    def document(self) -> Located:
        data = None
        self.next()  # the stream's start
        if isinstance(self.next(), DocumentStartEvent):
            data = self.value((), self.next())
            self.next()  # the document's end
            if isinstance(event := self.next(), DocumentStartEvent):
                self.refuse("holds more than one document", (), event, hint="keep one, and remove the line ---")
        return Located(data, self.lines, self.file)

    def next(self) -> Event:
        try:
            return next(self.events)
        except yaml.MarkedYAMLError as reason:
            mark, last = reason.problem_mark, self.text.rstrip().count("\n") + 1
            if mark and reason.context_mark and mark.line >= last:
                mark = reason.context_mark  # something is never closed: say where it was opened
            line = None if mark is None else min(mark.line + 1, last)
            message = f"is not valid YAML: {reason.problem or reason.context}"
            raise self.error(message, file=self.file, line=line, hint=self.syntax_hint(message, line)) from None
        except yaml.YAMLError as reason:
            raise self.error(f"is not valid YAML: {str(reason).splitlines()[0]}", file=self.file) from None

    def syntax_hint(self, message: str, line: int | None) -> str | None:
        lines = self.text.split("\n")
        text = lines[line - 1] if line is not None and line <= len(lines) else ""
        if "\t" in text[: len(text) - len(text.lstrip())]:
            return "indent with spaces, not with tabs"
        return "put text that holds ': ' in quotes" if "mapping values" in message else None

    def value(self, loc: Loc, event: Event) -> Any:
        self.lines.setdefault(loc, _line(event))
        self.check(loc, event)
        if isinstance(event, ScalarEvent):
            return _scalar(event)
        return self.mapping(loc) if isinstance(event, MappingStartEvent) else self.sequence(loc)

    def check(self, loc: Loc, event: Event) -> None:
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor is not None):
            self.refuse(
                "anchors and aliases (& and *) are not allowed", loc, event, hint="write the value out, or quote it"
            )
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag is not None:
            self.refuse("tags (!) are not allowed", loc, event, hint="write plain data, or quote the text")
        if len(loc) > MAX_DEPTH:
            self.refuse(f"is nested more than {MAX_DEPTH} deep", loc[:3], event)

    def sequence(self, loc: Loc) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self.next(), SequenceEndEvent):
            items.append(self.value((*loc, len(items)), event))
        return items

    def mapping(self, loc: Loc) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := self.next(), MappingEndEvent):
            key = self.key(loc, event)
            under = (*loc, key)
            if key in data:
                self.refuse(f"the key stands twice, first on line {self.lines[under]}", under, event)
            self.lines[under] = _line(event)
            data[key] = self.value(under, self.next())
        return data

    def key(self, loc: Loc, event: Event) -> str:
        self.check(loc, event)
        if not isinstance(event, ScalarEvent):
            self.refuse("a key must be text, not a list or a mapping", loc, event)
        key = _scalar(event)
        if not isinstance(key, str):
            written = event.value[:60]
            self.refuse(f"the key {written} is not text", (*loc, written), event, hint=f"put it in quotes: '{written}'")
        return key

    def refuse(self, message: str, loc: Loc, event: Event, hint: str | None = None) -> NoReturn:
        raise self.error(message, file=self.file, line=_line(event), field=dotted(loc) or None, hint=hint)


def _line(event: Event) -> int:
    return 1 if event.start_mark is None else event.start_mark.line + 1


def _scalar(event: ScalarEvent) -> str | int | float | bool | None:
    text: str = event.value
    is_plain = event.implicit[0]  # written without quotes
    if not is_plain:
        return text
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
