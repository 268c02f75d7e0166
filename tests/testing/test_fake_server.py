"""The server on loopback: it answers any schema, and misbehaves as it is told."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from typing import Any

import pytest

from debate.parsing.schema import number_in, object_of
from debate.testing.fake_server import FakeServer, every, failing, judgment, likely_after, refusing
from tests.replies import FORMS

SCHEMA = object_of({"value": number_in(0, 10)})


def post(url: str, body: Any) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=10) as response:
        return json.load(response)


def chat(server: FakeServer, **more: Any) -> Any:
    body = {"messages": [{"role": "user", "content": "q"}], **more}
    return post(f"{server.url}/v1/chat/completions", body)["choices"][0]


def test_it_answers_a_text_and_a_schema() -> None:
    form = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    with FakeServer() as server:
        assert chat(server)["message"]["content"] == "Hello."
        assert 0 <= json.loads(chat(server, response_format=form)["message"]["content"])["value"] <= 10
        body = {"messages": [{"role": "user", "content": "q"}], "format": SCHEMA}
        assert "value" in post(f"{server.url}/api/chat", body)["message"]["content"]
    assert [request.n for request in server.requests] == [1, 2, 3]
    assert server.requests[0].text == "q"


def test_it_answers_every_form_of_a_debates_replies() -> None:
    for form in FORMS:
        read = form.read(judgment(form.schema))
        assert (read.is_silent, read.comments) == (False, ("On A.", "On B."))


def test_a_reply_for_which_there_are_too_few_tokens_is_cut_off() -> None:
    with FakeServer() as server:
        cut, whole = chat(server, max_tokens=1), chat(server, max_tokens=100)
    assert (cut["finish_reason"], whole["finish_reason"]) == ("length", "stop")
    assert len(cut["message"]["content"]) < len(whole["message"]["content"])


def test_it_misbehaves_as_it_is_told() -> None:
    with FakeServer(every(2, failing(503, "busy", retry_after="1"))) as server:
        chat(server)
        with pytest.raises(urllib.error.HTTPError) as caught:
            chat(server)
        caught.value.close()
        assert caught.value.code == 503
        assert caught.value.headers["retry-after"] == "1"
        chat(server)


def going_on(server: FakeServer, said: str, **more: Any) -> Any:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": said}]
    told = {"messages": messages, "max_tokens": 1, "logprobs": True, "top_logprobs": 3, **more}
    return post(f"{server.url}/v1/chat/completions", told)["choices"][0]


def test_it_goes_on_with_the_assistants_message_and_says_how_likely_its_tokens_are() -> None:
    with FakeServer() as server:
        said = going_on(server, '{"a":', continue_final_message=True)
        anew = going_on(server, '{"a":')
    likely = likely_after('{"a":')
    assert sum(likely.values()) == pytest.approx(1)
    [token] = said["logprobs"]["content"]
    assert said["message"]["content"] == token["token"] == next(iter(likely))
    shown = {each["token"]: math.exp(each["logprob"]) for each in token["top_logprobs"]}
    assert shown == pytest.approx(dict([*likely.items()][:3]))
    assert anew["message"]["content"] == "Hel"
    assert [each["token"] for each in anew["logprobs"]["content"]] == ["Hel"]


def test_it_may_give_no_log_probabilities_or_refuse_a_parameter() -> None:
    with FakeServer(logprobs=False) as server:
        assert "logprobs" not in going_on(server, "a:")
        server.behavior = refusing("continue_final_message")
        going_on(server, "a:")
        with pytest.raises(urllib.error.HTTPError) as caught:
            going_on(server, "a:", continue_final_message=True)
        assert "Unrecognized request argument supplied: continue_final_message" in caught.value.read().decode()
        caught.value.close()
