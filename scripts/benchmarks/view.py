"""Measure what `debate view` takes on a large store: the first page, filters, the next page, one debate.

    scripts/bench view FOLDER [--evaluations 1000000] [--server URL]

A store in FOLDER, or in a database of its own on the PostgreSQL server of `--server`, is filled with copies of one
debate, whose verdicts, groups and statuses differ; one in FOLDER that is there already is taken as it is. Then
`debate view` serves it in a process of its own, and each question is asked twice over HTTP.

    first ms, second ms   of each question, from the request to the last byte; the second to be below 300
    rare                  a filter that one task in 50,000 passes, which are all on one page
    none                  filters that no task passes together: all of them are looked at
    peak MiB              of the server, to be below 200
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import Engine as Database
from sqlalchemy import String, case, cast, insert, literal_column, select

from benchmarks.fleet import administer
from debate import DebateEvaluator, Engine, Task
from debate.backends import Scripted
from debate.sql.connect import connect, normalize_url
from debate.store import Store
from debate.store.tables import EVALUATIONS, TASKS
from debate.testing import reply_for

RUN = "large"
_RARE = 50_000


def fill(store: str, evaluations: int) -> None:
    """Make one debate, and double what there is until it is enough."""
    task = Task("Which answer is right? " * 20, ["The first one. " * 20, "The second one. " * 20], "task 0")
    with Store(store) as opened, Engine(Scripted(reply_for), store=opened) as engine:
        engine.evaluate_batch([task], DebateEvaluator("general", rounds=2, convergence=None), run=RUN)
    database = connect(normalize_url(store))
    there = 1
    while there < evaluations:
        double(database, there, min(there, evaluations - there))
        there *= 2
    tidy(database)
    database.dispose()


def double(database: Database, there: int, more: int) -> None:
    """Copy the first so many tasks and their evaluations, with other verdicts, groups and statuses."""
    with database.begin() as connection:
        for table in (TASKS, EVALUATIONS):
            position = table.c.position + literal_column(str(there))
            new = {"position": position, **(_of_a_task(position) if table is TASKS else _of_an_evaluation(position))}
            copied = select(*(new.get(each.name, each) for each in table.c)).where(table.c.position < more)
            connection.execute(insert(table).from_select([each.name for each in table.c], copied))


def _of_a_task(position: Any) -> dict[str, Any]:
    return {"task_id": literal_column("'task '").concat(cast(position, String))}


def _of_an_evaluation(position: Any) -> dict[str, Any]:
    return {
        "verdict": case((position % 3 == 0, "wrong"), else_="right"),
        "task_group": case((position % 2 == 0, "even"), else_="odd"),
        "status": case((position % _RARE == _RARE - 1, "partial"), else_="ok"),
    }


def tidy(database: Database) -> None:
    """What a server does by itself after many inserts; a SQLite file has nothing of the kind."""
    if database.dialect.name == "postgresql":
        with database.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")


def questions(evaluations: int) -> dict[str, str]:
    """What a reader asks, as the page does."""
    middle = evaluations // 2

    def rows(**query: Any) -> str:
        return f"rows?{urlencode({'run': RUN, 'limit': 100, **query})}"

    return {
        "list of runs": "runs?",
        "how much they hold": "sizes?",
        "first page": rows(),
        "next page, from the middle": rows(after=middle),
        "filter: wrong": rows(f="wrong"),
        "filter: wrong, odd, from the middle": rows(f="wrong", g="odd", after=middle),
        "filter: rare": rows(f="partial"),
        "filter: no candidate unscored": rows(f="unscored"),
        "filter: none": rows(f="partial,wrong", g="even"),
        "search of a whole id": rows(q=f"task {middle}", exact="yes"),
        "search of a part of ids": rows(q=f"ask {middle}", exact="no"),
        "search of a part, filter: wrong": rows(q=f"Task {middle}", f="wrong"),
        "search of all ids, filter: rare": rows(q="task", f="partial"),
        "one debate": f"one?{urlencode({'run': RUN, 'task': f'task {middle}'})}",
        "progress": f"progress?run={RUN}",
        "all counts": f"counts?run={RUN}",
        "all figures": f"figures?run={RUN}",
    }


def measured(url: str) -> float:
    """Milliseconds until the answer is there."""
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=600) as answer:
        json.load(answer)
    return 1000 * (time.perf_counter() - began)


def peak_of(process: int) -> float:
    """Peak resident memory of a process, in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def main() -> None:
    """Fill, serve, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    parser.add_argument("--server")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    store = str(options.folder / "view.sqlite")
    if options.server:
        administer(options.server, "CREATE DATABASE debate_view")
        store = normalize_url(options.server).set(database="debate_view").render_as_string(hide_password=False)
    if options.server or not Path(store).exists():
        began = time.perf_counter()
        fill(store, options.evaluations)
        print(f"filled in {time.perf_counter() - began:.0f} s", flush=True)
    command = [sys.executable, "-u", "-m", "debate", "view", store, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        print(f"{'':<36} first ms  second ms")
        for name, path in questions(options.evaluations).items():
            first, second = (measured(f"{url}api/{path}") for _ in range(2))
            print(f"{name:<36} {first:8,.0f}   {second:8,.0f}", flush=True)
        print(f"peak MiB {peak_of(server.pid):.0f}")
        server.terminate()
    if options.server:
        administer(options.server, "DROP DATABASE debate_view")


if __name__ == "__main__":
    main()
