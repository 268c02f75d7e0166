"""`debate check`: what is in an eval set, and what a run of it would ask, without a model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from debate.cli.evalsets import EVALSETS, evalset_under, read_stdin
from debate.cli.flags import settings_flags

if TYPE_CHECKING:
    from debate.config.settings import RunSettings
    from debate.dataset.evalset import EvalSet
    from debate.dataset.several import EvalSets
    from debate.jobs.estimate import Estimate
    from debate.jobs.survey import Survey

_MOST_NAMES = 12
"""Groups and generators that are listed."""


@settings_flags()
def check(
    evalsets: Annotated[list[Path], typer.Argument(help=EVALSETS, metavar="EVALSET...")],
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings; flags override it.", rich_help_panel="Run")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel="Run")] = False,
    **flags: Any,
) -> None:
    """Read eval sets as `debate run` would, with the same flags, and say what is in them and what a run would ask.

    Nothing is loaded, asked or written. The first fault ends it with file, line and field, and the exit code 2. Calls
    and tokens are found by rendering the run's own prompts, with stand-ins for the replies: at least, where the agents
    agree at once and say next to nothing, and at most, where they never agree and say all that they may. Replies that
    cannot be read, and are asked for again, come on top.

    Example: debate check tasks.jsonl --profile general --rounds 2
    """
    from debate.bundled_judge import model_folder
    from debate.config.settings import RunSettings
    from debate.jobs.estimate import estimate
    from debate.jobs.survey import Survey

    settings = RunSettings.read(config, flags)
    evaluator = settings.make_evaluator()
    with _opened(settings, evalsets) as (evalset, names):
        survey = Survey(names, model_folder(settings.model or ""))
        found = estimate(evaluator, survey.read(evalset, evaluator))
    prices = settings.prices_asked(sorted(evaluator.models))
    cost = found.cost(prices) if found is not None and prices else None
    notes = survey.notes
    if settings.memory is not None:
        notes.append("what agents recall from the memory is not counted among the prompt tokens")
    if as_json:
        _print_json(survey, found, cost, notes)
    else:
        _print(survey, found, cost, notes)


@contextmanager
def _opened(settings: RunSettings, paths: Sequence[Path]) -> Generator[tuple[EvalSet | EvalSets, dict[str, str]]]:
    """The eval set of some files, and what files are called; standard input is kept while the block lasts, as -."""
    from debate.dataset.piped import STDIN
    from debate.errors import InputError

    with TemporaryDirectory() as folder:
        kept = [read_stdin(paths).keep(Path(folder)) if path == STDIN else path for path in paths]
        names = {str(file): str(path) for file, path in zip(kept, paths, strict=True)}
        try:
            yield evalset_under(settings, kept), names
        except InputError as error:
            if error.file is None or (name := names.get(error.file, error.file)) == error.file:
                raise
            raise type(error)(error.problem, file=name, line=error.line, field=error.field, hint=error.hint) from None


def _print_json(survey: Survey, found: Estimate | None, cost: tuple[float, float] | None, notes: Sequence[str]) -> None:
    from debate.cli.console import say

    told = {
        "tasks": survey.tasks,
        "files": [each._asdict() for each in survey.files],
        "candidates": {str(n): count for n, count in sorted(survey.candidates.items())},
        "generators": dict(survey.generators.most_common()),
        "labeled": survey.labeled,
        "labels": dict(survey.labels.most_common()),
        "groups": dict(survey.groups.most_common()),
        "references": survey.references,
        "contexts": survey.contexts,
        "components": survey.components,
        "notes": notes,
        "estimate": None if found is None else asdict(found),
        "cost": None if cost is None else dict(zip(("least", "most"), cost, strict=True)),
    }
    say(*json.dumps(told, indent=2).splitlines())


def _print(survey: Survey, found: Estimate | None, cost: tuple[float, float] | None, notes: Sequence[str]) -> None:
    from debate.cli.console import key_value_grid, line, open_console

    grid = key_value_grid()
    for name, value in (*_held(survey), *_asked(found, cost, survey.tasks)):
        grid.add_row(line(name), line(value))
    console = open_console()
    console.print(grid)
    for note in notes:
        console.print(line(note, "yellow"), soft_wrap=True)


def _held(survey: Survey) -> Iterator[tuple[str, str]]:
    """What the tasks hold, as rows of names and values."""
    for n, file in enumerate(survey.files):
        yield "" if n else "eval set", f"{file.path}: {_of(file.tasks, 'task')}, format {file.format}"
    n_candidates = sum(n * count for n, count in survey.candidates.items())
    least, most = min(survey.candidates), max(survey.candidates)
    each = f"{least} each" if least == most else f"{least} to {most} each, {n_candidates / survey.tasks:.1f} on average"
    yield "tasks", f"{survey.tasks:,}"
    yield "candidates", f"{n_candidates:,}: {each}"
    if survey.generators:
        yield "generators", _listed(survey.generators)
    yield "labels", f"{survey.labeled:,} of {_of(survey.tasks, 'task')}{_in_kinds(survey.labels)}"
    if survey.groups:
        yield "groups", _listed(survey.groups)
    parts = (("reference", survey.references), ("context", survey.contexts), ("own components", survey.components))
    for name, count in parts:
        if count:
            yield name, f"in {count:,} of {_of(survey.tasks, 'task')}"


def _asked(found: Estimate | None, cost: tuple[float, float] | None, n_tasks: int) -> Iterator[tuple[str, str]]:
    """What a run would ask, as rows of names and values."""
    if found is None:
        yield "calls", "not known: the evaluator cannot be rehearsed"
        return
    least, most = found.least, found.most
    calls = _range(least.calls, most.calls)
    yield "calls", f"{calls}, {_range(round(least.calls / n_tasks), round(most.calls / n_tasks))} per task"
    if not most.calls:
        return
    yield "prompt tokens", f"about {_range(_rounded(least.prompt_tokens), _rounded(most.prompt_tokens))}"
    yield "reply tokens", f"about {_range(_rounded(least.completion_tokens), _rounded(most.completion_tokens))}"
    if cost is not None:
        from debate.cli.progress import money

        yield "cost", f"about {' to '.join(dict.fromkeys(map(money, cost)))}"
    of = "" if found.rehearsed == n_tasks else f", from {found.rehearsed} of the tasks"
    yield "", f"at four characters per token{of}; asking again is not counted"


def _of(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _range(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _rounded(n: int) -> int:
    """To two digits, which is as many as an estimate has."""
    return round(n, 2 - len(str(n)))


def _in_kinds(labels: Counter[str]) -> str:
    return f": {', '.join(f'{count:,} {kind}' for kind, count in labels.most_common())}" if labels else ""


def _listed(names: Counter[str]) -> str:
    """The most frequent names with their counts, and how many more there are."""
    from debate.cli.console import escape_controls

    shown = [f"{escape_controls(name[:60])} {count:,}" for name, count in names.most_common(_MOST_NAMES)]
    more = len(names) - len(shown)
    return ", ".join([*shown, *([f"and {more:,} more"] if more else [])])
