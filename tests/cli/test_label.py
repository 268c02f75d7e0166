"""`debate label`: a person at a terminal, a form that comes back, and the summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.errors import ConfigError, InputError, TaskError
from tests.meta_evaluation.small_runs import scripted_run
from tests.small_flows import debates

HOSTILE = "\x1b[2Jgone\u202e"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    texts = ["a good answer", f"{HOSTILE} answer", "long " * 300]
    tasks = [
        {
            "id": f"t{n}",
            "x": f"Question {n}?",
            "context": ["Read this first."],
            "reference": "the known answer",
            "candidates": [{"text": text, "generator": f"model-{j}"} for j, text in enumerate(texts)],
            "metadata": {"group": "ab"[n % 2]},
        }
        for n in range(6)
    ]
    scripted_run(tmp_path / "run", tasks, debates(rounds=1))
    return tmp_path / "run"


def label(run: Path, *arguments: object, typed: str = "") -> str:
    line = ["label", str(run), *map(str, arguments)]
    result = CliRunner().invoke(app, line, input=typed, env={"COLUMNS": "80"}, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def labels(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_what_is_typed_is_saved_and_the_same_command_goes_on(run: Path) -> None:
    output = label(run, "--sample", 4, "--by", "anna", typed="1\n=\nq\n")
    assert "2 of 4 tasks are labeled by anna" in output
    assert "Task 3 of 4" in output
    output = label(run, "--sample", 4, "--by", "anna", typed="1,2\n3\n")
    assert "Task 2 of 2" in output
    assert "4 of 4 tasks are labeled by anna" in output
    assert "Task" not in label(run, "--sample", 4, "--by", "anna").partition("4 of 4")[0]
    first, tie, two, _ = labels(run / "labels.jsonl")
    assert tie["ranking"] == [1, 1, 1]
    assert len(two["best"]) == 2
    assert first["drawn"] == {"seed": 0, "size": 4, "of": 6}


def test_a_person_goes_back_skips_and_mistypes(run: Path) -> None:
    output = label(run, "--sample", 3, "--by", "anna", typed="4\nhello\n\n1\nb\n2\ns\ns\n")
    assert output.count("Type a number from 1 to 3") == 3
    before, after = labels(run / "labels.jsonl")
    assert before["task_id"] == after["task_id"]
    assert before["best"] != after["best"]


def test_what_is_shown_is_blind_and_cannot_act_on_the_terminal(run: Path) -> None:
    output = label(run, "--sample", 1, "--by", "anna", typed="v\nq\n")
    assert "model-" not in output
    assert "t0" not in output and "\x1b" not in output and "\u202e" not in output
    for shown in ("Read this first.", "the known answer", "a good answer", "Candidate 3"):
        assert output.count(shown) == 2  # once more in the pager


def test_scores_are_asked_for_by_component(run: Path) -> None:
    output = label(run, "--sample", 1, "--by", "anna", "--scores", typed="1 2\n11 2 3\n1 2 -\n4 5 6\n")
    assert "Type 3 numbers" in output
    assert "A score is a number from 0 to 10" in output
    (line,) = labels(run / "labels.jsonl")
    assert [sorted(scores, key=str) for scores in line["scores"].values()] == [[1, 2, None], [4, 5, 6]]


def test_people_share_a_file_and_a_form_comes_back_into_it(run: Path, tmp_path: Path) -> None:
    label(run, "--sample", 2, "--by", "anna", typed="1\n1\n")
    form = tmp_path / "ben.html"
    output = label(run, "--sample", 2, "--by", "ben", "--html", form)
    assert "a form with 2 tasks for ben" in output
    with pytest.raises(ConfigError, match="--force"):
        label(run, "--sample", 2, "--by", "ben", "--html", form)
    told = [{**line, "by": "ben"} for line in labels(run / "labels.jsonl")]
    told.append({**told[0], "task_id": "of another run"})
    (tmp_path / "ben.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    output = label(run, "--import", tmp_path / "ben.jsonl")
    assert "2 labels added" in output
    assert "of another run" in output
    assert "0 labels added" in label(run, "--import", tmp_path / "ben.jsonl")
    assert "2 of 2 tasks are labeled by ben" in label(run, "--sample", 2, "--by", "ben")


def test_a_faulty_file_is_refused_before_anything_is_added(run: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(
        '{"task_id": "t0", "best": 0, "by": "x"}\n{"task_id": "t1", "best": 9, "by": "x"}\n'
    )
    with pytest.raises(TaskError) as error:
        label(run, "--import", tmp_path / "bad.jsonl")
    assert error.value.line == 2
    assert not (run / "labels.jsonl").exists()


def test_a_table_of_labels_is_imported_as_lines_that_every_command_reads(run: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("task_id,best,by\nt0,0,anna\nt1,B,\n")
    assert "2 labels added" in label(run, "--import", tmp_path / "labels.csv")
    assert "0 labels added" in label(run, "--import", tmp_path / "labels.csv")
    assert [line["best"] for line in labels(run / "labels.jsonl")] == [0, "B"]
    assert "1 of 1 tasks are labeled by anna" in label(run, "--sample", 1, "--by", "anna", typed="1\n")


@pytest.mark.parametrize("asked", [("--sample", 2, "--by", "anna"), ("--import", "good.jsonl")])
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(
    run: Path, tmp_path: Path, asked: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.jsonl").write_text('{"task_id": "t0", "best": 0, "by": "x"}\n')
    Path("notes.txt").write_text("hello notes\nmy last line of notes")
    with pytest.raises(ConfigError, match="name another file"):
        label(run, *asked, "--out", "notes.txt", typed="1\n1\n")
    assert Path("notes.txt").read_text() == "hello notes\nmy last line of notes"


def test_the_summary_says_how_many_and_how_sure(run: Path) -> None:
    label(run, "--sample", 4, "--stratify", "group", "--by", "anna", typed="1\n2\n3\n1\n")
    output = label(run, "--summary")
    assert "4 of 6 tasks have a label" in output
    assert "group a: 2 of 3" in output
    assert "below 30" in output
    assert "accuracy" in output and "wins model-0" in output
    found = json.loads(label(run, "--summary", "--json"))
    assert (found["labeled"], found["stratify"]) == (4, "group")
    assert found["figures"][0]["ppi"]["n"] == 4
    assert found["figures"][1]["rogan_gladen"]["estimate"] is None


def test_a_summary_of_labels_that_nobody_drew_is_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "by-hand.jsonl").write_text('{"task_id": "t0", "best": 0}\n')
    with pytest.raises(InputError, match="random sample"):
        label(run, "--summary", "--labels", tmp_path / "by-hand.jsonl")


@pytest.mark.parametrize("given", [(), ("--summary", "--sample", "3")])
def test_what_to_do_is_said_once(run: Path, given: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="give one of"):
        label(run, *given)


@pytest.mark.parametrize(
    ("asked", "useless", "only_with"),
    [
        *[
            (asked, useless, "--sample")
            for asked in (("--summary",), ("--import", "l.jsonl"))
            for useless in (
                ("--seed", "0"),
                ("--stratify", "group"),
                ("--by", "q"),
                ("--scores",),
                ("--html", "x.html"),
                ("--force",),
            )
        ],
        *[
            (asked, useless, "--summary")
            for asked in (("--sample", "2"), ("--import", "l.jsonl"))
            for useless in (("--json",), ("--passing", "0"))
        ],
        (("--sample", "2"), ("--force",), "--html"),
    ],
)
def test_a_flag_that_would_have_no_effect_is_refused(
    run: Path, asked: tuple[str, ...], useless: tuple[str, ...], only_with: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{useless[0]}: is of use only with {only_with}"):
        label(run, *asked, *useless)
    assert not (run / "labels.jsonl").exists()
