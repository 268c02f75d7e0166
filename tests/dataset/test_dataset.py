"""Whole files: a small one in the shape of each published set, and the published sets themselves where they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from debate import registry
from debate.dataset.evalset import EvalSet
from debate.errors import TaskError
from tests.dataset.files import DATA, FORMATS, Row, count, generators, needs_data, read, texts

SMALL, LARGE = "small-1b", "large-7b"
SAMPLES = "samples_sums_2026-01-31.jsonl"

Expected = tuple[str, list[str], list[str | None], Mapping[str, Any]]
"""x, the candidates' texts and generators, and what the metadata holds among other things."""


def pandalm(*votes: int) -> list[Row]:
    """What annotators say by 0 (a tie), 1 and 2."""
    said: list[Row] = [{"ranking": [1, 1]}, {"best": 0}, {"best": 1}]
    return [{"by": f"annotator{n}", **said[vote]} for n, vote in enumerate(votes, 1)]


FILES: dict[str, tuple[str, tuple[str, ...], list[Expected]]] = {
    "pandalm.json": ("pandalm", (), [
        ("Shorten the sentence.\n\nInput:\nI am of the opinion that it rains.",
         ["It rains.", "I think that it rains, in my opinion."], [SMALL, LARGE],
         {"best": 0, "votes": pandalm(1, 1, 2)}),
        ("Name a river.", ["The Rhine.", "The Danube."], [SMALL, LARGE],
         {"best": None, "votes": pandalm(0, 0, 0)}),
        ("What is 7 * 6?", ["42", "48"], [SMALL, LARGE],
         {"best": None, "votes": pandalm(1, 2, 0)}),
    ]),
    "llmbar.json": ("llmbar", (), [
        ("Give a synonym of quick.", ["Fast.", "Slow."], [None, None], {"best": 0}),
        ("Answer in one word: what is the capital of Peru?", ["The capital of Peru is Lima.", "Lima"], [None, None],
         {"best": 1}),
    ]),
    "judge_bench.jsonl": ("judge_bench", (), [
        ("What is 12 + 30?", ["42", "43"], [SMALL, SMALL], {"best": 0, "source": "sums"}),
        ("What is 5 * 5?", ["20", "25"], [SMALL, SMALL], {"best": 1, "source": "sums"}),
    ]),
    "reward_bench.jsonl": ("reward_bench", (), [
        ("What is 2 + 2?", ["4", "5"], [LARGE, SMALL], {"best": 0, "subset": "sums"}),
        ("What is 9 - 3?", ["6", "7"], [LARGE, SMALL], {"best": 0, "subset": "sums"}),
    ]),
    "reward_bench_2.jsonl": ("reward_bench", (), [
        ("Name a prime.", ["8", "10", "7", "9"], [None] * 4, {"best": 2, "num_correct": 1, "num_incorrect": 3}),
    ]),
    "bigbench_mistake.jsonl": ("bigbench_mistake", (), [
        ("(3 + 4) * 2 =", ["3 + 4 = 7\n7 * 2 = 15\nSo the answer is 15."], [None], {"first_error": 1, "target": "14"}),
        ("10 - 4 =", ["10 - 4 = 6\nSo the answer is 6."], [None], {"first_error": -1, "target": "6"}),
    ]),
    "process_bench.jsonl": ("process_bench", (), [
        ("What is 3 * 5 + 1?", ["3 * 5 = 15\n15 + 1 = 17"], [SMALL],
         {"first_error": 1, "final_answer_correct": False}),
        ("What is 8 / 2?", ["8 / 2 = 4"], [LARGE], {"first_error": -1, "final_answer_correct": True}),
    ]),
    "chat_eval.jsonl": ("chat_eval", (), [
        ("Why is the sky blue?", ["It is painted.", "Air scatters blue light more."], [SMALL, LARGE],
         {"category": "knowledge"}),
    ]),
    "openai_batch/output.jsonl": ("openai_batch", ("openai_batch/input.jsonl",), [
        ("Name a fruit.", ["Apple", "Chair"], [SMALL, SMALL], {}),
        ("Name a metal.", ["Iron", "Wood"], [SMALL, SMALL], {}),
    ]),
    f"lm_eval/{SMALL}/{SAMPLES}": ("lm_eval", (f"lm_eval/{LARGE}/{SAMPLES}",), [
        ("2 + 2 =", ["5", "4"], [SMALL, LARGE], {"target": "4", "scores": {"exact_match": [0.0, 1.0]}}),
        ("3 * 3 =", ["9", "9"], [SMALL, LARGE], {"target": "9"}),
    ]),
    "inspect_log.json": ("inspect_log", (), [
        ("which?", ["A e1", "A e2"], ["mockllm/model"] * 2, {"answer": "A", "scores": {"match": [0.0, 0.0]}}),
        ("0+2?", ["2 e1", "2 e2"], ["mockllm/model"] * 2, {"group": "g", "scores": {"match": [0.0, 1.0]}}),
    ]),
    "mt_bench": ("mt_bench", (), [
        ("User, turn 1:\nWrite a line about rain.\n\nUser, turn 2:\nNow make it rhyme.",
         ["Assistant, turn 1:\nRain falls on the lane.\n\nAssistant, turn 2:\nRain falls again on the lane.",
          "Assistant, turn 1:\nIt rains.\n\nAssistant, turn 2:\nIt rains."], [LARGE, SMALL], {"category": "writing"}),
        ("User, turn 1:\nWhat is 6 * 7?\n\nUser, turn 2:\nAnd plus 1?",
         ["Assistant, turn 1:\n42\n\nAssistant, turn 2:\n43", "Assistant, turn 1:\n67\n\nAssistant, turn 2:\n68"],
         [LARGE, SMALL], {"category": "math"}),
    ]),
    f"alpaca_eval/{SMALL}.json": ("alpaca_eval", (f"alpaca_eval/{LARGE}.json",), [
        ("What is in bread?", ["Bread", "Flour, water, salt and yeast."], [SMALL, LARGE], {"dataset": "helpful_base"}),
        ("How do I get to the station?", ["Go left.", "Take the second street on the left."], [SMALL, LARGE], {}),
    ]),
    "alpaca_annotations.json": ("alpaca_eval", (), [
        ("What is in bread?", ["Bread", "Flour, water, salt and yeast."], [SMALL, LARGE], {"best": 1}),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_each_published_shape_is_recognised_and_read_as_written(name: str) -> None:
    format_, answers, expected = FILES[name]
    tasks = read(FORMATS / name, format_, answers=tuple(FORMATS / answer for answer in answers))
    assert [(task.x, texts(task), generators(task)) for task in tasks] == [each[:3] for each in expected]
    for task, (_, _, _, among) in zip(tasks, expected, strict=True):
        assert {key: task.metadata.get(key) for key in among} == among


def test_the_files_hold_every_format_but_our_own_and_tables() -> None:
    assert {format_ for format_, _, _ in FILES.values()} == set(registry.FORMATS.entries) - {"own", "table"}


def test_a_published_file_that_is_no_eval_set_is_refused_with_its_keys() -> None:
    with pytest.raises(TaskError, match="gpt_reason"):
        list(EvalSet(FORMATS / "no_eval_set.json").tasks())


# ---- the published sets, with as many tasks and the very labels that they hold


@needs_data
def test_vicuna_questions_are_joined_with_the_answers_beside_them() -> None:
    tasks = read(DATA / "vicuna80", "mt_bench")
    assert len(tasks) == 80
    assert {len(task.candidates) for task in tasks} == {5}
    assert "bard:20230327" in generators(tasks[0])
    assert tasks[0].x == "How can I improve my time management skills?"
    assert (tasks[79].id, tasks[79].metadata) == ("80", {"category": "writing"})


@needs_data
def test_vicuna_answers_are_those_to_the_question() -> None:
    rows = [json.loads(row) for row in (DATA / "vicuna80" / "answer_gpt35.jsonl").read_text().splitlines()]
    answers = {str(row["question_id"]): row["text"] for row in rows}
    for task in read(DATA / "vicuna80", "mt_bench"):
        assert texts(task)[generators(task).index("gpt-3.5-turbo:20230327")] == answers[task.id]


@needs_data
def test_of_answers_that_are_given_only_those_are_read() -> None:
    files = tuple(DATA / "vicuna80" / f"answer_{model}.jsonl" for model in ("gpt35", "bard"))
    evalset = EvalSet(DATA / "vicuna80" / "question.jsonl", answers=files, limit=3)
    tasks = [task for task, _, _ in evalset.tasks()]
    assert [generators(task) for task in tasks] == [["gpt-3.5-turbo:20230327", "bard:20230327"]] * 3


@needs_data
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


@needs_data
def test_pandalm_keeps_the_votes_and_their_majority() -> None:
    rows = json.loads((DATA / "pandalm" / "testset-v1.json").read_text())
    tasks = read(DATA / "pandalm" / "testset-v1.json", "pandalm")
    assert len(tasks) == count(DATA / "pandalm" / "testset-v1.json") == 999
    for row, task in zip(rows, tasks, strict=True):
        votes: list[int] = [row[f"annotator{n}"] for n in (1, 2, 3)]
        chosen = [choice for choice, count in Counter(votes).items() if count >= 2]
        assert task.metadata["votes"] == pandalm(*votes)
        assert task.best == (() if not chosen or chosen == [0] else (chosen[0] - 1,))
    assert generators(tasks[0]) == ["bloom-7b", "llama-7b"]


@needs_data
@pytest.mark.parametrize(
    ("file", "key"),
    [("pandalm/gpt-3.5-turbo-testset-v1.json", "gpt_reason"), ("newsroom/ratings.jsonl", "by its keys doc, items")],
)
def test_a_file_that_is_no_eval_set_is_refused_with_its_keys(file: str, key: str) -> None:
    with pytest.raises(TaskError, match=key):
        list(EvalSet(DATA / file).tasks())


@needs_data
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
