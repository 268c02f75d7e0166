"""HTML for the output of a notebook's cell: no script, no link, nothing that is loaded, colors that fit any theme.

Every text passes through `text`, which escapes markup, and what is no visible character as the console does. Colors are
laid over the notebook's own background, and letters have the notebook's own color, so that they suit dark themes too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from debate.cli.console import escape_controls, visible_lines

_STYLE = """
.debate-eval{font-size:13px;line-height:1.45;max-width:72em;overflow-x:auto}
.debate-eval table{border-collapse:collapse;margin:.4em 0;font-size:12px}
.debate-eval :is(th,td){padding:.15em .6em;border-bottom:1px solid rgba(128,128,128,.3);text-align:left;\
vertical-align:top;color:inherit;background:none;max-width:36em;overflow-wrap:break-word;white-space:normal}
.debate-eval th{font-weight:600}
.debate-eval .n{text-align:right;font-variant-numeric:tabular-nums}
.debate-eval .heat{display:inline-table;margin-right:1.5em}
.debate-eval .heat td{text-align:center;font-variant-numeric:tabular-nums}
.debate-eval .heat :is(td,th):first-child{text-align:left}
.debate-eval .chip{border:1px solid rgba(128,128,128,.6);border-radius:1em;padding:0 .6em;margin:0 .3em;\
white-space:nowrap}
.debate-eval .ok{border-color:rgb(34,150,80)}
.debate-eval .partial{border-color:rgb(200,140,0)}
.debate-eval .failed{border-color:rgb(210,50,50);border-width:2px}
.debate-eval .title{font-size:15px;font-weight:600;overflow-wrap:anywhere}
.debate-eval .bar{display:inline-block;height:.7em;background:rgba(13,148,136,.75);border-radius:2px}
.debate-eval summary{cursor:pointer;padding:.15em 0}
.debate-eval details>:not(summary){margin-left:1.1em}
.debate-eval .said{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;margin:.2em 0 .5em 1.1em;\
max-width:64em}
.debate-eval td .said{margin:0}
.debate-eval .less{font-size:12px;opacity:.8}
"""
_LONGEST_LINE, _LONGEST_BLOCK = 300, 4_000
"""Characters of a text that stand in a notebook, which keeps what its cells show."""


def text(value: object, longest: int = _LONGEST_LINE) -> Markup:
    """Text of any origin on one line; the beginning of a long one."""
    return escape(escape_controls(_beginning(str(value), longest)))


def tag(name: str, *parts: object, cls: str = "", title: str = "", style: str = "") -> Markup:
    """An element. Parts that are no `Markup` are texts; `style` is ours, never from a text."""
    given = {"class": cls, "title": str(escape_controls(title)), "style": style}
    attributes = Markup("").join(Markup(' {}="{}"').format(*each) for each in given.items() if each[1])
    inside = Markup("").join(each if isinstance(each, Markup) else text(each) for each in parts)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), attributes, inside)


def shown(*parts: Markup) -> str:
    """The whole output of a cell."""
    return str(tag("div", tag("style", Markup(_STYLE)), *parts, cls="debate-eval"))


def said(words: str) -> Markup:
    """What somebody wrote, with its line ends."""
    return tag("div", escape(visible_lines(_beginning(words, _LONGEST_BLOCK))), cls="said")


def folded(summary: object, *parts: Markup) -> Markup:
    """Parts that are seen when the summary is clicked."""
    return tag("details", tag("summary", summary), *parts)


def chip(label: str, kind: str = "") -> Markup:
    """A word in a rounded frame."""
    return tag("span", label, cls=f"chip {kind}".strip())


def facts(*told: str) -> Markup:
    """Short statements in one line; the empty ones are left out."""
    return tag("div", " · ".join(filter(None, told)), cls="less")


def table(headers: Iterable[object], rows: Iterable[Sequence[object]], right: Iterable[int] = ()) -> Markup:
    """A table; cells are texts or `Markup`, the columns `right` are aligned right."""
    numbers = set(right)

    def cells(kind: str, row: Iterable[object]) -> Markup:
        return tag("tr", *(tag(kind, each, cls="n" if n in numbers else "") for n, each in enumerate(row)))

    body = Markup("").join(cells("td", row) for row in rows)
    return tag("table", tag("thead", cells("th", headers)), tag("tbody", body))


def heat_cell(score: float, share: float, why: str = "") -> Markup:
    """A cell of a heat map: its number, on a color as strong as `share` is high.

    Args:
        score: NaN where there is none.
        share: from 0 to 1, where 1 is best.
        why: shown on pointing at the cell.
    """
    if math.isnan(score):
        return tag("td", "–", title=why or "no score")
    return tag("td", f"{score:.3g}", title=why, style=f"background:rgba(13,148,136,{0.08 + 0.57 * share:.2f})")


def bar(share: float) -> Markup:
    """A bar as long as `share`, from 0 to 1; none for NaN."""
    return Markup("") if math.isnan(share) else tag("span", cls="bar", style=f"width:{max(share, 0.01) * 6:.2f}em")


def _beginning(words: str, longest: int) -> str:
    return words if len(words) <= longest else f"{words[:longest]}... ({len(words):,} characters)"
