"""`debate label`: people label a random sample of a run, and what their labels say of all of it."""

from __future__ import annotations

import getpass
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from debate.cli.console import block, escape_controls, line, open_console, say, say_json, section, table
from debate.errors import ConfigError, InputError
from debate.files import json_text, write_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from debate.meta_evaluation.few_labels import CorrectedRun
    from debate.meta_evaluation.labeling import Item, LabelFile, Rating
    from debate.statistics import Estimate

T = TypeVar("T")
LABELS_FILE = "labels.jsonl"


def label(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    sample: Annotated[int | None, typer.Option(help="Number of tasks to draw.", min=1)] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the draw. A larger sample holds a smaller one of its seed.", show_default="0"),
    ] = None,
    stratify: Annotated[
        str | None, typer.Option(help="Draw as many tasks of each value of this key of the metadata, such as group.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who labels.", show_default="your login name")] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Ask for a score per component and candidate in place of the best.")
    ] = False,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", "--out", help="File of labels.", show_default=f"{LABELS_FILE} in the run's folder"),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a form for a browser here, instead of asking.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a form that is there.")] = False,
    join: Annotated[
        Path | None, typer.Option("--import", help="Add the labels of this file, as the form saves them.")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Show what the labels say of the whole run, corrected.")
    ] = False,
    passing: Annotated[
        float | None, typer.Option(help="For the summary: the score at which a candidate passes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
) -> None:
    """Label a random sample of a run, blind, and correct the figures of the whole run by it.

    Answers are saved one by one: the same command goes on where you stopped.

    Example:
        debate label runs/first --sample 50 --by anna
        debate label runs/first --sample 50 --by ben --html ben.html
        debate label runs/first --import labels-ben.jsonl
        debate label runs/first --summary
    """
    if [sample is not None, join is not None, summary].count(True) != 1:
        raise ConfigError("give one of --sample N, --import FILE and --summary", field="debate label")
    sampling = {
        "--seed": seed,
        "--stratify": stratify,
        "--by": by,
        "--scores": scores,
        "--html": html,
        "--force": force,
    }
    if sample is None:
        _refuse_without("--sample", sampling)
    if not summary:
        _refuse_without("--summary", {"--passing": passing, "--json": as_json})
    if html is None:
        _refuse_without("--html", {"--force": force})
    if html is not None and html.exists() and not force:
        raise ConfigError("exists already", file=html, hint="--force replaces it")
    path = labels or folder / LABELS_FILE
    if summary:
        _summarize(folder, path if labels or path.exists() else None, passing, as_json=as_json)
    elif join is not None:
        _join(folder, path, join)
    else:
        asked = _Sample(sample or 0, seed or 0, stratify or "", scores)
        _label(folder, path, by or _login_name(), asked, html)


def _refuse_without(mode: str, flags: Mapping[str, object]) -> None:
    for flag, value in flags.items():
        if value is not None and value is not False:
            raise ConfigError(f"is of use only with {mode}", field=flag, hint="leave it out here")


@dataclass(frozen=True, slots=True)
class _Sample:
    size: int
    seed: int
    stratify: str
    is_scored: bool


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise ConfigError("your login has no name", field="--by", hint="say who labels: --by NAME") from None


def _join(folder: Path, path: Path, join: Path) -> None:
    from debate.meta_evaluation.judged import read_run
    from debate.meta_evaluation.labeling import LabelFile

    unknown = read_run(folder, join).unknown_labels  # refuses what is no label of this run
    added, older = LabelFile(path).join(join, unknown)
    say(f"{path}: {added} labels added")
    if older:
        say(f"  left out {older}: the file has them already, or newer ones")
    if unknown:
        say(f"  left out {len(unknown)}: the run has no such tasks, {', '.join(unknown[:3])} among them")


def _label(folder: Path, path: Path, by: str, asked: _Sample, html: Path | None) -> None:
    from debate.meta_evaluation.judged import read_run
    from debate.meta_evaluation.labeling import LabelFile, blind_items, draw_sample, is_answered, rating_of

    file = LabelFile(path)
    file.repair()
    run = read_run(folder, path if path.exists() else None)
    sample = draw_sample(run, asked.size, asked.seed, asked.stratify, is_scored=asked.is_scored)
    held, rating = file.of(by), rating_of(run) if asked.is_scored else None
    left = {each: drawn for each, drawn in sample.items() if not is_answered(held.get(each, {}), rating)}
    items = blind_items(run, left, by)
    if items and html is not None:
        _write_form(items, by, rating, html, folder)
    elif items:
        _ask_all(items, file, by, rating)
    held = file.of(by)
    n_done = sum(is_answered(held.get(each, {}), rating) for each in sample)
    say(f"{n_done} of {len(sample)} tasks are labeled by {by} in {path}.")
    if n_done:
        given = "" if path == folder / LABELS_FILE else f" --labels {path}"
        say(f"`debate label {folder} --summary{given}` says what the labels tell of the whole run.")


def _write_form(items: Sequence[Item], by: str, rating: Rating | None, html: Path, folder: Path) -> None:
    from debate.meta_evaluation.labeling import html_form

    write_text(html, html_form(items, by, rating))
    say(f"{html}: a form with {len(items)} tasks for {by}. Open it in a browser; it loads nothing.")
    say(f"`debate label {folder} --import FILE` takes the file that its download button saves.")


# ---- in the terminal


def _ask_all(items: Sequence[Item], file: LabelFile, by: str, rating: Rating | None) -> None:
    n = 0
    while n < len(items):
        answer = _answered(items[n], f"Task {n + 1} of {len(items)}", rating)
        if answer == "q":
            return
        if isinstance(answer, str):
            n = max(n - 1, 0) if answer == "b" else n + 1
            continue
        file.add(items[n], answer, by)
        n += 1


def _answered(item: Item, title: str, rating: Rating | None) -> dict[str, Any] | str:
    """The label of one task, or one of the keys s, b and q."""
    from debate.meta_evaluation.labeling import best_of, scores_of

    _show(item, title)
    n, view = len(item.order), partial(_page, item, title)
    if rating is None:
        prompt = f"Best: 1 to {n}, = tie, s skip, b back, v view in a pager, q stop > "
        places = _typed(prompt, partial(_places, n=n), view)
        return places if isinstance(places, str) else best_of(item, places)
    scores: dict[str, list[float | None]] = {}
    say(f"For each component {n} numbers, in this order (- for none); or s skip, b back, v view in a pager, q stop.")
    for name in item.components or rating.components:
        given = _typed(f"{name}, {rating.range} > ", partial(_numbers, n=n, rating=rating), view)
        if isinstance(given, str):
            return given
        scores[name] = given
    return scores_of(item, scores)


def _typed(prompt: str, read: Callable[[str], T], view: Callable[[], None]) -> T | str:
    """What was typed, as it was read, or one of the keys s, b and q; the end of the input stops."""
    while True:
        try:
            text = input(escape_controls(prompt)).strip().lower()
        except EOFError:
            say("")
            return "q"
        if text in ("s", "b", "q"):
            return text
        if text == "v":
            view()
            continue
        try:
            return read(text)
        except ValueError as error:
            say(str(error))


def _places(text: str, n: int) -> list[int]:
    if text == "=":
        return list(range(n))
    places = text.replace(",", " ").split()
    if not places or not all(each.isdecimal() and 1 <= int(each) <= n for each in places):
        raise ValueError(f"Type a number from 1 to {n}, several that are equally good as in 1,2, or one of the keys.")
    return [int(each) - 1 for each in places]


def _numbers(text: str, n: int, rating: Rating) -> list[float | None]:
    parts = text.replace(",", " ").split()
    if len(parts) != n:
        raise ValueError(f"Type {n} numbers, with blanks between them, or one of the keys.")
    return [None if each == "-" else rating.checked(each) for each in parts]


def _page(item: Item, title: str) -> None:
    console = open_console()
    with console.pager():
        _show(item, title, console)


def _show(item: Item, title: str, console: Console | None = None) -> None:
    console = console or open_console()
    console.width = min(console.width, 100)
    texts = [("Input", item.x), *((f"Context {n}", text) for n, text in enumerate(item.context, 1))]
    texts += [] if item.reference is None else [("Reference answer", item.reference)]
    texts += [(f"Candidate {n}", text) for n, text in enumerate(item.candidates, 1)]
    console.print(section(title))
    for name, text in texts:
        console.print(line(name, "bold"))
        console.print(block(text))


# ---- the summary


def _summarize(folder: Path, labels: Path | None, passing: float | None, *, as_json: bool) -> None:
    from debate.evaluation import plain
    from debate.meta_evaluation.few_labels import corrected
    from debate.meta_evaluation.judged import read_run

    found = corrected(read_run(folder, labels), passing)
    if as_json:
        say_json(json_text(plain(found)))
        return
    if found.reason is not None:
        hint = f"`debate label {folder} --sample 50` draws and labels a random sample"
        raise InputError(found.reason, file=labels or folder, hint=hint)
    for part in render(found):
        open_console().print(part)


def render(found: CorrectedRun) -> Iterator[RenderableType]:
    """The figures of a run that labels of a sample corrected, for a console."""
    how = f" by {found.stratify}" if found.stratify else ""
    drawn = f", of tasks drawn at random{how}" if found.labeled < found.tasks else ""
    yield line(f"{found.labeled} of {found.tasks} tasks have a label{drawn}.")
    for stratum in found.strata:
        yield line(f"  {found.stratify} {stratum.name or '(none)'}: {stratum.labeled} of {stratum.tasks}")
    for warning in found.warnings:
        yield line(warning, "yellow")
    made = table("", "judge", "labels", "PPI++", "Rogan-Gladen", right=range(1, 5))
    for each in found.figures:
        rate = each.rogan_gladen
        cells = (_number(each.judge), _number(each.ppi.labels_alone), _estimate(each.ppi), _estimate(rate))
        made.add_row(line(f"{each.name} {each.of}".strip()), *map(line, cells))
    yield made
    yield line("The judge alone, the labels alone, and both together with intervals of 95 %.", "dim")
    reasons = {each.reason for figure in found.figures for each in (figure.ppi, figure.rogan_gladen) if each}
    yield from (line(f"-: {reason}.", "dim") for reason in sorted(reasons - {None}, key=str))


def _estimate(found: Estimate | None) -> str:
    if found is None:
        return ""
    low, high = found.interval
    return f"{_number(found.estimate)} [{_number(low)}, {_number(high)}]" if math.isfinite(found.estimate) else "-"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
