"""Long texts: where windows of a limited length lie, and how the vectors of several become one.

Lengths are in whatever unit the model counts, tokens or characters. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from debate.memory.embedders.base import Vectors


def spans(length: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Windows over 0..length as (begin, end): none longer than `size`, all about equally long.

    Neighbours share at least `overlap`, so that a sentence at a seam stands whole in one of them.

    >>> spans(10, 10, 2), spans(11, 10, 2)
    ([(0, 10)], [(0, 7), (4, 11)])
    """
    if length <= size:
        return [(0, length)]
    n = -(-(length - overlap) // (size - overlap))  # windows, rounded up
    longest = -(-(length + (n - 1) * overlap) // n)
    begins = [(length - longest) * i // (n - 1) for i in range(n)]
    return [(begin, begin + longest) for begin in begins]


def by_text(rows: Vectors, lengths: Sequence[Sequence[int]]) -> Vectors:
    """One vector a text from those of all windows in a row, (W, D) -> (N, D): the mean by length, at unit length.

    Args:
        rows: vectors of the first text's windows, then of the second's, ...
        lengths: of each text's windows.
    """
    ends = np.cumsum([len(each) for each in lengths])[:-1]
    parts = np.split(rows, ends)
    return np.stack([_combined(part, each) for part, each in zip(parts, lengths, strict=True)])


def _combined(rows: Vectors, lengths: Sequence[int]) -> Vectors:
    if len(rows) == 1:
        return rows[0]
    mean = np.average(rows.astype(np.float64), axis=0, weights=lengths)  # (D,)
    norm = float(np.sqrt(np.square(mean).sum()))
    # Windows that cancel each other leave no direction; the first one then speaks for the text.
    return (mean / norm).astype(np.float32) if norm > 1e-6 else rows[0]
