"""Results as comparisons: preference pairs for training, AlpacaEval annotations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from debate.evaluation import Evaluation
from debate.export.writer import Export, ExportSummary, Results, model_of, write_array, write_lines
from debate.types import Task


def write_preferences(results: Results, path: Path, run: str, min_margin: float = 0.0) -> ExportSummary:
    """A line for the best candidate and each that is worse: prompt, chosen, rejected, margin.

    The margin is the distance of their scores on the evaluation's scale, above `min_margin`. Ties for the best give no
    pair among themselves; a candidate without a score gives none, nor does one with the very text of the best.
    """
    written = ExportSummary()
    return write_lines(path, _per_task(results, partial(_pairs, run=run, min_margin=min_margin), written), written)


def write_alpaca_eval(results: Results, path: Path, run: str) -> ExportSummary:
    """Annotations of pairs: `preference` is 1 to 2, one plus the probability of the second; 1.5 is a tie."""
    written = ExportSummary()
    return write_array(path, _per_task(results, partial(_annotation, run=run), written), written)


def _per_task(results: Results, rows_of: Any, written: ExportSummary) -> Iterator[dict[str, Any]]:
    """The rows of every task; one that has none is counted with the reason."""
    for task, evaluation in results:
        found: list[dict[str, Any]] | str = rows_of(task, evaluation)
        if isinstance(found, str):
            written.skipped[found] += 1
        else:
            yield from found


def _pairs(task: Task, evaluation: Evaluation, run: str, min_margin: float) -> list[dict[str, Any]] | str:
    scores = [score if evaluation.scale.higher_is_better else -score for score in evaluation.scores.tolist()]
    scored = [j for j, score in enumerate(scores) if not math.isnan(score)]
    if len(scored) < 2:
        return "fewer than two candidates have a score"
    best = max(scored, key=lambda j: (scores[j], -j))
    rows = [
        {
            "prompt": task.x,
            "chosen": task.candidates[best].text,
            "rejected": task.candidates[j].text,
            "margin": scores[best] - scores[j],
            "chosen_score": evaluation.scores[best].item(),
            "rejected_score": evaluation.scores[j].item(),
            "task_id": task.id,
            "run": run,
        }
        for j in scored
        if scores[best] - scores[j] > 0
        and scores[best] - scores[j] >= min_margin
        and task.candidates[j].text != task.candidates[best].text  # nothing to prefer
    ]
    return rows or "no candidate is better than a different one by the margin"


def _annotation(task: Task, evaluation: Evaluation, run: str) -> list[dict[str, Any]] | str:
    if len(task.candidates) != 2:
        return "it has not two candidates"
    first, second = evaluation.probabilities.tolist()
    if any(math.isnan(score) for score in evaluation.scores.tolist()) or not first + second > 0:
        return "a candidate has no score"
    row = {
        "instruction": task.x,
        "output_1": task.candidates[0].text,
        "output_2": task.candidates[1].text,
        "generator_1": model_of(task, 0),
        "generator_2": model_of(task, 1),
        "annotator": f"{evaluation.evaluator} ({run})",
        "preference": 1.0 + second / (first + second),
    }
    return [row]


PREFERENCES = Export(write_preferences, "preferences.jsonl")
ALPACA_EVAL = Export(write_alpaca_eval, "annotations.json")
