"""Results for other tools' score files: inspect's precomputed scores, MT-bench's judgments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from debate.jobs.exports.writing import Results, Written, model_of, write_lines
from debate.types import Task


def write_inspect(results: Results, path: Path, run: str) -> Written:
    """A line a task: id, value (a score, or one a candidate by its generator), answer, explanation, metadata.

    Candidates without a score are not in the value but in `metadata.unscored`; a task without any is left out.
    """
    written = Written()
    return write_lines(path, _inspect_rows(results, run, written), written)


def _inspect_rows(results: Results, run: str, written: Written) -> Iterator[dict[str, Any]]:
    for task, evaluation in results:
        names = _names(task)
        scores = {name: score for name, score in zip(names, evaluation.scores.tolist(), strict=True)}
        value = {name: score for name, score in scores.items() if not math.isnan(score)}
        if not value:
            written.skipped["no candidate has a score"] += 1
            continue
        selected = evaluation.selected
        yield {
            "id": task.id,
            "value": next(iter(value.values())) if len(names) == 1 else value,
            "answer": None if selected is None else names[selected],
            "explanation": evaluation.chain_of_thought(),
            "metadata": {
                "run": run,
                "evaluator": evaluation.evaluator,
                "status": evaluation.status,
                "selected": selected,
                "unscored": [name for name in names if name not in value],
                "failures": len(evaluation.failures),
            },
        }


def _names(task: Task) -> list[str]:
    """The candidates' generators, with their places where two are alike."""
    names = [model_of(task, j) for j in range(len(task.candidates))]
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name}-{j + 1}" for j, name in enumerate(names)]


def write_mt_bench(results: Results, path: Path, run: str) -> Written:
    """A line a scored candidate, as `gen_judgment` writes them: the score is mapped from its scale to 1 to 10."""
    written = Written()
    return write_lines(path, _judgments(results, run, written), written)


def _judgments(results: Results, run: str, written: Written) -> Iterator[dict[str, Any]]:
    for task, evaluation in results:
        for j, score in enumerate(evaluation.scores.tolist()):
            if math.isnan(score):
                written.skipped["a candidate has no score"] += 1
                continue
            yield {
                "question_id": int(task.id) if task.id.isdecimal() else task.id,
                "model": model_of(task, j),
                "judge": [evaluation.evaluator, run],
                "user_prompt": task.x,
                "judgment": evaluation.feedback(j),
                "score": 1.0 + 9.0 * evaluation.scale.to_unit(score),
                "turn": 1,
                "tstamp": 0.0,
            }
