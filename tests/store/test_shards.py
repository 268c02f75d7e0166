"""Shards: the plan has every pending task once, claims are shared fairly, and a dead worker's are free."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, select

from debate.errors import RunLockedError, RunMismatchError
from debate.store import Store, StoredRun
from debate.store.shards import plan, share, tasks_per_shard
from debate.store.tables import SHARDS, Base
from debate.types import Task, Usage

IDENTITY = {"evaluator": "e"}
Join = Callable[[], StoredRun]


@pytest.fixture
def join(url: str) -> Iterator[Join]:
    """Joins the run, as another process would: with a store of its own."""
    with ExitStack() as opened:

        def join(settings: str = "s") -> StoredRun:
            with opened.enter_context(Store(url)).join("r", IDENTITY) as run:
                if run.is_alone:
                    run.read_evalset([(Task("x", ["a"], f"t{n}"), None, None) for n in range(200)], dict)
                run.plan(settings)
            return run

        yield join


def claims(run: StoredRun) -> list[int]:
    """Claim as many shards as there are for this worker."""
    return [shard.number for shard in iter(run.claim, None)]


@settings(max_examples=30, deadline=None)
@given(pending=st.sets(st.integers(0, 3000), min_size=1, max_size=700))
def test_a_plan_has_every_pending_position_in_one_shard_and_no_shard_is_empty(pending: set[int]) -> None:
    engine = create_engine("sqlite://")
    positions = Table("pending", MetaData(), Column("position", Integer, primary_key=True))
    with engine.begin() as connection:
        Base.metadata.create_all(connection)
        positions.create(connection)
        connection.execute(insert(positions), [{"position": each} for each in pending])
        plan(connection, 1, select(positions), len(pending))
        rows = connection.execute(select(SHARDS).order_by(SHARDS.c.shard)).all()
    engine.dispose()
    found = [[each for each in sorted(pending) if row.first <= each <= row.last] for row in rows]
    assert [each for shard in found for each in shard] == sorted(pending)
    assert [row.shard for row in rows] == list(range(len(rows)))
    assert {len(shard) for shard in found[:-1]} <= {tasks_per_shard(len(pending))}
    assert all(found)


@given(pending=st.integers(1, 10**7))
def test_shards_are_neither_few_nor_large(pending: int) -> None:
    size = tasks_per_shard(pending)
    assert 1 <= size <= 256
    assert pending / size >= min(pending, 64)


@given(undone=st.integers(0, 10**5), workers=st.integers(0, 100))
def test_shares_of_all_workers_cover_the_work_and_one_alone_may_have_all(undone: int, workers: int) -> None:
    each = share(undone, workers)
    assert each >= 1
    assert each * max(workers, 1) >= undone
    assert (each - 1) * max(workers, 1) < max(undone, 1)


def test_the_first_worker_leaves_their_share_to_the_others(join: Join) -> None:
    one, two = join(), join()
    assert (one.is_alone, two.is_alone, one.n_undone()) == (True, False, 67)
    first, second = claims(one), claims(two)
    assert (len(first), len(second)) == (34, 33)
    assert sorted(first + second) == list(range(67))


def test_a_worker_alone_may_have_everything(join: Join) -> None:
    assert claims(join()) == list(range(67))


def test_the_tasks_of_a_shard_are_those_that_are_pending(join: Join) -> None:
    run = join()
    shard = run.claim()
    assert shard is not None
    assert [task.id for task in run.tasks_of(shard, "s")] == ["t0", "t1", "t2"]


def test_shards_of_a_worker_that_ended_are_free_and_its_claims_are_void(join: Join) -> None:
    one, two = join(), join()
    shard = one.claim()
    assert shard is not None
    one.close()
    assert claims(two) == list(range(67))
    assert not two.finish_shard(shard)
    assert [state.state for state in two.workers()] == ["ended", "alive"]
    assert [state.shards for state in two.workers()] == [0, 67]


def test_a_shard_that_is_done_is_not_claimed_again(join: Join) -> None:
    run = join()
    shard = run.claim()
    assert shard is not None
    assert run.finish_shard(shard)
    assert claims(run) == list(range(1, 67))
    assert run.n_undone() == 66


def test_workers_hear_of_each_other(join: Join) -> None:
    one, two = join(), join()
    one.report(3, {"m": Usage(50, 10, 20)}).result()
    told = two.report(1, {"m": Usage(2)}).result()
    assert (told.workers, told.tasks, told.tokens) == (1, 3, 70)
    assert told.used == {"m": Usage(50, 10, 20)}
    assert [(state.tasks, state.tokens) for state in one.workers()] == [(3, 70), (1, 2)]


def test_what_others_must_not_be_disturbed_by_is_refused_with_their_names(join: Join, url: str) -> None:
    one = join()
    (me,) = one.workers()
    name = f"process {me.about['process']} on {me.about['host']}"
    with Store(url) as store:
        with pytest.raises(RunLockedError, match=f"in use by {name}"):
            store.run("r", IDENTITY)
        with pytest.raises(RunLockedError, match=f"other weights.* in use by {name}"), store.join("r", IDENTITY) as run:
            run.plan("other settings")
        with pytest.raises(RunMismatchError), store.join("r", {"evaluator": "another"}):
            pass
    one.close()
    with Store(url) as store, store.join("r", IDENTITY) as run:
        run.plan("other settings")


def test_nobody_joins_a_run_that_an_engine_holds(url: str) -> None:
    with Store(url) as holder, Store(url) as store:
        held = holder.run("r", IDENTITY)
        with pytest.raises(RunLockedError, match="in use by process"), store.join("r", IDENTITY):
            pass
        held.close()
        with store.join("r", IDENTITY) as run:
            assert run.is_alone


def test_who_joins_while_another_sets_the_run_up_waits_and_says_so(url: str) -> None:
    notes: list[str] = []
    waiting, joined = threading.Event(), threading.Event()

    def join() -> None:
        def note(text: str) -> None:
            notes.append(text)
            waiting.set()

        with Store(url) as store, store.join("r", IDENTITY, note=note):
            joined.set()

    with Store(url) as store:
        with store.join("r", IDENTITY):
            thread = threading.Thread(target=join)
            thread.start()
            assert waiting.wait(10)
            assert not joined.is_set()
        thread.join(10)
    assert joined.is_set()
    assert len(notes) == 1
    assert notes[0].startswith("waiting for process ")
    assert notes[0].endswith("which sets the run up")


def test_a_setup_that_fails_lets_the_next_one_in(url: str) -> None:
    with Store(url) as one, Store(url) as two:
        with pytest.raises(ValueError, match="mine"), one.join("r", IDENTITY):
            raise ValueError("mine")
        with two.join("r", IDENTITY) as run:
            assert run.is_alone
