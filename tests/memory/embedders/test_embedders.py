"""Embedders: what they promise, and what is made of those that break it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.errors import BackendUnavailableError, CallError, ConfigError
from debate.memory.embedders import (
    Embedder,
    HashingEmbedder,
    OpenAIEmbedder,
    Vectors,
    embedder_named,
)
from debate.memory.embedders.base import by_text, embedded, is_reproducible, pieces_of, spans
from debate.net.retry import RetryPolicy
from debate.testing.fake_server import Behavior, FakeServer, Reply, Request, failing, first


class Fixed:
    """Gives what it is told to."""

    id = "fixed"
    dimension = 3

    def __init__(self, rows: object) -> None:
        self._rows = rows

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._rows  # pyright: ignore[reportReturnType]


# ---- what an embedder gave


def test_rows_are_brought_to_unit_length() -> None:
    rows = embedded(Fixed([[3, 0, 4], [0, 0, 1e-20]]), ["a", "b"])
    assert rows.dtype == np.float32
    assert np.allclose(rows, [[0.6, 0, 0.8], [0, 0, 1]])


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2, 3]],
        [[1, 2], [3, 4]],
        [[0, 0, 0], [1, 0, 0]],
        [[np.nan, 0, 0], [1, 0, 0]],
        "text",
        None,
        [[1, 2, 3], [1]],
    ],
)
def test_what_is_no_vector_for_each_text_is_refused(rows: object) -> None:
    with pytest.raises(ConfigError, match="fixed gave"):
        embedded(Fixed(rows), ["a", "b"])


def test_names_stand_for_embedders() -> None:
    given_ = HashingEmbedder(16)
    assert embedder_named(given_) is given_
    assert isinstance(embedder_named("hashing"), HashingEmbedder)
    assert embedder_named("hashing-1").id == "hashing-1/512"
    assert embedder_named("minilm").id == "all-MiniLM-L6-v2"
    with pytest.raises(ConfigError, match="'word2vec'") as caught:
        embedder_named("word2vec")
    assert caught.value.field == "embedder"


def test_an_embedder_of_three_members_is_enough() -> None:
    plain: Embedder = Fixed([[1, 0, 0]])
    assert not is_reproducible(plain)
    assert pieces_of(plain, "a long text") == ["a long text"]


# ---- windows


@given(st.integers(0, 2000), st.integers(2, 300), st.data())
def test_windows_cover_the_text_overlap_and_are_never_too_long(length: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size // 2))
    found = spans(length, size, overlap)
    assert found[0][0] == 0
    assert found[-1][1] == length
    assert all(end - begin <= size for begin, end in found)
    assert all(end - begin >= overlap - 1 for (begin, _), (_, end) in zip(found[1:], found, strict=False))
    if length <= size:
        assert found == [(0, length)]


def test_a_text_of_several_windows_has_their_mean_by_length() -> None:
    rows = np.eye(3, dtype=np.float32)
    found = by_text(rows, [[5], [3, 1]])
    assert found[0].tolist() == [1, 0, 0]
    assert np.allclose(found[1], [0, 3 / 10**0.5, 1 / 10**0.5])


def test_windows_that_cancel_each_other_leave_the_first() -> None:
    rows = np.array([[1, 0], [-1, 0]], np.float32)
    assert by_text(rows, [[4, 4]]).tolist() == [[1, 0]]


# ---- hashing


def test_texts_that_share_words_are_nearer_than_others() -> None:
    one, alike, spelled, other = HashingEmbedder().embed(
        ["the river flooded the valley", "a river in the valley", "rivers flooding valleys", "stock prices fell"]
    )
    assert one @ alike > 0.4
    assert one @ spelled > one @ other + 0.05
    assert abs(one @ other) < 0.2


def test_case_and_unicode_form_do_not_matter_to_hashing() -> None:
    first_, *others = HashingEmbedder().embed(["Straße CAFÉ", "strasse café", "STRASSE cafe\u0301"])
    assert all(np.array_equal(first_, other) for other in others)


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_every_text_has_a_unit_vector_whatever_stands_beside_it(texts: list[str]) -> None:
    embedder = HashingEmbedder(64)
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), 64)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert all(np.array_equal(row, embedder.embed([text])[0]) for row, text in zip(rows, texts, strict=True))


def test_a_name_counts_more_than_a_number_that_two_texts_share() -> None:
    rule, look_alike, number, query, candidate = HashingEmbedder().embed(
        ["kelor is 7", "kelog is 9", "dask is 12", "What is kelor + 12?", "It is 12."]
    )
    assert max(rule @ query, rule @ candidate) > max(number @ query, number @ candidate)
    assert max(rule @ query, rule @ candidate) > max(look_alike @ query, look_alike @ candidate)
    rule, number, query, candidate = HashingEmbedder.first().embed(
        ["kelor is 7", "dask is 12", "What is kelor + 12?", "It is 12."]
    )
    assert max(rule @ query, rule @ candidate) < max(number @ query, number @ candidate)


def test_hashing_gives_the_same_bits_in_every_process() -> None:
    embed = "HashingEmbedder(32).embed(['Some words, twice words.']).tobytes().hex()"
    code = f"from debate.memory.embedders import HashingEmbedder; print({embed})"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    }
    assert said == {HashingEmbedder(32).embed(["Some words, twice words."]).tobytes().hex() + "\n"}


# ---- an OpenAI-compatible server


def embeddings(request: Request) -> Reply:
    """As OpenAI gives them, in another order; a text's vector is its length, its vowels and 1."""
    data = [
        {"index": n, "embedding": [len(text), sum(text.count(v) for v in "aeiou"), 1]}
        for n, text in enumerate(request.body["input"])
    ]
    return Reply(200, {"object": "list", "data": data[::-1], "model": request.body["model"]})


def after(behavior: Behavior) -> Behavior:
    """Misbehave, and give embeddings where it does not."""
    return lambda request: behavior(request) or embeddings(request)


def quick(server: FakeServer, **settings: object) -> OpenAIEmbedder:
    policy = RetryPolicy(first_wait=0.001, timeout=2)
    return OpenAIEmbedder("m", f"{server.url}/v1", retry_policy=policy, **settings)  # pyright: ignore[reportArgumentType]


def test_a_server_is_asked_in_batches_and_its_answers_are_put_in_order() -> None:
    texts = [f"{'o' * n} word" for n in range(7)]
    with FakeServer(embeddings) as server:
        embedder = quick(server, batch=3)
        assert embedder.dimension == 3
        rows = embedder.embed(texts)
        embedder.close()
    assert rows.tolist() == [[len(text), text.count("o"), 1] for text in texts]
    assert [len(request.body["input"]) for request in server.requests] == [1, 3, 3, 1]
    assert {request.path for request in server.requests} == {"/v1/embeddings"}


def test_a_text_that_is_too_long_for_a_server_goes_in_windows() -> None:
    with FakeServer(embeddings) as server:
        embedder = quick(server, longest=500, dimension=3)
        text = "".join(chr(97 + n % 26) for n in range(1200))
        embedder.embed([text, "short"])
        sent = server.requests[0].body["input"]
        pieces = embedder.pieces(text)
        embedder.close()
    assert sent == [*pieces, "short"]
    assert max(map(len, sent)) <= 500
    assert "".join(pieces[0][:1] + piece[1:] for piece in pieces[:1]) == text[: len(pieces[0])]
    assert text.endswith(pieces[-1])


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_server_that_is_busy_is_asked_again(status: int) -> None:
    with FakeServer(after(first(2, failing(status, retry_after="0.001")))) as server:
        embedder = quick(server)
        assert embedder.embed(["a"]).shape == (1, 3)
        embedder.close()
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "error", "requests"),
    [(400, CallError, 1), (401, BackendUnavailableError, 1), (307, BackendUnavailableError, 1), (500, CallError, 5)],
)
def test_a_server_that_refuses_is_asked_as_often_as_that_may_help(status: int, error: type, requests: int) -> None:
    with FakeServer(lambda request: failing(status, "no such thing")) as server:
        embedder = quick(server)
        with pytest.raises(error, match=f"HTTP {status}: no such thing"):
            embedder.embed(["a"])
        embedder.close()
    assert len(server.requests) == requests


def test_a_server_that_is_not_there_is_told_of() -> None:
    with FakeServer() as server:
        gone = quick(server)
    with pytest.raises(BackendUnavailableError, match="no connection"):
        gone.embed(["a"])
    gone.close()


@pytest.mark.parametrize(
    "body",
    [
        {"data": []},
        {"data": [{"index": 0, "embedding": "text"}]},
        {"data": [{"index": 0, "embedding": [1, 2]}]},
        {"data": [{"index": 1, "embedding": [1, 2, 3]}]},
        [],
        {},
    ],
)
def test_an_answer_that_holds_no_embeddings_is_an_error(body: object) -> None:
    with FakeServer(lambda request: Reply(200, body)) as server:
        embedder = quick(server, dimension=3)
        with pytest.raises(CallError, match="embeddings"):
            embedder.embed(["a"])
        embedder.close()


def test_the_key_is_read_from_the_environment_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    with FakeServer(lambda request: failing(400, "wrong key sk-secret")) as server:
        embedder = quick(server, api_key_env="SOME_KEY")
        with pytest.raises(CallError) as caught:
            embedder.embed(["a"])
        embedder.close()
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://host", "host/v1", "http://me:pw@host", "http://host?x=1", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIEmbedder("m", url)
    assert caught.value.field == "base_url"
    assert "pw" not in str(caught.value)
