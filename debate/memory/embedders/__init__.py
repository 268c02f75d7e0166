"""Embedders: what turns a text into a vector. One a file; each imports its library when it is first used.

A name stands for the embedder with its defaults: `minilm` or `hashing`.
"""

from __future__ import annotations

from debate.errors import ConfigError
from debate.memory.embedders.base import Embedder, Vectors, embedded, is_reproducible, pieces_of
from debate.memory.embedders.hashing import HashingEmbedder
from debate.memory.embedders.minilm import MiniLM
from debate.memory.embedders.openai import OpenAIEmbedder
from debate.memory.embedders.vllm import VLLMEmbedder

__all__ = [
    "Embedder",
    "HashingEmbedder",
    "MiniLM",
    "OpenAIEmbedder",
    "VLLMEmbedder",
    "Vectors",
    "embedded",
    "embedder_named",
    "is_reproducible",
    "pieces_of",
]


def embedder_named(choice: str | Embedder) -> Embedder:
    """The embedder of that name, or the one that was given.

    Raises:
        ConfigError: for an unknown name.
    """
    if not isinstance(choice, str):
        return choice
    if choice == "minilm":
        return MiniLM()
    if choice == "hashing":
        return HashingEmbedder()
    raise ConfigError(f"there is no embedder {choice!r}", field="embedder", hint="minilm, hashing, or one of your own")
