"""Embedders: what turns a text into a vector. One per file; each imports its library when it is first used."""

from __future__ import annotations

from debate.memory.embedders.base import Embedder, Vectors
from debate.memory.embedders.hashing import HashingEmbedder
from debate.memory.embedders.minilm import MiniLM
from debate.memory.embedders.openai import OpenAIEmbedder
from debate.registry import EMBEDDERS

__all__ = ["Embedder", "HashingEmbedder", "MiniLM", "OpenAIEmbedder", "Vectors", "embedder_named"]


def embedder_named(choice: str | Embedder) -> Embedder:
    """The embedder of that name, or the one that was given.

    Raises:
        ConfigError: for an unknown name.
    """
    return EMBEDDERS.load(choice)() if isinstance(choice, str) else choice
