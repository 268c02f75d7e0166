"""Flags are made from the declared settings, and come back as the same settings that a file gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from debate.cli.flags import settings_flags
from debate.config.settings import RunSettings, SettingRow, settings_table
from debate.errors import ConfigError

ROWS = settings_table()


def given(*arguments: str, names: tuple[str, ...] = (), **environment: str) -> dict[str, Any]:
    """What a command with flags of settings is called with."""
    seen: list[dict[str, Any]] = []

    @settings_flags(*names)
    def command(where: str = "here", **flags: Any) -> None:
        seen.append(flags)

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, [*arguments], env=environment, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_without_flags_nothing_is_given() -> None:
    assert given() == {}
    assert RunSettings.read(None, {}).given() == {}


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--rounds", "4"], "rounds", 4),
        (["--convergence", "none"], "convergence", None),
        (["--convergence", "0.25"], "convergence", 0.25),
        (["--history", "off"], "history", None),
        (["--history-scores", "false"], "history_scores", False),
        (["--blind-first-round", "true"], "blind_first_round", True),
        (["--weight", "clarity=0.5", "--weight", "big-picture=1"], "weights", {"clarity": 0.5, "big-picture": 1.0}),
        (["--column", "x=7", "--column", "candidates=a,b"], "columns", {"x": "7", "candidates": "a,b"}),
        (["--engine-arg", "max_model_len=4096"], "engine_args", {"max_model_len": 4096}),
        (["--option", "reader={json: [worth, 0, 20]}"], "options", {"reader": {"json": ["worth", 0, 20]}}),
        (["--answers", "a.jsonl", "--answers", "b.jsonl"], "answers", (Path("a.jsonl"), Path("b.jsonl"))),
        (["--cache", "90m"], "cache", 5400.0),
        (["--mode", "independent"], "mode", "independent"),
        (["--memory", "none"], "memory", "none"),
        (["--templates", "compact"], "templates", Path("compact")),
        (["--min-p", "0.1"], "min_p", 0.1),
    ],
)
def test_a_flag_gives_its_setting(arguments: list[str], name: str, value: object) -> None:
    flags = given(*arguments)
    assert flags.keys() == {name}
    assert getattr(RunSettings.read(None, flags), name) == value


def test_a_model_of_a_persona_is_a_mapping() -> None:
    settings = RunSettings.read(None, given("--models", "big={backend: ollama, model: llama}"))
    assert settings.models["big"].backend == "ollama"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_setting_has_a_flag_a_sentence_of_help_and_a_default_that_it_takes(row: SettingRow) -> None:
    assert row.flag.startswith("--")
    assert row.help[0].isupper() or row.name in ("evaluator", "backend", "mode", "candidate_order")
    assert row.help.endswith(".")
    assert getattr(RunSettings.read(None, {row.name: row.default}), row.name) == row.default


def test_only_some_settings_have_a_flag_where_a_command_names_them() -> None:
    assert given("--model", "m", names=("model", "backend")) == {"model": "m"}
    with pytest.raises(AssertionError, match="No such option"):
        given("--rounds", "2", names=("model", "backend"))


def test_an_environment_variable_stands_for_its_flag() -> None:
    assert given(DEBATE_MODEL="m", DEBATE_STORE="s.sqlite") == {"model": "m", "store": "s.sqlite"}
    assert given("--model", "n", DEBATE_MODEL="m") == {"model": "n"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--engine-arg", "max_model_len"], "--engine-arg: must be KEY=VALUE"),
        (["--option", "=3"], "--option: must be KEY=VALUE"),
        (["--option", "a={b"], "--option: the value of a is not YAML"),
    ],
)
def test_a_mapping_that_is_none_is_refused_with_its_flag(arguments: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        given(*arguments)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rounds", "two"], "rounds: must be a whole number, got 'two'"),
        (["--rounds", "0"], r"rounds: must lie in \[1, inf\), got '0'"),
        (["--temperature", "hot"], "temperature: must be a number, got 'hot'"),
        (["--cache", "7 w"], "cache: "),
        (["--history-scores", "perhaps"], "history_scores: "),
        (["--mode", "parallel"], "mode: "),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(arguments: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        RunSettings.read(None, given(*arguments))


@pytest.mark.parametrize("flag", ["--run", "--out", "--rounds"])
def test_a_flag_with_an_empty_value_is_refused_by_its_name(flag: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{flag}: must not be empty"):
        given(flag, "")


def test_an_environment_variable_that_is_empty_gives_nothing() -> None:
    assert given(DEBATE_STORE="") == {}
