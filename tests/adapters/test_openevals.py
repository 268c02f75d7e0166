"""The plain evaluator by itself, in LangSmith without its server, and beside openevals' own evaluators."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from debate import Engine, Judge
from debate.adapters.openevals import as_evaluator
from debate.backends import Call, Scripted
from debate.errors import UnscoredError
from debate.testing import reply_for
from tests.adapters.by_answer import ByAnswer
from tests.required import required_framework
from tests.small_flows import debates

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def judge() -> Iterator[Judge]:
    with Engine(Scripted(ByAnswer().answer)) as engine:
        yield Judge(engine, debates(retries=0))


def test_it_takes_texts_and_mappings_and_returns_key_score_and_comment(judge: Judge) -> None:
    evaluate = as_evaluator(judge, max_characters=60)
    found = evaluate({"question": "2 + 2?"}, {"answer": "8"}, {"answer": "4"})
    assert found.keys() == {"key", "score", "comment"}
    assert (found["key"], found["score"]) == ("debate", pytest.approx(0.8))
    assert len(found["comment"]) <= 60
    assert evaluate(inputs="2 + 2?", outputs="8")["score"] == pytest.approx(0.8)


def test_an_output_that_is_missing_is_judged_as_an_empty_answer() -> None:
    shown: list[str] = []

    def script(call: Call) -> str:
        shown.append(str(call.prompt))
        return reply_for(call)

    with Engine(Scripted(script)) as engine:
        as_evaluator(Judge(engine, debates(rounds=1)))("2 + 2?", None)
    assert shown
    assert not any("null" in prompt for prompt in shown)


def test_a_missing_score_follows_the_rule_of_the_judge(judge: Judge) -> None:
    with pytest.raises(UnscoredError):
        as_evaluator(judge)("a riddle", "8")
    lenient = Judge(judge.engine, judge.evaluator, "fallback", 0.1)
    found = as_evaluator(lenient)("a riddle", "8")
    assert found["score"] == 0.1
    assert found["comment"].startswith("Candidate 1 was not scored: ")


def test_langsmith_evaluates_with_it_offline(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    required_framework("langsmith")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.setenv("LANGSMITH_API_KEY", "none")
    run_evaluator: Any = required_framework("langsmith.evaluation").run_evaluator
    schemas: Any = required_framework("langsmith.schemas")
    now = datetime.datetime.now(datetime.UTC)
    run = schemas.Run(
        id=uuid.uuid4(), name="r", run_type="chain", start_time=now, trace_id=uuid.uuid4(), dotted_order="",
        inputs={"question": "2 + 2?"}, outputs={"answer": "8"},
    )  # fmt: skip
    example = schemas.Example(
        id=uuid.uuid4(), dataset_id=uuid.uuid4(), created_at=now, inputs={"question": "2 + 2?"}, outputs={"answer": "4"}
    )
    found = run_evaluator(as_evaluator(judge)).evaluate_run(run, example)
    assert (found.key, found.score) == ("debate", pytest.approx(0.8))
    assert "Candidate 1 of 1" in found.comment


def test_it_has_the_form_of_the_evaluators_of_openevals(judge: Judge) -> None:
    exact: Any = required_framework("openevals.exact").exact_match
    theirs = exact(inputs="2 + 2?", outputs="8", reference_outputs="4")
    ours = as_evaluator(judge)(inputs="2 + 2?", outputs="8", reference_outputs="4")
    assert ours.keys() <= theirs.keys()
