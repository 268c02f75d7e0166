"""The package as a whole: a quick import, a public surface that is written down, layers that point one way."""

from __future__ import annotations

import ast
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import debate

PACKAGE = Path(debate.__file__).parent
HEAVY = {"vllm", "torch", "chromadb", "sqlalchemy", "transformers"}

LAYERS = (
    {"tasks"},
    {"concurrency", "scoring", "net", "sql", "templates"},
    {"parsing", "statistics"},
    {"scorers"},
    {"evaluators"},
    {"backends", "memory", "store"},
    {"runtime"},
    {"dataset", "export", "bundled_judge", "search"},
    {"config"},
    {"jobs", "server"},
    {"meta_evaluation", "adapters"},
    {"report"},
    {"fleet"},
    {"cli", "testing"},
    {"notebook"},
)
"""The folders, from the ground floor up: a folder imports from those below it alone. Modules at the root stand between
the floors, wherever what they import lets them; no circle may pass through them."""


# ---- import


def modules_after(code: str) -> tuple[set[str], float]:
    """Top-level modules that some code loads in a fresh process, and the seconds that it takes."""
    timed = f"""
import json, sys, time
before = set(sys.modules)
began = time.perf_counter()
{code}
seconds = time.perf_counter() - began
print(json.dumps([sorted({{name.partition('.')[0] for name in set(sys.modules) - before}}), seconds]))
"""
    done = subprocess.run(
        [sys.executable, "-c", timed], cwd=PACKAGE.parent, capture_output=True, text=True, check=True, timeout=60
    )
    names, seconds = json.loads(done.stdout)
    return set(names), seconds


def test_importing_the_package_is_quick_and_loads_no_library() -> None:
    runs = [modules_after("import debate") for _ in range(3)]
    assert statistics.median(seconds for _, seconds in runs) < 1.5  # well under 0.5 on an idle machine
    loaded = runs[0][0]
    assert "debate" in loaded
    assert not loaded & (HEAVY | {"pydantic", "numpy", "jinja2", "yaml", "typer", "rich"})


def test_using_every_public_name_and_backend_loads_no_heavy_library() -> None:
    code = "from debate import *\nfrom debate.backends import *\nEngine(Scripted(str)), DebateEvaluator('general')"
    loaded, _ = modules_after(code)
    assert "numpy" in loaded
    assert not loaded & HEAVY


# ---- public surface

PINNED = {
    "Candidate", "Component", "DebateEvaluator", "Engine", "Evaluation", "Persona", "Profile", "Sampling", "Scale",
    "Task", "load_profile",
}  # fmt: skip


def test_the_public_names_are_those_that_are_written_down() -> None:
    assert list(debate.__all__) == sorted(debate.__all__)
    assert set(debate.__all__) >= PINNED
    assert dir(debate) == sorted([*debate.__all__, "__version__"])


@pytest.mark.parametrize("name", debate.__all__)
def test_every_public_name_is_there_and_has_a_docstring(name: str) -> None:
    assert getattr(debate, name).__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Debater'"):
        _ = debate.Debater


def test_the_names_for_type_checkers_are_the_names_at_run_time() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(typed) == set(debate.__all__)
    for name, (module, original) in typed.items():
        assert module is not None
        assert name == original
        assert getattr(debate, original) is getattr(sys.modules[module], original)


# ---- layers


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The module or folder right under `debate` that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The modules of `debate` that a file imports, wherever in the file, for type checkers too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {name for node in ast.walk(tree) for name in _imports(node) if name.startswith("debate.")}


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            is_module = any(
                (PACKAGE.parent / f"{inner.replace('.', '/')}{end}").exists() for end in (".py", "/__init__.py")
            )
            yield inner if is_module else str(node.module)


PARTS: dict[str, set[str]] = {}
MODULES: dict[str, set[str]] = {}
for source in sources():
    names = imported(source)
    PARTS.setdefault(part_of(source), set()).update({name.split(".")[1] for name in names} - {part_of(source)})
    MODULES[".".join(source.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")] = names
del PARTS["__init__"], MODULES["debate"]  # the public names, which are imported when they are used
FOLDERS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
FLOORS = {folder: floor for floor, folders in enumerate(LAYERS) for folder in folders}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The nodes of a graph that stand in circles or behind one."""
    left = {node: targets & graph.keys() for node, targets in graph.items()}
    while free := {node for node, targets in left.items() if not targets}:
        left = {node: targets - free for node, targets in left.items() if node not in free}
    return sorted(left)


def test_no_part_imports_in_a_circle() -> None:
    assert circle(PARTS) == []


def test_no_module_imports_in_a_circle() -> None:
    graph = {
        name: {other for other in targets if not name.startswith(f"{other}.")} - {name}
        for name, targets in MODULES.items()
    }
    assert circle(graph) == []


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


def test_every_folder_has_its_floor() -> None:
    assert set(FLOORS) == FOLDERS


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_a_folder_imports_from_the_floors_below_it(folder: str) -> None:
    assert [other for other in PARTS[folder] & FOLDERS if FLOORS[other] >= FLOORS[folder]] == []


def test_only_what_stands_on_top_asks_for_the_version() -> None:
    asking = {part_of(path) for path in sources() for node in ast.walk(ast.parse(path.read_text())) if _asks(node)}
    assert asking <= {"jobs", "cli"}


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.Import) and any(alias.name == "debate" for alias in node.names)


# ---- form


def test_few_modules_stand_at_the_root_of_the_package() -> None:
    assert len([path for path in PACKAGE.glob("*.py")]) <= 20


def test_there_are_fewer_than_330_files() -> None:
    assert len(sources()) < 330


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_named_for_what_they_hold(path: Path) -> None:
    assert not {path.stem, *path.relative_to(PACKAGE).parts} & {"utils", "helpers", "common", "manager"}


TESTS = Path(__file__).parent
OF_THE_WHOLE = {"whole", "docs", "examples", "scripts"}
"""Folders of tests that are of no one module."""
AT_THE_ROOT = {"golden", "package", "recorded_runs", "required", "wheel"}
"""Tests of the whole that stand beside these folders."""


def files_of_tests() -> list[Path]:
    return [path for path in sorted(TESTS.rglob("test_*.py")) if path.relative_to(TESTS).parts[0] not in OF_THE_WHOLE]


@pytest.mark.parametrize("path", files_of_tests(), ids=lambda path: str(path.relative_to(TESTS)))
def test_tests_mirror_the_package(path: Path) -> None:
    """A test file is named for its folder, or for a module or folder there: `test_run.py`, `test_run_resumed.py`."""
    folder, name = PACKAGE / path.relative_to(TESTS).parent, path.stem.removeprefix("test_")
    names = {each.stem for each in folder.iterdir()} | {folder.name} if folder.is_dir() else set[str]()
    names |= AT_THE_ROOT if folder == PACKAGE else set()
    assert any(name == each or name.startswith(f"{each}_") for each in names)
