"""Whole published sets, with as many tasks and the very labels that they hold."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from debate.dataset.evalset import EvalSet
from debate.errors import TaskError
from tests.dataset.files import DATA, count, generators, needs_data, read, texts

pytestmark = needs_data


def test_vicuna_questions_are_joined_with_the_answers_beside_them() -> None:
    tasks = read(DATA / "vicuna80", "mt_bench")
    assert len(tasks) == 80
    assert {len(task.candidates) for task in tasks} == {5}
    assert "bard:20230327" in generators(tasks[0])
    assert tasks[0].x == "How can I improve my time management skills?"
    assert (tasks[79].id, tasks[79].metadata) == ("80", {"category": "writing"})


def test_vicuna_answers_are_those_to_the_question() -> None:
    rows = [json.loads(row) for row in (DATA / "vicuna80" / "answer_gpt35.jsonl").read_text().splitlines()]
    answers = {str(row["question_id"]): row["text"] for row in rows}
    for task in read(DATA / "vicuna80", "mt_bench"):
        assert texts(task)[generators(task).index("gpt-3.5-turbo:20230327")] == answers[task.id]


def test_of_answers_that_are_given_only_those_are_read() -> None:
    files = tuple(DATA / "vicuna80" / f"answer_{model}.jsonl" for model in ("gpt35", "bard"))
    evalset = EvalSet(DATA / "vicuna80" / "question.jsonl", answers=files, limit=3)
    tasks = [task for task, _, _ in evalset.tasks()]
    assert [generators(task) for task in tasks] == [["gpt-3.5-turbo:20230327", "bard:20230327"]] * 3


@pytest.mark.parametrize(("name", "count"), [("Natural", 100), ("Neighbor", 134)])
def test_llmbar_comes_with_its_labels(name: str, count: int) -> None:
    rows = json.loads((DATA / "llmbar" / f"{name}.json").read_text())
    tasks = read(DATA / "llmbar" / f"{name}.json", "llmbar")
    assert len(tasks) == count
    assert [task.metadata["best"] for task in tasks] == [row["label"] - 1 for row in rows]
    assert all(
        (task.x, *texts(task)) == (row["input"], row["output_1"], row["output_2"])
        for row, task in zip(rows, tasks, strict=True)
        if all(isinstance(row[f"output_{n}"], str) for n in (1, 2))  # some are a number or a truth value
    )


def test_pandalm_keeps_the_votes_and_their_majority() -> None:
    rows = json.loads((DATA / "pandalm" / "testset-v1.json").read_text())
    tasks = read(DATA / "pandalm" / "testset-v1.json", "pandalm")
    assert len(tasks) == count(DATA / "pandalm" / "testset-v1.json") == 999
    for row, task in zip(rows, tasks, strict=True):
        votes: list[int] = [row[f"annotator{n}"] for n in (1, 2, 3)]
        chosen = [choice for choice, count in Counter(votes).items() if count >= 2]
        winner: str | int | None = None if not chosen else ["tie", 0, 1][chosen[0]]
        assert task.metadata["label"] == {"kind": "votes", "votes": votes, "winner": winner}
        assert task.metadata.get("best", "tie") == ("tie" if winner is None else winner)
    assert generators(tasks[0]) == ["bloom-7b", "llama-7b"]


@pytest.mark.parametrize(
    ("file", "key"),
    [("pandalm/gpt-3.5-turbo-testset-v1.json", "gpt_reason"), ("newsroom/ratings.jsonl", "doc: unknown key")],
)
def test_a_file_that_is_no_eval_set_is_refused_with_its_keys(file: str, key: str) -> None:
    with pytest.raises(TaskError, match=key):
        list(EvalSet(DATA / file).tasks())


@pytest.mark.parametrize("name", ["tracking_shuffled_objects", "word_sorting"])
def test_bigbench_mistake_keeps_the_steps_and_the_first_wrong_one(name: str) -> None:
    path = DATA / "bigbench_mistake" / f"{name}.jsonl"
    rows = [json.loads(row) for row in path.read_text().split("\n") if row]
    tasks = read(path, "bigbench_mistake")
    assert len(tasks) == len(rows) == 300
    for row, task in zip(rows, tasks, strict=True):
        mistake = row["mistake_index"]
        assert task.metadata["first_error"] == (-1 if mistake is None else mistake)
        assert task.candidates[0].metadata["steps"] == row["steps"]
