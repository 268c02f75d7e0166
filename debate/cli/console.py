"""The console the commands print on, and how text of unknown origin gets there unharmed.

Models, eval sets and profiles write what is shown here, so nothing of it may move the cursor, color the screen, turn
the writing direction, or be invisible. All output goes through the console of `open_console`, which escapes what would.
"""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Container, Iterable
from typing import Any, cast

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_BREAKS = [0x2028, 0x2029]
_DIRECTIONS = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_INVISIBLE = [
    *(0xAD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x200B, 0x3164, 0xFEFF, 0xFFA0),
    *range(0x2060, 0x2066),
    *range(0x206A, 0x2070),
    *range(0xFFF0, 0xFFFC),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE1000),
]
_SURROGATES = range(0xD800, 0xE000)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ONE_LINE = {code: _escape(code) for code in (*_CONTROLS, *_BREAKS, *_DIRECTIONS, *_INVISIBLE, *_SURROGATES)} | {
    0x09: " ",
    0x0A: "\\n",
}
_LINES = _ONE_LINE | {0x09: "    ", 0x0A: "\n"}
_JOINERS = re.compile("(?<![\u0600-\U0010ffff])[\u200c\u200d\ufe00-\ufe0f]")
"""Joiners and variation selectors where they shape nothing: Arabic, Indic and later scripts need them, and emoji."""
_LONGEST = {"name": 120, "excerpt": 300, "line": 1_000, "block": 100_000}
"""Characters of a text that are shown; wrapping millions takes minutes."""


def _escaped(text: str, table: dict[int, str]) -> str:
    if text.isascii() and text.isprintable():
        return text
    return _JOINERS.sub(lambda found: _escape(ord(found[0])), text).translate(table)


def escape_controls(text: str) -> str:
    r"""`text` on one line, with what is no visible character escaped: ESC becomes `\x1b`, a line feed `\n`."""
    return _escaped(text, _ONE_LINE)


def visible_lines(text: str) -> str:
    """`text` with its line ends kept and everything else that is no visible character escaped."""
    return _escaped(text.replace("\r\n", "\n").strip("\n"), _LINES)


class _SafeConsole(Console):
    """Escapes what is no visible character in everything it prints, however it was made; its own codes pass."""

    def render_str(self, text: str, *arguments: Any, **settings: Any) -> Text:
        """A plain string as it is shown, before its width is measured."""
        return super().render_str(visible_lines(text), *arguments, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of a renderable, with their texts escaped."""
        for each in super().render(renderable, options):
            yield each if each.control else Segment(_escaped(each.text, _LINES), each.style)


def open_console(*, stderr: bool = False) -> Console:
    """A console on the present stdout, or stderr, that reads no markup out of what it prints.

    It is 80 columns wide and without color when that is no terminal. What its encoding cannot say is escaped.
    """
    stream = cast("object", sys.stderr if stderr else sys.stdout)
    if isinstance(stream, io.TextIOWrapper):
        cast("io.TextIOWrapper", stream).reconfigure(errors="backslashreplace")
    return _SafeConsole(stderr=stderr, markup=False, emoji=False, highlight=False)


_PICTURE = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, "DejaVu Sans Mono", monospace; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""The picture of a terminal, as rich fills it in. Rich's own has fonts of a foreign server."""


def open_picture(columns: int) -> Console:
    """A console that prints nowhere, for `picture_of`; like `open_console` it escapes what is no visible character."""
    return _SafeConsole(
        record=True,
        file=io.StringIO(),
        width=columns,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        _environ={},
        markup=False,
        emoji=False,
        highlight=False,
    )


def picture_of(console: Console, title: str) -> str:
    """What was printed on a console of `open_picture`, as SVG that loads nothing; the same text gives the same SVG."""
    return console.export_svg(title=escape_controls(title), code_format=_PICTURE, unique_id="debate")


def say(*lines: str, err: bool = False) -> None:
    """Print lines of any origin, each as one line of any length."""
    for each in lines:
        open_console(stderr=err).print(Text(escape_controls(each)), soft_wrap=True)


def say_json(text: str) -> None:
    """Print JSON as one line. What is no visible character stands as JSON's own escape, so that it can be read back."""
    say("".join(_json_escape(each) if ord(each) in _ONE_LINE else each for each in text))


def _json_escape(character: str) -> str:
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]


class LogLines(logging.Handler):
    """Shows log records on the stderr of now."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record's lines."""
        say(*self.format(record).split("\n"), err=True)


def _shortened(text: str, kind: str) -> str:
    """The text, or its beginning and how long it is."""
    longest = _LONGEST[kind]
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"


def name(text: str) -> Text:
    """A name or id of any origin, short enough for a cell of a table."""
    return Text(escape_controls(_shortened(text, "name")))


def excerpt(text: str) -> Text:
    """The beginning of a text of any origin, for a cell of a table."""
    return Text(escape_controls(_shortened(text, "excerpt")))


def line(text: str, style: str = "") -> Text:
    """Text of any origin as one line."""
    return Text(escape_controls(_shortened(text, "line")), style=style)


def block(text: str, indent: int = 2, style: str = "") -> Padding:
    """Text of any origin as an indented block, wrapped between words."""
    return Padding(Text(visible_lines(_shortened(text, "block")), style=style), (0, 0, 0, indent))


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
