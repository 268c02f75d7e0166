"""Our own format: a JSONL file, one task a line.

    {"id": "sky", "x": "Why is the sky blue?", "candidates": ["Rayleigh scattering.", {"text": "The sea."}]}

Every fault is a `TaskError` with file, line and field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, cast

from debate.dataset.build import wrong_best
from debate.dataset.records import DuplicateKey, is_unicode, opened, short, without_duplicates
from debate.errors import TaskError
from debate.types import Candidate, Task

_TASK_KEYS = ("id", "x", "candidates", "context", "metadata")
_CANDIDATE_KEYS = ("text", "id", "generator", "metadata")
_ONE_A_LINE = "an eval set holds one JSON object a line (JSONL)"
_BOM = b"\xef\xbb\xbf"
_NOT_TEXT = {b"\xff\xfe": "it looks like UTF-16: save the file as UTF-8", b"\x1f\x8b": "it is compressed: unpack it"}


def read_native_jsonl(file: Path) -> Iterator[tuple[Task, int]]:
    """Yield each task with its line, reading no further than is asked. Blank lines are skipped."""
    count = 0
    with opened(file) as stream:
        for number, raw in enumerate(stream, 1):
            if (task := _Line(file, number, raw).task()) is not None:
                count += 1
                yield task, number
    if count == 0:
        raise TaskError("holds no tasks", file=file, hint=_ONE_A_LINE)


class _Line:
    """One line on its way to a task; knows where it stands, for its errors."""

    def __init__(self, file: Path, number: int, raw: bytes) -> None:
        self.file = file
        self.number = number
        self.raw = raw.removeprefix(_BOM) if number == 1 else raw

    def task(self) -> Task | None:
        """The task, or None for a blank line."""
        text = self._text()
        if not text:
            return None
        data = self._object(text)
        self._check_keys(data, _TASK_KEYS, required=("x", "candidates"), what="task")
        given_id = self._optional_string(data, "id", "id")
        context = self._list(data.get("context"), "context")
        self._check_metadata(data, "metadata")
        candidates = self._list(data["candidates"], "candidates", optional=False)
        try:
            task = Task(
                self._string(data["x"], "x"),
                [self._candidate(each, f"candidates.{n}") for n, each in enumerate(candidates)],
                given_id,
                [self._string(each, f"context.{n}") for n, each in enumerate(context)],
                data.get("metadata"),
            )
        except TaskError as error:  # the type knows the field, not the line
            if error.file is not None:
                raise
            self._refuse(error.problem, error.field, error.hint)
        if (problem := wrong_best(task)) is not None:
            self._refuse(problem, "metadata.best", "it is an index from 0")
        return task

    def _text(self) -> str:
        try:
            return self.raw.decode("utf-8").rstrip()
        except UnicodeDecodeError as error:
            hint = _NOT_TEXT.get(self.raw[:2]) if self.number == 1 else None
            self._refuse(f"is not UTF-8, at byte {error.start + 1} of the line", hint=hint or "save the file as UTF-8")

    def _object(self, text: str) -> dict[str, Any]:
        try:
            data = json.loads(text, object_pairs_hook=without_duplicates, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            # A list or an object that is spread over lines is cut off at the end of its first one.
            hint = _ONE_A_LINE if error.pos >= len(text) else None
            self._refuse(f"is not valid JSON, at column {error.colno}: {error.msg}", hint=hint)
        except DuplicateKey as error:
            self._refuse("the key stands twice", error.args[0])
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            self._refuse(f"is not valid JSON: {reason}")
        if not isinstance(data, dict):
            self._refuse(f"must be a JSON object, got {_kind(data)}", hint=_ONE_A_LINE)
        return cast("dict[str, Any]", data)

    def _candidate(self, value: Any, where: str) -> Candidate:
        if isinstance(value, str):
            return Candidate(self._string(value, where))
        if not isinstance(value, dict):
            self._refuse(f"must be a string, or an object with a text, got {_kind(value)}", where)
        data = cast("dict[str, Any]", value)
        self._check_keys(data, _CANDIDATE_KEYS, required=("text",), what="candidate", where=f"{where}.")
        self._check_metadata(data, f"{where}.metadata")
        return Candidate(
            self._string(data["text"], f"{where}.text"),
            self._optional_string(data, "id", f"{where}.id"),
            self._optional_string(data, "generator", f"{where}.generator"),
            data.get("metadata") or {},
        )

    def _check_keys(
        self, data: Mapping[str, Any], known: Sequence[str], *, required: Sequence[str], what: str, where: str = ""
    ) -> None:
        # Unknown keys come first: a misspelt key also makes the right one missing.
        for key in data:
            if key not in known:
                close = get_close_matches(key.lower(), known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"the keys of a {what} are {', '.join(known)}"
                self._refuse("unknown key", where + short(key)[1:-1], hint)
        for key in required:
            if key not in data:
                self._refuse("is missing", where + key, f"a {what} needs {' and '.join(required)}")

    def _list(self, value: Any, where: str, *, optional: bool = True) -> list[Any]:
        if value is None and optional:
            return []
        if not isinstance(value, list):
            hint = "put it in [ ]" if isinstance(value, str) else None
            self._refuse(f"must be a list, got {'one string' if hint else _kind(value)}", where, hint)
        return cast("list[Any]", value)

    def _string(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            hint = "put it in quotes" if isinstance(value, bool | int | float) else None
            self._refuse(f"must be a string, got {_kind(value)}", where, hint)
        self._check_unicode(value, where)
        return value

    def _optional_string(self, data: Mapping[str, Any], key: str, where: str) -> str | None:
        return None if data.get(key) is None else self._string(data[key], where)

    def _check_metadata(self, data: Mapping[str, Any], where: str) -> None:
        value = data.get("metadata")
        if value is None:
            return
        if not isinstance(value, dict):
            self._refuse(f"must be an object, got {_kind(value)}", where)
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except ValueError:
            self._refuse("holds a number that is too large", where)
        self._check_unicode(text, where)

    def _check_unicode(self, text: str, where: str) -> None:
        if not is_unicode(text):
            hint = "the text was cut inside a character; repair or drop that character"
            self._refuse("is not valid Unicode: it holds a lone surrogate", where, hint)

    def _refuse(self, message: str, field: str | None = None, hint: str | None = None) -> NoReturn:
        raise TaskError(message, file=self.file, line=self.number, field=field, hint=hint) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"it has no {name}; write null")


def _kind(value: Any) -> str:
    """What JSON calls a value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    kinds = {dict: "an object", list: "a list", str: "a string"}
    return kinds.get(cast("type[Any]", type(value)), "a number")
