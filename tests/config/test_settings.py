from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from debate import DebateEvaluator, Engine, Profile
from debate.backends import Call, Ollama, OpenAICompatible, Scripted
from debate.config.settings import RunSettings, settings_table
from debate.errors import ConfigError
from debate.profiles import Component, Persona
from debate.registry import BACKENDS
from debate.settings import declarations


def read(folder: Path, text: str, **flags: object) -> RunSettings:
    config = folder / "run.yaml"
    config.write_text(text)
    return RunSettings.read(config, flags)


def test_a_debate_without_settings_is_the_one_that_the_api_gives() -> None:
    assert RunSettings().make_evaluator().describe() == DebateEvaluator().describe()


def test_flags_go_before_the_file(tmp_path: Path) -> None:
    settings = read(tmp_path, "rounds: 2\nconvergence: null\nseed: 5\n", rounds=4)
    assert (settings.rounds, settings.convergence, settings.seed) == (4, None, 5)


def test_a_setting_of_a_debate_is_declared_in_its_class_alone() -> None:
    declared = {each.name: each for each in declarations(DebateEvaluator)}
    rows = {row.name: row for row in settings_table()}
    assert declared.keys() - rows.keys() == {"sampling"}
    for name in declared.keys() & rows.keys():
        row, own = rows[name], declared[name]
        assert (row.default, row.help, row.may_change) == (own.default, own.help, not own.shapes_prompts)
        assert row.panel == "Debate"
    assert rows["rounds"].bounds == ">= 1"
    assert rows["temperature"].default == DebateEvaluator().sampling.temperature


def test_the_help_of_the_base_url_names_every_backend_that_takes_one() -> None:
    takes = [name for name in BACKENDS.entries if "base_url" in inspect.signature(BACKENDS.load(name)).parameters]
    (row,) = (row for row in settings_table() if row.name == "base_url")
    assert f"for {', '.join(takes)}." in row.help
    assert len(takes) >= 3


def scripted(call: Call) -> str:
    return "{}"


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("backend: scripted\nengine_args: {fn: 'tests.config.test_settings:scripted'}\n", "scripted"),
        ("backend: tests.config.test_settings:scripted\nmodel: mine\nengine_args: {slots: 2}\n", "mine"),
    ],
)
def test_a_plain_function_is_a_scripted_backend_and_needs_no_model(tmp_path: Path, text: str, model: str) -> None:
    backend = read(tmp_path, text).open_backend()
    assert isinstance(backend, Scripted)
    assert backend.model == model


@pytest.mark.parametrize("text", ["backend: scripted\n", "backend: vlm\nmodel: m\n", "backend: 'math:no'\n"])
def test_a_backend_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        read(tmp_path, text).open_backend()


def test_evaluators_that_call_functions_alone_need_no_model() -> None:
    function: dict[str, Any] = {"evaluator": "callback", "function": "sorting_errors", "scale": [0, 9]}
    flags: dict[str, Any] = {"evaluator": "panel", "options": {"members": {"a": function, "b": function}}}
    settings = RunSettings.read(None, flags)
    [backend] = settings.open_backends(settings.make_evaluator()).values()
    assert backend.model == "none"
    flags["options"]["members"]["b"] = {"evaluator": "value"}
    settings = RunSettings.read(None, flags)
    with pytest.raises(ConfigError, match="no model was given"):
        settings.open_backends(settings.make_evaluator())


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "") == RunSettings()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("rounds: 0\n", "run.yaml:1: rounds"),
        ("seed: 1\nover: judges\n", "run.yaml:2: over"),
        ("seed: 1\nseed: 2\n", "run.yaml:2"),
        ("- rounds\n", "run.yaml:1"),
        (
            "seed: 1\nweights:\n  accuracy: 1\n  relevance: -1\n",
            "run.yaml:4: weights.relevance: must lie in [0, inf), got -1",
        ),
        ("models:\n  big:\n    url: x\n", "run.yaml:3: models.big.url"),
    ],
)
def test_a_faulty_file_is_refused_with_line_and_key(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert place in str(refused.value)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[2J", "\u202egnp", "\ud800", "n" * 201])
def test_a_run_is_named_by_a_few_visible_characters(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^command line: run: must be 1 to 200 visible characters"):
        RunSettings.read(None, {"run": name})
    assert RunSettings.read(None, {"run": "n" * 200}).run == "n" * 200


def test_weights_that_sum_to_zero_are_refused_by_their_name(tmp_path: Path) -> None:
    settings = read(tmp_path, "profile: judge\nweights: {accuracy: 0, relevance: 0, completeness: 0}\n")
    with pytest.raises(ConfigError, match=r"^weights: sum to 0: at least one component must count$"):
        settings.make_evaluator()


# The method that a run was recorded with


def recorded(**settings: object) -> dict[str, object]:
    """The identity of a run of the evaluator that these settings make."""
    return {"evaluator": RunSettings.model_validate(settings).make_evaluator().describe()}


@pytest.mark.parametrize(
    ("given", "method"), [({}, "article"), ({"method": "mk1"}, "mk1"), ({"rounds": 1, "profile": "judge"}, "article")]
)
def test_a_debate_keeps_the_method_of_its_record_unless_one_is_given(given: dict[str, object], method: str) -> None:
    kept = RunSettings.model_validate(given).with_methods_of(recorded(method="article"))
    assert kept.make_evaluator().describe()["aggregation"]["method"] == method
    assert kept.given() == {**given, "method": method}


def test_debates_inside_other_evaluators_keep_their_methods_too() -> None:
    def panel(**of_first: object) -> dict[str, object]:
        inner = {"members": {"first": {"evaluator": "debate", **of_first}, "value": {"evaluator": "value"}}}
        debates = {"judge": {"evaluator": "debate", "profile": "judge"}}
        members = {"inner": {"evaluator": "panel", **inner}, "value": {"evaluator": "value"}}
        return {"evaluator": "panel", "options": {"members": members, "reserves": {"value": debates["judge"]}}}

    before = recorded(**panel(method="article"))
    kept = RunSettings.model_validate(panel()).with_methods_of(before)
    assert {"evaluator": kept.make_evaluator().describe()} == before
    given = RunSettings.model_validate(panel(method="mk1")).with_methods_of(before)
    assert given.options["members"]["inner"]["members"]["first"]["method"] == "mk1"


@pytest.mark.parametrize(
    "identity", [None, [], {"evaluator": "debate"}, {"evaluator": {"aggregation": {"method": "no"}}}]
)
def test_a_record_without_a_method_changes_no_setting(identity: object) -> None:
    assert RunSettings(seed=1).with_methods_of(identity).given() == {"seed": 1}


def test_several_models_have_a_backend_each_and_the_runs_own_comes_first(tmp_path: Path) -> None:
    text = """
backend: openai
base_url: http://127.0.0.1:1/v1
model: small
models:
  big: {backend: ollama, model: "llama3.1:70b"}
  other: {backend: openai, base_url: "http://127.0.0.1:2/v1"}
"""
    backends = read(tmp_path, text).open_backends()
    assert list(backends) == ["small", "big", "other"]
    assert isinstance(backends["small"], OpenAICompatible)
    assert isinstance(backends["big"], Ollama)
    assert [backend.model for backend in backends.values()] == ["small", "llama3.1:70b", "other"]
    profile = Profile("two", (Persona("a", "r"), Persona("b", "r", model="big")), (Component("c", "d"),))
    Engine(backends).check(DebateEvaluator(profile))
    with pytest.raises(ConfigError, match="nobody"):
        Engine(backends).check(DebateEvaluator(Profile("x", (Persona("a", "r", model="nobody"),), profile.components)))


def test_what_a_server_is_told_of_patience_reaches_it(tmp_path: Path) -> None:
    text = "backend: openai\nmodel: m\nbase_url: http://127.0.0.1:1/v1\nengine_args: {timeout: 7, slots: 3}\n"
    backend = read(tmp_path, text).open_backend()
    assert isinstance(backend, OpenAICompatible)
    assert backend.capacity.slots == 3
    assert backend.retry_policy.timeout == 7


def test_the_limits_of_a_server_reach_it_and_each_model_has_its_own(tmp_path: Path) -> None:
    text = """
{backend: openai, model: m, base_url: "http://127.0.0.1:1/v1", rpm: 60, tpm: 9000,
 models: {big: {backend: ollama, model: b, rpm: 5}}}
"""
    small, big = read(tmp_path, text).open_backends().values()
    assert isinstance(small, OpenAICompatible)
    assert isinstance(big, Ollama)
    assert (small.limits.rpm, small.limits.tpm) == (60, 9000)
    assert (big.limits.rpm, big.limits.tpm) == (5, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model: m\nrpm: 60\n", "rpm: goes with the backend of a server"),
        ("backend: value_server\nbase_url: http://127.0.0.1:1\ntpm: 60\n", "tpm: goes with the backend of a server"),
        ("model: m\nbackend: openai\nrpm: 0\n", "rpm"),
        ("model: m\nbackend: openai\nengine_args: {tensor_parallel_size: 2}\n", "tensor_parallel_size"),
        ("model: org/name\nbase_url: http://127.0.0.1:1\n", "base_url"),
        ("model: m\nbackend: openai\nbase_url: http://169.254.169.254/v1\n", "link-local"),
        ("backend: ollama\n", "model"),
    ],
)
def test_a_backend_that_cannot_be_is_refused_before_anything_is_asked(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(tmp_path, text).open_backends()
