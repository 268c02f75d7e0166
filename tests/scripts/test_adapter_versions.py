"""The environments in which adapters are tested: the lowest are those of pyproject.toml, the others are later."""

from __future__ import annotations

import tomllib

import pytest

from tests.scripts_loader import REPOSITORY

FOLDER = REPOSITORY / "scripts" / "adapters"
BOUNDS = {
    name: requirements[0].partition(">=")[::2]
    for name, requirements in tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ].items()
    if name in ("dspy", "gepa", "inspect", "openevals")
}
HELD_IN = {"dspy": "dspy", "gepa": "dspy", "inspect": "inspect", "openevals": "openevals"}


def pinned(environment: str, package: str) -> str:
    lines = (FOLDER / f"{environment}.txt").read_text(encoding="utf-8").splitlines()
    (version,) = (line.partition("==")[2] for line in lines if line.partition("==")[0].replace("-", "_") == package)
    return version


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


@pytest.mark.parametrize("name", HELD_IN)
def test_the_lowest_environment_has_the_lower_bound_and_the_other_is_no_older(name: str) -> None:
    package, bound = BOUNDS[name]
    assert pinned(f"lowest/{HELD_IN[name]}", package) == bound
    assert numbers(pinned(HELD_IN[name], package)) >= numbers(bound)


@pytest.mark.parametrize("environment", sorted({*HELD_IN.values()}))
def test_both_environments_run_the_same_tests(environment: str) -> None:
    newest, lowest = (FOLDER / f"{folder}{environment}.txt" for folder in ("", "lowest/"))
    assert newest.read_text().partition("\n")[0] == lowest.read_text().partition("\n")[0]
