"""Tasks out of bodies: what is read, and what is refused with the place of what is wrong. Any bytes at all are one."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import DebateEvaluator, Engine, Task
from debate.backends import Scripted
from debate.config.settings import ServerLimits
from debate.server.evaluations import Refused, Served
from debate.testing import reply_for

SERVED = Served(Engine(Scripted(reply_for)), DebateEvaluator("general"))
LIMITS = ServerLimits(max_tasks=3, max_characters=50)


def written(data: Any) -> bytes:
    return json.dumps(data).encode()


def refused(body: Any, *, batch: bool = False, lines: bool = False) -> tuple[int, str | None, str]:
    """The status, the field and the sentence with which a body is refused."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(Refused) as found:
        SERVED.tasks(raw, LIMITS, are_lines=lines) if batch or lines else SERVED.task(raw, LIMITS)
    return found.value.status, found.value.problem.field, found.value.problem.error


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"x": "Q"}, "candidates", "is missing"),
        ({"x": "Q", "candidates": []}, "candidates", "is empty"),
        ({"x": 4, "candidates": ["A"]}, "x", "must be text, got 4"),
        ({"x": "Q", "candidates": ["A", 5]}, "candidates.1", "must be text"),
        ({"x": "Q", "candidates": ["A"], "best": "Z"}, "best", "Z"),
        ({"x": "Q", "candidats": ["A"]}, "candidats", "unknown key"),
        ({"x": "Q\ud800", "candidates": ["A"]}, "x", "lone surrogate"),
        (["Q"], None, "must be an object"),
        (b'{"x": "Q",', None, "is not valid JSON"),
        (b"", None, "is not valid JSON"),
        (b"[" * 100_000, None, "is nested too deeply"),
        (b'{"x": "Q", "x": "R", "candidates": ["A"]}', None, "stands twice"),
        (b'{"x": "\xff", "candidates": ["A"]}', None, "is not UTF-8"),
    ],
)
def test_what_is_no_task_is_refused_with_its_field(body: Any, field: str | None, words: str) -> None:
    status, where, said = refused(body)
    assert (status, where) == (422, field)
    assert words in said
    assert said.startswith(field or "the body")


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"tasks": []}, "tasks", "is empty"),
        ({}, "tasks", "is missing"),
        ([], None, "must be a mapping"),
        ({"x": "Q", "candidates": ["A"]}, "x", "unknown key"),
        ({"tasks": [{"x": "Q", "candidates": ["A"]}, 5]}, "tasks.1", "must be a mapping"),
        ({"tasks": [{"x": "Q", "candidates": ["A"]}, {"x": "Q"}]}, "tasks.1.candidates", "is missing"),
        ({"tasks": [{"x": "Q", "candidates": ["A"], "id": "a"}] * 2}, "tasks.1.id", "duplicate id 'a'"),
        ({"tasks": [{"x": "Q", "candidates": ["A", {"text": 7}]}]}, "tasks.0.candidates.1.text", "must be text"),
    ],
)
def test_what_is_no_batch_is_refused_with_its_field(body: Any, field: str | None, words: str) -> None:
    status, where, said = refused(body, batch=True)
    assert (status, where) == (422, field)
    assert words in said


def test_what_is_wrong_with_a_line_names_its_task() -> None:
    good = b'{"x": "Q", "candidates": ["A"]}\n'
    assert refused(good + b"\n" + b'{"x": "Q"}', lines=True)[:2] == (422, "tasks.1.candidates")
    assert refused(good + b"{", lines=True)[:2] == (422, "tasks.1")
    assert refused(b"\n \n", lines=True)[2] == "the body: holds no tasks"


def test_too_many_tasks_and_too_long_ones_are_413() -> None:
    task = {"x": "Q", "candidates": ["A"]}
    assert refused({"tasks": [task] * 4}, batch=True)[0] == 413
    assert refused(b"\n".join([json.dumps(task).encode()] * 4), lines=True)[0] == 413
    assert refused({"x": "Q" * 30, "candidates": ["A" * 30]})[0] == 413


def test_equal_tasks_of_a_batch_have_ids_of_their_own() -> None:
    body = json.dumps({"tasks": [{"x": "Q", "candidates": ["A"]}] * 3}).encode()
    ids = [task.id for task in SERVED.tasks(body, LIMITS, are_lines=False)]
    assert ids == [Task("Q", ["A"]).id, f"{ids[0]}-2", f"{ids[0]}-3"]


KEYS = st.sampled_from(
    ["x", "candidates", "tasks", "id", "text", "messages", "role", "content", "best", "metadata", "components", "name"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
TASKS = st.fixed_dictionaries(
    {"x": VALUES | st.text(max_size=5), "candidates": st.lists(VALUES | st.text(max_size=5), max_size=3)},
    optional={"id": VALUES, "best": VALUES, "components": VALUES, "context": VALUES, "metadata": VALUES},
)


@settings(deadline=None)
@given(st.binary() | (VALUES | TASKS | st.fixed_dictionaries({"tasks": st.lists(TASKS, max_size=3)})).map(written))
def test_any_body_is_tasks_or_a_refusal(raw: bytes) -> None:
    one, several, lines = (
        partial(SERVED.task, raw, LIMITS),
        partial(SERVED.tasks, raw, LIMITS, are_lines=False),
        partial(SERVED.tasks, raw, LIMITS, are_lines=True),
    )
    for read in (one, several, lines):
        try:
            found = read()
        except Refused as refusal:
            assert refusal.status in (413, 422)
            assert refusal.problem.error
        else:
            assert all(isinstance(task, Task) for task in (found if isinstance(found, list) else [found]))


@settings(deadline=None)
@given(st.text(max_size=9).filter(str.strip), st.lists(st.text(max_size=9), min_size=1, max_size=3))
def test_a_task_is_read_as_it_was_given(x: str, candidates: list[str]) -> None:
    raw = written({"x": x, "candidates": candidates})
    task = Task(x, candidates)
    assert SERVED.task(raw, LIMITS) == task
    assert SERVED.tasks(b"\n\n" + raw + b"\n", LIMITS, are_lines=True) == [task]
