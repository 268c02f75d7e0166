"""`scripts/conformance`: what passes, what differs and why, what fails; nothing is looked up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.scripts_loader import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "conformance"
CASES = REPOSITORY / "tests" / "data" / "conformance.json"
RECORDED = REPOSITORY.parent / "shared" / "data" / "reasoning_cases.json"

SORT = {"function": "num_errors", "source": "examples/sorting/utils.py"}
KEEP = {"function": "KeepBestN.execute -> [[id, score]]"}
VOTE = {"function": "TextTask.vote_outputs_unwrap"}


def conformance(folder: Path, *cases: dict[str, Any]) -> tuple[int, list[str]]:
    """Exit code and lines for some cases, which are named by their order."""
    path = folder / "cases.json"
    path.write_text(json.dumps({"cases": [{"id": str(n), **case} for n, case in enumerate(cases)]}))
    done = run(str(path))
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60
    )


def sorting(current: str, returns: int, *tags: str) -> dict[str, Any]:
    state = {"original": "[3, 1, 2]", "current": current}
    return {**SORT, "input": {"state": state}, "expected": {"returns": returns}, "tags": tags}


def test_each_case_passes_passes_by_option_differs_or_fails(tmp_path: Path) -> None:
    keep = {**KEEP, "input": {"scores": [2.0, None, 1], "n": 2, "higher_is_better": False}}
    code, lines = conformance(
        tmp_path,
        sorting("[1, 2]", 1),
        sorting(" [1, 2, 3]", 300, "penalty"),
        {**keep, "expected": {"returns": [[0, 2.0]]}, "tags": ["upstream-bug"]},
        {**keep, "expected": {"returns": [[0, 2.0]]}},
        sorting("[1, 2]", 2),
    )
    assert code == 1
    assert [line.split()[:2] for line in lines[:-1]] == [
        ["pass", "0"],
        ["original", "1"],
        ["differs", "2"],
        ["FAIL", "3"],
        ["FAIL", "4"],
    ]
    assert lines[1].endswith("got_sorting_errors")
    assert "ours [[2, 1], [0, 2.0]], there [[0, 2.0]]: a score that is missing" in lines[2]
    assert lines[-1] == "5 cases: 1 pass, 1 original, 1 differs, 2 FAIL"


def test_without_a_failure_the_exit_code_is_0(tmp_path: Path) -> None:
    code, lines = conformance(tmp_path, sorting("[1, 2]", 1))
    assert (code, lines[-1]) == (0, "1 cases: 1 pass, 0 original, 0 differs, 0 FAIL")


def test_a_function_that_nothing_answers_fails(tmp_path: Path) -> None:
    case: dict[str, Any] = {"input": {}, "expected": {"returns": 1}}
    code, lines = conformance(tmp_path, {"function": "quicksort", **case}, {"function": "num_errors_twice", **case})
    assert code == 1
    assert "nothing answers 'quicksort'" in lines[0]
    assert "nothing answers 'num_errors_twice'" in lines[1]


def test_an_exception_is_matched_by_its_cause(tmp_path: Path) -> None:
    step = {"function": "PromptedStepEvaluation.evaluate_step (stubbed)"}
    code, lines = conformance(
        tmp_path,
        {**step, "input": {"reply": "none"}, "expected": {"raises": "IndexError"}},
        {**step, "input": {"reply": "<score>x"}, "expected": {"raises": "IndexError"}},
        {**step, "input": {"reply": "<score>x"}, "expected": {"raises": "ValueError"}},
        {**step, "input": {"reply": "<score>1"}, "expected": {"raises": "ValueError"}},
        {**step, "input": {}, "expected": {"returns": 1}, "tags": ["upstream-bug"]},
    )
    assert code == 1
    assert [line.split()[0] for line in lines[:-1]] == ["pass", "FAIL", "pass", "FAIL", "FAIL"]


def test_numbers_are_compared_to_within_rounding_and_a_bool_is_no_number(tmp_path: Path) -> None:
    solved = {"function": "PromptedStepEvaluation.is_solved", "input": {"reply": "<is solved>yes"}}
    votes = {**VOTE, "input": {"vote_outputs": ["best choice is 1"], "n_candidates": 2}}
    minmax = {"function": "normalize_scores", "input": {"scores": [1, "NaN"], "method": "minmax"}}
    code, lines = conformance(
        tmp_path,
        {**solved, "expected": {"returns": True}},
        {**solved, "expected": {"returns": 1}},
        {**votes, "expected": {"returns": [1 + 1e-15, 0]}},
        {**votes, "expected": {"returns": [1, 0, 0]}},
        {**minmax, "expected": {"returns": [5.0, "NaN"]}},
    )
    assert code == 1
    assert [line.split()[0] for line in lines[:-1]] == ["pass", "FAIL", "pass", "FAIL", "pass"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        ("{", "cases.json:1: is not JSON"),
        ("[]", "cases: must be a list"),
        ('{"cases": []}', "cases: must be a list of at least one case"),
        ('{"cases": [7]}', "cases.0: must be an object"),
        ('{"cases": [{"id": "a", "function": "f", "input": {}}]}', "cases.0.expected: is missing"),
        ('{"cases": [{"id": 1}]}', "cases.0.id: is of the wrong kind"),
        ('{"cases": [{"id": "a", "function": "f", "input": {}, "expected": {}}]}', "either `raises` or one value"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_place(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "cases.json"
    if content is not None:
        path.write_text(content)
    done = run(str(path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {path}")
    assert message in done.stderr


def test_the_help_has_an_example() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "example: scripts/conformance cases.json" in done.stdout


# Cases of our own, made up from the originals' rules


def test_every_function_answers_its_cases_as_it_should() -> None:
    cases: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
    done = run(str(CASES))
    verdicts = {line.split()[1]: line.split()[0] for line in done.stdout.splitlines()[:-1]}
    assert verdicts == {case["id"]: case["verdict"] for case in cases}
    assert (done.returncode, done.stderr) == (0, "")


def test_a_case_with_another_expectation_never_passes(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
    check_altered(tmp_path, cases)


# The recorded cases


@pytest.fixture
def recorded() -> list[dict[str, Any]]:
    if not RECORDED.exists():
        pytest.skip("the recorded cases are not beside this checkout")
    return json.loads(RECORDED.read_text(encoding="utf-8"))["cases"]


def test_no_recorded_case_fails(recorded: list[dict[str, Any]]) -> None:
    lines = run(str(RECORDED)).stdout.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == [case["id"] for case in recorded]
    assert [line for line in lines[:-1] if line.startswith("FAIL")] == []
    assert lines[-1] == "81 cases: 47 pass, 25 original, 9 differs, 0 FAIL"
    bugs = {case["id"] for case in recorded if any(tag.endswith("-bug") for tag in case.get("tags", ()))}
    assert {line.split()[1] for line in lines if line.startswith("differs")} <= bugs


def test_a_recorded_case_with_another_expectation_never_passes(tmp_path: Path, recorded: list[dict[str, Any]]) -> None:
    check_altered(tmp_path, recorded)


def check_altered(folder: Path, cases: list[dict[str, Any]]) -> None:
    """Every case with another expectation fails, or differs where it records a fault of the original."""

    def altered(case: dict[str, Any]) -> dict[str, Any]:
        return {**case, "expected": {"raises": "KeyError"} if "returns" in case["expected"] else {"returns": 12345}}

    _, lines = conformance(folder, *map(altered, cases))
    assert {line.split()[0] for line in lines[:-1]} == {"FAIL", "differs"}
    differing = {line.split()[1] for line in lines if line.startswith("differs")}
    assert all(any(tag.endswith("-bug") for tag in case.get("tags", ())) for case in cases if case["id"] in differing)
