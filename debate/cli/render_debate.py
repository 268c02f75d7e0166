"""One evaluation as a person would read it: who said what in each round, and what came of it.

Everything is made of `rich` renderables; printing them is the caller's. Candidates are numbered from 1, with the label
the agents knew them by in brackets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from debate.cli.console import block, escape_controls, key_value_grid, line, section, table
from debate.evaluation import (
    Evaluation,
    abstained_cells,
    before_and_after,
    subject,
    top_of_scale,
    why_unscored,
    worth_of,
)
from debate.scoring.distributions import moments
from debate.types import UNSPOKEN, InvalidReply, Judgment, Memory, StopReason, Task, Turn, Verdict

_STATUS_STYLE = {"partial": "yellow", "failed": "red"}
VERDICT_STYLES: Mapping[Verdict | None, str] = {
    "right": "green",
    "wrong": "red",
    "tied": "yellow",
    "unscored": "red",
    None: "",
}
_MOST_TIED = 4
"""Candidates of a tie that a cell of a table names."""
_BARS = ("▁▂▃▄▅▆▇█", (".", "#", "##", "###", "####", "#####", "######", "#######"))
"""How high a CV is, with Unicode and without it."""
_HIGHEST_BAR = 0.5
"""The CV from which the bar is as high as it gets."""
_STOPPED: dict[StopReason, str] = {
    "settled": "a silent round left no doubt",
    "silent": "only a silent round was asked for",
    "converged": "the agents agree",
    "stop_rule": "its stop rule",
    "abstained": "every agent abstained",
    "max_rounds": "the last round allowed",
    "token_budget": "the token budget is spent",
    "time_budget": "its time is up",
    "failed": "no agent gave a readable reply",
}


@dataclass(frozen=True, slots=True)
class View:
    """How much of an evaluation is shown, and in what room."""

    width: int = 80
    """Columns."""
    raw: bool = False
    """Whether replies that could not be read are shown whole."""
    thinking: bool = False
    """Whether what the model thought before its replies is shown."""
    unicode: bool = True
    """Whether arrows and bars can be drawn; else ASCII stands for them."""

    @classmethod
    def of(cls, console: Console, *, raw: bool = False, thinking: bool = False) -> View:
        """What a console has room and characters for."""
        return cls(console.width, raw, thinking, unicode=not console.options.ascii_only)

    @property
    def arrow(self) -> str:
        """Stands between what was and what is."""
        return "→" if self.unicode else "->"

    @property
    def spread(self) -> str:
        """Stands before a standard deviation."""
        return "±" if self.unicode else "+-"

    def bar(self, cv: float) -> str:
        """A CV as a small bar, the same height for the same CV in every debate; empty where it is undefined."""
        steps = _BARS[0 if self.unicode else 1]
        return "" if math.isnan(cv) else steps[min(round(cv / _HIGHEST_BAR * (len(steps) - 1)), len(steps) - 1)]


def render(evaluation: Evaluation, view: View, task: Task | None = None) -> Iterator[RenderableType]:
    """The whole of it: head, task (where it is known), debates, result and usage."""
    best = () if task is None else task.best
    yield line(evaluation.task_id, "bold")
    yield _head(evaluation, view, best)
    if task is not None:
        yield from render_task(task)
    yield from _debates(evaluation, view, best)
    yield section("Result")
    yield from _outcome(evaluation, view, best)


def render_end(evaluation: Evaluation, view: View, task: Task, *, is_told: bool) -> Iterator[RenderableType]:
    """The end of a debate that was shown as it went, after the task and its turns: what is left, and the result.

    is_told: whether the turns were shown; otherwise they are now.
    """
    yield from _before_and_after(evaluation, view) if is_told else _debates(evaluation, view, task.best)
    yield section("Result")
    yield _head(evaluation, view, task.best)
    yield ""
    yield from _outcome(evaluation, view, task.best)


def _outcome(evaluation: Evaluation, view: View, best: Sequence[int]) -> Iterator[RenderableType]:
    """Scores, notes and usage."""
    yield _result(evaluation, best)
    yield from _notes(evaluation)
    if evaluation.order_agreement is not None:
        same = "the same candidate" if evaluation.order_agreement else "different candidates"
        yield line(f"The two candidate orders choose {same}.")
    yield from _details(evaluation)
    yield ""
    if _has_invalid_replies(evaluation) and not view.raw:
        yield line("Some replies could not be read: --raw shows what they said.", "dim")
    if _has_thinking(evaluation) and not view.thinking:
        yield line("The model thought before its replies: --thinking shows what.", "dim")
    yield line(_usage(evaluation), "dim")


def stopped(evaluation: Evaluation) -> str:
    """Why the debate ended, in words and by its code."""
    return "" if evaluation.stop_reason is None else _stopped(evaluation.stop_reason)


def _stopped(reason: StopReason) -> str:
    return f"{_STOPPED[reason]} ({reason})"


def candidate(j: int, labels: Mapping[str, int] | None = None) -> str:
    """Candidate `j` (from 0) as its number from 1, with its label in brackets where there is one."""
    label = next((label for label, index in (labels or {}).items() if index == j), None)
    return f"{j + 1}" if label is None else f"{j + 1} ({label})"


def chosen(evaluation: Evaluation) -> str:
    """What was chosen, as numbers from 1: a tie as `1=3`, so that it does not look like a decision; `-` for nothing."""
    numbers = [str(j + 1) for j in evaluation.choice]
    shown = numbers if len(numbers) <= _MOST_TIED else [*numbers[: _MOST_TIED - 1], ".."]
    return "=".join(shown) or "-"


def row_style(evaluation: Evaluation, best: Sequence[int]) -> str:
    """The color of an evaluation's row in a table: how its choice stands to the label, or that it has none."""
    if evaluation.status == "failed":
        return _STATUS_STYLE["failed"]
    return VERDICT_STYLES[evaluation.verdict(best) or ("tied" if len(evaluation.choice) > 1 else None)]


def _head(evaluation: Evaluation, view: View, best: Sequence[int]) -> Table:
    labels = _labels(evaluation)
    grid = key_value_grid()
    grid.add_row("selected", _selected(evaluation, best))
    status = line(evaluation.status, _STATUS_STYLE.get(evaluation.status, ""))
    grid.add_row("evaluator", Text.assemble(escape_controls(evaluation.evaluator), ", status ", status))
    if evaluation.error:
        grid.add_row("error", line(evaluation.error))
    if evaluation.rounds_run:
        grid.add_row("rounds", line(str(evaluation.rounds_run)))
    if not all(map(math.isnan, evaluation.cv)):
        grid.add_row("CV", line("  ".join(f"{_number(cv, '.2f')} {view.bar(cv)}".rstrip() for cv in evaluation.cv)))
    if evaluation.stop_reason is not None:
        grid.add_row("stopped", line(stopped(evaluation)))
    if evaluation.tied and evaluation.tied != evaluation.choice:
        grid.add_row("tied best", line(_named(evaluation.tied, labels)))
    abstained, cells = abstained_cells(evaluation)
    if abstained:
        grid.add_row("abstained", line(f"{abstained} of {cells} cells"))
    return grid


def _selected(evaluation: Evaluation, best: Sequence[int]) -> Text:
    """What was chosen, what people say where they said something, and how the two stand to each other."""
    labels, verdict, is_tie = _labels(evaluation), evaluation.verdict(best), len(evaluation.choice) > 1
    style = row_style(evaluation, best)
    told = Text(f"{'= ' if is_tie else ''}{_named(evaluation.choice, labels)} of {len(evaluation.scores)}", "bold")
    if verdict is not None:
        told.append(f", people say {' or '.join(candidate(j, labels) for j in best)}")
    outcome = "tied, no decision" if is_tie and verdict != "right" else verdict
    return told if outcome is None else told.append(": ").append(outcome, f"bold {style}")


def _named(indices: Sequence[int], labels: Mapping[str, int] | None) -> str:
    """Several candidates, or one, or none."""
    if not indices:
        return "none"
    return f"candidate{'s' if len(indices) > 1 else ''} {', '.join(candidate(j, labels) for j in indices)}"


def render_task(task: Task) -> Iterator[RenderableType]:
    """What was asked, and the candidates."""
    yield section("Task")
    yield block(task.x, indent=0)
    for n, text in enumerate(task.context):
        yield line(f"Context {n + 1}", "bold")
        yield block(text)
    if task.reference is not None:
        yield line("Reference answer", "bold")
        yield block(task.reference)
    if task.components:
        yield line("Components of the task", "bold")
        yield from (block(f"{each.name} (weight {each.weight:g}): {each.description}") for each in task.components)
    for j, each in enumerate(task.candidates):
        known = ", ".join(part for part in (each.id, each.generator and f"by {each.generator}") if part)
        yield line(f"Candidate {j + 1}" + (f": {known}" if known else ""), "bold")
        yield block(each.text)


def _debates(evaluation: Evaluation, view: View, best: Sequence[int]) -> Iterator[RenderableType]:
    """The evaluation's own rounds, or those of its members one after the other."""
    yield from _rounds(evaluation, view)
    yield from _judgments(evaluation, view)
    for n, member in enumerate(evaluation.members):
        yield ""
        yield line(f"Member {n + 1} of {len(evaluation.members)}: {_member_name(member)}", "bold reverse")
        yield _head(member, view, best)
        yield from _debates(member, view, best)
        yield section(f"Result of member {n + 1}")
        yield _result(member, best)


def _member_name(member: Evaluation) -> str:
    if not member.transcript.turns:
        return member.evaluator
    shown = member.transcript.turns[0].labels
    return f"{member.evaluator}, candidates shown in the order {', '.join(str(j + 1) for j in shown.values())}"


def _rounds(evaluation: Evaluation, view: View) -> Iterator[RenderableType]:
    turns = evaluation.transcript.turns
    last = max((turn.round for turn in turns), default=-1)
    for r in range(last + 1):
        yield section(f"Round {r + 1}")
        for turn in evaluation.transcript.of_round(r):
            yield from render_turn(turn, evaluation.components, view, said_before(turn, turns))
        if r < len(evaluation.cv):
            yield render_round_end(evaluation.cv[r], evaluation.stop_reason if r == last else None, view)
    yield from _before_and_after(evaluation, view)


def _before_and_after(evaluation: Evaluation, view: View) -> Iterator[RenderableType]:
    if evaluation.stop_reason in UNSPOKEN:
        yield section("Silent round")
        yield line("What each agent scores without a comment. Nobody spoke.", "dim")
        yield _silent_scores(evaluation)
    if evaluation.before and evaluation.after:
        yield section("Before and after")
        told = f"What each agent would have scored without a comment: before the debate {view.arrow} after it."
        yield line(told, "dim")
        yield _changes(evaluation, view)


def _silent_scores(evaluation: Evaluation) -> Table:
    """The cells of a silent round, per agent and component."""
    labels, n = _labels(evaluation), len(evaluation.scores)
    made = table("agent", "component", *(candidate(j, labels) for j in range(n)), right=range(2, 2 + n))
    for each in evaluation.before:
        for k, component in enumerate(evaluation.components):
            made.add_row(line(each.agent), line(component), *(_number(score, ".1f") for score in each.scores[:, k]))
    return made


def _changes(evaluation: Evaluation, view: View) -> Table:
    """What talking changed, per agent and cell, and at the end the means of what was read both times."""
    after = {each.agent: each.scores for each in evaluation.after}
    labels, n = _labels(evaluation), len(evaluation.scores)
    made = table("agent", "component", *(candidate(j, labels) for j in range(n)), right=range(2, 2 + n))

    def change(before: float, after: float) -> str:
        return f"{_number(before, '.1f')} {view.arrow} {_number(after, '.1f')}"

    for each in evaluation.before:
        later = after.get(each.agent, np.full_like(each.scores, np.nan))  # (J, K)
        for k, component in enumerate(evaluation.components):
            made.add_row(line(each.agent), line(component), *map(change, each.scores[:, k], later[:, k]))
    made.add_section()
    made.add_row("mean", "", *map(change, *before_and_after(evaluation)))
    return made


def render_round_end(cv: float, stop: StopReason | None, view: View) -> RenderableType:
    """How far apart the agents were in a round, and why the debate stopped there; without a reason it goes on."""
    end = "the debate goes on" if stop is None else f"stopped: {_stopped(stop)}"
    if math.isnan(cv):
        return line(f"CV undefined: too few agents scored, or their mean is 0; {end}.")
    return line(f"CV {cv:.3f} {view.bar(cv)}; {end}.")


def said_before(turn: Turn, turns: Iterable[Turn]) -> Turn | None:
    """The latest readable turn of the same agent before this one; None where it speaks for the first time."""
    earlier = [each for each in turns if each.agent == turn.agent and each.round < turn.round and each.failure is None]
    return max(earlier, key=lambda each: each.round, default=None)


def render_turn(
    turn: Turn, components: tuple[str, ...], view: View, before: Turn | None = None
) -> Iterator[RenderableType]:
    """What an agent recalled, said and scored; of what it said in `before`, its turn before this one, the changes."""
    yield line(turn.agent, "bold")
    if turn.memories:
        yield from _memories(turn, before)
    if turn.failure is not None:
        yield block(f"failed ({turn.failure.reason}): {turn.failure.message}", style="red")
    yield from _invalid_replies(turn.invalid_replies, view)
    yield from _thinking(turn.thinking, view)
    if turn.failure is None:
        yield from _spoken(turn, components, view, before)
    if turn.escaped_special_tokens:
        yield block(f"special tokens escaped in the prompt: {turn.escaped_special_tokens}", style="dim")
    yield ""


def _memories(turn: Turn, before: Turn | None) -> Iterator[RenderableType]:
    if before is not None and [each.text for each in turn.memories] == [each.text for each in before.memories]:
        yield block(f"recalled the same as in round {before.round + 1}", style="dim")
        return
    yield block("recalled:", style="dim")
    for memory in turn.memories:
        yield block(f"- {escape_controls(memory.text)}{_memory_score(memory)}", indent=4, style="dim")


def _memory_score(memory: Memory) -> str:
    """Its score with its parts, where it came from."""
    if math.isnan(memory.score):
        return ""
    parts = f"relevance {memory.relevance:.2f}, recency {memory.recency:.2f}, importance {memory.importance:.2f}"
    source = f", from {escape_controls(memory.source)}" if memory.source else ""
    return f" (score {memory.score:.2f}: {parts}{source})"


def _invalid_replies(replies: tuple[InvalidReply, ...], view: View) -> Iterator[RenderableType]:
    for n, each in enumerate(replies):
        yield block(f"reply {n + 1} could not be read ({each.reason}): {each.message}", style="yellow")
        yield from _thinking(each.thinking, view)
        if view.raw:
            yield block(each.text or "(empty)", indent=6)


def _thinking(thinking: str, view: View) -> Iterator[RenderableType]:
    """What the model thought before a reply, where that is to be shown."""
    if thinking and view.thinking:
        yield block(f"thinking: {thinking}", indent=4, style="dim")


def _spoken(turn: Turn, components: tuple[str, ...], view: View, before: Turn | None) -> Iterator[RenderableType]:
    since = "" if before is None else f"as in round {before.round + 1}"
    if before is not None and (turn.overall, turn.comments) == (before.overall, before.comments):
        yield block(f"says the same {since}", style="dim")
    else:
        if turn.overall.strip():
            yield block(turn.overall)
        yield Padding(_comments(turn, before, since), (0, 0, 0, 2))
    if not components or turn.scores.ndim != 2:
        return
    made = _score_table(turn, components, view, before)
    if made.rows:
        yield Padding(made, (1, 0, 0, 2))
    elif len(turn.scores):
        yield block(f"scores {since}", style="dim")


def _comments(turn: Turn, before: Turn | None, since: str) -> Table:
    """The comments of a turn, by candidate; those of the turn before it are not told again."""
    comments = Table.grid(padding=(0, 2, 0, 0))
    comments.add_column(no_wrap=True, style="bold")
    comments.add_column()
    known = before.comments if before is not None and len(before.comments) == len(turn.comments) else ()
    for j, comment in enumerate(turn.comments):
        is_known = bool(known) and comment == known[j] and bool(comment.strip())
        told = block(since, indent=0, style="dim") if is_known else block(comment, indent=0)
        comments.add_row(line(candidate(j, turn.labels)), told)
    return comments


def _score_table(turn: Turn, components: tuple[str, ...], view: View, before: Turn | None) -> Table:
    """The (J, K) scores of a turn: one row per candidate, or one per component where that would be too wide.

    Of a later turn only the candidates whose scores changed. The best score of each component is bold.
    """
    shown = _changed(turn, before)
    form = f".{max((_decimals(score) for each in (before, turn) if each for score in each.scores.flat), default=0)}f"
    cells = [[_cell(turn, j, k, form, view, before) for k in range(len(components))] for j in shown]
    candidates = [candidate(j, turn.labels) for j in shown]
    is_broad = before is not None or turn.distributions
    least = max((len(cell) for row in cells for cell in row), default=0) if is_broad else 0
    needed = sum(max(len(escape_controls(name)), least) + 3 for name in ("candidate", *components))
    if needed <= view.width - 2:
        head, rows, columns = "candidate", candidates, list(components)
    else:
        head, rows, columns = "component", list(components), candidates
        cells = [list(column) for column in zip(*cells, strict=True)]  # (K, J)
    made = table(head, *columns, right=range(1, 1 + len(columns)))
    for name, values in zip(rows, cells, strict=False):
        made.add_row(line(name), *values)
    return made


def _changed(turn: Turn, before: Turn | None) -> list[int]:
    """The candidates whose scores are not those of the turn before; all where there is none."""
    return [j for j in range(len(turn.scores)) if before is None or not _are_same(turn, before, j)]


def _are_same(turn: Turn, before: Turn, *cell: int) -> bool:
    """Whether the scores of a candidate, or one of them, are the same as far as they are shown."""
    digits = 1 if turn.distributions else 2
    now, then = np.atleast_1d(turn.scores[cell]), np.atleast_1d(before.scores[cell])
    return np.array_equal(now.round(digits), then.round(digits), equal_nan=True)


def _cell(turn: Turn, j: int, k: int, form: str, view: View, before: Turn | None) -> Text:
    """A score of a turn, with what it was before where it changed; one that was read out with its deviation.

    The best of its component is bold, and dim is what did not change.
    """
    score, form = turn.scores[j, k], ".1f" if turn.distributions else form
    told = _mark(turn, j, k, form)
    if turn.distributions and not math.isnan(score):
        told += f" {view.spread} {moments(turn.distributions[j][k])[1]:.1f}"
    if before is not None:
        if _are_same(turn, before, j, k):
            return line(told, "dim")
        told = f"{_mark(before, j, k, form)} {view.arrow} {told}"
    others = turn.scores[:, k][~np.isnan(turn.scores[:, k])]  # of all candidates
    return line(told, "bold" if len(others) and score == others.max() and (others < score).any() else "")


def _mark(turn: Turn, j: int, k: int, form: str) -> str:
    """A score of a turn, or why there is none."""
    if math.isnan(turn.scores[j, k]):
        return "abstained" if why_unscored(turn, j, k) == "abstained" else "-"
    return format(turn.scores[j, k], form)


def _decimals(score: float) -> int:
    """How many decimals, up to two, a score has."""
    return 0 if math.isnan(score) else next((n for n in (0, 1) if round(score, n) == round(score, 2)), 2)


def _result(evaluation: Evaluation, best: Sequence[int]) -> Table:
    labels = _labels(evaluation)
    p_best = [] if evaluation.p_best is None else ["P(best)"]
    made = table("candidate", "score", "probability", *p_best, "rank", "", right=range(1, 4 + len(p_best)))
    style = f"bold {row_style(evaluation, best)}".strip()
    for j, rank in enumerate(evaluation.ranks()):
        cells = (
            candidate(j, labels),
            _score(evaluation, j),
            _number(evaluation.probabilities[j], ".3f"),
            *([] if evaluation.p_best is None else [f"{evaluation.p_best[j]:.3f}"]),
            "-" if rank is None else str(rank),
            ", ".join(_remarks(evaluation, j, best)),
        )
        made.add_row(*(line(cell) for cell in cells), style=style if j in evaluation.choice else None)
    return made


def _notes(evaluation: Evaluation) -> Iterator[RenderableType]:
    """What a reader has to know of the numbers: how far the scale goes where it is not 10, and how one counts."""
    if (top := top_of_scale(evaluation).removeprefix(" of ")) and evaluation.components and evaluation.choice:
        yield line(f"10 in every component would come to {top}, by the weights and the method.", "dim")
    if (labels := _labels(evaluation)) and any(labels.values()):
        yield line("Candidates count from 1, in JSON from 0; agents saw the letters in brackets.", "dim")


def _score(evaluation: Evaluation, j: int) -> str:
    score = evaluation.scores[j]
    return "unscored" if math.isnan(score) else f"{score:.2f}{top_of_scale(evaluation)}"


def _remarks(evaluation: Evaluation, j: int, best: Sequence[int]) -> Iterator[str]:
    """What is to be said of a candidate's score."""
    if (j,) == evaluation.choice:
        yield "selected"
    elif j in evaluation.tied:
        yield "= tied"
    if j in best:
        yield "right" if (j,) == evaluation.choice else "people's choice"
    if evaluation.statuses and evaluation.statuses[j] in ("skipped", "penalty", "duplicate"):
        yield evaluation.statuses[j]


def _labels(evaluation: Evaluation) -> Mapping[str, int] | None:
    """The labels that hold throughout the evaluation; None where its members differ or nobody spoke."""
    turns = evaluation.transcript.turns
    return turns[0].labels if turns else None


def _has_invalid_replies(evaluation: Evaluation) -> bool:
    own = (*evaluation.transcript, *evaluation.judgments)
    return any(each.invalid_replies for each in own) or any(map(_has_invalid_replies, evaluation.members))


def _has_thinking(evaluation: Evaluation) -> bool:
    own = (*evaluation.transcript, *evaluation.judgments)
    said = [*own, *(reply for each in own for reply in each.invalid_replies)]
    return any(each.thinking for each in said) or any(map(_has_thinking, evaluation.members))


def _number(value: float, form: str, missing: str = "-") -> str:
    return missing if math.isnan(value) else format(value, form)


def _usage(evaluation: Evaluation) -> str:
    usage = evaluation.usage
    thought = f" ({usage.thinking_tokens:,} of thinking)" if usage.thinking_tokens else ""
    return (
        f"{usage.calls} calls, {usage.prompt_tokens:,} prompt tokens ({usage.cached_tokens:,} from the cache), "
        f"{usage.completion_tokens:,} completion tokens{thought}, {evaluation.seconds:.1f} s"
    )


# ---- evaluators other than a debate


def _judgments(evaluation: Evaluation, view: View) -> Iterator[RenderableType]:
    """Every reply, with what was read in it."""
    if evaluation.judgments:
        yield section("Replies")
    for sample in evaluation.judgments:
        yield line(f"{subject(sample)}, sample {sample.sample + 1}: {_found(sample)}", "bold")
        yield from _invalid_replies(sample.invalid_replies, view)
        yield from _thinking(sample.thinking, view)
        if sample.failure is not None:
            yield block(f"failed ({sample.failure.reason}): {sample.failure.message}", style="red")
        if sample.text.strip():
            yield block(sample.text.strip())


def _found(sample: Judgment) -> str:
    """What was read in a reply."""
    if sample.failure is not None:
        return "nothing"
    if sample.value is not None:
        return worth_of(sample)
    return " > ".join(str(j + 1) for j in sample.ranking) or "no preference"


def _details(evaluation: Evaluation) -> Iterator[RenderableType]:
    """What else the evaluator found out."""
    for name, value in evaluation.details.items():
        if value not in ({}, [], None):
            yield line(f"{name.replace('_', ' ')}: {escape_controls(_plain(value))}", "dim")


def _plain(value: Any) -> str:
    match value:
        case float():
            return f"{value:.3g}"
        case Mapping():
            members = cast("Mapping[str, Any]", value)
            return ", ".join(f"{key} {_plain(each)}" for key, each in members.items() if each not in ({}, []))
        case list() | tuple():
            items = cast("list[Any]", value)
            return "; ".join(map(_plain, items)) if any(map(_is_nested, items)) else " ".join(map(_plain, items))
        case None:
            return "-"
        case _:
            return str(value)


def _is_nested(value: object) -> bool:
    return isinstance(value, list | tuple | Mapping)
