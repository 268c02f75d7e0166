"""Runs: made once, held by one process, recognized, refused when their prompts changed; tasks named and recognized."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from debate.errors import ConfigError, RunLockedError, RunMismatchError, TaskError
from debate.evaluation import failed
from debate.flow import Block, Call, Completion, Prompt, Segment
from debate.journal import CallKey
from debate.statistics import Accuracy
from debate.store import Store, StoredRun
from debate.store.identity import differences
from debate.types import Candidate, Failure, Sampling, Task

IDENTITY = {"evaluator": {"name": "e", "personas": [{"role": "a"}], "aggregation": {"rounds": 3}}, "models": {"m": "m"}}


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


def placed(*tasks: Task) -> list[tuple[Task, str, int]]:
    return [(task, "e.jsonl", line) for line, task in enumerate(tasks, 1)]


def named(*names: str | None, x: str = "x") -> list[tuple[Task, str, int]]:
    return placed(*(Task(x, ["a"], name) for name in names))


def pending(record: StoredRun) -> list[str]:
    return [task.id for task in record.pending("s")]


def answered(record: StoredRun) -> StoredRun:
    """The run, in which one call of a task of its own has been answered."""
    call = Call(model="m", prompt=Prompt(system=(), user=(Block([Segment("?", True)]),)), sampling=Sampling(), seed=1)

    async def answer() -> None:
        journal = await record.open(Task("x", ["a"], "answered"), "s")
        await journal.put(CallKey((0,), 0), call, Completion("yes"))

    asyncio.run(answer())
    return record


# ---- runs


def test_a_run_keeps_its_seed_and_date(store: Store) -> None:
    store.run("r", IDENTITY, seed=7, today="2026-01-31").close()
    again = store.run("r", IDENTITY, seed=7, today="2026-02-01")
    assert (again.context.seed, again.context.today) == (7, "2026-01-31")


def test_settings_that_shape_no_prompt_may_change(store: Store) -> None:
    store.run("r", IDENTITY).close()
    store.run("r", {**IDENTITY, "evaluator": {**IDENTITY["evaluator"], "aggregation": {"rounds": 9}}}).close()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({**IDENTITY, "models": {"m": "other"}}, "model: m -> other"),
        ({**IDENTITY, "more": 1}, "more: not there -> 1"),
        ({**IDENTITY, "evaluator": {"name": "e", "personas": [{"role": "b"}]}}, ": personas.0.role: a -> b"),
    ],
)
def test_settings_that_shape_prompts_may_not(store: Store, changed: dict[str, Any], message: str) -> None:
    answered(store.run("r", IDENTITY)).close()
    with pytest.raises(RunMismatchError, match=message):
        store.run("r", changed)
    store.run("r", IDENTITY).close()  # the lease was given back


def test_a_run_in_which_nothing_is_recorded_is_begun_anew_with_other_settings(store: Store) -> None:
    first = store.run("r", IDENTITY, seed=1, today="2026-01-31")
    first.read_evalset(named("a"), dict)
    first.close()
    again = store.run("r", {**IDENTITY, "models": {"other": "other"}}, seed=2, today="2026-02-01")
    assert (again.context.seed, again.context.today, again.about) == (2, "2026-02-01", {})
    again.read_evalset(named("a", x="y"), dict)
    assert [task.x for task in again.pending("s")] == ["y"]
    assert store.runs() == ["r"]


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (
            {"profile": "chateval", "personas": [1]},
            {"profile": "general", "personas": [2]},
            ["profile: chateval -> general"],
        ),
        ({"evaluator": "vote", "ballots": 3}, {"evaluator": "debate", "mode": "x"}, ["evaluator: vote -> debate"]),
        ({"models": {"tinny": "tinny"}}, {"models": {"tiny": "tiny"}}, ["model: tinny -> tiny"]),
        ({"a": "x" * 200}, {"a": "y"}, [f"a: {'x' * 60}... (200 characters) -> y"]),
        ({"a": [1, 2]}, {}, ["a: 2 entries -> not there"]),
        ({"a": {"b": "", "c": 1}}, {"a": {"b": None, "c": 1}}, ["a.b: '' -> None"]),
    ],
)
def test_differences_are_told_in_short(before: dict[str, Any], now: dict[str, Any], told: list[str]) -> None:
    assert differences(before, now) == told


def test_another_seed_is_another_run(store: Store) -> None:
    answered(store.run("r", IDENTITY, seed=1)).close()
    with pytest.raises(RunMismatchError, match="seed: 1 -> 2"):
        store.run("r", IDENTITY, seed=2)


def test_a_run_is_found_by_its_name_or_because_it_is_the_only_one(store: Store) -> None:
    with pytest.raises(ConfigError, match="there is no run"):
        store.read()
    store.run("one", IDENTITY).close()
    assert store.read().name == "one"
    store.run("two", IDENTITY).close()
    with pytest.raises(ConfigError, match="holds several runs"):
        store.read()
    assert store.read("two").name == "two"


# ---- leases

HOLD = """
import sys
from debate.store import Store
store = Store(sys.argv[1])
record = store.run("r", {"evaluator": "e"})
print("held", flush=True)
sys.stdin.read()
"""


def holding(url: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_at_once_with_the_name_of_the_first(url: str) -> None:
    with holding(url) as process, Store(url) as store:
        with pytest.raises(RunLockedError, match=f"process {process.pid} on {os.uname().nodename}"):
            store.run("r", {"evaluator": "e"})
        store.run("another", {"evaluator": "e"}).close()
        process.kill()


def test_the_lease_of_a_killed_process_is_free(url: str) -> None:
    with holding(url) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with Store(url) as store:
        store.run("r", {"evaluator": "e"}).close()


def test_one_process_holds_a_run_once(store: Store) -> None:
    held = store.run("r", IDENTITY)
    with pytest.raises(RunLockedError):
        store.run("r", IDENTITY)
    held.close()
    held.close()
    store.run("r", IDENTITY).close()


# ---- tasks


def test_equal_tasks_without_an_id_get_names_of_their_own_and_keep_them(store: Store) -> None:
    record, content = store.run("r", IDENTITY), Task("x", ["a"]).id
    for _ in range(2):
        assert record.read_evalset(named(None, None, "b", None), dict) == 4
        assert pending(record) == [content, f"{content}-2", "b", f"{content}-3"]


def test_equal_tasks_far_apart_are_told_apart_too(store: Store) -> None:
    record = store.run("r", IDENTITY)
    filler = [Task(f"x{n}", ["a"], f"t{n}") for n in range(700)]
    same = Task("same", ["a"])
    record.read_evalset(placed(same, *filler, same, same), dict)
    assert pending(record)[-2:] == [f"{same.id}-2", f"{same.id}-3"]
    assert record.n_tasks() == 703


def test_a_duplicate_id_is_told_with_both_places_and_leaves_nothing(store: Store) -> None:
    record = store.run("r", IDENTITY)
    with pytest.raises(TaskError, match=r"e\.jsonl:3: id: duplicate id 'b', first at e\.jsonl:2"):
        record.read_evalset(named("a", "b", "b"), dict)
    assert store.read("r").n_tasks() == 0


def test_a_task_that_changed_is_refused(store: Store) -> None:
    record = store.run("r", IDENTITY)
    record.read_evalset(named("a", "b"), dict)
    answered(record)
    with pytest.raises(TaskError, match=r"e\.jsonl:1: id: the run has another task of the id 'b'"):
        record.read_evalset(named("b", x="y"), dict)
    assert pending(store.read("r")) == ["a", "b", "answered"]


def test_a_task_that_changed_before_anything_was_answered_takes_the_place_of_the_old_one(store: Store) -> None:
    record = store.run("r", IDENTITY)
    record.read_evalset(named("a", "b"), dict)
    record.read_evalset(named("b", x="y"), dict)
    assert [task.x for task in store.read("r").pending("s")] == ["y"]


def test_only_the_tasks_of_the_latest_revision_are_pending(store: Store) -> None:
    record = store.run("r", IDENTITY)
    record.read_evalset(named("a", "b", "c"), dict)
    record.read_evalset(named("c", "d"), dict)
    assert pending(record) == ["c", "d"]
    assert store.read("r").evalset_revision == 2


def test_a_task_comes_back_whole(store: Store) -> None:
    candidates = [Candidate("a\0b", "one", "m", {"k": [1, None]}), Candidate("é\u2028")]
    task = Task("x\0", candidates, "t", ["ctx"], {"best": 1, "deep": {"ß": 1.5}}, "the\0 answer")
    record = store.run("r", IDENTITY)
    record.read_evalset(placed(task), dict)
    (found,) = record.pending("s")
    assert found == task


def test_another_reference_is_another_task(store: Store) -> None:
    record = store.run("r", IDENTITY)
    record.read_evalset(placed(Task("x", ["a"], "t", reference="r")), dict)
    answered(record)
    for reference in (None, "s"):
        with pytest.raises(TaskError, match="another task of the id 't'"):
            record.read_evalset(placed(Task("x", ["a"], "t", reference=reference)), dict)


def test_metadata_may_change_without_changing_the_task(store: Store) -> None:
    record = store.run("r", IDENTITY)
    record.read_evalset(placed(Task("x", ["a"], "t")), dict)
    record.read_evalset(placed(Task("x", ["a"], "t", (), {"best": 0})), dict)
    assert pending(record) == ["t"]


def evaluated(record: StoredRun, task: Task, selected: int | None, *tied: int) -> None:
    """Record an evaluation with this choice."""
    nothing = failed(task.id, "e", len(task.candidates), Failure("f", "m"))

    async def finish() -> None:
        await (await record.open(task, "s")).finish(replace(nothing, selected=selected, tied=tied))

    asyncio.run(finish())


def test_accuracy_follows_the_labels_of_now(store: Store) -> None:
    record, texts = store.run("r", IDENTITY), ["a", "b", "c", "d"]
    choices: dict[str, list[Any]] = {"right": [0], "wrong": [1], "tied": [0, 0, 1], "none": [None]}
    for name, choice in choices.items():
        evaluated(record, Task("x", texts, name, best=0, metadata={"group": name[0]}), *choice)
    assert record.totals().accuracy == Accuracy(labeled=4, right=1, tied=1, unscored=1, chance=0.25)
    assert list(record.accuracy_by_group()) == ["r", "w", "t", "n"]
    record.read_evalset(placed(*(Task("x", texts, name, best=[0, 1]) for name in choices)), dict)
    assert record.totals().accuracy == Accuracy(labeled=4, right=3, tied=0, unscored=1, chance=0.5)
    assert record.accuracy_by_group() == {}
    assert pending(record) == []


def test_a_task_from_python_that_comes_again_has_the_label_of_now(store: Store) -> None:
    record = store.run("r", IDENTITY)
    evaluated(record, Task("x", ["a", "b"], best="B"), 0)
    assert record.totals().accuracy.right == 0
    asyncio.run(record.open(Task("x", ["a", "b"], best="A"), "s"))
    assert record.totals().accuracy.right == 1
    ((task, _),) = record.results()
    assert task.best == (0,)


def test_a_revision_that_cannot_be_read_leaves_the_one_before(store: Store) -> None:
    def breaking() -> Iterator[tuple[Task, str, int]]:
        yield from named(*(f"t{n}" for n in range(600)))
        raise TaskError("is broken", file="e.jsonl", line=601)

    record = store.run("r", IDENTITY)
    record.read_evalset(named("a"), dict)
    with pytest.raises(TaskError, match="601"):
        record.read_evalset(breaking(), dict)
    assert pending(store.read("r")) == ["a"]


def test_the_lock_file_says_who_holds_it(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        store.run("r", IDENTITY)
        (lock,) = tmp_path.glob("*.lock")
        assert lock.read_text().startswith(f"process {os.getpid()} on {os.uname().nodename}, since ")
