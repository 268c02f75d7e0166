"""Chroma as an index: embedded in a folder of ours, or a server. It is given ids and vectors, and nothing else."""

from debate.memory.indexes.chroma.index import ChromaIndex
from debate.memory.indexes.chroma.opening import open_chroma, prefix_of

__all__ = ["ChromaIndex", "open_chroma", "prefix_of"]
