"""`examples/pick_best.py`: a row a task, what is unscored said so, nothing lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debate import Component, DebateEvaluator, Engine, Persona, Profile, Task
from debate.backends import Call, Scripted
from debate.errors import BackendUnavailableError
from examples import pick_best as script

ROW_KEYS = ["id", "selected", "text", "score", "probability", "status"]
GOOD = {"id": "sky", "x": "Why is the evening orange?", "candidates": ["No idea.", "The evening turns orange."]}
BAD = {"id": "bad", "x": "Unreadable question", "candidates": ["one", "two"]}


def evalset(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def mumbling_on_bad(call: Call) -> str:
    return "no JSON" if call.info["task_id"] == "bad" else script.judge(call)


def test_every_general_task_gets_one_row_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([]) == 0
    printed = capsys.readouterr()
    rows = rows_of(printed.out)
    with script.GENERAL.open() as lines:
        tasks = {task["id"]: task for task in map(json.loads, lines)}
    assert sorted(row["id"] for row in rows) == sorted(tasks)
    for row in rows:
        assert list(row) == ROW_KEYS
        assert row["text"] == tasks[row["id"]]["candidates"][row["selected"]]
        assert 0 <= row["score"] <= 10
        assert 0 < row["probability"] <= 1
    assert f"{len(tasks)} of {len(tasks)} tasks, 0 unscored" in printed.err


def test_the_candidate_that_scores_best_is_the_one_written(tmp_path: Path) -> None:
    out = tmp_path / "best.jsonl"
    assert script.main([str(evalset(tmp_path, GOOD)), "--out", str(out)]) == 0
    (row,) = rows_of(out.read_text())
    assert (row["id"], row["selected"], row["text"], row["status"]) == ("sky", 1, "The evening turns orange.", "ok")


def test_an_unscored_task_has_nulls_and_a_line_on_stderr_and_exit_code_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "Scripted", lambda judge: Scripted(mumbling_on_bad))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert script.main([str(evalset(tmp_path, GOOD, BAD))]) == 3
    printed = capsys.readouterr()
    rows = {row["id"]: row for row in rows_of(printed.out)}
    assert rows["bad"] == dict.fromkeys(ROW_KEYS) | {"id": "bad", "status": "failed"}
    assert rows["sky"]["selected"] == 1
    assert "unscored: 'bad'" in printed.err


def test_rows_written_before_the_backend_died_are_kept_and_the_exit_code_is_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(call: Call) -> str:
        if call.info["task_id"] == "bad":
            raise BackendUnavailableError("the engine has gone")
        return script.judge(call)

    monkeypatch.setattr(script, "Scripted", lambda judge: Scripted(dying, slots=1))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    config = tmp_path / "settings.yaml"
    config.write_text("rounds: 1\n")
    out = tmp_path / "best.jsonl"
    first = [{**GOOD, "id": f"sky-{n}"} for n in range(6)]
    assert script.main([str(evalset(tmp_path, *first, BAD)), "--out", str(out), "--config", str(config)]) == 4
    rows = rows_of(out.read_text())
    assert {row["id"] for row in rows if row["selected"] == 1} >= {"sky-0"}
    assert next(row for row in rows if row["id"] == "bad")["status"] == "failed"
    assert "the engine has gone" in capsys.readouterr().err


def test_a_row_comes_before_the_last_task_is_read() -> None:
    """Equal tasks without ids too: each has a row of its own."""
    read: list[int] = []

    def tasks() -> Iterator[Task]:
        for n in range(400):
            read.append(n)
            yield Task("Which?", ["this", "that"])

    alone = Profile("alone", (Persona("Judge", "You judge."),), (Component("truth", "How true it is."),))
    with Engine(Scripted(script.judge, slots=2)) as engine:
        rows = script.pick(engine, DebateEvaluator(alone, rounds=1), tasks())
        first = next(rows)
        assert len(read) < 400
        names = {first["id"], *(row["id"] for row in rows)}
    assert len(names) == len(read) == 400


@pytest.mark.parametrize(
    ("text", "problem"),
    [('{"x": "q"}\n', "tasks.jsonl:1: candidates"), ("", "holds no tasks")],
)
def test_a_faulty_eval_set_is_refused_and_the_old_output_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    path, out = tmp_path / "tasks.jsonl", tmp_path / "best.jsonl"
    path.write_text(text)
    out.write_text("old")
    assert script.main([str(path), "--out", str(out)]) == 2
    assert problem in capsys.readouterr().err
    assert out.read_text() == "old"


def test_the_eval_set_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = evalset(tmp_path, GOOD)
    before = path.read_text()
    assert script.main([str(path), "--out", str(path)]) == 2
    assert path.read_text() == before
    assert "--out" in capsys.readouterr().err


def test_a_limit_of_one_writes_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([str(evalset(tmp_path, GOOD, BAD)), "--limit", "1"]) == 0
    assert [row["id"] for row in rows_of(capsys.readouterr().out)] == ["sky"]
