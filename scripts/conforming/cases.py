"""Reads a file of cases.

    {"cases": [{"id": "got-sort-3", "function": "num_errors", "source": "...", "input": {...},
                "expected": {"returns": 1}, "tags": ["upstream-bug"]}, ...]}

`expected` holds `raises` with the name of an exception, or one value under `returns` (or another name). NaN and
infinite numbers are written as strings. It does not know the functions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from debate.errors import ConfigError

Input = Mapping[str, Any]
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class Case:
    """What a function was given, and what it did."""

    id: str
    function: str
    input: Input
    raises: str | None
    """Name of the exception, or None when it returned."""
    returns: Any
    tags: tuple[str, ...] = ()
    source: str = ""

    @property
    def is_bug(self) -> bool:
        """Whether the case records a fault of the original."""
        return any(tag.endswith("-bug") for tag in self.tags)


def read_cases(path: Path) -> list[Case]:
    """All cases of a file, in order.

    Raises:
        ConfigError: naming the file and the case, when it cannot be read.
    """
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=path) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"is not JSON: {error}", file=path, line=getattr(error, "lineno", None)) from None
    rows: Any = cast("dict[str, Any]", data).get("cases") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not rows:
        raise ConfigError("must be a list of at least one case", file=path, field="cases")
    return [_case(row, n, path) for n, row in enumerate(cast("list[Any]", rows))]


def numbers(values: Any) -> list[float | None]:
    """Numbers of an input: NaN from its word, None for what is no number."""
    known = (_WORDS.get(value, value) if isinstance(value, str) else value for value in values)
    return [value if isinstance(value, int | float) else None for value in known]


def _case(row: Any, n: int, path: Path) -> Case:
    where = f"cases.{n}"
    if not isinstance(row, dict):
        raise ConfigError("must be an object", file=path, field=where)
    members = cast("dict[str, Any]", row)
    for key, kind in (("id", str), ("function", str), ("input", dict), ("expected", dict)):
        if not isinstance(members.get(key), kind):
            raise ConfigError(
                "is missing" if key not in members else "is of the wrong kind", file=path, field=f"{where}.{key}"
            )
    expected: dict[str, Any] = members["expected"]
    values = [value for key, value in expected.items() if key not in ("raises", "message")]
    if len(values) != (0 if "raises" in expected else 1):
        raise ConfigError("must hold either `raises` or one value", file=path, field=f"{where}.expected")
    return Case(
        id=members["id"],
        function=members["function"],
        input=members["input"],
        raises=expected.get("raises"),
        returns=_plain(values[0]) if values else None,
        tags=tuple(members.get("tags", ())),
        source=str(members.get("source", "")),
    )


def _plain(value: Any) -> Any:
    """A value with NaN and the infinities as numbers."""
    if isinstance(value, str):
        return _WORDS.get(value, value)
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
