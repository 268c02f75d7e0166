"""Early stopping: what is asked, in waves, what is left unread, and the document's way under its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Engine, Task, ValueEvaluator
from debate.backends import Scripted
from debate.errors import ConfigError
from debate.evaluators.value import EarlyStop
from debate.flow import Generate
from debate.parsing.values import NumberLine
from debate.selection import keep_best
from debate.testing import Recorder
from debate.types import Failure, Scale
from tests.judges import judged, text_of, valued, worth
from tests.small_flows import plain


def texts(n: int) -> list[str]:
    return [f"t{j}" for j in range(n)]


def of(values: Sequence[float]) -> Recorder:
    """A judge to whom text j is worth `values[j]` each time."""
    return Recorder(valued({f"t{j}": value for j, value in enumerate(values)}))


def counts(judge: Recorder, n: int) -> list[int]:
    """How often each text was asked about."""
    asked = [text_of(call) for call in judge.calls]
    return [asked.count(text) for text in texts(n)]


def test_a_candidate_that_is_good_enough_gets_no_more_samples() -> None:
    judge, waves = of([10, 5, 9.6, 9.4]), list[int]()
    evaluator = ValueEvaluator(samples=4, early_stop=EarlyStop())
    evaluation = judged(evaluator, Task("x", texts(4)), judge, waves)
    assert counts(judge, 4) == [2, 4, 2, 4]
    assert waves == [4, 4, 2, 2]
    assert evaluation.scores.tolist() == pytest.approx([10, 5, 9.6, 9.4])
    assert (evaluation.statuses, evaluation.status, evaluation.stop_reason) == (("ok",) * 4, "ok", "converged")
    assert evaluation.details["n_ok"] == [2, 4, 2, 4]


def test_a_candidate_that_is_good_enough_has_the_samples_that_a_score_takes() -> None:
    judge = of([10, 3])
    evaluator = ValueEvaluator(samples=5, min_ok=3, early_stop=EarlyStop(threshold=0.9, min_samples=2))
    evaluation = judged(evaluator, Task("x", texts(2)), judge)
    assert counts(judge, 2) == [3, 5]
    assert evaluation.scores.tolist() == pytest.approx([10, 3])
    assert evaluation.selected == 0


def test_nothing_good_enough_is_as_without_stopping() -> None:
    judge, plainly = of([5, 6]), of([5, 6])
    stopping = judged(ValueEvaluator(early_stop=EarlyStop()), Task("x", texts(2)), judge)
    without = judged(ValueEvaluator(), Task("x", texts(2)), plainly)
    assert {(call.prompt, call.sample_key) for call in judge.calls} == {
        (call.prompt, call.sample_key) for call in plainly.calls
    }
    assert stopping.scores.tolist() == without.scores.tolist()
    assert stopping.stop_reason is None


def test_waves_keep_batching_and_what_comes_after_is_skipped() -> None:
    values = [5.0] * 5 + [10.0] + [5.0] * 14
    judge, waves = of(values), list[int]()
    evaluator = ValueEvaluator(samples=3, early_stop=EarlyStop(over="task", wave=4))
    evaluation = judged(evaluator, Task("x", texts(20)), judge, waves)
    assert waves == [4, 4, 4, 4, 4, 3]
    assert counts(judge, 20) == [3, 3, 3, 3, 3, 2, 3, 3, *[0] * 12]
    assert evaluation.statuses == ("ok",) * 8 + ("skipped",) * 12
    assert np.isnan(evaluation.scores[8:]).all()
    assert (evaluation.selected, evaluation.status, evaluation.error) == (5, "ok", None)
    assert evaluation.stop_reason == "converged"
    assert evaluation.probabilities[8:].sum() == 0
    assert evaluation.details["n_ok"][8:] == [0] * 12
    assert keep_best(evaluation.scores, 20) == [5, 0, 1, 2, 3, 4, 6, 7]


def test_the_engine_has_a_whole_wave_under_way() -> None:
    script = Recorder(lambda call: worth(5))
    with Engine(Scripted(script)) as engine:
        engine.evaluate(Task("x", texts(6)), ValueEvaluator(samples=2, early_stop=EarlyStop(over="task", wave=6)))
    assert [call.info["sample"] for call in script.calls] == [0] * 6 + [1] * 6
    assert {call.info["candidate"] for call in script.calls[:6]} == set(range(6))


def test_what_equals_a_skipped_text_is_skipped_too() -> None:
    task = Task("x", ["t0", "t1", "t0", "t1"])
    evaluator = ValueEvaluator(early_stop=EarlyStop(over="task", wave=1))
    evaluation = judged(evaluator, task, of([10, 5]))
    assert evaluation.statuses == ("ok", "skipped", "duplicate", "skipped")
    assert evaluation.scores[[0, 2]].tolist() == [10, 10]
    assert np.isnan(evaluation.scores[[1, 3]]).all()


def test_failed_samples_settle_nothing() -> None:
    def answer(call: Generate) -> str | Failure:
        return Failure("busy", "no") if call.info["sample"] == 0 else worth(10)

    judge = Recorder(answer)
    evaluation = judged(ValueEvaluator(samples=4, early_stop=EarlyStop(min_samples=2)), Task("x", ["t0"]), judge)
    assert counts(judge, 1) == [3]
    assert evaluation.scores.tolist() == [10]
    assert evaluation.status == "partial"


def test_the_threshold_is_a_part_of_the_scale() -> None:
    judge = Recorder(lambda call: "\n".join(["so", "80" if call.info["candidate"] else "-100"]))
    evaluator = ValueEvaluator(
        samples=3, reader=NumberLine(-100.0, 100.0), early_stop=EarlyStop(threshold=0.9, min_samples=1)
    )
    judged(evaluator, Task("x", texts(2)), judge)
    assert counts(judge, 2) == [3, 1]


@given(
    values=st.lists(st.integers(0, 10), min_size=1, max_size=12),
    samples=st.integers(1, 4),
    min_samples=st.integers(1, 3),
    wave=st.integers(1, 5),
    over=st.sampled_from(["candidate", "task"]),
)
@settings(max_examples=50, deadline=None)
def test_every_candidate_is_scored_as_by_itself_or_skipped(
    values: list[int], samples: int, min_samples: int, wave: int, over: Any
) -> None:
    judge, waves = of([float(value) for value in values]), list[int]()
    stop = EarlyStop(threshold=0.8, min_samples=min_samples, over=over, wave=wave)
    evaluation = judged(ValueEvaluator(samples=samples, early_stop=stop), Task("x", texts(len(values))), judge, waves)
    for score, status, value, n in zip(
        evaluation.scores, evaluation.statuses, values, counts(judge, len(values)), strict=True
    ):
        assert (status == "skipped") == bool(np.isnan(score)) == (n == 0)
        if n:
            assert score == value
            assert n == (min(samples, min_samples) if value >= 8 else samples)
    assert sum(waves) == len(judge.calls)
    skipped = [j for j, status in enumerate(evaluation.statuses) if status == "skipped"]
    assert not skipped or (over == "task" and max(values) >= 8 and skipped[0] % wave == 0)


def test_a_stopped_evaluation_is_the_same_from_the_engine() -> None:
    evaluator = ValueEvaluator(samples=3, early_stop=EarlyStop(over="task", wave=2))
    runs: list[dict[str, Any]] = []
    for _ in range(2):
        with Engine(Scripted(lambda call: worth(call.info["candidate"] * 2))) as engine:
            runs.append(plain(engine.evaluate(Task("x", texts(8)), evaluator)))
    assert runs[0] == runs[1]
    assert runs[0]["usage"]["calls"] == 4 * 3 + 3 + 2


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"threshold": 0}, "early_stop.threshold"),
        ({"threshold": 1.1}, "early_stop.threshold"),
        ({"min_samples": 0}, "early_stop.min_samples"),
        ({"wave": 0}, "early_stop.wave"),
        ({"over": "all"}, "early_stop.over"),
    ],
)
def test_settings_that_cannot_work_are_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        EarlyStop(**options)
    assert refused.value.field == field


def test_lower_may_be_better() -> None:
    stop = EarlyStop(threshold=0.9, min_samples=1)
    scale = Scale(0, 100, higher_is_better=False)
    assert stop.is_settled([10.0], scale)
    assert not stop.is_settled([90.0], scale)
