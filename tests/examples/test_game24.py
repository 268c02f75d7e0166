"""`examples/game24.py`: the command finds a solution, or says by its exit code that there is none."""

from __future__ import annotations

import pytest

from examples import game24 as script


def test_the_command_prints_moves_that_end_in_24(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([]) == 0
    moves = capsys.readouterr().out.splitlines()
    assert len(moves) == 3
    assert moves[-1].endswith("(left: 24)")


def test_numbers_without_a_solution_are_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["1 1 1 1"]) == 3
    assert capsys.readouterr().out == ""


def test_settings_that_cannot_work_are_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--model", "m", "--backend", "magic"]) == 2
    assert "error:" in capsys.readouterr().err
