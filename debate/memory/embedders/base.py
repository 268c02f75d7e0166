"""The interface of embedders (texts in, one unit vector per text out), the check of what one returned, and windows.

Texts longer than a model reads go in windows, whose vectors become one. Lengths are in whatever unit the model counts,
tokens or characters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from debate.errors import ConfigError

T = TypeVar("T")
Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors whose inner product says how near two texts are in meaning.

    Two further members are used where they are there, `is_reproducible` and `pieces`: see the functions of these names.
    """

    @property
    def id(self) -> str:
        """Names the model and all that shapes its vectors; vectors of different ids are never mixed."""
        ...

    @property
    def dimension(self) -> int:
        """D, the length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, one per text: (N, D). A long text is read as a whole, never cut silently."""
        ...


def pieces_of(embedder: Embedder, text: str) -> list[str]:
    """A query in the pieces that are embedded one by one: the best match among them counts.

    Where the model reads a limited length, `embedder.pieces(text)` gives pieces that it reads whole, overlapping a
    little; the text itself where it is short.
    """
    pieces: Callable[[str], list[str]] | None = getattr(embedder, "pieces", None)
    return [text] if pieces is None else pieces(text)


def is_reproducible(embedder: Embedder) -> bool:
    """Whether a text's vector is the same bits whatever is embedded beside it, at no cost worth keeping it for.

    Vectors of queries are kept in the store where it is not so.
    """
    return bool(getattr(embedder, "is_reproducible", False))


def embedded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """What the embedder says of some texts, (N, D), checked; rows are brought to unit length.

    Raises:
        ConfigError: when it is not one finite, non-zero vector of the embedder's dimension for each text.
    """
    if not texts:
        return np.zeros((0, embedder.dimension), np.float32)
    try:
        rows = np.asarray(cast("Any", embedder.embed(texts)), dtype=np.float64)  # (N, D)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{embedder.id} gave no vectors: {error}", field="embedder") from None
    if rows.shape != (len(texts), embedder.dimension):
        wanted = (len(texts), embedder.dimension)
        raise ConfigError(f"{embedder.id} gave an array of shape {rows.shape}, not {wanted}", field="embedder")
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))  # (N,)
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise ConfigError(f"{embedder.id} gave a vector that is zero or not finite", field="embedder")
    return (rows / norms[:, None]).astype(np.float32)  # (N, D)


def slices(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """The values in slices of at most `size`."""
    return [values[at : at + size] for at in range(0, len(values), size)]


def spans(length: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Windows over 0..length as (begin, end): none longer than `size`, all about equally long.

    Neighbors share at least `overlap`, so that a sentence at a seam stands whole in one of them.

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
    """Combine the vectors of all windows into one per text, (W, D) -> (N, D): the mean by length, at unit length.

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
