"""Inputs whose figures were computed with other libraries."""

from __future__ import annotations

import numpy as np

NAN = float("nan")
RATINGS = np.array(
    [
        [1, 1, 1], [2, 2, 3], [3, 3, 3], [3, 3, NAN], [2, 2, 2], [1, 2, 3],
        [4, 4, 4], [1, 1, 2], [2, 2, 2], [NAN, 5, 5], [NAN, NAN, 1], [5, 5, 5],
    ]
)  # fmt: skip
"""(12, 3), item by rater."""
COMPLETE = RATINGS[~np.isnan(RATINGS).any(axis=1)]
"""(9, 3)."""
HUMAN = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
JUDGE = [0.8, 1.1, 1.0, 2.4, 2.5, 3.6, 3.4, 3.9, 4.4, 5.2]
