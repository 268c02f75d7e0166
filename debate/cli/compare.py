"""`debate compare`: two runs on the same tasks, or the models within one run. The figures are in `meta_evaluation`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from debate.cli.console import key_value_grid, line, open_console, say_json, section
from debate.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from debate.meta_evaluation.compare import Comparison, Regression, Verdicts
    from debate.meta_evaluation.models import ModelRanking
    from debate.statistics import Accuracy, Estimate

_NAMED = 5
"""Ids of tasks that are named where some are left out."""
_GROUPS = 20
"""Groups that are shown."""


def compare(
    run_a: Annotated[Path, typer.Argument(help="Folder of the run from which differences are counted.")],
    run_b: Annotated[Path | None, typer.Argument(help="Folder of the run that is compared with it.")] = None,
    models: Annotated[
        bool, typer.Option("--models", help="Rank the models that wrote the candidates of one run instead.")
    ] = False,
    labels: Annotated[Path | None, typer.Option(help="A file of labels, in place of those in the eval set.")] = None,
    by: Annotated[
        str | None, typer.Option(help="Key in the tasks' metadata to show verdicts by.", show_default="group")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Key in the tasks' metadata that names tasks which resemble each other.")
    ] = None,
    regressions: Annotated[int, typer.Option(help="How many tasks that got worse are shown.", min=0)] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare two runs on the tasks that both have: what got worse, what got better, and whether that can be chance.

    Needs no labels to show what changed. With --models it ranks the models of one run's candidates.

    Example:
        debate compare runs/before runs/after --labels labels.jsonl
        debate compare runs/first --models
    """
    from debate.evaluation import plain
    from debate.files import json_text

    if models:
        found, page = _of_models(run_a, run_b=run_b, labels=labels, by=by, cluster=cluster)
    else:
        found, page = _of_runs(run_a, run_b, labels, by=by, cluster=cluster, regressions=regressions)
    if as_json:
        say_json(json_text(plain(found)))
        return
    console = open_console()
    for part in page:
        console.print(part)


def _of_models(run: Path, **others: object) -> tuple[ModelRanking, Iterator[RenderableType]]:
    from debate.meta_evaluation.judged import read_run
    from debate.meta_evaluation.models import rank_models

    for name, value in others.items():
        if value is not None:
            flag = "RUN_B" if name == "run_b" else f"--{name}"
            raise InputError("is of no use with --models, which ranks within one run", field=flag)
    found = rank_models(read_run(run))
    return found, _models_page(found)


def _of_runs(
    run_a: Path, run_b: Path | None, labels: Path | None, **settings: Any
) -> tuple[Comparison, Iterator[RenderableType]]:
    from debate.meta_evaluation.compare import compare
    from debate.meta_evaluation.judged import read_run

    if run_b is None:
        hint = f"`debate compare {run_a} RUN_B`, or with --models for the models within {run_a}"
        raise InputError("is missing: give a second run", field="RUN_B", hint=hint)
    found = compare(read_run(run_a, labels), read_run(run_b, labels), **settings)
    return found, comparison_page(found)


# ---- two runs


def comparison_page(found: Comparison) -> Iterator[RenderableType]:
    """Regressions first: they are what a reader acts on."""
    from debate.cli.render_control import arms_table, remarks

    yield _facts(_about(found))
    if found.regressions:
        shown, lost = len(found.regressions), found.verdicts.lost
        yield section(f"Right in A, not in B: {f'the {shown} surest of ' if shown < lost else ''}{lost:,}")
        for each in found.regressions:
            yield from _regression(each)
    if found.verdicts.labeled:
        yield section("By the labels")
        yield _facts(_by_labels(found))
        if len(found.groups) > 1:
            yield ""
            yield _groups(found)
    yield section("With or without labels")
    yield _facts(_changes(found))
    yield section("What it took")
    yield _cost(found)
    if found.control is not None:
        yield section("What debating is worth: B is the control of A")
        yield arms_table(found.control)
        yield from map(line, remarks(found.control))


def _facts(rows: Iterable[tuple[str, str]]) -> Table:
    facts = key_value_grid()
    for key, told in rows:
        facts.add_row(line(key), line(told))
    return facts


def _about(found: Comparison) -> Iterator[tuple[str, str]]:
    yield "A", found.a.run
    yield "B", found.b.run
    for n, setting in enumerate(found.settings or ("all alike",)):
        yield "" if n else "settings", setting
    yield "tasks", f"{found.tasks:,} in both, each asked the same"
    apart = {"in A alone": found.only_a, "in B alone": found.only_b, "not the same task in B": found.other_content}
    for why, ids in apart.items():
        if ids:
            yield "", f"{len(ids):,} {why}, left out: {_some(ids)}"
    if found.relabeled:
        yield "", f"{found.relabeled:,} labeled otherwise in B; the labels in A count for both"
    if found.unknown_labels:
        yield "", f"{len(found.unknown_labels):,} labels are of no task here: {_some(found.unknown_labels)}"
    if found.verdicts.labeled:
        yield "in short", _in_short(found)
    else:
        yield "labels", "none: --labels FILE joins them, and then this page says what got better and worse"


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED]) + (f", and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else "")


def _in_short(found: Comparison) -> str:
    verdicts, (low, high) = found.verdicts, found.verdicts.difference.interval
    is_sure = found.test.p_value < 0.05 and (low > 0 or high < 0)
    which = "better" if verdicts.won > verdicts.lost else "worse"
    said = f"B is {which}, more than chance explains" if is_sure else "these tasks do not tell A and B apart"
    return f"{said}: {_record(verdicts)} ({verdicts.labeled:,} of {found.tasks:,} tasks labeled)"


def _record(verdicts: Verdicts) -> str:
    same = verdicts.labeled - verdicts.won - verdicts.lost
    return f"{verdicts.won:,} won, {verdicts.lost:,} lost, {same:,} the same"


def _regression(each: Regression) -> Iterator[RenderableType]:
    above = "" if math.isnan(each.margin) else f", wrong by {100 * each.margin:.0f} % of the scale"
    tied = ", which tie" if len(each.choice_b) > 1 else above
    group = f" ({each.group})" if each.group else ""
    yield line(f"{each.task_id}{group}: right is {_places(each.best)}", "bold")
    yield line(f"  A chose {_places(each.choice_a)}. {each.reasons[0]}")
    yield line(f"  B chose {_places(each.choice_b)}{tied}. {each.reasons[1]}", "red")
    for show in each.show:
        command = line(f"  {show}", "dim")
        command.no_wrap, command.overflow = True, "ignore"  # so that it can be copied
        yield command


def _places(choice: Sequence[int]) -> str:
    """Candidates by their number in the task, from 1."""
    return ", ".join(str(j + 1) for j in choice) or "none"


def _by_labels(found: Comparison) -> Iterator[tuple[str, str]]:
    from debate.cli.figures import percent

    verdicts = found.verdicts
    yield "accuracy of A", _accuracy(found.a.accuracy)
    yield "accuracy of B", _accuracy(found.b.accuracy)
    yield "B against A", _record(verdicts)
    clusters = f" in {verdicts.difference.clusters:,} clusters by {found.clusters!r}" if found.clusters else ""
    yield "B - A", f"{percent(verdicts.difference, sign=True)} points, {verdicts.labeled:,} tasks{clusters}"
    yield "McNemar, exact", f"p = {found.test.p_value:.3g}"
    finds = f"{100 * verdicts.detectable:.1f} points or more in 80 % of cases; smaller differences may be missed"
    yield "so many tasks find", "- (no task tells A and B apart)" if math.isnan(verdicts.detectable) else finds


def _accuracy(accuracy: Accuracy) -> str:
    from debate.cli.figures import percent

    apart = "".join(f", {n:,} {name}" for name, n in (("tied", accuracy.tied), ("unscored", accuracy.unscored)) if n)
    right = f"{accuracy.right:,} of {accuracy.labeled:,} right{apart}; chance {percent(accuracy.chance)}"
    return f"{percent(accuracy.share)}: {right}"


def _groups(found: Comparison) -> Table:
    from debate.cli.figures import figures, percent

    largest = sorted(found.groups.items(), key=lambda item: -item[1].labeled)
    rows = [
        (
            group or "none",
            f"{each.labeled:,}",
            *(percent(right / each.labeled) for right in (each.right_a, each.right_b)),
            f"{each.won:,}",
            f"{each.lost:,}",
            percent(each.difference, sign=True),
        )
        for group, each in largest[:_GROUPS]
    ]
    made = figures(*rows, headers=(found.by, "tasks", "A", "B", "won", "lost", "B - A"), right=(1, 2, 3, 4, 5, 6))
    if len(largest) > _GROUPS:
        made.caption = f"and {len(largest) - _GROUPS:,} smaller ones: --json has them"
    return made


def _changes(found: Comparison) -> Iterator[tuple[str, str]]:
    from debate.cli.figures import number, percent

    scores, scale = found.scores, found.scores.scale
    on = f"on {scale.low:g} to {scale.high:g}" + ("" if scale.higher_is_better else ", the lowest best")
    yield "another selection", f"{percent(found.reselected)} of {found.reselected.n:,} tasks"
    yield "score, B - A", f"{number(scores.difference, sign=True)} {on}, {scores.difference.n:,} scores"
    yield "moved by", f"{number(scores.absolute)} on average"
    yield "rank correlation", f"{number(scores.correlation)} over all candidates (Spearman)"
    yield "ordered alike", f"{percent(scores.alike)} of {scores.alike.n:,} pairs of one task"
    for n, each in enumerate(scores.largest):
        yield "" if n else "largest", f"{each.a:.2f} -> {each.b:.2f}, candidate {each.candidate + 1} of {each.task_id}"
    missing = f"scores: {scores.only_b:,} in A alone, {scores.only_a:,} in B alone, {scores.neither:,} in both"
    yield "unscored", missing if scores.only_a or scores.only_b or scores.neither else "none"


def _cost(found: Comparison) -> Table:
    from debate.cli.figures import figures

    used, statuses = ([getattr(side, name) for side in (found.a, found.b)] for name in ("usage", "statuses"))
    counts: dict[str, list[int]] = {
        "calls": [each.calls for each in used],
        "prompt tokens": [each.prompt_tokens for each in used],
        "decoded tokens": [each.completion_tokens for each in used],
        "tasks without a choice": [found.a.unscored, found.b.unscored],
        "tasks failed": [each.get("failed", 0) for each in statuses],
        "tasks failed in part": [each.get("partial", 0) for each in statuses],
    }
    rows = [(title, f"{a:,}", f"{b:,}", f"{b / a:.2f}" if a else "-") for title, (a, b) in counts.items()]
    return figures(*rows, headers=("", "A", "B", "B / A"), right=(1, 2, 3))


# ---- models


def _models_page(found: ModelRanking) -> Iterator[RenderableType]:
    from debate.cli.figures import figures, percent

    rows = [
        (
            each.model,
            _elo(each.elo),
            _elo(each.elo_at_equal_length),
            percent(each.won),
            f"{each.elo.n:,}",
            f"{each.characters:,.0f}",
        )
        for each in found.models
    ]
    yield figures(*rows, headers=("model", "Elo", "at equal length", "won", "games", "characters"), right=(3, 4, 5))
    yield ""
    yield line(f"{found.games:,} pairs of candidates in {found.tasks:,} tasks, by the scores of {found.run}.")
    yield line("Elo 0 is the mean of these models; a lead of 100 points wins 64 % of the games.")
    yield line(f"One standard deviation of length brings {_elo(found.length)} points.")
    if found.unscored or found.unnamed:
        yield line(f"Left out: {found.unscored:,} pairs without a score, {found.unnamed:,} candidates without a model.")
    if found.reason:
        yield line(f"A small ridge holds the points together, do not read them as measured: {found.reason}.", "yellow")


def _elo(found: Estimate) -> str:
    low, high = found.interval
    ends = found.reason or "no interval" if math.isnan(low) else f"{low:.0f}, {high:.0f}"
    return f"{found.estimate:+.0f} [{ends}]"
