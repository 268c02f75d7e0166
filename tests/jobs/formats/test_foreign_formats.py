"""Eval sets in the formats that people have, recognised by their keys, with labels kept and positions not leaked."""

from __future__ import annotations

import csv
import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from debate.errors import ConfigError, TaskError
from debate.jobs.evalset import FORMATS, EvalSet
from debate.types import Task

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the labelled data is not beside the checkout")


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def array(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return path


def read(path: Path, format_: str, **more: Any) -> list[Task]:
    """The tasks, once recognised without help."""
    evalset = EvalSet(path, **more)
    assert evalset.recognised() == format_
    return [task for task, _, _ in evalset.tasks()]


def texts(task: Task) -> list[str]:
    return [candidate.text for candidate in task.candidates]


def generators(task: Task) -> list[str | None]:
    return [candidate.generator for candidate in task.candidates]


def best(task: Task) -> int:
    return int(task.metadata["best"])


# ---- real files


@needs_data
def test_vicuna_questions_are_joined_with_the_answers_beside_them() -> None:
    tasks = read(DATA / "vicuna80", "mt_bench")
    assert len(tasks) == 80
    assert {len(task.candidates) for task in tasks} == {5}
    assert "bard:20230327" in generators(tasks[0])
    assert tasks[0].x == "How can I improve my time management skills?"


@needs_data
@pytest.mark.parametrize(("name", "count"), [("Natural", 100), ("Neighbor", 134)])
def test_llmbar_comes_with_its_labels(name: str, count: int) -> None:
    rows = json.loads((DATA / "llmbar" / f"{name}.json").read_text())
    tasks = read(DATA / "llmbar" / f"{name}.json", "llmbar")
    assert len(tasks) == count
    assert [task.metadata["best"] for task in tasks] == [row["label"] - 1 for row in rows]


@needs_data
def test_pandalm_keeps_the_votes_and_their_majority() -> None:
    rows = json.loads((DATA / "pandalm" / "testset-v1.json").read_text())
    tasks = read(DATA / "pandalm" / "testset-v1.json", "pandalm")
    assert len(tasks) == 999
    for row, task in zip(rows, tasks, strict=True):
        votes = Counter(row[f"annotator{n}"] for n in (1, 2, 3))
        assert task.metadata["label"]["votes"] == [row[f"annotator{n}"] for n in (1, 2, 3)]
        winner = next((choice for choice, count in votes.items() if count >= 2 and choice), None)
        assert task.metadata.get("best") == (None if winner is None else winner - 1)
    assert generators(tasks[0]) == ["bloom-7b", "llama-7b"]


@needs_data
def test_a_file_that_is_no_eval_set_is_refused_with_its_keys() -> None:
    with pytest.raises(TaskError, match="gpt_reason"):
        list(EvalSet(DATA / "pandalm" / "gpt-3.5-turbo-testset-v1.json").tasks())


# ---- pairs and sets with a label


def test_reward_bench_does_not_leak_which_response_was_chosen(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": f"p{n}", "chosen": "good", "rejected": "bad", "subset": "chat", "id": n, "chosen_model": "m"}
        for n in range(60)
    ]
    tasks = read(lines(tmp_path / "r.jsonl", *rows), "reward_bench")
    assert all(texts(task)[best(task)] == "good" for task in tasks)
    assert all(generators(task)[best(task)] == "m" for task in tasks)
    first = sum(best(task) == 0 for task in tasks)
    assert 15 <= first <= 45
    assert tasks[0].id == "chat/0"
    assert [texts(task) for task in read(tmp_path / "r.jsonl", "reward_bench")] == [texts(task) for task in tasks]


def test_reward_bench_takes_conversations_and_the_lists_of_its_second_version(tmp_path: Path) -> None:
    def said(text: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": "q"}, {"role": "assistant", "content": text}]

    rows = [
        {"prompt": "p", "chosen": said("good"), "rejected": said("bad"), "id": "a"},
        {"prompt": "p", "chosen": ["good"], "rejected": ["b1", "b2", "b3"], "subset": "Math", "id": "b"},
        {"prompt": "p", "chosen": ["g1", "g2"], "rejected": ["b1"], "subset": "Ties", "id": "c"},
    ]
    one, four, ties = read(lines(tmp_path / "r.jsonl", *rows), "reward_bench")
    assert texts(one)[best(one)] == "good"
    assert (len(four.candidates), texts(four)[best(four)]) == (4, "good")
    assert {texts(ties)[n] for n in ties.metadata["label"]["best"]} == {"g1", "g2"}
    assert "best" not in ties.metadata


def test_judge_bench(tmp_path: Path) -> None:
    rows = [
        {"pair_id": f"p{n}", "question": "q", "response_A": "a", "response_B": "b", "label": label, "source": "mmlu"}
        for n, label in enumerate(("A>B", "B>A", "A=B"))
    ]
    tasks = read(lines(tmp_path / "j.jsonl", *rows), "judge_bench")
    assert [task.metadata.get("best") for task in tasks] == [0, 1, None]
    assert tasks[2].metadata["label"] == {"kind": "pairwise", "winner": "tie"}
    rows[1]["label"] = "b"
    with pytest.raises(TaskError, match=r"j\.jsonl:2: label: must be one of"):
        read(lines(tmp_path / "j.jsonl", *rows), "judge_bench")


def test_chat_eval_takes_any_number_of_models(tmp_path: Path) -> None:
    rows = [{"question_id": 7, "question": "q", "response": {"a": "1", "b": "2", "c": "3"}}]
    (task,) = read(array(tmp_path / "c.json", *rows), "chat_eval")
    assert (task.id, texts(task), generators(task)) == ("7", ["1", "2", "3"], ["a", "b", "c"])


def test_a_truth_value_that_stands_for_a_text_is_its_spelling(tmp_path: Path) -> None:
    (task,) = read(array(tmp_path / "l.json", {"input": "?", "output_1": True, "output_2": 3, "label": 1}), "llmbar")
    assert texts(task) == ["true", "3"]


def test_a_fault_in_an_array_is_told_with_its_line(tmp_path: Path) -> None:
    rows = [{"input": "?", "output_1": "a", "output_2": "b", "label": n} for n in (1, 2, 3)]
    file = array(tmp_path / "l.json", *rows)
    line = file.read_text().splitlines().index('    "label": 2') + 3
    with pytest.raises(TaskError, match=rf"l\.json:{line}: label: must be 1 or 2, got 3"):
        read(file, "llmbar")


@pytest.mark.parametrize("text", ['[{"input": 1}', '[{"input": 1}] x', '[{"input": 1} {"input": 2}]', "[1]"])
def test_a_broken_array_is_refused(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "l.json").write_text(text)
    with pytest.raises(TaskError, match=r"l\.json"):
        list(EvalSet(file, format="llmbar").tasks())


# ---- several files


def mt_bench(folder: Path, **answers: list[dict[str, Any]]) -> Path:
    lines(
        folder / "question.jsonl",
        {"question_id": 1, "category": "math", "turns": ["a?", "b?"], "reference": ["A", "B"]},
        {"question_id": 2, "category": "chat", "turns": ["c?"]},
    )
    (folder / "model_answer").mkdir(exist_ok=True)
    for model, rows in answers.items():
        lines(folder / "model_answer" / f"{model}.jsonl", *rows)
    return folder


def answer(question: int, model: str, *turns: str) -> dict[str, Any]:
    return {
        "question_id": question,
        "answer_id": f"{model}{question}",
        "model_id": model,
        "choices": [{"turns": turns}],
    }


def test_mt_bench_renders_the_turns_of_questions_answers_and_references(tmp_path: Path) -> None:
    both = {model: [answer(1, model, "x", "y"), answer(2, model, "z")] for model in ("m1", "m2")}
    first, second = read(mt_bench(tmp_path, **both), "mt_bench")
    assert first.x == "User, turn 1:\na?\n\nUser, turn 2:\nb?"
    assert texts(first)[0] == "Assistant, turn 1:\nx\n\nAssistant, turn 2:\ny"
    assert first.context == ("Reference, turn 1:\nA\n\nReference, turn 2:\nB",)
    assert (second.x, texts(second), generators(second)) == ("c?", ["z", "z"], ["m1", "m2"])
    assert (second.id, second.metadata) == ("2", {"category": "chat"})


def test_a_question_without_an_answer_and_an_answer_without_a_question_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"m1\.jsonl: has no answer to question '2'"):
        read(mt_bench(tmp_path, m1=[answer(1, "m1", "x", "y")]), "mt_bench")
    with pytest.raises(TaskError, match=r"m1\.jsonl:3: question_id: answers no question"):
        read(mt_bench(tmp_path, m1=[answer(n, "m1", "x") for n in (1, 2, 3)]), "mt_bench")
    (tmp_path / "model_answer" / "m1.jsonl").unlink()
    with pytest.raises(TaskError, match="--answers"):
        read(tmp_path / "question.jsonl", "mt_bench")


def test_alpaca_eval_joins_the_nth_output_of_an_instruction_with_the_nth(tmp_path: Path) -> None:
    def outputs(model: str, *instructions: str) -> Path:
        rows = [{"instruction": i, "output": f"{model}{n}", "generator": model} for n, i in enumerate(instructions)]
        return array(tmp_path / f"{model}.json", *rows)

    first, other = outputs("a", "do", "say", "do"), outputs("b", "say", "do", "do")
    tasks = read(first, "alpaca_eval", answers=(other,))
    assert [(task.x, texts(task)) for task in tasks] == [
        ("do", ["a0", "b1"]),
        ("say", ["a1", "b0"]),
        ("do", ["a2", "b2"]),
    ]
    assert generators(tasks[0]) == ["a", "b"]
    with pytest.raises(TaskError, match=r"c\.json: has no output for the instruction of .*a\.json:\d+"):
        read(first, "alpaca_eval", answers=(outputs("c", "do", "say"),))
    with pytest.raises(TaskError, match="is an output for no instruction"):
        read(first, "alpaca_eval", answers=(outputs("d", "do", "say", "do", "sing"),))


def test_lm_eval_samples_give_every_response_and_hide_the_target(tmp_path: Path) -> None:
    def sample(model: str, **more: Any) -> Path:
        row: dict[str, Any] = {
            "doc_id": 0,
            "doc": {},
            "target": "4",
            "arguments": [["2+2=", {}]],
            "resps": [[f"{model}!", "4"]],
        }
        return lines(tmp_path / f"{model}.jsonl", {**row, **more})

    (task,) = read(sample("m1"), "lm_eval", answers=(sample("m2", arguments={"gen_args_0": {"arg_0": "2+2="}}),))
    assert (task.x, texts(task), task.metadata) == ("2+2=", ["m1!", "4", "m2!", "4"], {"target": "4"})
    assert generators(task) == ["m1", "m1", "m2", "m2"]
    with pytest.raises(TaskError, match="log-likelihoods"):
        read(sample("m3", resps=[[[-1.5, True]]]), "lm_eval")


def test_replies_of_a_batch_to_equal_messages_are_candidates_of_one_task(tmp_path: Path) -> None:
    def request(name: str, text: str) -> dict[str, Any]:
        return {"custom_id": name, "body": {"model": "m", "messages": [{"role": "user", "content": text}]}}

    def reply(name: str, *said: str) -> dict[str, Any]:
        body = {"model": f"m-{name}", "choices": [{"message": {"content": text}} for text in said]}
        return {"custom_id": name, "response": {"status_code": 200, "body": body}, "error": None}

    asked = lines(tmp_path / "in.jsonl", request("1", "q"), request("2", "q"), request("3", "other"))
    output = lines(tmp_path / "out.jsonl", reply("3", "c"), reply("1", "a", "b"), reply("2", "d"))
    tasks = read(output, "openai_batch", answers=(asked,))
    assert [(task.x, texts(task)) for task in tasks] == [("other", ["c"]), ("q", ["a", "b", "d"])]
    assert generators(tasks[1]) == ["m-1", "m-1", "m-2"]
    failed = {"custom_id": "1", "response": None, "error": {"message": "expired"}}
    with pytest.raises(TaskError, match=r"out\.jsonl:1: error: failed"):
        read(lines(tmp_path / "out.jsonl", failed), "openai_batch", answers=(asked,))


# ---- tables


def test_a_csv_has_candidates_in_a_column_or_in_several(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.writer(stream)
        writer.writerow(["prompt", "response_a", "response_b", "best", "topic"])
        writer.writerow(['Hi,\n"you"?', "one", "two", "1", "x"])
    (task,) = read(tmp_path / "t.csv", "table", columns={"x": "prompt"})
    assert (task.x, texts(task), task.metadata) == ('Hi,\n"you"?', ["one", "two"], {"topic": "x", "best": 1})
    (tmp_path / "u.csv").write_text('x,candidates\nq,"[""a"", ""b""]"\n')
    assert texts(read(tmp_path / "u.csv", "table")[0]) == ["a", "b"]
    (tmp_path / "v.csv").write_text("x,first,second\nq,a,b\n")
    assert texts(read(tmp_path / "v.csv", "table", columns={"candidates": "first,second"})[0]) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,candidates\nq,a\n", r"t\.csv:2: candidates: must be a JSON list"),
        ("x,candidates\nq\n", r"t\.csv:2: has fewer fields"),
        ("x,candidate_1\nq,a\nr,b,c\n", r"t\.csv:3: has more fields"),
        ("x,other\nq,a\n", "there is no such column among x, other"),
        ("y,candidate_1\nq,a\n", "x: is missing"),
        ("x,candidate_1,best\nq,a,first\n", "best: must be an index"),
        ("x,candidate_1\n", "holds no tasks"),
    ],
)
def test_a_broken_csv_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TaskError, match=message):
        read(tmp_path / "t.csv", "table")


def test_parquet_is_read_in_batches(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), import_module("pyarrow.parquet")
    rows = [{"x": f"q{n}", "candidates": ["a", "b"], "id": f"t{n}", "best": n % 2} for n in range(600)]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "t.parquet")
    tasks = read(tmp_path / "t.parquet", "table")
    assert [task.id for task in tasks] == [row["id"] for row in rows]
    assert tasks[1].metadata == {"best": 1}
    (tmp_path / "u.parquet").write_bytes(b"PAR1nonsense")
    with pytest.raises(TaskError, match="is not valid parquet"):
        read(tmp_path / "u.parquet", "table")


# ---- what is asked of all


def test_a_format_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mt_bench"):
        EvalSet(tmp_path / "t.jsonl", format="mtbench")
    assert {"own", "table", *FORMATS} == set(FORMATS)


def test_the_digest_changes_with_every_file_and_setting(tmp_path: Path) -> None:
    folder = mt_bench(tmp_path, m1=[answer(1, "m1", "x", "y"), answer(2, "m1", "z")])
    first = EvalSet(folder).digest()
    assert EvalSet(folder).digest() == first
    assert EvalSet(folder, limit=1).digest() != first
    mt_bench(tmp_path, m1=[answer(1, "m1", "x", "y"), answer(2, "m1", "changed")])
    assert EvalSet(folder).digest() != first
