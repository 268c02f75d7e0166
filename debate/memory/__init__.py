"""What agents remember: collections of memories, recalled by relevance, recency and importance. Loads SQLAlchemy."""

from debate.flow import Weights
from debate.memory.embedders import Embedder, HashingEmbedder, MiniLM, OpenAIEmbedder
from debate.memory.recall.request import RecallRequest
from debate.memory.store import MemoryStore

__all__ = ["Embedder", "HashingEmbedder", "MemoryStore", "MiniLM", "OpenAIEmbedder", "RecallRequest", "Weights"]
