"""The benchmarks: each is listed and has its help; short runs of the one that kills runs and of chaos."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.scripts_loader import REPOSITORY

NAMES = sorted(path.stem for path in (REPOSITORY / "scripts" / "benchmarks").glob("[a-z]*.py"))


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPOSITORY / "scripts" / "bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_without_a_name_all_benchmarks_are_listed_with_a_line_each() -> None:
    done = bench()
    assert done.returncode == 0, done.stderr
    listed = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("    ")]
    assert [name for name, *_ in listed if name in NAMES] == NAMES
    assert all(text.endswith(".") for name, text in listed if name in NAMES)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    done = bench("speed")
    assert done.returncode == 2
    assert f"hint: one of {', '.join(NAMES)}" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_has_its_help(name: str) -> None:
    done = bench(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"usage: bench {name}" in done.stdout
    assert f"scripts/bench {name}" in done.stdout


def test_killed_runs_are_completed_by_the_same_command_and_pay_for_nothing_twice() -> None:
    """A short form of what has its figures in the benchmark."""
    done = bench("crashes", "--runs", "3", "--double", "2", "--debates", "25", "--at-once", "1", "--seed", "7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "finished, complete, same results         5 of 5" in done.stdout
    assert "killed                                   7 times" in done.stdout


def test_no_evaluation_is_lost_and_nothing_hangs_when_everything_around_the_engine_misbehaves() -> None:
    """A short form of what has its figures in the benchmark, in at most twenty processes."""
    done = bench("chaos", "--rounds", "150", "--per-process", "25", "--seed", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rounds             150 of 150" in done.stdout
    assert "hangs, deaths      0" in done.stdout


def test_a_round_of_chaos_is_drawn_from_its_seed_and_number_alone() -> None:
    drawn = [bench("chaos", "--seed", "3", "--round", "11").stdout.splitlines()[0] for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert drawn[0].startswith("Plan(seed=3, number=11")
    assert drawn[0] != bench("chaos", "--seed", "3", "--round", "12").stdout.splitlines()[0]
