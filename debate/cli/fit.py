"""`debate fit`: weights and a temperature for a run's debates, from what people say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from debate.meta_evaluation.fitting import Calibration, Fitted, Weights
    from debate.meta_evaluation.judged import JudgedRun
    from debate.meta_evaluation.settling import SettleChoice
    from debate.statistics import Bin

SettleBy = Literal["p_best", "margin", "agreement"]
SETTLE_ERROR = (
    "Also choose from which certainty on a silent round may settle a task, at this error of what it settles: 0.05. The "
    "run's silent rounds must be recorded, by --silent-readouts or --settle."
)
SETTLE_BY = "What the certainty of a silent round is measured by."
_OUT = "Write a config file with the run's settings and what is better on held-out tasks."


def fit(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    labels: Annotated[Path | None, typer.Option(help="File of labels, in place of those in the tasks.")] = None,
    out: Annotated[Path | None, typer.Option(help=_OUT)] = None,
    folds: Annotated[int, typer.Option(help="Each is predicted by a fit on the others.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the division into folds.")] = 0,
    settle_error: Annotated[float | None, typer.Option(help=SETTLE_ERROR, min=0.001, max=0.999)] = None,
    settle_by: Annotated[SettleBy, typer.Option(help=SETTLE_BY)] = "p_best",
    force: Annotated[bool, typer.Option("--force", help="Write what was fitted even if it is no better.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Fit the weights of components and agents to people's labels, and calibrate the winner's probability.

    What is shown is held out: every task is predicted by a fit on other tasks. Without a gain there, the old weights
    are to be kept, and nothing is written. The config file makes the same run's results anew, without a call.

    Example: debate fit runs/first --labels labels.jsonl --out fitted.yaml
    """
    import json

    from debate.cli.console import say
    from debate.evaluation import plain
    from debate.meta_evaluation.fitting import fit as fitted
    from debate.meta_evaluation.judged import read_run
    from debate.meta_evaluation.settling import choose_settling

    run = read_run(folder, labels)
    found = fitted(run, folds, seed, force=force)
    weights = found.components.new if "weights" in found.settings(force=force) else None
    chosen = None if settle_error is None else choose_settling(run, settle_error, settle_by, weights=weights)
    if as_json:
        say(json.dumps(plain(found) if chosen is None else {**plain(found), "settling": plain(chosen)}))
    else:
        _print(found, run)
        if chosen is not None:
            print_settling(chosen)
            if weights is not None and chosen.rule is not None:
                say("The weights were fitted to the same labels, so check the promise on others: debate agree RUN.")
    if out is not None:
        settings = found.settings(force=force)
        if chosen is not None and chosen.rule is not None:
            settings["settle"] = chosen.rule
        write_settings(settings, run, out, f"fitted to {found.labeled} labeled tasks", force=force)


def print_settling(chosen: SettleChoice) -> None:
    """From which certainty on silent rounds may settle tasks, and what is promised."""
    from debate.cli.console import heading, line, open_console

    console = open_console()
    console.print("", heading("what a silent round may settle"))
    for text in _settling(chosen):
        console.print(line(text), soft_wrap=True)


def _settling(chosen: SettleChoice) -> list[str]:
    found = chosen.found
    held_to = "people's labels" if chosen.reference == "labels" else "what the debates chose in the end"
    if chosen.rule is None:
        return [
            f"No threshold of {chosen.measure} can be promised on {found.n:,} tasks, held to {held_to}: {found.reason}."
        ]
    return [
        f"--settle {chosen.rule} settles {chosen.settled:,} of {chosen.tasks:,} tasks "
        f"({chosen.settled / chosen.tasks:.0%}) without a debate.",
        f"Held to {held_to}, {found.wrong:,} of the {found.kept:,} among {found.n:,} are wrong, so at most "
        f"{100 * found.bound:.1f} % with {100 * found.confidence:.0f} % confidence. "
        f"What is promised is {100 * found.error:g} %.",
        "The promise holds for tasks that are drawn as these were (Learn then Test, arXiv 2110.01052). It assumes that "
        "a surer choice is not more often wrong, and it says nothing of tasks of another kind.",
    ]


def write_settings(settings: Mapping[str, object], run: JudgedRun, out: Path, how: str, *, force: bool) -> None:
    """Write the run's settings with those that were found, and say what makes the results anew."""
    import shlex

    import yaml

    from debate.cli.console import say
    from debate.errors import ConfigError
    from debate.files import write_text

    if not settings:
        say("Nothing is written: nothing is better on held-out tasks. --force writes it all the same.", err=True)
        return
    if out.exists() and not force:
        raise ConfigError("exists already", file=out, hint="--force replaces it")
    directory = run.directory
    kept = {name: value for name, value in directory.kept_settings.items() if name != "out"}
    about = f"# {', '.join(settings)} {how} of {directory.path}\n"
    write_text(out, about + yaml.safe_dump({**kept, **settings}, sort_keys=False, allow_unicode=True))
    say(f"{out}: {', '.join(settings)}", err=True)
    if not kept:
        say("The run was begun in Python: give its evaluator these settings there.", err=True)
        return
    about = directory.evalset or {}
    evalsets = [str(path) for path in (about.get("path", "EVALSET"), *about.get("more", ()))]
    command = ["debate", "run", *evalsets, "--config", str(out), "--out", str(directory.path)]
    anew = "This goes on with the run; what is recorded is not asked again:"
    if "settle" not in settings:
        anew = "This makes the run's results anew, without a call:"
    say(anew, f"  {shlex.join(command)}", err=True)


def _print(found: Fitted, run: JudgedRun) -> None:
    from debate.cli.console import heading, line, open_console

    console = open_console()
    for text in _facts(found, run):
        console.print(line(text), soft_wrap=True)
    parts = (("components", found.components), ("agents", found.agents))
    for title, weights in parts:
        if weights is not None:
            console.print("", heading(f"weights of {title}"), _table(weights))
            console.print(line(_worth(weights, found)), soft_wrap=True)
            console.print(line(_verdict(title, weights)), soft_wrap=True)
    if found.calibration is None:
        console.print(line("The winner's probability cannot be calibrated: fewer than 10 tasks have one winner and a "
                           "label that names the right candidates."), soft_wrap=True)  # fmt: skip
    else:
        console.print("", heading("probability of the winner"), _reliability(found.calibration))
        for text in _calibrated(found.calibration):
            console.print(line(text), soft_wrap=True)


def _facts(found: Fitted, run: JudgedRun) -> list[str]:
    from debate.cli.figures import unjoined

    goal = "pairs of candidates" if found.measure == "pairs" else "people's scores"
    texts = [f"Fitted to {goal} of {found.labeled:,} labeled tasks of {found.tasks:,}, in {found.folds} folds."]
    if found.unscored:
        texts.append(f"{found.unscored:,} more are left out: a candidate of theirs has no score.")
    if found.own_components:
        texts.append(f"{found.own_components:,} more are left out: they have components of their own.")
    texts += unjoined(run.unknown_labels)
    return texts


def _table(weights: Weights) -> object:
    from debate.cli.figures import figures

    columns = (weights.names, weights.old, weights.new, weights.lowest, weights.highest)
    rows = (
        (each, f"{old:.2f}", f"{new:.2f}", f"{low:.2f} to {high:.2f}")
        for each, old, new, low, high in zip(*columns, strict=True)
    )
    return figures(*rows, headers=("", "old", "fitted", "over the folds"), right=(1, 2, 3))


def _worth(weights: Weights, found: Fitted) -> str:
    from debate.cli.figures import number, percent

    old, new = weights.held_out_old.estimate, weights.held_out_new.estimate
    if found.measure == "pairs":
        points = percent(weights.gain, sign=True)
        return f"Held-out pairs ordered as people do: {percent(old)} before, {percent(new)} after; {points} points."
    nearer = number(weights.gain, sign=True)
    return f"Held-out mean distance to people's scores: {number(-old)} before, {number(-new)} after; {nearer} nearer."


def _verdict(title: str, weights: Weights) -> str:
    if not weights.is_better:
        return "No gain that the tasks can show: keep the old weights."
    if title == "agents":
        return "The fitted weights are better. No setting weighs agents: drop the weak ones, or change their roles."
    return "The fitted weights are better on tasks that they were not fitted on."


def _reliability(found: Calibration) -> object:
    from itertools import zip_longest

    from debate.cli.figures import figures

    def cells(each: Bin | None) -> tuple[str, ...]:
        return (f"{each.promised:.2f}", str(each.n), f"{each.observed:.2f}") if each else ("",) * 3

    rows = ((*cells(old), "", *cells(new)) for old, new in zip_longest(found.before.bins, found.after.bins))
    headers = ("said", "tasks", "right", "", "said after", "tasks", "right")
    return figures(*rows, headers=headers, right=tuple(range(7)))


def _calibrated(found: Calibration) -> list[str]:
    from debate.cli.figures import number

    ece = f"Calibration error {number(found.before)} before, {number(found.after)} after (10 bins)"
    isotonic = "" if found.isotonic is None else f"; {number(found.isotonic)} with an isotonic map"
    brier = f"Brier score {number(found.brier_before.estimate)} before, {number(found.brier_after.estimate)} after"
    texts = [f"{ece}{isotonic}. {brier}; {number(found.gain, sign=True)} better."]
    if found.is_better:
        return [
            *texts,
            f"A softmax_temperature of {found.new:g} in place of {found.old:g} is better on held-out tasks.",
        ]
    return [*texts, f"No gain that the tasks can show: keep the softmax_temperature of {found.old:g}."]
