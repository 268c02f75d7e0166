"""A model's folder says how it wants to be used; a file of settings and flags go before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from debate import DebateEvaluator, bundled_judge
from debate.config.settings import RunSettings
from debate.errors import ConfigError, TemplateError

ASKED = """\
profile: judge
templates: compact
comment_chars: 40
temperature: 0
engine_args: {dtype: float32, max_model_len: 2048}
"""


def model(folder: Path, text: str = ASKED) -> Path:
    (folder / "debate.yaml").write_text(text)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_folder_without_the_file_asks_for_nothing(tmp_path: Path) -> None:
    assert bundled_judge.settings_of(tmp_path) == {}
    assert bundled_judge.settings_of("meta-llama/Llama-3.1-8B-Instruct") == {}


def test_a_run_starts_from_what_its_model_asks_for(tmp_path: Path) -> None:
    settings = RunSettings.read(None, {"model": str(model(tmp_path))})
    assert (settings.profile, str(settings.templates), settings.comment_chars) == ("judge", "compact", 40)
    assert settings.temperature == 0
    assert settings.overall_chars == RunSettings().overall_chars


def test_flags_and_a_file_of_settings_go_before_the_model(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("profile: general\nengine_args: {max_model_len: 4096}\n")
    settings = RunSettings.read(config, {"model": str(model(tmp_path)), "temperature": 0.5})
    assert (settings.profile, settings.temperature) == ("general", 0.5)
    assert settings.engine_args == {"dtype": "float32", "max_model_len": 4096}


def test_the_recorded_settings_of_a_run_make_the_same_settings_again(tmp_path: Path) -> None:
    settings = RunSettings.read(None, {"model": str(model(tmp_path))})
    (tmp_path / "debate.yaml").unlink()
    assert RunSettings.read(None, settings.given()) == settings


def test_another_evaluator_takes_the_engine_arguments_only(tmp_path: Path) -> None:
    settings = RunSettings.read(None, {"model": str(model(tmp_path)), "evaluator": "value"})
    assert settings.engine_args == {"dtype": "float32", "max_model_len": 2048}
    assert settings.make_evaluator().name == "value"


def test_a_model_behind_a_server_is_not_looked_for_in_folders(tmp_path: Path) -> None:
    given = {"model": str(model(tmp_path)), "backend": "openai", "base_url": "http://127.0.0.1:1/v1"}
    assert RunSettings.read(None, given).profile == "general"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("out: /elsewhere\n", "debate.yaml:1: out"),
        ("profile: judge\nengine_args:\n  trust_remote_code: true\n", "debate.yaml:3: engine_args.trust_remote_code"),
        ("comment_chars: 0\n", "debate.yaml:1: comment_chars"),
        ("- profile\n", "debate.yaml:1"),
    ],
)
def test_a_model_cannot_ask_for_anything_else(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError) as refused:
        RunSettings.read(None, {"model": str(model(tmp_path, text))})
    assert place in str(refused.value)


def test_the_bundled_judge_is_a_debate_with_its_own_profile_and_templates() -> None:
    evaluator = bundled_judge.evaluator(rounds=2)
    assert evaluator.profile_name == "judge"
    assert evaluator.rounds == 2
    assert evaluator.sampling.temperature == 0
    assert evaluator.prompt_templates.directory is not None
    assert evaluator.prompt_templates.directory.name == "compact"
    evaluator.check()


def test_parameters_go_before_what_the_bundled_judge_asks_for() -> None:
    assert bundled_judge.evaluator(comment_chars=20).comment_chars == 20


def test_the_name_of_the_bundled_judge_is_a_model_of_a_run() -> None:
    settings = RunSettings.read(None, {"model": "built-in"})
    assert settings.profile == "judge"
    assert settings.open_backend().model == str(bundled_judge.model_path())


def test_the_name_of_a_built_in_set_stands_for_its_folder_and_another_name_is_refused() -> None:
    DebateEvaluator(profile="judge", templates="compact").check()
    with pytest.raises(TemplateError, match="no such folder of templates"):
        DebateEvaluator(templates="compacter")


def test_the_bundled_model_is_small_and_whole() -> None:
    folder = bundled_judge.model_path()
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "debate.yaml", "MODEL_CARD.md"} <= files.keys()
    assert sum(files.values()) < 16_000_000
