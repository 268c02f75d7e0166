"""What each kind of value is as HTML: an evaluation, a list of them, a task, a transcript, a run, and its figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import singledispatch
from itertools import islice
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from debate.cli.figures import percent
from debate.cli.render_debate import chosen
from debate.errors import DebateError
from debate.evaluation import Evaluation, Evaluations
from debate.loaded import LoadedRun
from debate.meta_evaluation.compare import Comparison
from debate.meta_evaluation.people import right_verdicts
from debate.meta_evaluation.trust import TrustFigures
from debate.notebook.debates import evaluation_parts, task_parts, transcript_parts
from debate.notebook.html import chip, facts, folded, shown, table, tag
from debate.report import Section, Tabular
from debate.types import Task, Transcript

if TYPE_CHECKING:
    from debate.store.queries import Totals

_MOST_ROWS, _MOST_SCORES = 20, 6


@singledispatch
def html_of(value: object) -> str:
    """A value as HTML for the output of a notebook's cell. Raises TypeError for a value of another kind."""
    raise TypeError(f"a {type(value).__name__} has no HTML")


@html_of.register
def _(value: Evaluation) -> str:
    return shown(*evaluation_parts(value))


@html_of.register
def _(value: Evaluations) -> str:
    statuses = Counter(each.status for each in value)
    chips = (chip(f"{n:,} {status}", status) for status, n in sorted(statuses.items()))
    calls, tokens = (sum(getattr(each.usage, name) for each in value) for name in ("calls", "total_tokens"))
    head = _title(f"{len(value):,} evaluations", *chips)
    return shown(head, facts(f"{calls:,} calls, {tokens:,} tokens"), _rows(value, len(value)))


@html_of.register
def _(value: Task) -> str:
    return shown(_title(value.id, chip("task")), *task_parts(value))


@html_of.register
def _(value: Transcript) -> str:
    return shown(transcript_parts(value))


@html_of.register
def _(value: LoadedRun) -> str:
    return shown(*_run(value))


@html_of.register
def _(value: TrustFigures) -> str:
    from debate.cli.render_agreement import page

    return shown(_title(f"{value.run}: how far it agrees with people"), *_sections(page(value)))


@html_of.register
def _(value: Comparison) -> str:
    from debate.cli.compare import comparison_page

    return shown(_title(f"{value.a.run} (A) and {value.b.run} (B)"), *_sections(comparison_page(value)))


def _title(words: str, *chips: Markup) -> Markup:
    return tag("div", tag("span", words, cls="title"), *chips)


def _rows(evaluations: Iterable[Evaluation], count: int, verdicts: Iterable[str | None] = ()) -> Markup:
    """A row for each evaluation, up to some number of them."""
    told = [*verdicts]
    verdict = ["verdict"] if any(told) else []
    rows: list[list[object]] = []
    for n, each in zip(range(_MOST_ROWS), evaluations, strict=False):
        row = [each.task_id, each.evaluator, chip(each.status, each.status), _scores(each), chosen(each)]
        rows.append([*row, *([told[n] or "-"] if verdict else []), each.rounds_run or "-", each.stop_reason or "-"])
    headers = ("task", "evaluator", "status", "scores", "selected", *verdict, "rounds", "stopped")
    more = facts(f"{count - _MOST_ROWS:,} more: .to_dataframe() has all") if count > _MOST_ROWS else Markup("")
    return table(headers, rows, [6 if verdict else 5]) + more


def _scores(evaluation: Evaluation) -> str:
    told = ["-" if math.isnan(score) else f"{score:.2f}" for score in evaluation.scores[:_MOST_SCORES].tolist()]
    return ", ".join([*told, *(["..."] if len(evaluation.scores) > _MOST_SCORES else [])])


def _run(run: LoadedRun) -> Iterator[Markup]:
    """A run's counts, and its first tasks. What cannot be read is said in its place: a display raises nothing."""
    yield _title(str(run.directory.path), chip("run"))
    try:
        with run.directory.open_store() as store:
            record = store.read(run.directory.name)
            totals, first = record.totals(), [*islice(run.labeled(record.results()), _MOST_ROWS)]
            if run.labels is not None and first:
                totals = replace(totals, accuracy=right_verdicts(run.judged.tasks))
    except DebateError as error:
        yield tag("div", f"{error}")
        return
    yield facts(*_models(run), *_totals(totals))
    yield _rows((each for _, each in first), totals.n_evaluated, [each.verdict(task.best) for task, each in first])


def _models(run: LoadedRun) -> Iterator[str]:
    models: dict[str, Any] = (run.directory.identity or {}).get("models", {})
    if models:
        yield f"by {', '.join(models)}"


def _totals(totals: Totals) -> Iterator[str]:
    yield f"{totals.n_evaluated:,} of {totals.tasks:,} tasks evaluated"
    for status in ("partial", "failed"):
        if count := totals.statuses.get(status):
            yield f"{count:,} {status}"
    if totals.accuracy.labeled:
        yield f"{percent(totals.accuracy.share)} of {totals.accuracy.labeled:,} labeled right"
    if totals.rounds:
        yield f"{totals.rounds / totals.n_evaluated:.2f} rounds on average"
    yield f"{totals.usage.calls:,} calls, {totals.usage.total_tokens:,} tokens"


def _sections(page: Iterable[Any]) -> Iterator[Markup]:
    """What a command prints, section by section; the first is open."""
    from debate.cli.report import sections_of

    for n, section in enumerate(sections_of(page)):
        parts = [_part(section, m) for m in range(len(section.parts))]
        title = tag("b", section.title)
        yield tag("div", title, *parts) if n == 0 else folded(title, *parts)


def _part(section: Section, n: int) -> Markup:
    part = section.parts[n]
    if isinstance(part, Tabular):
        return table(part.headers, part.rows, part.right)
    return tag("div", part.text)
