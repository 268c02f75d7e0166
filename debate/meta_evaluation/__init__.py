"""Judges the judge: what the scores of a run are worth, by what people say and beside what would cost less.

Reads runs from their stores; every command here that asks no model works without one.
"""

from debate.meta_evaluation.compare import Comparison
from debate.meta_evaluation.judged import Judged, JudgedRun, read_run
from debate.meta_evaluation.models import ModelRanking, rank_models
from debate.meta_evaluation.trust import TrustFigures, agree

__all__ = [
    "Comparison", "Judged", "JudgedRun", "ModelRanking", "TrustFigures", "agree", "rank_models", "read_run",
]  # fmt: skip
