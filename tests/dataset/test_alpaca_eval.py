"""AlpacaEval: outputs of several models joined by instruction, and annotations with their preference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debate.errors import ConfigError, TaskError
from tests.dataset.files import Row, array, generators, read, texts


def outputs(folder: Path, model: str, *instructions: str) -> Path:
    rows: list[Row] = [
        {"instruction": text, "output": f"{model}{n}", "generator": model} for n, text in enumerate(instructions)
    ]
    return array(folder / f"{model}.json", *rows)


def test_the_nth_output_of_an_instruction_is_joined_with_the_nth(tmp_path: Path) -> None:
    first, other = outputs(tmp_path, "a", "do", "say", "do"), outputs(tmp_path, "b", "say", "do", "do")
    tasks = read(first, "alpaca_eval", answers=(other,))
    assert [(task.x, texts(task)) for task in tasks] == [
        ("do", ["a0", "b1"]),
        ("say", ["a1", "b0"]),
        ("do", ["a2", "b2"]),
    ]
    assert generators(tasks[0]) == ["a", "b"]


def test_an_output_that_is_missing_or_left_over_is_refused(tmp_path: Path) -> None:
    first = outputs(tmp_path, "a", "do", "say", "do")
    with pytest.raises(TaskError, match=r"c\.json: has no output for the instruction of .*a\.json:\d+"):
        read(first, "alpaca_eval", answers=(outputs(tmp_path, "c", "do", "say"),))
    with pytest.raises(TaskError, match=r"d\.json:\d+: instruction: is an output for no instruction"):
        read(first, "alpaca_eval", answers=(outputs(tmp_path, "d", "do", "say", "do", "sing"),))


def test_equal_instructions_about_different_inputs_are_different_tasks(tmp_path: Path) -> None:
    def about(model: str, *inputs: str) -> Path:
        return array(
            tmp_path / f"{model}.json",
            *({"instruction": "Sum up.", "input": each, "output": f"{model} on {each}"} for each in inputs),
        )

    tasks = read(about("a", "one", "two"), "alpaca_eval", answers=(about("b", "two", "one"),))
    assert [(task.x, texts(task)) for task in tasks] == [
        ("Sum up.\n\nInput:\none", ["a on one", "b on one"]),
        ("Sum up.\n\nInput:\ntwo", ["a on two", "b on two"]),
    ]


def annotation(preference: Any) -> Row:
    return {
        "instruction": "do", "output_1": "a", "output_2": "b", "generator_1": "m", "generator_2": "n",
        "annotator": "someone", "preference": preference,
    }  # fmt: skip


def test_the_preference_of_an_annotation_is_its_label(tmp_path: Path) -> None:
    rows = [annotation(preference) for preference in (1, 2.0, 1.25, 1.5, 0, None)]
    tasks = read(array(tmp_path / "annotations.json", *rows), "alpaca_eval")
    assert [task.metadata.get("best") for task in tasks] == [0, 1, 0, None, None, None]
    assert tasks[2].metadata["preference"] == 1.25
    assert [task.metadata.get("ranking") for task in tasks] == [None, None, None, [1, 1], [1, 1], None]
    assert (generators(tasks[0]), tasks[0].metadata["annotator"]) == (["m", "n"], "someone")


@pytest.mark.parametrize("preference", [3, 0.5, -1, True, "1"])
def test_a_preference_that_is_none_is_refused(tmp_path: Path, preference: Any) -> None:
    with pytest.raises(TaskError, match="preference: must be a number from 1 to 2"):
        read(array(tmp_path / "annotations.json", annotation(preference)), "alpaca_eval")


def test_annotations_take_no_further_files(tmp_path: Path) -> None:
    file = array(tmp_path / "annotations.json", annotation(1))
    with pytest.raises(ConfigError, match="take no further files"):
        read(file, "alpaca_eval", answers=(outputs(tmp_path, "a", "do"),))
