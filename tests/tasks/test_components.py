"""The components of one task: what is taken, what is refused, and what they make of the task."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import Component, Task
from debate.errors import TaskError
from debate.store.serialization import as_task, content_hash, task_data
from debate.tasks.components import LONGEST_NAME

RUBRIC = [{"name": "cites", "description": "Names a source.", "weight": 0.5}, Component("brief", "Is short.")]


def of(*components: Any) -> Task:
    return Task("x", ["a", "b"], components=components)


def test_components_are_given_as_values_or_as_mappings() -> None:
    assert of(*RUBRIC).components == (Component("cites", "Names a source.", 0.5), Component("brief", "Is short."))
    assert of().components == ()


@pytest.mark.parametrize(
    ("components", "field", "problem"),
    [
        ("accuracy", "components", "must be a list of components, got str"),
        ({"name": "a"}, "components", "must be a list of components, got dict"),
        ([3], "components.0", "must be a component, got int"),
        ([{"name": "a"}], "components.0.description", "is missing"),
        ([{"description": "d"}], "components.0.name", "is missing"),
        ([{"name": "a", "description": " "}], "components.0.description", "is empty"),
        ([{"name": " ", "description": "d"}], "components.0.name", "must not be empty"),
        ([{"name": "a\nb", "description": "d"}], "components.0.name", "must not contain the control character"),
        ([{"name": "a", "description": "d", "points": 3}], "components.0.points", "unknown key"),
        ([{"name": "a", "description": "d", "weight": -1}], "components.0.weight", "must lie in [0, 1], got -1"),
        ([{"name": "a", "description": "d", "weight": 5}], "components.0.weight", "must lie in [0, 1], got 5"),
        ([{"name": "a", "description": "d", "weight": "5"}], "components.0.weight", "must be a number, got '5'"),
        ([{"name": "a", "description": "d", "weight": 0}], "components", "have weights that sum to 0"),
        ([{"name": "a", "description": "d"}, Component("A", "d")], "components.1.name", "duplicate name 'A'"),
        ([{"name": "n" * (LONGEST_NAME + 1), "description": "d"}], "components.0.name", "has 101 characters"),
        ([{"name": "a", "description": "\ud800"}], "components.0.description", "lone surrogate"),
    ],
)
def test_what_is_no_component_is_refused_with_its_field(components: Any, field: str, problem: str) -> None:
    with pytest.raises(TaskError) as caught:
        Task("x", ["a"], components=components)
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_too_large_a_weight_says_how_to_mend_it() -> None:
    with pytest.raises(TaskError, match="divide the weights of the task's components by the largest"):
        of({"name": "a", "description": "d", "weight": 5})


def test_a_task_without_components_keeps_its_identity() -> None:
    task = Task("x", ["a", "b"], context=["c"], reference="r")
    assert task.id == "6cc08d2327130b52"
    assert "components" not in task_data(task)


@pytest.mark.parametrize("key", ["name", "description", "weight"])
def test_every_part_of_a_component_is_a_part_of_the_tasks_identity(key: str) -> None:
    one = {"name": "a", "description": "d", "weight": 0.5}
    other = {**one, key: 0.25 if key == "weight" else "another"}
    tasks = [of(), of(one), of(other)]
    assert len({task.id for task in tasks}) == len({content_hash(task_data(task)) for task in tasks}) == 3


def test_one_as_a_whole_number_is_the_same_weight() -> None:
    whole, decimal = (of({"name": "a", "description": "d", "weight": each}) for each in (1, 1.0))
    assert (whole.id, content_hash(task_data(whole))) == (decimal.id, content_hash(task_data(decimal)))


texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20)
own = st.lists(
    st.builds(Component, texts.filter(str.strip), texts.filter(str.strip), st.floats(0.01, 1)),
    max_size=4,
    unique_by=lambda each: each.name.casefold(),
)


@given(own)
def test_a_store_gives_back_the_components(components: list[Component]) -> None:
    task = of(*components)
    data = json.loads(json.dumps(task_data(task)))
    again = as_task(task.id, data)
    assert again.components == task.components == tuple(components)
    assert content_hash(data) == content_hash(task_data(again))


def test_a_task_under_another_id_or_with_other_candidates_keeps_its_components() -> None:
    task = of(*RUBRIC)
    assert task.renamed("new").components == task.with_candidates(["c"]).components == task.components
