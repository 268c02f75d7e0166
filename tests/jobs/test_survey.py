"""A survey counts what tasks hold as they pass by, under the ids that a run would give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from debate import StepEvaluator, VoteEvaluator
from debate.bundled_judge import model_path
from debate.dataset.several import evalset_of
from debate.errors import TaskError
from debate.jobs.survey import Survey
from tests.dataset.files import lines

ROW = {"x": "q", "candidates": ["a", "b"]}


def test_equal_tasks_have_the_ids_of_a_run_and_are_counted_each(tmp_path: Path) -> None:
    survey = Survey()
    file = lines(tmp_path / "t.jsonl", ROW, ROW)
    first, second = survey.read(evalset_of([file]), VoteEvaluator())
    assert second.id == f"{first.id}-2"
    assert survey.tasks == 2
    assert survey.files == [(str(file), "own", 2)]


def test_an_id_that_is_given_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    file = lines(tmp_path / "t.jsonl", {**ROW, "id": "1"}, {**ROW, "id": "1"})
    with pytest.raises(TaskError, match=r"t\.jsonl:2: id: duplicate id '1', first at .*t\.jsonl:1") as caught:
        list(Survey().read(evalset_of([file]), VoteEvaluator()))
    assert caught.value.hint == "leave out the ids, and tasks are known by their content"


def test_a_file_that_the_limit_leaves_out_is_not_among_the_files(tmp_path: Path) -> None:
    files = [lines(tmp_path / f"{name}.jsonl", {**ROW, "id": name}) for name in "ab"]
    survey = Survey({str(files[0]): "first"})
    assert len(list(survey.read(evalset_of(files, 1), VoteEvaluator()))) == 1
    assert survey.files == [("first", "own", 1)]


def test_components_that_an_evaluator_ignores_are_noted(tmp_path: Path) -> None:
    own = [{"name": "cites", "description": "Names a source."}]
    file = lines(tmp_path / "tasks.jsonl", {"x": "a", "candidates": ["b", "c"], "components": own})
    for evaluator, noted in ((StepEvaluator(), 1), (VoteEvaluator(), 0)):
        survey = Survey()
        list(survey.read(evalset_of([file]), evaluator))
        assert (
            sum("components of the task's own are ignored, as step scores none" in note for note in survey.notes)
            == noted
        )


def test_questions_outside_of_the_bundled_judges_world_are_noted_for_that_model_alone(tmp_path: Path) -> None:
    file = lines(tmp_path / "t.jsonl", {**ROW, "x": "17+25?"}, {**ROW, "x": "Which caption is best?"})
    for model, noted in ((str(model_path()), 1), ("another", 0), ("", 0)):
        survey = Survey(model=model)
        list(survey.read(evalset_of([file]), VoteEvaluator()))
        found = [note for note in survey.notes if "outside of the bundled judge's world" in note]
        assert len(found) == noted
        assert all("its scores are noise, in 1 of the tasks, first" in note for note in found)
