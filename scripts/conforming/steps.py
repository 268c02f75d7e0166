"""Steps of reasoning: x1's prompted judge, search-and-learn's aggregation, ProcessBench's measure."""

from __future__ import annotations

from typing import Any

from conforming.cases import Input, numbers
from conforming.verdicts import Answer
from debate.parsing.step_scores import read_is_solved, read_step_score
from debate.scoring.reducers import StepReduction, pass_at_k, reduce_steps, step_accuracy

REDUCTIONS: dict[str, StepReduction] = {"min": "min", "prod": "product", "last": "last"}


def step_score(given: Input, literal: bool) -> Any:
    return read_step_score(given["reply"], compat="x1" if literal else None)


def is_solved(given: Input, literal: bool) -> Any:
    return read_is_solved(given["reply"], compat="x1" if literal else None)


def aggregated(given: Input, literal: bool) -> Any:
    how = REDUCTIONS[given["agg_strategy"]]
    return reduce_steps(numbers(given["scores"]), how, compat="sal" if literal else None)


def pass_rate(given: Input, literal: bool) -> Any:
    return pass_at_k(given["n"], given["c"], given["k"], compat="sal" if literal else None)


def accuracy(given: Input, literal: bool) -> Any:
    predicted, labels = zip(*given["pred_label"], strict=True)
    found = step_accuracy(predicted, labels, compat="processbench" if literal else None)
    return {"error_acc": found.error_accuracy, "correct_acc": found.correct_accuracy, "f1": found.f1}


_X1 = 'compat="x1"'

ANSWERS = {
    "PromptedStepEvaluation.evaluate_step": Answer(
        step_score,
        option=_X1,
        refusals={"IndexError": "no_tag", "ValueError": "not_a_number"},
        why="the last score outside the analysis is the judgement, and it must lie on the scale",
    ),
    "PromptedStepEvaluation.is_solved": Answer(is_solved, option=_X1, refusals={"IndexError": "no_tag"}),
    "aggregate_scores": Answer(aggregated, option='compat="sal"'),
    "pass_at_k": Answer(pass_rate, option='compat="sal"'),
    "F1 of (error acc, correct acc)": Answer(accuracy, option='compat="processbench"'),
}
