"""`debate profiles`: every profile is found, and all that one says is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from debate.cli.profiles import profiles
from debate.errors import InputError, ProfileError
from debate.profiles import load_profile, profile_names

app = typer.Typer()
app.command()(profiles)


def shown(*arguments: str) -> str:
    """The output, without the line ends and blanks of its layout."""
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"}, catch_exceptions=False)
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    assert "\x1b" not in result.output
    return " ".join(result.output.split())


def test_every_built_in_profile_is_listed_with_its_agents_and_components() -> None:
    text = shown()
    for name in profile_names():
        profile = load_profile(name)
        assert f"{name} {' '.join(profile.description.split())}" in text
        assert f"agents {', '.join(persona.name for persona in profile.personas)}" in text
        assert f"components {', '.join(component.name for component in profile.components)}" in text


def test_a_built_in_profile_is_shown_in_full() -> None:
    text = shown("general")
    profile = load_profile("general")
    assert " ".join(profile.description.split()) in text
    for persona in profile.personas:
        assert f"{persona.name} {' '.join(persona.role.split())}" in text
    for component in profile.components:
        first_words = component.description.split()[0]
        assert f"{component.name} {component.weight:g} {first_words}" in text


MINE = r"""
name: "mine"
description: "Two \u202e[red]views"
components:
  - {name: "depth", weight: 0.25, description: "How deep."}
personas:
  - name: "Sceptic"
    role: "Doubt \u200bit."
    model: "big/model"
    sampling: {temperature: 0.2, max_tokens: 300}
    agreement: 3
    memory: {collections: [facts, rules], k: 4, max_tokens: 200}
  - name: "Rememberer"
    role: "Recall."
    memory: {k: 2}
"""


def test_a_users_own_profile_is_shown_with_all_it_sets(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE.replace(r"\u202e", "").replace(r"\u200b", ""), encoding="utf-8")
    text = shown(str(file))
    assert "mine Two [red]views" in text
    assert "depth 0.25 How deep." in text
    assert (
        "Sceptic Doubt it. model: big/model sampling: temperature 0.2, max_tokens 300 agreement: 3 of 10 "
        "memory: 4 from facts, rules, at most 200 tokens Rememberer Recall. memory: 2 from its own collection"
    ) in text


def test_invisible_characters_of_a_profile_are_spelled_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE, encoding="utf-8")
    assert r"Two \u202e[red]views" in shown(str(file))


def test_an_unknown_profile_is_refused_by_name() -> None:
    with pytest.raises(ProfileError, match="general"):
        shown("generel")


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_is_printed_as_yaml_that_can_be_loaded_back(name: str, tmp_path: Path) -> None:
    printed = CliRunner().invoke(app, [name, "--yaml"], env={"COLUMNS": "40"}, catch_exceptions=False)
    (tmp_path / "mine.yaml").write_text(printed.output, encoding="utf-8")
    assert load_profile(tmp_path / "mine.yaml") == load_profile(name)
    assert "description: >-" in printed.output


def test_yaml_is_printed_of_one_profile_that_is_valid(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--yaml: prints one profile: name it"):
        shown("--yaml")
    (tmp_path / "mine.yaml").write_text("name: 3", encoding="utf-8")
    with pytest.raises(ProfileError):
        shown(str(tmp_path / "mine.yaml"), "--yaml")
