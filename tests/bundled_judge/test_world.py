"""What the bundled judge was taught is told by the form of its questions, beside those of its own training."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import get_args

import pytest
from judging.demonstration import TASKS
from judging.outside_held_out import NEAR, OUTSIDE, draw
from judging.questions import game_of_24, make_step
from judging.world import Kind, make_question

from debate.bundled_judge.world import is_taught
from debate.dataset.evalset import EvalSet

GENERAL = Path(__file__).parents[2] / "scripts" / "general_tasks.jsonl"


@pytest.mark.parametrize("kind", [kind for kind in get_args(Kind) if kind != "outside"])
def test_every_question_of_its_training_is_of_its_world(kind: Kind) -> None:
    random = Random(1)
    assert [x for x in (make_question(random, kind).x for _ in range(300)) if not is_taught(x)] == []


def test_the_questions_of_the_other_evaluators_are_of_its_world() -> None:
    random = Random(1)
    asked = [x for _ in range(200) for x in (make_step(random).x, game_of_24(random)[0])]
    assert [x for x in asked if not is_taught(x)] == []


def test_the_tasks_of_the_demo_are_of_its_world_and_general_ones_are_not() -> None:
    def share(file: Path) -> float:
        taught = [is_taught(task.x) for task, _, _ in EvalSet(file).tasks()]
        return sum(taught) / len(taught)

    assert share(TASKS) == 1
    assert share(GENERAL) == 0


def test_foreign_tasks_are_not_of_its_world_and_hardly_any_that_look_like_it() -> None:
    assert [x for _, x, _ in draw(Random(1), OUTSIDE, 1000) if is_taught(x)] == []
    near = [name for name, x, _ in draw(Random(1), NEAR, 1000) if is_taught(x)]
    assert {*near} <= {"letters"}  # "Count vowels in red gold." has the form of counting words
    assert len(near) < 30
