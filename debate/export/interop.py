"""Results for other tools' score files: inspect's precomputed scores, MT-bench's judgments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from debate.evaluation import Evaluation
from debate.export.writer import Export, ExportSummary, Results, Row, finite_or_none, model_of, write_lines
from debate.types import Task

_TIE = 0.1
"""Ratings of 1 to 10 that are no further apart are a tie: FastChat's TIE_DELTA."""


def write_inspect(results: Results, path: Path, run: str) -> ExportSummary:
    """A line per task, for `precomputed_scores(FILE)`: id, value, answer, explanation, metadata.

    The value is what inspect's metrics understand: `C` where the choice is what the label names, `I` where it is not or
    is a tie, `N` where nothing was scored, so that its accuracy is the run's. A single candidate without a label has
    its score, on 0 to 1 where 1 is best. `metadata.scores` holds all candidates' scores.
    """
    return write_lines(path, (_inspect_row(task, each, run, _grade(task, each)) for task, each in results))


def write_inspect_scores(results: Results, path: Path, run: str) -> ExportSummary:
    """As `write_inspect`, with every candidate's score by its generator as the value, for tasks of the same generators.

    For `precomputed_scores(FILE, metrics={"*": [mean(), stderr()]})`. What has no score is NaN, which inspect leaves
    out of its means; null would count as 0.
    """
    values = ((task, each, dict(zip(_names(task), each.scores.tolist(), strict=True))) for task, each in results)
    return write_lines(path, (_inspect_row(task, each, run, value) for task, each, value in values), allow_nan=True)


_GRADES = {"right": "C", "wrong": "I", "tied": "I", "unscored": "N"}


def _grade(task: Task, evaluation: Evaluation) -> str | float | None:
    """How the choice stands to the label; without one, a single candidate's score on 0 to 1; None for neither."""
    verdict = evaluation.verdict(task.best)
    if verdict is not None:
        return _GRADES[verdict]
    score = evaluation.scores[0].item()
    return None if len(evaluation.scores) > 1 or math.isnan(score) else evaluation.scale.to_unit(score)


def _inspect_row(task: Task, evaluation: Evaluation, run: str, value: object) -> Row | str:
    if value is None:
        return "it has no label (--to inspect_scores writes all scores)"
    names = _names(task)
    return {
        "id": task.id,
        "value": value,
        "answer": " = ".join(names[j] for j in evaluation.choice) or None,
        "explanation": evaluation.chain_of_thought(),
        "metadata": {
            "run": run,
            "evaluator": evaluation.evaluator,
            "status": evaluation.status,
            "selected": evaluation.selected,
            "tied": list(evaluation.tied),
            "best": list(task.best),
            "scores": dict(zip(names, map(finite_or_none, evaluation.scores.tolist()), strict=True)),
            "failures": len(evaluation.failures),
        },
    }


def _names(task: Task) -> list[str]:
    """The candidates' generators, with their places where two are alike."""
    names = [model_of(task, j) for j in range(len(task.candidates))]
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name}-{j + 1}" for j, name in enumerate(names)]


def write_mt_bench(results: Results, path: Path, run: str) -> ExportSummary:
    """A line per scored candidate, as `gen_judgment` writes them: the score is mapped from its scale to 1 to 10."""
    return write_lines(path, _judgments(results, run))


def _judgments(results: Results, run: str) -> Iterator[Row | str]:
    for task, evaluation in results:
        for j, score in enumerate(evaluation.scores.tolist()):
            if math.isnan(score):
                yield "a candidate has no score"
                continue
            yield {
                "question_id": _question_id(task),
                "model": model_of(task, j),
                "judge": [evaluation.evaluator, run],
                "user_prompt": task.x,
                "judgment": evaluation.feedback(j),
                "score": _rating(evaluation, j),
                "turn": 1,
                "tstamp": 0.0,
            }


def write_mt_bench_pairs(results: Results, path: Path, run: str) -> ExportSummary:
    """A line for each two scored candidates: who wins either game, `model_1`, `model_2` or `tie`.

    Both are rated on 1 to 10 as by `write_mt_bench`; within 0.1 it is a tie. The games are the two orders of a balanced
    debate, the first being that in which `model_1` was shown first; any other evaluation stands for both.
    """
    return write_lines(path, _pair_judgments(results, run))


def _pair_judgments(results: Results, run: str) -> Iterator[Row | str]:
    for task, evaluation in results:
        scored = [j for j, score in enumerate(evaluation.scores.tolist()) if not math.isnan(score)]
        if len(scored) < 2:
            yield "fewer than two candidates have a score"
        for a, b in combinations(scored, 2):
            first, second = _games(evaluation, a, b)
            yield {
                "question_id": _question_id(task),
                "model_1": model_of(task, a),
                "model_2": model_of(task, b),
                "g1_winner": _winner(first, a, b),
                "g2_winner": _winner(second, a, b),
                "judge": [evaluation.evaluator, run],
                "g1_user_prompt": task.x,
                "g1_judgment": f"{first.feedback(a)}\n\n{first.feedback(b)}",
                "g2_user_prompt": task.x,
                "g2_judgment": f"{second.feedback(b)}\n\n{second.feedback(a)}",
                "m1_score": _rating(evaluation, a),
                "m2_score": _rating(evaluation, b),
                "turn": 1,
                "tstamp": 0.0,
            }


def _games(evaluation: Evaluation, a: int, b: int) -> tuple[Evaluation, Evaluation]:
    """The evaluation that showed `a` before `b`, and the one that showed it after."""
    if len(evaluation.members) != 2 or evaluation.order_agreement is None:
        return evaluation, evaluation
    one, other = evaluation.members
    shown = list(one.transcript.turns[0].labels.values())
    return (one, other) if shown.index(a) < shown.index(b) else (other, one)


def _winner(evaluation: Evaluation, a: int, b: int) -> str:
    gap = _rating(evaluation, a) - _rating(evaluation, b)
    return "tie" if abs(gap) <= _TIE else "model_1" if gap > 0 else "model_2"


def _rating(evaluation: Evaluation, j: int) -> float:
    """A score on 1 to 10, where 10 is best."""
    return 1.0 + 9.0 * evaluation.scale.to_unit(evaluation.scores[j].item())


def _question_id(task: Task) -> int | str:
    """A number, as MT-bench has them, where that says the same."""
    return int(task.id) if task.id.isdecimal() and str(int(task.id)) == task.id else task.id


INSPECT = Export(write_inspect, "inspect.jsonl")
INSPECT_SCORES = Export(write_inspect_scores, "inspect_scores.jsonl")
MT_BENCH = Export(write_mt_bench, "judgments.jsonl")
MT_BENCH_PAIRS = Export(write_mt_bench_pairs, "pair_judgments.jsonl")
