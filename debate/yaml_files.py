"""YAML files with the line of every key, and what pydantic finds in them put into words.

Aliases, tags and anchors are refused: a file of settings is plain data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from math import inf, nan
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError
from yaml.composer import Composer
from yaml.resolver import BaseResolver

from debate.errors import ConfigError, InputError

MAX_BYTES = 1_000_000
MAX_DEPTH = 20

_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


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
    return _document(file, _read_text(file, error), error)


def dotted(loc: Loc) -> str:
    """A path as it is shown: `personas.0.role`. What does not print is escaped, what is long is cut."""
    parts = (str(part)[:60] for part in loc)
    return ".".join(part if part.isprintable() else ascii(part) for part in parts)


def as_input_error(
    found: ValidationError, located: Located, model: type[Any], error: type[InputError] = ConfigError
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


class _Loader(Composer, BaseResolver):
    """Composes nodes of plain data; refuses anchors, aliases, tags and deep nesting before they are followed."""

    def __init__(self, file: Path, text: str, error: type[InputError]) -> None:
        super().__init__()
        BaseResolver.__init__(self)
        events = _PARSER(text)
        self.check_event, self.peek_event, self.get_event = events.check_event, events.peek_event, events.get_event
        self.file = file
        self.error = error
        self.loc: Loc = ()
        self.lines: dict[Loc, int] = {(): 1}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose the node at `index` (a position, a key's node, or None for a key and for the whole)."""
        around, event = self.loc, self.peek_event()
        self.loc = around if index is None else (*around, getattr(index, "value", index))
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            problem = "anchors and aliases (& and *) are not allowed"
            raise self.refusal(problem, self.loc, event, hint="write the value out, or quote it")
        if event.tag is not None:
            raise self.refusal("tags (!) are not allowed", self.loc, event, hint="write plain data, or quote the text")
        if parent is not None and index is None and not isinstance(event, yaml.ScalarEvent):
            raise self.refusal("a key must be text, not a list or a mapping", self.loc, event)
        if len(self.loc) > MAX_DEPTH:
            raise self.refusal(f"is nested more than {MAX_DEPTH} deep", self.loc[:3], event)
        node = super().compose_node(parent, cast("int", index))
        self.loc = around
        return node

    def data(self, node: yaml.Node, loc: Loc = ()) -> Any:
        """The node as plain data; notes the line of each value."""
        self.lines.setdefault(loc, _line(node))
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, loc)
        if isinstance(node, yaml.SequenceNode):
            return [self.data(each, (*loc, n)) for n, each in enumerate(node.value)]
        made: dict[str, Any] = {}
        for key_node, value in node.value:
            key = self.key(key_node, loc)
            under = (*loc, key)
            if key in made:
                raise self.refusal(f"duplicate key, first on line {self.lines[under]}", under, key_node)
            self.lines[under] = _line(key_node)
            made[key] = self.data(value, under)
        return made

    def key(self, node: yaml.ScalarNode, loc: Loc) -> str:
        """The text of a mapping's key."""
        key = self.scalar(node, loc)
        if not isinstance(key, str):
            written = node.value[:60]
            hint = f"put it in quotes: '{written}'"
            raise self.refusal(f"the key {written} is not text", (*loc, written), node, hint=hint)
        return key

    def scalar(self, node: yaml.ScalarNode, loc: Loc) -> str | int | float | bool | None:
        """The value of a node that holds no others. An escape says no more than what may be written."""
        if found := _CONTROL.search(node.value):
            problem = f"holds the control character {found.group()!a}"
            raise self.refusal(problem, loc, node, hint="remove the escape")
        return _scalar(node)

    def refusal(self, message: str, loc: Loc, where: Any, hint: str | None = None) -> InputError:
        """The error for something at `loc`; `where` is its node or event."""
        return self.error(message, file=self.file, line=_line(where), field=dotted(loc) or None, hint=hint)


def _document(file: Path, text: str, error: type[InputError]) -> Located:
    try:
        loader = _Loader(file, text, error)
        node = loader.get_node() if loader.check_node() else None
        if loader.check_node():
            hint = "keep one, and remove the line ---"
            raise loader.refusal("holds more than one document", (), loader.peek_event(), hint=hint)
        return Located(None if node is None else loader.data(node), loader.lines, file)
    except yaml.MarkedYAMLError as reason:
        mark, last = reason.problem_mark, text.rstrip().count("\n") + 1
        if mark and reason.context_mark and mark.line >= last:
            mark = reason.context_mark  # something is never closed: say where it was opened
        line = None if mark is None else min(mark.line + 1, last)
        message = f"is not valid YAML: {reason.problem or reason.context}"
        raise error(message, file=file, line=line, hint=_syntax_hint(text, message, line)) from None
    except yaml.YAMLError as reason:
        raise error(f"is not valid YAML: {str(reason).splitlines()[0]}", file=file) from None


def _syntax_hint(text: str, message: str, line: int | None) -> str | None:
    lines = text.split("\n")
    wrong = lines[line - 1] if line is not None and line <= len(lines) else ""
    if "\t" in wrong[: len(wrong) - len(wrong.lstrip())]:
        return "indent with spaces, not with tabs"
    return "put text that holds ': ' in quotes" if "mapping values" in message else None


def _line(where: Any) -> int:
    return 1 if where.start_mark is None else where.start_mark.line + 1


def _scalar(node: yaml.ScalarNode) -> str | int | float | bool | None:
    text: str = node.value
    if node.style:  # in quotes, or a block of text
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


def _as_finding(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(_tuples(value))
    except InputError as error:
        facts = {"problem": error.problem, "field": error.field, "hint": error.hint}
        raise PydanticCustomError("input_error", "{problem}", facts) from None


def _tuples(value: Any) -> Any:
    """Lists as tuples, at any depth: a strict validator takes no list for a tuple."""
    if isinstance(value, list):
        return tuple(_tuples(each) for each in cast("list[Any]", value))
    if isinstance(value, dict):
        return {key: _tuples(each) for key, each in cast("dict[str, Any]", value).items()}
    return value


Checked = WrapValidator(_as_finding)
"""Annotates a dataclass whose `__post_init__` raises `InputError`: the error becomes a finding at its field."""


def first_finding(found: ValidationError, model: type[Any]) -> Finding:
    """The first thing that keeps some data from being a `model` (a pydantic model or a dataclass), and how many more.

    Unknown keys come first, for a misspelled key also makes the right one missing.
    """
    findings: list[Any] = sorted(found.errors(include_url=False), key=lambda each: each["type"] not in _UNKNOWN)
    first = findings[0]
    message, hint = _worded(first, _fields_around(model, first["loc"]))
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return Finding(_place(first), message + more, hint)


def _place(finding: Any) -> Loc:
    field = finding["ctx"]["field"] if finding["type"] == "input_error" else None
    parts = field.split(".") if field else ()
    return (*finding["loc"], *(int(part) if part.isdigit() else part for part in parts))


def _fields_around(model: type[Any], loc: Loc) -> Mapping[str, FieldInfo]:
    """The fields that stand beside the last key of `loc`."""
    known = _fields_of(model)
    for part in loc[:-1]:
        if part in known:  # else a list's position or a mapping's own key
            known = _fields_of(_model_in(known[str(part)].annotation))
    return known


def _fields_of(model: Any) -> Mapping[str, FieldInfo]:
    if model is None:
        return {}
    if issubclass(model, BaseModel):
        return model.model_fields
    hints = get_type_hints(model, include_extras=True)
    names = [each.name for each in fields(model)] if is_dataclass(model) else list(hints)
    return {name: FieldInfo.from_annotation(hints[name]) for name in names}


def _model_in(annotation: Any) -> Any:
    """The model, dataclass or named tuple inside `list[Model]`, `Model | None` and the like."""
    is_model = any(hasattr(annotation, name) for name in ("model_fields", "__dataclass_fields__", "_fields"))
    if is_model and isinstance(annotation, type):  # `Annotated` shows the attributes of what it annotates
        return annotation
    return next((model for arg in get_args(annotation) if (model := _model_in(arg))), None)


def _worded(finding: Any, fields: Mapping[str, FieldInfo]) -> tuple[str, str | None]:
    """Message and hint for one of pydantic's findings."""
    kind, given = str(finding["type"]), finding["input"]
    key = finding["loc"][-1] if finding["loc"] else ""
    if kind == "input_error":
        return finding["ctx"]["problem"], finding["ctx"]["hint"]
    if kind in _UNKNOWN:
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


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_BOUNDS = ("greater_than_equal", "greater_than", "less_than_equal", "less_than")
_WORDS = {
    "missing": "is missing",
    "string_type": "must be text, got {given}",
    "bool_type": "must be true or false, got {given}",
    "finite_number": "must be a finite number, got {given}",
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number, got {given}"),
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing"), "must be a whole number, got {given}"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list, got {given}"),
    **dict.fromkeys(("dataclass_type", "model_type", "dict_type"), "must be a mapping of keys to values, got {given}"),
    **dict.fromkeys(("too_short", "string_too_short"), "is empty"),
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
    if isinstance(given, dict | list | tuple):
        return "a mapping" if isinstance(given, dict) else "a list"
    if given is None or isinstance(given, bool):
        return "nothing" if given is None else str(given).lower()
    return shown if len(shown := repr(given)) <= 60 else shown[:57] + "..."
