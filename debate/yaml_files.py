"""YAML files with the line of every key, and what pydantic finds in them put into words.

Aliases, tags and anchors are refused: a file of settings is plain data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf, nan
from pathlib import Path
from typing import Any, NoReturn, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
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


Loc = tuple[str | int, ...]
"""Path of keys and list positions that leads to a value: `("personas", 0, "role")`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where in the data, what, and what to do about it where that can be said."""

    loc: Loc
    message: str
    hint: str | None


def first_finding(found: ValidationError, model: type[BaseModel]) -> Finding:
    """The first thing that keeps some data from being a `model`, and how many more there are.

    Unknown keys come first, for a misspelt key also makes the right one missing.
    """
    findings: list[Any] = sorted(found.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    first = findings[0]
    message, hint = _worded(first, _fields_around(model, first["loc"]))
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return Finding(first["loc"], message + more, hint)


def _fields_around(model: type[BaseModel], loc: Loc) -> dict[str, FieldInfo]:
    """The fields that stand beside the last key of `loc`."""
    fields = model.model_fields
    for part in loc[:-1]:
        if part in fields:  # else a list's position or a mapping's own key
            inner = _model_in(fields[str(part)].annotation)
            fields = inner.model_fields if inner else {}
    return fields


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside `list[Model]`, `Model | None` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for arg in get_args(annotation) if (model := _model_in(arg))), None)


def _worded(finding: Any, fields: Mapping[str, FieldInfo]) -> tuple[str, str | None]:
    """Message and hint for one of pydantic's findings."""
    kind, given = str(finding["type"]), finding["input"]
    key = finding["loc"][-1] if finding["loc"] else ""
    if kind == "extra_forbidden":
        close = get_close_matches(str(key).lower(), list(fields), n=1)
        known = f"known keys: {', '.join(fields)}" if fields else None
        return "unknown key", f"did you mean {close[0]!r}?" if close else known
    if kind in _WORDS:
        quote = kind == "string_type" and isinstance(given, bool | int | float)
        return _WORDS[kind].format(given=_shown(given)), "put it in quotes" if quote else None
    if kind in _BOUNDS:
        return f"must lie in {_interval(finding['ctx'], fields.get(key))}, got {_shown(given)}", None
    message = str(finding["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:], None


_BOUNDS = ("greater_than_equal", "greater_than", "less_than_equal", "less_than")
_WORDS = {
    "missing": "is missing",
    "string_type": "must be text, got {given}",
    "float_type": "must be a number, got {given}",
    "int_type": "must be a whole number, got {given}",
    "int_from_float": "must be a whole number, got {given}",
    "int_parsing": "must be a whole number, got {given}",
    "float_parsing": "must be a number, got {given}",
    "bool_type": "must be true or false, got {given}",
    "list_type": "must be a list, got {given}",
    "model_type": "must be a mapping of keys to values, got {given}",
    "dict_type": "must be a mapping of keys to values, got {given}",
    "finite_number": "must be a finite number, got {given}",
    "too_short": "is empty",
    "string_too_short": "is empty",
}


def _interval(ctx: Mapping[str, Any], info: FieldInfo | None) -> str:
    """Both bounds of a field, where pydantic names only the one that was crossed."""
    bounds = dict(ctx)
    for constraint in info.metadata if info else ():
        bounds |= {side: getattr(constraint, side) for side in ("ge", "gt", "le", "lt") if hasattr(constraint, side)}
    low = f"[{bounds['ge']:g}" if "ge" in bounds else f"({bounds.get('gt', -inf):g}"
    return low + ", " + (f"{bounds['le']:g}]" if "le" in bounds else f"{bounds.get('lt', inf):g})")


def _shown(given: Any) -> str:
    """A value as the file has it: containers by kind alone, the rest short."""
    if isinstance(given, dict | list):
        return "a mapping" if isinstance(given, dict) else "a list"
    if given is None or isinstance(given, bool):
        return "nothing" if given is None else str(given).lower()
    return shown if len(shown := repr(given)) <= 60 else shown[:57] + "..."
