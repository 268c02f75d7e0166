"""The control of a run: bound to it, resumed by itself, and nothing of the run is changed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from debate import DebateEvaluator
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.errors import BudgetExceededError, InputError, RunMismatchError
from debate.evaluation import Evaluation
from debate.jobs.control import control_job
from debate.jobs.run import Run
from debate.jobs.run_directory import RunDirectory
from debate.store.queries import Totals
from debate.testing import Recorder, SilentListener, reply_for
from tests.small_flows import debates

N_TASKS = 6
TABLES = ("tasks", "calls", "evaluations", "turns", "shards", "workers")


def debating(**settings: Any) -> DebateEvaluator:
    """Debates that agree after one, two or three rounds, or not at all."""
    return debates(**{"rounds": 4, "convergence": 0.35, **settings})


def hold(out: Path, script: Callable[[Call], Any] = reply_for, *, is_new: bool = True, **settings: Any) -> RunDirectory:
    tasks = [{"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b"]} for n in range(N_TASKS)]
    file = out.parent / "tasks.jsonl"
    file.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    run = Run(
        evalset=EvalSet(file) if is_new else None,
        folder=out,
        evaluator=debating(),
        settings=RunSettings(seed=5, **settings),
    )
    run.execute({"scripted": Scripted(script)}, SilentListener())
    return RunDirectory.existing(out)


def control(out: Path, script: Callable[[Call], Any] = reply_for, **settings: Any) -> Totals:
    run, evaluator = RunDirectory.existing(out), settings.pop("evaluator", debating())
    backends = {"scripted": Scripted(script)}
    job, _ = control_job(run, evaluator, backends, RunSettings(seed=5, **settings))
    return job.execute(backends, SilentListener())[1]


def results(folder: Path) -> dict[str, Evaluation]:
    run = RunDirectory.existing(folder)
    with run.open_store() as store:
        return {task.id: evaluation for task, evaluation in store.read(run.name).results()}


def rows(out: Path, name: str) -> dict[str, list[Any]]:
    """Everything that the store has of a run, as bytes and numbers."""
    with closing(sqlite3.connect(out / "run.sqlite")) as database:
        (about,) = database.execute("SELECT * FROM runs WHERE name = ?", (name,)).fetchall()
        found = {
            each: database.execute(f"SELECT * FROM {each} WHERE run_id = ?", about[:1]).fetchall() for each in TABLES
        }
        return {"runs": [about], **found}


def rounds(found: dict[str, Evaluation]) -> dict[str, int]:
    return {name: each.rounds_run for name, each in found.items()}


def test_each_task_has_the_rounds_of_its_debate_and_the_run_stays_as_it_is(tmp_path: Path) -> None:
    run = hold(tmp_path / "out")
    before, files = rows(run.path, run.name), {each.name: each.read_bytes() for each in run.path.glob("*.json*")}
    assert control(run.path).n_evaluated == N_TASKS
    debated, silent = results(run.path), results(run.control)
    assert rounds(debated) == rounds(silent)
    assert len(set(rounds(debated).values())) > 1
    assert rows(run.path, run.name) == before
    assert {each.name: each.read_bytes() for each in run.path.glob("*.json*")} == files
    assert len((run.control / "results.jsonl").read_text().splitlines()) == N_TASKS


def test_done_again_it_asks_nothing(tmp_path: Path) -> None:
    run = hold(tmp_path / "out")
    control(run.path)
    judge = Recorder(reply_for)
    assert control(run.path, judge).n_evaluated == N_TASKS
    assert judge.calls == []


def test_interrupted_it_goes_on_and_asks_for_nothing_that_is_recorded(tmp_path: Path) -> None:
    run = hold(tmp_path / "out")
    undisturbed = tmp_path / "undisturbed"
    shutil.copytree(run.path, undisturbed)
    control(undisturbed)
    first, second = Recorder(lambda call: reply_for(call) if len(first.calls) < 9 else _stop()), Recorder(reply_for)
    with pytest.raises(KeyboardInterrupt):
        control(run.path, first)
    before = _asked(run.path, f"{run.name}/control")
    assert before
    assert control(run.path, second, max_concurrency=2).n_evaluated == N_TASKS
    assert before.isdisjoint((call.prompt_hash, call.seed) for call in second.calls)
    asked = _asked(run.path, f"{run.name}/control")
    assert len(asked) == len(before) + len(second.calls) == 2 * sum(rounds(results(run.path)).values())
    same, other = (
        {name: each.scores.tolist() for name, each in results(RunDirectory.existing(place).control).items()}
        for place in (run.path, undisturbed)
    )
    assert same == other


def _stop() -> str:
    raise KeyboardInterrupt


def _asked(out: Path, name: str) -> set[tuple[str, int]]:
    """Prompt and seed of every call that the store has of a run."""
    with closing(sqlite3.connect(out / "run.sqlite")) as database:
        query = "SELECT prompt_hash, calls.seed FROM calls JOIN runs ON runs.id = run_id WHERE name = ?"
        return {*database.execute(query, (name,)).fetchall()}


def test_of_an_unfinished_run_it_covers_what_there_is_and_the_rest_later(tmp_path: Path) -> None:
    with pytest.raises(BudgetExceededError):
        hold(tmp_path / "out", max_tokens=6000, max_concurrency=1)
    n_first = len(results(tmp_path / "out"))
    assert 0 < n_first < N_TASKS
    assert control(tmp_path / "out").n_evaluated == n_first
    made = results(tmp_path / "out" / "control")
    run = hold(tmp_path / "out", is_new=False)
    assert results(run.control).keys() == made.keys()
    judge = Recorder(reply_for)
    assert control(run.path, judge).n_evaluated == N_TASKS
    assert {call.info["task_id"] for call in judge.calls}.isdisjoint(made)
    assert rounds(results(run.control)) == rounds(results(run.path))


def test_before_the_first_debate_there_is_nothing_to_control(tmp_path: Path) -> None:
    with pytest.raises(BudgetExceededError):
        hold(tmp_path / "out", max_tokens=1, max_concurrency=1)
    with pytest.raises(InputError, match="holds no evaluation yet"):
        control(tmp_path / "out")


def test_a_run_of_other_settings_has_no_control(tmp_path: Path) -> None:
    run = hold(tmp_path / "out")
    with pytest.raises(RunMismatchError, match="history_scores: True -> False") as refused:
        control(run.path, evaluator=debating(history_scores=False))
    assert "put back what" in (refused.value.hint or "")
    assert not run.control.exists()


def test_with_other_rounds_of_the_debates_the_control_follows(tmp_path: Path) -> None:
    run = hold(tmp_path / "out")
    control(run.path)
    again = Run(evalset=None, folder=run.path, evaluator=debating(rounds=1), settings=RunSettings(seed=5))
    again.execute({"scripted": Scripted(reply_for)}, SilentListener())
    judge = Recorder(reply_for)
    control(run.path, judge, evaluator=debating(rounds=1))
    assert judge.calls == []
    assert {*rounds(results(run.control)).values()} == {1}


def test_a_debate_that_failed_is_controlled_with_its_rounds(tmp_path: Path) -> None:
    def script(call: Call) -> str:
        if call.info["task_id"] == "t2":
            raise RuntimeError("no reply")
        return reply_for(call)

    run = hold(tmp_path / "out", script)
    assert results(run.path)["t2"].status == "failed"
    control(run.path)
    assert rounds(results(run.control))["t2"] == 1
    assert results(run.control)["t2"].status == "ok"


def test_agents_recall_the_same_memories_at_the_same_age(tmp_path: Path) -> None:
    run = hold(tmp_path / "out", memory="built-in")
    control(run.path, memory="built-in")
    for name, debated in results(run.path).items():
        heard_nobody, silent = next(iter(debated.transcript)), next(iter(results(run.control)[name].transcript))
        assert heard_nobody.memories == silent.memories


def test_a_folder_that_was_moved_takes_its_control_along(tmp_path: Path) -> None:
    run = hold(tmp_path / "out")
    control(run.path)
    shutil.move(run.path, tmp_path / "elsewhere")
    judge = Recorder(reply_for)
    assert control(tmp_path / "elsewhere", judge).n_evaluated == N_TASKS
    assert judge.calls == []


def test_a_store_of_several_runs_has_the_control_beside_them(tmp_path: Path) -> None:
    run = hold(tmp_path / "out", store=str(tmp_path / "all.sqlite"), run="monday")
    control(run.path)
    with run.open_store() as store:
        assert store.runs() == ["monday", "monday/control"]
    assert RunDirectory.existing(run.control).control_of == "monday"
