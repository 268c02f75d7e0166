"""One database and the one thread that talks to it: what is asked meanwhile is committed together.

A commit takes about as long for one row as for a hundred, so the thread takes whatever has gathered while the last
commit ran (group commit), and an event loop wakes it once all that is ready there has run; nobody waits for a clock.
Every fault becomes a `StoreError` that names the place.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import OperationalError

from debate.errors import StoreError
from debate.sql.connect import FAULTS, connect, described, normalize_url, store_error
from debate.sql.migrate import Schema
from debate.sql.types import insert_whole
from debate.store.tables import Base

T = TypeVar("T")
SCHEMA = Schema(Path(__file__).parent / "migrations", Base.metadata, head="0008", marker="runs", readable="0006")
_HINT = "what was recorded before is kept; fix this and run the same command again to continue"
_GROUP = 512
"""Most pieces of work that share a commit."""
_DEADLOCK, _TRIES, _PAUSE_SECONDS = "40P01", 5, 0.05
_KEEPALIVES = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
"""Seconds after which a server lets go of a process whose machine is gone without a word."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A piece of work: rows to insert, or a function of the connection."""

    do: Callable[[Connection], Any] | None = None
    rows: tuple[tuple[Table, Mapping[str, Any]], ...] = ()
    done: Future[Any] | asyncio.Future[Any] = field(default_factory=Future[Any])

    def settle(self, result: Any = None, error: Exception | None = None) -> None:
        """Tell who waits, if anybody still does."""
        if self.done.cancelled():
            return
        if error is None:
            self.done.set_result(result)
        else:
            self.done.set_exception(error)


class Database:
    """A migrated database behind one writer thread. Thread-safe; close it when done.

    Raises:
        ConfigError: for an address that names no database we know.
        StoreError: when it cannot be opened.
    """

    def __init__(self, url: str) -> None:
        self.url = normalize_url(url)
        self.place = described(self.url)
        self._is_pinned = False
        self._pinned: Connection | None = None
        self._queue: deque[_Work] = deque()
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False ends the thread
        self._engine = self._opened()
        self._thread = threading.Thread(target=self._work, name="debate-store", daemon=True)
        self._thread.start()
        self._is_closed = False
        self._lock = threading.Lock()
        self._process = os.getpid()

    def submit(self, do: Callable[[Connection], T]) -> Future[T]:
        """Run `do` inside a transaction; the future is done once that is committed.

        `do` may be run a second time in a transaction of its own, when another piece of work of its group failed.
        """
        work = _Work(do, done=(done := Future[T]()))
        # What was paid for is recorded even when nobody waits for it any more: it cannot be cancelled.
        done.set_running_or_notify_cancel()
        if self._put(work):
            self._wake.put(True)
        return done

    def run(self, do: Callable[[Connection], T]) -> T:
        """Run `do` inside a transaction and wait for the commit."""
        return self.submit(do).result()

    async def arun(self, do: Callable[[Connection], T]) -> T:
        """Run `do` inside a transaction and wait for the commit."""
        return await self._committed(do)

    async def ainsert(self, *rows: tuple[Table, Mapping[str, Any]]) -> None:
        """Insert rows, together with what else is inserted now, and wait for the commit."""
        await self._committed(None, rows)

    def pin(self) -> None:
        """Talk over one connection to the end: once it is lost, with the locks that it holds, nothing is written."""
        self._is_pinned = True

    def close(self) -> None:
        """Commit what is queued and let go. Safe to call twice."""
        if self._is_foreign:
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._wake.put(False)
        self._thread.join()
        if self._pinned is not None:
            self._pinned.close()
        self._engine.dispose()

    async def _committed(self, do: Callable[[Connection], Any] | None, rows: tuple[Any, ...] = ()) -> Any:
        """What a piece of work comes to, committed with that of all else that is ready in the loop now."""
        loop = asyncio.get_running_loop()
        work = _Work(do, rows, loop.create_future())
        if self._put(work):
            loop.call_soon(self._wake.put, True)
        return await cast("asyncio.Future[Any]", work.done)

    def _put(self, work: _Work) -> bool:
        """Queue work; false where it cannot be done any more."""
        if self._is_foreign:
            hint = "open the store in the new process"
            work.settle(error=StoreError(f"{self.place}: was opened before the process was forked", hint=hint))
            return False
        with self._lock:
            if self._is_closed:
                work.settle(error=StoreError(f"{self.place}: is closed"))
            else:
                self._queue.append(work)
            return not self._is_closed

    @property
    def _is_foreign(self) -> bool:
        """Whether the process was forked since this was opened: the thread stayed behind, and no lock is ours."""
        return os.getpid() != self._process

    def _opened(self) -> Engine:
        SCHEMA.check(self.url)
        engine = connect(self.url)
        try:
            with self.faults_in_words(), engine.begin() as connection:
                SCHEMA.migrate(connection)
        except BaseException:
            engine.dispose()
            raise
        return engine

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        if not self._is_pinned:
            with self._engine.begin() as connection:
                yield connection
            return
        if self._pinned is None:
            self._pinned = self._engine.connect()
            if self._pinned.dialect.name == "postgresql":
                with self._pinned.begin():
                    self._pinned.exec_driver_sql(_KEEPALIVES)
        if self._pinned.invalidated:
            raise StoreError(f"{self.place}: the connection that held the run's locks is lost", hint=_HINT)
        with self._pinned.begin():
            yield self._pinned

    @contextmanager
    def faults_in_words(self) -> Generator[None]:
        """A fault of the database within the block is a `StoreError` that names the place."""
        try:
            yield
        except FAULTS as error:
            raise store_error(self.url, error, _HINT) from error

    def _work(self) -> None:
        """Commit what has gathered, again and again, to the end."""
        is_open = True
        while is_open:
            is_open = self._wake.get()
            while self._queue:
                self._commit([self._queue.popleft() for _ in range(min(len(self._queue), _GROUP))])

    def _commit(self, group: list[_Work]) -> None:
        """One transaction for all; where it fails, one for each, so that a fault stays with whom it belongs to."""
        try:
            results = self._results(group)
        except Exception as error:
            if len(group) > 1 and not isinstance(error, FAULTS):
                for work in group:
                    self._commit([work])
                return
            told = store_error(self.url, error, _HINT) if isinstance(error, FAULTS) else error
            _tell([(work, None, told) for work in group])
            return
        _tell([(work, result, None) for work, result in zip(group, results, strict=True)])

    def _results(self, group: list[_Work]) -> list[Any]:
        """Do it all in one transaction; again where that met one of another process, each of which waited for both."""
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._transaction() as connection:
                    return _done(connection, group)
            except OperationalError as error:
                if getattr(error.orig, "sqlstate", None) != _DEADLOCK or not tries_left:
                    raise
                time.sleep(_PAUSE_SECONDS)  # the other one goes first
        raise AssertionError("the last try returns or raises")


_Outcome = tuple[_Work, Any, Exception | None]


def _tell(outcomes: list[_Outcome]) -> None:
    """Tell all who wait; an event loop is woken once for all of its own."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[_Outcome]] = {}
    for outcome in outcomes:
        done = outcome[0].done
        by_loop.setdefault(done.get_loop() if isinstance(done, asyncio.Future) else None, []).append(outcome)
    for loop, its in by_loop.items():
        if loop is None:
            _settle(its)
            continue
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(_settle, its)


def _settle(outcomes: Iterable[_Outcome]) -> None:
    for work, result, error in outcomes:
        work.settle(result, error)


def _done(connection: Connection, group: list[_Work]) -> list[Any]:
    """The results of the group in order; rows of one table go in together, before what might read them."""
    results: list[Any] = []
    waiting: dict[Table, list[Mapping[str, Any]]] = {}
    for work in group:
        for table, row in work.rows:
            waiting.setdefault(table, []).append(row)
        if work.do is not None:
            _insert(connection, waiting)
        results.append(None if work.do is None else work.do(connection))
    _insert(connection, waiting)
    return results


def _insert(connection: Connection, waiting: dict[Table, list[Mapping[str, Any]]]) -> None:
    for table, rows in waiting.items():
        if table.info.get("keep_first"):
            keys = [column.name for column in table.primary_key]
            rows = sorted(rows, key=itemgetter(*keys))  # in one order everywhere: so no two wait for each other
        insert_whole(connection, table, rows)
    waiting.clear()
