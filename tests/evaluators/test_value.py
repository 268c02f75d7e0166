"""Values: how often which text is asked about, what samples come to, failures, duplicates, the cache."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import product
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
from debate.flow import Generate, join
from debate.parsing.values import JsonField, LabelMap, NumberLine, TagNumber
from debate.selection import keep_best
from debate.store import Store
from debate.testing import Recorder, check_evaluator
from debate.types import Failure, Scale
from tests.judges import doubtful, judged, shown, text_of, valued, worth
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


# ---- read out

SURE: dict[str, dict[str, float]] = {
    "good": {"8": 0.4, "9": 0.4, "2": 0.2},
    "bad": {"1": 0.3, "3": 0.3},
    "so so": {"5": 0.5, "10": 0.1},
}
READ_OUT: Any = pytest.mark.parametrize("readout", ["expected", "cells"])


def by_text(call: Generate | Call) -> dict[str, float]:
    assert isinstance(call, Generate)
    return SURE[text_of(call)]


@READ_OUT
def test_a_value_that_is_read_out_is_the_mean_over_its_labels(readout: Any) -> None:
    judge = Recorder(doubtful(by_text))
    evaluation = judged(ValueEvaluator(readout=readout, samples=2), Task("x", TEXTS), judge)
    assert evaluation.scores.tolist() == pytest.approx([7.2, 2.0, 35 / 6])
    assert [sample.value for sample in evaluation.judgments[:2]] == pytest.approx([7.2, 7.2])
    assert all(sample.distribution is not None for sample in evaluation.judgments)
    mass = evaluation.judgments[2].distribution
    assert mass is not None and mass.probabilities == {"1": 0.5, "3": 0.5} and mass.mass == 0.6
    assert evaluation.details["spread"] == pytest.approx([6.96**0.5, 1.0, (22.5 / 0.6 - (35 / 6) ** 2) ** 0.5])
    assert evaluation.p_best is not None
    assert evaluation.p_best.tolist() == pytest.approx(alone_best(["good", "bad", "so so"]))
    assert (evaluation.status, evaluation.selected) == ("ok", 0)


def test_samples_that_differ_are_pooled_and_not_averaged_away() -> None:
    """Two samples certain of 4 and of 8 against two certain of 6: the same means, and doubt all the same."""

    def raw(call: Generate | Call) -> dict[str, float]:
        return {("4", "8")[int(call.info["sample"])] if call.info["candidate"] == 0 else "6": 1.0}

    evaluation = judged(ValueEvaluator(readout="expected", samples=2), Task("x", ["a", "b"]), doubtful(raw))
    assert evaluation.scores.tolist() == [6.0, 6.0]
    assert evaluation.details["spread"] == pytest.approx([2.0, 0.0])
    assert evaluation.p_best is not None and evaluation.p_best.tolist() == pytest.approx([0.5, 0.5])


def alone_best(texts: Sequence[str]) -> list[float]:
    """Probability of each text being worth the most, by counting all cases."""
    total, best = 0.0, np.zeros(len(texts))
    for case in product(*(SURE[text].items() for text in texts)):
        values = np.array([float(label) for label, _ in case])
        p = float(np.prod([p for _, p in case]))
        total += p
        best += p * (values == values.max()) / (values == values.max()).sum()
    return (best / total).tolist()


def test_the_labels_are_read_where_the_value_stands_in_the_reply() -> None:
    judge = Recorder(doubtful(by_text))
    judged(ValueEvaluator(readout="expected", samples=3), Task("x", TEXTS), judge)
    assert len(judge.calls) == 9
    for call in judge.calls:
        assert call.read_out.labels == tuple(map(str, range(11)))
        assert call.read_out.continuations == ()
        assert call.schema["properties"]["value"] == {"type": "integer", "minimum": 0, "maximum": 10}
        assert '"value": <whole number>' in call.prompt.texts[0]


def test_of_cells_the_reasoning_is_written_and_the_value_read_after_it() -> None:
    judge = Recorder(doubtful(by_text))
    judged(ValueEvaluator(readout="cells", samples=2), Task("x", ["good"]), judge)
    written = [call for call in judge.calls if call.read_out is None]
    read = [call for call in judge.calls if call.read_out is not None]
    assert (len(written), len(read)) == (2, 2)
    assert [list(call.schema["properties"]) for call in written] == [["reasoning"]] * 2
    for call in read:
        assert [join(each) for each in call.read_out.continuations] == ['{"reasoning":"quite \\"fine\\"","value":']
        assert all(part.is_content for block in call.read_out.continuations[0] for part in block)
        assert call.prompt.texts == written[0].prompt.texts
        assert (call.schema, call.info["sample"] in (0, 1)) == (None, True)


@READ_OUT
def test_labels_with_too_little_of_the_probability_are_a_failed_sample_that_is_not_asked_again(readout: Any) -> None:
    def raw(call: Generate | Call) -> dict[str, float]:
        return {"7": 0.3, "8": 0.1} if call.info["sample"] == 1 else {"7": 0.9}

    judge = Recorder(doubtful(raw))
    evaluation = judged(ValueEvaluator(readout=readout, samples=3), Task("x", ["a"]), judge)
    assert len(judge.calls) == (3 if readout == "expected" else 6)
    assert evaluation.scores.tolist() == [7.0]
    assert (evaluation.details["n_ok"], evaluation.details["n_failed"]) == ([2], [1])
    sample = evaluation.judgments[1]
    assert sample.value is None and sample.distribution is not None and sample.distribution.mass == 0.4
    [failure] = evaluation.failures
    assert failure.reason == "label_mass"
    assert failure.message.startswith("the labels 0 to 10 had 0.4 of the model's probability, less than 0.5")
    assert failure.message.endswith("the reply says '5'") == (readout == "expected")
    assert evaluation.status == "partial"


@READ_OUT
def test_a_reply_that_came_without_distributions_is_a_failed_sample(readout: Any) -> None:
    evaluation = judged(ValueEvaluator(readout=readout, samples=1), Task("x", ["a"]), lambda call: worth(5))
    assert [failure.reason for failure in evaluation.failures] == ["no_distributions"]
    assert (evaluation.status, evaluation.p_best) == ("failed", pytest.approx([0.0]))


def test_a_cell_that_cannot_be_read_fails_and_keeps_its_reasoning() -> None:
    def answer(call: Generate) -> Any:
        return Failure("busy", "no") if call.read_out else json.dumps({"reasoning": "fine"})

    evaluation = judged(ValueEvaluator(readout="cells", samples=1), Task("x", ["a"]), answer)
    [sample] = evaluation.judgments
    assert (sample.value, sample.failure, "fine" in sample.text) == (None, Failure("busy", "no"), True)
    assert evaluation.status == "failed"


@pytest.mark.parametrize("readout", ["expected", "cells"])
def test_a_reply_that_cannot_be_read_is_asked_again_before_anything_is_read_out(readout: Any) -> None:
    sure = doubtful(lambda call: {"6": 1.0})
    judge = Recorder(
        lambda call: sure(call) if call.attempt or (call.read_out and call.read_out.continuations) else "?"
    )
    evaluation = judged(ValueEvaluator(readout=readout, samples=1), Task("x", ["a"]), judge)
    assert (evaluation.scores.tolist(), evaluation.status) == ([6.0], "ok")
    assert [call.attempt for call in judge.calls] == ([0, 1] if readout == "expected" else [0, 1, 0])
    assert len(evaluation.judgments[0].invalid_replies) == 1


DRAWN = st.dictionaries(st.sampled_from([*map(str, range(-2, 11))]), st.floats(1e-9, 1.0), min_size=1)


@given(
    raws=st.lists(DRAWN, min_size=1, max_size=3),
    how=st.sampled_from(["mean", "median"]),
    readout=st.sampled_from(["expected", "cells"]),
)
@settings(max_examples=30, deadline=None)
def test_a_value_read_out_never_lies_outside_the_readers_scale(
    raws: list[dict[str, float]], how: Any, readout: Any
) -> None:
    def raw(call: Generate | Call) -> dict[str, float]:
        given = raws[int(call.info["candidate"])]
        return {label: p / max(1.0, sum(given.values())) for label, p in given.items()}

    evaluator = ValueEvaluator(readout=readout, reader=JsonField("value", -2, 10), samples=2, reduce=how)
    evaluation = judged(evaluator, Task("x", [str(j) for j in range(len(raws))]), doubtful(raw))
    values = [sample.value for sample in evaluation.judgments if sample.value is not None]
    assert all(-2 <= value <= 10 for value in values)
    assert len(values) == 2 * sum(sum(each.values()) >= 0.5 for each in raws)
    assert evaluation.p_best is not None
    assert evaluation.p_best.sum() == pytest.approx(1.0 if values else 0.0)


@pytest.mark.parametrize(
    ("duplicates", "best"),
    [("share", ["good", "bad", "good"]), ("evaluate", ["good", "bad", "good"]), ("zero", None)],
)
def test_a_duplicate_is_as_likely_the_best_as_what_it_gets(duplicates: Any, best: list[str] | None) -> None:
    evaluator = ValueEvaluator(readout="expected", samples=2, duplicates=duplicates)
    found = judged(evaluator, Task("x", ["good", "bad", "good"]), doubtful(by_text)).p_best
    assert found is not None
    assert found.tolist() == pytest.approx([*alone_best(["good", "bad"]), 0.0] if best is None else alone_best(best))


def test_a_candidate_without_enough_samples_is_never_the_best() -> None:
    def raw(call: Generate | Call) -> dict[str, float]:
        return {"9": 0.2} if (call.info["candidate"], call.info["sample"]) == (0, 1) else {"9": 1.0}

    evaluator = ValueEvaluator(readout="expected", samples=2, min_ok=2)
    evaluation = judged(evaluator, Task("x", ["a", "b"]), doubtful(raw))
    assert evaluation.statuses == ("failed", "ok")
    assert evaluation.p_best is not None and evaluation.p_best.tolist() == [0.0, 1.0]
    assert np.isnan(evaluation.details["spread"][0]) and evaluation.details["spread"][1] == 0.0


def test_sampling_ends_early_by_expectations() -> None:
    judge = Recorder(doubtful(lambda call: {"9": 0.5, "10": 0.5}))
    stop = EarlyStop(threshold=0.95, min_samples=1)
    evaluation = judged(ValueEvaluator(readout="expected", early_stop=stop), Task("x", ["a", "b"]), judge)
    assert len(judge.calls) == 2  # a mean of 9.5 is enough, where the replies say 5
    assert (evaluation.stop_reason, evaluation.scores.tolist()) == ("converged", [9.5, 9.5])
    assert evaluation.p_best is not None and evaluation.p_best.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("reader", [LabelMap({"sure": 20, "no": 1}), NumberLine(0, 5), TagNumber("score")])
@READ_OUT
def test_only_a_field_of_json_can_be_read_out(reader: Any, readout: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        ValueEvaluator(reader=reader, readout=readout)
    assert refused.value.field == "readout"
    assert 'reader=JsonField("value")' in (refused.value.hint or "")


def test_a_scale_without_labels_is_refused_when_the_evaluator_is_made() -> None:
    with pytest.raises(ConfigError, match="whole numbers") as refused:
        ValueEvaluator(reader=JsonField("value", 0.5, 9.5), readout="cells")
    assert refused.value.field == "readout"


def test_a_read_out_is_part_of_a_runs_identity_and_replies_are_as_they_were() -> None:
    assert "readout" not in ValueEvaluator().describe()
    assert ValueEvaluator(readout="cells").describe() == {**ValueEvaluator().describe(), "readout": "cells"}
    assert ValueEvaluator(readout="cells", model="m").read_models == {"m"}
    assert (ValueEvaluator(readout="expected").read_models, ValueEvaluator().read_models) == ({None}, frozenset())
    evaluation = judged(ValueEvaluator(), Task("x", ["a"]), lambda call: worth(5))
    assert evaluation.p_best is None and "spread" not in evaluation.details


@READ_OUT
def test_a_judge_that_is_read_out_keeps_the_rules_of_evaluators(readout: Any) -> None:
    judge = doubtful(lambda call: {str(call.seed % 11): 0.6, "4": 0.3} if isinstance(call, Call) else {})
    check_evaluator(ValueEvaluator(readout=readout, samples=2), [Task("x", ["a", "b"])], judge)


def test_a_tasks_own_components_are_shown_as_criteria() -> None:
    own = [
        {"name": "cites", "description": "Names a source."},
        {"name": "brief", "description": "Is short.", "weight": 0.5},
    ]
    plain_task, judge = Task("Which?", TEXTS, context=["c"]), Recorder(valued(SEVEN))
    task = Task("Which?", TEXTS, context=["c"], components=own)
    evaluation = judged(ValueEvaluator(), task, judge)
    text = judge.calls[0].prompt.messages()[-1]["content"]
    assert "# Context 2" in text
    assert "Criteria to judge by:\n- cites: Names a source. (weight 1)\n- brief: Is short. (weight 0.5)\n" in text
    assert (evaluation.status, evaluation.components) == ("ok", ())
    longer = ValueEvaluator().footprint(task).characters - ValueEvaluator().footprint(plain_task).characters
    assert longer == len(task.criteria[0])
