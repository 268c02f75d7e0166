"""Labels read from the likeliest tokens: exact where the tokens tell, counted to none where they do not."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.backends.http.top_logprobs import LEAST_UNDECIDED, Likely, Token, places_of, read_labels, tokens_of
from debate.parsing.places import value_spans
from debate.types import LabelDistribution

LABELS = (*map(str, range(11)), "null")
FIRST = [
    *"0123456789",
    " 1",
    " 7",
    "10",
    " 10",
    "7,",
    "nu",
    "null",
    " null",
    "n",
    '"',
    "Well",
    "",
    " ",
    "-1",
    "11",
    "1x",
]
AFTER_ONE = ["0", "0,", "00", ",", "}", "\n", "", "5", ".5", "word", '{"', '"']


def read(after: Mapping[str, Likely], labels: tuple[str, ...] = LABELS) -> tuple[LabelDistribution, list[str]]:
    """The distribution, and the beginnings that were asked for; of those not in `after`, nothing is told."""
    reading = read_labels(labels)
    asked = [next(reading)]
    while True:
        try:
            asked.append(reading.send(after.get(asked[-1], {})))
        except StopIteration as end:
            return end.value, asked


def raw(distribution: LabelDistribution) -> dict[str, float]:
    return {label: p * distribution.mass for label, p in distribution.probabilities.items()}


def shares(tokens: list[str]) -> st.SearchStrategy[dict[str, float]]:
    """Some of the tokens, with probabilities that sum to at most 1 and are not too small to count."""
    weights = st.dictionaries(st.sampled_from(tokens), st.integers(20, 200), min_size=1)
    return st.tuples(weights, st.integers(0, 100)).map(
        lambda drawn: {token: n / (sum(drawn[0].values()) + drawn[1]) for token, n in drawn[0].items()}
    )


@given(shares(FIRST), shares(AFTER_ONE), shares(["ll", "l", "x"]), shares(["7", "null", " ", "x"]))
def test_a_labels_probability_is_that_of_all_tokens_that_write_it(
    first: Likely, after_one: Likely, after_nu: Likely, after_blank: Likely
) -> None:
    after = {"": first, "1": after_one, " 1": after_one, "nu": after_nu, " ": after_blank, "n": {"ull": 1.0}}
    ones = first.get("1", 0) + first.get(" 1", 0)
    to_ten = after_one.get("0", 0) + after_one.get("0,", 0)
    ended = sum(p for token, p in after_one.items() if token in (",", "}", "\n", "", ".5"))
    blank = first.get(" ", 0)
    expected = {str(n): first.get(str(n), 0) for n in (0, 2, 3, 4, 5, 6, 8, 9)}
    expected["7"] = sum(first.get(token, 0) for token in ("7", " 7", "7,")) + blank * after_blank.get("7", 0)
    expected["10"] = first.get("10", 0) + first.get(" 10", 0) + ones * to_ten
    expected["1"] = ones * ended
    expected["null"] = first.get("null", 0) + first.get(" null", 0) + first.get("n", 0)
    expected["null"] += first.get("nu", 0) * after_nu.get("ll", 0) + blank * after_blank.get("null", 0)
    found, asked = read(after)
    assert raw(found) == pytest.approx({label: p for label, p in expected.items() if p > 1e-6}, abs=2e-6)
    assert found.mass == pytest.approx(min(1, sum(expected.values())), abs=1e-6)
    undecided = {token for token in ("1", " 1", "nu", "n", " ") if token in first}
    assert {"", *undecided} <= set(asked)


def test_what_begins_several_labels_and_is_hardly_likely_is_not_asked_about_and_counts_to_none() -> None:
    found, asked = read({"": {"1": LEAST_UNDECIDED / 2, "9": 0.5}})
    assert asked == [""]
    assert (found.probabilities, found.mass) == ({"9": 1.0}, 0.5)


def test_a_model_that_begins_another_message_after_a_label_tells_nothing_of_it() -> None:
    found, asked = read({"": {"1": 0.6, "9": 0.3}, "1": {'{"': 0.9, "Well": 0.1}})
    assert asked == ["", "1"]
    assert found.mass == pytest.approx(0.3)


def test_nothing_but_white_space_comes_to_an_end() -> None:
    blank = {" ": 0.9, "\n": 0.1}
    found, asked = read({text: blank for text in ("", " ", "\n", "  ")})
    assert set(asked) == {"", " ", "\n"}
    assert (found.probabilities, found.mass) == ({}, 0.0)


# Places in a reply

SCORES = st.dictionaries(
    st.text(min_size=1, max_size=6),
    st.one_of(st.integers(0, 10), st.none(), st.text(max_size=8), st.lists(st.integers(0, 10), max_size=3)),
    min_size=1,
    max_size=5,
)


@given(
    SCORES,
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(1, 400)),
    st.sampled_from(["", "<think>é 7</think>"]),
    st.booleans(),
)
def test_the_values_that_a_reply_has_are_found_however_it_is_cut_into_tokens(
    value: dict[str, Any], is_ascii: bool, is_compact: bool, cuts: list[int], thoughts: str, is_shown_odd: bool
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, separators=(",", ":") if is_compact else None)
    written = (thoughts + text + "<|end|>").encode("utf-8", "surrogatepass")
    bounds = sorted({0, len(written), *(cut for cut in cuts if cut < len(written))})
    pieces = [written[a:b] for a, b in pairwise(bounds)]
    shown = [(piece.decode(errors="replace"), [*piece]) for piece in pieces]
    if is_shown_odd:  # vLLM shows the parts of a character as it likes, and OpenAI by their numbers
        shown = [(text, [*text.replace("\ufffd", "").encode()]) for text, _ in shown]
    tokens = tokens_of({"content": [{"token": text, "bytes": raw, "logprob": 0.0} for text, raw in shown]}) or []
    found = [(text[: len(place.said)], read(place.known)[0]) for place in places_of(text, tokens)]
    spans = value_spans(text)
    assert found == [(text[:start], LabelDistribution({text[start:end]: 1.0})) for start, end in spans]


def test_of_tokens_that_begin_before_the_value_those_count_that_begin_alike() -> None:
    cuts = ['{"a"', ":null", ',"b":', " 1", "}"]
    tokens = [Token(text, text.encode(), {text: 1.0}) for text in cuts]
    tokens[1] = Token(":null", b":null", {":null": 0.5, ":7": 0.2, ' "': 0.3})
    tokens[3] = Token(" 1", b" 1", {" 1": 0.5, "1": 0.25, " 9": 0.25})
    [first, second] = places_of('{"a":null,"b": 1}', tokens)
    assert raw(read(first.known)[0]) == pytest.approx({"null": 0.5, "7": 0.2})
    found, asked = read({**second.known, "1": {"0": 1.0}})  # that alone must be asked for
    assert raw(found) == pytest.approx({"1": 0.5, "10": 0.25, "9": 0.25})
    assert set(asked) - second.known.keys() == {"1"}


def test_tokens_that_are_not_those_of_the_text_tell_nothing_of_it() -> None:
    [place] = places_of('{"a": 7}', [Token("Hello", b"Hello", {"Hello": 1.0})])
    found, asked = read(place.known)
    assert (asked, found.mass) == ([""], 0.0)


# What a server tells


def test_tokens_are_read_as_servers_tell_them_and_the_one_that_was_drawn_is_always_among_them() -> None:
    top = [{"token": "7", "bytes": [55], "logprob": math.log(0.5)}, {"token": "8", "logprob": math.log(0.25)}]
    told = {"token": "9", "bytes": None, "logprob": math.log(0.125), "top_logprobs": top}
    [token, odd] = tokens_of({"content": [told, {"token": "7", "logprob": 0.1, "bytes": [0xC3]}]}) or []
    assert (token.text, token.written) == ("9", b"9")
    assert token.likely == pytest.approx({"7": 0.5, "8": 0.25, "9": 0.125})
    assert (odd.written, odd.likely) == (b"", {"7": 1.0})


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, [], "yes"])
def test_a_server_that_gives_none_is_told_from_one_whose_reply_has_no_tokens(logprobs: object) -> None:
    assert tokens_of(logprobs) is None
    assert tokens_of({"content": []}) == []


@pytest.mark.parametrize("told", [None, {}, {"token": "7"}, {"token": "7", "logprob": None}])
def test_what_is_not_as_it_must_be_is_refused(told: object) -> None:
    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        tokens_of({"content": [told]})
