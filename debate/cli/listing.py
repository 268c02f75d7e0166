"""The tasks of a run as a list: which are on it, in which order, how many there are of each kind, and their rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import groupby
from operator import itemgetter
from typing import Literal

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from debate.cli.console import line, name, table
from debate.cli.figures import percent
from debate.cli.render_debate import chosen, row_style
from debate.errors import InputError
from debate.evaluation import Evaluation, leaves, top_of_scale
from debate.statistics import wilson
from debate.store.standings import OUTCOMES, Outcome, Standing
from debate.types import UNSPOKEN, Task

MOST_ROWS = 20
"""Rows that are shown where not all are asked for."""
_MOST_SCORES = 8
"""Candidates whose scores fit in a row."""
Sort = Literal["cv", "margin"]
_SHORTEST_ID = 8
"""Columns that a task's id has at least."""
_GAP = 2
"""Columns between two others."""
_STOPPED = {
    "settled": "settled",
    "silent": "silent",
    "converged": "agreed",
    "stop_rule": "rule",
    "max_rounds": "all",
    "token_budget": "budget",
    "time_budget": "time",
}
"""Why there were no more rounds, short enough for 80 columns."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Which tasks are listed, and in which order.

    Attributes:
        outcomes: only tasks that came out in one of these ways; all without any.
        groups: only tasks of these groups; all without any.
        key: the key of the tasks' metadata that names their groups.
        sort: by the highest CV or by the smallest margin first; None is by group, and in each the wrong ones first.
    """

    outcomes: tuple[Outcome, ...] = ()
    groups: tuple[str, ...] = ()
    key: str = "group"
    sort: Sort | None = None

    def of(self, standings: Sequence[Standing]) -> list[Standing]:
        """Those of a run's tasks that are listed, first what is shown where there is not room for all.

        Raises:
            InputError: for what the run cannot be asked.
        """
        self._check(standings)
        found = [each for each in standings if self._has(each)]
        return sorted(found, key=self._rank)

    def arranged(self, shown: Sequence[Standing], groups: Iterable[str | None] = ()) -> Sequence[Standing]:
        """What is shown in the order in which it is shown: by group, unless it is sorted by a number.

        groups: in their order; those that are left out come last.
        """
        if self.sort is not None:
            return shown
        in_order = dict.fromkeys([*groups, *(each.group for each in shown)])
        places = {group: place for place, group in enumerate(in_order)}
        return sorted(shown, key=lambda each: places[each.group])

    def told(self, listed: Sequence[Standing], standings: Sequence[Standing]) -> str:
        """How many tasks are listed, of how many, how they came out, and in which order they stand."""
        is_all = not self.outcomes and not self.groups
        counts = ", ".join(_counted(listed, any(each.verdict for each in standings)))
        some = f"{len(standings):,}" if is_all else f"{len(listed):,} of {len(standings):,}"
        about = [f"{some} task{'' if len(standings) == 1 else 's'}" + (f": {counts}" if counts else "")]
        if not any(each.verdict for each in standings):
            about.append("none has a label")
        labeled = [each.verdict for each in listed if each.verdict]
        if labeled and not self.outcomes:
            about.append(f"{percent(wilson(labeled.count('right'), len(labeled)), digits=0)} right")
        if not listed and self.outcomes:
            about.append(f"none is {' or '.join(self.outcomes)}")
        if self.groups:
            about.append(f"{self.key} {', '.join(self.groups)}")
        if self.sort is not None:
            about.append("highest CV first" if self.sort == "cv" else "smallest margin first")
        return "; ".join(about)

    def _has(self, standing: Standing) -> bool:
        if self.groups and standing.group not in self.groups:
            return False
        is_a_tie = "tied" in self.outcomes and standing.is_tied
        return not self.outcomes or is_a_tie or standing.outcome in self.outcomes

    def _rank(self, standing: Standing) -> tuple[float, float]:
        number = {"cv": -standing.cv, "margin": standing.margin, None: 0.0}[self.sort]
        return (math.inf if math.isnan(number) else number), OUTCOMES.index(standing.outcome)

    def _check(self, standings: Sequence[Standing]) -> None:
        if "wrong" in self.outcomes and not any(each.verdict for each in standings):
            hint = "give `best` in the eval set and start the same run again: labels are taken without asking a model"
            raise InputError("no task of the run has a label that could be missed", field="--wrong", hint=hint)
        known = dict.fromkeys(each.group for each in standings if each.group is not None)
        if self.key != "group" and standings and not known:
            raise InputError(f"no task of the run has {self.key!r} in its metadata", field="--by")
        for group in self.groups:
            if group not in known:
                close = get_close_matches(group, known, n=3) or list(known)[:5]
                hint = (
                    f"there is {', '.join(close)}" if close else "the metadata of its tasks name none; or give --by KEY"
                )
                raise InputError(f"no task of the run is of the {self.key} {group!r}", field="--group", hint=hint)
        numbers = [each.cv if self.sort == "cv" else each.margin for each in standings]
        if self.sort is not None and all(map(math.isnan, numbers)):
            raise InputError(f"no task of the run has a {self.sort}", field="--sort")


def _counted(listed: Sequence[Standing], has_labels: bool) -> Iterator[str]:
    """The tasks by how they came out, the right ones first."""
    counts = Counter(each.outcome for each in listed)
    words = {"decided": "unlabeled" if has_labels else "decided"}
    for outcome in ("right", "wrong", "tied", "unscored", "decided"):
        if counts[outcome]:
            yield f"{counts[outcome]:,} {words.get(outcome, outcome)}"


# ---- their rows


@dataclass(frozen=True, slots=True)
class Listed:
    """What a row is made of.

    Attributes:
        standing: how the task came out.
        best: indices of the right candidates, by the label.
        evaluation: the task's.
    """

    standing: Standing
    best: Sequence[int]
    evaluation: Evaluation


def listed_rows(
    standings: Iterable[Standing], read: Callable[[str], Iterator[tuple[Task | None, Evaluation]]]
) -> list[Listed]:
    """The rows of some tasks; `read` gives the task and evaluation of an id."""
    found = ((each, *next(read(each.task_id))) for each in standings)
    return [Listed(each, () if task is None else task.best, evaluation) for each, task, evaluation in found]


def tasks_as_rows(rows: Sequence[Listed], width: int, sort: Sort | None = None) -> Iterator[RenderableType]:
    """A row per task, below the name of its group; without the columns of which no row has anything.

    width: columns of the terminal.
    """
    headers, cells = _columns(rows, sort)
    widths = [max(map(cell_len, column)) for column in zip(headers, *(map(str, row) for row in cells), strict=True)]
    others = sum(widths[1:]) + _GAP * len(widths[1:])
    widths[0] = min(widths[0], max(_SHORTEST_ID, width - others))
    yield _part(headers, (), widths)
    groups = [each.standing.group for each in rows] if sort is None else []
    if not any(groups):
        yield _part(headers, cells, widths)
        return
    for n, (group, part) in enumerate(groupby(zip(groups, cells, strict=True), key=itemgetter(0))):
        yield Text("\n- " if n else "- ").append_text(name(group or "no group"))
        yield _part(headers, [row for _, row in part], widths)


def _part(headers: Sequence[str], rows: Sequence[Sequence[Text]], widths: Sequence[int]) -> Table:
    """Rows of the table, or its head where there are none: all parts have columns of the same widths."""
    made = table(*headers, right=[n for n, header in enumerate(headers) if header in ("CV", "margin")])
    made.padding, made.pad_edge, made.show_header = (0, 1, 0, 0), False, not rows
    for column, width in zip(made.columns, widths, strict=True):
        column.width, column.no_wrap = width, True
    made.columns[0].no_wrap, made.columns[0].overflow = False, "fold"
    for row in rows:
        made.add_row(*row)
    return made


def _columns(rows: Sequence[Listed], sort: Sort | None) -> tuple[list[str], list[list[Text]]]:
    """The headers, and the cells of each row."""
    has_labels = any(each.best for each in rows)
    has_rounds = any(each.evaluation.rounds_run or each.evaluation.stop_reason in UNSPOKEN for each in rows)
    tops = {top_of_scale(each.evaluation) for each in rows}
    headers = ["task", "selected", *(["people", "verdict"] if has_labels else [])]
    headers += [f"scores{''.join(tops)}" if len(tops) == 1 else "scores", *(["CV", "rounds"] if has_rounds else [])]
    headers += ["margin"] if sort == "margin" else []
    cells: list[list[Text]] = []
    for each in rows:
        evaluation, style = each.evaluation, row_style(each.evaluation, each.best)
        row = [name(evaluation.task_id), line(chosen(evaluation), style)]
        if has_labels:
            row += [line(",".join(str(j + 1) for j in each.best)), line(evaluation.verdict(each.best) or "", style)]
        row.append(_scores(evaluation, top_of_scale(evaluation) if len(tops) > 1 else ""))
        if has_rounds:
            last = [member.cv[-1] for member in leaves(evaluation) if member.cv]
            row += [line(_number(max(last, default=math.nan))), _rounds(evaluation)]
        cells.append([*row, *([line(_number(each.standing.margin))] if sort == "margin" else [])])
    return headers, cells


def _scores(evaluation: Evaluation, top: str) -> Text:
    """The scores, the best of them bold; of many candidates the best alone."""
    scores, best = evaluation.scores.tolist(), evaluation.keep_best(1)
    if len(scores) > _MOST_SCORES:
        return line(f"{_number(scores[best[0]], 1) if best else '-'}{top}, best of {len(scores)}")
    highest = None if not best else scores[best[0]]
    told = [Text(_number(score, 1), "bold" if score == highest else "") for score in scores]
    return Text(" ").join(told).append(top)


def _rounds(evaluation: Evaluation) -> Text:
    """How many rounds there were and why no more, of each member where they differ; that something failed."""
    reasons = dict.fromkeys(each.stop_reason for each in leaves(evaluation) if each.stop_reason)
    why = "/".join(_STOPPED.get(reason, reason) for reason in reasons)
    told = f"{evaluation.rounds_run} {why}".rstrip()
    if evaluation.status == "failed":
        return line(told, "red")
    return Text(told).append(", partial", "yellow") if evaluation.status == "partial" else line(told)


def _number(value: float, digits: int = 2) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
