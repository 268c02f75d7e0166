"""Python in the manual: run where it can be, otherwise compiled, with every name and argument looked up."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import Block, blocks

PYTHON = blocks("python")


@pytest.mark.parametrize("block", [block for block in PYTHON if block.is_run], ids=str)
def test_a_block_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block.code, str(block), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_what_a_block_imports_is_there_and_takes_the_arguments_given(block: Block) -> None:
    tree = ast.parse(block.code)
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            assert_takes(names[node.func.id], [keyword.arg for keyword in node.keywords if keyword.arg])


def imported(tree: ast.Module) -> dict[str, Any]:
    """What the block imports from the package, by the name it uses."""
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "debate":
            module = import_module(str(node.module))
            for alias in node.names:
                value = getattr(module, alias.name, None) or import_module(f"{node.module}.{alias.name}")
                found[alias.asname or alias.name] = value
    return found


def assert_takes(called: Any, keywords: list[str]) -> None:
    parameters = inspect.signature(called).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        assert set(keywords) <= parameters.keys()


def test_enough_blocks_are_run() -> None:
    assert sum(block.is_run for block in PYTHON) >= 10


def test_an_argument_that_is_not_there_is_seen() -> None:
    with pytest.raises(AssertionError):
        assert_takes(imported(ast.parse("from debate import Task"))["Task"], ["question"])
