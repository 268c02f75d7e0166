"""Models that think before they reply: the thinking is kept apart, heard by nobody, and counted."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import DebateEvaluator, Engine, Evaluation, Task, ValueEvaluator, VoteEvaluator
from debate.backends import VLLM, Call, Ollama, OpenAICompatible, Scripted
from debate.errors import ConfigError, RunMismatchError
from debate.flow import THINKING_CUT, Completion
from debate.testing import FakeServer, check_backend
from debate.types import Sampling
from tests.backends.asking import QUICK, answer, call_of, tasks
from tests.command_line import debate as command
from tests.conftest import ENGINE_ARGS
from tests.driving import evaluator
from tests.required import required

THOUGHT = "First I weigh them, privately."
WORDS = len(THOUGHT.split())
TASK = tasks(1)[0]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def openai(server: FakeServer, **changes: Any) -> OpenAICompatible:
    return OpenAICompatible("tiny", f"{server.url}/v1", retry_policy=QUICK, **changes)


def ollama(server: FakeServer, **changes: Any) -> Ollama:
    return Ollama("tiny", server.url, retry_policy=QUICK, **changes)


class Asked:
    """Keeps the calls that an engine's backends answered, with their answers."""

    def __init__(self, engine: Engine) -> None:
        self.calls: list[tuple[Call, Completion]] = []
        engine.on_completion = self.answered

    def answered(self, call: Call, completion: Completion) -> None:
        self.calls.append((call, completion))

    @property
    def prompts(self) -> list[str]:
        return ["\n".join(call.prompt.texts) for call, _ in self.calls]


def thoughts(evaluation: Evaluation) -> list[str]:
    return [turn.thinking for turn in evaluation.transcript]


# ---- servers


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_what_a_server_says_of_its_thinking_stands_apart_and_is_counted(field: str) -> None:
    with FakeServer(thinking=THOUGHT, thinking_field=field) as server:
        said = answer(openai(server, thinking="on"), call_of())
    assert json.loads(said.text)
    assert said.thinking == THOUGHT
    assert (said.usage.thinking_tokens, said.usage.completion_tokens) == (WORDS, WORDS + 20)
    body = server.requests[0].body
    assert body["max_tokens"] == 64 + 4096
    assert body["chat_template_kwargs"] == {"enable_thinking": True, "thinking": True}


def test_ollama_is_told_to_think_and_its_thinking_stands_apart() -> None:
    with FakeServer(thinking=THOUGHT) as server:
        said = answer(ollama(server, thinking="low", thinking_tokens=100), call_of())
        silent = answer(ollama(server, thinking=False), call_of())
    assert (said.thinking, silent.thinking) == (THOUGHT, "")
    assert [request.body["think"] for request in server.requests] == ["low", False]
    assert [request.body["options"]["num_predict"] for request in server.requests] == [164, 64]


def test_nothing_of_it_is_sent_where_nothing_was_said() -> None:
    with FakeServer() as server:
        answer(openai(server), call_of())
        answer(ollama(server), call_of())
    for request in server.requests:
        assert {"chat_template_kwargs", "reasoning_effort", "think"}.isdisjoint(request.body)
        assert request.max_tokens == 64


def test_an_effort_goes_by_its_own_name_and_further_fields_as_they_are() -> None:
    further = {"chat_template_kwargs": {"a": 1, "b": 1}, "top_a": 1}
    with FakeServer() as server:
        answer(openai(server, thinking="high", extra_body=further, chat_template_kwargs={"b": 2}), call_of())
    body = server.requests[0].body
    assert body["reasoning_effort"] == "high"
    assert body["chat_template_kwargs"] == {"a": 1, "b": 2}
    assert body["top_a"] == 1


def test_a_backend_that_thinks_does_what_the_engine_relies_on() -> None:
    with FakeServer(thinking=THOUGHT) as server:
        check_backend(openai(server, thinking="on"))
        check_backend(ollama(server, thinking_tokens=50))


@pytest.mark.parametrize("make", [openai, ollama])
def test_no_other_prompt_and_no_feedback_holds_the_thinking(make: Any) -> None:
    with FakeServer(thinking=THOUGHT) as server, Engine(make(server, thinking="on")) as engine:
        debated = engine.evaluate(TASK, evaluator(rounds=2))
        valued = engine.evaluate(TASK, ValueEvaluator(samples=2))
        voted = engine.evaluate(TASK, VoteEvaluator(ballots=2))
    assert debated.status == valued.status == voted.status == "ok"
    assert set(thoughts(debated)) == {THOUGHT}
    assert {each.thinking for each in (*valued.judgments, *voted.judgments)} == {THOUGHT}
    assert not any(THOUGHT in request.text for request in server.requests)
    for evaluation in (debated, valued, voted):
        assert THOUGHT not in evaluation.chain_of_thought()
        assert not any(THOUGHT in evaluation.feedback(j) for j in range(2))
        assert Evaluation.from_dict(evaluation.to_dict()).to_json() == evaluation.to_json()
        assert THOUGHT in evaluation.to_json()


def test_thinking_that_comes_to_the_limit_fails_with_its_own_reason_and_says_what_to_raise() -> None:
    long = " ".join(["word"] * 4000)
    with FakeServer(thinking=long) as server, Engine(openai(server)) as engine:
        cut = engine.evaluate(TASK, evaluator(rounds=1))
        valued = engine.evaluate(TASK, ValueEvaluator(samples=1))
    assert cut.status == valued.status == "failed"
    assert {failure.reason for failure in (*cut.failures, *valued.failures)} == {THINKING_CUT}
    assert "--thinking-tokens" in cut.failures[0].message
    turn = cut.transcript.turns[0]
    assert np.isnan(turn.scores).all()
    assert [reply.reason for reply in turn.invalid_replies] == [THINKING_CUT] * 3
    assert all(reply.thinking.startswith("word word") for reply in turn.invalid_replies)
    with FakeServer(thinking=long) as server, Engine(openai(server, thinking_tokens=4000)) as engine:
        assert engine.evaluate(TASK, evaluator(rounds=1)).status == "ok"


def test_recorded_thinking_is_there_again_without_a_call(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    with FakeServer(thinking=THOUGHT) as server:
        with Engine(openai(server, thinking="on"), store=store) as engine:
            first = engine.evaluate(TASK, evaluator(rounds=2), run="r")
        asked = len(server.requests)
        with Engine(openai(server, thinking="on", thinking_tokens=99), store=store) as engine:
            again = engine.evaluate(TASK, evaluator(rounds=2), run="r")
            replayed = engine.evaluate(TASK, evaluator(rounds=2, quorum=1), run="r")
        assert len(server.requests) == asked
        with Engine(openai(server), store=store) as engine, pytest.raises(RunMismatchError, match="thinking"):
            engine.evaluate(TASK, evaluator(rounds=2), run="r")
    assert again.to_json() == first.to_json()
    assert thoughts(replayed) == thoughts(first) == [THOUGHT] * 4
    assert replayed.usage == first.usage
    assert first.usage.thinking_tokens == 4 * WORDS


def test_thinking_makes_other_seeds_and_none_leaves_them_as_they_were() -> None:
    seeds: list[list[int]] = []
    for told in ({}, {"thinking_tokens": 9}, {"thinking": "on"}, {"chat_template_kwargs": {"a": 1}}):
        with FakeServer() as server, Engine(openai(server, **told)) as engine:
            engine.evaluate(TASK, evaluator(rounds=1))
        seeds.append([request.body["seed"] for request in server.requests])
    plain, with_tokens, thinking, variables = seeds
    assert plain == with_tokens
    assert len({*plain, *thinking, *variables}) == 3 * len(plain)


# ---- the command line


@pytest.fixture
def evalset(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    rows = [{"id": f"t{n}", "x": f"Which? {n}", "candidates": ["yes", "no"]} for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(monkeypatch: pytest.MonkeyPatch, evalset: Path, server: FakeServer, out: str, *more: object) -> int:
    backend = ["--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "tiny", "--rounds", 1]
    return command(monkeypatch, "run", evalset, *backend, "--out", evalset.parent / out, *more)


def test_a_run_thinks_where_it_is_told_and_shows_it_on_request_alone(
    evalset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer(thinking=THOUGHT) as server:
        told = ["--thinking", "on", "--thinking-tokens", 50, "--chat-template-kwarg", "style=brief"]
        assert run(monkeypatch, evalset, server, "out", *told) == 0
        assert server.requests[0].body["chat_template_kwargs"]["style"] == "brief"
        asked = len(server.requests)
        assert command(monkeypatch, "resume", evalset.parent / "out") == 0
        assert len(server.requests) == asked
    assert "of thinking" in capsys.readouterr().out
    assert command(monkeypatch, "show", evalset.parent / "out", "t0") == 0
    without = capsys.readouterr().out
    assert command(monkeypatch, "show", evalset.parent / "out", "t0", "--thinking") == 0
    assert THOUGHT not in without
    assert "--thinking shows what" in without
    assert f"thinking: {THOUGHT}" in capsys.readouterr().out


def test_cached_replies_keep_their_thinking_and_are_not_those_of_a_model_that_does_not_think(
    evalset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ["--cache", "1h", "--store", evalset.parent / "all.sqlite"]
    with FakeServer(thinking=THOUGHT) as server:
        assert run(monkeypatch, evalset, server, "one", *kept, "--thinking", "on") == 0
        asked = len(server.requests)
        assert run(monkeypatch, evalset, server, "two", *kept, "--thinking", "on") == 0
        assert len(server.requests) == asked
        assert run(monkeypatch, evalset, server, "three", *kept, "--thinking", "off") == 0
        assert len(server.requests) == 2 * asked
    results = {name: (evalset.parent / name / "results.jsonl").read_text() for name in ("one", "two", "three")}
    assert results["two"].count(THOUGHT) == results["one"].count(THOUGHT) > 0
    assert THOUGHT not in results["three"]


def test_what_was_cut_off_in_its_thinking_is_asked_again_with_more_tokens_for_it(
    evalset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer(thinking=" ".join(["word"] * 4000)) as server:
        assert run(monkeypatch, evalset, server, "out", "--thinking", "on", "--thinking-tokens", 9) != 0
        again = ["resume", evalset.parent / "out", "--retry-failed", "--thinking-tokens", 4000]
        assert command(monkeypatch, *again) == 0
    records = [json.loads(line) for line in (evalset.parent / "out" / "results.jsonl").read_text().splitlines()]
    assert [record["status"] for record in records] == ["ok"] * 3


def test_a_fork_takes_the_thinking_over(evalset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(thinking=THOUGHT) as server:
        assert run(monkeypatch, evalset, server, "out", "--thinking", "on") == 0
        asked = len(server.requests)
        assert run(monkeypatch, evalset, server, "out", "--thinking", "on", "--fork") == 0
        assert len(server.requests) == asked
    [forked] = [path for path in evalset.parent.glob("out*/results.jsonl") if path.parent.name != "out"]
    assert forked.read_text().count(THOUGHT) == (evalset.parent / "out" / "results.jsonl").read_text().count(THOUGHT)


# ---- read-outs


@pytest.mark.parametrize("settings", [{"readout": "cells"}, {"silent_readouts": True}])
def test_labels_that_would_be_read_without_thinking_are_refused_before_anything_is_asked(settings: Any) -> None:
    with FakeServer() as server, Engine(openai(server, thinking="on")) as engine:
        with pytest.raises(ConfigError, match="is to think") as caught:
            engine.evaluate(TASK, evaluator(**settings))
        with pytest.raises(ConfigError, match="is to think"):
            engine.evaluate(TASK, ValueEvaluator(readout="cells"))
    assert "thinking=off" in str(caught.value)
    assert server.requests == []


def test_labels_in_the_reply_are_read_after_thinking() -> None:
    with FakeServer(thinking=THOUGHT) as server, Engine(openai(server, thinking="on")) as engine:
        evaluation = engine.evaluate(TASK, evaluator(rounds=1, readout="expected"))
    assert evaluation.status == "ok"
    assert evaluation.p_best is not None
    assert set(thoughts(evaluation)) == {THOUGHT}


def test_a_script_may_say_what_it_thought() -> None:
    with Engine(Scripted(lambda call: Completion('{"value": 3, "reasoning": "so"}', thinking="Hm."))) as engine:
        [said] = engine.generate(["Which?"])
    assert said.thinking == "Hm."


# ---- vLLM in process


def test_an_engine_that_thinks_is_not_taken_for_one_that_does_not() -> None:
    told: list[dict[str, Any]] = [{}, {"thinking": "on"}, {"thinking": "on", "thinking_tokens": 9}]
    backends, others = ([VLLM("org/model", **each) for each in told] for _ in range(2))
    assert [[one.is_equal(other) for other in others] for one in backends] == np.eye(3).tolist()


SHORT: dict[str, Any] = {"comment_chars": 12, "overall_chars": 12}
BUDGET = 24


@pytest.fixture(scope="module")
def thinking_engine(tiny_thinking_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A tiny model with a think block in its chat template, on real vLLM."""
    required(find_spec("vllm"), "vLLM is not installed")
    backend = VLLM(tiny_thinking_model, thinking="on", thinking_tokens=BUDGET, **ENGINE_ARGS)
    store = tmp_path_factory.mktemp("thinking") / "s.sqlite"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Engine(backend, seed=1, store=store) as engine:
            yield engine.start()


def test_vllm_thinks_before_the_grammar_holds_and_scores_are_read(thinking_engine: Engine) -> None:
    asked = Asked(thinking_engine)
    told: dict[str, Any] = {"rounds": 2, "convergence": None, **SHORT}
    first = thinking_engine.evaluate(Task("x", ["a", "b"]), DebateEvaluator("general", **told), run="r")
    assert first.status == "ok", first.error
    assert first.tensor is not None
    assert np.isfinite(first.tensor).all()
    assert all(thoughts(first))
    assert not any("<think>" in each or "</think>" in each for each in thoughts(first))
    said = [completion for _, completion in asked.calls]
    assert sum(bool(json.loads(each.text)) for each in said if each.text) == len(first.transcript)
    for completion in said:  # noise may also end its turn while it thinks, and is then asked again
        assert 0 < completion.usage.thinking_tokens <= BUDGET + 2
        assert completion.usage.thinking_tokens < completion.usage.completion_tokens
    assert not any(thought in prompt for thought in thoughts(first) for prompt in asked.prompts)
    n_asked = len(asked.calls)
    again = DebateEvaluator("general", quorum=1, **told)
    replayed = thinking_engine.evaluate(Task("x", ["a", "b"]), again, run="r")
    assert len(asked.calls) == n_asked
    assert thoughts(replayed) == thoughts(first)
    assert replayed.usage == first.usage


def test_vllm_reads_labels_out_of_the_reply_after_the_thinking(thinking_engine: Engine) -> None:
    debate = DebateEvaluator("general", rounds=1, readout="expected", **SHORT)
    evaluation = thinking_engine.evaluate(Task("x", ["a", "b"]), debate)
    assert evaluation.status == "ok", evaluation.error
    assert all(thoughts(evaluation))
    assert evaluation.spread is not None
    masses = [cell.mass for turn in evaluation.transcript for row in turn.distributions for cell in row]
    assert min(masses) > 0.99  # under the grammar


def test_vllm_refuses_read_outs_without_a_reply_where_it_thinks(thinking_engine: Engine) -> None:
    with pytest.raises(ConfigError, match="is to think"):
        thinking_engine.evaluate(Task("x", ["a", "b"]), DebateEvaluator("general", readout="cells"))


def test_vllm_thinks_before_plain_replies_and_judges_too(thinking_engine: Engine) -> None:
    [said] = thinking_engine.generate(["Say hello."], sampling=Sampling(max_tokens=10))
    assert said.thinking
    assert said.usage.completion_tokens - said.usage.thinking_tokens <= 10 + 16
    valued = thinking_engine.evaluate(Task("x", ["a", "b"]), ValueEvaluator(samples=1, reasoning_chars=30))
    assert valued.status == "ok", valued.error
    assert all(each.thinking and each.thinking not in each.text for each in valued.judgments)


@pytest.mark.vllm
@pytest.mark.parametrize(
    ("told", "problem"),
    [({}, "has no tokens <think>"), ({"reasoning_parser": "mine"}, "vLLM has no parser 'mine'")],
)
def test_vllm_says_before_it_loads_where_it_cannot_tell_the_end_of_thinking(
    tiny_model: Path, told: dict[str, Any], problem: str
) -> None:
    with Engine(VLLM(tiny_model, thinking="on", **told, **ENGINE_ARGS)) as engine, pytest.raises(ConfigError) as caught:
        engine.start()
    assert problem in str(caught.value)
    assert "reasoning_parser=NAME: " in str(caught.value)
