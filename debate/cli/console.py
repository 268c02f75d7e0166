"""The console the commands print on, and how text of unknown origin gets there unharmed.

Models, eval sets and profiles write what is shown here, so nothing of it may move the cursor, color the screen or
turn the writing direction.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Container
from typing import cast

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_BREAKS = [0x2028, 0x2029]
_DIRECTIONS = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_ONE_LINE = {code: _escape(code) for code in (*_CONTROLS, *_BREAKS, *_DIRECTIONS)} | {0x09: " ", 0x0A: "\\n"}
_LINES = _ONE_LINE | {0x09: "    ", 0x0A: "\n"}


def escape_controls(text: str) -> str:
    r"""`text` on one line, with control characters escaped: ESC becomes `\x1b`, a line feed `\n`."""
    return text.translate(_ONE_LINE)


def visible_lines(text: str) -> str:
    """`text` with its line ends kept and every other control character escaped."""
    return text.replace("\r\n", "\n").strip("\n").translate(_LINES)


def open_console() -> Console:
    """A console on the present stdout that reads no markup out of what it prints.

    It is 80 columns wide and without color when stdout is no terminal. What the encoding of stdout cannot say is
    escaped.
    """
    stdout = cast("object", sys.stdout)
    if isinstance(stdout, io.TextIOWrapper):
        cast("io.TextIOWrapper", stdout).reconfigure(errors="backslashreplace")
    return Console(markup=False, emoji=False, highlight=False)


def line(text: str, style: str = "") -> Text:
    """Text of any origin as one line."""
    return Text(escape_controls(text), style=style)


def block(text: str, indent: int = 2, style: str = "") -> Padding:
    """Text of any origin as an indented block, wrapped between words."""
    return Padding(Text(visible_lines(text), style=style), (0, 0, 0, indent))


def heading(title: str) -> Rule:
    """A horizontal line with a title at its left."""
    return Rule(Text(escape_controls(title), style="bold"), align="left", style="dim")


def section(title: str) -> Group:
    """A heading below an empty line."""
    return Group("", heading(title))


def table(*headers: str, right: Container[int] = ()) -> Table:
    """An empty table in the style of all commands; add rows of `Text`. The columns `right` are aligned right."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim")
    for n, header in enumerate(headers):
        made.add_column(Text(escape_controls(header)), justify="right" if n in right else "left")
    return made


def key_value_grid() -> Table:
    """An empty two-column grid: name, value."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
