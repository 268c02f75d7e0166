"""Validate, improve, validate again: every try is kept, and what stays invalid says so."""

from __future__ import annotations

from typing import Any

import pytest

from debate import Engine
from debate.backends import Scripted
from debate.flow import Block, Completion, Flow, Generate, Prompt, Segment, generate
from debate.search.validate_improve import Improved, validate_and_improve


def run(start: int, valid_from: int, **settings: Any) -> Improved:
    flow = validate_and_improve(
        str(start), lambda text: int(text) >= valid_from, lambda text: str(int(text) + 1), **settings
    )
    with Engine(Scripted(lambda call: "")) as engine:
        return engine.drive(flow)


@pytest.mark.parametrize(
    ("start", "valid_from", "tries", "texts", "is_valid"),
    [
        (5, 5, 3, ["5"], True),
        (0, 2, 3, ["0", "1", "2"], True),
        (0, 9, 3, ["0", "1", "2", "3"], False),  # three improvements, four validations
        (0, 9, 0, ["0"], False),
    ],
)
def test_it_ends_with_the_first_valid_text_or_the_last_try(
    start: int, valid_from: int, tries: int, texts: list[str], is_valid: bool
) -> None:
    result = run(start, valid_from, tries=tries)
    assert [attempt.text for attempt in result.attempts] == texts
    assert (result.text, result.is_valid) == (texts[-1], is_valid)
    assert all(attempt.is_valid is False for attempt in result.attempts[:-1])


def test_a_validator_that_raises_leaves_validity_open() -> None:
    flow = validate_and_improve("no number", lambda text: int(text) > 0, lambda text: text)
    with Engine(Scripted(lambda call: "")) as engine:
        result = engine.drive(flow)
    assert result.is_valid is None
    (attempt,) = result.attempts
    assert attempt.failure is not None and attempt.failure.reason == "raised"


def test_an_improvement_may_ask_the_model() -> None:
    def improve(text: str) -> Flow[str]:
        prompt = Prompt((), (Block([Segment(f"improve {text}", is_content=True)]),))
        answer = yield from generate(Generate(prompt=prompt))
        assert isinstance(answer, Completion)
        return answer.text

    flow = validate_and_improve("draft", lambda text: text == "final", improve)
    with Engine(Scripted(lambda call: "final" if call.messages[-1]["content"] == "improve draft" else "?")) as engine:
        result = engine.drive(flow)
    assert result.is_valid and len(result.attempts) == 2
