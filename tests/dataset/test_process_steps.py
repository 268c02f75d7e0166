"""Eval sets of reasoning steps: where they first go wrong is the task's, the steps are the candidate's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debate.dataset.evalset import EvalSet
from debate.errors import TaskError
from debate.types import Task
from tests.dataset.files import lines

MISTAKE = {"input": "sort b a", "steps": ["b < a", "a < b"], "answer": "b a", "target": "a b", "mistake_index": 0}
PROCESS = {"id": "gsm8k-1", "generator": "m", "problem": "1 + 1", "steps": ["1 + 1 = 2"], "label": -1}


def read(folder: Path, row: dict[str, Any]) -> Task:
    (placed,) = EvalSet(lines(folder / "tasks.jsonl", row)).tasks()
    return placed.task


def test_steps_and_the_first_wrong_one_are_read_from_bigbench_mistake(tmp_path: Path) -> None:
    task = read(tmp_path, MISTAKE)
    assert task.x == "sort b a"
    assert task.candidates[0].metadata["steps"] == ["b < a", "a < b"]
    assert task.candidates[0].text == "b < a\na < b"
    assert task.metadata == {"first_error": 0, "answer": "b a", "target": "a b"}


def test_a_line_without_a_mistake_has_the_label_that_process_bench_gives_it(tmp_path: Path) -> None:
    assert read(tmp_path, {**MISTAKE, "mistake_index": None}).metadata["first_error"] == -1
    task = read(tmp_path, PROCESS)
    assert (task.id, task.candidates[0].generator, task.metadata["first_error"]) == ("gsm8k-1", "m", -1)


@pytest.mark.parametrize("label", [2, -2, "0", True, 0.5])
def test_a_label_that_is_no_index_of_a_step_is_refused_at_its_place(tmp_path: Path, label: object) -> None:
    with pytest.raises(TaskError, match=r"tasks\.jsonl:1: mistake_index: must be the index of one of 2 steps"):
        read(tmp_path, {**MISTAKE, "mistake_index": label})
