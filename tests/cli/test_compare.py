"""`debate compare` as a user reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.errors import InputError
from tests.meta_evaluation.planted_runs import planted_control, planted_run, tasks_of

SCORES_A = {f"t{n}": (7.0, 3.0) for n in range(4)}
SCORES_B: dict[str, Any] = SCORES_A | {"t1": (2.0, 9.0), "t2": None}
CANDIDATES = [{"text": "yes", "generator": "m"}, {"text": "no", "generator": "n"}]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    tasks = [task | {"candidates": CANDIDATES, "metadata": {"group": task["id"][1]}} for task in tasks_of(4)]
    return planted_run(folder / "a", tasks, SCORES_A), planted_run(folder / "b", tasks[:3], SCORES_B)


def compare(*arguments: object) -> str:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], catch_exceptions=False).output


def missing(text: str, *parts: str) -> str | None:
    """The first of the parts that does not come after those before it; None where they are in order."""
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return part
    return None


def test_the_page_begins_with_the_short_answer_and_what_got_worse(runs: tuple[Path, Path]) -> None:
    page = compare(*runs)
    assert not missing(
        page,
        "3 in both",
        "1 in A alone, left out: t3",
        "do not tell A and B apart: 0 won, 2 lost, 1 the same",
        "Right in A, not in B: 2",
        "t1 (1): right is 1",
        "A chose 1. Critic, Reader: Worth 7.",
        "B chose 2, wrong by 70 % of the scale. Critic, Reader: Worth 9.",
        "t2 (2): right is 1",
        "B chose none.",
        "accuracy of B       33.3 %",
        "p = 0.5",
        "another selection  50.0 %",
        "scores: 0 in A alone, 2 in B alone, 0 in both",
        "calls",
        "tasks failed",
    )
    for run in runs:
        assert f"  debate show {run} t1\n" in page


def test_json_has_the_whole_value(runs: tuple[Path, Path]) -> None:
    found = json.loads(compare(*runs, "--json", "--regressions", 1))
    assert (found["verdicts"]["lost"], len(found["regressions"])) == (2, 1)
    assert found["only_a"] == ["t3"]


def test_json_is_valid_whatever_characters_an_id_has(tmp_path: Path) -> None:
    names = ["co\u00adop", "x\u0085y", "eng\U000e0067"]
    tasks = [task | {"id": name} for task, name in zip(tasks_of(3), names, strict=True)]
    for name, winner in (("a", (7.0, 3.0)), ("b", (2.0, 9.0))):
        planted_run(tmp_path / name, tasks, dict.fromkeys(names, winner))
    found = json.loads(compare(tmp_path / "a", tmp_path / "b", "--json"))
    assert {each["task_id"] for each in found["regressions"]} == {*names}


def test_runs_without_labels_are_compared_too(tmp_path: Path) -> None:
    tasks = [{key: value for key, value in task.items() if key != "best"} for task in tasks_of(2)]
    for name, scores in (("a", SCORES_A), ("b", SCORES_B)):
        planted_run(tmp_path / name, tasks, scores)
    page = compare(tmp_path / "a", tmp_path / "b")
    assert not missing(page, "labels    none: --labels FILE", "another selection", "largest", "candidate 2 of t1")
    assert "By the labels" not in page


def test_a_control_is_shown_with_what_debating_is_worth(tmp_path: Path) -> None:
    planted_run(tmp_path, tasks_of(2), SCORES_A)
    planted_control(tmp_path, SCORES_A)
    page = compare(tmp_path, tmp_path / "control")
    assert not missing(page, "no task tells A and B apart", "B is the control of A", "silent panel", "one judge")


def test_the_models_of_one_run_are_ranked(runs: tuple[Path, Path]) -> None:
    page = compare(runs[0], "--models")
    assert not missing(page, "model", "m ", "100.0 %", "n ", "4 pairs of candidates in 4 tasks", "small ridge")
    assert [each["model"] for each in json.loads(compare(runs[0], "--models", "--json"))["models"]] == ["m", "n"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("A", "RUN_B: is missing"),
        ("A B --models", "RUN_B: is of no use with --models"),
        ("A --models --by x", "--by: is of no use with --models"),
        ("A B --by x", "--by: no task has 'x' in its metadata"),
    ],
)
def test_what_does_not_go_together_is_refused(runs: tuple[Path, Path], arguments: str, said: str) -> None:
    folders = dict(zip("AB", runs, strict=True))
    with pytest.raises(InputError, match=said):
        compare(*(folders.get(each, each) for each in arguments.split()))
