"""`debate ask`: one debate on the command line, shown as it goes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from debate.cli.flags import settings_flags
from debate.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from debate.cli.execution import Opened
    from debate.cli.live import Shown
    from debate.engine import Engine
    from debate.runtime.limits import Budget
    from debate.types import Task

_OF_RUNS = (
    *("limit", "format", "answers", "columns", "prefix_ids"),
    *("out", "store", "run", "cache", "max_concurrency", "engine_restarts"),
)
"""Settings of eval sets and of what is recorded, which one question has no use for."""


@settings_flags(without=_OF_RUNS)
def ask(
    question: Annotated[str, typer.Argument(help="The question, or the task; - reads it from standard input.")],
    answers: Annotated[
        list[str], typer.Argument(help="The answers to compare, each in quotation marks; - reads one from there.")
    ],
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings; flags override it.", rich_help_panel="Run")
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option(help="A text that belongs to the question. Repeatable.", rich_help_panel="Task")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="An answer known to be right, which the agents see.", rich_help_panel="Task")
    ] = None,
    best: Annotated[
        int | None,
        typer.Option(
            help="Which answer is right, counted from 1; no agent sees it, and the result says right or wrong.",
            rich_help_panel="Task",
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Also show the replies that could not be read.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the evaluation alone, as one line of a results.jsonl.")
    ] = False,
    **flags: Any,
) -> None:
    """Debate the answers to one question, and show every turn as it is taken.

    Nothing is recorded; `debate show FILE` reads what --json prints. With
    --model built-in, the bundled judge debates with its own profile and memories.
    Texts that begin with a hyphen stand behind all flags, after `--`.

    Example:
        debate ask "8+6?" "14." "27." --model built-in
        debate ask "Who wrote Emma?" "Jane Austen." "Emily Bronte." --backend openai --base-url URL --model M
    """
    from debate.cli import DONE, DONE_WITH_FAILURES
    from debate.cli.console import line, open_console, say, say_json
    from debate.cli.execution import Opened, end_as_on_interrupt
    from debate.cli.live import Shown
    from debate.cli.progress import money
    from debate.cli.render_debate import View, render_end, render_task
    from debate.config.settings import RunSettings
    from debate.evaluators.base import check_task
    from debate.jobs.survey import remarks
    from debate.jobs.unrecorded import unrecorded_engine, unrecorded_settings

    task = _task(question, answers, context or (), reference, best)
    opened = Opened.to_ask(unrecorded_settings(config, flags, RunSettings))
    check_task([opened.evaluator], task)
    model = next(iter(opened.backends.values())).model
    say(*(remark.strip(",") for remark in remarks(task, opened.evaluator, model)), err=True)
    budget = _budget(opened)
    end_as_on_interrupt()
    console = open_console()
    view = View.of(console, raw=raw)
    shown = None if as_json else Shown(console, view, opened.evaluator)
    if shown is not None:
        _print(console, render_task(task))
    on_turn = None if shown is None else shown.tell
    note = partial(say, err=True)
    with unrecorded_engine(opened.settings, opened.backends, note, on_turn=on_turn, budget=budget) as engine:
        engine.check(opened.evaluator)
        with nullcontext() if shown is None else shown:
            if opened.loads:
                _load(engine, opened.model, shown)
            evaluation = engine.evaluate(task, opened.evaluator)
        # Before the engine is closed, which may take its time.
        if shown is None:
            say_json(evaluation.to_json())
        else:
            _print(console, render_end(evaluation, view, task, is_told=shown.is_live))
            if budget.prices:
                console.print(line(f"cost {money(budget.cost_so_far)}", "dim"))
    raise typer.Exit(DONE if evaluation.status == "ok" else DONE_WITH_FAILURES)


def _print(console: Console, parts: Iterable[RenderableType]) -> None:
    for part in parts:
        console.print(part)


def _task(
    question: str, answers: Sequence[str], context: Sequence[str], reference: str | None, best: int | None
) -> Task:
    """The task of the command's texts; at most one of them is read from standard input.

    Raises:
        InputError: for what is no task; names the argument.
    """
    from debate.types import Task

    if [question, *answers].count("-") > 1:
        raise InputError("stands for standard input, which only one text can be read from", field="-")
    if best is not None and not 1 <= best <= len(answers):
        hint = "answers are counted from 1"
        raise InputError(f"must be from 1 to {len(answers)}, got {best}", field="--best", hint=hint)
    x, *texts = (sys.stdin.read().strip("\n") if text == "-" else text for text in (question, *answers))
    for n, text in enumerate((x, *texts)):
        if not text.strip():
            raise InputError("is empty", field=f"answer {n}" if n else "question", hint="is a variable not set?")
    return Task(x, texts, context=context, reference=reference, best=None if best is None else best - 1)


def _budget(opened: Opened) -> Budget:
    """What the debate may use.

    Raises:
        ConfigError: for a limit of the cost where a model has no price.
    """
    from debate.runtime.limits import Budget

    limits, prices = opened.settings, opened.settings.prices(opened.backends)
    budget = Budget(limits.max_tokens, limits.max_seconds, limits.max_cost, prices=prices)
    budget.check_prices(opened.backends)
    return budget


def _load(engine: Engine, model: str, shown: Shown | None) -> None:
    """Load a model, and say so."""
    from debate.cli.console import say

    began = time.monotonic()
    if shown is None or not shown.awaits(f"loading {model}"):
        say(f"loading {model}", err=True)
    engine.start()
    say(f"loaded {model} in {time.monotonic() - began:.0f} s", err=True)
