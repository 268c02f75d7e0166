"""The folder of a run: for its owner alone, nobody else's files are touched, and nothing recorded never blocks it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from debate import DebateEvaluator, Persona, Profile
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.errors import BackendUnavailableError, ConfigError, InputError, RunMismatchError, StoreError
from debate.evaluators.base import Evaluator
from debate.jobs.run import Run
from debate.jobs.run_directory import RunDirectory
from debate.store import Store
from debate.testing import SilentListener, reply_for
from tests.small_flows import PROFILE, debates


@pytest.fixture
def evalset(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    tasks = [{"id": f"t{k}", "x": "?", "candidates": ["a", "b"]} for k in range(3)]
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return path


def execute(
    evalset: Path | None,
    out: Path,
    *,
    evaluator: Evaluator | None = None,
    script: Callable[[Call], str] = reply_for,
    model: str = "scripted",
    **settings: Any,
) -> int:
    """How many tasks a run has evaluated, over all sessions."""
    tasks = None if evalset is None else EvalSet(evalset)
    judge = evaluator or debates(rounds=1)
    job = Run(evalset=tasks, folder=out, evaluator=judge, settings=RunSettings(**settings))
    return job.execute({model: Scripted(script, model=model)}, SilentListener())[1].n_evaluated


def down(_: Call) -> str:
    raise BackendUnavailableError("the server is down")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ---- for its owner alone


def test_the_folder_and_its_files_are_readable_by_their_owner_alone(tmp_path: Path, evalset: Path) -> None:
    before = os.umask(0)
    try:
        execute(evalset, tmp_path / "runs" / "out")
    finally:
        os.umask(before)
    assert mode(tmp_path / "runs" / "out") == 0o700
    files = {file.name: mode(file) for file in (tmp_path / "runs" / "out").iterdir()}
    assert {"run.json", "run.sqlite", "results.jsonl"} <= files.keys()
    assert {*files.values()} == {0o600}


def test_results_that_are_written_anew_stay_the_owners(tmp_path: Path, evalset: Path) -> None:
    execute(evalset, tmp_path / "out")
    (tmp_path / "out" / "results.jsonl").write_text("")
    (tmp_path / "out" / "results.jsonl").chmod(0o644)
    execute(evalset, tmp_path / "out")
    assert mode(tmp_path / "out" / "results.jsonl") == 0o600


def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path, evalset: Path) -> None:
    (tmp_path / "out").mkdir(0o755)
    execute(evalset, tmp_path / "out")
    assert mode(tmp_path / "out") == 0o755


# ---- other people's files


@pytest.mark.parametrize("text", ["precious, no newline", "one\ntwo\n", '{"task_id": "t0"}\n'])
def test_results_without_a_record_of_a_run_are_not_touched(tmp_path: Path, evalset: Path, text: str) -> None:
    file = tmp_path / "out" / "results.jsonl"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(InputError, match=r"results\.jsonl: is not of a run: there is no run\.json"):
        execute(evalset, tmp_path / "out")
    assert [each.name for each in file.parent.iterdir()] == ["results.jsonl"]
    assert file.read_text() == text


@pytest.mark.parametrize("name", ["results.jsonl", "run.json", "run.sqlite"])
@pytest.mark.parametrize("content", ["victim", ""])
def test_a_link_in_the_folder_is_not_followed(tmp_path: Path, evalset: Path, name: str, content: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "victim").write_text(content)
    (tmp_path / "out" / name).symlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match=rf"{name}: is (a link|not the record)"):
        execute(evalset, tmp_path / "out")
    assert (tmp_path / "victim").read_text() == content
    assert [each.name for each in (tmp_path / "out").iterdir()] == [name]


@pytest.mark.parametrize("name", ["results.jsonl", "run.sqlite"])
def test_a_link_in_the_folder_of_a_run_is_not_followed(tmp_path: Path, evalset: Path, name: str) -> None:
    execute(evalset, tmp_path / "out")
    shutil.move(tmp_path / "out" / name, tmp_path / "victim")
    (tmp_path / "out" / name).symlink_to(tmp_path / "victim")
    before = (tmp_path / "victim").read_bytes()
    with pytest.raises(InputError, match=rf"{name}: is a link"):
        execute(evalset, tmp_path / "out", evaluator=debates(rounds=1, weights={"truth": 0.25}))
    assert (tmp_path / "victim").read_bytes() == before


@pytest.mark.parametrize("n", [0, 1])
def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path: Path, evalset: Path, n: int) -> None:
    execute(evalset, tmp_path / "out")
    lock = sorted((tmp_path / "out").glob("*.lock"))[n]
    lock.unlink()
    (tmp_path / "victim").write_text("precious")
    lock.symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match="cannot be opened"):
        execute(evalset, tmp_path / "out")
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("name", ["results.jsonl", "run.json", "run.sqlite"])
def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path, evalset: Path, name: str) -> None:
    (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(InputError, match=rf"{name}: is (no regular file|not the record)"):
        execute(evalset, tmp_path / "out")


def test_a_pipe_in_place_of_the_results_is_refused_without_waiting(tmp_path: Path, evalset: Path) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "results.jsonl")
    with pytest.raises(InputError, match=r"results\.jsonl: is no regular file"):
        execute(evalset, tmp_path / "out")


# ---- results that the store does not know


def lost(out: Path, evalset: Path | None, **settings: Any) -> str:
    """The message of a run whose store is gone; its results stay as they are."""
    before = (out / "results.jsonl").read_bytes()
    with pytest.raises(StoreError) as caught:
        execute(evalset, out, **settings)
    assert (out / "results.jsonl").read_bytes() == before
    assert before.count(b"\n") == 3
    return str(caught.value)


@pytest.mark.parametrize("has_evalset", [True, False])
def test_results_stay_when_the_store_is_gone(tmp_path: Path, evalset: Path, *, has_evalset: bool) -> None:
    out = tmp_path / "out"
    execute(evalset, out)
    (out / "run.sqlite").unlink()
    assert "run.sqlite: the store of the run in" in lost(out, evalset if has_evalset else None)
    assert not (out / "run.sqlite").exists()


@pytest.mark.parametrize("has_evalset", [True, False])
def test_results_stay_when_a_shared_store_is_another_one(tmp_path: Path, evalset: Path, *, has_evalset: bool) -> None:
    out, shared = tmp_path / "out", tmp_path / "shared.sqlite"
    execute(evalset, out, store=str(shared))
    shared.unlink()
    Store(shared).close()
    tasks = evalset if has_evalset else None
    assert "shared.sqlite: the store does not hold the run" in lost(out, tasks, store=str(shared))
    with Store(shared) as store:
        assert store.runs() == []


def test_results_stay_when_the_store_is_one_of_before(tmp_path: Path, evalset: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(BackendUnavailableError):
        execute(evalset, out, script=down)
    shutil.copy(out / "run.sqlite", tmp_path / "before.sqlite")
    execute(evalset, out)
    shutil.copy(tmp_path / "before.sqlite", out / "run.sqlite")
    assert "does not know the result of 't0' and 2 more" in lost(out, evalset)


def test_a_run_whose_results_and_store_are_both_gone_begins_anew(tmp_path: Path, evalset: Path) -> None:
    out = tmp_path / "out"
    execute(evalset, out)
    (out / "run.sqlite").unlink()
    (out / "results.jsonl").unlink()
    assert execute(evalset, out) == 3


def test_a_copied_folder_is_a_run_of_its_own_place(tmp_path: Path, evalset: Path) -> None:
    execute(evalset, tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    assert execute(evalset, tmp_path / "copy", script=down) == 3


# ---- nothing recorded


def test_a_run_in_which_nothing_was_recorded_takes_other_settings(tmp_path: Path, evalset: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(BackendUnavailableError):
        execute(evalset, out, script=down, model="tinny")
    assert execute(evalset, out, model="tiny", evaluator=debates(rounds=1, mode="simultaneous"), seed=3) == 3
    record = json.loads((out / "run.json").read_text())
    assert (record["identity"]["models"], record["seed"]) == ({"tiny": "tiny"}, 3)


def test_a_run_in_which_nothing_was_recorded_takes_another_store(tmp_path: Path, evalset: Path) -> None:
    out, shared = tmp_path / "out", str(tmp_path / "shared.sqlite")
    with pytest.raises(BackendUnavailableError):
        execute(evalset, out, script=down)
    assert execute(evalset, out, store=shared) == 3
    with pytest.raises(ConfigError, match=r"this run's store is .*shared\.sqlite"):
        execute(evalset, out, store=str(tmp_path / "third.sqlite"))


def test_a_run_in_which_something_was_recorded_refuses_other_settings(tmp_path: Path, evalset: Path) -> None:
    execute(evalset, tmp_path / "out")
    with pytest.raises(RunMismatchError, match="mode: sequential -> simultaneous"):
        execute(evalset, tmp_path / "out", evaluator=debates(rounds=1, mode="simultaneous"))


# ---- the name


def test_a_run_is_named_by_its_setting_or_else_by_its_folder(tmp_path: Path, evalset: Path) -> None:
    shared, out = str(tmp_path / "shared.sqlite"), tmp_path / "out"
    execute(evalset, out, store=shared, run="monday")
    execute(evalset, tmp_path / "unnamed", store=shared)
    assert execute(evalset, out, store=shared, script=down) == 3
    assert execute(None, out, script=down) == 3
    assert "run" not in (RunDirectory.existing(out).settings or {})
    with Store(shared) as store:
        assert store.runs() == ["monday", str(tmp_path / "unnamed")]


def test_a_run_of_that_name_is_gone_on_with_from_another_folder(tmp_path: Path, evalset: Path) -> None:
    shared = str(tmp_path / "shared.sqlite")
    execute(evalset, tmp_path / "one", store=shared, run="monday")
    assert execute(evalset, tmp_path / "two", store=shared, run="monday", script=down) == 3
    one, two = ((tmp_path / name / "results.jsonl").read_text() for name in ("one", "two"))
    assert sorted(one.splitlines()) == sorted(two.splitlines())


def test_folders_of_one_run_may_differ_in_settings_that_the_store_knows(tmp_path: Path, evalset: Path) -> None:
    shared: dict[str, Any] = {"store": str(tmp_path / "shared.sqlite"), "run": "monday"}
    for name, slots in (("one", 1), ("two", 2), ("three", 3)):
        execute(evalset, tmp_path / name, max_concurrency=slots, **shared)
    assert [RunDirectory.existing(tmp_path / name).changes() for name in ("one", "two", "three")] == [[], [], []]
    (tmp_path / "two" / "run.json").write_text(
        (tmp_path / "two" / "run.json").read_text().replace('"max_concurrency": 2', '"max_concurrency": 4')
    )
    assert RunDirectory.existing(tmp_path / "two").changes() == ["max_concurrency: 3 -> 4"]


def test_a_folder_of_another_run_is_refused_with_both_names(tmp_path: Path, evalset: Path) -> None:
    execute(evalset, tmp_path / "out", run="monday")
    with pytest.raises(ConfigError, match=r"run: the folder \S+/out holds the run 'monday', not 'tuesday'"):
        execute(evalset, tmp_path / "out", run="tuesday")


@pytest.mark.parametrize(("name", "expected"), [("monday", None), (None, None), ("tuesday", "tuesday")])
def test_a_fork_takes_another_name_than_its_runs(
    tmp_path: Path, evalset: Path, name: str | None, expected: str | None
) -> None:
    shared, judge = str(tmp_path / "shared.sqlite"), debates(rounds=1)
    execute(evalset, tmp_path / "out", store=shared, run="monday")
    settings = RunSettings(store=shared, run=name)
    job = Run(evalset=EvalSet(evalset), folder=tmp_path / "out", evaluator=judge, settings=settings, fork=True)
    where, _ = job.execute({"scripted": Scripted(reply_for, model="scripted")}, SilentListener())
    assert (where.path, where.name) == (tmp_path / "out-2", expected or str(tmp_path / "out-2"))


# ---- faults of the settings


ASKS_FOR_ANOTHER = Profile("own", (Persona("Doctor", "You heal.", model="clinician"),), PROFILE.components)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"evaluator": DebateEvaluator(ASKS_FOR_ANOTHER)}, "asks for the model 'clinician'"),
        ({"memory": "mysql://host/x"}, "memory: 'mysql' is not supported"),
        ({"memory": "postgresql://host:bad/x"}, "memory: is not the address of a database"),
        ({"store": "postgresql://host:bad/x"}, "store: is not the address of a database"),
        ({"store": ":memory:"}, "store: a store in memory ends with the run"),
        ({"store": "sqlite://"}, "store: a store in memory ends with the run"),
        ({"store": "sqlite+foo:///x"}, "store: 'sqlite\\+foo' is not supported"),
    ],
)
def test_a_fault_of_the_settings_is_found_before_anything_is_made(
    tmp_path: Path, evalset: Path, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        execute(evalset, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


# ---- the record


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "is not the record of a run"),
        ('{"run": "r", "store": null, "settings": {"x": "\\ud800"}, "evalset": null}', "is not the record of a run"),
        ('{"run": 5, "store": null, "settings": null, "evalset": null}', "run: must be text, got 5"),
        ('{"run": "r", "store": 5, "settings": null, "evalset": null}', "store: must be text, got 5"),
        ('{"run": "r", "store": null, "settings": [], "evalset": null}', "settings: must be a mapping"),
        ('{"run": "r", "store": null}', "settings: is missing"),
        ("3", "run.json: must be a mapping"),
        ("", "is not the record of a run"),
        ("\0", "is not the record of a run"),
    ],
)
def test_an_odd_record_is_refused_in_a_sentence_that_names_it(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run\.json") as caught:
        RunDirectory.read(tmp_path)
    assert problem in str(caught.value)


def test_passwords_are_not_written_down(tmp_path: Path) -> None:
    store = "postgresql://u:SECRET@host/x?password=SECRET&sslmode=require"
    settings = {"store": store, "memory": "postgresql://u:SECRET@host/m?password=SECRET", "seed": 1}
    RunDirectory(tmp_path, "r", store, settings).write()
    text = (tmp_path / "run.json").read_text()
    assert "SECRET" not in text
    found = RunDirectory.existing(tmp_path)
    assert found.store == "postgresql://u@host/x?sslmode=require"
    assert found.is_stored_in(store)
    assert found.settings == {"memory": "postgresql://u@host/m", "seed": 1}


SERVER = "postgresql://u@127.0.0.1:1/x"


def test_no_password_is_sent_to_a_store_that_the_folder_alone_names(
    tmp_path: Path, evalset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "SECRET")
    RunDirectory(tmp_path / "out", "r", SERVER, {}).write()
    found = RunDirectory.existing(tmp_path / "out")
    for use in (found.open_store, lambda: execute(evalset, tmp_path / "out"), lambda: execute(None, tmp_path / "out")):
        with pytest.raises(ConfigError, match="would be sent the password in PGPASSWORD") as caught:
            use()
        assert caught.value.hint == f"if that is right, set DEBATE_STORE={SERVER}"
    monkeypatch.setenv("DEBATE_STORE", SERVER)
    with pytest.raises((StoreError, ConfigError), match=r"127\.0\.0\.1|PostgreSQL needs a driver"):
        RunDirectory.existing(tmp_path / "out").open_store()
