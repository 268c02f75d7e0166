"""The summary of a run: what counts as right, what is counted apart, and labels that come after the run."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from debate import CallbackEvaluator, Scale
from debate.backends import Call, Scripted
from debate.cli.progress import Progress
from debate.cli.summary import print_summary
from debate.dataset.evalset import EvalSet
from debate.export.tables import write_scores
from debate.flow import Completion
from debate.jobs.run import Run
from debate.jobs.run_directory import RunDirectory
from debate.statistics import Accuracy
from debate.store import Store
from debate.store.queries import Totals
from debate.testing import SilentListener, reply_for
from debate.types import LabelDistribution
from tests.small_flows import debates

RED, GREEN, YELLOW = 31, 32, 33
called: list[str] = []


def worth(x: str, text: str) -> float:
    """A candidate's score is its text."""
    called.append(text)
    return float(text)


def row(name: str, candidates: str, best: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"id": name, "x": "Q?", "candidates": candidates.split(), "best": best, "metadata": metadata}


ROWS = [
    row("hit", "9 3 3", 0, group="odd"),
    row("tie", "8 8 2", 0, group="even"),
    row("miss", "2 7 1", "C", group="odd"),
    row("within", "5 5 1", ["A", "B"], group="even"),
    row("none", "? ? ?", 1, group="odd"),
    row("open", "6 6 1", group="even"),
]
"""One of each kind: right, tied, wrong, a tie that is right, unscored, without a label."""


def execute(folder: Path, rows: list[dict[str, Any]]) -> tuple[RunDirectory, Totals]:
    folder.mkdir(exist_ok=True)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    evaluator = CallbackEvaluator(worth, scale=Scale(0, 10))
    job = Run(evalset=EvalSet(folder / "tasks.jsonl"), folder=folder, evaluator=evaluator)
    return job.execute({"none": Scripted(reply_for)}, SilentListener())


@pytest.fixture
def summary(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What is printed of a run of `ROWS`, with colors."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    folder, totals = execute(tmp_path / "out", ROWS)
    print_summary(folder, totals, Progress(model="none"))
    return capsys.readouterr().out


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if plain(line).startswith(name))


def test_accuracy_is_the_share_of_the_right_among_all_with_a_label(summary: str) -> None:
    assert line_of(plain(summary), "accuracy").split(maxsplit=1)[1].strip() == (
        "40% (12 to 77), 2 of 5 right, 1 tied, 1 unscored, chance 40% (95% intervals)"
    )


def test_accuracy_is_told_by_group_in_the_same_way(summary: str) -> None:
    text = plain(summary)
    assert "33% (6 to 79), 1 of 3 right, 1 unscored, chance 33%: odd" in text
    assert "50% (9 to 91), 1 of 2 right, 1 tied, chance 50%: even" in text


def test_tasks_stand_under_their_groups_once(summary: str) -> None:
    first = [line.split()[:2] for line in plain(summary).splitlines()]
    names = [" ".join(words) if words[0] == "-" else words[0] for words in first if words]
    assert names[-8:] == ["- odd", "miss", "none", "hit", "- even", "tie", "open", "within"]


@pytest.mark.parametrize(
    ("name", "selected", "best", "color"),
    [
        ("hit", "1", "1", GREEN),
        ("miss", "2", "3", RED),
        ("tie", "1=2", "1", YELLOW),
        ("within", "1=2", "1,2", GREEN),
        ("none", "-", "2", RED),
    ],
)
def test_a_row_says_how_the_choice_stands_to_the_label(
    summary: str, name: str, selected: str, best: str, color: int
) -> None:
    line = line_of(summary, name)
    assert plain(line).split()[1:3] == [selected, best]
    assert f"\x1b[{color}m" in line
    assert not any(f"\x1b[{other}m" in line for other in (RED, GREEN, YELLOW) if other != color)


def test_a_tie_without_a_label_is_a_tie_too(summary: str) -> None:
    line = line_of(summary, "open")
    assert plain(line).split()[1] == "1=2"
    assert f"\x1b[{YELLOW}m" in line


def test_a_tie_of_many_is_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, totals = execute(tmp_path / "out", [row("many", "5 5 5 5 5 5")])
    print_summary(folder, totals, Progress(model="none"))
    assert line_of(capsys.readouterr().out, "many").split()[1] == "1=2=3=.."


def test_debates_without_a_stop_reason_of_their_own_name_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row("t", "a b")))
    balanced = debates(rounds=1, candidate_order="balanced")
    job = Run(evalset=EvalSet(tmp_path / "tasks.jsonl"), folder=tmp_path / "out", evaluator=balanced)
    print_summary(*job.execute({"scripted": Scripted(reply_for)}, SilentListener()), Progress(model="none"))
    assert line_of(capsys.readouterr().out, "stopped").split() == ["stopped", "1.00", "rounds", "on", "average"]


def test_a_function_has_no_calls_tokens_and_rounds(summary: str) -> None:
    words = plain(summary).split()
    assert not {"calls", "tokens", "turns", "stopped", "CV", "rounds", "cost"} & set(words)


def test_the_accuracy_so_far_is_that_of_the_summary_also_when_a_run_goes_on(tmp_path: Path) -> None:
    class Told(SilentListener):
        def __init__(self) -> None:
            self.judged_so_far: list[tuple[int, int]] = []

        def judged(self, right: int, labeled: int) -> None:
            self.judged_so_far.append((right, labeled))

    execute(tmp_path, ROWS[:3])
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ROWS))
    told = Told()
    job = Run(
        evalset=EvalSet(tmp_path / "tasks.jsonl"),
        folder=tmp_path,
        evaluator=CallbackEvaluator(worth, scale=Scale(0, 10)),
    )
    _, totals = job.execute({"none": Scripted(reply_for)}, told)
    assert told.judged_so_far[0] == (1, 3)
    assert told.judged_so_far[-1] == (totals.accuracy.right, totals.accuracy.labeled) == (2, 5)


def test_tokens_are_told_by_model_where_several_were_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row(name, "a b")) + "\n" for name in "st"))
    evaluator = debates(rounds=1, settle="p_best=1,model=small")
    job = Run(evalset=EvalSet(tmp_path / "tasks.jsonl"), folder=tmp_path / "out", evaluator=evaluator)
    backends = {name: Scripted(reply_for, model=name) for name in ("large", "small")}
    folder, totals = job.execute(backends, SilentListener())
    print_summary(folder, totals, Progress(model=""))
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    small, large = totals.used["small"], totals.used["large"]
    for name, used in (("small", small), ("large", large)):
        tokens = f"{used.prompt_tokens:,} prompt, {used.completion_tokens:,} completion in {used.calls:,} calls"
        assert f"{tokens}: {name}" in told
    assert small.calls == large.calls > 0


# ---- labels that come after the run


@pytest.mark.parametrize("abstain", [True, False])
def test_cells_from_which_agents_abstained_are_counted_and_the_live_line_counts_them_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], abstain: bool
) -> None:
    def reply(call: Call) -> Completion:
        """The Critic gives no score to the candidate that it sees first."""
        if call.read_out is None:
            candidates = {label: {"comment": "so"} for label in call.info["labels"]}
            return Completion(json.dumps({"overall": "so", "candidates": candidates}))
        first = "null" if abstain and call.info["agent"] == "Critic" else "5"
        labels = [first, first, "7", "7"]
        return Completion("", distributions=tuple(LabelDistribution({label: 1.0}) for label in labels))

    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row(name, "a b")) + "\n" for name in "st"))
    evaluator = debates(rounds=1, readout="cells", abstain=abstain)
    job = Run(evalset=EvalSet(tmp_path / "tasks.jsonl"), folder=tmp_path / "out", evaluator=evaluator)
    progress = Progress(model="")
    folder, totals = job.execute({"scripted": Scripted(reply)}, progress)
    print_summary(folder, totals, progress)
    facts = capsys.readouterr().out
    told = [line.split() for line in facts.splitlines() if line.startswith("abstained")]
    assert told == ([["abstained", "4", "of", "16", "cells"]] if abstain else [])
    assert (", abstained: 4 cells" in progress.status()) == abstain


def accuracy(out: Path) -> Accuracy:
    with Store(out / "run.sqlite") as store:
        return store.read().totals().accuracy


def test_labels_that_were_added_or_changed_are_taken_without_a_call(tmp_path: Path) -> None:
    out = tmp_path / "out"
    unlabeled = [{**each, "best": None} for each in ROWS]
    execute(out, unlabeled)
    results = (out / "results.jsonl").read_bytes()
    assert accuracy(out).labeled == 0
    called.clear()
    execute(out, ROWS)
    assert called == []
    assert (out / "results.jsonl").read_bytes() == results
    found = accuracy(out)
    assert (found.labeled, found.right, found.tied, found.unscored, found.chance) == (5, 2, 1, 1, pytest.approx(0.4))
    execute(out, [{**each, "best": 1, "metadata": {"group": "all"}} for each in ROWS])
    assert called == []
    with Store(out / "run.sqlite") as store:
        record = store.read()
        by_group = record.accuracy_by_group()
        assert {name: (each.labeled, each.right) for name, each in by_group.items()} == {"all": (6, 1)}
        assert [task.best for task, _ in record.results()] == [(1,)] * 6
    execute(out, unlabeled)
    assert accuracy(out).labeled == 0
    assert called == []


def test_an_export_has_the_labels_of_now(tmp_path: Path) -> None:
    out = tmp_path / "out"
    execute(out, [{**each, "best": None} for each in ROWS])
    execute(out, ROWS)
    with Store(out / "run.sqlite") as store:
        labels = {task.id: task.best for task, _ in store.read().results()}
        write_scores(store.read().results(), tmp_path / "s.csv", "r")
    assert labels == {"hit": (0,), "tie": (0,), "miss": (2,), "within": (0, 1), "none": (1,), "open": ()}
    with (tmp_path / "s.csv").open() as stream:
        assert {each["task"] for each in csv.DictReader(stream)} == labels.keys()


def test_tasks_that_are_not_evaluated_yet_have_the_labels_of_now_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Store(tmp_path / "s.sqlite") as store:
        record = store.run("r", {"evaluator": "e"})
        (out).mkdir()
        for best in (None, "B"):
            (out / "tasks.jsonl").write_text(json.dumps(row("t", "1 2", best)))
            record.read_evalset(EvalSet(out / "tasks.jsonl").tasks(), dict)
        assert [task.best for task in record.pending("s")] == [(1,)]
