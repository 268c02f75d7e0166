"""`debate align`: teach a run's agents by people's labels, through their memories, and measure what they learn."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from debate.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from debate.cli.execution import Trust
    from debate.jobs.run_directory import RunDirectory
    from debate.meta_evaluation.align import Alignment, Learned, Plan, Teaching

_TRUST = "Import the modules and use the servers that the folder names, without asking."
_SIZES = "0,5,10,20,50"


def align(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.", metavar="RUN")],
    memory: Annotated[
        str,
        typer.Option(
            envvar="DEBATE_MEMORY",
            help="Memory store that is taught: a SQLite file or postgresql://USER@HOST/NAME. Made where there is none.",
        ),
    ],
    labels: Annotated[
        Path | None, typer.Option(help="Labels by `task_id`, in place of those in the tasks' metadata.")
    ] = None,
    cases: Annotated[bool, typer.Option(help="Teach the labeled cases, as episodic memories.")] = True,
    rules: Annotated[bool, typer.Option(help="Teach rules that the model distills from disagreements.")] = True,
    folds: Annotated[int, typer.Option(help="Into how many parts the labeled tasks are divided.")] = 5,
    sizes: Annotated[str, typer.Option(help="Numbers of labels that are tried.")] = _SIZES,
    seed: Annotated[int, typer.Option(help="Seed of the division, and of which labels are taught first.")] = 0,
    embedder: Annotated[str | None, typer.Option(help="Embedder of a new memory store; minilm by default.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taught.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Erase from the memory what this run taught.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help=_TRUST)] = False,
) -> None:
    """Teach the agents of a run by people's labels, and measure on held-out tasks what they learn.

    Labeled cases, and rules that the model distills from disagreements, become memories of the agents. First every
    labeled task is judged anew by agents who were taught labels of other tasks alone. Then the memory is written; a run
    with --memory recalls it. No task ever recalls its own label. The same command goes on where it stopped.

    Example:
        debate align runs/first --labels labels.jsonl --memory memory.sqlite
        debate align runs/first --memory memory.sqlite --forget
    """
    from debate.cli.execution import Trust
    from debate.jobs.run_directory import RunDirectory
    from debate.meta_evaluation.align import Teaching

    run, asked = RunDirectory.existing(folder), Trust(folder, trust, "align")
    if forget:
        _forget(run, memory)
        return
    teaching = Teaching(cases=cases, rules=rules, folds=folds, sizes=_numbers(sizes), seed=seed)
    _align(run, labels, teaching, memory, embedder, asked, dry_run=dry_run, as_json=as_json)


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"must be whole numbers such as {_SIZES}, got {text!r}", field="--sizes")
    return tuple(map(int, parts))


def _forget(run: RunDirectory, memory: str) -> None:
    from debate.cli.console import say
    from debate.cli.memory import existing_store
    from debate.memory.store import open_memory
    from debate.meta_evaluation.teaching import forget

    with open_memory(existing_store(memory)) as opened:
        say(f"{forget(opened, run.name):,} memories forgotten")


def _align(
    run: RunDirectory,
    labels: Path | None,
    teaching: Teaching,
    memory: str,
    embedder: str | None,
    asked: Trust,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    from debate.cli.console import say
    from debate.cli.execution import Opened, end_as_on_interrupt
    from debate.cli.progress import Progress
    from debate.memory.store import open_memory
    from debate.meta_evaluation.align import align, plan_alignment
    from debate.meta_evaluation.judged import read_run

    given = Opened.of(asked.settings_of(run, {})[1], run.path, asked)
    plan = plan_alignment(read_run(run.path, labels), given.evaluator, teaching)
    if dry_run:
        _print(_taught(plan), _preview(plan), as_json=as_json)
        return
    settings = given.settings
    limits = {"max_concurrency": settings.max_concurrency, "task_seconds": settings.task_seconds}
    end_as_on_interrupt()
    with Progress(model=given.model) as progress, open_memory(memory, embedder) as opened:
        try:
            found = align(plan, given.backends, opened, progress, settings.memory, **limits)
        except KeyboardInterrupt:
            progress.note("interrupted; the same command again goes on")
            raise
        place = opened.place
    _print(found, _page(found, run.path, place), as_json=as_json)
    if not as_json:
        say("To take it back: " + shlex.join(["debate", "align", str(run.path), "--memory", memory, "--forget"]))


def _print(value: object, page: Iterator[RenderableType], *, as_json: bool) -> None:
    from debate.cli.console import open_console, say_json
    from debate.evaluation import plain
    from debate.files import json_text

    if as_json:
        say_json(json_text(plain(value)))
        return
    console = open_console()
    for part in page:
        console.print(part)


def _taught(plan: Plan) -> dict[str, Any]:
    cases = [
        {"task_id": case.task.id, "fold": fold, "best": case.best, "by": case.by, "memories": case.texts}
        for case, fold in zip(plan.cases, plan.folds, strict=True)
    ]
    return {"cases": cases, "sizes": plan.sizes, "left_out": plan.left_out, "notes": plan.notes}


def _preview(plan: Plan) -> Iterator[RenderableType]:
    from debate.cli.console import heading, line, section, table
    from debate.meta_evaluation.teaching import to_distill

    yield heading(f"{plan.run.directory.path}: what {len(plan.cases):,} labels would teach")
    yield from _labels(len(plan.cases), plan.disagreements, plan.left_out, plan.notes)
    n, sizes = len(plan.cases), ", ".join(map(str, plan.sizes)) or "no"
    yield line(f"Measured with {sizes} labels, in {len(set(plan.folds))} folds: {n * len(plan.sizes):,} evaluations.")
    for name in plan.templates:
        yield section(name)
        if plan.teaching.cases:
            made = table("task", "fold", "memory", right=(1,))
            for case, fold in zip(plan.cases, plan.folds, strict=True):
                made.add_row(line(case.task.id), line(str(fold + 1)), line(case.texts[name]))
            yield made
        if plan.teaching.rules:
            replies = len(to_distill(plan.cases, name, "")[0])
            yield line(f"Rules: from {plan.disagreements:,} disagreements, read by the model in {replies:,} calls.")


def _labels(n: int, disagreements: int, left_out: Mapping[str, int], notes: Sequence[str]) -> Iterator[RenderableType]:
    from debate.cli.console import line

    yield line(f"{n:,} labeled tasks; on {disagreements:,} of them the panel chose otherwise than people.")
    if left_out:
        yield line(f"Left out: {', '.join(f'{count:,} ({reason})' for reason, count in left_out.items())}.")
    yield from (line(f"Note: {each}.", "yellow") for each in notes)


def _page(found: Alignment, folder: Path, memory: str) -> Iterator[RenderableType]:
    from debate.cli.console import heading, line, section
    from debate.cli.figures import figures, percent

    yield heading(f"{folder}: what {found.labels:,} labels teach")
    yield from _labels(found.labels, found.disagreements, found.left_out, found.notes)
    yield section(f"Agreement with people, on held-out tasks ({found.folds} folds)")
    yield figures(*map(_row, found.learned), headers=_HEADERS, right=(0, 3, 4, 5))
    yield line(f"Drawing a candidate agrees in {percent(found.chance)}. Differences are in points, to 0 labels.")
    last = found.learned[-1]
    if last.labels:
        where = "" if last.recalled else ": look at the memory settings of the personas"
        yield line(f"With {last.labels:,} labels, {percent(last.recalled)} of the turns recalled any{where}.")
    if found.groups:
        yield section(f"By group, with {last.labels:,} labels")
        yield figures(*starmap(_group, found.groups.items()), headers=_GROUPS, right=())
    yield section("Written")
    yield line(_conclusion(found))
    yield line(f"{memory}: {', '.join(f'{n:,} memories in {name}' for name, n in found.written.items())}.")
    for reason, count in found.unread.items():
        yield line(f"No rules came of {count:,} replies: {reason}.", "yellow")


_HEADERS = ("labels", "agreement", "difference", "won", "lost", "rules")


def _row(each: Learned) -> tuple[str, ...]:
    from debate.cli.figures import percent

    first = (f"{each.labels:,}", percent(each.agreement))
    if each.difference is None:
        return (*first, "", "", "", "")
    counts = (f"{each.won:,}", f"{each.lost:,}", f"{each.rules:,}")
    return (*first, percent(each.difference, sign=True), *counts)


_GROUPS = ("group", "before", "after", "difference")


def _group(name: str, learned: tuple[Learned, Learned]) -> tuple[str, ...]:
    from debate.cli.figures import percent

    before, after = learned
    change = "" if after.difference is None else percent(after.difference, sign=True)
    return (name or "-", percent(before.agreement), percent(after.agreement), change)


def _conclusion(found: Alignment) -> str:
    from debate.cli.figures import percent

    last = found.learned[-1]
    if last.difference is None:
        return "Nothing was measured: no number of labels but 0 was asked for."
    low, high = last.difference.interval
    change = f"{percent(last.difference, sign=True)} points on held-out tasks with {last.labels:,} labels"
    if low > 0:
        return f"The labels help: {change}."
    return f"The labels do harm: {change}." if high < 0 else f"No gain is shown: {change}."
