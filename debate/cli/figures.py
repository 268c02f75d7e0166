"""How figures are written on the pages of the commands that judge the judge."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.table import Table

from debate.cli.console import line, table
from debate.statistics import Estimate
from debate.statistics.intervals import NOWHERE


def percent(found: Estimate | float, *, sign: bool = False, digits: int = 1) -> str:
    """A share: `62.0 % [49.6, 73.2]`; a difference of shares, with `sign`, in points: `+3.1 [-2.0, 8.2]`."""
    return _written(found, 100, digits, sign, "" if sign else " %")


def number(found: Estimate | float, *, sign: bool = False) -> str:
    """A number: `0.52 [0.41, 0.62]`; `-` with the reason where it is undefined."""
    return _written(found, 1, 2, sign, "")


def _written(found: Estimate | float, factor: float, digits: int, sign: bool, unit: str) -> str:
    if isinstance(found, Estimate):
        value, ends, reason = found.estimate, found.interval, found.reason
    else:
        value, ends, reason = found, NOWHERE, None
    if math.isnan(value):
        return f"- ({reason})" if reason else "-"
    text = f"{value * factor + 0.0:{'+' if sign else ''}.{digits}f}{unit}"
    if math.isnan(ends[0]):
        return f"{text} (no interval: {reason})" if reason else text
    return f"{text} [{', '.join(f'{end * factor + 0.0:.{digits}f}' for end in ends)}]"


def figures(*rows: tuple[str, ...], headers: tuple[str, ...] = ("", "", "n"), right: tuple[int, ...] = (2,)) -> Table:
    """A table of figures, a row for each."""
    made = table(*headers, right=right)
    made.columns[0].overflow = "fold"
    for row in rows:
        made.add_row(*map(line, row))
    return made


def unjoined(unknown: Sequence[str]) -> Iterator[str]:
    """A line that counts the labels of tasks that the run does not have; none where there are none."""
    if unknown:
        shown = ", ".join(unknown[:3])
        yield f"Labels of {len(unknown):,} tasks are left out, which the run does not have: {shown}."
