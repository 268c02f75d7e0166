"""The trie of labels against a toy model whose every continuation is known, and the places of labels in a reply."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.backends.vllm.label_tokens import LEAST_SHARED, LabelTokens, Path, Read, count_distinct, places, spell
from debate.errors import ConfigError
from debate.parsing.places import value_spans
from debate.scoring.distributions import distribution_of

VOCABULARY = range(6)
PATHS = st.dictionaries(
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=4).map(tuple), st.sampled_from("abcdefgh"), min_size=1
)
"""Labels of one to four tokens, some the beginnings of others, some spelled in two ways."""
Model = Callable[[Path], Mapping[int, float]]


def model_of(seed: int, sharpness: float = 3.0) -> Model:
    """A toy autoregressive model: the probability of each next token, given those before."""

    def nexts(path: Path) -> dict[int, float]:
        rng = random.Random(f"{seed} {path}")
        weights = [math.exp(sharpness * rng.gauss(0, 1)) for _ in VOCABULARY]
        return {token: weight / sum(weights) for token, weight in zip(VOCABULARY, weights, strict=True)}

    return nexts


def by_brute_force(labels: Mapping[Path, str], model: Model) -> dict[str, float]:
    """Sums over everything that the model may say in four tokens: it counts for the longest label that it begins with,
    where none of it leads on to a longer one.
    """
    found = dict.fromkeys(labels.values(), 0.0)

    def say(path: Path, p: float, ended: str | None) -> None:
        leads_on = any(len(other) > len(path) and other[: len(path)] == path for other in labels)
        ended = labels.get(path, ended if not path or leads_on else None)
        if not leads_on:
            if ended is not None:
                found[ended] += p
            return
        for token, share in model(path).items():
            onward = (*path, token)
            if any(other[: len(onward)] == onward for other in labels):
                say(onward, p * share, None)
            elif path in labels:
                found[labels[path]] += p * share

    say((), 1.0, None)
    return found


def read_all(trie: LabelTokens, model: Model, read: Read | None = None) -> tuple[Read, int]:
    """What the trie asks for, answered by the model; and how often it was asked."""
    read, n_asked = dict(read or {}), 0
    while due := trie.due(read):
        for path in due:
            n_asked += 1
            read[path] = {token: model(path)[token] for token in trie.nexts[path]}
    return read, n_asked


@given(PATHS, st.integers(0, 2**32))
def test_the_distribution_is_that_of_everything_that_the_model_may_say(labels: dict[Path, str], seed: int) -> None:
    trie, model = LabelTokens(labels), model_of(seed)
    found, known = trie.distribution(read_all(trie, model)[0]), distribution_of(by_brute_force(labels, model))
    tolerance = 1e-6 + LEAST_SHARED * len(trie.nexts)
    assert found.mass == pytest.approx(known.mass, abs=tolerance)
    for label in set(labels.values()):
        share, expected = (each.probabilities.get(label, 0.0) * each.mass for each in (found, known))
        assert share == pytest.approx(expected, abs=tolerance)


@given(PATHS, st.integers(0, 2**32), st.lists(st.sampled_from(VOCABULARY), max_size=5))
def test_what_a_reply_tells_by_itself_is_not_asked_again(labels: dict[Path, str], seed: int, said: list[int]) -> None:
    trie, model = LabelTokens(labels), model_of(seed)
    told = trie.along((), said, lambda n: model(tuple(said[:n])))
    everything, n_asked = read_all(trie, model)
    completed, n_more = read_all(trie, model, told)
    assert trie.distribution(completed) == trie.distribution(everything)
    assert n_more == n_asked - len(told.keys() & everything.keys())
    assert all(tuple(said[: len(path)]) == path for path in told)


def test_the_token_that_is_read_past_in_the_same_request_is_that_of_most_labels() -> None:
    scores = LabelTokens({**{(n,): str(n) for n in range(10)}, (1, 0): "10", (20, 21, 22): "null"})
    assert [scores.shared(path) for path in ((), (1,), (20,))] == [1, None, 21]
    assert LabelTokens({(1,): "1", (2,): "2"}).shared(()) is None
    read = scores.along((), [1, 5], lambda n: {token: 0.1 * (n + 1) for token in scores.tokens})
    assert read == {(): dict.fromkeys([*range(10), 20], 0.1), (1,): {0: 0.2}}


def test_a_beginning_that_is_hardly_likely_is_not_read() -> None:
    trie = LabelTokens({(1,): "1", (1, 0): "10", (2,): "2"})
    assert trie.due({(): {1: 2 * LEAST_SHARED, 2: 0.9}}) == [(1,)]
    assert trie.due({(): {1: LEAST_SHARED / 2, 2: 0.9}}) == []
    assert trie.distribution({(): {1: 0.5, 2: 0.5}, (1,): {0: 0.2}}).probabilities == {"1": 0.4, "10": 0.1, "2": 0.5}


def test_a_place_that_no_token_begins_gives_no_label_any_probability() -> None:
    trie = LabelTokens({(1,): "1", (1, 0): "10"})
    read = trie.nothing()
    assert trie.due(read) == []
    assert (trie.distribution(read).mass, trie.distribution(read).probabilities) == (0.0, {})


# ---- spelling

PIECES = ['":', " 7", " 1", *'0123456789nul -":', "null", "100"]


def encode(text: str) -> list[int]:
    """The longest piece first, as indices of `PIECES`."""
    found: list[int] = []
    while text:
        piece = max((each for each in PIECES if text.startswith(each)), key=len)
        found.append(PIECES.index(piece))
        text = text[len(piece) :]
    return found


def decode(tokens: Sequence[int]) -> str:
    return "".join(PIECES[token] for token in tokens)


def ids(*pieces: str) -> Path:
    return tuple(PIECES.index(piece) for piece in pieces)


def test_labels_are_spelled_as_after_a_colon_and_with_the_blank_that_the_tokenizer_joins_to_them() -> None:
    trie = spell(["7", "8", "10", "null", "-100"], encode, decode)
    label = ids("7"), ids(" 7"), ids("8"), ids("1"), ids(" 1"), ids("null"), ids("-")
    assert {(token,) for token in trie.nexts[()]} == set(label)
    assert set(trie.nexts) == {(), ids("1"), ids(" 1"), ids("-")}
    assert trie.nexts[ids("-")] == [*ids("100")]
    shares = {ids("7")[0]: 0.25, ids(" 7")[0]: 0.25, ids("8")[0]: 0.5}
    read: Read = {(): {**dict.fromkeys(trie.nexts[()], 0.0), **shares}}
    assert trie.distribution(read).probabilities == {"7": 0.5, "8": 0.5}


def test_a_tokenizer_that_joins_a_label_with_the_colon_before_it_is_refused() -> None:
    def joining(text: str) -> list[int]:
        return [99] if text == '":7' else encode(text)

    with pytest.raises(ConfigError, match="joins the label '7'") as refused:
        spell(["6", "7"], joining, decode)
    assert refused.value.field == "readout"


# ---- places


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5) | st.integers(-9, 99) | st.none(), max_size=8))
def test_each_value_is_found_at_the_token_that_begins_it(values: list[str | int | None]) -> None:
    text = json.dumps({"a": values}, ensure_ascii=False)
    cuts = random.Random(text).sample(range(len(text)), len(text) // 2)
    ends = [*sorted(cuts), len(text)]
    for (start, _), at in zip(value_spans(text), places(text, ends), strict=True):
        begins = [0, *ends]
        held = max(n for n, begin in enumerate(begins[:-1]) if begin <= start)
        while begins[held + 1] <= start:
            held += 1
        assert at == (held if not text[begins[held] : start].strip() else None)


def test_a_value_in_a_token_with_the_blank_before_it_has_a_place_and_one_with_its_colon_has_none() -> None:
    assert places('{"a": 7}', [4, 5, 7, 8]) == [2]
    assert places('{"a": 7}', [4, 7, 8]) == [None]
    assert places('{"a":7}', [5, 6, 7]) == [1]


# ---- counting


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=6))
def test_tokens_that_sequences_share_at_their_beginning_are_counted_once(sequences: list[list[int]]) -> None:
    prefixes = {tuple(each[: n + 1]) for each in sequences for n in range(len(each))}
    assert count_distinct(sequences) == len(prefixes)
