"""Steps of reasoning: x1's prompted judge, search-and-learn's aggregation, ProcessBench's measure."""

from __future__ import annotations

import math
from typing import Any

from conforming import originals
from conforming.cases import Input, numbers
from conforming.verdicts import Answer
from debate.parsing.values import TagNumber, read_is_solved
from debate.scoring.reducers import STEP_SCALE, reduce_steps, step_accuracy

SCORE = TagNumber("score", STEP_SCALE.low, STEP_SCALE.high)


def step_score(given: Input, literal: bool) -> Any:
    return (originals.x1_step_score if literal else SCORE)(given["reply"])


def is_solved(given: Input, literal: bool) -> Any:
    return (originals.x1_is_solved if literal else read_is_solved)(given["reply"])


def aggregated(given: Input, literal: bool) -> Any:
    scores: list[Any] = numbers(given["scores"])
    how: Any = given["agg_strategy"]
    return (
        originals.sal_aggregate(scores, how) if literal else reduce_steps(scores, "product" if how == "prod" else how)
    )


def pass_rate(given: Input, literal: bool) -> Any:
    """The unbiased estimate of arXiv 2107.03374; 1 whenever more are drawn than there are wrong ones."""
    n, c, k = given["n"], given["c"], given["k"]
    return 1.0 if n - c < k else 1.0 - math.comb(n - c, k) / math.comb(n, k)


def accuracy(given: Input, literal: bool) -> Any:
    predicted, labels = zip(*given["pred_label"], strict=True)
    found = step_accuracy(predicted, labels)
    f1 = originals.processbench_f1(found.error_accuracy, found.correct_accuracy) if literal else found.f1
    return {"error_acc": found.error_accuracy, "correct_acc": found.correct_accuracy, "f1": f1}


ANSWERS = {
    "PromptedStepEvaluation.evaluate_step": Answer(
        step_score,
        option="x1_step_score",
        refusals={"IndexError": "no_tag", "ValueError": "not_a_number"},
        why="the last score outside the analysis is the judgment, and it must lie on the scale",
    ),
    "PromptedStepEvaluation.is_solved": Answer(is_solved, option="x1_is_solved", refusals={"IndexError": "no_tag"}),
    "aggregate_scores": Answer(aggregated, option="sal_aggregate"),
    "pass_at_k": Answer(pass_rate),
    "F1 of (error acc, correct acc)": Answer(accuracy, option="processbench_f1"),
}
