"""An embedder for memories that say what a name counts as: what is told of a name is found by the name alone.

By all words alike, a candidate "It is 7." is nearer to "zulix is 7" than the question "blorp+3?" is to "blorp is 4",
and so is whatever an earlier agent told. Names are hashed as ever, so that look-alikes stay apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from debate.memory import HashingEmbedder
from debate.memory.embedders.base import Vectors

_FRAME = frozenset(
    ("answer", "as", "is", "it", "maybe", "not", "off", "perhaps", "said", "sure", "topic", "unknown", "what")
)
"""The words around names in the world's questions, candidates and turns."""


class NameEmbedder(HashingEmbedder):
    """Hashes the words of a text that are neither numbers nor the frame of the world's sentences."""

    def __init__(self, dimension: int = 512) -> None:
        super().__init__(dimension)
        self.id = f"names-1/{dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, one per text: (N, D)."""
        return super().embed([" ".join(_names(text)) for text in texts])


def _names(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W\d_]+", text.casefold()) if word not in _FRAME]
