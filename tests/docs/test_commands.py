"""Commands in the README and the manual: `debate ...` is read by the program itself, paths and extras are there."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

from debate.cli import app
from debate.config.settings import RunSettings
from tests.docs.blocks import REPOSITORY, blocks, pages

_INDENTED = re.compile(r"(?m)^    ((?:debate |scripts/|python examples/|pip install ).*)$")
_COMMENT = re.compile(r"\s+#.*")


def commands() -> list[tuple[str, str]]:
    """Every command line of a page, with its place."""
    found = [
        (str(block), _COMMENT.sub("", line)) for block in blocks("bash") for line in block.code.splitlines() if line
    ]
    found += [
        (str(block), block.code.splitlines()[0].partition(": ")[2])
        for block in blocks("yaml")
        if ": debate" in block.code
    ]
    for page in pages():
        if page.name != "CHANGELOG.md":
            lines = _INDENTED.findall(page.read_text(encoding="utf-8"))
            found += [(page.name, _COMMENT.sub("", line)) for line in lines]
    return found


COMMANDS = commands()


def of(*programs: str) -> list[object]:
    return [pytest.param(line, id=f"{place} {line}"[:100]) for place, line in COMMANDS if line.startswith(programs)]


def parsed(line: str) -> None:
    """Read a command line as the program does, without doing it."""
    command: Any = typer.main.get_command(app)
    words = shlex.split(line)[1:]
    while hasattr(command, "commands"):
        assert words and words[0] in command.commands, f"no command {words[:1]}"
        command = command.commands[words.pop(0)]
    command.make_context("debate", words)


@pytest.mark.parametrize("line", of("debate"))
def test_the_program_knows_the_command_and_its_options(line: str) -> None:
    parsed(line)


@pytest.mark.parametrize("line", ["debate rum x.jsonl", "debate run x.jsonl --round 2", "debate show"])
def test_a_command_that_is_wrong_is_seen(line: str) -> None:
    with pytest.raises((AssertionError, Exception), match=r"no command|[Nn]o such option|[Mm]issing"):
        parsed(line)


@pytest.mark.parametrize("line", of("scripts/", "python examples/"))
def test_scripts_and_examples_are_there(line: str) -> None:
    words = shlex.split(line)
    assert (REPOSITORY / (words[1] if words[0] == "python" else words[0])).is_file()


@pytest.mark.parametrize("line", of("pip install"))
def test_extras_are_declared(line: str) -> None:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for named in re.findall(r"\.\[([\w,]+)\]", line):
        assert set(named.split(",")) <= extras.keys()


def test_there_are_commands_of_every_kind() -> None:
    assert all(of(program) for program in ("debate", "scripts/", "python examples/", "pip install"))


@pytest.mark.parametrize("line", of("debate run"))
def test_the_settings_of_a_run_make_an_evaluator(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the run itself: an option with a wrong value is found before it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_module.py").write_text("def my_function(x, answer):\n    return 1.0\n")
    (tmp_path / "my_templates").mkdir()
    for block in blocks("yaml"):
        if named := re.match(r"# (\w+\.yaml): ", block.code):
            (tmp_path / named[1]).write_text(block.code)
    for folder in (tmp_path, REPOSITORY / "examples" / "extending"):
        monkeypatch.syspath_prepend(folder)  # pyright: ignore[reportUnknownMemberType]
    made: list[RunSettings] = []

    def keep(settings: RunSettings, *_: object, **__: object) -> int:
        made.append(settings)
        return 0

    monkeypatch.setattr("debate.cli.execution.execute", keep)
    if "./claims.yaml" not in line:  # a profile that the reader is to write
        app(shlex.split(line)[1:], standalone_mode=False)
        made[0].make_evaluator()
