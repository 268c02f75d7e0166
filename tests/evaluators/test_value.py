"""Values: how often which text is asked about, what samples come to, failures, duplicates, the cache."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Engine, Evaluation, Task, ValueEvaluator
from debate.backends import Call, Scripted
from debate.errors import CallError, ConfigError
from debate.evaluators.value import EarlyStop
from debate.flow import Generate
from debate.parsing.values import JsonField, LabelMap, NumberLine, TagNumber
from debate.selection import keep_best
from debate.store import Store
from debate.testing import Recorder
from debate.types import Failure, Scale
from tests.judges import judged, shown, text_of, valued, worth
from tests.small_flows import plain

TEXTS = ("good", "bad", "so so")
SEVEN = {"good": 9.0, "bad": 1.0, "so so": 5.0}


def by_sample(values: Sequence[float | None]) -> Any:
    """A judge whose sample s is `values[s]`; None is a call that failed."""

    def answer(call: Generate) -> str | Failure:
        value = values[int(call.info["sample"])]
        return Failure("busy", "no reply") if value is None else worth(value)

    return answer


def by_seed(call: Call) -> str:
    return worth(random.Random(call.seed).randint(0, 10))


def without_cost(evaluation: Evaluation) -> dict[str, Any]:
    return {key: value for key, value in plain(evaluation).items() if key != "usage"}


def test_each_text_is_asked_about_as_often_as_there_are_samples() -> None:
    judge = Recorder(valued(SEVEN))
    evaluation = judged(ValueEvaluator(samples=4), Task("Which?", TEXTS), judge)
    asked = sorted((text_of(call), call.sample_key) for call in judge.calls)
    assert asked == sorted((text, ("value", s)) for text in TEXTS for s in range(4))
    assert evaluation.scores.tolist() == [9, 1, 5]
    assert (evaluation.status, evaluation.error, evaluation.selected) == ("ok", None, 0)
    assert evaluation.details["confidence"] == [1, 1, 1]
    assert {call.sampling.temperature for call in judge.calls} == {0.3}


@pytest.mark.parametrize(("how", "score"), [("mean", 4.0), ("sum", 12.0), ("median", 1.0)])
def test_samples_are_reduced_as_said(how: Any, score: float) -> None:
    evaluation = judged(ValueEvaluator(reduce=how), Task("x", ["a"]), by_sample([1, 10, 1]))
    assert evaluation.scores.tolist() == [score]
    assert evaluation.scale == Scale(0, 30 if how == "sum" else 10)


@pytest.mark.parametrize(
    ("reader", "reply", "score"),
    [
        (LabelMap({"sure": 20, "likely": 1, "impossible": 0.001}), "It adds up.\nSure.", 20.0),
        (NumberLine(0, 5), "Fine.\n4.5", 4.5),
        (TagNumber("score", -100, 100), "<analysis>no</analysis><score>-30</score>", -30.0),
        (JsonField("worth", 0, 20), '{"reasoning": "ok", "worth": 12}', 12.0),
    ],
)
def test_any_reader_reads_and_says_its_scale(reader: Any, reply: str, score: float) -> None:
    judge = Recorder(lambda call: reply)
    evaluator = ValueEvaluator(samples=1, reader=reader)
    evaluation = judged(evaluator, Task("x", ["a"]), judge)
    assert evaluation.scores.tolist() == [score]
    assert evaluation.scale == evaluator.scale == reader.scale
    assert (judge.calls[0].schema is None) == (not isinstance(reader, JsonField))


def test_an_unreadable_reply_is_asked_again_with_what_was_wrong() -> None:
    judge = Recorder(lambda call: worth(7) if call.attempt else worth("seven"))
    evaluation = judged(ValueEvaluator(samples=1), Task("x", ["a"]), judge)
    assert [call.attempt for call in judge.calls] == [0, 1]
    last = judge.calls[1].prompt.messages()[-1]["content"]
    assert last.startswith(judge.calls[0].prompt.messages()[-1]["content"])
    assert evaluation.judgments[0].invalid_replies[0].message in last
    assert (evaluation.scores.tolist(), evaluation.status) == ([7.0], "ok")


@given(
    ok=st.lists(st.floats(0, 10), min_size=1, max_size=5),
    n_failed=st.integers(0, 4),
    order=st.randoms(use_true_random=False),
)
@settings(max_examples=40, deadline=None)
def test_a_failed_sample_never_changes_the_mean_of_the_others(
    ok: list[float], n_failed: int, order: random.Random
) -> None:
    samples: list[float | None] = [*ok]
    for _ in range(n_failed):
        samples.insert(order.randint(0, len(samples)), None)
    alone = judged(ValueEvaluator(samples=len(ok)), Task("x", ["a"]), by_sample(ok))
    among = judged(ValueEvaluator(samples=len(samples)), Task("x", ["a"]), by_sample(samples))
    assert among.scores.tolist() == alone.scores.tolist()
    assert (among.details["n_ok"], among.details["n_failed"]) == ([len(ok)], [n_failed])
    assert (among.status, len(among.failures)) == ("partial" if n_failed else "ok", n_failed)


@given(values=st.lists(st.none() | st.integers(0, 10), min_size=1, max_size=6), n=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_a_failed_candidate_is_never_selected_nor_kept(values: list[int | None], n: int) -> None:
    def answer(call: Generate) -> str | Failure:
        value = values[int(text_of(call))]
        return Failure("busy", "no reply") if value is None else worth(value)

    task = Task("x", [str(j) for j in range(len(values))])
    evaluation = judged(ValueEvaluator(samples=2), task, answer)
    bad = {j for j, value in enumerate(values) if value is None}
    assert {j for j, status in enumerate(evaluation.statuses) if status == "failed"} == bad
    assert not bad & {*keep_best(evaluation.scores, n), evaluation.selected, *evaluation.tied}
    assert evaluation.probabilities[sorted(bad)].sum() == 0
    assert (evaluation.selected is None) == (evaluation.status == "failed") == (len(bad) == len(values))


def test_too_few_readable_samples_are_no_score() -> None:
    evaluator = ValueEvaluator(samples=3, min_ok=2, retries=0)
    replies = {"a": [worth(3), worth(3), "?"], "b": [worth(9), "?", "?"]}
    evaluation = judged(evaluator, Task("x", ["a", "b"]), lambda call: replies[text_of(call)][int(call.info["sample"])])
    assert evaluation.statuses == ("ok", "failed")
    assert evaluation.scores[0] == 3
    assert np.isnan(evaluation.scores[1])
    assert evaluation.selected == 0
    assert {failure.reason for failure in evaluation.failures} == {"unreadable_reply"}


@given(order=st.permutations(range(5)), values=st.lists(st.integers(0, 10), min_size=5, max_size=5))
@settings(max_examples=25, deadline=None)
def test_permuting_the_candidates_permutes_the_results(order: list[int], values: list[int]) -> None:
    judge = valued({str(j): value for j, value in enumerate(values)})
    plainly = judged(ValueEvaluator(), Task("x", [str(j) for j in range(5)]), judge)
    permuted = judged(ValueEvaluator(), Task("x", [str(j) for j in order]), judge)
    assert permuted.scores.tolist() == plainly.scores[order].tolist()
    np.testing.assert_allclose(permuted.probabilities, plainly.probabilities[order])
    assert {order[j] for j in permuted.tied} == set(plainly.tied)


@pytest.mark.parametrize(
    ("duplicates", "scores", "statuses", "calls"),
    [
        ("share", [9, 1, 9, 9], ("ok", "ok", "duplicate", "duplicate"), 4),
        ("zero", [9, 1, 0, 0], ("ok", "ok", "duplicate", "duplicate"), 4),
        ("evaluate", [9, 1, 9, 9], ("ok",) * 4, 8),
    ],
)
def test_what_an_equal_text_gets(duplicates: Any, scores: list[float], statuses: tuple[str, ...], calls: int) -> None:
    judge = Recorder(valued(SEVEN))
    evaluator = ValueEvaluator(samples=2, duplicates=duplicates)
    evaluation = judged(evaluator, Task("x", ["good", "bad", "good", "good"]), judge)
    assert (evaluation.scores.tolist(), evaluation.statuses, len(judge.calls)) == (scores, statuses, calls)
    assert evaluation.details["duplicate_of"] == ({} if duplicates == "evaluate" else {"2": 0, "3": 0})
    assert len({(text_of(call), call.sample_key) for call in judge.calls}) == calls


def test_a_text_like_one_that_failed_has_failed_too() -> None:
    evaluation = judged(ValueEvaluator(), Task("x", ["a", "a"]), by_sample([None] * 3))
    assert evaluation.statuses == ("failed", "failed")
    assert evaluation.status == "failed"


def thoughts(first: int, n: int) -> list[Task]:
    """Tasks of 20 thoughts, of which 6 (30 %) stand there before."""
    return [Task("24", [f"thought {t} {j % 14}" for j in range(20)], id=f"t{t}") for t in range(first, first + n)]


def test_calls_made_are_exactly_those_that_are_new(tmp_path: Path) -> None:
    script = Recorder(by_seed)
    distinct = 14 * 50
    with Store(tmp_path / "s.sqlite") as store, Engine(Scripted(script), cache=store.cache()) as engine:
        cached = engine.evaluate_batch(thoughts(0, 50), ValueEvaluator(samples=3))
        assert len(script.calls) == distinct * 3
        everything = engine.evaluate_batch(thoughts(0, 100), ValueEvaluator(samples=3))
        assert len(script.calls) == 2 * distinct * 3
        assert sum(len(evaluation.scores) for evaluation in everything) == 2000
        assert [without_cost(each) for each in everything[:50]] == [without_cost(each) for each in cached]


def test_more_samples_draw_only_those_that_are_missing(tmp_path: Path) -> None:
    script = Recorder(by_seed)
    tasks = thoughts(0, 4)
    with Store(tmp_path / "s.sqlite") as store, Engine(Scripted(script), cache=store.cache(ttl=3600)) as engine:
        engine.evaluate_batch(tasks, ValueEvaluator(samples=1))
        assert len(script.calls) == 56
        five = engine.evaluate_batch(tasks, ValueEvaluator(samples=5))
        assert len(script.calls) == 56 * 5
        again = engine.evaluate_batch(tasks, ValueEvaluator(samples=5))
        assert len(script.calls) == 56 * 5
    assert [plain(each) for each in again] == [plain(each) for each in five]
    with Engine(Scripted(by_seed)) as engine:
        fresh = engine.evaluate_batch(tasks, ValueEvaluator(samples=5))
    assert [plain(each) for each in fresh] == [plain(each) for each in five]


def test_a_failed_call_is_not_cached(tmp_path: Path) -> None:
    def busy(call: Call) -> str:
        raise CallError("busy", "no")

    script = Recorder(busy)
    with Store(tmp_path / "s.sqlite") as store, Engine(Scripted(script), cache=store.cache()) as engine:
        assert engine.evaluate(Task("x", ["a"]), ValueEvaluator()).status == "failed"
        script.reply = by_seed
        assert engine.evaluate(Task("x", ["a"]), ValueEvaluator()).status == "ok"


def test_feedback_holds_what_was_said_the_lowest_first() -> None:
    evaluation = judged(ValueEvaluator(samples=2), Task("x", ["a"]), by_sample([8, 3]))
    said = evaluation.feedback(0)
    assert "because of 8" in said
    assert said.index("because of 3") < said.index("because of 8")
    assert "because of 8" in evaluation.chain_of_thought()


def test_the_prompt_shows_the_input_the_context_and_one_text() -> None:
    judge = Recorder(valued({"secret text": 1, "other": 2}))
    task = Task("the input", ["secret text", "other"], context=["the context"], reference="the right one")
    judged(ValueEvaluator(samples=1), task, judge)
    for call in judge.calls:
        text = json.dumps(call.prompt.messages())
        assert "the input" in text
        assert "the context" in text
        assert "Reference answer:\\nthe right one" in text
        assert ("secret text" in text) != ("other\\n" in text)
        assert list(shown(call)) == [""]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"samples": 0}, "samples"),
        ({"samples": 2, "min_ok": 3}, "min_ok"),
        ({"reduce": "best"}, "reduce"),
        ({"duplicates": "drop"}, "duplicates"),
        ({"retries": -1}, "retries"),
        ({"softmax_temperature": 0}, "softmax_temperature"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ValueEvaluator(**options)
    assert refused.value.field == field


def test_what_is_worth_0_unread_lies_on_the_scale() -> None:
    reader = NumberLine(1.0, 10.0)
    assert ValueEvaluator(reader=reader).scale == Scale(1, 10)
    assert ValueEvaluator(reader=reader, duplicates="zero").scale == Scale(0, 10)


def test_what_a_candidate_is_asked_depends_on_no_other_candidate() -> None:
    def asked(*candidates: str) -> dict[str, set[int]]:
        seeds: dict[str, set[int]] = {}

        def judge(call: Call) -> str:
            seeds.setdefault(candidates[int(call.info["candidate"])], set[int]()).add(call.seed)
            return json.dumps({"reasoning": "", "value": 5})

        with Engine(Scripted(judge)) as engine:
            engine.evaluate(Task("x", candidates, id=" ".join(candidates)), ValueEvaluator())
        return seeds

    alone, among, turned = asked("a"), asked("a", "b", "c"), asked("c", "b", "a")
    assert among["a"] == alone["a"]
    assert turned == among


def test_sums_of_unequal_numbers_of_samples_are_refused() -> None:
    with pytest.raises(ConfigError, match="early stop"):
        ValueEvaluator(reduce="sum", early_stop=EarlyStop())
