"""The page of `debate agree`, part by part."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from debate.cli.console import heading, line, section
from debate.cli.figures import figures, number, percent, unjoined
from debate.cli.render_control import arms_table, remarks
from debate.meta_evaluation.people import AmongPeople, ComponentFigures
from debate.meta_evaluation.settling import PartFigures
from debate.meta_evaluation.trust import GroupFigures, TrustFigures
from debate.statistics import Estimate

_TIES = {"dropped": "pairs, ties dropped", "class": "pairs, a tie is a class", "half": "pairs, a tie is half right"}
_GROUPS = 20
Parts = Iterator[RenderableType]
Row = tuple[str, ...]


def page(found: TrustFigures) -> Parts:
    """The parts of the page, in the order in which they are read."""
    judge, people, gaps = (_choices, _components, _settling, _control), (_people,), (_missing, _groups, _worst)
    for part in (_tasks, *judge, *people, _habits, _rounds, _agents, *gaps):
        yield from part(found)


def _share(name: str, found: Estimate) -> Row:
    return name, percent(found), f"{found.n:,}"


def _points(name: str, found: Estimate) -> Row:
    return name, percent(found, sign=True), f"{found.n:,}"


def _number(name: str, found: Estimate, *, sign: bool = False) -> Row:
    return name, number(found, sign=sign), f"{found.n:,}"


def _tasks(found: TrustFigures) -> Parts:
    rates = found.rates
    yield heading(f"{found.run}: {found.tasks:,} tasks")
    yield from map(line, unjoined(found.unknown_labels))
    if not rates.labeled:
        yield line("No task has a label, so nothing here says whether the judge is right.", "yellow")
        yield line(f"`debate label {found.run}` asks you for labels; --labels FILE takes those you have.")
        return
    kinds = ((rates.decided, "decided by people"), (rates.tied, "tied"), (rates.split, "votes without a majority"),
             (rates.single, "with one candidate"))  # fmt: skip
    yield line(f"{rates.labeled:,} labeled: {', '.join(f'{n:,} {what}' for n, what in kinds if n)}.")


def _choices(found: TrustFigures) -> Parts:
    if (choices := found.choices) is None:
        return
    rates, right = found.rates, choices.right
    pairs = [(_TIES[each.ties], percent(each.judge), percent(each.constant), f"{each.judge.n:,}")
             for each in choices.pairs]  # fmt: skip
    yield section("The judge against people")
    yield figures(
        ("right choice", percent(right.share), percent(rates.constant), f"{right.labeled:,}"),
        ("right choice, ties shared", percent(choices.ties_shared), "", f"{choices.ties_shared.n:,}"),
        *pairs,
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


def _components(found: TrustFigures) -> Parts:
    if not found.components:
        return
    yield section("Scores against people's")
    headers = ("component", "Spearman", "right pairs", "constant", "n")
    yield figures(*map(_order, found.components), headers=headers, right=(3, 4))
    yield ""
    headers = ("component", "people", "judge", "difference", "size (const.)")
    yield figures(*map(_level, found.components), headers=headers, right=())
    if whole := [each.name for each in found.components if each.is_whole]:
        yield line(f"The judge has no component of the name {', '.join(whole)}: its whole score stands there.")
    yield line("Pairs: of one task, near scores counted as tied by a threshold from the other half of the tasks.")


def _order(of: ComponentFigures) -> Row:
    return of.name, number(of.correlation), percent(of.pairs), percent(of.constant_pairs), f"{of.pairs.n:,}"


def _level(of: ComponentFigures) -> Row:
    people = f"{of.people:.2f} ({of.range[0]:.3g} to {of.range[1]:.3g})"
    sizes = f"{number(of.absolute.estimate)} ({number(of.constant_absolute)})"
    return of.name, people, f"{of.judge:.2f} (of {of.top:g})", number(of.difference, sign=True), sizes


def _settling(found: TrustFigures) -> Parts:
    if (settling := found.settling) is None:
        return
    yield section("Settled and debated")
    named = (("settled silently", settling.settled), ("debated", settling.debated))
    headers = ("", "tasks", "right choice", "uncached prompt", "decoded", "calls")
    yield figures(*(_part(name, each) for name, each in named), headers=headers, right=(1, 3, 4, 5))
    yield line(f"By the rule {settling.rule}. Tokens and calls are means per task.")


def _part(name: str, part: PartFigures) -> Row:
    right = "-" if part.right is None else percent(part.right.share)
    tokens = (f"{part.uncached_prompt_tokens:,.0f}", f"{part.completion_tokens:,.0f}", f"{part.calls:.1f}")
    return name, f"{part.tasks:,}", right, *tokens


def _control(found: TrustFigures) -> Parts:
    if found.control is not None:
        yield section("Debate, silent panel, one judge")
        yield arms_table(found.control)
        yield from map(line, remarks(found.control))
        yield line("Here a tie counts in part, as right as a draw among the tied would be.")
    elif found.debate is not None and found.rates.decided:
        yield line(f"Whether debating pays: `debate control {found.run}` asks as often without a debate.", "dim")


def _people(found: TrustFigures) -> Parts:
    rows = [_number(f"alpha of {each.name}", each.among_people) for each in found.components if each.among_people]
    if among := found.among_people:
        alike = _share("two people choose alike", among.two_people)
        judge = _share("the judge and one person do", among.judge_and_one)
        rows = [alike, judge, _number("Krippendorff's alpha", among.alpha), *rows]
    if rows:
        yield section("People against people")
        yield figures(*rows)
    if among and among.test:
        yield from _replacing(among)


def _replacing(among: AmongPeople) -> Parts:
    people = [(each.name, f"{each.n:,}", percent(each.advantage), f"{each.p_value:.3f}") for each in among.people]
    test = among.test
    if test is None or test.reason:
        yield line(f"The alternative annotator test has no answer: {test and test.reason}.")
        return
    yield ""
    headers = ("person", "choices", "judge at least as near to the others", "p")
    yield figures(*people, headers=headers, right=(1, 2, 3))
    verdict = "passes" if test.passes else "does not pass"
    yield line(
        f"The judge {verdict} the alternative annotator test: at eps {among.eps:g} it may replace "
        f"{percent(test.replaceable)} of them. It is as near as a person in {percent(test)}."
    )


def _habits(found: TrustFigures) -> Parts:
    habits, labels = found.habits, "at equal labels" if found.habits.at_equal_labels else "without labels"
    rows = [_share("chooses alike in both orders", habits.consistency)] if habits.consistency else []
    if habits.first_shown:
        rows.append(_points("candidate shown first, points above its share", habits.first_shown))
    yield section("Order and length")
    yield figures(*rows, _number(f"score per std of length, {labels}", habits.length_slope, sign=True))


def _rounds(found: TrustFigures) -> Parts:
    if (debate := found.debate) is None:
        return
    rows = [_share(f"round {each.round + 1} alone is right", each.right) for each in debate.rounds if each.right]
    if rows:
        rows += [
            _share("right, then wrong", debate.flips.lost),
            _share("wrong, then right", debate.flips.gained),
            _points("last minus first, points", debate.flips.net),
            _points("best agent's first turn minus panel, points", debate.best_agent.to_best),
        ]
    if rows and debate.judges_first and debate.judges_last:
        name = f"effective judges of {len(debate.agents)}"
        rows += [_number(f"{name}, first round", debate.judges_first)]
        rows += [_number(f"{name}, last round", debate.judges_last)]
    yield section("By round")
    yield figures(*rows, _share("changed scores that moved to the mean", debate.conformity))


def _agents(found: TrustFigures) -> Parts:
    if found.debate is None:
        return
    agents = found.debate.agents
    yield section("Each agent alone")
    unread = [f"{each.unread:,} of {each.turns:,}" for each in agents]
    if not found.rates.decided:
        rows = [(each.name, count) for each, count in zip(agents, unread, strict=True)]
        yield figures(*rows, headers=("agent", "unread"), right=(1,))
        return
    rows = [(each.name, percent(each.first), percent(each.last), n) for each, n in zip(agents, unread, strict=True)]
    yield figures(*rows, headers=("agent", "first turn is right", "last turn is right", "unread"), right=(3,))


def _missing(found: TrustFigures) -> Parts:
    gaps = found.missing
    counts = ((gaps.unread, gaps.turns, "replies could not be read"),
              (gaps.unscored_cells, gaps.cells, "cells have no score"),
              (gaps.unscored_candidates, gaps.candidates, "candidates have none"))  # fmt: skip
    statuses = ", ".join(f"{n:,} {status}" for status, n in gaps.statuses.items())
    yield section("Not read, not scored")
    yield line(f"Tasks: {statuses}. {', '.join(f'{n:,} of {of:,} {what}' for n, of, what in counts if of)}.")


def _groups(found: TrustFigures) -> Parts:
    if not found.groups:
        return
    yield section(f"By {found.by}")
    headers = (str(found.by), "tasks", "right choice", "constant", "pairs, ties half right")
    yield figures(*map(_group, found.groups[:_GROUPS]), headers=headers, right=(1, 3))
    if len(found.groups) > _GROUPS:
        yield line(f"{len(found.groups) - _GROUPS:,} more values; --json has all.", "dim")


def _group(of: GroupFigures) -> Row:
    right, pairs = (of.right and percent(of.right.share)), (of.pairs and percent(of.pairs.judge))
    return of.value or "(none)", f"{of.tasks:,}", right or "-", percent(of.rates.constant), pairs or "-"


def _worst(found: TrustFigures) -> Parts:
    if found.disagreements:
        rows = [(number(each.margin, sign=True), _places(each.judge), _places(each.people), each.command)
                for each in found.disagreements]  # fmt: skip
        yield section(f"Disagreements: {found.n_disagreements:,}, the judge's surest first")
        yield figures(*rows, headers=("margin", "judge", "people", "to read it"), right=(0, 1, 2))
    elif found.score_gaps:
        rows = [(each.component, str(each.candidate + 1), number(each.judge), number(each.people), each.command)
                for each in found.score_gaps]  # fmt: skip
        yield section("Scores furthest apart, beyond the mean difference")
        yield figures(*rows, headers=("component", "candidate", "judge", "people", "to read it"), right=(1, 2, 3))


def _places(choice: tuple[int, ...]) -> str:
    return ",".join(str(j + 1) for j in choice)
