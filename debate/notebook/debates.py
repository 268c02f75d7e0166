"""An evaluation as HTML: its scores, the last round as a heat map, and who said what, which is folded."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from debate.cli.render_debate import said_before, stopped
from debate.evaluation import Evaluation, abstained_cells, plain, subject, why_unscored, worth_of
from debate.evaluators.debate.settings import CELL_SCALE
from debate.notebook.html import bar, chip, facts, folded, heat_cell, said, table, tag, text
from debate.types import FloatArray, Judgment, Scale, Task, Transcript, Turn

_MOST_CANDIDATES, _MOST_MAPS, _MOST_COMPONENTS, _MOST_TURNS, _MOST_MEMBERS = 50, 8, 12, 60, 20
"""What is shown of many; a notebook keeps what its cells show."""


def evaluation_parts(evaluation: Evaluation, task: Task | None = None) -> Iterator[Markup]:
    """Head, scores, last round, and what was said; of an evaluation made from others, these too."""
    name, status = chip(evaluation.evaluator), chip(evaluation.status, evaluation.status)
    yield tag("div", tag("span", evaluation.task_id, cls="title"), name, status)
    yield facts(*_facts(evaluation))
    if evaluation.error:
        yield tag("div", evaluation.error)
    yield _scores(evaluation, task)
    if task is not None:
        yield folded("The task", *task_parts(task))
    yield from _said_parts(evaluation)
    if evaluation.details:
        details = json.dumps(plain(evaluation)["details"], indent=1, ensure_ascii=False)
        yield folded("Details", said(details))
    if evaluation.members:
        yield folded(f"Made of {len(evaluation.members):,} evaluations", *_members(evaluation))


def task_parts(task: Task) -> Iterator[Markup]:
    """The input, what is known beside it, and the candidates."""
    yield said(task.x)
    for n, each in enumerate(task.background):
        yield folded(f"Context {n + 1}", said(each))
    best = task.best
    rows = [
        (str(j + 1) + (" (right)" if j in best else ""), each.generator or each.id or "", said(each.text))
        for j, each in enumerate(task.candidates[:_MOST_CANDIDATES])
    ]
    yield table(("candidate", "from", "text"), rows)
    yield from _more(len(task.candidates), _MOST_CANDIDATES, "candidates", ".candidates")


def transcript_parts(transcript: Transcript, components: Sequence[str] = (), scale: Scale | None = None) -> Markup:
    """The turns as a conversation, round by round, with what each agent changed since its turn before."""
    found, turns = Markup(""), transcript.turns[-_MOST_TURNS:]
    found += Markup("").join(_more(len(transcript), _MOST_TURNS, "turns before these", ".transcript"))
    last = -1
    for turn in turns:
        if turn.round != last:
            found += tag("div", tag("b", f"Round {turn.round + 1}"))
        last = turn.round
        found += tag("div", *_turn(turn, said_before(turn, transcript.turns), components, scale))
    return found


def _more(count: int, most: int, what: str, where: str) -> Iterator[Markup]:
    if count > most:
        yield facts(f"{count - most:,} more {what}: see {where}")


def _facts(evaluation: Evaluation) -> Iterator[str]:
    numbers, n = " and ".join(str(j + 1) for j in evaluation.choice[:8]), len(evaluation.scores)
    if not numbers:
        yield "no candidate is selected"
    elif len(evaluation.choice) > 1:
        yield f"tied: candidates {numbers} of {n}"
    else:
        yield f"selected: candidate {numbers} of {n}"
    if evaluation.rounds_run:
        yield f"{evaluation.rounds_run} round{'s' if evaluation.rounds_run > 1 else ''}"
    if evaluation.stop_reason is not None:
        yield f"stopped: {stopped(evaluation)}"
    if not all(map(math.isnan, evaluation.cv)):
        yield f"CV by round: {', '.join('-' if math.isnan(cv) else f'{cv:.2f}' for cv in evaluation.cv)}"
    if evaluation.order_agreement is not None:
        yield f"both orders choose {'alike' if evaluation.order_agreement else 'differently'}"
    if (abstained := abstained_cells(evaluation))[0]:
        yield f"abstained from {abstained[0]:,} of {abstained[1]:,} cells"
    yield f"{evaluation.usage.calls:,} calls, {evaluation.usage.total_tokens:,} tokens, {evaluation.seconds:.1f} s"


def _scores(evaluation: Evaluation, task: Task | None) -> Markup:
    """A row for each candidate: score, how surely it is the best, and its mean on each component."""
    by, p_best, ranks = evaluation.by_component, evaluation.p_best, evaluation.ranks()
    components = evaluation.components if by is not None else ()
    components = components or (evaluation.members[0].components if by is not None and evaluation.members else ())
    shown = components[:_MOST_COMPONENTS] if by is not None and len(components) == by.shape[1] else ()
    headers = ["candidate", "score", "", "probability", *(["is best"] if p_best is not None else []), "rank", *shown]
    rows: list[list[object]] = []
    for j, score in enumerate(evaluation.scores[:_MOST_CANDIDATES].tolist()):
        row: list[object] = [
            _candidate(evaluation, j, task),
            _number(score, ".2f"),
            bar(_share(evaluation.scale, score)),
        ]
        row += [f"{evaluation.probabilities[j]:.3f}", *([f"{p_best[j]:.3f}"] if p_best is not None else [])]
        row += ["-" if ranks[j] is None else ranks[j]]
        row += [] if by is None else [_number(mean, ".2f") for mean in by[j, : len(shown)].tolist()]
        rows.append(row)
    more = Markup("").join(_more(len(evaluation.scores), _MOST_CANDIDATES, "candidates", ".scores"))
    return table(headers, rows, [1, *range(3, len(headers))]) + more


def _candidate(evaluation: Evaluation, j: int, task: Task | None) -> Markup:
    known = "" if task is None else (task.candidates[j].generator or task.candidates[j].id or "")
    told = Markup(" ").join([text(j + 1), *([text(known, 60)] if known else [])])
    marks = ["selected"] if evaluation.selected == j else []
    marks += ["tied"] if j in evaluation.tied else []
    marks += ["right"] if task is not None and j in task.best else []
    if j < len(evaluation.statuses) and evaluation.statuses[j] != "ok":
        marks.append(evaluation.statuses[j])
    return (tag("b", told) if j in evaluation.choice else told) + Markup("").join(chip(each) for each in marks)


def _said_parts(evaluation: Evaluation) -> Iterator[Markup]:
    """The rounds as heat maps, the last one unfolded, the conversation, and replies of a judge that does not debate."""
    if evaluation.tensor is not None and len(evaluation.tensor):
        *earlier, last = range(len(evaluation.tensor))
        yield _heat(evaluation, last)
        if earlier:
            yield folded("Scores of the rounds before", *(_heat(evaluation, r) for r in earlier))
    if turns := len(evaluation.transcript):
        told = transcript_parts(evaluation.transcript, evaluation.components, evaluation.scale)
        yield folded(f"The debate: {turns:,} turns", told)
    if n := len(evaluation.judgments):
        rows = [_judgment(each) for each in evaluation.judgments[:_MOST_TURNS]]
        told = table(("about", "value", "reply"), rows), *_more(n, _MOST_TURNS, "replies", ".judgments")
        yield folded(f"The judge: {n:,} {'replies' if n > 1 else 'reply'}", *told)


def _heat(evaluation: Evaluation, r: int) -> Markup:
    """One round: a heat map for each candidate, components downward and agents across."""
    assert evaluation.tensor is not None
    scores: FloatArray = evaluation.tensor[r]  # (I, J, K)
    turns = {turn.agent: turn for turn in evaluation.transcript.of_round(r)}
    said_by = [turns.get(name) for name in evaluation.agents]
    maps = (_map(evaluation, j, scores[:, j], said_by) for j in range(min(scores.shape[1], _MOST_MAPS)))
    caption = tag("div", f"Scores of round {r + 1} of {len(evaluation.tensor)}", cls="less")
    return (
        caption + Markup("").join(maps) + Markup("").join(_more(scores.shape[1], _MOST_MAPS, "candidates", ".tensor"))
    )


def _map(evaluation: Evaluation, j: int, scores: FloatArray, turns: Sequence[Turn | None]) -> Markup:
    """The scores (I, K) of one candidate."""
    rows = Markup("")
    for k, component in enumerate(evaluation.components[:_MOST_COMPONENTS]):
        why = ["" if turn is None else why_unscored(turn, j, k) or "" for turn in turns]
        found = zip(scores[:, k].tolist(), why, strict=True)
        drawn = (heat_cell(score, _share(CELL_SCALE, score), reason) for score, reason in found)
        rows += tag("tr", tag("td", text(component, 40)), *drawn)
    names = (tag("th", text(name, 40)) for name in evaluation.agents)
    head = tag("thead", tag("tr", tag("th", f"candidate {j + 1}"), *names))
    return tag("table", head, tag("tbody", rows), cls="heat")


def _turn(turn: Turn, before: Turn | None, components: Sequence[str], scale: Scale | None) -> Iterator[Markup]:
    """What an agent said: on all, and on each candidate with its scores."""
    yield tag("b", turn.agent)
    if turn.failure is not None:
        yield tag("div", f"failed ({turn.failure.reason}): {turn.failure.message}", cls="said")
    if turn.overall:
        yield said(turn.overall)
    rows = [(_shown_as(turn, j), _comment(turn, j), _scored(turn, before, j, components)) for j in turn.labels.values()]
    if rows and turn.failure is None:
        yield table(("candidate", "comment", "scores"), rows)
    if turn.memories:
        yield folded(f"{len(turn.memories)} memories recalled", *(said(each.text) for each in turn.memories))
    if turn.invalid_replies:
        rejected = (said(f"{each.reason}: {each.message}\n{each.text}") for each in turn.invalid_replies)
        yield folded(f"{len(turn.invalid_replies)} replies that could not be read", *rejected)


def _shown_as(turn: Turn, j: int) -> str:
    return next((f"{j + 1} ({label})" for label, index in turn.labels.items() if index == j), str(j + 1))


def _comment(turn: Turn, j: int) -> Markup:
    return said(turn.comments[j]) if j < len(turn.comments) else Markup("")


def _scored(turn: Turn, before: Turn | None, j: int, components: Sequence[str]) -> Markup:
    """The scores of a candidate; one that is not what it was is told as `3 → 5`."""
    told: list[str] = []
    for k, score in enumerate(turn.scores[j].tolist()):
        name = f"{components[k]} " if k < len(components) else ""
        was = math.nan if before is None or before.scores.shape != turn.scores.shape else float(before.scores[j, k])
        changed = "" if math.isnan(was) or was == score else f"{was:.3g} → "
        now = (why_unscored(turn, j, k) or "-") if math.isnan(score) else f"{score:.3g}"
        sign = "" if not changed or math.isnan(score) else " ▲" if score > was else " ▼"
        told.append(f"{name}{changed}{now}{sign}")
    return text(", ".join(told), 2_000)


def _judgment(sample: Judgment) -> tuple[object, ...]:
    """What a reply is about, what was read in it, and its words."""
    order = " > ".join(str(j + 1) for j in sample.ranking)
    failure = "" if sample.failure is None else f"{sample.failure.reason}: {sample.failure.message}"
    return subject(sample), worth_of(sample) or order or "-", said(sample.text or failure)


def _members(evaluation: Evaluation) -> Iterator[Markup]:
    for each in evaluation.members[:_MOST_MEMBERS]:
        yield tag("div", *evaluation_parts(each))
    yield from _more(len(evaluation.members), _MOST_MEMBERS, "members", ".members")


def _share(scale: Scale, score: float) -> float:
    """How good a score is, from 0 to 1; NaN where there is none."""
    return math.nan if math.isnan(score) else min(max(scale.to_unit(score), 0.0), 1.0)


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)
