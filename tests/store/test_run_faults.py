"""The store under faults: at every statement, SQLite's own way of testing itself; what was recorded before is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine as SqlEngine
from sqlalchemy import event

from debate import Engine
from debate.backends import Call, Scripted
from debate.errors import StoreError
from debate.store import Store
from debate.testing import Recorder, reply_for
from tests.small_flows import debates, plain, tasks

FULL = "database or disk is full"
BROKEN = "disk I/O error"


@contextmanager
def fault_at(n: int, message: str) -> Generator[list[int]]:
    """Fail the n-th statement or commit, from 1, and all that follow; yields how many there were."""
    seen = [0]

    def count(*_: Any) -> None:
        seen[0] += 1
        if seen[0] >= n:
            raise sqlite3.OperationalError(message)

    for name in ("before_cursor_execute", "commit"):
        event.listen(SqlEngine, name, count)
    try:
        yield seen
    finally:
        for name in ("before_cursor_execute", "commit"):
            event.remove(SqlEngine, name, count)


def run(path: Path, script: Callable[..., Any], seed: int = 1) -> list[dict[str, Any]]:
    with Engine(Scripted(script), store=str(path), seed=seed, max_concurrency=2) as engine:
        return [plain(each) for each in engine.evaluate_batch(tasks(2), debates(), run="r")]


def kept(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM calls").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


@pytest.mark.parametrize("message", [FULL, BROKEN])
def test_a_fault_at_any_statement_loses_nothing_that_was_recorded(tmp_path: Path, message: str) -> None:
    expected, n = run(tmp_path / "whole.sqlite", Recorder()), 0
    while True:
        n += 1
        path, script = tmp_path / f"{n}.sqlite", Recorder()
        with fault_at(n, message) as seen:
            try:
                run(path, script)
            except StoreError as error:
                assert message in str(error)
                assert str(path) in str(error)
        before = kept(path)
        assert before <= len(script.calls)
        resumed = Recorder()
        assert run(path, resumed) == expected
        assert len(resumed.calls) == 8 - before
        if seen[0] < n:
            assert len(script.calls) == 8
            break
    assert n > 20, "a run should take many statements"


def test_a_full_disk_ends_the_run_with_the_path_and_the_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sqlite"
    Store(path).close()

    def small(connection: sqlite3.Connection, _: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    event.listen(SqlEngine, "connect", small)
    try:
        with pytest.raises(StoreError, match=rf"{path}: {FULL} \([\d,]+ MB free\)"):
            run(path, _wordy)
    finally:
        event.remove(SqlEngine, "connect", small)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with Engine(Scripted(Recorder()), store=str(path), seed=1) as engine:
        assert [each.status for each in engine.evaluate_batch(tasks(2), debates(), run="r")]


def _wordy(call: Call) -> str:
    return "x" * 5000 if call.seed % 2 else reply_for(call)


def test_an_error_of_one_piece_of_work_is_not_that_of_its_group(tmp_path: Path) -> None:
    from debate.store.database import Database

    database = Database(str(tmp_path / "s.sqlite"))

    def wrong(_: object) -> None:
        raise ValueError("mine")

    futures = [database.submit(wrong if n == 3 else (lambda _, n=n: n)) for n in range(8)]
    assert [None if future.exception() else future.result() for future in futures] == [0, 1, 2, None, 4, 5, 6, 7]
    assert isinstance(futures[3].exception(), ValueError)
    database.close()
    with pytest.raises(StoreError, match="is closed"):
        database.run(lambda _: None)


def test_what_is_ready_together_in_an_event_loop_is_committed_together(tmp_path: Path) -> None:
    from sqlalchemy import Connection, RootTransaction

    from debate.store.database import Database

    database = Database(str(tmp_path / "s.sqlite"))

    def transaction(connection: Connection) -> RootTransaction | None:
        found = connection.get_transaction()
        assert isinstance(found, RootTransaction)
        return found

    async def scene() -> list[RootTransaction | None]:
        gone = asyncio.ensure_future(database.arun(transaction))
        waiting = [asyncio.ensure_future(database.arun(transaction)) for _ in range(50)]
        await asyncio.sleep(0)
        gone.cancel()  # nobody waits for it any more, and it is done all the same
        return await asyncio.gather(*waiting)

    found = asyncio.run(scene())
    assert len(found) == 50
    assert set(map(id, found)) == {id(found[0])}
    database.close()
    with pytest.raises(StoreError, match="is closed"):
        asyncio.run(database.arun(transaction))
