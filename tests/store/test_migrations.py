"""The migrations make the tables that the code has, once, and touch nothing that is not ours."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import column, create_engine, insert, select, table, text

from debate.errors import ConfigError, StoreError
from debate.evaluators.steps.prompted import PromptedSteps
from debate.files import json_text
from debate.parsing.values import JsonField, LabelMap, NumberLine, TagNumber, ValueReader
from debate.sql.connect import connect, normalize_url, without_password
from debate.store import Store
from debate.store.database import SCHEMA
from debate.store.tables import EVALUATIONS, Base
from tests.golden_cases import with_new_keys
from tests.store.first_schema import make_first_schema


def execute(url: str, statement: str) -> None:
    engine = connect(normalize_url(url))
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def make_store_of_the_first_version(url: str) -> None:
    """An empty store as 0.1.0 made it."""
    engine = connect(normalize_url(url))
    with engine.begin() as connection:
        make_first_schema(connection)
    engine.dispose()


def differences(url: str) -> list[Any]:
    """What a database has otherwise than the code."""
    engine = connect(normalize_url(url))
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    engine.dispose()
    return found


def test_the_migrations_make_the_tables_that_the_code_has(url: str) -> None:
    make_store_of_the_first_version(url)
    assert differences(url) != []
    Store(url).close()
    assert differences(url) == []


def test_a_new_store_has_the_tables_that_the_code_has(url: str) -> None:
    Store(url).close()
    assert differences(url) == []


def test_the_newest_migration_is_the_one_that_is_checked_for() -> None:
    assert max(file.name for file in (SCHEMA.folder / "versions").glob("[0-9]*.py")).startswith(SCHEMA.head)


def test_a_store_is_opened_again_as_it_is(url: str) -> None:
    with Store(url) as store:
        store.run("one", {"evaluator": "e"}).close()
    with Store(url) as store:
        assert store.runs() == ["one"]


def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    Store(url).close()
    execute(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer version"):
        Store(url)


def test_a_database_with_tables_of_the_same_name_is_left_alone(url: str) -> None:
    execute(url, "CREATE TABLE runs (id INTEGER)")
    with pytest.raises(StoreError, match="is not ours"):
        Store(url)


def test_a_migration_that_is_cut_off_leaves_the_old_schema(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import op

    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    make_store_of_the_first_version(url)
    before = differences(url)
    with monkeypatch.context() as patched:
        patched.setattr(op, "batch_alter_table", broken)
        with pytest.raises(KeyboardInterrupt):
            Store(url)
    assert len(differences(url)) == len(before)
    with Store(url) as store:
        assert store.runs() == []


def test_a_store_of_the_first_version_is_copied_and_migrated(tmp_path: Path) -> None:
    recorded = Path(__file__).parents[1] / "data" / "runs" / "vote"
    file = tmp_path / "run.sqlite"
    shutil.copy(recorded / "run.sqlite", file)
    with Store(file) as store:
        run = store.read()
        lines = [with_new_keys(json.loads(line)) for line in (recorded / "results.jsonl").read_text().splitlines()]
        assert sorted(run.result_lines()) == sorted(json_text(line) for line in lines)
        assert run.evalset_revision == 1
    assert (tmp_path / "run.sqlite.0001.bak").read_bytes()
    with closing(sqlite3.connect(file)) as connection:
        columns = connection.execute("SELECT selected, tied, margin, flipped FROM evaluations").fetchall()
        assert [(each["selected"], bool(each["tied"])) for each in lines] == [(row[0], bool(row[1])) for row in columns]
        for line, (_, _, margin, flipped) in zip(lines, columns, strict=True):
            best, second, *_ = sorted(line["scores"], reverse=True)
            assert (margin, flipped) == (pytest.approx(best - second), None)
        n_texts = "SELECT count(DISTINCT text_hash), (SELECT count(*) FROM texts) FROM calls"
        distinct, kept = connection.execute(n_texts).fetchone()
        assert distinct == kept > 0


def test_doubts_of_earlier_evaluations_are_read_in_what_they_hold(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migration: Any = import_module("debate.store.migrations.versions.0008_doubts")
    monkeypatch.setattr(migration, "_CHUNK", 2)
    held = [(run, n, scores, agreed) for run in (1, 2) for n, (scores, agreed) in enumerate(DOUBTS)]
    make_store_of_the_first_version(url)
    Store(url).close()
    before: list[Any] = [each for each in EVALUATIONS.c if each.name not in migration.DOUBTS]
    blank = {each.name: None if each.nullable else 0 for each in before}
    blank |= {"settings": "", "evaluator": "", "status": "ok", "tied": False}
    rows = [
        {**blank, "run_id": run, "position": n, "data": json_text({"scores": scores, "order_agreement": agreed})}
        for run, n, scores, agreed in held
    ]
    engine = connect(normalize_url(url))
    with engine.begin() as connection, Operations.context(MigrationContext.configure(connection)) as op:
        op.drop_index("evaluations_at_a_glance", "evaluations")
        for name in migration.DOUBTS:
            op.drop_column("evaluations", name)
        op.create_index("evaluations_at_a_glance", "evaluations", ["run_id"])
        here: list[Any] = [column(each.name) for each in before]
        connection.execute(insert(table("evaluations", *here)), rows)
        connection.execute(text("UPDATE alembic_version SET version_num = '0007'"))
    engine.dispose()
    Store(url).close()
    assert differences(url) == []
    with engine.connect() as connection:
        columns = EVALUATIONS.c
        query = select(columns.run_id, columns.position, columns.unscored, columns.orders_disagree)
        found = connection.execute(query.order_by(columns.run_id, columns.position)).all()
    engine.dispose()
    assert [tuple(each) for each in found] == [
        (run, n, None in scores, agreed is False) for run, n, scores, agreed in held
    ]


DOUBTS: list[tuple[list[float | None], bool | None]] = [
    ([1.0, 2.0], None), ([None, 2.0], True), ([3.0], False), ([None, None], False), ([1.0, 1.0], True)
]  # fmt: skip


def test_labels_of_an_earlier_store_are_read_anew(tmp_path: Path) -> None:
    file, labels = tmp_path / "run.sqlite", ['"B"', "[1.0, 0]", '"nobody knows"']
    shutil.copy(Path(__file__).parents[1] / "data" / "runs" / "vote" / "run.sqlite", file)
    Store(file).close()
    with closing(sqlite3.connect(file)) as connection, connection:  # as the second schema had it
        connection.execute("CREATE INDEX ix_evaluations_status ON evaluations (status)")
        connection.execute("DROP INDEX evaluations_at_a_glance")
        connection.execute("DROP INDEX task_ids")
        connection.execute("ALTER TABLE evaluations DROP COLUMN verdict")
        connection.execute("ALTER TABLE evaluations DROP COLUMN chance")
        connection.execute("ALTER TABLE evaluations ADD COLUMN best INTEGER")
        later = {"calls": ["distributions", "thinking_hash", "thinking_tokens"], "replies": ["thinking_hash"]}
        for table, columns in {
            **later,
            "evaluations": ["cells", "abstained", "thinking_tokens", "unscored", "orders_disagree"],
        }.items():
            for column in columns:
                connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("DROP TABLE shards")
        connection.execute("DROP TABLE workers")
        connection.execute("UPDATE alembic_version SET version_num = '0002'")
        for position, label in enumerate(labels):
            changed = "UPDATE tasks SET data = json_set(data, '$.metadata', json(?)) WHERE position = ?"
            connection.execute(changed, (f'{{"best": {label}, "group": "g"}}', position))
    with Store(file) as store:
        found = list(store.read().results())
        accuracy = store.read().totals().accuracy
    assert differences(f"sqlite:///{file}") == []
    assert [task.best for task, _ in found] == [(1,), (0, 1), ()]
    assert found[2][0].metadata == {"unreadable_best": "nobody knows", "group": "g"}
    verdicts = [evaluation.verdict(task.best) for task, evaluation in found]
    assert (accuracy.labeled, accuracy.right) == (2, verdicts.count("right"))
    n = [len(task.candidates) for task, _ in found]
    assert accuracy.chance == pytest.approx((1 / n[0] + 2 / n[1]) / 2)


@pytest.mark.parametrize(
    ("reader", "recorded"),
    [
        (JsonField("score", -100, 100), "JsonField(key='score', low=-100, high=100)"),
        (TagNumber("score", 0.0, 1.0), "TagNumber(tag='score', low=0.0, high=1.0)"),
        (NumberLine(), "NumberLine(low=0.0, high=10.0)"),
        (LabelMap({"sure": 20, "no": 0.5}), "LabelMap(values={'sure': 20, 'no': 0.5}, exact=False)"),
        (PromptedSteps.x1().reader, "x1"),
    ],
)
def test_a_reader_recorded_by_its_repr_is_that_of_today(reader: ValueReader, recorded: str) -> None:
    migration: Any = import_module("debate.store.migrations.versions.0002_texts")
    found = migration._as_now({"reader": recorded})["reader"]
    assert json.dumps(found, sort_keys=True) == json.dumps(reader.describe(), sort_keys=True)


def test_a_reader_whose_rule_is_gone_stays_as_it_was_recorded() -> None:
    migration: Any = import_module("debate.store.migrations.versions.0002_texts")
    exact = "LabelMap(values={'a': 1, 'b': 2}, exact=True)"
    assert migration._as_now({"reader": exact, "x": "other"}) == {"reader": exact, "x": "other"}


def test_a_model_that_is_called_as_a_reader_was_recorded_keeps_its_name() -> None:
    migration: Any = import_module("debate.store.migrations.versions.0002_texts")
    models = {"models": {"judge": "x1", "NumberLine(low=0.0, high=10.0)": "y"}}
    assert migration._as_now(models) == models


def test_templates_that_print_the_same_are_renamed_in_the_identity_of_runs(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration: Any = import_module("debate.store.migrations.versions.0005_distributions")
    monkeypatch.setattr(migration, "TEMPLATES", {"old": "new"})
    with Store(url) as store:
        store.run("r", {"evaluator": {"templates": {"debate": "old"}, "more": ["old", "own", 3, None]}}).close()
    engine = connect(normalize_url(url))
    with engine.begin() as connection, Operations.context(MigrationContext.configure(connection)):
        migration._rename_templates()
    engine.dispose()
    with Store(url) as store:
        found = store.read().identity["evaluator"]
    assert found == {"templates": {"debate": "new"}, "more": ["new", "own", 3, None]}


def test_a_damaged_store_of_the_first_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    shutil.copy(Path(__file__).parents[1] / "data" / "runs" / "vote" / "run.sqlite", file)
    execute(f"sqlite:///{file}", """UPDATE evaluations SET data = '{"members": []}' WHERE position = 1""")
    with pytest.raises(StoreError, match="cannot be migrated: task_id: field required"):
        Store(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
        assert connection.execute("SELECT take FROM calls").fetchone() == (0,)


@pytest.mark.parametrize("url_", ["mysql://host/name", "redis://x", "://"])
def test_an_address_of_no_database_we_know_is_refused(url_: str) -> None:
    with pytest.raises(ConfigError, match="store"):
        Store(url_)


def test_a_file_that_is_no_database_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(StoreError, match=r"x\.sqlite: file is not a database"):
        Store(tmp_path / "x.sqlite")


def test_a_server_that_is_not_there_is_told_without_its_password() -> None:
    with pytest.raises(StoreError) as caught:
        Store("postgresql://me:secret@127.0.0.1:9/x")
    assert "secret" not in str(caught.value)
    assert without_password("postgresql://me:secret@h/x") == "postgresql://me@h/x"


def test_a_sqlite_store_is_in_wal_mode(tmp_path: Path) -> None:
    Store(tmp_path / "x.sqlite").close()
    with create_engine(f"sqlite:///{tmp_path / 'x.sqlite'}").connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
