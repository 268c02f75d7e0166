"""Score arrays: normalized scores, softmax, distributions over scores, reductions, agreement."""

from debate.scoring.distributions import moments, p_best, score_distributions
from debate.scoring.normalization import normalize_scores
from debate.scoring.reducers import confidence
from debate.scoring.tensor import component_means, normalize_tensor, softmax

__all__ = [
    "component_means",
    "confidence",
    "moments",
    "normalize_scores",
    "normalize_tensor",
    "p_best",
    "score_distributions",
    "softmax",
]
