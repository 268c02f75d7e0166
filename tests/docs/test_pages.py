"""The pages themselves: the README's length, links that lead somewhere, pages made from the code."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import debate
from debate.cli import COMMANDS
from debate.config.settings import RunSettings
from debate.registry import BACKENDS, EVALUATORS, EXPORTS, FORMATS, Registry
from tests.docs.blocks import REPOSITORY, pages

_LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]+)(?:#[^)]*)?\)")


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pages", REPOSITORY / "docs" / "_tools" / "pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = load_generator()


def test_the_readme_is_a_front_page() -> None:
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_of_pages_outside_the_manual_lead_somewhere(name: str) -> None:
    for target in _LINK.findall((REPOSITORY / name).read_text(encoding="utf-8")):
        assert (REPOSITORY / target).exists(), target


def test_every_public_name_is_in_the_reference() -> None:
    folder = REPOSITORY / "docs" / "reference" / "api"
    named = {
        name for page in folder.glob("*.md") for name in re.findall(r"(?m)^::: ([\w.]+)$", page.read_text("utf-8"))
    }
    assert [name for name in debate.__all__ if f"debate.{name}" not in named] == ["DebateError"]  # in debate.errors


def test_the_tree_in_the_architecture_is_that_of_the_package() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    _, _, tree = text.partition("## The tree")
    folders = {path.parent.name for path in (REPOSITORY / "debate").glob("*/__init__.py")}
    assert set(re.findall(r"(?m)^  (\w+)/ ", tree)) == folders
    assert all((REPOSITORY / "debate" / name).is_file() for name in re.findall(r"(\w+\.py)\b", tree))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pages_name_sources_that_a_reader_can_find(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r'seed 00|seed documents|compat="seed"', text, re.IGNORECASE)


@pytest.mark.parametrize(
    ("page", "registry"),
    [("README.md", EVALUATORS), ("docs/evaluators.md", EVALUATORS), ("docs/backends.md", BACKENDS)],
)
def test_every_built_in_name_has_its_row(page: str, registry: Registry) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    ours = [name for name, entry in registry.entries.items() if entry.package is None]
    assert [name for name in ours if f"| `{name}` |" not in text] == []


def test_the_page_of_settings_has_every_setting_and_every_evaluator() -> None:
    page = made.settings_page()
    assert [name for name in RunSettings.model_fields if f"| `{name}` |" not in page] == []
    assert [name for name in EVALUATORS.entries if name != "debate" and f"### {name}\n" not in page] == []


def test_the_page_of_commands_has_every_command_with_its_options() -> None:
    page = made.command_line_page()
    for name in COMMANDS:
        assert f"## debate {name}\n" in page
    assert "## debate memory add\n" in page
    assert "| `--candidate-order` |" in page


def test_the_page_of_formats_has_every_format_and_export() -> None:
    page = made.formats_page()
    names = [name for registry in (FORMATS, EXPORTS, EVALUATORS, BACKENDS) for name in registry.entries]
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_made_pages_are_written_once_and_left_alone_while_nothing_changes(tmp_path: Path) -> None:
    made.write(tmp_path)
    written = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    made.write(tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written
    assert sorted(written) == ["command-line.md", "formats.md", "settings.md"]


@pytest.mark.parametrize("page", ["settings_page", "command_line_page", "formats_page"])
def test_tables_are_whole(page: str) -> None:
    tables = re.findall(r"(?m)(?:^\|.*\n?)+", getattr(made, page)())
    assert len(tables) > 3
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table


@pytest.mark.skipif(
    not (REPOSITORY / ".venv-docs" / "stamp").exists() and "CI" not in os.environ,
    reason="scripts/docs has not been run in this checkout",
)
def test_the_manual_builds_strictly() -> None:
    done = subprocess.run([REPOSITORY / "scripts" / "docs"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (REPOSITORY / "out" / "site" / "reference" / "settings" / "index.html").is_file()
