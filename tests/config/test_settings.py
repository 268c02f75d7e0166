from __future__ import annotations

from pathlib import Path

import pytest

from debate import DebateEvaluator, Engine, Profile
from debate.backends import Ollama, OpenAICompatible
from debate.config.settings import RunSettings
from debate.errors import ConfigError
from debate.profiles import Component, Persona


def read(folder: Path, text: str, **flags: object) -> RunSettings:
    config = folder / "run.yaml"
    config.write_text(text)
    return RunSettings.read(config, flags)


def test_a_debate_without_settings_is_the_one_that_the_api_gives() -> None:
    assert RunSettings().make_evaluator().describe() == DebateEvaluator().describe()


def test_flags_go_before_the_file(tmp_path: Path) -> None:
    settings = read(tmp_path, "rounds: 2\nconvergence: null\nseed: 5\n", rounds=4)
    assert (settings.rounds, settings.convergence, settings.seed) == (4, None, 5)


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "") == RunSettings()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("rounds: 0\n", "run.yaml:1: rounds"),
        ("seed: 1\nover: judges\n", "run.yaml:2: over"),
        ("seed: 1\nseed: 2\n", "run.yaml:2"),
        ("- rounds\n", "run.yaml:1"),
        ("models:\n  big:\n    url: x\n", "run.yaml:3: models.big.url"),
    ],
)
def test_a_faulty_file_is_refused_with_line_and_key(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert place in str(refused.value)


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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model: m\nbackend: openai\nengine_args: {tensor_parallel_size: 2}\n", "tensor_parallel_size"),
        ("model: org/name\nbase_url: http://127.0.0.1:1\n", "base_url"),
        ("model: m\nbackend: openai\nbase_url: http://169.254.169.254/v1\n", "link-local"),
        ("backend: ollama\n", "model"),
    ],
)
def test_a_backend_that_cannot_be_is_refused_before_anything_is_asked(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(tmp_path, text).open_backends()
