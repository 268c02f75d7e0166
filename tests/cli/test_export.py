"""`debate export` on a run that is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debate.backends import Scripted
from debate.cli import app
from debate.dataset.evalset import EvalSet
from debate.errors import ConfigError
from debate.jobs.run import Run
from debate.testing import reply_for
from tests.small_flows import debates


def _nothing(*_: object) -> None: ...


class Silent:
    """A watcher that says nothing."""

    def __getattr__(self, name: str) -> object:
        return _nothing


@pytest.fixture
def run(tmp_path: Path) -> Path:
    tasks = [{"id": f"t{n}", "x": "?", "candidates": ["a", "b"]} for n in range(3)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    job = Run(evalset=EvalSet(tmp_path / "tasks.jsonl"), folder=tmp_path / "out", evaluator=debates(rounds=1))
    job.execute({"scripted": Scripted(reply_for)}, Silent())  # pyright: ignore[reportArgumentType]
    return tmp_path / "out"


def export(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["export", *map(str, arguments)], catch_exceptions=False)
    return result.output


def test_a_run_is_exported_in_several_formats_beside_its_results(run: Path) -> None:
    output = export(run, "--to", "scores", "--to", "preferences")
    assert "scores.parquet: 24 rows" in output  # 3 tasks, 2 agents, 2 candidates, 2 components
    assert (run / "preferences.jsonl").is_file()


def test_a_file_that_is_there_is_replaced_on_request_alone(run: Path) -> None:
    export(run, "--to", "turns")
    with pytest.raises(ConfigError, match="exists already"):
        export(run, "--to", "turns")
    assert "6 rows" in export(run, "--to", "turns", "--force")


def test_a_format_that_is_not_there_and_a_folder_without_a_run_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mt_bench"):
        export(run, "--to", "mtbench")
    with pytest.raises(ConfigError, match="holds no run"):
        export(tmp_path)


def test_a_margin_is_of_preference_pairs(run: Path) -> None:
    with pytest.raises(ConfigError, match="--to preferences"):
        export(run, "--min-margin", 1)
    assert "preferences.jsonl: 0 rows" in export(run, "--to", "preferences", "--min-margin", 11)


def test_what_is_left_out_is_told_with_the_reason(run: Path) -> None:
    output = export(run, "--to", "preferences", "--min-margin", 11)
    assert "left out 3: no candidate is better" in output


def test_the_file_can_be_named(run: Path, tmp_path: Path) -> None:
    export(run, "--out", tmp_path / "mine.csv")
    assert (tmp_path / "mine.csv").read_text().startswith("run,task,member,")
    with pytest.raises(ConfigError, match="several formats need a folder"):
        export(run, "--out", tmp_path / "mine.csv", "--to", "scores", "--to", "turns")


def test_a_format_of_files_is_refused_with_how_a_file_name_chooses_it(run: Path) -> None:
    with pytest.raises(ConfigError, match="csv is the format of a file") as refused:
        export(run, "--to", "csv")
    assert "--out tasks.csv" in str(refused.value.hint)


def write_preferences(results: object, path: Path, run: str) -> object:
    raise AssertionError("nothing is to be written")


def test_two_formats_that_would_write_one_file_are_refused(run: Path) -> None:
    names = ("debate.export.preferences:write_preferences", "tests.cli.test_export:write_preferences")
    with pytest.raises(ConfigError, match="--to: two of the formats write the same file"):
        export(run, *(part for name in names for part in ("--to", name)))
    assert not (run / "write_preferences.jsonl").exists()
