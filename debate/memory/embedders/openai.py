"""Any server that speaks OpenAI's embeddings: vllm serve, llama.cpp, text-embeddings-inference, hosted ones.

Texts go out in batches; an answer is put in order by its indices. Texts longer than the model reads go in windows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from debate.errors import CallError, ConfigError
from debate.memory.embedders.base import Vectors, by_text, slices, spans
from debate.net.http import JsonClient
from debate.net.retry import RetryPolicy

_OVERLAP = 200
"""Characters that neighboring windows share."""


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible server.

    >>> OpenAIEmbedder("Qwen/Qwen3-Embedding-0.6B", base_url="http://localhost:8000/v1")

    Args:
        model: the name the server knows it by.
        base_url: up to and with `/v1`; None takes OPENAI_BASE_URL, or OpenAI's own.
        dimension: length of a vector; None asks the server at the first use.
        api_key_env: the environment variable that holds the key.
        batch: most texts in one request.
        longest: most characters of a text in one piece; longer ones go in windows.
        retry_policy: time-outs, attempts and waits; None allows 60 s per attempt.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        dimension: int | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        batch: int = 128,
        longest: int = 16_000,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        if batch < 1 or longest <= 2 * _OVERLAP:
            raise ConfigError(f"batch must be at least 1 and longest above {2 * _OVERLAP}", field="embedder")
        address = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        self.id = f"openai/{model}"
        self._model = model
        self._dimension = dimension
        self._batch = batch
        self._longest = longest
        self._server = JsonClient(address, api_key_env, retry_policy)

    @property
    def dimension(self) -> int:
        """Length of a vector; the first call asks the server."""
        if self._dimension is None:
            self._dimension = self._asked(["dimension"]).shape[1]
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows, one per text: (N, D).

        Raises:
            CallError, BackendUnavailableError: see `JsonClient.ask`.
        """
        windows = [self.pieces(text) for text in texts]
        flat = [window for each in windows for window in each]
        rows = np.concatenate([self._asked(part) for part in slices(flat, self._batch)])
        self._dimension = self._dimension or rows.shape[1]
        return by_text(rows, [[*map(len, each)] for each in windows])

    def pieces(self, text: str) -> list[str]:
        """The text in windows of `longest` characters at most."""
        return [text[begin:end] for begin, end in spans(len(text), self._longest, _OVERLAP)]

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _asked(self, texts: Sequence[str]) -> Vectors:
        # An empty text is refused by some servers; a blank one is not.
        body = {"model": self._model, "input": [text or " " for text in texts], "encoding_format": "float"}
        answer = self._server.ask("POST", "/embeddings", body)
        try:
            data = cast("list[dict[str, Any]]", answer["data"])
            by_index = {int(each["index"]): each["embedding"] for each in data}
            rows = np.array([by_index[i] for i in range(len(texts))], np.float32)  # (N, D)
        except (KeyError, TypeError, ValueError):
            raise CallError("bad_answer", f"{self._server.base_url}: an answer that holds no embeddings") from None
        if rows.ndim != 2 or self._dimension not in (None, rows.shape[1]):
            raise CallError("bad_answer", f"{self._server.base_url}: embeddings of shape {rows.shape}")
        return rows
