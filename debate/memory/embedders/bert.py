"""The forward pass of a small BERT in numpy, as all-MiniLM-L6-v2 needs it: token ids in, the mean of their states out.

Every text by itself: its matrix products then have a shape that depends on nothing but the text, so its vector is the
same bits whatever is embedded beside it. States stand upright, (H, T): few tokens are then multiplied twice as fast.
Knows nothing of tokenizers, files or windows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from debate.memory.embedders.base import Vectors

Array = np.ndarray[Any, np.dtype[np.float32]]

_EPSILON = np.float32(1e-12)
_AT_ONCE = 24_576
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
        step = max(_AT_ONCE * 2 // n_tokens**2, 1)
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
    step = max(_AT_ONCE // x.shape[1], 1)
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
_P = tuple(np.float32(each) for each in (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
    -2.95459980854025e-03, -1.60960333262415e-02,
))
_Q = tuple(np.float32(each) for each in (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
))
# fmt: on


def erf(x: Array) -> Array:
    """The error function, to 4e-7."""
    x = np.clip(x, -_END, _END)
    square = np.square(x)
    x *= _polynomial(_P, square)
    x /= _polynomial(_Q, square)
    return x


def _polynomial(coefficients: tuple[np.float32, ...], x: Array) -> Array:
    """Horner's scheme, the highest power first."""
    y = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        y += coefficient
        y *= x
    y += coefficients[-1]
    return y
