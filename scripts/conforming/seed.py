"""Seed document 000: Borda, normalisation, confidence, and panels of two."""

from __future__ import annotations

from typing import Any

from conforming.cases import Input, numbers
from conforming.verdicts import Answer
from debate.scoring.agreement import agreement, combine, consensus
from debate.scoring.reducers import confidence, reduce_samples, summarise
from debate.scoring.tensor import normalize_scores
from debate.voting import borda_count

DOCUMENT_BALLOTS = [[2, 0, 1], [0, 2, 1]]


def votes(given: Input, literal: bool) -> Any:
    return borda_count(given["vote_results"], given["num_candidates"], compat="seed" if literal else None)


def normalised(given: Input, literal: bool) -> Any:
    return normalize_scores(numbers(given["scores"]), given["method"], compat="seed" if literal else None)


def confidences(given: Input, literal: bool) -> Any:
    result: dict[str, Any] = {}
    for thought, samples in given.items():
        summary = summarise(numbers(samples))
        trust = confidence(numbers(samples), compat="seed" if literal else None)
        result[thought] = {"mean": summary.mean, "std": summary.std, "confidence": trust, "raw_scores": samples}
    return result


def hybrid_value(given: Input, literal: bool) -> Any:
    compat = "seed" if literal else None
    claude, codex = (reduce_samples(numbers(given[name]), compat=compat) for name in ("claude", "codex"))
    members = [[claude], [codex]]
    panel = combine(members, agreement(members), 0.8, above="mean", below="worst")
    return {"score": panel.scores[0], "claude_score": claude, "codex_score": codex, "agreement": panel.agreement[0]}


def hybrid_votes(given: Input, literal: bool) -> Any:
    """The recorded call has no ballots; the document's own example stands in."""
    members = [borda_count(given.get(name, DOCUMENT_BALLOTS), 3) for name in ("claude", "codex")]
    return combine(members, consensus(members), 0.7, below="weighted", weights=(0.6, 0.4)).scores


_SEED = 'compat="seed"'

ANSWERS = {
    "aggregate_votes": Answer(votes, option=_SEED, why="a ballot that is no ranking of the candidates does not count"),
    "normalize_scores": Answer(normalised, option=_SEED, refusals={"UnboundLocalError": ValueError}),
    "evaluate_confidence": Answer(confidences, option=_SEED, why="one sample says nothing of how far samples agree"),
    "get_value_hybrid": Answer(hybrid_value, option=_SEED),
    "get_votes_hybrid": Answer(
        hybrid_votes, why="the document calls a rank correlation that it never defines; rank_correlation is one"
    ),
}
