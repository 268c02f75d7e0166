"""`debate run` again, `debate resume`, `--retry-failed`, `--fork`, budgets, caches and exit codes, over a server."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from debate.testing.fake_server import FakeServer, every, failing, properly

N_TASKS, N_AGENTS = 3, 3


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture
def evalset(tmp_path: Path) -> Path:
    tasks = [{"id": f"t{n}", "x": f"Question {n}?", "candidates": ["a", "b"]} for n in range(N_TASKS)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    return tmp_path / "tasks.jsonl"


def debate(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "debate", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def run(server: FakeServer, evalset: Path, *more: object) -> subprocess.CompletedProcess[str]:
    out = ("--out", evalset.parent / "out") if "--out" not in more else ()
    where = ("--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge")
    return debate("run", evalset, *where, *out, "--rounds", "1", "--convergence", "none", *more)


def results(out: Path) -> dict[str, dict[str, Any]]:
    lines = (out / "results.jsonl").read_text().splitlines()
    return {each["task_id"]: each for each in map(json.loads, lines)}


def test_a_finished_run_says_so_and_asks_nothing(server: FakeServer, evalset: Path) -> None:
    assert run(server, evalset).returncode == 0
    asked = len(server.requests)
    again = run(server, evalset)
    assert (again.returncode, len(server.requests)) == (0, asked)
    assert "3 of 3 tasks have a result already" in again.stderr
    assert "loading" not in again.stderr
    assert "tasks    3 = 3 ok + 0 partial + 0 failed" in again.stdout
    assert "9 recorded = 9 replies + 0 failed" in again.stdout


def test_other_weights_make_the_results_anew_without_a_call(server: FakeServer, evalset: Path) -> None:
    run(server, evalset)
    before, asked = results(evalset.parent / "out"), len(server.requests)
    (evalset.parent / "w.yaml").write_text("weights: {accuracy: 0}\n")
    again = run(server, evalset, "--config", evalset.parent / "w.yaml")
    after = results(evalset.parent / "out")
    assert (again.returncode, len(server.requests)) == (0, asked)
    assert "3 results are made anew" in again.stderr
    for name, each in after.items():
        assert each["tensor"] == before[name]["tensor"]
        assert each["scores"] != before[name]["scores"]


def test_where_the_articles_method_is_chosen_its_highest_score_stands_beside_the_scores(
    server: FakeServer, evalset: Path
) -> None:
    weighted_mean = run(server, evalset, "--profile", "judge")
    assert " of 6.67" not in weighted_mean.stdout
    article = run(server, evalset, "--profile", "judge", "--method", "article")
    assert article.stdout.count(" of 6.67") == 1  # said once, in the head of the table
    assert "of 6.67" in debate("show", evalset.parent / "out", "t0").stdout


def test_a_run_is_resumed_without_its_eval_set(server: FakeServer, evalset: Path) -> None:
    assert run(server, evalset, "--max-tokens", "1").returncode == 3
    evalset.unlink()
    done = debate("resume", evalset.parent / "out", "--max-tokens", "1000000")
    assert done.returncode == 0, done.stderr
    assert sorted(results(evalset.parent / "out")) == ["t0", "t1", "t2"]


def test_results_that_were_lost_come_back_from_the_store(server: FakeServer, evalset: Path) -> None:
    run(server, evalset)
    out, asked = evalset.parent / "out", len(server.requests)
    before = results(out)
    (out / "results.jsonl").unlink()
    assert run(server, evalset).returncode == 0
    assert (results(out), len(server.requests)) == (before, asked)


def test_a_changed_prompt_is_refused_with_the_difference_or_forked(server: FakeServer, evalset: Path) -> None:
    run(server, evalset)
    asked = len(server.requests)
    refused = run(server, evalset, "--mode", "simultaneous")
    assert (refused.returncode, len(server.requests)) == (2, asked)
    assert "mode: sequential -> simultaneous" in refused.stderr
    assert "--fork" in refused.stderr
    forked = run(server, evalset, "--mode", "simultaneous", "--fork")
    assert forked.returncode == 0, forked.stderr
    # What the first agent said it was asked without the others' words.
    assert len(server.requests) - asked == N_TASKS * (N_AGENTS - 1)
    assert sorted(results(evalset.parent / "out-2")) == ["t0", "t1", "t2"]


def test_what_failed_is_asked_again_on_request_alone(server: FakeServer, evalset: Path) -> None:
    server.behavior = every(4, failing(400, "no such thing"))
    assert run(server, evalset).returncode == 3
    failures = sum(len(each["failures"]) for each in results(evalset.parent / "out").values())
    server.behavior = properly
    asked = len(server.requests)
    assert (run(server, evalset).returncode, len(server.requests)) == (3, asked)
    assert run(server, evalset, "--retry-failed").returncode == 0
    assert len(server.requests) - asked == failures > 0


def test_a_cache_serves_a_second_run_of_the_same_store(server: FakeServer, evalset: Path) -> None:
    shared = ("--store", evalset.parent / "shared.sqlite", "--cache", "1h")
    assert run(server, evalset, *shared).returncode == 0
    asked = len(server.requests)
    second = run(server, evalset, *shared, "--out", evalset.parent / "other")
    assert (second.returncode, len(server.requests)) == (0, asked)
    assert "9 from the cache" in second.stdout
    assert "9" in debate("cache", "stats", evalset.parent / "shared.sqlite").stdout
    assert "9 replies forgotten" in debate("cache", "clear", evalset.parent / "other").stdout


def test_a_store_that_cannot_be_written_ends_the_run_with_its_path(server: FakeServer, evalset: Path) -> None:
    (evalset.parent / "file").write_text("")
    done = run(server, evalset, "--store", evalset.parent / "file" / "s.sqlite")
    assert done.returncode == 5
    assert "file: its folder cannot be made" in done.stderr or "s.sqlite" in done.stderr


def test_two_processes_started_at_once_share_a_run_and_ask_for_everything_once(evalset: Path) -> None:
    for attempt in range(int(os.environ.get("DEBATE_RACES", "2"))):
        _race(evalset, evalset.parent / f"race{attempt}")


def _race(evalset: Path, out: Path) -> None:
    with FakeServer() as server:
        arguments = ["--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge", "--out", str(out)]
        command = [sys.executable, "-m", "debate", "run", str(evalset), *arguments, "--rounds", "1"]
        both = [subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert all(re.search("tasks +3 = 3 ok", summary) for summary, _ in said), said
    assert len(server.requests) == N_TASKS * N_AGENTS
    assert sorted(results(out)) == ["t0", "t1", "t2"]
    with closing(sqlite3.connect(out / "run.sqlite")) as connection:
        turns, tasks = connection.execute("SELECT count(*), count(DISTINCT position) FROM turns").fetchone()
    assert (turns, tasks) == (N_TASKS * N_AGENTS, N_TASKS)


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    done = debate("resume", tmp_path)
    assert done.returncode == 2
    assert "holds no run" in done.stderr


def test_accuracy_is_said_by_group_where_tasks_name_one(server: FakeServer, evalset: Path) -> None:
    groups = ["small", "small", "large", "large"]
    tasks = [
        {"id": f"t{n}", "x": "Q?", "candidates": ["a", "b"], "metadata": {"group": group, "best": n % 2}}
        for n, group in enumerate(groups)
    ]
    evalset.write_text("\n".join(map(json.dumps, [*tasks, {"id": "u", "x": "Q?", "candidates": ["a", "b"]}])))
    done = run(server, evalset)
    found = results(evalset.parent / "out")
    right = {group: 0 for group in groups}
    for n, group in enumerate(groups):
        right[group] += found[f"t{n}"]["selected"] == n % 2 and not found[f"t{n}"]["tied"]
    for group, count in right.items():
        assert f"- {group}" in done.stdout
        assert re.search(rf"{count / 2:.0%} \(\d+ to \d+\), {count} of 2 right.*, chance 50%: {group}", done.stdout)
    assert "no group" in done.stdout
    assert done.stdout.index("- small") < done.stdout.index("t0") < done.stdout.index("- large")
