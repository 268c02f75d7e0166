"""An embedder that needs no model: words and their trigrams, hashed into a vector.

It knows which words two texts share, and words that are spelled alike, not what they mean. Short words count less: they
are the common ones (Zipf 1935), and a number of one digit says little. The same text gives the same bits in every
process. For tests, small installations, and as a baseline that a model has to beat.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from debate.errors import ConfigError
from debate.memory.embedders.base import Vectors
from debate.types import FloatArray

_WORD = re.compile(r"\w+")
_TRIGRAM_SHARE = 0.5
"""What all trigrams of a word add to the square of its length, beside that of the word itself."""


class HashingEmbedder:
    """Feature hashing (Weinberger et al. 2009) of words and character trigrams, with signs, as unit vectors.

    Args:
        dimension: length of a vector; collisions become rarer with it.
        half: characters of a word that counts half; 0 counts all words alike, as version 0.1.0 did.
    """

    is_reproducible = True

    def __init__(self, dimension: int = 1024, half: int = 6) -> None:
        if dimension < 8:
            raise ConfigError(f"must be at least 8, got {dimension}", field="dimension")
        if half < 0:
            raise ConfigError(f"must be at least 0, got {half}", field="half")
        self.dimension = dimension
        self.half = half
        self.id = f"hashing-2/{dimension}/{half}" if half else f"hashing-1/{dimension}"

    @classmethod
    def first(cls) -> HashingEmbedder:
        """The embedder of stores that version 0.1.0 made."""
        return cls(512, half=0)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, one per text: (N, D)."""
        rows = np.zeros((len(texts), self.dimension))  # (N, D)
        for row, text in zip(rows, texts, strict=True):
            self._fill(row, text)
        norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))  # (N, 1)
        return (rows / norms).astype(np.float32)

    def _fill(self, row: FloatArray, text: str) -> None:
        words = Counter(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
        # In a fixed order, so that the sums are the same to the last bit.
        for word, count in sorted(words.items()):
            for feature, weight in _features(word, self.half):
                row[feature % self.dimension] += (1 if feature >> 63 else -1) * weight * count**0.5
        if not row.any():  # no words in it, or they cancelled each other
            row[_hashed(f"text {text}") % self.dimension] = 1.0


@lru_cache(maxsize=65536)
def _features(word: str, half: int) -> tuple[tuple[int, float], ...]:
    """The features of a word as 64-bit hashes, with their weights."""
    marked = f"<{word}>"
    trigrams = [marked[i : i + 3] for i in range(len(marked) - 2)]
    weight = len(word) / (len(word) + half)
    share = weight * (_TRIGRAM_SHARE / len(trigrams)) ** 0.5
    return ((_hashed(f"word {word}"), weight), *((_hashed(f"part {each}"), share) for each in trigrams))


def _hashed(feature: str) -> int:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
