"""OpenTelemetry spans of evaluations, by its conventions for generative AI (those of 2026, "development").

    invoke_workflow EVALUATOR          a task's evaluation, under the span that is current where it was asked for
      invoke_agent AGENT               a turn, with all its attempts
        search_memory COLLECTION       what it recalled
        chat MODEL                     a call

Scores are log records, `gen_ai.evaluation.result`, under the workflow's span. Texts of prompts, replies, memories and
feedback are told only where `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` asks for them. Parents are passed on
explicitly, so spans of evaluations that run side by side do not mix. OpenTelemetry is imported when a `Tracer` is made;
without an SDK that exports, its spans are no-ops.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from debate.errors import ConfigError
from debate.evaluation import Evaluation, why_no_score
from debate.evaluators.base import Evaluator
from debate.flow import Call, Completion, Recall
from debate.types import Failure, Memory, Task

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ASKING = {"true", "1", "yes", "on", "span_only", "span_and_event"}
_Attributes = dict[str, Any]


def captures_content() -> bool:
    """Whether the usual variable asks for the texts of messages on spans."""
    return os.environ.get(CAPTURE, "").strip().lower() in _ASKING


@contextmanager
def under_caller(headers: Mapping[str, str]) -> Generator[None]:
    """Have the spans that are made inside stand under the span of who sent these headers, if they name one."""
    from opentelemetry import context, propagate

    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)


class Tracer:
    """Makes the spans and events of one engine, with the providers that are set when it is made.

    Raises:
        ConfigError: where OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import _logs, propagate, trace
        except ImportError:
            hint = "pip install 'debate-eval[otel]'"
            raise ConfigError("tracing needs opentelemetry-api, which is not installed", hint=hint) from None
        self.api: Any = trace
        self.record: Any = _logs.LogRecord
        self.inject: Any = propagate.inject
        self.spans: Any = trace.get_tracer("debate")
        self.log: Any = _logs.get_logger("debate")
        self.has_contents = captures_content()

    @contextmanager
    def evaluation(self, evaluator: Evaluator, task: Task, session: str) -> Generator[EvaluationSpan]:
        """The span of a task's evaluation, which is current meanwhile."""
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": evaluator.name,
            "gen_ai.conversation.id": session,
            "debate.task.id": task.id,
        }
        span = self.spans.start_span(f"invoke_workflow {evaluator.name}", attributes=attributes)
        with _ending(span), self.api.use_span(span, record_exception=False, set_status_on_exception=False):
            yield EvaluationSpan(self, self.api.set_span_in_context(span), span)

    def loose(self) -> EvaluationSpan:
        """Calls of a flow that is no evaluation: they are under the span that is current."""
        return EvaluationSpan(self, None, None)

    def start(self, name: str, attributes: _Attributes, parent: Any, kind: str = "INTERNAL", **when: Any) -> Any:
        """A span under a parent's context; `when` is a start_time in nanoseconds."""
        kinds = self.api.SpanKind
        return self.spans.start_span(name, context=parent, kind=kinds[kind], attributes=attributes, **when)


class EvaluationSpan:
    """What is under way in one evaluation."""

    def __init__(self, tracer: Tracer, context: Any, span: Any) -> None:
        self.tracer = tracer
        self.context = context
        self._span = span

    def steps(self) -> Steps:
        """For the calls of one flow, one after the other."""
        return Steps(self.tracer, self.context)

    def finished(self, evaluation: Evaluation) -> None:
        """Note what the evaluation came to, and tell of its scores."""
        self._span.set_attribute("debate.status", evaluation.status)
        if evaluation.stop_reason is not None:
            self._span.set_attribute("debate.rounds", evaluation.rounds_run)
            self._span.set_attribute("debate.stop_reason", evaluation.stop_reason)
        if evaluation.status == "failed":
            _fail(self._span, _reason(evaluation), evaluation.error or "")
        for attributes in _results(evaluation, has_contents=self.tracer.has_contents):
            record = self.tracer.record(
                timestamp=time.time_ns(),
                context=self.context,
                event_name="gen_ai.evaluation.result",
                attributes=attributes,
            )
            self.tracer.log.emit(record)


class Steps:
    """The spans of one flow: an agent's turn is open from its recall, or first call, to the next turn's."""

    def __init__(self, tracer: Tracer, parent: Any) -> None:
        self._tracer = tracer
        self._parent = parent
        self._turn: tuple[Any, ...] = ()
        self._agent: Any = None
        self._under: Any = parent
        self._ended = 0
        self._last: Completion | Failure | None = None
        self._recalls: list[tuple[Recall, Sequence[Memory], int, int]] = []

    def recalled(self, request: Recall, memories: Sequence[Memory], began: int) -> None:
        """Keep a recall for the turn that it is made for: who takes that is known with its first call."""
        self._recalls.append((request, memories, began, time.time_ns()))

    @contextmanager
    def chat(self, call: Call, provider: str) -> Generator[ChatSpan]:
        """The span of a call, which is current meanwhile."""
        self._enter(call)
        attributes = _request(call, provider)
        if self._tracer.has_contents:
            attributes |= _messages(call)
        span = self._tracer.start(f"chat {call.model}", attributes, self._under, "CLIENT")
        chat = ChatSpan(self._tracer, span)
        with _ending(span), self._tracer.api.use_span(span, record_exception=False, set_status_on_exception=False):
            try:
                yield chat
            finally:
                self._last, self._ended = chat.answer, time.time_ns()

    def close(self) -> None:
        """End what is open."""
        self._tell_recalls()
        if self._agent is not None:
            if isinstance(self._last, Failure):
                _fail(self._agent, self._last.reason, self._last.message)
            self._agent.end(end_time=self._ended or None)
        self._agent, self._turn, self._under, self._last = None, (), self._parent, None

    def _enter(self, call: Call) -> None:
        """Begin the turn of a call, unless it is another attempt of the same."""
        info, agent = call.info, call.info.get("agent")
        turn = (agent, info.get("round"), info.get("moment"))
        if turn != self._turn or self._recalls:
            recalls, self._recalls = self._recalls, []
            self.close()
            self._turn, self._recalls = turn, recalls
            if agent is not None:
                attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": str(agent)}
                attributes |= {f"debate.{name}": info[name] for name in ("round", "moment") if name in info}
                when: _Attributes = {"start_time": recalls[0][2]} if recalls else {}
                self._agent = self._tracer.start(f"invoke_agent {agent}", attributes, self._parent, **when)
                self._under = self._tracer.api.set_span_in_context(self._agent, self._parent)
        self._tell_recalls()

    def _tell_recalls(self) -> None:
        recalls, self._recalls = self._recalls, []
        for request, memories, began, ended in recalls:
            store = ", ".join(request.collections)
            attributes: _Attributes = {
                "gen_ai.operation.name": "search_memory",
                "gen_ai.memory.store.id": store,
                "gen_ai.memory.record.count": len(memories),
            }
            if self._tracer.has_contents:
                attributes["gen_ai.memory.query.text"] = "\n".join(request.queries)
                attributes["gen_ai.memory.records"] = json.dumps([each.text for each in memories])
            span = self._tracer.start(f"search_memory {store}", attributes, self._under, start_time=began)
            span.end(end_time=ended)


class ChatSpan:
    """The span of one call."""

    def __init__(self, tracer: Tracer, span: Any) -> None:
        self._tracer = tracer
        self._span = span
        self._is_replayed = False
        self.answer: Completion | Failure | None = None

    @property
    def headers(self) -> dict[str, str]:
        """By which a server puts its own spans under this one; to be asked for while the span is current."""
        headers: dict[str, str] = {}
        self._tracer.inject(headers)
        return headers

    def replayed(self) -> None:
        """Note that the answer is a recorded one, and that nothing was asked."""
        self._is_replayed = True

    def answered(self, answer: Completion | Failure) -> Completion | Failure:
        """Note the answer, and return it."""
        self.answer = answer
        if self._is_replayed:
            self._span.set_attribute("debate.replayed", True)
        if isinstance(answer, Failure):
            _fail(self._span, answer.reason, answer.message)
            return answer
        is_paid = not (self._is_replayed or answer.cached)
        self._span.set_attributes(_response(answer, is_paid=is_paid))
        if self._tracer.has_contents:
            part = {"type": "text", "content": answer.text}
            said = {"role": "assistant", "parts": [part], "finish_reason": answer.finish_reason}
            self._span.set_attribute("gen_ai.output.messages", json.dumps([said], ensure_ascii=False))
        return answer


@contextmanager
def _ending(span: Any) -> Generator[None]:
    """End a span at the end, as failed where something is raised."""
    try:
        yield
    except BaseException as error:
        _fail(span, type(error).__qualname__, str(error))
        raise
    finally:
        span.end()


def _fail(span: Any, reason: str, message: str) -> None:
    """Mark a span as failed."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", reason)
    span.set_status(Status(StatusCode.ERROR, message))


def _request(call: Call, provider: str) -> _Attributes:
    found: _Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": call.model,
        "gen_ai.request.seed": call.seed,
    }
    if call.session:
        found["gen_ai.conversation.id"] = call.session
    sampling = call.sampling.to_dict()
    found |= {
        f"gen_ai.request.{name}": sampling[name] for name in ("temperature", "top_p", "max_tokens") if name in sampling
    }
    if call.schema is not None:
        found["gen_ai.output.type"] = "json"
    names = ("round", "attempt", "sample", "candidate")
    return found | {f"debate.{name}": call.info[name] for name in names if isinstance(call.info.get(name), int)}


def _messages(call: Call) -> _Attributes:
    """The prompt as the conventions write messages."""
    found: _Attributes = {}
    messages: list[Mapping[str, Any]] = []
    for message in call.messages:
        part = {"type": "text", "content": message["content"]}
        if message["role"] == "system":
            found["gen_ai.system_instructions"] = json.dumps([part], ensure_ascii=False)
        else:
            messages.append({"role": message["role"], "parts": [part]})
    return found | {"gen_ai.input.messages": json.dumps(messages, ensure_ascii=False)}


def _response(answer: Completion, *, is_paid: bool) -> _Attributes:
    """What an answer says of itself; tokens only where they were used for it."""
    found: _Attributes = {"gen_ai.response.finish_reasons": [answer.finish_reason]}
    if answer.cached:
        found["debate.cached"] = True
    if is_paid:
        usage = answer.usage
        found["gen_ai.usage.input_tokens"] = usage.prompt_tokens
        found["gen_ai.usage.output_tokens"] = usage.completion_tokens
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
        if usage.thinking_tokens:
            found["gen_ai.usage.reasoning.output_tokens"] = usage.thinking_tokens
    return found


def _results(evaluation: Evaluation, *, has_contents: bool) -> Generator[_Attributes]:
    """The attributes of each score's event: of each candidate, and of it on each component."""
    components, means = evaluation.scored_components, evaluation.by_component
    for j, score in enumerate(evaluation.scores.tolist()):
        about = {"debate.task.id": evaluation.task_id, "debate.candidate": j}
        overall: _Attributes = {**about, "gen_ai.evaluation.name": evaluation.evaluator}
        if evaluation.selected is not None:
            overall["gen_ai.evaluation.score.label"] = "selected" if evaluation.selected == j else "not_selected"
        if has_contents:
            overall["gen_ai.evaluation.explanation"] = evaluation.feedback(j)
        yield overall | _score(evaluation, score, j)
        for k, component in enumerate(components if means is not None else ()):
            assert means is not None
            name = f"{evaluation.evaluator}.{component}"
            yield {**about, "gen_ai.evaluation.name": name} | _score(evaluation, float(means[j, k]), j)


def _score(evaluation: Evaluation, score: float, j: int) -> _Attributes:
    if not math.isnan(score):
        return {"gen_ai.evaluation.score.value": score}
    return {"error.type": "abstained" if "abstained" in why_no_score(evaluation, j) else _reason(evaluation)}


def _reason(evaluation: Evaluation) -> str:
    """Why something has no score, in one of a few words."""
    return evaluation.failures[0].reason if evaluation.failures else "unscored"
