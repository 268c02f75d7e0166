"""What goes by a name: ours, those of installed packages by entry points, and MODULE:NAME."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from debate import registry
from debate.errors import ConfigError
from debate.registry import BACKENDS, EMBEDDERS, EVALUATORS, EXPORTS, FORMATS, INDEXES, Registry
from tests.scripts_loader import REPOSITORY

OUTSIDE = REPOSITORY / "tests" / "data" / "outside"
IMPORTED = "debate_outside is imported"
ALL = (EVALUATORS, BACKENDS, EXPORTS, FORMATS, EMBEDDERS, INDEXES)
OURS = [(each, name) for each in ALL for name, entry in each.entries.items() if entry.package is None]


@pytest.mark.parametrize(("known", "name"), OURS, ids=lambda each: each if isinstance(each, str) else each.kind)
def test_every_name_of_ours_can_be_loaded_and_says_what_it_is(known: Registry, name: str) -> None:
    assert known.load(name) is not None
    assert known.entries[name].description


def test_an_unknown_name_is_refused_with_the_one_that_was_meant_and_all_there_are() -> None:
    with pytest.raises(ConfigError) as refused:
        EVALUATORS.load("debat", "evaluator")
    assert "there is no evaluator 'debat'" in str(refused.value)
    assert "did you mean 'debate'?" in str(refused.value)
    assert all(name in str(refused.value) for name in (*EVALUATORS.entries, "MODULE:NAME"))


@pytest.mark.parametrize("name", ["no_such_module:f", "math:no_such", "json:dumps.no_such"])
def test_what_cannot_be_imported_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be imported") as refused:
        BACKENDS.load(name, "--backend")
    assert refused.value.field == "--backend"


def test_a_module_that_fails_when_it_is_imported_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails_at_import.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ConfigError, match="ZeroDivisionError"):
        EXPORTS.load("fails_at_import:x")


def test_what_is_not_ours_is_logged_before_it_is_imported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, registry.__name__):
        assert Registry("number", None, "").load("math:pi") == 3.141592653589793
        EVALUATORS.load("debate")
    assert [record.getMessage() for record in caplog.records] == ["the number 'math:pi' is imported from math"]


def test_a_name_that_two_packages_offer_must_be_named_with_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("pi", f"{module}:pi", "debate.numbers") for module in ("math", "cmath", "math")]
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: points)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    numbers = Registry("number", "debate.numbers", "")
    with pytest.raises(ConfigError, match="math and cmath offer the number 'pi'"):
        numbers.load("pi")
    assert numbers.load("cmath:pi") == 3.141592653589793


# ---- a package outside the tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"q": "which?", "answers": ["short", "rather longer"], "name": f"t{n}"} for n in range(3)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def debate(folder: Path, *arguments: object, code: int = 0) -> tuple[str, str]:
    """Run the command line in a process that has the package; returns stdout and stderr."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DEBATE_")},
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(OUTSIDE)]),
        "COLUMNS": "200",
    }
    command = [sys.executable, "-m", "debate", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def results(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "out" / "results.jsonl").read_text().splitlines()
    return sorted(map(json.loads, lines), key=lambda row: row["task_id"])


RUN = ("run", "tasks.jsonl", "--format", "questions", "--evaluator", "grade", "--backend", "counting", "--out", "out")


def test_a_package_is_listed_in_help_without_being_imported(folder: Path) -> None:
    for command, names in {
        (): (),
        ("run",): ("grade (from debate-outside)", "counting (from debate-outside)", "questions (from debate-outside)"),
        ("export",): ("chosen: from debate-outside",),
    }.items():
        stdout, stderr = debate(folder, *command, "--help")
        assert all(name in stdout for name in names)
        assert IMPORTED not in stderr


def test_a_package_is_run_resumed_shown_and_exported(folder: Path) -> None:
    _, stderr = debate(folder, *RUN, "--option", "bonus=2", "--engine-arg", "factor=2", "--limit", 2)
    assert "the evaluator 'grade' is imported from debate_outside (package debate-outside)" in stderr
    assert [row["scores"] for row in results(folder)] == [[52.0, 68.0]] * 2
    _, stderr = debate(folder, *RUN, "--option", "bonus=2", "--engine-arg", "factor=2")
    assert [row["scores"] for row in results(folder)] == [[52.0, 68.0]] * 3
    (folder / "out" / "results.jsonl").unlink()
    _, stderr = debate(folder, "resume", "out")
    for kind, name in (("evaluator", "grade"), ("backend", "counting")):
        assert f"the {kind} '{name}' is imported from debate_outside (package debate-outside)" in stderr
    assert [row["selected"] for row in results(folder)] == [1, 1, 1]
    _, stderr = debate(folder, "show", "out", "t1")
    assert IMPORTED not in stderr
    debate(folder, "export", "out", "--to", "chosen", "--to", "debate_outside:lines")
    assert (folder / "out" / "chosen.tsv").read_text() == "t0\t1\nt1\t1\nt2\t1\n"
    assert json.loads((folder / "out" / "lines.jsonl").read_text()) == ["t0", "t1", "t2"]


def test_module_and_name_stand_wherever_a_name_does(folder: Path) -> None:
    (folder / "run.yaml").write_text(
        """
        evaluator: panel
        options:
          members:
            ours: {evaluator: callback, function: "debate_outside:lengths", scale: [0, 100]}
            theirs: {evaluator: "debate_outside:Grade", bonus: 1}
        backend: debate_outside:answer
        format: debate_outside:questions
        models:
          other: {backend: counting}
        """
    )
    _, stderr = debate(folder, "run", "tasks.jsonl", "--config", "run.yaml", "--out", "out")
    assert "the evaluator 'debate_outside:Grade' is imported from debate_outside\n" in stderr
    assert [row["status"] for row in results(folder)] == ["ok"] * 3
    assert json.loads((folder / "out" / "run.json").read_text())["identity"]["models"] == {
        "scripted": "scripted",
        "other": "other",
    }


def test_a_callback_needs_no_model(folder: Path) -> None:
    function = ("--evaluator", "callback", "--option", "function=debate_outside:lengths", "--option", "scale=[0, 100]")
    debate(folder, "run", "tasks.jsonl", "--format", "questions", *function, "--out", "out")
    assert [row["scores"] for row in results(folder)] == [[5.0, 13.0]] * 3


def test_a_package_cannot_replace_what_is_ours(folder: Path) -> None:
    script = "from debate.registry import EVALUATORS; print(EVALUATORS.load('debate').__module__)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(OUTSIDE)])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "debate.evaluators.debate.evaluator\n"
