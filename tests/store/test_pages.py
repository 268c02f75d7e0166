"""Pages of a run: what is asked for and nothing else, in order, and without a look into the wide rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from sqlalchemy import event, insert

from debate.sql.connect import connect, normalize_url
from debate.store import Store, pages
from debate.store.pages import Asked, Searches, page
from debate.store.tables import EVALUATIONS, RUNS, TASKS

N = 60
VERDICTS, STATUSES, GROUPS, STOPS = ("right", "wrong", None), ("ok", "ok", "partial", "failed"), ("a", None), ("x", "y")


def task_id(position: int) -> str:
    return ("Task", "É", "100%", "a_b")[position % 4] + f" {position}"


def evaluation(position: int) -> dict[str, Any]:
    """A row; every seventh task has none."""
    blank = {each.name: None if each.nullable else 0 for each in EVALUATIONS.c}
    asked = {
        "status": STATUSES[position % 4],
        "verdict": VERDICTS[position % 3],
        "selected": None if position % 5 == 0 else 1,
        "tied": position % 2 == 0,
        "flipped": (True, False, None)[position % 3],
        "unscored": position % 4 == 1,
        "orders_disagree": position % 6 == 0,
        "rounds": position // 4 % 3,
        "task_group": GROUPS[position // 8 % 2],
        "stop_reason": STOPS[position // 16 % 2],
    }
    return {**blank, "run_id": 1, "position": position, "settings": "", "evaluator": "", "data": "{}", **asked}


def task(position: int) -> dict[str, Any]:
    """A row; the first ten are of the first revision alone."""
    of_it: dict[str, Any] = {"content_hash": "", "data": {}, "place": None, "retry_generation": 0, "reopened": None}
    revision = 1 if position < 10 else 2
    return {"run_id": 1, "position": position, "task_id": task_id(position), "evalset_revision": revision, **of_it}


ROWS = {n: evaluation(n) for n in range(N) if n % 7}
HOLDS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "wrong": lambda row: row["verdict"] == "wrong",
    "unchosen": lambda row: row["selected"] is None,
    "partial": lambda row: row["status"] == "partial",
    "tied": lambda row: row["tied"],
    "flipped": lambda row: row["flipped"] is True,
    "unscored": lambda row: row["unscored"],
    "order": lambda row: row["orders_disagree"],
}
ASKED = [
    Asked(frozenset(questions), group, stop, rounds, search, after=after, limit=limit)
    for questions, group, (stop, rounds), search, (after, limit) in product(
        ((), ("wrong",), ("partial", "flipped"), ("unscored", "tied"), ("order",)),
        (None, ""),
        ((None, None), ("y", None), (None, 0)),
        ("", "1", "tASK", "É", "0%", "_"),
        ((-1, 100), (20, 3)),
    )
]


@pytest.fixture
def filled(url: str) -> Iterator[Any]:
    """A connection to a store of one run."""
    Store(url).close()
    engine = connect(normalize_url(url))
    with engine.begin() as connection:
        about: dict[str, Any] = {"identity": {}, "seed": 0, "today": "", "about": {}, "holder": None}
        connection.execute(insert(RUNS), {"id": 1, "name": "r", "created_at": 0.0, **about})
        connection.execute(insert(TASKS), [task(n) for n in range(N)])
        connection.execute(insert(EVALUATIONS), [*ROWS.values()])
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def wanted(asked: Asked, revision: int) -> list[int]:
    """The positions of a page, one row at a time."""
    found = [
        n
        for n, row in ROWS.items()
        if n > asked.after
        and (revision < 2 or n >= 10)
        and all(HOLDS[name](row) for name in asked.questions)
        and (asked.group is None or (row["task_group"] or "") == asked.group)
        and asked.stop in (None, row["stop_reason"])
        and asked.rounds in (None, row["rounds"])
        and asked.search.lower() in task_id(n).lower()
    ]
    return found[: asked.limit]


@pytest.fixture(params=[2, 500])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many tasks a search may find for them to be taken one by one."""
    monkeypatch.setattr(pages, "_FEW", request.param)
    return request.param


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("revision", [1, 2])
def test_a_page_has_what_is_asked_for_however_it_is_narrowed(filled: Any, revision: int) -> None:
    for asked in ASKED:
        found = page(filled, 1, revision, asked)
        assert [each.position for each in found] == wanted(asked, revision), asked
        assert [each.task_id for each in found] == [task_id(each.position) for each in found]


def test_a_task_that_is_searched_for_by_its_whole_id_is_found_apart_from_those_that_hold_it(filled: Any) -> None:
    for search, exact in (("Task 4", [4]), ("a_b 3", [3]), ("task 4", []), ("Task", []), ("Task 0", [])):
        found = page(filled, 1, 1, Asked(search=search, exact=True))
        assert [each.position for each in found] == exact
        others = page(filled, 1, 1, Asked(search=search, exact=False))
        both = page(filled, 1, 1, Asked(search=search))
        assert [each.position for each in both] == sorted([*exact, *(each.position for each in others)])
    assert page(filled, 1, 1, Asked(search="Task 4", exact=True, after=4)) == []
    assert page(filled, 1, 2, Asked(search="Task 4", exact=True)) == []


def test_a_search_that_is_repeated_looks_through_new_tasks_alone(filled: Any) -> None:
    searches, statements = Searches(), list[tuple[str, Any]]()
    first = page(filled, 1, 1, Asked(search="SK 4"), searches)
    assert [each.position for each in first] == [4, 40, 44, 48]
    filled.execute(insert(TASKS), task(62) | {"position": N, "task_id": "new task 4"})
    filled.execute(insert(EVALUATIONS), evaluation(N))
    event.listen(filled, "before_cursor_execute", lambda *event: statements.append(event[2:4]))
    again = page(filled, 1, 1, Asked(search="SK 4"), searches)
    assert [each.position for each in again] == [4, 40, 44, 48, N]
    looked = [parameters for statement, parameters in statements if "LIKE" in statement]
    assert len(looked) == 1
    assert N in (looked[0].values() if isinstance(looked[0], dict) else looked[0])
    statements.clear()
    assert [each.position for each in page(filled, 1, 1, Asked(search="SK 4", after=40), searches)] == [44, 48, N]
    assert not any("LIKE" in statement for statement, _ in statements)


def test_few_searches_are_remembered(filled: Any) -> None:
    searches = Searches()
    for n in range(100):
        page(filled, 1, 1, Asked(search=f"Task {n}"), searches)
    assert len(searches) == 64


def test_a_search_that_finds_nothing_finds_nothing(filled: Any) -> None:
    assert page(filled, 1, 1, Asked(search="nothing")) == []


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("few")
def test_the_rows_of_a_file_are_looked_at_only_once_they_are_chosen(filled: Any) -> None:
    statements = list[tuple[str, Any]]()
    event.listen(filled, "before_cursor_execute", lambda *event: statements.append(event[2:4]))
    for asked in ASKED:
        statements.clear()
        page(filled, 1, 1, asked)
        for statement, parameters in [
            each for each in statements if " IN (" not in each[0] and "FROM runs" not in each[0]
        ]:
            plan = filled.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = [row.detail for row in plan if "SEARCH" in row.detail or "SCAN" in row.detail]
            assert all("USING COVERING INDEX" in step for step in steps), (asked, steps)
