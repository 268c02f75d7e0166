"""How figures are written on the pages of the commands that judge the judge."""

from __future__ import annotations

import math

from rich.table import Table

from debate.cli.console import line, table
from debate.statistics import Estimate


def percent(found: Estimate | float, *, sign: bool = False) -> str:
    """A share: `62.0 % [49.6, 73.2]`; a difference of shares, with `sign`, in points: `+3.1 [-2.0, 8.2]`."""
    return _written(found, 100, 1, sign, "" if sign else " %")


def number(found: Estimate | float, *, sign: bool = False) -> str:
    """A number: `0.52 [0.41, 0.62]`; `-` with the reason where it is undefined."""
    return _written(found, 1, 2, sign, "")


def _written(found: Estimate | float, factor: float, digits: int, sign: bool, unit: str) -> str:
    value, ends, reason = found, (math.nan, math.nan), None
    if isinstance(found, Estimate):
        value, ends, reason = found.estimate, found.interval, found.reason
    if math.isnan(value):
        return f"- ({reason})" if reason else "-"
    text = f"{value * factor + 0.0:{'+' if sign else ''}.{digits}f}{unit}"
    if math.isnan(ends[0]):
        return f"{text} (no interval: {reason})" if reason else text
    return f"{text} [{', '.join(f'{end * factor + 0.0:.{digits}f}' for end in ends)}]"


def figures(*rows: tuple[str, ...], headers: tuple[str, ...] = ("", "", "n"), right: tuple[int, ...] = (2,)) -> Table:
    """A table of figures, a row for each."""
    made = table(*headers, right=right)
    for row in rows:
        made.add_row(*map(line, row))
    return made
