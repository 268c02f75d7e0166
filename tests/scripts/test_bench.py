"""The benchmarks: each is listed and has its help; short runs of some."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import readout

from debate.backends import Call, Scripted
from debate.flow import Completion
from debate.parsing.places import value_spans
from debate.scoring.distributions import distribution_of
from tests.required import required, required_module
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


# ---- ways of reading scores


def adding_up(call: Call) -> Completion:
    """A judge that can add, and thinks that any two wrong candidates are equally wrong, but for a doubt of its own."""
    user = call.messages[1]["content"]
    numbers = [int(each) for each in re.findall(r"\d+", user[: user.index("<|candidate|>")])]
    names = re.findall(r"<\|memory\|>(\w+) is (\d+)", user)
    numbers += [int(number) for name, number in names if name in user[: user.index("<|candidate|>")]]
    answers = {str(sum(numbers)), str(abs(numbers[0] - numbers[-1]))} if len(numbers) == 2 else set[str]()
    texts = re.findall(r"<\|candidate\|>. (.+?)(?=<)", user)
    scores = [9 if set(re.findall(r"\d+", text)) & answers else 3 for text in texts]
    cells = [score for score in scores for _ in range(3)]
    read = [distribution_of({str(score): 0.9, "0": 0.01 * (n // 3)}) for n, score in enumerate(cells)]
    if call.read_out is not None and call.read_out.continuations:
        return Completion("", distributions=tuple(read))
    candidate = json.loads(json.dumps(call.schema))["properties"]["candidates"]["properties"]["A"]["properties"]
    candidates: dict[str, Any] = {}
    for label, score in zip("ABCD", scores, strict=True):
        named = dict.fromkeys(("accuracy", "relevance", "completeness"), score)
        given = [score] * 3 if candidate.get("scores", {}).get("type") == "array" else named
        candidates[label] = {"comment": "said"} | ({"scores": given} if "scores" in candidate else {})
    text = json.dumps({"overall": "said", "candidates": candidates})
    return Completion(text, distributions=tuple(read[: len(value_spans(text))] if call.read_out else ()))


def test_all_ways_of_reading_scores_are_compared_task_by_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A short form: who can add is right where the rule is known, and ties vanish where doubts are read out."""
    options = readout.arguments(["--short", "--json", str(tmp_path / "figures.json")])
    readout.Comparison(options, lambda: Scripted(adding_up)).run()
    said = capsys.readouterr()
    assert "failed" in said.out
    data = json.loads((tmp_path / "figures.json").read_text())
    done: list[dict[str, Any]] = data["outcomes"]
    phases = {"one judge", "temperature 0", "temperature 0.7", "silent read-outs"}
    assert {each["phase"] for each in done} >= phases
    ties: dict[str, int] = dict.fromkeys(readout.ARMS, 0)
    for each in done:
        ties[each["arm"]] += each["ties"]
    assert ties["named"] > 0 and ties["compact"] > 0
    assert ties["expected"] == ties["cells"] == 0


def test_a_report_of_some_hundred_debates_is_made_and_browsed_within_its_goals() -> None:
    """A short form of what has its figures in the benchmark."""
    required(shutil.which("chromium") or shutil.which("google-chrome"), "scripts/chromium installs Chromium")
    required_module("playwright.sync_api")
    done = bench("report", "--sizes", "400")
    assert done.returncode == 0, done.stdout + done.stderr
    tasks, made, peak, file, usable, _, _, heap = map(float, done.stdout.splitlines()[-1].split())
    assert (tasks, file > 0) == (400, True)
    assert made < 60
    assert peak < 500 * 10**6 / 2**20
    assert usable < 10  # the goal of 2 s is of a machine that does nothing else
    assert heap <= 100
