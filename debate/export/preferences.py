"""Results as comparisons: preference pairs for training, AlpacaEval annotations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from debate.evaluation import Evaluation
from debate.export.writer import Export, ExportSummary, Results, Row, model_of, write_array, write_lines
from debate.tasks.conversations import Message
from debate.types import Task


def write_preferences(results: Results, path: Path, run: str, min_margin: float = 0.0) -> ExportSummary:
    """A line for the best candidate and each that is worse: prompt, chosen, rejected, margin.

    The margin is the distance of their scores on the evaluation's scale, at least `min_margin`. Ties for the best give
    no pair among themselves; a candidate without a score gives none, nor does one with the very text of the best. Of a
    task with a conversation, prompt, chosen and rejected are lists of messages, as trainers take them.
    """
    return write_lines(path, (row for task, found in results for row in _pairs(task, found, run, min_margin)))


def write_alpaca_eval(results: Results, path: Path, run: str) -> ExportSummary:
    """Annotations of pairs: `preference` is 1 to 2, one plus the probability of the second; 1.5 is a tie."""
    return write_array(path, (_annotation(task, evaluation, run) for task, evaluation in results))


def _pairs(task: Task, evaluation: Evaluation, run: str, min_margin: float) -> Sequence[Row | str]:
    scores = [score if evaluation.scale.higher_is_better else -score for score in evaluation.scores.tolist()]
    scored = [j for j, score in enumerate(scores) if not math.isnan(score)]
    if len(scored) < 2:
        return ["fewer than two candidates have a score"]
    ranks = evaluation.ranks()
    best = ranks.index(1)
    rows = [
        {
            **dict(zip(("prompt", "chosen", "rejected"), _said(task, best, j), strict=True)),
            "margin": margin,
            "chosen_score": evaluation.scores[best].item(),
            "rejected_score": evaluation.scores[j].item(),
            "task_id": task.id,
            "run": run,
        }
        for j in scored
        if ranks[j] != 1
        and (margin := scores[best] - scores[j]) >= min_margin
        and task.candidates[j].text != task.candidates[best].text  # nothing to prefer
    ]
    return rows or ["no candidate is better than a different one by the margin"]


def _said(task: Task, best: int, worse: int) -> Sequence[str | list[Message]]:
    """The input and two candidates: as texts, or as messages where one of the task's is a conversation."""
    pair = [task.candidates[j] for j in (best, worse)]
    if not (task.messages or any(each.messages for each in task.candidates)):
        return [task.x, *(each.text for each in pair)]
    asked = list(task.messages) or [{"role": "user", "content": task.x}]
    return [asked, *(list(each.messages) or [{"role": "assistant", "content": each.text}] for each in pair)]


def _annotation(task: Task, evaluation: Evaluation, run: str) -> Row | str:
    if len(task.candidates) != 2:
        return "it has not two candidates"
    first, second = evaluation.probabilities.tolist()
    if any(math.isnan(score) for score in evaluation.scores.tolist()) or not first + second > 0:
        return "a candidate has no score"
    return {
        "instruction": task.x,
        "output_1": task.candidates[0].text,
        "output_2": task.candidates[1].text,
        "generator_1": model_of(task, 0),
        "generator_2": model_of(task, 1),
        "annotator": f"{evaluation.evaluator} ({run})",
        "preference": 1.0 + second / (first + second),
    }


PREFERENCES = Export(write_preferences, "preferences.jsonl")
ALPACA_EVAL = Export(write_alpaca_eval, "annotations.json")
