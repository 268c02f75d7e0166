"""Published evaluation functions without a program: Borda, normalization, confidence, and panels of two."""

from __future__ import annotations

from typing import Any

from conforming import originals
from conforming.cases import Input, numbers
from conforming.verdicts import Answer
from debate.config.construct import make_evaluator
from debate.errors import ConfigError
from debate.scoring.agreement import agreement, combine, consensus
from debate.scoring.normalization import normalize_scores
from debate.scoring.reducers import confidence, reduce_samples, summarize
from debate.voting import borda_count

EXAMPLE_BALLOTS = [[2, 0, 1], [0, 2, 1]]


def votes(given: Input, literal: bool) -> Any:
    return (originals.evaluation_borda if literal else borda_count)(given["vote_results"], given["num_candidates"])


def normalized(given: Input, literal: bool) -> Any:
    scores: list[Any] = numbers(given["scores"])
    return (originals.evaluation_normalize if literal else normalize_scores)(scores, given["method"])


def confidences(given: Input, literal: bool) -> Any:
    result: dict[str, Any] = {}
    for thought, samples in given.items():
        values: list[Any] = numbers(samples)
        summary = summarize(values)
        trust = (originals.evaluation_confidence if literal else confidence)(values)
        result[thought] = {"mean": summary.mean, "std": summary.std, "confidence": trust, "raw_scores": samples}
    return result


def hybrid_value(given: Input, literal: bool) -> Any:
    claude, codex = (reduce_samples(numbers(given[name])) for name in ("claude", "codex"))
    if literal and not (given["claude"] and given["codex"]):
        raise ZeroDivisionError("no samples")
    members = [[claude], [codex]]
    panel = combine(members, agreement(members), 0.8, above="mean", below="worst")
    return {"score": panel.scores[0], "claude_score": claude, "codex_score": codex, "agreement": panel.agreement[0]}


def hybrid_votes(given: Input, literal: bool) -> Any:
    """The recorded call has no ballots; the example that was published with it stands in."""
    members = [borda_count(given.get(name, EXAMPLE_BALLOTS), 3) for name in ("claude", "codex")]
    return combine(members, consensus(members), 0.7, below="weighted", weights=(0.6, 0.4)).scores


def by_method(given: Input, literal: bool) -> Any:
    """An evaluator by the name of its method."""
    return make_evaluator(str(given["method"]), {}).name


ANSWERS = {
    "aggregate_votes": Answer(
        votes, option="evaluation_borda", why="a ballot that is no ranking of the candidates does not count"
    ),
    "normalize_scores": Answer(normalized, option="evaluation_normalize", refusals={"UnboundLocalError": ValueError}),
    "evaluate_confidence": Answer(
        confidences, option="evaluation_confidence", why="one sample says nothing of how far samples agree"
    ),
    "get_value_hybrid": Answer(hybrid_value, option="a ZeroDivisionError without samples"),
    "get_votes_hybrid": Answer(
        hybrid_votes, why="the published code calls a rank correlation that it never defines; rank_correlation is one"
    ),
    "Evaluator(method).evaluate": Answer(by_method, refusals={"UnboundLocalError": ConfigError}),
}
