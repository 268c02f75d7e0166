"""Score arrays: normalized scores, softmax, reductions, agreement."""

from debate.scoring.normalization import normalize_scores
from debate.scoring.reducers import confidence
from debate.scoring.tensor import normalize_tensor, softmax

__all__ = ["confidence", "normalize_scores", "normalize_tensor", "softmax"]
