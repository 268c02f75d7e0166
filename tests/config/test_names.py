"""A name is enough: models for vLLM in process, profiles and evaluators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debate import DebateEvaluator, VoteEvaluator, bundled_judge, load_profile
from debate.backends import VLLM, Scripted
from debate.config.names import NamedEvaluators, named_backends
from debate.config.settings import RunSettings
from debate.errors import ConfigError, ProfileError
from debate.profiles import profile_names
from debate.registry import EVALUATORS
from tests.small_flows import asks

OTHERS = NamedEvaluators(Scripted(str))
JUDGES = NamedEvaluators(bundled_judge.backend())


# ---- backends


def test_a_name_is_a_model_for_vllm_under_its_own_name() -> None:
    [(name, backend)] = named_backends("Qwen/Qwen3-8B").items()
    assert isinstance(backend, VLLM)
    assert name == backend.model == "Qwen/Qwen3-8B"


def test_a_folder_is_a_model_for_vllm_with_the_arguments_that_it_asks_for(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "debate.yaml").write_text("engine_args: {dtype: float32}")
    [backend] = named_backends(tmp_path).values()
    expected: Any = RunSettings.read(None, {"model": str(tmp_path)}).open_backend()
    assert vars(backend)["_engine_args"] == vars(expected)["_engine_args"]
    assert vars(backend)["_engine_args"]["dtype"] == "float32"


def test_the_bundled_judge_is_known_by_its_name() -> None:
    [backend] = named_backends("built-in").values()
    assert backend.model == str(bundled_judge.model_path())


def test_several_models_may_be_names_or_backends() -> None:
    scripted = Scripted(str)
    found = named_backends({"judge": "built-in", "critic": scripted, "big": Path("big")})
    assert [*found] == ["judge", "critic", "big"]
    assert found["critic"] is scripted
    assert found["big"].model == "big"


@pytest.mark.parametrize("given", ["built_in", {"judge": "Built-In"}])
def test_a_typo_of_the_bundled_judge_is_answered_at_once(given: Any) -> None:
    with pytest.raises(ConfigError, match="did you mean 'built-in'"):
        named_backends(given)


# ---- evaluators


def test_nothing_is_a_debate_of_the_general_profile() -> None:
    assert OTHERS.find(None) == OTHERS.find("debate") == OTHERS.find("general") == DebateEvaluator("general")


@pytest.mark.parametrize("name", profile_names())
def test_a_profiles_name_is_a_debate_of_it(name: str) -> None:
    assert OTHERS.find(name) == DebateEvaluator(name)


def test_a_profiles_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("personas: [{name: Poet, role: You rhyme.}]")
    assert OTHERS.find(str(file)) == OTHERS.find(file) == DebateEvaluator(load_profile(file))
    file.write_text("personas: [{name: Smith, role: You forge.}]")
    found = OTHERS.find(file)
    assert isinstance(found, DebateEvaluator)
    assert [persona.name for persona in found.personas] == ["Smith"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"mine\.yaml"):
        OTHERS.find(tmp_path / "mine.yaml")


def test_an_evaluators_name_is_that_evaluator_with_its_defaults() -> None:
    assert OTHERS.find("vote") == VoteEvaluator()
    assert OTHERS.find("debate.evaluators.vote:VoteEvaluator") == VoteEvaluator()


def test_an_evaluator_is_itself() -> None:
    given = asks(1)
    assert OTHERS.find(given) is given


def test_what_is_made_of_a_name_is_made_once() -> None:
    assert OTHERS.find("value") is OTHERS.find("value")


def test_no_name_of_ours_is_both_a_profiles_and_an_evaluators() -> None:
    assert not {*profile_names()} & {name for name, entry in EVALUATORS.entries.items() if entry.package is None}


@pytest.mark.parametrize("name", ["panel", "cross", "callback"])
def test_an_evaluator_that_needs_more_than_its_name_says_what_it_lacks(name: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s)evaluator: {name} cannot be made: .*missing.*make one: .*Evaluator"):
        OTHERS.find(name)


@pytest.mark.parametrize(
    ("name", "meant"), [("genral", "general"), ("General", "general"), ("vlaue", "value"), ("chat_eval", "chateval")]
)
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s)neither a profile nor an evaluator '{name}'.*did you mean '{meant}'"):
        OTHERS.find(name)


# ---- the same defaults as those of the command line


@pytest.mark.parametrize("flags", [{}, {"profile": "general"}, {"evaluator": "value"}])
def test_a_model_with_settings_of_its_own_gets_what_the_command_line_gives_it(flags: dict[str, str]) -> None:
    [name] = flags.values() or [None]
    assert JUDGES.find(name) == RunSettings.read(None, {"model": "built-in", **flags}).make_evaluator()


def test_the_bundled_judge_debates_with_its_own_profile() -> None:
    assert JUDGES.find(None).describe() == bundled_judge.evaluator().describe()
    found = JUDGES.find(None)
    assert isinstance(found, DebateEvaluator)
    assert found.profile_name == "judge"


def test_a_model_that_is_no_vllm_in_process_is_not_looked_for_in_folders() -> None:
    scripted = Scripted(str, model=str(bundled_judge.model_path()))
    assert NamedEvaluators(scripted).find(None) == DebateEvaluator("general")
