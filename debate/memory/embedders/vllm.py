"""A pooling model run by vLLM in this process, as an embedder.

Texts go in as token ids, so that special strings in them stay text; what is longer than the model reads goes in
windows. vLLM is imported when the first text is embedded. Knows nothing of memories.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from debate.errors import ConfigError
from debate.memory.embedders.base import Vectors
from debate.memory.embedders.windows import by_text, spans

_OVERLAP = 32


class VLLMEmbedder:
    """An embedding model in vLLM; `engine_args` go to vLLM as they are.

    >>> VLLMEmbedder("Qwen/Qwen3-Embedding-0.6B", max_model_len=2048, gpu_memory_utilization=0.2)

    Beside a judge on the same GPU, give each its share of the GPU's memory.
    """

    def __init__(self, model: str | Path, **engine_args: Any) -> None:
        self.id = f"vllm/{Path(model).name if Path(model).exists() else model}"
        self._model = str(model)
        self._engine_args = engine_args
        self._engine: Any = None
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        """Length of a vector; loads the model."""
        return int(self._started().llm_engine.model_config.get_hidden_size())

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text, (N, D).

        Raises:
            ConfigError: when vLLM is not installed, or cannot embed with this model.
        """
        engine = self._started()
        windows = [self._windows(text) for text in texts]
        prompts = [{"prompt_token_ids": ids} for each in windows for ids in each]
        with self._lock:
            outputs = engine.embed(prompts, use_tqdm=False)
        rows = np.array([output.outputs.embedding for output in outputs], np.float32)  # (windows, D)
        return by_text(rows, [[*map(len, each)] for each in windows])

    def pieces(self, text: str) -> list[str]:
        """The text in windows that the model reads whole."""
        size = self._longest()
        if len(text) <= size:
            return [text]
        found = self._tokenizer()(
            text, add_special_tokens=False, return_offsets_mapping=True, split_special_tokens=True
        )
        offsets = cast("list[tuple[int, int]]", found["offset_mapping"])
        return [text[offsets[a][0] : offsets[b - 1][1]] for a, b in spans(len(offsets), size, min(_OVERLAP, size // 4))]

    def close(self) -> None:
        """Shut the engine down. Safe to call twice."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.llm_engine.engine_core.shutdown()

    def _windows(self, text: str) -> list[list[int]]:
        tokenizer, size = self._tokenizer(), self._longest()
        ids = cast("list[int]", tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])
        parts = [ids[a:b] for a, b in spans(len(ids), size, min(_OVERLAP, size // 4))]
        return [tokenizer.build_inputs_with_special_tokens(part) or [tokenizer.pad_token_id or 0] for part in parts]

    def _longest(self) -> int:
        return (
            int(self._started().llm_engine.model_config.max_model_len) - self._tokenizer().num_special_tokens_to_add()
        )

    def _tokenizer(self) -> Any:
        return self._started().get_tokenizer()

    def _started(self) -> Any:
        with self._lock:
            if self._engine is None:
                try:
                    from vllm import LLM
                except ImportError as error:
                    hint = "pip install 'debate-eval[gpu]', or 'debate-eval[cpu]' where there is no GPU"
                    raise ConfigError(f"vLLM cannot be imported: {error}", field="embedder", hint=hint) from error
                try:
                    self._engine = LLM(self._model, runner="pooling", **self._engine_args)
                except (TypeError, ValueError, OSError) as error:
                    problem = f"vLLM cannot embed with {self._model!r}: {str(error).strip().splitlines()[0]}"
                    raise ConfigError(problem, field="embedder") from error
            return self._engine
