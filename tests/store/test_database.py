"""Databases that are odd: somebody else's, damaged, read-only, with passwords in their address: a sentence for each."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select, text

from debate import CallbackEvaluator, Engine, Scale, Task
from debate.backends import Scripted
from debate.errors import ConfigError, DebateError, StoreError
from debate.memory import MemoryStore
from debate.sql.connect import connect, described, normalize_url, without_password
from debate.sql.types import insert_new
from debate.store import Store
from debate.store.database import Database
from debate.store.tables import TEXTS
from debate.testing import reply_for
from tests.small_flows import debates, tasks


def recorded(path: Path) -> Path:
    with Engine(Scripted(reply_for), store=str(path), seed=1) as engine:
        engine.evaluate_batch(tasks(3), debates(), run="r")
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("store") / "s.sqlite")


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "s.sqlite"))


def read_all(path: Path) -> int:
    """Read everything of the run, go on with it, and read it again."""
    with Store(path) as store:
        store.read("r").totals()
        found = len(list(store.read("r").results())) + len(store.read("r").evaluated())
    with Engine(Scripted(reply_for), store=str(path), seed=1) as engine:
        engine.evaluate_batch(tasks(3), debates(weights={"truth": 0.25}), run="r")
    return found


# ---- somebody else's


def foreign(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE photos (id INTEGER); INSERT INTO photos VALUES (1)")
    return path.read_bytes()


def test_a_database_of_something_else_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    before = foreign(path)
    for opened in (Store, MemoryStore):
        with pytest.raises(StoreError, match=r"photos\.sqlite: is a database of something else"):
            opened(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["photos.sqlite"]


def test_a_database_with_migrations_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    foreign(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE alembic_version (version_num); INSERT INTO alembic_version VALUES ('a1')"
        )
    with pytest.raises(StoreError, match=r"app\.sqlite: is a database of something else"):
        Store(path)


def test_runs_and_memories_may_share_a_database(tmp_path: Path) -> None:
    for first, second in ((Store, MemoryStore), (MemoryStore, Store)):
        path = tmp_path / f"{first.__name__}.sqlite"
        for opened in (first, second, first):
            opened(path).close()


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").touch()
    Store(tmp_path / "s.sqlite").close()


@pytest.mark.parametrize(
    ("revision", "problem"),
    [
        ("zzz", "has a schema that no version has: 'zzz'"),
        ("0000", "has a schema that no version has: '0000'"),
        ("0", "has a schema that no version has: '0'"),
        ("9999", "was written by a newer version"),
    ],
)
def test_a_schema_that_is_not_known_is_told(path: Path, revision: str, problem: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    with pytest.raises(StoreError, match=problem):
        Store(path)


# ---- damaged


@pytest.mark.parametrize("value", ["{", "null", "3", "[]", "{}", '"\\ud800"', '{"candidates": []}', "[" * 100_000])
@pytest.mark.parametrize(("table", "column"), [("tasks", "data"), ("evaluations", "data"), ("runs", "identity")])
def test_what_is_damaged_in_a_table_is_told_in_a_sentence(path: Path, table: str, column: str, value: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
    with pytest.raises(DebateError) as caught:
        read_all(path)
    assert "s.sqlite: " in str(caught.value) or "was made with other settings" in str(caught.value)


def test_a_recorded_answer_that_is_damaged_is_told_in_a_sentence(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE texts SET data = x'00ff', is_compressed = 1")
        connection.execute("DELETE FROM evaluations")
    with pytest.raises(StoreError, match=r"s\.sqlite: an answer is damaged"):
        read_all(path)


@pytest.mark.parametrize("seed", range(20))
def test_a_rotten_page_is_told_in_a_sentence_or_holds_nothing(path: Path, seed: int) -> None:
    draw, data = random.Random(seed), bytearray(path.read_bytes())
    page = draw.randrange(1, len(data) // 4096)  # the first one says what the tables are
    data[page * 4096 : (page + 1) * 4096] = draw.randbytes(4096)
    path.write_bytes(data)
    try:
        read_all(path)
    except StoreError as error:
        assert "s.sqlite: " in str(error)


def test_a_damaged_store_says_nothing_of_the_disk(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE evaluations SET data = '{'")
    with pytest.raises(StoreError) as caught:
        read_all(path)
    assert "free" not in str(caught.value)
    assert "a copy from before" in str(caught.value)


# ---- for its owner, or to look at


def test_a_store_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Store(tmp_path / "s.sqlite"):
            assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}
    finally:
        os.umask(before)


READ_ONLY = """
import os, sys
from pathlib import Path
from debate.cli import main

def call(*arguments):
    sys.argv = ["debate", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0

folder, elsewhere, uid = sys.argv[1:]
calls = (["show", folder], ["show", folder, "--list"], ["export", folder, "--to", "preferences", "--out", elsewhere])
assert [call(*each) for each in calls] == [0, 0, 0]  # with everything imported
os.chmod(elsewhere, 0o777)
for each in Path(elsewhere).iterdir():
    each.unlink()
os.setuid(int(uid))
assert not os.access(folder, os.W_OK)
sys.exit([call(*each) for each in calls] != [0, 0, 0])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("was_killed", [False, True])
def test_a_run_that_cannot_be_written_is_shown_and_exported(*, was_killed: bool) -> None:
    with tempfile.TemporaryDirectory() as made:  # pytest's own folders are root's alone
        top = Path(made)
        (top / "elsewhere").mkdir()
        folder = _run(top / "out", is_killed=was_killed)
        for each in (top, folder, *folder.iterdir()):
            each.chmod(0o755 if each.is_dir() else 0o644)
        command = [sys.executable, "-c", READ_ONLY, str(folder), str(top / "elsewhere"), "65534"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert list((top / "elsewhere").iterdir())


def _one(x: str, answer: str) -> float:
    return 1.0


def _run(folder: Path, *, is_killed: bool) -> Path:
    """The folder of a run; where it was killed, SQLite's log is still beside the store."""
    folder.mkdir()
    exact = CallbackEvaluator(_one, scale=Scale(0, 1))
    (folder / "run.json").write_text('{"run": "r", "store": null, "settings": {}, "evalset": null}')
    with Store(folder / "run.sqlite") as store, Engine(Scripted(reply_for), store=store) as engine:
        engine.evaluate_batch([Task("x", ["a", "b"], "t")], exact, run="r")
        killed = shutil.copytree(folder, folder.with_name("killed"))
    assert (killed / "run.sqlite-wal").stat().st_size
    return killed if is_killed else folder


# ---- passwords


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:SECRET@h/x",
        "postgresql://u@h/x?password=SECRET",
        "postgresql://u@h/x?sslmode=require&password=SECRET&sslpassword=SECRET",
        "postgresql+psycopg://u@h/x?password=SECRET&password=SECRET",
    ],
)
def test_a_password_is_hidden_wherever_it_stands_in_an_address(url: str) -> None:
    assert "SECRET" not in described(normalize_url(url)) + without_password(url)
    assert ("sslmode=require" in without_password(url)) == ("sslmode" in url)


@pytest.mark.parametrize(
    "url", ["postgresql://u:SECRET@h:bad/x", "://u:SECRET@h", "postgresql://u@h:bad/x?password=SECRET"]
)
def test_an_address_that_cannot_be_read_is_refused_without_being_shown(url: str) -> None:
    for read in (normalize_url, without_password):
        with pytest.raises(ConfigError, match="is not the address of a database") as caught:
            read(url)
        assert "SECRET" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_without_the_password_in_its_query() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        Store("postgresql://u@127.0.0.1:1/x?password=SECRET&connect_timeout=1")
    assert "SECRET" not in str(caught.value)
    connect(normalize_url("sqlite://")).dispose()


def test_transactions_that_wait_for_each_other_are_tried_again(url: str) -> None:
    """Of two workers that insert the same texts in opposite orders, a server ends one with an error."""
    if url.startswith("sqlite"):
        pytest.skip("a file has one writer at a time")
    rows = [{"hash": name, "data": b"", "is_compressed": False} for name in "ab"]
    both_began, tries = threading.Barrier(2), [0, 0]

    def insert(number: int, connection: Connection) -> None:
        tries[number] += 1
        first, second = rows if number else rows[::-1]
        insert_new(connection, TEXTS, [first])
        if tries[number] == 1:
            both_began.wait(10)
        insert_new(connection, TEXTS, [second])

    with closing(Database(url)) as one, closing(Database(url)) as two:
        waiting = [each.submit(partial(insert, number)) for number, each in enumerate((one, two))]
        for each in waiting:
            each.result(30)
        assert min(tries) == 1
        assert max(tries) > 1
        assert one.run(lambda connection: connection.execute(select(func.count()).select_from(TEXTS)).scalar()) == 2


def test_a_pinned_database_that_lost_its_connection_writes_nothing_any_more(url: str) -> None:
    if url.startswith("sqlite"):
        pytest.skip("a file has no connection that could be cut")
    with closing(Database(url)) as pinned, closing(Database(url)) as other:
        pinned.pin()
        process = pinned.run(lambda connection: connection.execute(text("SELECT pg_backend_pid()")).scalar())
        keepalive = pinned.run(lambda connection: connection.execute(text("SHOW tcp_keepalives_idle")).scalar())
        assert keepalive == "30"
        other.run(lambda connection: connection.execute(text(f"SELECT pg_terminate_backend({process})")))
        for _ in range(3):
            with pytest.raises(StoreError, match="run the same command again"):
                pinned.run(lambda connection: connection.execute(text("DELETE FROM texts")))
