"""Settings of thinking, and thinking told apart from replies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.backends.thinking import THINKING_TOKENS, ThinkingSettings, with_thinking_apart
from debate.config.settings import RunSettings
from debate.errors import ConfigError
from debate.flow import Completion

SERVER: dict[str, Any] = {"backend": "openai", "base_url": "http://localhost:1/v1", "model": "m"}


def test_by_default_nothing_is_said_of_thinking_and_nothing_is_added() -> None:
    settings = ThinkingSettings()
    assert settings.template_variables() == {} == settings.shaping()
    assert settings.tokens(thinks=False) == 0
    assert not settings.is_asked_for


@pytest.mark.parametrize(
    ("thinking", "variables"),
    [
        ("on", {"enable_thinking": True, "thinking": True}),
        (True, {"enable_thinking": True, "thinking": True}),
        ("off", {"enable_thinking": False, "thinking": False}),
        (False, {"enable_thinking": False, "thinking": False}),
        ("high", {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}),
    ],
)
def test_a_chat_template_is_told_by_the_names_that_templates_have(thinking: Any, variables: dict[str, Any]) -> None:
    settings = ThinkingSettings(thinking=thinking, chat_template_kwargs={"mine": 1})
    assert settings.template_variables() == {**variables, "mine": 1}
    assert (
        ThinkingSettings(thinking=thinking, chat_template_kwargs={"thinking": 2}).template_variables()["thinking"] == 2
    )


def test_thinking_that_is_asked_for_gets_tokens_of_its_own_and_other_thinking_those_that_are_given() -> None:
    assert ThinkingSettings(thinking="on").tokens(thinks=True) == THINKING_TOKENS
    assert ThinkingSettings(thinking="on", thinking_tokens=9).tokens(thinks=True) == 9
    assert ThinkingSettings(thinking_tokens=9).tokens(thinks=False) == 9
    assert ThinkingSettings(thinking="off", thinking_tokens=9).tokens(thinks=False) == 0


def test_more_tokens_for_thinking_make_no_other_run() -> None:
    assert ThinkingSettings(thinking_tokens=9).shaping() == {}
    assert ThinkingSettings(thinking="off", thinking_tokens=9).shaping() == {"thinking": "off"}


@pytest.mark.parametrize("wrong", [{"thinking": "much"}, {"thinking_tokens": -1}, {"chat_template_kwargs": 3}])
def test_other_values_are_refused_with_their_name(wrong: dict[str, Any]) -> None:
    [name] = wrong
    with pytest.raises(ConfigError) as caught:
        ThinkingSettings(**wrong)
    assert caught.value.field == name


def test_a_run_sets_it_for_its_model_and_for_each_further_one() -> None:
    more = {"big": {**SERVER, "thinking": False, "chat_template_kwargs": {"a": 1}}}
    settings = RunSettings.read(None, {**SERVER, "thinking": True, "thinking_tokens": "100", "models": more})
    own, big = settings.open_backends().values()
    assert (own.capacity.thinking_tokens, big.capacity.thinking_tokens) == (100, 0)
    assert own.reply_settings == {"thinking": "on"}  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert RunSettings.read(None, settings.given()).given() == settings.given()


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"backend": "scripted", "thinking": "on"}, "thinking: is no setting of the backend scripted"),
        ({"backend": "ollama", "chat_template_kwargs": {"a": 1}}, "chat_template_kwargs: is no setting of the backend"),
        ({**SERVER, "base_url": None, "thinking": "on"}, "takes no variables of a chat template"),
        ({**SERVER, "thinking": "much"}, "thinking: input should be 'auto', 'on'"),
    ],
)
def test_what_a_backend_cannot_be_told_is_refused_before_anything_is_asked(
    told: dict[str, Any], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match=problem):
        RunSettings.read(None, {"model": "m", **told}).open_backend()


@pytest.mark.parametrize(
    ("text", "reason", "thinking", "reply"),
    [
        ("<think>\nHm.\n</think>\n\n{}", "stop", "Hm.", "{}"),
        ("  <think></think>{}", "stop", "", "{}"),
        ("<think>So, and then", "length", "So, and then", ""),
        ("<think>So, and then", "stop", "", "<think>So, and then"),
        ("Well: <think>a</think>", "stop", "", "Well: <think>a</think>"),
        ('{"a": "<think>a</think>"}', "stop", "", '{"a": "<think>a</think>"}'),
    ],
)
def test_a_block_of_thinking_before_the_reply_is_kept_apart(text: str, reason: str, thinking: str, reply: str) -> None:
    found = with_thinking_apart(Completion(text, reason))
    assert (found.thinking, found.text) == (thinking, reply)
    assert found.is_cut_in_thinking == (reason == "length")


@given(st.text(alphabet="<think>/ a{", max_size=40), st.text(max_size=20).filter(lambda text: text == text.lstrip()))
def test_nothing_is_lost_when_thinking_is_told_apart(thinking: str, reply: str) -> None:
    found = with_thinking_apart(Completion(f"<think>{thinking}</think>{reply}"))
    rest = thinking.partition("</think>")
    assert found.thinking == rest[0].strip()
    assert found.text == ((rest[2] + "</think>" if rest[1] else "") + reply).lstrip()
