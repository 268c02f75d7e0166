"""What the original programs do where the package does otherwise on purpose: their rules, accidents included.

Each function repeats one rule of one program, so that a recorded case on which the package's own function differs can
still be reproduced and the difference named. Nothing here is part of the package.

    tot_*          tree-of-thought-llm (Yao et al. 2023)
    got_*          graph-of-thoughts (Besta et al. 2023)
    x1_*           x1's prompted step evaluation
    sal_*          search-and-learn's aggregation of step scores
    evaluation_*   the code blocks of the evaluation functions that were published without a program
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

TOT_LABELS = {"impossible": 0.001, "likely": 1.0, "sure": 20.0}
SORTING_PENALTY, SET_PENALTY, KEYWORD_PENALTY = 300, 1000, 100
"""What graph-of-thoughts gives an answer that it cannot read."""


def tot_value(trajectory: str, replies: Sequence[str]) -> float:
    """Sum of the labels that stand alone on a last line; 0 for four lines without an answer."""
    if len(trajectory.strip().split("\n")) == 4 and "answer" not in trajectory.lower():
        return 0.0
    return sum(TOT_LABELS.get(reply.split("\n")[-1], 0.0) for reply in replies)


def tot_votes(replies: Sequence[str], n_candidates: int) -> list[float]:
    """Votes by the last digit after the phrase, wherever it stands and of whatever number: 12 is candidate 2."""
    found = (re.search(r"best choice is .*(\d)", reply, re.DOTALL) for reply in replies)
    counts = Counter(int(match[1]) - 1 for match in found if match)
    return [float(counts[j]) for j in range(n_candidates)]


def tot_comparison(reply: str) -> float:
    """The first of 1, 2 and equal that is said, so that 12 is a 1; -1 when none is."""
    better = "more coherent passage is"
    worth = {f"{better} 1": 0.0, f"{better} 2": 1.0, "two passages are similarly coherent": 0.5}
    return next((value for phrase, value in worth.items() if phrase in reply), -1.0)


def got_sorting_errors(original: str, answer: str) -> int:
    """Only 0 to 9 are counted; an answer must be a list and nothing else, blanks included."""
    try:
        expected, numbers = _got_list(original), _got_list(answer)
    except ValueError:
        return SORTING_PENALTY
    found, wanted = (Counter(n for n in each if 0 <= n < 10) for each in (numbers, expected))
    return _unlike(found, wanted) + sum(before > after for before, after in pairwise(numbers))


def got_set_errors(set1: str, set2: str, answer: str) -> int:
    """An empty list cannot be read."""
    try:
        common = set(_got_list(set1)) & set(_got_list(set2))
        return _unlike(Counter(_got_list(answer)), Counter(common))
    except ValueError:
        return SET_PENALTY


def got_keyword_errors(text: str, answer: str, keywords: Iterable[str]) -> float:
    """Keywords are found inside other words too: Niger in Nigeria."""
    return got_frequency_errors({keyword: text.count(keyword) for keyword in keywords}, answer)


def got_frequency_errors(truth: Mapping[str, int], answer: str) -> float:
    """An answer must be JSON and nothing else."""
    try:
        found: dict[str, Any] = json.loads(answer)
        return sum(abs(found.get(key, 0) - truth.get(key, 0)) for key in {**truth, **found})
    except (ValueError, TypeError, AttributeError, RecursionError):
        return KEYWORD_PENALTY


def got_tagged_f1(replies: Sequence[str], tags: Sequence[str]) -> float:
    """The last number between the tags, or of the whole reply where there are none; 0.0 when nothing is read."""
    found = [[number for text in replies if (number := _last_number(text, tag)) is not None] for tag in tags]
    if not all(found):
        return 0.0
    a, b = map(fmean, found)
    return 2 * a * b / (a + b)


def got_keep_valid(valid: Iterable[bool | None]) -> list[int]:
    """Indices of the thoughts that were found valid, or never validated."""
    return [index for index, value in enumerate(valid) if value is None or value]


def x1_step_score(reply: str) -> int:
    """The whole number inside the first `<score>`, also one quoted inside the analysis, of any size."""
    return int(_first_tag(reply, "score"))


def x1_is_solved(reply: str) -> bool:
    """Whether the text inside `<is solved>` is exactly yes."""
    return _first_tag(reply, "is solved") == "yes"


def sal_aggregate(scores: Sequence[float], how: str) -> float:
    """No steps are worth 1 by `product`, an IndexError by `last` and a ValueError by `min`."""
    return scores[-1] if how == "last" else math.prod(scores) if how == "prod" else min(scores)


def processbench_f1(error_accuracy: float, correct_accuracy: float) -> float:
    """The harmonic mean; NaN for two zeros, as numpy's division gives it."""
    with np.errstate(invalid="ignore"):
        return float(np.float64(2 * error_accuracy * correct_accuracy) / (error_accuracy + correct_accuracy))


def evaluation_borda(ballots: Sequence[Sequence[int]], n_candidates: int) -> list[float]:
    """Every ballot is counted as it stands: an id twice scores twice, and -1 is the last candidate."""
    totals = [0.0] * n_candidates
    for ballot in ballots:
        for rank, candidate in enumerate(ballot):
            totals[candidate] += n_candidates - rank
    return [total / (n_candidates * len(ballots)) * 10.0 for total in totals]


def evaluation_normalize(scores: Sequence[float], method: str) -> list[float]:
    """One NaN makes all NaN, an empty input is an error, and only three methods are known."""
    values = np.array(scores, dtype=np.float64)  # (J,)
    if method == "minmax":
        low, high = values.min(), values.max()
        normalized = np.full_like(values, 5.0) if high - low < 0.001 else (values - low) / (high - low) * 10
    elif method == "zscore":
        mean, std = values.mean(), values.std()
        normalized = np.full_like(values, 5.0) if std < 0.001 else ((values - mean) / std + 3) / 6 * 10
        normalized = np.clip(normalized, 0, 10)
    elif method == "sigmoid":
        normalized = 10 / (1 + np.exp(-(values - values.mean())))
    else:
        raise UnboundLocalError("normalized")
    return normalized.tolist()


def evaluation_confidence(samples: Sequence[float]) -> float:
    """`1 / (1 + std)`, also of a single sample."""
    return 1.0 / (1.0 + float(np.std(samples)))


def evaluation_early_stop(n_candidates: int, stream: Iterator[float], n_samples: int, threshold: float) -> list[float]:
    """One candidate after the other; a mean of `threshold * 10` ends the search, and what is left is worth 0."""
    scores = [0.0] * n_candidates
    for j in range(n_candidates):
        samples: list[float] = []
        while len(samples) < n_samples and not (len(samples) > 1 and fmean(samples) >= threshold * 10):
            samples.append(next(stream))
        scores[j] = fmean(samples)
        if scores[j] >= threshold * 10:
            break
    return scores


def _got_list(text: str) -> list[int]:
    """The text is a bracketed list, to the character, and not empty."""
    if text[:1] != "[" or text[-1:] != "]":
        raise ValueError("not a list")
    return [int(item) for item in text[1:-1].split(",")]


def _unlike(found: Counter[int], expected: Counter[int]) -> int:
    return ((found - expected) + (expected - found)).total()


def _last_number(text: str, tag: str) -> float | None:
    """The last number between the last opening and the last closing tag, or on the one side that there is of them."""
    _, output, after = text.strip().partition("Output:")
    text = after.strip() if output else text.strip()
    start, end = text.rfind(f"<{tag}>"), text.rfind(f"</{tag}>")
    begin = start + len(tag) + 2 if start >= 0 else 0
    found = re.findall(r"\d+\.?\d*", text[begin : end if end >= 0 else None])
    return float(found[-1]) if found else None


def _first_tag(reply: str, tag: str) -> str:
    """What stands between the first opening tag and the next tag of the same name; an IndexError without one."""
    return reply.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
