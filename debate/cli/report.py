"""`debate report`: a run as one HTML file for a browser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from debate.meta_evaluation.judged import JudgedRun
    from debate.report import Link, Part, Section
    from debate.report.html import Cell

Links = dict["str | tuple[str, str]", "Link | None"]
"""What stands in place of a text, or of a text under a header of a table; None for what is left out."""
_LABELS = "Labels by `task_id`, in place of those in the tasks' metadata."
_ONLY = "Put only the tasks into the file that this filter shows, such as wrong or tied; once or several times."
_PROMPTS = "Put what the models were sent into the file, too: the prompts, made again from the run's record."


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    other: Annotated[Path | None, typer.Argument(help="A second run of the same tasks, to stand beside it.")] = None,
    labels: Annotated[Path | None, typer.Option(help=_LABELS)] = None,
    by: Annotated[str | None, typer.Option(help="Figures also for each value of this key of the metadata.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=_ONLY, metavar="FILTER")] = None,
    prompts: Annotated[bool, typer.Option("--prompts", help=_PROMPTS)] = False,
    out: Annotated[Path | None, typer.Option(help="The file; report.html in the run's folder by default.")] = None,
) -> None:
    """Write a run as one HTML file: figures, a table of all tasks to search and filter, and every debate.

    The file needs no server and loads nothing, so that it can be sent to others.

    Example:
        debate report runs/first --out first.html
        debate report runs/first runs/second --out both.html
    """
    from debate.cli.console import say
    from debate.meta_evaluation.judged import read_run
    from debate.report import write_report

    first, second = read_run(run, labels), None if other is None else read_run(other, labels)
    file = out or run / "report.html"
    sections = tuple(sections_of(*_page(first, second, by)))
    written = write_report(first, file, sections, only=only or (), other=second, cost=_cost(run), prompts=prompts)
    say(f"{file}: {written.evaluations:,} evaluations, {written.size / 2**20:.1f} MiB")
    if written.is_large:
        say("A browser takes long to open so large a file: --only FILTER keeps some of the tasks.")


def worth_of(run: JudgedRun) -> tuple[Section, ...]:
    """What `debate agree` prints of a run, as sections of a report."""
    return tuple(sections_of(*_page(run, None, None)))


def _cost(run: Path) -> str:
    """What the run cost, where the price of every model is known."""
    from debate.cli.progress import money
    from debate.errors import ConfigError
    from debate.loaded import load

    try:
        return money(load(run).cost())
    except ConfigError:
        return ""


def _page(run: JudgedRun, other: JudgedRun | None, by: str | None) -> tuple[Iterator[RenderableType], Links]:
    """What `debate compare` says of two runs, or `debate agree` of one; and what in it leads to a place of the report.

    Those are the groups, and the commands by which a terminal shows a task.
    """
    from debate.cli.compare import comparison_page
    from debate.cli.render_agreement import page
    from debate.meta_evaluation.compare import compare
    from debate.meta_evaluation.trust import agree
    from debate.report import Link, address

    if other is not None:
        found = compare(run, other, by=by)
        shown: Links = {each.show[1]: None for each in found.regressions}
        shown |= {each.show[0]: Link("both debates", address(t=each.task_id)) for each in found.regressions}
        return comparison_page(found), shown
    figures = agree(run, by)
    links: Links = {
        each.command: Link(each.task_id, address(t=each.task_id))
        for each in (*figures.disagreements, *figures.score_gaps)
    }
    if figures.by == "group":
        links |= {(each.value or "(none)", "group"): Link(each.value or "(none)", address(g=each.value))
                  for each in figures.groups}  # fmt: skip
    return page(figures), links


def sections_of(parts: Iterable[Any], links: Links | None = None) -> Iterator[Section]:
    """A page that is made for a terminal, as sections of a report.

    links: the cells of its tables that lead to tasks.
    """
    from debate.report import Section

    title, found = "", list["Part"]()
    for each in _flat(parts):
        if (heading := _title(each)) is None:
            found += _part(each, links or {})
            continue
        if found:
            yield Section(title, tuple(found))
        # a heading above all else is the run, which is the report's own
        title, found = heading if title or found else "Labels", []
    yield Section(title, tuple(found))


def _flat(parts: Iterable[Any]) -> Iterator[Any]:
    from rich.console import Group

    for each in parts:
        if isinstance(each, Group):
            yield from _flat(each.renderables)
        else:
            yield each


def _title(part: Any) -> str | None:
    from rich.rule import Rule

    return str(part.title) if isinstance(part, Rule) else None


def _part(part: Any, links: Links) -> list[Part]:
    from rich.table import Table

    from debate.report import Paragraph

    if isinstance(part, Table):
        return [_table(part, links)]
    text = links.get(str(part).strip(), str(part))
    return [Paragraph(text)] if text else []


def _table(made: Table, links: Links) -> Part:
    from debate.report import Tabular

    headers = tuple(str(column.header) for column in made.columns)
    cells = [[_cell(str(cell), header, links) for cell in column.cells]
             for header, column in zip(headers, made.columns, strict=True)]  # fmt: skip
    right = tuple(n for n, column in enumerate(made.columns) if column.justify == "right")
    return Tabular(headers, tuple(zip(*cells, strict=True)), right)


def _cell(text: str, header: str, links: Links) -> Cell:
    return links.get((text, header)) or links.get(text) or text
