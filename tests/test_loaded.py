"""A run as an object."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import debate
from debate.errors import ConfigError, InputError, TaskError
from debate.evaluation import plain
from debate.export.tables import write_scores, write_tasks, write_turns
from debate.jobs.run_directory import RunDirectory
from debate.meta_evaluation.trust import agree
from tests.meta_evaluation.planted_runs import planted_run, tasks_of

WRITERS = {"tasks": write_tasks, "scores": write_scores, "turns": write_turns}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    first = planted_run(folder / "a", tasks_of(2), {"t0": (7.0, 3.0), "t1": (7.0, 3.0)})
    return first, planted_run(folder / "b", tasks_of(2), {"t0": (7.0, 3.0), "t1": (2.0, 3.0)})


@pytest.mark.parametrize("which", ["tasks", "scores", "turns"])
def test_the_tables_are_those_of_the_export(runs: tuple[Path, Path], tmp_path: Path, which: Any) -> None:
    rows = debate.load(runs[0]).table(which)
    directory = RunDirectory.existing(runs[0])
    with directory.open_store() as store:
        WRITERS[which](store.read(directory.name).results(), tmp_path / "table.csv", "a")
    with (tmp_path / "table.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert len(rows) == len(written) > 0
    for row, line in zip(rows, written, strict=True):
        assert set(row) <= set(line)
        assert (row["run"], row["task"]) == (line["run"], line["task"])


def test_a_table_of_another_kind_is_refused(runs: tuple[Path, Path]) -> None:
    other: Any = "rows"
    with pytest.raises(ValueError, match="unknown table 'rows', expected one of tasks, scores, turns, cells"):
        debate.load(runs[0]).table(other)


def test_another_run_is_compared_by_its_folder_or_as_an_object(runs: tuple[Path, Path]) -> None:
    first = debate.load(str(runs[0]))
    found = first.compare(runs[1], regressions=1)
    assert (found.verdicts.lost, [each.task_id for each in found.regressions]) == (1, ["t1"])
    assert first.compare(debate.load(runs[1])).verdicts == found.verdicts


def test_labels_of_a_file_count_for_both_sides(runs: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps({"task_id": "t1", "best": 1}))
    found = debate.load(runs[0], labels=file).compare(runs[1])
    assert (found.verdicts.labeled, found.verdicts.won) == (1, 1)
    file.write_text(json.dumps({"task_id": "t1", "best": 2}))
    with pytest.raises(TaskError, match=r"labels.jsonl:1: best"):
        _ = debate.load(runs[0], labels=file).judged


def test_labels_of_a_file_count_in_tables_and_tasks(runs: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps({"task_id": "t1", "best": 1}))
    run = debate.load(runs[0], labels=file)
    assert [(row["best"], row["right"]) for row in run.table()] == [([], None), ([1], False)]
    assert [run.task(name).best for name in ("t0", "t1")] == [(), (1,)]
    assert run.task("t1").candidates == debate.load(runs[0]).task("t1").candidates


def test_agreement_is_what_the_command_shows(runs: tuple[Path, Path]) -> None:
    run = debate.load(runs[0])
    assert plain(run.agreement(by="best")) == plain(agree(run.judged, by="best"))


def test_a_folder_without_a_run_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run"):
        debate.load(tmp_path)


def test_the_cells_are_those_of_the_tensor(runs: tuple[Path, Path]) -> None:
    run = debate.load(runs[0])
    tensor = run.evaluation("t1").tensor
    assert tensor is not None
    rows = [row for row in run.table("cells") if row["task"] == "t1"]
    assert len(rows) == tensor.size
    assert all(tensor[row["r"], row["i"], row["j"], row["k"]] == row["score"] for row in rows)


def test_a_task_and_its_evaluation_are_found_by_the_id(runs: tuple[Path, Path]) -> None:
    run = debate.load(runs[0])
    assert (run.task("t1").x, run.evaluation("t1").task_id) == ("1?", "t1")
    assert [each.task_id for each in run.evaluations()] == ["t0", "t1"]
    with pytest.raises(InputError, match="there is no evaluation of the task 't9'"):
        run.task("t9")


def test_a_run_is_written_as_its_folder(runs: tuple[Path, Path]) -> None:
    assert repr(debate.load(runs[0], labels="l.jsonl")) == f"LoadedRun({str(runs[0])!r}, labels='l.jsonl')"
