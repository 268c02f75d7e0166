"""`--help` of every command: plain words, all defaults told in one way, and nothing wider than the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from debate.cli import COMMANDS, app
from debate.cli.help_pages import filled


def paths() -> Iterator[tuple[str, ...]]:
    """Every command, those of groups too."""
    commands: Any = typer.main.get_command(app)
    for name in COMMANDS:
        yield (name,)
        yield from ((name, each) for each in getattr(commands.commands[name], "commands", ()))


def help_of(*path: str, columns: int = 80) -> str:
    env = {"COLUMNS": str(columns), "TERMINAL_WIDTH": None, "FORCE_COLOR": None}
    result = CliRunner().invoke(app, [*path, "--help"], env=env, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def words(text: str) -> str:
    """Without borders and line ends."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


@pytest.mark.parametrize("path", [(), *paths()], ids=" ".join)
def test_a_help_page_fits_and_holds_no_words_of_programmers(path: tuple[str, ...]) -> None:
    text = help_of(*path)
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"<[a-z ]+>|<list|\{[a-z_]+\}|\[default|install-completion", text)
    assert not re.search(r"Default: \(|None\b", text)


@pytest.mark.parametrize("name", ["run", "serve", "ask", "check", "demo"])
def test_the_engine_comes_first(name: str) -> None:
    boxes = re.findall(r"╭─ (\w+) ─", help_of(name))
    assert next(box for box in boxes if box != "Arguments") == "Engine"
    flags = re.findall(r"│ (--[a-z-]+) ", help_of(name))
    assert flags[:3] == ["--model", "--backend", "--base-url"]


def test_defaults_are_told() -> None:
    text = words(help_of("run"))
    told = {"rounds": "3", "convergence": "0.1", "mode": "sequential", "candidate-order": "shuffle"}
    for flag, default in told.items():
        assert re.search(rf"--{flag} [A-Z](?:(?!--).)*? Default: {default}\.", text), flag
    assert "--seed INTEGER Seed of the draw. A larger sample holds a smaller one of its seed. Default: 0." in words(
        help_of("label")
    )
    assert "Default: 0.15." in words(help_of("agree"))
    assert "Default: your login name." in words(help_of("label"))


def test_the_usage_names_what_must_be_given_without_brackets() -> None:
    assert "compare [OPTIONS] RUN_A [RUN_B]" in words(help_of("compare"))
    assert "ask [OPTIONS] QUESTION ANSWERS..." in words(help_of("ask"))
    assert "check [OPTIONS] EVALSET... Read" in words(help_of("check"))
    refused = CliRunner().invoke(app, ["compare"], env={"COLUMNS": "80"})
    assert "compare [OPTIONS] RUN_A [RUN_B]" in refused.output
    assert "Missing argument 'RUN_A'" in refused.output


def test_the_help_of_an_export_says_which_formats_a_file_name_chooses() -> None:
    assert "CSV where it ends in .csv, else parquet; the others are JSON." in words(help_of("export"))


def test_paragraphs_are_filled_and_examples_keep_their_lines() -> None:
    assert filled("One.\n\n    Two\n    three.\n\n    Example:\n        debate a\n") == (
        "One.\n\nTwo three.\n\nExample:\n    debate a"
    )
    assert "\n     debate agree runs/first --labels" in help_of("agree")
    assert "\n     debate label runs/first --summary" in help_of("label")
