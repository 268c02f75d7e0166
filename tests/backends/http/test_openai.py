"""`OpenAICompatible` against servers that behave in every way a server may."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from debate import Engine, Evaluation, PanelEvaluator, Task, ValueEvaluator
from debate.backends import Call, OpenAICompatible, RetryPolicy
from debate.backends.base import READOUT_HINT
from debate.backends.http.top_logprobs import LEAST_UNDECIDED
from debate.errors import BackendError, BackendUnavailableError, CallError, ConfigError
from debate.flow import Block, Completion, Flow, Generate, Messages, ReadOut, RunContext, Segment, generate
from debate.parsing.places import value_spans
from debate.parsing.schema import object_of, or_null, whole_number_in
from debate.scoring.distributions import distribution_of
from debate.testing.fake_server import (
    DIE,
    DRIP,
    HANG,
    RESET,
    FakeServer,
    Reply,
    Request,
    completion,
    every,
    failing,
    first,
    form_of,
    from_the,
    judgment,
    likely_after,
    logprobs_of,
    only,
    refusing,
)
from debate.testing.flows import write_value
from debate.types import LabelDistribution, Sampling, Usage
from tests.backends.asking import QUICK, SCHEMA, answer, ask, call_of, tasks
from tests.driving import evaluator
from tests.scripts_loader import REPOSITORY
from tests.small_flows import FlowEvaluator, number_in, scored


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def backend_of(server: FakeServer, **changes: Any) -> OpenAICompatible:
    told: dict[str, Any] = {"retry_policy": QUICK, **changes}
    return OpenAICompatible("tiny", f"{server.url}/v1", **told)


# What is sent and what comes back


def test_a_request_carries_model_messages_sampling_seed_and_schema() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.9, top_k=40, min_p=0.1, max_tokens=64)
    with FakeServer() as server:
        got = answer(backend_of(server, extra_body={"priority": 1}), call_of("Which?", sampling=sampling))
    body = server.requests[0].body
    assert json.loads(got.text) == json.loads(judgment(SCHEMA))
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.calls) == (100, 20, 1)
    assert body.pop("messages") == [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Which?"}]
    assert body.pop("response_format")["json_schema"] == {"name": "reply", "schema": SCHEMA, "strict": True}
    assert body == {
        "model": "tiny", "seed": 7, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "max_tokens": 64,
        "priority": 1,
    }  # fmt: skip


def test_all_requests_of_a_task_carry_one_session_which_is_not_the_tasks_id_and_a_chat_carries_none() -> None:
    with FakeServer() as server, Engine(backend_of(server)) as engine:
        engine.evaluate_batch(tasks(2), evaluator(rounds=2))
        engine.generate(["Hello?"])
    sent = [(request.text, request.headers.get("x-session-id")) for request in server.requests]
    by_task = [{str(session) for text, session in sent if f"Question {k}?" in text} for k in (0, 1)]
    assert [[len(session) for session in sessions] for sessions in by_task] == [[32], [32]]
    assert by_task[0] != by_task[1]
    assert [session for text, session in sent if "Hello?" in text] == [None]


def test_a_proxy_that_the_environment_names_is_asked_except_for_hosts_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeServer() as proxy, FakeServer() as server:
        monkeypatch.setenv("http_proxy", proxy.url.removeprefix("http://"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with pytest.raises(BackendUnavailableError, match="no such path"):  # as the fake server says of a whole address
            answer(OpenAICompatible("tiny", "http://far.invalid/v1", retry_policy=QUICK))
        answer(backend_of(server))
    assert [request.path for request in proxy.requests] == ["http://far.invalid/v1/chat/completions"]
    assert [request.path for request in server.requests] == ["/v1/chat/completions"]


def test_a_call_without_a_schema_asks_for_no_format() -> None:
    with FakeServer() as server:
        assert answer(backend_of(server), call_of(schema=None)).text == "Hello."
    assert "response_format" not in server.requests[0].body


@pytest.mark.parametrize(
    ("usage", "prompt_tokens"), [(None, 0), ({}, 0), ({"prompt_tokens": None}, 0), ({"prompt_tokens": 12}, 12)]
)
def test_a_server_that_does_not_count_tokens_is_no_trouble(usage: object, prompt_tokens: int) -> None:
    with FakeServer(lambda request: Reply(body=completion("x", usage=usage))) as server:
        got = answer(backend_of(server)).usage
    assert (got.prompt_tokens, got.completion_tokens, got.cached_tokens, got.calls) == (prompt_tokens, 0, 0, 1)


def test_a_reply_that_was_cut_off_is_called_so() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": '{"ov'}, "finish_reason": "length"}
    with FakeServer(lambda request: Reply(body=completion("", choices=[choice]))) as server:
        assert answer(backend_of(server)).finish_reason == "length"


def test_control_strings_are_broken_before_they_are_sent_and_counted_in_the_turn() -> None:
    task = Task("<|im_end|> and </s>", ["yes <|im_start|>", "no"])
    with FakeServer() as server, Engine(backend_of(server)) as engine:
        evaluation = engine.evaluate(task, evaluator(rounds=1))
    assert [turn.escaped_special_tokens for turn in evaluation.transcript] == [3, 3]
    assert not any("<|im_end|>" in request.text for request in server.requests)
    assert "<·|im_end|>" in server.requests[0].text


def test_messages_with_roles_of_their_own_are_refused_and_not_sent_without_them() -> None:
    prompt = Messages.of([("user", "2 + 2"), ("intermediate_step", "= 4")])
    call = Call(model="m", prompt=prompt, sampling=Sampling(), seed=1)
    with FakeServer() as server, pytest.raises(CallError, match="knows no role 'intermediate_step'"):
        answer(backend_of(server), call)
    assert server.requests == []


# The form of the schema


@pytest.mark.parametrize(
    ("taken", "form"),
    [
        (("json_schema", "json_schema_plain", "json_object", "none"), "json_schema"),
        (("json_schema_plain", "json_object", "none"), "json_schema_plain"),
        (("json_object", "none"), "json_object"),
        (("none",), "none"),
    ],
)
def test_the_strongest_form_that_a_server_takes_is_found_out_once_and_said(
    taken: tuple[str, ...], form: str, caplog: pytest.LogCaptureFixture
) -> None:
    with FakeServer(only(*taken)) as server, Engine(backend_of(server)) as engine:
        evaluations = engine.evaluate_batch(tasks(10), evaluator(rounds=1))
    assert [evaluation.status for evaluation in evaluations] == ["ok"] * 10
    refused = [request for request in server.requests if form_of(request) not in taken]
    assert {form_of(request) for request in server.requests if form_of(request) in taken} == {form}
    assert len(server.requests) - len(refused) == 20
    assert len([record for record in caplog.records if f"it is sent {form}" in record.message]) == len(refused[:1])


def test_a_refusal_that_has_nothing_to_do_with_the_form_changes_none() -> None:
    behavior = first(1, failing(400, "This model's maximum context length is 4096 tokens"))
    with FakeServer(behavior) as server:
        backend = backend_of(server)
        outcomes = [ask(backend, call_of())[0], ask(backend, call_of())[0]]
    assert isinstance(outcomes[0], CallError)
    assert "maximum context length" in str(outcomes[0])
    assert [form_of(request) for request in server.requests] == ["json_schema"] * 2


def test_a_server_that_refuses_every_form_is_not_searched_for_ever() -> None:
    with FakeServer(lambda request: failing(400, "the schema is bad")) as server:
        outcomes = ask(backend_of(server), *[call_of()] * 50)
    assert all(isinstance(outcome, CallError) for outcome in outcomes)
    assert len(server.requests) == 50 + 3 * 3


def test_a_given_form_is_kept() -> None:
    with FakeServer(only("none")) as server, pytest.raises(CallError, match="response_format is not supported"):
        answer(backend_of(server, structured="json_object"))
    assert len(server.requests) == 1
    with pytest.raises(ConfigError, match="structured: must be one of json_schema"):
        OpenAICompatible("m", "http://127.0.0.1:1", structured="yaml")


def test_parameters_that_a_server_says_it_does_not_take_are_left_out_or_renamed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def strict(request: Request) -> Reply | None:
        if "max_tokens" in request.body:
            hint = "Use 'max_completion_tokens' instead."
            return failing(400, f"Unsupported parameter: 'max_tokens' is not supported with this model. {hint}")
        if "temperature" in request.body:
            return failing(400, "Unsupported value: 'temperature' does not support 0.5 with this model.")
        return None

    with FakeServer(strict) as server:
        backend = backend_of(server)
        outcomes = ask(backend, *[call_of()] * 8)
    assert not any(isinstance(outcome, BaseException) for outcome in outcomes)
    assert server.requests[-1].body["max_completion_tokens"] == 64
    assert "sending no temperature" in caplog.text
    assert len(caplog.records) == 2


def test_a_server_that_takes_no_limit_of_tokens_by_any_name_is_not_asked_for_ever() -> None:
    def strict(request: Request) -> Reply | None:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in request.body:
                return failing(400, f"Unsupported parameter: '{name}' is not supported with this model.")
        return None

    with FakeServer(strict) as server:
        outcomes = ask(backend_of(server), *[call_of()] * 4)
    assert not any(isinstance(outcome, BaseException) for outcome in outcomes)
    assert not {"max_tokens", "max_completion_tokens"} & server.requests[-1].body.keys()
    assert len(server.requests) <= 3 * 4


# Labels that are read out

LABELS = (*map(str, range(11)), "null")
BEGUN = [f'{{"comment":"{comment}","score":' for comment in ("Good.", "Bad.", "So so.")]
DIGITS = object_of(
    {"comment": {"enum": ["It is so."]}, "a": whole_number_in(0, 10), "b": or_null(whole_number_in(0, 10))}
)


def cells(*begun: str, **changes: Any) -> Call:
    """A call that reads out what comes after some beginnings of a reply."""
    continuations = tuple((Block([Segment(text, is_content=True)]),) for text in begun or BEGUN)
    return call_of(read_out=ReadOut(LABELS, continuations), **changes)


def likely(said: str) -> LabelDistribution:
    """The labels' distribution, as the server's own probabilities have it."""
    first, second = likely_after(said), likely_after(f"{said}1")
    raw = {label: first.get(label, 0.0) for label in LABELS}
    is_told_apart = first["1"] >= LEAST_UNDECIDED
    raw["10"] = first["1"] * second["0"] * is_told_apart
    raw["1"] = first["1"] * (second[","] + second["}"]) * is_told_apart
    return distribution_of(raw)


def is_near(found: LabelDistribution, expected: LabelDistribution) -> bool:
    return found.mass == pytest.approx(expected.mass, abs=1e-5) and dict(found.probabilities) == pytest.approx(
        dict(expected.probabilities), abs=1e-5
    )


def test_each_continuation_is_a_request_of_one_token_that_goes_on_with_the_assistants_message() -> None:
    with FakeServer() as server:
        got = answer(backend_of(server), cells(session="s"))
    assert got.text == ""
    assert len(got.distributions) == 3
    assert all(map(is_near, got.distributions, map(likely, BEGUN)))
    said = [request.body["messages"][-1] for request in server.requests]
    asked_about_ten = [text for text in BEGUN if likely_after(text)["1"] >= LEAST_UNDECIDED]
    assert {message["role"] for message in said} == {"assistant"}
    assert sorted(message["content"] for message in said) == sorted([*BEGUN, *(f"{text}1" for text in asked_about_ten)])
    assert got.usage == Usage(100 * len(said), 0, 20 * len(said), 1)
    for request in server.requests:
        body = request.body
        assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant"]
        assert "response_format" not in body
        assert (body["max_tokens"], body["temperature"], body["logprobs"], body["top_logprobs"]) == (1, 0.0, True, 20)
        assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
        assert request.headers["x-session-id"] == "s"


def test_the_values_of_a_reply_are_read_out_with_it_and_what_it_does_not_tell_apart_is_asked_for() -> None:
    for seed in range(4):
        text = json.dumps(write_value(DIGITS, seed))
        reply = Reply(body=completion(text) | {"choices": [choice_of(text)]})
        with FakeServer(lambda request, reply=reply: None if request.begun else reply) as server:
            got = answer(backend_of(server), call_of(schema=DIGITS, read_out=ReadOut(LABELS)))
        places = [text[:start] for start, _ in value_spans(text)]
        assert got.text == text
        assert len(got.distributions) == len(places) == 2
        assert all(map(is_near, got.distributions, map(likely, places)))
        first, *others = [request.body for request in server.requests]
        assert first["response_format"]["json_schema"]["schema"] == DIGITS
        assert (first["logprobs"], first["top_logprobs"], first["max_tokens"]) == (True, 20, 64)
        is_known = {place for place, (start, _) in zip(places, value_spans(text), strict=True) if text[start] == "1"}
        unknown = {f"{place}1" for place in {*places} - is_known if likely_after(place)["1"] >= LEAST_UNDECIDED}
        assert {body["messages"][-1]["content"] for body in others} == unknown
        assert got.usage.calls == 1


def choice_of(text: str) -> dict[str, Any]:
    """A server's choice that says `text`, with the probabilities of its tokens."""
    message = {"role": "assistant", "content": text}
    return {"index": 0, "message": message, "finish_reason": "stop", "logprobs": logprobs_of("", text, 20)}


@pytest.mark.parametrize("call", [cells(), call_of(read_out=ReadOut(LABELS))], ids=["cells", "reply"])
def test_a_server_without_log_probabilities_ends_the_run_with_what_to_do(call: Call) -> None:
    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        answered = yield from generate(Generate(prompt=call.prompt, schema=call.schema, read_out=call.read_out))
        return scored(task, number_in(answered))

    with (
        FakeServer(logprobs=False) as server,
        Engine(backend_of(server, slots=1), max_concurrency=2) as engine,
        pytest.raises(BackendUnavailableError, match="gives no log-probabilities") as caught,
    ):
        list(engine.iter_evaluate(tasks(50), FlowEvaluator(flow)))
    assert caught.value.hint == READOUT_HINT
    assert f"tiny at {server.url}/v1" in caught.value.message
    assert len(server.requests) <= 6


def test_a_server_that_will_not_go_on_is_asked_without_and_leaves_the_labels_without_probability(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with FakeServer(refusing("continue_final_message")) as server:
        got = answer(backend_of(server), cells())
    assert [distribution.mass for distribution in got.distributions] == [0.0] * 3
    assert "continue_final_message" not in server.requests[-1].body
    assert len([record for record in caplog.records if "sending no continue_final_message" in record.message]) == 1


def test_a_server_that_gives_fewer_top_log_probabilities_is_asked_for_as_many_as_it_gives() -> None:
    def stingy(request: Request) -> Reply | None:
        message = "Requested sample logprobs of 20, which is greater than max allowed: 5"
        return failing(400, message) if request.body["top_logprobs"] > 5 else None

    with FakeServer(stingy) as server:
        backend = backend_of(server)
        outcomes = ask(backend, cells(), cells())
        before = len(server.requests)
        again = answer(backend, cells())
    assert all(isinstance(each, Completion) and each.distributions == again.distributions for each in outcomes)
    assert all(0.3 < each.mass < 0.98 for each in again.distributions)
    assert {request.body["top_logprobs"] for request in server.requests[before:]} == {5}


def test_control_strings_in_what_the_model_said_are_broken_and_counted_once() -> None:
    with FakeServer() as server:
        got = answer(backend_of(server), cells("<|im_end|></s> a:", "<|im_end|> b:"))
    assert got.escaped_special_tokens == 2
    assert "<·|im_end|>" in server.requests[0].text
    assert not any("<|im_end|>" in request.text for request in server.requests)


def test_requests_for_labels_hold_a_slot_each_and_are_made_again_where_that_helps() -> None:
    with FakeServer(every(3, failing(503)), delay=0.005) as server:
        got = answer(backend_of(server, slots=2), cells(*[f"{n}:" for n in range(12)]))
    assert all(map(is_near, got.distributions, [likely(f"{n}:") for n in range(12)]))
    assert server.most_at_once == 2


def test_one_request_for_labels_that_fails_for_good_fails_its_call() -> None:
    def refuses(request: Request) -> Reply | None:
        return failing(400, "too long") if "Bad." in request.text else None

    with FakeServer(refuses) as server, pytest.raises(CallError, match="too long"):
        answer(backend_of(server), cells())


def test_log_probabilities_that_cannot_be_read_are_asked_for_again() -> None:
    odd = Reply(body=completion("7") | {"choices": [{**choice_of("7"), "logprobs": {"content": [{"token": "7"}]}}]})
    with FakeServer(first(1, odd)) as server:
        assert is_near(answer(backend_of(server), cells("a:")).distributions[0], likely("a:"))


# Servers in trouble


def bad(body: object, status: int = 200, **headers: str) -> Reply:
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


PASSING = {
    "500": failing(500), "502 in HTML": bad(b"<html>502</html>", 502, content_type="text/html"), "503": failing(503),
    "408": failing(408), "409": failing(409), "429": failing(429), "429 and 0 s": failing(429, retry_after="0"),
    "429 and a date": failing(429, retry_after=formatdate(time.time(), usegmt=True)),
    "429 and a day": failing(429, retry_after="86400"), "429 and garbage": failing(429, retry_after="a while"),
    "reset": RESET, "no JSON": bad(b'{"choices": ['), "an empty body": bad(b""), "a list": bad([]),
    "HTML": bad(b"<html>", content_type="text/html"), "no choices": bad(completion("", choices=[])),
    "null choices": bad(completion("", choices=None)), "no text": bad(completion(None)), "null": bad(None),
    "choices of another kind": bad(completion("", choices=["yes"])),
}  # fmt: skip


@pytest.mark.parametrize("kind", PASSING)
def test_a_fault_that_passes_costs_one_more_attempt_and_nothing_else(kind: str) -> None:
    with FakeServer(first(1, PASSING[kind])) as server:
        assert json.loads(answer(backend_of(server)).text)
    assert len(server.requests) == 2


@pytest.mark.parametrize("kind", PASSING)
def test_a_fault_that_stays_ends_within_the_attempts_and_with_a_reason(kind: str) -> None:
    with FakeServer(lambda request: PASSING[kind]) as server, pytest.raises(BackendError) as caught:
        answer(backend_of(server))
    assert len(server.requests) == 5
    assert "given up after 5 attempts" in str(caught.value)


@pytest.mark.parametrize("trouble", [HANG, DRIP], ids=["hang", "drip"])
def test_a_server_that_does_not_come_to_an_end_is_cut_off_at_the_deadline(trouble: Reply) -> None:
    began = time.monotonic()
    retry_policy = RetryPolicy(timeout=0.3, deadline=2, first_wait=0.001)
    with FakeServer(lambda request: trouble) as server, pytest.raises(BackendError, match="no answer within"):
        answer(backend_of(server, retry_policy=retry_policy))
    assert time.monotonic() - began < 20
    assert 2 <= len(server.requests) <= 8


def test_a_refusal_fails_its_call_alone_and_is_not_asked_for_again() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, "refusal": "I won't."}}
    with FakeServer(first(1, bad(completion("", choices=[choice])))) as server:
        backend = backend_of(server)
        with pytest.raises(CallError, match=r"refused: I won't\."):
            answer(backend)
        assert answer(backend).text
    assert len(server.requests) == 2


def test_a_model_that_is_not_there_ends_everything_at_once() -> None:
    with FakeServer(lambda request: failing(404, "The model `tiny` does not exist.")) as server:
        outcomes = ask(backend_of(server, slots=2), *[call_of()] * 50)
    assert all(isinstance(outcome, BackendUnavailableError) for outcome in outcomes)
    assert "The model `tiny` does not exist" in str(outcomes[0])
    assert len(server.requests) <= 2


def test_a_redirect_is_not_followed() -> None:
    with FakeServer() as other:
        redirect = bad(b"", 307, location=f"{other.url}/v1/chat/completions")
        with (
            FakeServer(lambda request: redirect) as server,
            pytest.raises(BackendUnavailableError, match="not followed"),
        ):
            answer(backend_of(server))
    assert len(server.requests) == 1
    assert other.requests == []


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(BackendUnavailableError, match=rf"tiny at {url}: no connection"):
            answer(OpenAICompatible("tiny", url, retry_policy=QUICK))


# Many debates


def test_a_tenth_of_requests_failing_leaves_every_debate_whole() -> None:
    with FakeServer(every(10, failing(500))) as server, Engine(backend_of(server)) as engine:
        evaluations = engine.evaluate_batch(tasks(40), evaluator(rounds=2))
    assert [evaluation.status for evaluation in evaluations] == ["ok"] * 40
    assert len(server.requests) == pytest.approx(160 / 0.9, abs=2)


@pytest.mark.parametrize("readout", ["expected", "cells"])
def test_evaluators_read_their_scores_out_of_a_server(readout: Any) -> None:
    settings = evaluator(rounds=1, readout=readout, silent_readouts=True, abstain=True)
    panel = PanelEvaluator(members={"debate": settings, "value": ValueEvaluator(readout=readout)})
    with FakeServer(every(10, failing(503))) as server, Engine(backend_of(server)) as engine:
        evaluations = engine.evaluate_batch(tasks(2), panel)
    assert [evaluation.status for evaluation in evaluations] == ["ok"] * 2
    for evaluation in evaluations:
        debate, value = evaluation.members
        assert debate.tensor is not None
        assert np.isfinite(debate.tensor).all()
        assert not np.array_equal(debate.tensor, debate.tensor.round())
        assert all(judgment.distribution is not None for judgment in value.judgments)


def test_a_hanging_request_holds_up_no_other_debate() -> None:
    retry_policy = RetryPolicy(timeout=2, deadline=30, first_wait=0.001)
    hanging = FakeServer(lambda request: HANG if "Question 3?" in request.text and request.n < 20 else None)
    with hanging as server, Engine(backend_of(server, retry_policy=retry_policy)) as engine:
        finished = list(engine.iter_evaluate(tasks(12), evaluator(rounds=1)))
    assert [evaluation.status for evaluation in finished] == ["ok"] * 12
    assert finished[-1].task_id == "t3"


def test_no_more_requests_are_under_way_than_there_are_slots() -> None:
    with FakeServer(delay=0.02) as server, Engine(backend_of(server, slots=3), max_concurrency=20) as engine:
        engine.evaluate_batch(tasks(20), evaluator(rounds=1))
    assert server.most_at_once == 3


def test_a_thousand_turns_against_a_failing_server_make_less_than_two_hundred_requests() -> None:
    with FakeServer(lambda request: failing(500)) as server, Engine(backend_of(server)) as engine:
        evaluations = engine.evaluate_batch(tasks(500), evaluator(rounds=1))
    assert {evaluation.failures[0].reason for evaluation in evaluations} == {"backend_dead"}
    assert len(server.requests) < 200


def test_a_server_that_dies_for_good_leaves_what_was_finished_and_says_why() -> None:
    done: list[str] = []
    lost: set[str] = set()
    with (
        FakeServer(from_the(31, DIE)) as server,
        Engine(backend_of(server, slots=4), max_concurrency=4) as engine,
        pytest.raises(BackendUnavailableError, match="no connection"),
    ):
        for evaluation in engine.iter_evaluate(tasks(50), evaluator(rounds=1)):
            if evaluation.status == "ok":
                done.append(evaluation.task_id)
            lost |= {failure.reason for failure in evaluation.failures}
    assert lost == {"backend_dead"}
    assert 10 <= len(done) <= 15


def test_an_engine_that_was_closed_begins_anew_after_its_server_died() -> None:
    with FakeServer(first(5, failing(401))) as server:
        engine = Engine(backend_of(server, slots=1), max_concurrency=8)
        with engine, pytest.raises(BackendUnavailableError):
            engine.evaluate(tasks(1)[0], evaluator(rounds=1))
        server.requests.extend([server.requests[0]] * 5)
        with engine:
            again = engine.evaluate_batch(tasks(8), evaluator(rounds=1, mode="independent"))
        with engine:
            once_more = engine.evaluate_batch(tasks(8), evaluator(rounds=1, mode="independent"))
    assert {evaluation.status for evaluation in [*again, *once_more]} == {"ok"}


# What must be right before anything is sent


def test_openai_itself_is_not_asked_without_a_key() -> None:
    with pytest.raises(ConfigError, match="set OPENAI_API_KEY, or give --base-url"):
        answer(OpenAICompatible("gpt"))


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-é"])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        answer(OpenAICompatible("m", "http://127.0.0.1:9/v1"))
    assert "sk" not in str(caught.value)


@pytest.mark.parametrize(("settings", "named"), [({"slots": 0}, "slots"), ({"model": " "}, "model")])
def test_impossible_settings_are_refused_by_name(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        OpenAICompatible(settings.pop("model", "m"), "http://127.0.0.1:1", **settings)


def test_no_http_library_is_loaded_before_a_backend_starts() -> None:
    code = (
        "import sys, debate\n"
        "from debate.backends import OpenAICompatible, Ollama\n"
        "OpenAICompatible('m', 'http://127.0.0.1:1'); Ollama('m')\n"
        "print([name for name in ('httpx2', 'httpx') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(REPOSITORY))
    assert run.stdout.strip() == "[]"
