"""`debate agree` prints one page, or the same as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from debate import DebateEvaluator
from debate.cli.render_agreement import page
from debate.meta_evaluation import TrustFigures, agree
from debate.meta_evaluation.aggregation import Aggregation
from debate.meta_evaluation.control import Control
from tests.command_line import debate
from tests.meta_evaluation.small_runs import judged, of_agents, run_of, scripted_run


def text_of(found: TrustFigures) -> str:
    out = io.StringIO()
    console = Console(file=out, width=80, markup=False)
    for part in page(found):
        console.print(part)
    return out.getvalue()


def debated(n: int = 12, **metadata: Any) -> TrustFigures:
    given = {"best": 0} | metadata
    tasks = [of_agents([[0, n % 2, 0], [0, 1, 1]], f"t{n}", **given) for n in range(n)]
    return agree(run_of(tasks, debates=True))


def headings(text: str) -> list[str]:
    return [line.split(" ─")[0] for line in text.splitlines() if " ──" in line]


def test_the_parts_come_in_the_order_in_which_they_are_read() -> None:
    votes = [{"by": by, "best": 0} for by in ("ann", "bo", "cy")]
    text = text_of(debated(group="a", votes=votes, scores={"clarity": [4, 2]}))
    assert headings(text) == [
        "runs/first: 12 tasks", "The judge against people", "Scores against people's", "People against people",
        "Order and length", "By round", "Each agent alone", "Not read, not scored", "By group",
        "Disagreements: 6, the judge's surest first",
    ]  # fmt: skip


def test_no_line_is_wider_than_80_columns() -> None:
    votes = [{"by": by, "best": 0, "scores": {"a component": [4, 2]}} for by in ("ann", "bo", "cy")]
    assert max(map(len, text_of(debated(group="a", votes=votes)).splitlines())) <= 80


def test_what_is_undefined_stands_with_its_reason() -> None:
    text = text_of(debated(n=1))
    assert "- (all ratings are alike)" in text
    assert "nan" not in text


def test_a_skewed_base_rate_is_said_beside_kappa() -> None:
    assert "kappa says nearly nothing" in text_of(debated())


def test_without_labels_the_page_says_what_to_do_next() -> None:
    text = text_of(debated(best=None))
    assert "`debate label runs/first`" in text
    assert headings(text) == [
        "runs/first: 12 tasks", "Order and length", "By round", "Each agent alone", "Not read, not scored"
    ]  # fmt: skip


def test_the_page_of_an_evaluator_without_rounds_has_no_rounds_and_agents() -> None:
    text = text_of(agree(run_of([judged([1, 2], best=0, task_id="a"), judged([2, 1], best=0, task_id="b")])))
    assert not {"By round", "Each agent alone"} & set(headings(text))
    assert "right choice" in text


def test_the_control_is_shown_and_otherwise_named() -> None:
    assert "`debate control runs/first`" in text_of(debated())
    tasks = [of_agents([[0, n % 2, 0], [0, 1, 1]], f"t{n}", best=0) for n in range(12)]
    aggregation = Aggregation.of_run(run_of(tasks, debates=True))
    assert aggregation is not None
    control = Control(Path("control"), tasks, tasks[::-1], (), (), aggregation).figures()
    text = text_of(replace(debated(), control=control))
    assert headings(text)[1:3] == ["The judge against people", "Debate, silent panel, one judge"]
    assert control.sentence.split()[0] in text and "silent panel minus one judge" in text
    assert "`debate control" not in text


def test_where_people_only_score_the_scores_furthest_apart_are_listed() -> None:
    text = text_of(agree(run_of([judged([4 + n % 3], task_id=f"t{n}", scores={"clarity": [3]}) for n in range(6)])))
    assert headings(text)[-1] == "Scores furthest apart, beyond the mean difference"
    assert "debate show runs/first t2" in text


def test_labels_that_the_run_does_not_have_are_counted_and_named() -> None:
    found = replace(debated(), unknown_labels=tuple("abcdefg"))
    assert "Labels of 7 tasks are left out, which the run does not have: a, b, c." in text_of(found)


def test_many_groups_are_cut_and_counted() -> None:
    tasks = [judged([1, 2], best=0, task_id=str(n), group=f"g{n}") for n in range(25)]
    assert "5 more values" in text_of(agree(run_of(tasks)))


# ---- the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    tasks = [{"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b"], "best": n % 2} for n in range(4)]
    scripted_run(out, tasks, DebateEvaluator("general", rounds=2, convergence=None))
    return out


def test_json_is_the_value_of_the_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "agree", folder, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["tasks"], data["choices"]["right"]["labeled"]) == (4, 4)
    assert len(data["debate"]["rounds"]) == 2


def test_a_file_of_labels_takes_the_place_of_those_in_the_tasks(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"task_id": "t1", "best": 0}\n{"task_id": "other", "best": 0}\n')
    assert debate(monkeypatch, "agree", folder, "--labels", labels) == 0
    out = capsys.readouterr().out
    assert "1 labeled: 1 decided by people." in out
    assert "Labels of 1 tasks are left out, which the run does not have: other." in out


def test_a_fault_in_the_labels_is_named_with_file_line_and_field(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"task_id": "t1", "best": 5}\n')
    assert debate(monkeypatch, "agree", folder, "--labels", labels) == 2
    error = capsys.readouterr().err
    assert f"{labels}:1" in error and "best" in error
