"""Traces, against the SDK of OpenTelemetry itself: which spans and events there are, under what, and with what."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from debate import Engine, Task, ValueEvaluator
from debate.backends import Call, Scripted
from debate.errors import BackendUnavailableError, CallError, ConfigError
from debate.flow import MemorySettings
from debate.runtime.tracing import CAPTURE
from debate.store import Store
from debate.testing import reply_for
from debate.types import Memory
from tests.required import required_module
from tests.small_flows import PROFILE, debates

required_module("opentelemetry.sdk.trace")

from opentelemetry import _logs, trace  # noqa: E402
from opentelemetry.sdk._logs import LoggerProvider  # noqa: E402
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

TASK = Task("What is 2 + 2?", ["4", "5"], id="sum")


class Seen:
    """What was exported."""

    def __init__(self) -> None:
        self.exported = InMemorySpanExporter()
        self.logged = InMemoryLogRecordExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exported))
        self.logs = LoggerProvider(shutdown_on_exit=False)
        self.logs.add_log_record_processor(SimpleLogRecordProcessor(self.logged))

    def spans(self, beginning: str = "") -> list[Any]:
        """In the order in which they began."""
        found = [span for span in self.exported.get_finished_spans() if span.name.startswith(beginning)]
        return sorted(found, key=lambda span: cast("int", span.start_time))

    def parent(self, span: Any) -> Any:
        return next(
            (each for each in self.spans() if span.parent and each.context.span_id == span.parent.span_id), None
        )

    def path(self, span: Any) -> list[str]:
        """The span's name and those above it."""
        above = self.parent(span)
        return [*([] if above is None else self.path(above)), span.name]

    def events(self) -> list[Any]:
        return [each.log_record for each in self.logged.get_finished_logs()]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """Providers of this test's own in the place of the global ones."""
    found = Seen()
    monkeypatch.setattr(trace, "get_tracer", found.provider.get_tracer)
    monkeypatch.setattr(_logs, "get_logger", found.logs.get_logger)
    monkeypatch.delenv(CAPTURE, raising=False)
    yield found
    found.provider.shutdown()
    found.logs.shutdown()


def evaluate(answer: Any = reply_for, task: Task = TASK, evaluator: Any = None, **engine: Any) -> Any:
    with Engine(Scripted(answer), tracing=True, **engine) as made:
        return made.evaluate(task, evaluator or debates())


def recalling() -> Any:
    """A debate whose agents recall."""
    personas = tuple(replace(persona, memory=MemorySettings(k=1)) for persona in PROFILE.personas)
    return debates(profile=replace(PROFILE, personas=personas))


class Recalling:
    """A memory that always recalls the same."""

    async def recall(self, request: Any) -> list[Memory]:
        return [Memory(id="1", text="a secret of old", score=1.0)]


def test_a_debate_is_a_workflow_of_agents_that_chat(seen: Seen) -> None:
    evaluate()
    chats = seen.spans("chat")
    agents = ["Critic", "Reader", "Critic", "Reader"]
    assert [seen.path(chat) for chat in chats] == [
        ["invoke_workflow debate", f"invoke_agent {agent}", "chat scripted"] for agent in agents
    ]
    assert [seen.parent(chat).attributes["debate.round"] for chat in chats] == [0, 0, 1, 1]
    (workflow,) = seen.spans("invoke_workflow")
    assert workflow.parent is None
    assert workflow.kind.name == "INTERNAL"
    assert workflow.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert workflow.attributes["debate.task.id"] == "sum"
    assert workflow.attributes["debate.stop_reason"] == "max_rounds"
    assert "gen_ai.provider.name" not in workflow.attributes
    assert all(span.status.status_code.name == "UNSET" for span in seen.spans())


def test_a_call_says_what_was_asked_and_used(seen: Seen) -> None:
    evaluation = evaluate()
    chats = seen.spans("chat")
    assert {chat.kind.name for chat in chats} == {"CLIENT"}
    told = chats[0].attributes
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "scripted"
    assert told["gen_ai.request.model"] == "scripted"
    assert told["gen_ai.request.temperature"] == 0.7
    assert told["gen_ai.output.type"] == "json"
    assert told["gen_ai.response.finish_reasons"] == ("stop",)
    assert len({chat.attributes["gen_ai.request.seed"] for chat in chats}) == 4
    used = [sum(chat.attributes[f"gen_ai.usage.{name}_tokens"] for chat in chats) for name in ("input", "output")]
    assert used == [evaluation.usage.prompt_tokens, evaluation.usage.completion_tokens]


def test_recalls_are_searches_of_the_agent_whose_turn_it_is(seen: Seen) -> None:
    evaluate(evaluator=recalling(), memory=Recalling())
    searches = seen.spans("search_memory")
    assert [seen.path(search)[1] for search in searches] == [seen.path(chat)[1] for chat in seen.spans("chat")]
    assert searches[0].name == "search_memory pair/Critic"
    assert searches[0].attributes == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.store.id": "pair/Critic",
        "gen_ai.memory.record.count": 1,
    }
    agent = seen.parent(searches[0])
    assert agent.start_time <= searches[0].start_time <= searches[0].end_time <= agent.end_time


def test_scores_are_events_under_the_evaluation(seen: Seen) -> None:
    evaluation = evaluate()
    (workflow,) = seen.spans("invoke_workflow")
    events = seen.events()
    assert {event.event_name for event in events} == {"gen_ai.evaluation.result"}
    assert {event.span_id for event in events} == {workflow.context.span_id}
    scores = {
        (event.attributes["debate.candidate"], event.attributes["gen_ai.evaluation.name"]): event.attributes[
            "gen_ai.evaluation.score.value"
        ]
        for event in events
    }
    assert scores == {
        (j, name): pytest.approx(value)
        for j in range(2)
        for name, value in [
            ("debate", evaluation.scores[j]),
            ("debate.clarity", evaluation.by_component[j, 0]),
            ("debate.truth", evaluation.by_component[j, 1]),
        ]
    }
    labels = [event.attributes.get("gen_ai.evaluation.score.label") for event in events]
    assert Counter(labels) == {"selected": 1, "not_selected": 1, None: 4}


def test_a_balanced_debate_tells_the_scores_of_its_components_too(seen: Seen) -> None:
    evaluate(evaluator=debates(candidate_order="balanced"))
    names = Counter(event.attributes["gen_ai.evaluation.name"] for event in seen.events())
    assert names == {"debate": 2, "debate.clarity": 2, "debate.truth": 2}


def test_what_is_unscored_has_a_reason_and_no_value(seen: Seen) -> None:
    def answer(call: Call) -> str:
        return "no JSON"

    evaluate(answer, evaluator=debates(retries=1))
    for event in seen.events():
        assert event.attributes["error.type"] == "unreadable_reply"
        assert "gen_ai.evaluation.score.value" not in event.attributes
    (workflow,) = seen.spans("invoke_workflow")
    assert workflow.status.status_code.name == "ERROR"
    assert workflow.attributes["error.type"] == "unreadable_reply"
    attempts = [chat.attributes["debate.attempt"] for chat in seen.spans("chat")]
    assert attempts == [0, 1] * (len(attempts) // 2)
    assert len(seen.spans("invoke_agent")) * 2 == len(attempts), "all attempts are in the agent's turn"


def test_a_failed_call_is_an_error_and_fails_no_other(seen: Seen) -> None:
    def answer(call: Call) -> str:
        if call.info["agent"] == "Critic":
            raise CallError("refused", "not this one")
        return reply_for(call)

    evaluate(answer)
    status = {(seen.path(chat)[1], chat.status.status_code.name) for chat in seen.spans("chat")}
    assert status == {("invoke_agent Critic", "ERROR"), ("invoke_agent Reader", "UNSET")}
    failed = next(chat for chat in seen.spans("chat") if chat.status.status_code.name == "ERROR")
    assert failed.attributes["error.type"] == "refused"
    assert "gen_ai.usage.input_tokens" not in failed.attributes
    assert seen.parent(failed).attributes["error.type"] == "refused"


def test_a_lost_backend_ends_all_spans_as_failed(seen: Seen) -> None:
    def answer(call: Call) -> str:
        raise BackendUnavailableError("the engine has gone")

    with pytest.raises(BackendUnavailableError):
        evaluate(answer)
    assert {span.attributes["error.type"] for span in [*seen.spans("chat"), *seen.spans("invoke_workflow")]} == {
        "BackendUnavailableError"
    }
    assert len(seen.spans("invoke_agent")) == 1


def test_spans_of_debates_side_by_side_do_not_mix(seen: Seen) -> None:
    async def answer(call: Call) -> str:
        await asyncio.sleep(call.seed % 7 / 1000)
        return reply_for(call)

    tasks = [Task(f"What is {n} + 2?", ["4", "5"], id=f"t{n}") for n in range(20)]
    with Engine(Scripted(answer), tracing=True) as engine:
        engine.evaluate_batch(tasks, debates(mode="simultaneous"))
    workflows = seen.spans("invoke_workflow")
    assert len({span.context.trace_id for span in workflows}) == 20
    for workflow in workflows:
        own = [span for span in seen.spans() if span.context.trace_id == workflow.context.trace_id]
        assert Counter(span.name for span in own) == {
            "invoke_workflow debate": 1, "invoke_agent Critic": 2, "invoke_agent Reader": 2, "chat scripted": 4,
        }  # fmt: skip
        sessions = {
            span.attributes["gen_ai.conversation.id"] for span in own if not span.name.startswith("invoke_agent")
        }
        assert len(sessions) == 1
        assert all(seen.path(span)[0] == "invoke_workflow debate" for span in own)


def test_evaluations_are_under_the_span_that_asked_for_them(seen: Seen) -> None:
    with Engine(Scripted(reply_for), tracing=True) as engine:
        for name in ("one", "two"):
            with seen.provider.get_tracer("mine").start_as_current_span(name):
                engine.evaluate_batch([TASK, Task("else?", ["1", "2"])], ValueEvaluator(samples=1))
        with seen.provider.get_tracer("mine").start_as_current_span("plain"):
            engine.generate(["Hello"])
    tops = Counter(seen.path(span)[0] for span in seen.spans("chat"))
    assert tops == {"one": 4, "two": 4, "plain": 1}
    assert ["plain", "chat scripted"] in [seen.path(span) for span in seen.spans("chat")]
    assert ["one", "invoke_workflow value", "chat scripted"] in [seen.path(span) for span in seen.spans("chat")]


def test_replayed_and_cached_calls_say_so_and_count_no_tokens(seen: Seen, tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        evaluate(cache=store.cache())
        first = seen.spans("chat")
        evaluate(cache=store.cache())
        again = [chat for chat in seen.spans("chat") if chat not in first]
        assert all("debate.cached" not in chat.attributes for chat in first)
        assert all(chat.attributes["debate.cached"] for chat in again)
        assert not any("gen_ai.usage.input_tokens" in chat.attributes for chat in again)
    seen.exported.clear()
    for rounds in (1, 2):
        with Engine(Scripted(reply_for), store=tmp_path / "r.sqlite", tracing=True) as engine:
            engine.evaluate(TASK, debates(rounds=rounds), run="mine")
    marks = [chat.attributes.get("debate.replayed", False) for chat in seen.spans("chat")]
    assert marks == [False, False, True, True, False, False]
    assert sum("gen_ai.usage.input_tokens" in chat.attributes for chat in seen.spans("chat")) == 4


@pytest.mark.parametrize("asked", ["true", "span_only", "SPAN_AND_EVENT"])
def test_contents_are_told_when_the_variable_asks_for_them(
    seen: Seen, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, asked)
    evaluate(evaluator=recalling(), memory=Recalling())
    chat = seen.spans("chat")[0].attributes
    (message,) = json.loads(chat["gen_ai.input.messages"])
    assert message["role"] == "user"
    assert "What is 2 + 2?" in message["parts"][0]["content"]
    assert json.loads(chat["gen_ai.system_instructions"])[0]["type"] == "text"
    (said,) = json.loads(chat["gen_ai.output.messages"])
    assert said["finish_reason"] == "stop"
    search = seen.spans("search_memory")[0].attributes
    assert json.loads(search["gen_ai.memory.records"]) == ["a secret of old"]
    assert "What is 2 + 2?" in search["gen_ai.memory.query.text"]
    assert "Candidate 1 of 2" in seen.events()[0].attributes["gen_ai.evaluation.explanation"]


@pytest.mark.parametrize("asked", [None, "false", "no_content", "event_only"])
def test_no_text_leaves_otherwise(seen: Seen, asked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if asked is not None:
        monkeypatch.setenv(CAPTURE, asked)
    evaluate(evaluator=recalling(), memory=Recalling())
    told = "".join(span.to_json() for span in seen.spans()) + "".join(str(event) for event in seen.events())
    assert "2 + 2" not in told
    assert "secret" not in told
    assert "Candidate 1" not in told


def test_a_server_gets_the_header_that_puts_its_spans_under_the_call(seen: Seen) -> None:
    headers: list[tuple[str, str]] = []

    def answer(call: Call) -> str:
        headers.append((call.info["agent"], call.trace_headers["traceparent"]))
        return reply_for(call)

    evaluate(answer)
    own = [f"00-{chat.context.trace_id:032x}-{chat.context.span_id:016x}" for chat in seen.spans("chat")]
    assert [header.rpartition("-")[0] for _, header in headers] == own


def test_tracing_changes_no_seed_and_no_result(seen: Seen) -> None:
    def seeds(tracing: bool) -> tuple[list[int], list[float]]:
        found: list[int] = []

        def answer(call: Call) -> str:
            found.append(call.seed)
            return reply_for(call)

        with Engine(Scripted(answer), tracing=tracing) as engine:
            return found, engine.evaluate(TASK, debates()).scores.tolist()

    assert seeds(True) == seeds(False)


def test_off_it_imports_nothing_and_makes_no_span(seen: Seen) -> None:
    with Engine(Scripted(reply_for)) as engine:
        engine.evaluate(TASK, debates())
    assert seen.spans() == []
    assert seen.events() == []
    code = """
import sys
from debate import Engine, Task
from debate.backends import Scripted
from debate.testing import reply_for
from debate.types import Memory
with Engine(Scripted(reply_for)) as engine:
    engine.evaluate(Task("2 + 2?", ["4", "5"]))
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match="not installed") as caught:
        Engine(Scripted(reply_for), tracing=True)
    assert "debate-eval[otel]" in str(caught.value.hint)
