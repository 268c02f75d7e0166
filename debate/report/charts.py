"""Small pictures of a run's figures, as SVG that needs no script, prints, and says its numbers in words.

Colors are classes of the page's style sheet, because its policy allows no style in an element.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 280, 90


def bars(title: str, values: Sequence[float], labels: Sequence[str], *, top: float | None = None) -> Markup:
    """A bar for each value, with its label and its number as a tooltip and for screen readers.

    Args:
        title: what the picture shows, in a few words.
        values: from 0.
        labels: below the bars; the first and the last are written out.
        top: the value at the upper end; None is the largest.
    """
    highest = max([top or 0.0, *values, 1e-9])
    width = _WIDTH / max(len(values), 1)
    drawn = Markup("")
    for n, (value, label) in enumerate(zip(values, labels, strict=True)):
        height = value / highest * (_HEIGHT - 4)
        drawn += Markup(
            '<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
            "<title>{label}: {value}</title></rect>"
        ).format(
            x=n * width + 1,
            y=_HEIGHT - height,
            width=max(width - 2, 1),
            height=height,
            label=label,
            value=f"{value:,.4g}",
        )
    said = ", ".join(f"{label}: {value:,.4g}" for label, value in zip(labels, values, strict=True))
    return _picture(title, said, drawn + _ends(labels))


def reliability(title: str, bins: Sequence[tuple[float, float, int]]) -> Markup:
    """What was promised against what came, with the line on which both are equal.

    Args:
        title: what the picture shows.
        bins: (promised, observed, tasks) from 0 to 1, from low to high.
    """
    largest = max([1, *(n for _, _, n in bins)])
    drawn = Markup('<line class="level" x1="0" y1="{h}" x2="{w}" y2="0"/>').format(h=_HEIGHT, w=_WIDTH)
    for promised, observed, n in bins:
        drawn += Markup(
            '<circle class="bar" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"><title>said {p:.2f}, right {o:.2f}, {n} tasks'
            "</title></circle>"
        ).format(
            x=promised * _WIDTH, y=(1 - observed) * _HEIGHT, r=2 + 5 * (n / largest) ** 0.5, p=promised, o=observed, n=n
        )
    said = "; ".join(f"said {promised:.2f}, right {observed:.2f} of {n}" for promised, observed, n in bins)
    return _picture(title, said, drawn + _ends(["said 0", "said 1"]))


def _ends(labels: Sequence[str]) -> Markup:
    if not labels:
        return Markup("")
    text = Markup('<text class="tick" x="{x}" y="{y}" text-anchor="{anchor}">{label}</text>')
    first = text.format(x=0, y=_HEIGHT + 13, anchor="start", label=labels[0])
    last = text.format(x=_WIDTH, y=_HEIGHT + 13, anchor="end", label=labels[-1]) if len(labels) > 1 else Markup("")
    return first + last


def _picture(title: str, said: str, drawn: Markup) -> Markup:
    return Markup(
        '<figure><figcaption>{title}</figcaption><svg viewBox="0 -2 {w} {h}" role="img" aria-label="{said}">'
        "{drawn}</svg></figure>"
    ).format(title=title, w=_WIDTH, h=_HEIGHT + 20, said=escape(f"{title}. {said}"), drawn=drawn)
