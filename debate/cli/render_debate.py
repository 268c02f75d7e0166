"""One evaluation as a person would read it: who said what in each round, and what came of it.

Everything is made of `rich` renderables; printing them is the caller's. Candidates are numbered from 1, with the label
the agents knew them by in brackets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from rich.console import RenderableType
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
from debate.types import InvalidReply, Judgment, Memory, StopReason, Task, Turn, Verdict

_STATUS_STYLE = {"ok": "green", "partial": "yellow", "failed": "red"}
VERDICT_STYLES: Mapping[Verdict | None, str] = {
    "right": "green",
    "wrong": "red",
    "tied": "yellow",
    "unscored": "red",
    None: "",
}
_MOST_TIED = 4
"""Candidates of a tie that a cell of a table names."""
_STOPPED: dict[StopReason, str] = {
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


def render(evaluation: Evaluation, view: View, task: Task | None = None) -> Iterator[RenderableType]:
    """The whole of it: head, task (where it is known), debates, result and usage."""
    yield line(evaluation.task_id, "bold")
    yield _head(evaluation, () if task is None else task.best)
    if task is not None:
        yield from _task(task)
    yield from _debates(evaluation, view)
    yield section("Result")
    yield _result(evaluation)
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
    reason = evaluation.stop_reason
    return "" if reason is None else f"{_STOPPED[reason]} ({reason})"


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


def _head(evaluation: Evaluation, best: Sequence[int] = ()) -> Table:
    labels = _labels(evaluation)
    grid = key_value_grid()
    status = line(evaluation.status, _STATUS_STYLE.get(evaluation.status, ""))
    grid.add_row("evaluator", Text.assemble(escape_controls(evaluation.evaluator), ", status ", status))
    if evaluation.error:
        grid.add_row("error", line(evaluation.error))
    if evaluation.rounds_run:
        grid.add_row("rounds", line(str(evaluation.rounds_run)))
    if evaluation.stop_reason is not None:
        grid.add_row("stopped", line(stopped(evaluation)))
    what, count = _named(evaluation.choice, labels), len(evaluation.scores)
    if len(evaluation.choice) > 1:
        grid.add_row("selected", line(f"= {what} of {count}: tied, no decision", "bold yellow"))
    else:
        grid.add_row("selected", line(f"{what} of {count}", "bold"))
    if evaluation.tied and evaluation.tied != evaluation.choice:
        grid.add_row("tied best", line(_named(evaluation.tied, labels)))
    abstained, cells = abstained_cells(evaluation)
    if abstained:
        grid.add_row("abstained", line(f"{abstained} of {cells} cells"))
    if (verdict := evaluation.verdict(best)) is not None:
        grid.add_row("label", Text.assemble(_named(best, labels), ": ", (verdict, VERDICT_STYLES[verdict])))
    return grid


def _named(indices: Sequence[int], labels: Mapping[str, int] | None) -> str:
    """Several candidates, or one, or none."""
    if not indices:
        return "none"
    return f"candidate{'s' if len(indices) > 1 else ''} {', '.join(candidate(j, labels) for j in indices)}"


def _task(task: Task) -> Iterator[RenderableType]:
    yield section("Task")
    yield block(task.x, indent=0)
    for n, text in enumerate(task.context):
        yield line(f"Context {n + 1}", "bold")
        yield block(text)
    if task.reference is not None:
        yield line("Reference answer", "bold")
        yield block(task.reference)
    for j, each in enumerate(task.candidates):
        known = ", ".join(part for part in (each.id, each.generator and f"by {each.generator}") if part)
        yield line(f"Candidate {j + 1}" + (f": {known}" if known else ""), "bold")
        yield block(each.text)


def _debates(evaluation: Evaluation, view: View) -> Iterator[RenderableType]:
    """The evaluation's own rounds, or those of its members one after the other."""
    yield from _rounds(evaluation, view)
    yield from _judgments(evaluation, view)
    for n, member in enumerate(evaluation.members):
        yield ""
        yield line(f"Member {n + 1} of {len(evaluation.members)}: {_member_name(member)}", "bold reverse")
        yield _head(member)
        yield from _debates(member, view)
        yield section(f"Result of member {n + 1}")
        yield _result(member)


def _member_name(member: Evaluation) -> str:
    if not member.transcript.turns:
        return member.evaluator
    shown = member.transcript.turns[0].labels
    return f"{member.evaluator}, candidates shown in the order {', '.join(str(j + 1) for j in shown.values())}"


def _rounds(evaluation: Evaluation, view: View) -> Iterator[RenderableType]:
    last = max((turn.round for turn in evaluation.transcript), default=-1)
    for r in range(last + 1):
        yield section(f"Round {r + 1}")
        for turn in evaluation.transcript.of_round(r):
            yield from _turn(turn, evaluation.components, view)
        if r < len(evaluation.cv):
            yield line(_round_end(evaluation, r, is_last=r == last), "cyan")
    if evaluation.before and evaluation.after:
        yield section("Before and after")
        yield line("What each agent would have scored without a comment: before the debate -> after it.", "dim")
        yield _changes(evaluation)


def _changes(evaluation: Evaluation) -> Table:
    """What talking changed, per agent and cell, and at the end the means of what was read both times."""
    after = {each.agent: each.scores for each in evaluation.after}
    labels, n = _labels(evaluation), len(evaluation.scores)
    made = table("agent", "component", *(candidate(j, labels) for j in range(n)), right=range(2, 2 + n))
    for each in evaluation.before:
        later = after.get(each.agent, np.full_like(each.scores, np.nan))  # (J, K)
        for k, component in enumerate(evaluation.components):
            made.add_row(line(each.agent), line(component), *map(_change, each.scores[:, k], later[:, k]))
    made.add_section()
    made.add_row("mean", "", *map(_change, *before_and_after(evaluation)))
    return made


def _change(before: float, after: float) -> str:
    return f"{_number(before, '.1f')} -> {_number(after, '.1f')}"


def _round_end(evaluation: Evaluation, r: int, *, is_last: bool) -> str:
    cv = evaluation.cv[r]
    known = "CV undefined: too few agents scored, or their mean is 0" if math.isnan(cv) else f"CV {cv:.3f}"
    return f"{known}; {'stopped: ' + stopped(evaluation) if is_last else 'the debate goes on'}."


def _turn(turn: Turn, components: tuple[str, ...], view: View) -> Iterator[RenderableType]:
    yield line(turn.agent, "bold")
    if turn.memories:
        yield block("recalled:", style="dim")
        for memory in turn.memories:
            yield block(f"- {escape_controls(memory.text)}{_memory_score(memory)}", indent=4, style="dim")
    if turn.failure is not None:
        yield block(f"failed ({turn.failure.reason}): {turn.failure.message}", style="red")
    yield from _invalid_replies(turn.invalid_replies, view)
    yield from _thinking(turn.thinking, view)
    if turn.failure is None:
        yield from _spoken(turn, components, view)
    if turn.escaped_special_tokens:
        yield block(f"special tokens escaped in the prompt: {turn.escaped_special_tokens}", style="dim")
    yield ""


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


def _spoken(turn: Turn, components: tuple[str, ...], view: View) -> Iterator[RenderableType]:
    if turn.overall.strip():
        yield block(turn.overall)
    comments = Table.grid(padding=(0, 2, 0, 0))
    comments.add_column(no_wrap=True, style="bold")
    comments.add_column()
    for j, comment in enumerate(turn.comments):
        comments.add_row(line(candidate(j, turn.labels)), block(comment, indent=0))
    yield Padding(comments, (0, 0, 0, 2))
    if components and turn.scores.ndim == 2:
        yield Padding(_score_table(turn, components, view.width - 2), (1, 0, 0, 2))


def _score_table(turn: Turn, components: tuple[str, ...], width: int) -> Table:
    """The (J, K) scores of a turn: one row per candidate, or one per component where that would be too wide."""
    candidates = [candidate(j, turn.labels) for j in range(len(turn.scores))]
    form = f".{max(map(_decimals, turn.scores.flat), default=0)}f"
    cells = [[_cell(turn, j, k, form) for k in range(len(components))] for j in range(len(candidates))]  # (J, K)
    least = max(len(cell) for row in cells for cell in row) if turn.distributions else 0
    needed = sum(max(len(escape_controls(name)), least) + 3 for name in ("candidate", *components))
    if needed <= width:
        head, rows, columns = "candidate", candidates, list(components)
    else:
        head, rows, columns = "component", list(components), candidates
        cells = [list(column) for column in zip(*cells, strict=True)]  # (K, J)
    made = table(head, *columns, right=range(1, 1 + len(columns)))
    for name, values in zip(rows, cells, strict=True):
        made.add_row(line(name), *(line(value) for value in values))
    return made


def _cell(turn: Turn, j: int, k: int, form: str) -> str:
    """A score of a turn; one that was read out with its standard deviation."""
    score = turn.scores[j, k]
    if math.isnan(score):
        return "abstained" if why_unscored(turn, j, k) == "abstained" else "-"
    return f"{score:.1f} ± {moments(turn.distributions[j][k])[1]:.1f}" if turn.distributions else format(score, form)


def _decimals(score: float) -> int:
    """How many decimals, up to two, a score has."""
    return 0 if math.isnan(score) else next((n for n in (0, 1) if round(score, n) == round(score, 2)), 2)


def _result(evaluation: Evaluation) -> Table:
    labels = _labels(evaluation)
    best = [] if evaluation.p_best is None else ["P(best)"]
    made = table("candidate", "score", "probability", *best, "rank", "", right=range(1, 4 + len(best)))
    style = "bold green" if len(evaluation.choice) == 1 else "yellow"
    for j, rank in enumerate(evaluation.ranks()):
        cells = (
            candidate(j, labels),
            _score(evaluation, j),
            _number(evaluation.probabilities[j], ".3f"),
            *([] if evaluation.p_best is None else [f"{evaluation.p_best[j]:.3f}"]),
            "-" if rank is None else str(rank),
            ", ".join(_remarks(evaluation, j)),
        )
        made.add_row(*(line(cell) for cell in cells), style=style if j in evaluation.choice else None)
    return made


def _score(evaluation: Evaluation, j: int) -> str:
    score = evaluation.scores[j]
    return "unscored" if math.isnan(score) else f"{score:.2f}{top_of_scale(evaluation)}"


def _remarks(evaluation: Evaluation, j: int) -> Iterator[str]:
    """What is to be said of a candidate's score."""
    if (j,) == evaluation.choice:
        yield "selected"
    elif j in evaluation.tied:
        yield "= tied"
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
