"""A debate put into words: feedback on one candidate, and the transcript as a chain of thought.

Pure text from an evaluation; asks no model. Candidates are named by their index in the task, from 1, because the
labels of the debate mean nothing outside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from debate.types import FloatArray, Judgment, Turn

if TYPE_CHECKING:
    from debate.evaluation import Evaluation


def feedback(evaluation: Evaluation, j: int) -> str:
    """What the agents said of candidate `j` (from 0), worst component first.

    Raises:
        IndexError: when there is no such candidate.
    """
    n_candidates = len(evaluation.scores)
    if not 0 <= j < n_candidates:
        raise IndexError(f"there is no candidate {j}: the task has {n_candidates}, counted from 0")
    lines = [_standing(evaluation, j)]
    for debate in _leaves(evaluation):
        lines += _component_lines(debate, j)
        lines += _comment_lines(debate, j)
        lines += _sample_lines(debate, j)
    return "\n".join(lines)


def chain_of_thought(evaluation: Evaluation, *, rounds: int | None, scores: bool, max_characters: int) -> str:
    """The turns as text, oldest first; see `Evaluation.chain_of_thought`."""
    parts: list[str] = []
    for debate in _leaves(evaluation):
        first = 0 if rounds is None else max(0, debate.rounds_run - rounds)
        parts += [
            _spoken(turn, debate.components if scores else ())
            for turn in debate.transcript
            if turn.failure is None and turn.round >= first
        ]
        parts += [_replied(debate, sample, scores) for sample in debate.scoring.reducers if sample.text]
    while max_characters and len(parts) > 1 and sum(len(part) + 2 for part in parts) - 2 > max_characters:
        parts.pop(0)
    text = "\n\n".join(parts)
    return text[:max_characters] if max_characters else text


def _leaves(evaluation: Evaluation) -> Iterator[Evaluation]:
    """The evaluations that are made of no others."""
    if not evaluation.members:
        yield evaluation
    for member in evaluation.members:
        yield from _leaves(member)


def _standing(evaluation: Evaluation, j: int) -> str:
    score = evaluation.scores[j]
    if np.isnan(score):
        return f"Candidate {j + 1} was not scored: {evaluation.error or 'no agent gave a readable score'}."
    gap = evaluation.scores - score if evaluation.scale.higher_is_better else score - evaluation.scores  # (J,)
    better = int(np.sum(gap > 0))
    return (
        f"Candidate {j + 1} of {len(evaluation.scores)}: {score:.2f} on a scale of "
        f"{evaluation.scale.low:g} to {evaluation.scale.high:g}, rank {better + 1}."
    )


def _component_lines(debate: Evaluation, j: int) -> list[str]:
    if debate.tensor is None or not debate.components:
        return []
    by_component = _mean(debate.tensor[:, :, j, :])  # (K,)
    order = sorted(
        (k for k in range(len(by_component)) if not np.isnan(by_component[k])), key=lambda k: by_component[k]
    )
    return [f"{debate.components[k]} {by_component[k]:.1f}{_by_agent(debate, j, k)}" for k in order]


def _by_agent(debate: Evaluation, j: int, k: int) -> str:
    assert debate.tensor is not None
    last = debate.tensor[-1, :, j, k]  # (I,)
    told = [f"{name} {value:g}" for name, value in zip(debate.agents, last, strict=False) if not np.isnan(value)]
    return f" ({', '.join(told)})" if told else ""


def _comment_lines(debate: Evaluation, j: int) -> list[str]:
    """The newest comment of every agent, the one who scored the candidate lowest first."""
    newest = {turn.agent: turn for turn in debate.transcript if turn.failure is None}
    turns = sorted(newest.values(), key=lambda turn: float(turn.scores[j].mean()))
    return [f"- {turn.agent}: {_relabel(turn.comments[j], turn)}" for turn in turns if turn.comments[j].strip()]


def _sample_lines(judged: Evaluation, j: int) -> list[str]:
    """What a judge that does not debate replied on the candidate, the lowest value first; ballots that rank it last."""
    about = [sample for sample in judged.samples if j in sample.candidates and sample.text.strip()]
    about.sort(key=lambda sample: _favour(sample, j))
    return [f"- {_replied(judged, sample, True)}" for sample in about]


def _replied(judged: Evaluation, sample: Judgment, scores: bool) -> str:
    """One reply, with what it is about and what was read in it."""
    about = ", ".join(str(j + 1) for j in sample.candidates)
    step = "" if sample.step is None else f", step {sample.step + 1}"
    worth = f": {sample.value:g}" if scores and sample.value is not None else ""
    order = f": {' > '.join(str(j + 1) for j in sample.ranking)}" if scores and sample.ranking else ""
    name = f"{judged.evaluator}, candidate{'s' if len(sample.candidates) > 1 else ''} {about}{step}{worth}{order}"
    return f"{name}\n  {_renumber(sample.text.strip(), dict(zip(sample.labels, sample.candidates, strict=False)))}"


def _favour(sample: Judgment, j: int) -> float:
    """How well a reply speaks of a candidate: its value, or its place in a ballot, the first best."""
    if sample.value is not None:
        return sample.value
    return -float(sample.ranking.index(j) if j in sample.ranking else len(sample.candidates))


def _spoken(turn: Turn, components: Sequence[str]) -> str:
    lines = [f"{turn.agent} (round {turn.round + 1}): {_relabel(turn.overall, turn)}".rstrip()]
    for j, comment in enumerate(turn.comments):
        marks = ", ".join(f"{name} {value:g}" for name, value in zip(components, turn.scores[j], strict=False))
        lines.append(f"- Candidate {j + 1}: {_relabel(comment, turn)}" + (f" ({marks})" if marks else ""))
    return "\n".join(lines)


_NAMED = re.compile(r"\b([Cc]andidate|[Rr]esponse|[Aa]nswer) ([A-Z]{1,2})\b")


def _relabel(text: str, turn: Turn) -> str:
    return _renumber(text.strip(), turn.labels)


def _renumber(text: str, labels: Mapping[str, int]) -> str:
    """`candidate B` becomes the candidate's number in the task; a bare letter is left alone."""

    def number(match: re.Match[str]) -> str:
        j = labels.get(match[2])
        return match[0] if j is None else f"{match[1]} {j + 1}"

    return _NAMED.sub(number, text)


def _mean(scores: FloatArray) -> FloatArray:
    """Mean over rounds and agents of (R, I, K), NaN where nobody scored; quiet about it."""
    scored = ~np.isnan(scores)
    total = np.where(scored, scores, 0.0).sum(axis=(0, 1))  # (K,)
    count = scored.sum(axis=(0, 1))  # (K,)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
