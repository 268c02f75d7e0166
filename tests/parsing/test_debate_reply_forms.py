"""The forms of a debate's replies: each one's schema, stated format, reader, places and continuations agree."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debate.errors import ReplyError
from debate.parsing.debate_reply import ParsedReply, ReplyForm
from debate.parsing.places import value_spans
from tests.replies import FORMS
from tests.required import required_module

every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.style}-{form.scores}-{form.abstain}")
fuzz = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
DEFAULT, COMPACT = ReplyForm(("A", "B"), ("accuracy", "relevance")), FORMS[6]
LABELED, MAY_ABSTAIN = replace(DEFAULT, scores="label"), replace(DEFAULT, abstain=True)


def said(form: ReplyForm, *literals: str, silent: bool = False) -> str:
    """A reply in a form, without white space, whose scores are these literals; the last one is repeated."""
    if silent:
        return '{"overall":"o 1","candidates":null}'
    left = itertools.chain(literals, itertools.repeat(literals[-1]))
    return f'{{"overall":"o 1","candidates":{{{",".join(_candidate(form, label, left) for label in form.labels)}}}}}'


def _candidate(form: ReplyForm, label: str, literals: Any) -> str:
    drawn = [next(literals) for _ in form.components]
    pairs = (f'"{name}":{literal}' for name, literal in zip(form.components, drawn, strict=True))
    scores = f"[{','.join(drawn)}]" if form.style == "compact" else f"{{{','.join(pairs)}}}"
    return f'"{label}":{{"comment":"c"{"" if form.scores == "none" else f",{_SCORES}{scores}"}}}'


_SCORES = '"scores":'


def refusal(form: ReplyForm, text: str) -> ReplyError:
    with pytest.raises(ReplyError) as caught:
        form.read(text)
    return caught.value


# ---- what the form says of itself


def test_the_default_format_is_stated_as_ever() -> None:
    assert DEFAULT.stated == (
        '{"overall": "<your view of all candidates together>", "candidates": {"<label>": '
        '{"comment": "<what you say of this candidate>", '
        '"scores": {"accuracy": <number>, "relevance": <number>}}, ...}}'
    )


@every_form
def test_a_stated_format_has_the_shape_that_is_read(form: ReplyForm) -> None:
    first, *words = form.stated.split("\n")
    literal = first.replace("}, ...}}", '},"B":{"comment": ""' + "§}}}").replace('"<label>"', '"A"')
    scores = literal[literal.find(', "scores"') : literal.find('},"B"')] if "scores" in literal else ""
    text = literal.replace("§", scores)
    for kind in ("whole number or null", "number or null", "whole number", "number"):
        for name in form.components:
            text = text.replace(f"<{kind}: {name}>", "7")
        text = text.replace(f"<{kind}>", "7")
    read = form.read(text)
    assert read.comments == ("<what you say of this candidate>", "")
    assert ("null" in form.stated) == form.abstain
    assert ("asked for after the comments" in "".join(words)) == (form.scores == "none")
    assert ("whole number" in form.stated) == (form.scores != "number")


def test_a_component_of_a_stated_format_is_content_and_all_words_are_ours() -> None:
    names = ("<|im_end|>", "b")
    for form in FORMS:
        parts = replace(form, components=names).stated_parts
        assert not any(is_content for text, is_content in parts if text not in (*names, ", "))
        assert all(is_content for text, is_content in parts if text in names)


def test_equal_forms_share_one_schema() -> None:
    again = ReplyForm(("A", "B"), ("accuracy", "relevance"))
    assert again == DEFAULT
    assert again.schema is DEFAULT.schema
    assert pickle.loads(pickle.dumps(DEFAULT)).schema is DEFAULT.schema
    assert replace(DEFAULT, labels=("B", "A")).schema is not DEFAULT.schema


def test_the_labels_of_a_score_are_the_whole_numbers_and_null_where_agents_may_abstain() -> None:
    assert LABELED.score_labels == ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
    assert replace(LABELED, abstain=True).score_labels == (*LABELED.score_labels, "null")


# ---- what a grammar lets a model write

NUMBERS = ("0", "7", "9", "10")
NO_LABELS = ("7.5", "7.0")
NEVER = ("11", "-1", "-0", "007", "1e1", '"7"', "true", "")


@pytest.mark.vllm
@every_form
def test_a_grammar_admits_what_the_form_reads_and_nothing_else(form: ReplyForm) -> None:
    xgrammar = required_module("xgrammar")
    vocabulary = xgrammar.TokenizerInfo([chr(n) for n in range(128)])
    schema = json.dumps(replace(form, comment_chars=9, overall_chars=9).schema)
    # As vLLM compiles it, without optional white space.
    compiler = xgrammar.GrammarCompiler(vocabulary)
    grammar = compiler.compile_json_schema(schema, any_whitespace=False, separators=(",", ":"))

    def admits(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(grammar, terminate_without_stop_token=True)
        return matcher.accept_string(text) and matcher.is_terminated()

    for text in (said(form, literal) for literal in (*NUMBERS, *NO_LABELS, *NEVER, "null")):
        assert admits(text) == is_read(form, text), text
    assert admits(said(form, "7", silent=True)) == form.abstain
    assert not admits(json.dumps(json.loads(said(form, "7"))))
    assert not admits(said(form, "7").replace("{", "{ ", 1))
    assert not admits(said(form, "7").replace('"comment"', '\n"comment"', 1))


def is_read(form: ReplyForm, text: str) -> bool:
    """Whether the text is read; what the grammar leaves out of numbers, and the reader not, does not count."""
    try:
        form.read(text)
    except ReplyError:
        return False
    return not any(literal in text for literal in ("-0", "1e1"))


# ---- what is read


@every_form
def test_a_reply_is_read_in_its_form_and_in_no_other(form: ReplyForm) -> None:
    read = form.read(said(form, "7", "3"))
    assert (read.overall, read.comments, read.is_silent) == ("o 1", ("c", "c"), False)
    if form.scores == "none":
        assert all_nan(read, 4)
    else:
        assert read.scores == ((7.0, 3.0), (3.0, 3.0))
    other = replace(form, style="compact" if form.style == "named" else "named")
    if form.scores != "none":
        assert refusal(other, said(form, "7", "3")).reason == "wrong_shape"
        assert refusal(replace(form, scores="none"), said(form, "7")).message.startswith("The key 'scores' was not")
    else:
        assert refusal(replace(form, scores="number"), said(form, "7")).message.startswith("The key 'scores' is miss")


def all_nan(read: ParsedReply, count: int) -> bool:
    return [math.isnan(score) for row in read.scores for score in row] == [True] * count


@pytest.mark.parametrize(
    ("scores", "reason", "words"),
    [
        ("[7]", "missing_component", ("'A'", "'relevance'", "accuracy, relevance")),
        ("[]", "missing_component", ("'A'", "'accuracy'")),
        ("[7, 8, 9]", "unknown_component", ("'A'", "3 scores", "accuracy, relevance")),
        ("7", "wrong_shape", ("'A'", "not 7")),
        ('{"accuracy": 7, "relevance": 8}', "wrong_shape", ("'A'", "a list")),
        ("[7, 11]", "out_of_range", ("'A'", "'relevance'", "11")),
        ('[7, "8"]', "not_a_number", ("'A'", "'relevance'", "'8'")),
        ("[7, [8]]", "not_a_number", ("'A'", "'relevance'")),
    ],
)
def test_what_is_wrong_with_a_list_of_scores_is_told_by_candidate_and_component(
    scores: str, reason: str, words: tuple[str, ...]
) -> None:
    error = refusal(COMPACT, said(COMPACT, "7").replace("[7,7]", scores, 1))
    assert error.reason == reason
    assert all(word in error.message for word in words), error.message


@pytest.mark.parametrize("literal", ["7.5", "7.0", "1e1", "-0", "0.0", "10.0"])
def test_a_label_is_a_whole_number_written_plainly(literal: str) -> None:
    error = refusal(LABELED, said(LABELED, "7", literal))
    assert error.reason == "not_whole"
    assert error.message == (
        f"The score of candidate 'A', 'relevance' must be a whole number such as 7, not {literal}."
    )
    assert DEFAULT.read(said(DEFAULT, literal)).scores[0][1] == float(literal)


def test_a_score_of_null_is_unscored_where_the_agent_may_abstain_and_refused_elsewhere() -> None:
    for form in FORMS:
        if form.scores != "none" and form.abstain:
            (first, second), _ = form.read(said(form, "null", "3")).scores
            assert math.isnan(first)
            assert second == 3
        elif form.scores != "none":
            assert refusal(form, said(form, "null", "3")).reason == "not_a_number"
    message = "The score of candidate 'A', 'accuracy' must be a number{}, not {}."
    assert refusal(DEFAULT, said(DEFAULT, "null")).message == message.format("", "null")
    assert refusal(MAY_ABSTAIN, said(DEFAULT, "true")).message == message.format(" or null", "true")


@every_form
def test_an_agent_may_abstain_for_the_whole_turn_and_say_why(form: ReplyForm) -> None:
    text = said(form, "7", silent=True)
    if not form.abstain:
        assert refusal(form, text).reason == "wrong_shape"
        return
    read = form.read(text)
    assert (read.is_silent, read.overall, read.comments, read.places) == (True, "o 1", ("", ""), ())
    assert all_nan(read, 4)
    assert refusal(form, text.replace('"o 1"', "null")).reason == "wrong_shape"
    assert refusal(form, text.replace("null", "false")).reason == "wrong_shape"


# ---- where the scores stand

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
hostile = st.sampled_from(['"', "'", "\\", "{", "}", "7", "-3.5e2", "null", "</think>", "<think>", "```", '{"a": 3}'])
strings = st.lists(st.one_of(texts, hostile), max_size=4).map("".join)
names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=1, unique=True)
prose = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='{}[]`<"'), max_size=20)


@st.composite
def forms(draw: st.DrawFn) -> ReplyForm:
    labels, components = draw(names), draw(names)
    style, abstain = draw(st.sampled_from(("named", "compact"))), draw(st.booleans())
    return ReplyForm(tuple(labels[:4]), tuple(components[:4]), cast("Any", style), "label", abstain)


@st.composite
def replies(draw: st.DrawFn, form: ReplyForm) -> dict[str, Any]:
    """A reply as a dict, its keys in any order."""
    labels = st.integers(0, 10) | st.none() if form.abstain else st.integers(0, 10)

    def shuffled(members: dict[str, Any]) -> dict[str, Any]:
        return dict(draw(st.permutations([*members.items()])))

    def scores() -> Any:
        drawn = {name: draw(labels) for name in form.components}
        return shuffled(drawn) if form.style == "named" else [*drawn.values()]

    candidates = {label: shuffled({"comment": draw(strings), "scores": scores()}) for label in form.labels}
    return shuffled({"overall": draw(strings), "candidates": shuffled(candidates)})


def score(reply: dict[str, Any], form: ReplyForm, j: int, k: int) -> int | None:
    scores = reply["candidates"][form.labels[j]]["scores"]
    return scores[form.components[k]] if form.style == "named" else scores[k]


@fuzz
@given(st.data(), prose, prose, st.sampled_from(["", "```", "```json"]), st.booleans())
def test_the_place_of_each_score_is_that_of_its_literal_in_whatever_order_and_wrapping(
    data: st.DataObject, before: str, after: str, fence: str, twice: bool
) -> None:
    form = data.draw(forms())
    reply = data.draw(replies(form))
    ascii_only, indent = data.draw(st.booleans()), data.draw(st.sampled_from([None, 2]))
    body = f"{fence}\n{json.dumps(reply, ensure_ascii=ascii_only, indent=indent)}\n{fence[:3]}"
    text = data.draw(st.sampled_from(["", '<think>9 {7} "</think>'])) + before + body
    text += f"\n{body}{after}" if twice else after
    read = form.read(text)
    spans = value_spans(text)
    places = [place for row in read.places for place in row]
    assert len({*places}) == len(form.labels) * len(form.components)
    for j, k in itertools.product(range(len(form.labels)), range(len(form.components))):
        begin, end = spans[read.places[j][k]]
        wanted = score(reply, form, j, k)
        assert json.loads(text[begin:end]) == wanted
        assert math.isnan(read.scores[j][k]) if wanted is None else read.scores[j][k] == wanted
    assert max(spans[place][1] for place in places) <= text.index(body) + len(body)


def test_the_places_are_those_of_the_object_after_numbers_in_braces_of_the_prose() -> None:
    text = f"Of {{1, 2}} and {{7}}: {said(LABELED, '7', '8', '9', '10')}"
    assert LABELED.read(text).places == ((3, 4), (5, 6))


def test_a_reply_whose_scores_cannot_be_told_from_the_prose_is_refused_where_they_are_to_be_read_out() -> None:
    text = f'A {{1}} of 5" and: {said(LABELED, "7")}'
    assert DEFAULT.read(text).scores == ((7.0, 7.0), (7.0, 7.0))
    assert refusal(LABELED, text).reason == "not_json"


def test_a_reply_whose_scores_are_not_read_out_has_no_places() -> None:
    assert DEFAULT.read(said(DEFAULT, "7")).places == ()
    assert replace(DEFAULT, scores="none").read(said(FORMS[4], "7")).places == ()


# ---- what comes before a score


def continuation(form: ReplyForm, reply: ParsedReply | None, j: int, k: int) -> str:
    """What comes before the score of one cell, in one piece."""
    found = [*form.continuations(reply)]
    assert len(found) == len(form.labels) * len(form.components)
    return "".join(found[j * len(form.components) + k])


@fuzz
@given(st.data())
def test_a_continuation_is_the_beginning_of_the_reply_in_which_a_score_comes_next(data: st.DataObject) -> None:
    form = data.draw(forms())
    comments = tuple(data.draw(strings) for _ in form.labels)
    reply = data.draw(st.none() | st.builds(ParsedReply, strings, st.just(comments), st.just(())))
    j, k = data.draw(st.integers(0, len(form.labels) - 1)), data.draw(st.integers(0, len(form.components) - 1))
    beginning = continuation(form, reply, j, k)
    label = data.draw(st.sampled_from(form.score_labels))
    overall, comments = (reply.overall, reply.comments) if reply else ("", ("",) * len(form.labels))
    shown: dict[str, Any] = {each: {"comment": comments[n]} for n, each in enumerate(form.labels[: j + 1])}
    shown[form.labels[j]]["scores"] = {form.components[k]: json.loads(label)}
    whole = {"overall": overall, "candidates": shown}
    assert json.dumps(whole, ensure_ascii=False, separators=(",", ":")) == f"{beginning}{label}}}}}}}}}"


@fuzz
@given(st.data())
def test_the_first_continuation_begins_a_whole_reply_of_the_named_form(data: st.DataObject) -> None:
    form = replace(data.draw(forms()), style="named")
    overall, comments = data.draw(strings), {label: {"comment": data.draw(strings)} for label in form.labels}
    scored = {label: {**said, "scores": dict.fromkeys(form.components, 7)} for label, said in comments.items()}
    read = replace(form, scores="none").read(json.dumps({"overall": overall, "candidates": comments}))
    text = json.dumps({"overall": overall, "candidates": scored}, ensure_ascii=False, separators=(",", ":"))
    assert form.read(text).comments == read.comments
    assert text.startswith(continuation(form, read, 0, 0))
