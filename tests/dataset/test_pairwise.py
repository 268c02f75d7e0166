"""JudgeBench, LLMBar, PandaLM, ChatEval: their labels become the index of the best candidate, or stay what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debate.dataset.labels import labels_of
from debate.errors import TaskError
from tests.dataset.files import Row, array, best, generators, lines, read, texts

VOTES: tuple[Row, ...] = ({"ranking": [1, 1]}, {"best": 0}, {"best": 1})
"""What PandaLM's annotators say by 0, 1 and 2."""


def judged(n: int, label: Any) -> Row:
    return {"pair_id": f"p{n}", "question": "q", "response_A": "a", "response_B": "b", "label": label, "source": "mmlu"}


def test_judge_bench_says_which_is_better_or_that_none_is(tmp_path: Path) -> None:
    rows = [judged(n, label) for n, label in enumerate(("A>B", "B>A", "A=B"))]
    tasks = read(lines(tmp_path / "j.jsonl", *rows), "judge_bench")
    assert [task.metadata.get("best") for task in tasks] == [0, 1, None]
    assert tasks[2].metadata == {"source": "mmlu", "ranking": [1, 1]}
    assert [(task.id, texts(task)) for task in tasks] == [(f"p{n}", ["a", "b"]) for n in range(3)]


def test_a_label_that_is_none_of_judge_bench_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"j\.jsonl:2: label: must be one of"):
        read(lines(tmp_path / "j.jsonl", judged(0, "A>B"), judged(1, "b")), "judge_bench")


def test_llmbar_without_a_label_has_no_best(tmp_path: Path) -> None:
    row = {"input": "?", "output_1": "a", "output_2": "b"}
    one, two = read(array(tmp_path / "l.json", row, {**row, "label": 2}), "llmbar")
    assert (one.metadata, best(two)) == ({}, 1)


def test_a_truth_value_that_stands_for_a_text_is_its_spelling(tmp_path: Path) -> None:
    (task,) = read(array(tmp_path / "l.json", {"input": "?", "output_1": True, "output_2": 3, "label": 1}), "llmbar")
    assert texts(task) == ["true", "3"]


@pytest.mark.parametrize("label", [0, 3, True, "first", [1], 1.5])
def test_a_label_that_is_none_of_llmbar_is_refused(tmp_path: Path, label: Any) -> None:
    row = {"input": "?", "output_1": "a", "output_2": "b", "label": label}
    with pytest.raises(TaskError, match="label: must be 1 or 2, got"):
        read(lines(tmp_path / "l.jsonl", row), "llmbar")


def test_pandalm_puts_the_input_after_the_instruction(tmp_path: Path) -> None:
    row = {"instruction": "Sum up.", "input": "Long.", "response1": "a", "response2": "b", "idx": 4}
    one, two = read(array(tmp_path / "p.json", row, {**row, "input": "", "idx": 5}), "pandalm")
    assert (one.x, two.x) == ("Sum up.\n\nInput:\nLong.", "Sum up.")
    assert (one.id, one.metadata) == ("4", {})


@pytest.mark.parametrize(
    ("votes", "choice"),
    [((1, 1, 2), (0,)), ((2, 2, 0), (1,)), ((0, 0, 1), (0, 1)), ((0, 1, 2), ()), ((1, 2), ())],
)
def test_pandalm_has_a_choice_when_more_than_half_made_it(
    tmp_path: Path, votes: tuple[int, ...], choice: tuple[int, ...]
) -> None:
    row: Row = {"instruction": "i", "input": "", "response1": "a", "response2": "b"}
    row |= {f"annotator{n}": vote for n, vote in enumerate(votes, 1)}
    (task,) = read(array(tmp_path / "p.json", row), "pandalm")
    assert task.metadata["votes"] == [{"by": f"annotator{n}", **VOTES[vote]} for n, vote in enumerate(votes, 1)]
    assert task.best == (choice if len(choice) == 1 else ())
    labels = labels_of(task.metadata, [(None, None)] * 2)
    assert (labels.together.choice, len(labels.votes)) == (choice, len(votes))


def test_models_of_pandalm_whose_names_run_together_are_kept_as_they_are(tmp_path: Path) -> None:
    row = {"instruction": "i", "response1": "a", "response2": "b", "cmp_key": "my_model_other"}
    (task,) = read(array(tmp_path / "p.json", row), "pandalm")
    assert (generators(task), task.metadata) == ([None, None], {"cmp_key": "my_model_other"})


def test_a_vote_that_is_none_is_refused_under_its_annotator(tmp_path: Path) -> None:
    row = {"instruction": "i", "response1": "a", "response2": "b", "annotator1": 1, "annotator2": "tie"}
    with pytest.raises(TaskError, match="annotator2: must be 0 or 1 or 2, got 'tie'"):
        read(array(tmp_path / "p.json", row), "pandalm")


def test_chat_eval_takes_any_number_of_models(tmp_path: Path) -> None:
    row = {"question_id": 7, "question": "q", "response": {"a": "1", "b": "2", "c": "3"}}
    (task,) = read(array(tmp_path / "c.json", row), "chat_eval")
    assert (task.id, texts(task), generators(task)) == ("7", ["1", "2", "3"], ["a", "b", "c"])
    with pytest.raises(TaskError, match=r"response\.b: is missing"):
        read(array(tmp_path / "c.json", {**row, "response": {"a": "1", "b": None}}), "chat_eval")


def test_pairs_are_found_in_tables_too(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("input,output_1,output_2,label\n?,a,b,2\n")
    (task,) = read(tmp_path / "l.csv", "llmbar")
    assert (texts(task), best(task)) == (["a", "b"], 1)


def test_a_fault_is_told_with_its_line_in_an_array_over_lines_and_with_its_place_in_one_on_a_line(
    tmp_path: Path,
) -> None:
    rows = [{"input": "?", "output_1": "a", "output_2": "b", "label": n} for n in (1, 2, 3)]
    file = array(tmp_path / "l.json", *rows)
    line = file.read_text().splitlines().index('    "label": 2') + 3
    with pytest.raises(TaskError, match=rf"l\.json:{line}: label: must be 1 or 2, got 3"):
        read(file, "llmbar")
    file.write_text(json.dumps(rows))
    with pytest.raises(TaskError, match=r"l\.json:1: 2\.label: must be 1 or 2, got 3"):
        read(file, "llmbar")
