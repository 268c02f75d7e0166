"""`debate stopping`: stop rules and smaller panels, tried on the rounds that a run recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate.cli.fit import SETTLE_BY, SETTLE_ERROR, SettleBy, print_settling, write_settings

if TYPE_CHECKING:
    from debate.meta_evaluation.judged import JudgedRun
    from debate.meta_evaluation.settling import SettleChoice
    from debate.meta_evaluation.stopping import Stopping, Trial

_RULE = "Repeatable: cv=0.1,over=agents, ranking, change=0.05, spread=0.05, rounds=2 or none; by default a grid of all."
_OUT = "Write a config file with the run's settings, the recommended rule and the threshold of --settle-error."
_AGENTS = "Repeatable: also try the first so many agents alone, with each rule."


def stopping(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    rule: Annotated[list[str] | None, typer.Option(help=_RULE, show_default=False)] = None,
    agents: Annotated[list[int] | None, typer.Option(help=_AGENTS, show_default=False, min=1)] = None,
    labels: Annotated[Path | None, typer.Option(help="File of labels, in place of those in the tasks.")] = None,
    settle_error: Annotated[float | None, typer.Option(help=SETTLE_ERROR, min=0.001, max=0.999)] = None,
    settle_by: Annotated[SettleBy, typer.Option(help=SETTLE_BY)] = "p_best",
    out: Annotated[Path | None, typer.Option(help=_OUT)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Try when debates should stop, and with how many agents, on recorded rounds; no model is asked.

    Says for each rule how often the choice is right, or without labels how often it is that of the debates as recorded,
    and what it decodes. A run that no rule ended early tells most: `debate run --convergence none`.

    With --settle-error it also chooses when a task needs no debate at all, see `debate run --settle`. A run of silent
    rounds alone is enough for that where tasks are labeled: `debate run --settle p_best=0.000001`.

    Example: debate stopping runs/first --rule ranking --rule cv=0.2 --rule change=0.05 --agents 1
    """
    import json

    from debate.cli.console import say
    from debate.evaluation import plain
    from debate.meta_evaluation.judged import read_run
    from debate.meta_evaluation.settling import choose_settling
    from debate.meta_evaluation.stopping import is_debated, try_rules
    from debate.stop_rules import StopRule

    rules = [StopRule.parse(text, where="--rule") for text in rule or []]
    run = read_run(folder, labels)
    chosen = None if settle_error is None else choose_settling(run, settle_error, settle_by)
    is_silent = chosen is not None and not (rules or agents or any(map(is_debated, run.tasks)))
    found = None if is_silent else try_rules(run, rules, agents or [])
    if as_json:
        told: dict[str, object] = {} if found is None else plain(found)
        say(json.dumps(told if chosen is None else {**told, "settling": plain(chosen)}))
    else:
        if found is not None:
            _print(found, run.unknown_labels)
        if chosen is not None:
            print_settling(chosen)
    if out is not None:
        _write(found, chosen, run, out, force=force)


def _write(found: Stopping | None, chosen: SettleChoice | None, run: JudgedRun, out: Path, *, force: bool) -> None:
    from debate.cli.console import say

    settings: dict[str, object] = {}
    refused: list[str] = []
    if found is not None and found.cheapest is not None:
        if found.cheapest is found.recorded:
            refused.append("the run's own rule is the one that is recommended")
        elif found.cheapest.agents != found.recorded.agents:
            refused.append("a smaller panel is recommended, which takes a profile with fewer agents")
        else:
            settings["stop_rule"] = found.cheapest.rule
    elif found is not None:
        refused.append("no rule is recommended")
    if chosen is not None:
        if chosen.rule is None:
            refused.append("no threshold can be promised")
        else:
            settings["settle"] = chosen.rule
    if not settings:
        say(f"Nothing is written: {' and '.join(refused)}.", err=True)
        return
    n = len(run.tasks) if found is None else found.tasks
    write_settings(settings, run, out, f"chosen on {n} tasks", force=force)


def _print(found: Stopping, unknown: Sequence[str]) -> None:
    from debate.cli.console import line, open_console, table
    from debate.cli.figures import unjoined

    is_labeled = found.labeled > 0
    measured = "right" if is_labeled else "same choice"
    headers = ("rule", "rounds", "tokens", "of all", measured, *(["difference"] if is_labeled else []))
    made = table(*headers, right=range(1, 6))
    for n, trial in enumerate((found.recorded, *found.trials)):
        cells = _cells(trial, found, "as recorded" if n == 0 else trial.rule.removesuffix(",over=agents"))
        made.add_row(*map(line, cells), style="bold" if trial is found.cheapest else "")
    console = open_console()
    console.print(made)
    for text in (*unjoined(unknown), *_notes(found)):
        console.print(line(text), soft_wrap=True)


def _cells(trial: Trial, found: Stopping, name: str) -> tuple[str, ...]:
    from debate.cli.figures import percent

    if trial.agents != found.recorded.agents:
        name = "own rule" if trial.rule == found.recorded.rule else name
        name = f"first {trial.agents}: {name}{'' if trial.is_exact else '*'}"
    shown = trial.accuracy if found.labeled else trial.same_choice
    difference = "" if trial is found.recorded else percent(trial.difference, sign=True)
    more = "+" if trial.undecided else ""
    tokens = (f"{trial.rounds:.1f}{more}", f"{trial.tokens:,.0f}{more}", f"{100 * trial.tokens_share:.0f} %{more}")
    return name, *tokens, percent(shown.estimate), *([difference] if found.labeled else [])


def _notes(found: Stopping) -> list[str]:
    trials = (found.recorded, *found.trials)
    n, most = found.tasks, max(trial.undecided for trial in trials)
    by = (
        f"{found.labeled:,} of them labeled" if found.labeled else "none of them labeled: compared with the full debate"
    )
    notes = [
        f"{n:,} debated tasks, {by}; recorded under the rule {found.recorded.rule}, at most {found.rounds} rounds.",
        "Tokens are those decoded per task. Differences are in points, with intervals of 95 %.",
    ]
    if found.left_out:
        notes.append(f"{found.left_out:,} tasks have no debate and are left out.")
    if unscored := max(trial.unscored for trial in trials):
        notes.append(f"Up to {unscored:,} tasks have no choice; they count as not right.")
    if most:
        notes.append(
            f"+ up to {most:,} debates had been ended by the run's own rule first, so this is a lower bound; "
            "record a run with --convergence none to try it."
        )
    if found.labeled and any(trial.difference.standard_error == 0 for trial in found.trials):
        possible = min(100.0, 300 / found.labeled)
        notes.append(f"Where no choice differs, a true difference of {possible:.1f} points is still possible (3 / n).")
    if not all(trial.is_exact for trial in trials):
        notes.append("* from the second round on, these agents had heard those that are left out.")
    return [*notes, _recommended(found)]


def _recommended(found: Stopping) -> str:
    from debate.cli.figures import percent

    best = found.cheapest
    if best is None:
        return "No debate has a choice, so no rule can be recommended."
    panel = "" if best.agents == found.recorded.agents else f" with the first {best.agents} agents"
    what = "right" if found.labeled else "as the recorded debates choose"
    name = "the debates as recorded" if best is found.recorded else f"{best.rule}{panel}"
    chosen = f"Cheapest within one point of the best ({percent(found.best)} {what}): {name}, "
    return f"{chosen}{100 * best.tokens_share:.0f} % of the tokens. It was chosen on these tasks: check it on others."
