"""`debate agree`: what a run's judge is worth by what people say, on one page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from debate.meta_evaluation.trust import TrustFigures

_TIES = {"dropped": "pairs, ties dropped", "class": "pairs, a tie is a class", "half": "pairs, a tie is half right"}
_NAMED = 5
_GROUPS = 20


def agree(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    labels: Annotated[
        Path | None, typer.Option(help="Labels by `task_id`, in place of those in the tasks' metadata.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Also for each value of this key of the metadata.", show_default="group")
    ] = None,
    eps: Annotated[
        float,
        typer.Option(help="What a person costs more than the judge: 0.2 experts, 0.15 trained people, 0.1 a crowd."),
    ] = 0.15,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compare a run's judge with people: agreement, habits, rounds, agents, and the worst disagreements.

    Example:
        debate agree runs/first
        debate agree runs/first --labels labels.jsonl --by language
    """
    import json

    from debate.cli.console import open_console, say
    from debate.evaluation import plain
    from debate.meta_evaluation.judged import read_run
    from debate.meta_evaluation.trust import agree as figures_of

    found = figures_of(read_run(run, labels), by, eps)
    if as_json:
        say(json.dumps(plain(found), ensure_ascii=False, allow_nan=False))
        return
    console = open_console()
    for part in page(found):
        console.print(part)


def page(found: TrustFigures) -> Iterator[RenderableType]:
    """The parts of the page, in the order in which they are read."""
    for part in (
        _tasks,
        _choices,
        _components,
        _control,
        _people,
        _habits,
        _rounds,
        _agents,
        _missing,
        _groups,
        _worst,
    ):
        yield from part(found)


def _tasks(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import heading, line

    rates, unknown = found.rates, found.unknown_labels
    yield heading(f"{found.run}: {_count(found.tasks, 'task')}")
    if unknown:
        more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
        yield line(f"The run does not have {_count(len(unknown), 'labeled task')}: {', '.join(unknown[:_NAMED])}{more}")
    if not rates.labeled:
        yield line("No task has a label, so nothing here says whether the judge is right.", "yellow")
        yield line(f"`debate label {found.run}` asks you for labels; --labels FILE takes those you have.")
        return
    parts = {"decided by people": rates.decided, "tied": rates.tied, "votes without a majority": rates.split}
    said = ", ".join(f"{n:,} {what}" for what, n in (*parts.items(), ("with one candidate", rates.single)) if n)
    yield line(f"{rates.labeled:,} labeled: {said}." if said else f"{rates.labeled:,} labeled.")


def _choices(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import line, section
    from debate.cli.figures import figures, number, percent

    if (choices := found.choices) is None:
        return
    rates, right, pairs = found.rates, choices.right, choices.pairs
    yield section("The judge against people")
    yield figures(
        ("right choice", percent(right.share), percent(rates.constant), f"{right.labeled:,}"),
        *((_TIES[each.ties], percent(each.judge), percent(each.constant), f"{each.judge.n:,}") for each in pairs),
        ("kappa", number(choices.kappa), number(0.0), f"{choices.kappa.n:,}"),
        ("AC1", number(choices.ac1), "", f"{choices.ac1.n:,}"),
        headers=("", "judge", "constant", "n"),
        right=(2, 3),
    )
    if right.tied or right.unscored:
        yield line(f"Not right are also {right.tied:,} ties of the judge and {right.unscored:,} unscored tasks.")
    yield line(
        f"Chance is right in {percent(rates.chance)}, the longest candidate in {percent(rates.longest)}. Constant: the "
        f"best fixed answer; of choices, always candidate {rates.place + 1}."
    )
    if rates.constant > 0.9:
        yield line("With such a base rate kappa says nearly nothing: read AC1.", "yellow")


def _components(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import line, section
    from debate.cli.figures import figures, number, percent

    if not found.components:
        return
    yield section("Scores against people's")
    yield figures(
        *(
            (
                each.name,
                number(each.correlation),
                percent(each.pairs),
                percent(each.constant_pairs),
                f"{each.pairs.n:,}",
            )
            for each in found.components
        ),
        headers=("component", "Spearman", "right pairs", "constant", "n"),
        right=(3, 4),
    )
    yield ""
    yield figures(
        *(
            (
                each.name,
                f"{each.people:.2f} ({each.range[0]:g} to {each.range[1]:g})",
                f"{each.judge:.2f} (of {each.top:g})",
                number(each.difference, sign=True),
                f"{number(each.absolute.estimate)} ({number(each.constant_absolute)})",
            )
            for each in found.components
        ),
        headers=("component", "people", "judge", "difference", "size (const.)"),
        right=(),
    )
    whole = [each.name for each in found.components if each.is_whole]
    if whole:
        yield line(f"The judge has no component of the name {', '.join(whole)}: its whole score stands there.")
    yield line("Pairs: of one task, near scores counted as tied by a threshold from the other half of the tasks.")


def _control(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import line, section
    from debate.cli.render_control import arms_table, remarks

    if found.control is not None:
        yield section("Debate, silent panel, one judge")
        yield arms_table(found.control)
        yield from map(line, remarks(found.control))
        yield line("Here a tie counts in part, as right as a draw among the tied would be.")
    elif found.debate is not None and found.rates.decided:
        yield line(
            f"Whether debating pays: `debate control {found.run}` asks the same agents as often in silence.", "dim"
        )


def _people(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import line, section
    from debate.cli.figures import figures, number, percent

    alphas = [(f"alpha of {each.name}", each.among_people) for each in found.components if each.among_people]
    among = found.among_people
    if not (alphas or among):
        return
    yield section("People against people")
    rows = [(name, number(alpha), f"{alpha.n:,}") for name, alpha in alphas]
    if among:
        rows = [
            ("two people choose alike", percent(among.two_people), f"{among.two_people.n:,}"),
            ("the judge and one person do", percent(among.judge_and_one), f"{among.judge_and_one.n:,}"),
            ("Krippendorff's alpha", number(among.alpha), f"{among.alpha.n:,}"),
            *rows,
        ]
    yield figures(*rows)
    if among is None or (test := among.test) is None:
        return
    yield ""
    yield figures(
        *((each.name, f"{each.n:,}", percent(each.advantage), f"{each.p_value:.3f}") for each in among.people),
        headers=("person", "choices", "judge at least as near to the others", "p"),
        right=(1, 2, 3),
    )
    if test.reason:
        yield line(f"The alternative annotator test has no answer: {test.reason}.")
    else:
        verdict = "passes" if test.passes else "does not pass"
        yield line(
            f"The judge {verdict} the alternative annotator test: at eps {among.eps:g} it may replace "
            f"{percent(test.replaceable)} of them, and it is as near as a person in {percent(test)}."
        )


def _habits(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import section
    from debate.cli.figures import figures, number, percent

    habits = found.habits
    rows: list[tuple[str, ...]] = []
    if habits.consistency:
        rows.append(("chooses alike in both orders", percent(habits.consistency), f"{habits.consistency.n:,}"))
    if habits.first_shown:
        text = percent(habits.first_shown, sign=True)
        rows.append(("candidate shown first, points above its share", text, f"{habits.first_shown.n:,}"))
    labels = "at equal labels" if habits.at_equal_labels else "without labels"
    text = number(habits.length_slope, sign=True)
    rows.append((f"score per std of length, {labels}", text, f"{habits.length_slope.n:,}"))
    yield section("Order and length")
    yield figures(*rows)


def _rounds(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import section
    from debate.cli.figures import figures, number, percent

    if (debate := found.debate) is None:
        return
    yield section("By round")
    rows: list[tuple[str, ...]] = [
        (f"round {each.round + 1} alone is right", percent(each.right), f"{each.right.n:,}")
        for each in debate.rounds if each.right
    ]  # fmt: skip
    if rows:
        flips, best = debate.flips, debate.best_agent.to_best
        rows += [
            ("right, then wrong", percent(flips.lost), f"{flips.lost.n:,}"),
            ("wrong, then right", percent(flips.gained), f"{flips.gained.n:,}"),
            ("last minus first, points", percent(flips.net, sign=True), f"{flips.net.n:,}"),
            ("best agent's first turn minus panel, points", percent(best, sign=True), f"{best.n:,}"),
        ]
    for name, judges in (("first", debate.judges_first), ("last", debate.judges_last)):
        if judges and rows:
            rows.append((f"effective judges of {len(debate.agents)}, {name} round", number(judges), f"{judges.n:,}"))
    rows.append(("changed scores that moved to the mean", percent(debate.conformity), f"{debate.conformity.n:,}"))
    yield figures(*rows)


def _agents(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import section
    from debate.cli.figures import figures, percent

    if found.debate is None:
        return
    yield section("Each agent alone")
    yield figures(
        *(
            (each.name, percent(each.first), percent(each.last), f"{each.unread:,} of {each.turns:,}")
            for each in found.debate.agents
        ),
        headers=("agent", "first turn is right", "last turn is right", "unread"),
        right=(3,),
    )


def _missing(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import line, section

    gaps = found.missing
    yield section("Not read, not scored")
    statuses = ", ".join(f"{n:,} {status}" for status, n in gaps.statuses.items())
    counts = [
        f"{n:,} of {total:,} {what}"
        for n, total, what in (
            (gaps.unread, gaps.turns, "replies could not be read"),
            (gaps.unscored_cells, gaps.cells, "cells have no score"),
            (gaps.unscored_candidates, gaps.candidates, "candidates have none"),
        )
        if total
    ]
    yield line(f"Tasks: {statuses}. {', '.join(counts)}.")


def _groups(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import line, section
    from debate.cli.figures import figures, percent

    if not found.groups:
        return
    yield section(f"By {found.by}")
    yield figures(
        *(
            (
                each.value or "(none)",
                f"{each.tasks:,}",
                percent(each.right.share) if each.right else "-",
                percent(each.rates.constant),
                percent(each.pairs.judge) if each.pairs else "-",
            )
            for each in found.groups[:_GROUPS]
        ),
        headers=(str(found.by), "tasks", "right choice", "constant", "pairs, ties half right"),
        right=(1, 3),
    )
    if len(found.groups) > _GROUPS:
        yield line(f"{len(found.groups) - _GROUPS:,} more values; --json has all.", "dim")


def _worst(found: TrustFigures) -> Iterator[RenderableType]:
    from debate.cli.console import section
    from debate.cli.figures import figures, number

    if not found.disagreements:
        return
    yield section(f"Disagreements: {found.n_disagreements:,}, the judge's surest first")
    yield figures(
        *((number(each.margin, sign=True), _places(each.judge), _places(each.people), each.command)
          for each in found.disagreements),
        headers=("margin", "judge", "people", "to read it"),
        right=(0, 1, 2),
    )  # fmt: skip


def _places(choice: tuple[int, ...]) -> str:
    return ",".join(str(j + 1) for j in choice)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
