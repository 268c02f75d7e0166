"""`debate fit`: what it says of a run, and the file by which the run is put together anew without a call."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from debate.flow import Call
from debate.meta_evaluation.judged import read_run
from debate.testing import reply_for
from tests.command_line import debate

N_TASKS = 40


def judge(call: Call) -> str:
    """A judge whose accuracy tells the right candidate, and whose other scores are drawn."""
    said = json.loads(reply_for(call))
    right = int(call.info["task_id"][1:]) % 2
    for label, of_candidate in said["candidates"].items():
        of_candidate["scores"]["accuracy"] = 6 if call.info["labels"][label] == right else 4
    return json.dumps(said)


def refuse(call: Call) -> str:
    raise AssertionError(f"asked {call.info}")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    tasks = [
        {"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b"], "metadata": {"best": n % 2}} for n in range(N_TASKS)
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    asked = ("run", folder / "tasks.jsonl", "--backend", "tests.cli.test_fit:judge", "--out", folder / "out")
    with pytest.MonkeyPatch.context() as patch:
        assert debate(patch, *asked, "--rounds", 1) == 0
    return folder / "out"


def test_a_fit_is_written_as_settings_by_which_the_run_is_made_anew_without_a_call(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, out = read_run(run), tmp_path / "fitted.yaml"
    assert debate(monkeypatch, "fit", run, "--out", out) == 0
    told = capsys.readouterr()
    assert "The fitted weights are better on tasks that they were not fitted on." in told.out
    assert f"debate run {run.parent / 'tasks.jsonl'} --config {out} --out {run}" in told.err
    fitted = yaml.safe_load(out.read_text())
    assert fitted["weights"]["accuracy"] == 1.0
    assert max(value for name, value in fitted["weights"].items() if name != "accuracy") < 0.5
    assert (fitted["rounds"], fitted["backend"]) == (1, "tests.cli.test_fit:judge")

    monkeypatch.setattr("tests.cli.test_fit.judge", refuse)
    assert debate(monkeypatch, "run", run.parent / "tasks.jsonl", "--config", out, "--out", run) == 0
    after = read_run(run)
    weights = [fitted["weights"][name] for name in after.tasks[0].components]
    for task, old in zip(after.tasks, before.tasks, strict=True):
        assert task.tensor is not None
        np.testing.assert_array_equal(task.tensor, old.tensor)
        np.testing.assert_allclose(task.scores, np.average(task.tensor.mean(axis=(0, 1)), axis=1, weights=weights))
    right = [sum(task.verdict == "right" for task in each.tasks) for each in (before, after)]
    assert right[0] < right[1]


def test_without_a_gain_nothing_is_written_unless_it_is_forced(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(0)
    labels, out = tmp_path / "labels.jsonl", tmp_path / "fitted.yaml"
    said = ({"task_id": f"t{n}", "best": int(random.integers(2))} for n in range(N_TASKS))
    labels.write_text("".join(json.dumps(each) + "\n" for each in said))
    assert debate(monkeypatch, "fit", run, "--labels", labels, "--out", out) == 0
    told = capsys.readouterr()
    assert "keep the old weights" in told.out
    if "softmax_temperature" not in told.err:
        assert "Nothing is written" in told.err
        assert not out.exists()
    assert debate(monkeypatch, "fit", run, "--labels", labels, "--out", out, "--force") == 0
    assert {"weights", "softmax_temperature"} <= yaml.safe_load(out.read_text()).keys()


def test_a_fit_is_there_as_json(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert debate(monkeypatch, "fit", run, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["labeled"], found["measure"], len(found["components"]["new"])) == (N_TASKS, "pairs", 5)


def test_too_few_labels_are_bad_input(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "labels.jsonl").write_text('{"task_id": "t0", "best": 1}\n')
    assert debate(monkeypatch, "fit", run, "--labels", tmp_path / "labels.jsonl") == 2
    assert "needs 10 scored tasks" in capsys.readouterr().err
