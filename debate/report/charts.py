"""Small pictures of a run's figures, as SVG that needs no script, prints, and says its numbers in words.

Colors are classes of the page's style sheet, because its policy allows no style in an element.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 280, 90
_MARGIN = 14
"""Above the highest bar, for its number."""
_FEW = 8
"""Up to so many bars have their number written above them."""
_NAMED = 4
"""Up to so many bars have their label written below them; of more, the first and the last."""


def bars(title: str, values: Sequence[float], labels: Sequence[str], *, links: Sequence[str] = ()) -> Markup:
    """A bar for each value, with its label and its number as a tooltip and for screen readers.

    Args:
        title: what the picture shows, in a few words.
        values: from 0; the largest reaches the upper end.
        labels: below the bars; of more than four, the first and the last are written out.
        links: where each bar leads; empty for bars that lead nowhere.
    """
    highest = max([*values, 1e-9])
    width = _WIDTH / max(len(values), 1)
    drawn = Markup("")
    for n, (value, label) in enumerate(zip(values, labels, strict=True)):
        height = value / highest * (_HEIGHT - _MARGIN)
        bar = Markup(
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
        if len(values) <= _FEW:
            bar += _text((n + 0.5) * width, _HEIGHT - height - 3, "middle", f"{value:,.3g}")
        drawn += _linked(bar, links[n], f"{label}: {value:,.4g}") if links else bar
    said = ", ".join(f"{label}: {value:,.4g}" for label, value in zip(labels, values, strict=True))
    return _picture(title, said, drawn + _below(labels), is_linked=bool(links))


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


def _linked(drawn: Markup, link: str, said: str) -> Markup:
    return Markup('<a href="{link}" aria-label="{said}">{drawn}</a>').format(link=link, said=said, drawn=drawn)


def _text(x: float, y: float, anchor: str, text: str) -> Markup:
    made = Markup('<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>')
    return made.format(x=x, y=y, anchor=anchor, text=text)


def _below(labels: Sequence[str]) -> Markup:
    if len(labels) <= _NAMED:
        width = _WIDTH / max(len(labels), 1)
        return Markup("").join(
            _text((n + 0.5) * width, _HEIGHT + 13, "middle", label) for n, label in enumerate(labels)
        )
    return _ends(labels)


def _ends(labels: Sequence[str]) -> Markup:
    return _text(0, _HEIGHT + 13, "start", labels[0]) + _text(_WIDTH, _HEIGHT + 13, "end", labels[-1])


def _picture(title: str, said: str, drawn: Markup, *, is_linked: bool = False) -> Markup:
    """A figure; one with links is no image to a screen reader, which would not find them in it."""
    return Markup(
        '<figure><figcaption>{title}</figcaption><svg viewBox="-8 -8 {w} {h}" role="{role}" aria-label="{said}">'
        "{drawn}</svg></figure>"
    ).format(
        title=title,
        w=_WIDTH + 16,
        h=_HEIGHT + 26,
        role="group" if is_linked else "img",
        said=escape(f"{title}. {said}"),
        drawn=drawn,
    )
