"""The program itself: a command loads what it needs, when it is named."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from debate.cli import COMMAND_GROUPS, COMMANDS

SLOW = {"numpy", "jinja2", "yaml", "sqlalchemy"}
LOADED = """
import json, sys
from debate.cli import main
sys.argv = ["debate", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code, sorted(sys.modules)]))
"""


def modules_loaded_by(*arguments: str) -> set[str]:
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert not code
    return set(modules)


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("show", "--help"), ("export", "--help"), ("doctor", "--help"), ("memory", "--help")],
)
def test_help_loads_neither_the_settings_nor_the_store(arguments: tuple[str, ...]) -> None:
    loaded = modules_loaded_by(*arguments)
    assert not loaded & SLOW
    assert not [name for name in loaded if name.startswith(("debate.config", "debate.store", "debate.evaluators"))]


def test_the_list_of_commands_loads_no_pydantic() -> None:
    assert "pydantic" not in modules_loaded_by("--help")  # typer loads it to read a command's arguments


def test_the_help_of_a_run_loads_the_settings_that_its_flags_are_made_of() -> None:
    assert "debate.config.settings" in modules_loaded_by("run", "--help")


def test_the_list_of_commands_has_each_with_a_sentence() -> None:
    done = subprocess.run([sys.executable, "-m", "debate", "--help"], capture_output=True, text=True, timeout=60)
    for name in COMMANDS:
        assert f"│ {name} " in done.stdout
    assert all(f"─ {group} ─" in done.stdout for group in COMMAND_GROUPS)
    assert "Show a debate, who said what and what came of it; or list the" in done.stdout


def test_a_command_that_is_mistyped_is_refused_with_the_one_meant() -> None:
    done = subprocess.run([sys.executable, "-m", "debate", "rum"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "'run'" in done.stderr
