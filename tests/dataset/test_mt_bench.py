"""MT-bench: questions, answers and references of several turns, joined by question."""

from __future__ import annotations

from pathlib import Path

import pytest

from debate.dataset.evalset import EvalSet
from debate.errors import TaskError
from tests.dataset.files import Row, generators, lines, read, texts


def mt_bench(folder: Path, **answers: list[Row]) -> Path:
    """A folder in MT-bench's layout."""
    lines(
        folder / "question.jsonl",
        {"question_id": 1, "category": "math", "turns": ["a?", "b?"], "reference": ["A", "B"]},
        {"question_id": 2, "category": "chat", "turns": ["c?"]},
    )
    (folder / "model_answer").mkdir(exist_ok=True)
    for model, rows in answers.items():
        lines(folder / "model_answer" / f"{model}.jsonl", *rows)
    return folder


def answer(question: int, model: str, *choices: list[str]) -> Row:
    turns = [{"index": n, "turns": each} for n, each in enumerate(choices)]
    return {"question_id": question, "answer_id": f"{model}{question}", "model_id": model, "choices": turns}


def test_the_turns_of_questions_answers_and_references_are_rendered(tmp_path: Path) -> None:
    both = {model: [answer(1, model, ["x", "y"]), answer(2, model, ["z"])] for model in ("m1", "m2")}
    first, second = read(mt_bench(tmp_path, **both), "mt_bench")
    assert first.x == "User, turn 1:\na?\n\nUser, turn 2:\nb?"
    assert texts(first)[0] == "Assistant, turn 1:\nx\n\nAssistant, turn 2:\ny"
    assert first.context == ("Reference, turn 1:\nA\n\nReference, turn 2:\nB",)
    assert (second.x, texts(second), generators(second)) == ("c?", ["z", "z"], ["m1", "m2"])
    assert (second.id, second.metadata) == ("2", {"category": "chat"})


def test_each_choice_of_a_model_that_answered_several_times_is_a_candidate(tmp_path: Path) -> None:
    rows = [answer(1, "m1", ["x", "y"]), answer(2, "m1", ["one"], ["two"])]
    _, second = read(mt_bench(tmp_path, m1=rows), "mt_bench")
    assert (texts(second), generators(second)) == (["one", "two"], ["m1", "m1"])
    assert [candidate.id for candidate in second.candidates] == ["m12#0", "m12#1"]


def test_a_question_without_an_answer_and_an_answer_without_a_question_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"m1\.jsonl: has no answer to question '2', for .*question\.jsonl:2"):
        read(mt_bench(tmp_path, m1=[answer(1, "m1", ["x", "y"])]), "mt_bench")
    with pytest.raises(TaskError, match=r"m1\.jsonl:3: question_id: answers no question"):
        read(mt_bench(tmp_path, m1=[answer(n, "m1", ["x"]) for n in (1, 2, 3)]), "mt_bench")
    with pytest.raises(TaskError, match=r"m1\.jsonl:2: question_id: duplicate id '1', first on line 1"):
        read(mt_bench(tmp_path, m1=[answer(1, "m1", ["x"])] * 2), "mt_bench")


def test_questions_alone_are_refused_with_the_way_to_give_answers(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="--answers"):
        read(mt_bench(tmp_path) / "question.jsonl", "mt_bench")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (answer(1, "m1"), "choices: is empty"),
        (answer(1, "m1", []), r"choices\.0\.turns: is empty"),
        ({**answer(1, "m1"), "choices": ["x"]}, r"choices\.0: must be an object"),
        ({"question_id": 1}, "text: is missing"),
    ],
)
def test_a_broken_answer_is_told_with_its_place(tmp_path: Path, row: Row, message: str) -> None:
    with pytest.raises(TaskError, match=rf"m1\.jsonl:1: {message}"):
        read(mt_bench(tmp_path, m1=[row, answer(2, "m1", ["z"])]), "mt_bench")


def test_the_digest_changes_with_every_file_and_setting(tmp_path: Path) -> None:
    folder = mt_bench(tmp_path, m1=[answer(1, "m1", ["x", "y"]), answer(2, "m1", ["z"])])
    first = EvalSet(folder).digest()
    assert EvalSet(folder).digest() == first
    assert EvalSet(folder, limit=1).digest() != first
    mt_bench(tmp_path, m1=[answer(1, "m1", ["x", "y"]), answer(2, "m1", ["changed"])])
    assert EvalSet(folder).digest() != first
    assert [file.path.name for file in EvalSet(folder).read().further] == ["m1.jsonl"]
