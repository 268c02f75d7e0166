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
    {"errors"},
    {"types"},
    {"persona"},
    {"flow"},
    {"improving"},
    {"ranks", "ballots", "samples", "steps"},
    {"normalisation"},
    {"scoring", "voting", "convergence", "selection", "parsing", "replies", "panel"},
    {"scorers"},
    {"prompts", "profiles"},
    {"evaluation"},
    {"journal"},
    {"evaluators", "backends", "memory", "store"},
    {"admission", "budget", "judge"},
    {"runner", "recording"},
    {"stream"},
    {"engine"},
    {"jobs", "search", "serving"},
    {"cli"},
)
"""From the ground floor up. A part imports from the floors below alone; those of one floor do not import one another.
A module that stands in no layer counts as a piece of whatever imports it."""


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
        alias.asname: (node.module, alias.name)
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
    """The module or subpackage right under `debate` that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    """The parts of `debate` that a file imports at run time, wherever in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {id(inner) for node in ast.walk(tree) if _is_for_type_checkers(node) for inner in ast.walk(node)}
    names = (name for node in ast.walk(tree) if id(node) not in hidden for name in _imports(node))
    return {parts[1] if len(parts) > 1 else "" for parts in (name.split(".") for name in names) if parts[0] == "debate"}


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        is_ours = node.module == "debate"
        for alias in node.names:
            has_file = any((PACKAGE / f"{alias.name}{end}").exists() for end in (".py", "/__init__.py"))
            yield f"debate.{alias.name}" if is_ours and has_file else str(node.module)


FLOORS = {part: floor for floor, parts in enumerate(LAYERS) for part in parts}
GRAPH: dict[str, set[str]] = {}
for source in sources():
    GRAPH.setdefault(part_of(source), set()).update(imported_parts(source))


def reached(part: str) -> set[str]:
    """The layered parts that a part imports, directly or through modules that stand in no layer."""
    seen, ahead = {part}, [part]
    while ahead:
        for other in GRAPH.get(ahead.pop(), set()) - seen:
            seen.add(other)
            if other not in FLOORS:
                ahead.append(other)
    return {other for other in seen if other in FLOORS} - {part}


PRESENT = sorted(set(FLOORS) & set(GRAPH), key=lambda part: FLOORS[part])


@pytest.mark.parametrize("part", PRESENT)
def test_imports_point_down(part: str) -> None:
    assert [other for other in reached(part) if FLOORS[other] >= FLOORS[part]] == []


@pytest.mark.parametrize("part", sorted(GRAPH))
def test_only_what_stands_on_top_asks_for_the_version(part: str) -> None:
    assert "" not in GRAPH[part] or part in ("jobs", "cli")


def test_the_root_imports_nothing_until_a_name_is_used() -> None:
    assert GRAPH["__init__"] == set()


GROUND = {
    "errors": set[str](),
    "types": {"errors"},
    "persona": {"types", "errors"},
    "flow": {"types", "persona"},
    **{
        part: {"types", "errors", "compat", "ranks", "ballots", "samples", "normalisation"}
        for part in ("scoring", "voting", "convergence", "selection", "parsing")
    },
}


@pytest.mark.parametrize("part", [part for part in GROUND if part in GRAPH])
def test_the_ground_floor_stands_on_little(part: str) -> None:
    assert reached(part) <= GROUND[part]


def test_the_walk_sees_what_is_imported_inside_functions_and_skips_what_is_for_type_checkers() -> None:
    assert "backends" in imported_parts(PACKAGE / "engine.py")
    assert imported_parts(PACKAGE / "feedback.py") == {"types"}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_short_and_named_for_what_they_hold(path: Path) -> None:
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= 300
    assert not {path.stem, *path.relative_to(PACKAGE).parts} & {"utils", "helpers", "common", "manager"}
