"""Any server that speaks OpenAI's chat completions: vllm serve, llama.cpp, hosted ones.

A schema is sent in the strictest form that the server supports (see `response_format`), and a parameter that it says it
does not support is left out.

Labels are read out of the likeliest tokens that the server gives (see `top_logprobs`). What it would say after a
continuation it is asked by a last message of the assistant that it is to go on with. A server that begins a message of
its own instead gives the labels hardly any probability, and they stay unscored for that reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from debate.backends.base import READOUT_HINT, Call
from debate.backends.http.client import HTTPBackend, count, first_text, log, mapping
from debate.backends.http.response_format import ResponseFormat, response_format
from debate.backends.http.special_tokens import escape_blocks
from debate.backends.http.top_logprobs import Likely, Place, Token, places_of, read_labels, tokens_of
from debate.backends.thinking import Thinking, ThinkingSettings, thinking_settings, with_thinking_apart
from debate.concurrency.side_by_side import side_by_side
from debate.errors import BackendUnavailableError, ConfigError
from debate.flow import Block, Completion, Segment
from debate.hashing import ById
from debate.net.rate import RateLimits
from debate.net.retry import RetryPolicy, TransportError
from debate.types import LabelDistribution, Sampling, Usage

T = TypeVar("T")
Chat = list[dict[str, str]]

_UNSUPPORTED = re.compile(r"unsupported (?:parameter|value):? ['\"`](\w+)['\"`]", re.IGNORECASE)
_OPENAI = "api.openai.com"
_MOST_TOP_LOGPROBS = 20
"""What OpenAI and vLLM take at most."""
_GOING_ON = {"continue_final_message": True, "add_generation_prompt": False}
"""What vLLM's server needs to go on with the last message of the assistant; llama.cpp's does so by itself."""


class OpenAICompatible(HTTPBackend):
    """A model behind an OpenAI-compatible server.

    >>> OpenAICompatible("Qwen/Qwen3-8B", base_url="http://localhost:8000/v1")

    Args:
        model: the name the server knows it by.
        base_url: up to and with `/v1`; None takes OPENAI_BASE_URL, or OpenAI's own.
        api_key_env: the environment variable that holds the key.
        slots: most requests under way at once.
        retry_policy: time-outs, attempts and the circuit breaker.
        structured: the form to send schemas in, one of `response_format.FORMS`; None finds out.
        extra_body: further fields for every request.
        thinking, thinking_tokens, chat_template_kwargs: see `debate.backends.thinking.ThinkingSettings`. on and off are
            sent as variables of the chat template, low, medium and high as `reasoning_effort`.
        rpm: most requests per minute, retries included, of this process; None is without limit.
        tpm: most tokens per minute, likewise.
    """

    reads_labels = True
    provider = "openai"

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key_env: str = "OPENAI_API_KEY",
        slots: int = 64,
        retry_policy: RetryPolicy | None = None,
        structured: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        thinking: Thinking | bool = "auto",
        thinking_tokens: int | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        rpm: int | None = None,
        tpm: int | None = None,
    ) -> None:
        settings = thinking_settings(thinking, thinking_tokens, chat_template_kwargs)
        address = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        super().__init__(
            model,
            address,
            "/chat/completions",
            slots=slots,
            retry_policy=retry_policy,
            api_key_env=api_key_env,
            thinking=settings,
            limits=RateLimits(rpm, tpm),
        )
        self._structured = structured
        self.response_format = ResponseFormat(structured, self.base_url)
        self._renamed: dict[str, str | None] = {}
        self._top_logprobs = _MOST_TOP_LOGPROBS
        self._extra_body = _extra_body(settings, extra_body or {})
        if _OPENAI in self.base_url and "chat_template_kwargs" in self._extra_body:
            hint = "thinking=low, medium or high go as its reasoning_effort; extra_body takes other fields"
            raise ConfigError("OpenAI's own server takes no variables of a chat template", field="thinking", hint=hint)

    async def start(self) -> None:
        """Make the client; nothing is sent.

        Raises:
            ConfigError: when OpenAI's own server is meant and there is no key, or the key is none.
        """
        if not self._client.key() and _OPENAI in self.base_url:
            name = self._client.api_key_env
            raise ConfigError(f"set {name}, or give --base-url for a server of yours", field="api_key_env")
        if not self._client.is_open:
            self.response_format = ResponseFormat(self._structured, self.base_url)
        await super().start()

    async def generate(self, call: Call) -> Completion:
        """Ask, again where that may help, and read out what the call asks for.

        Raises:
            CallError, BackendUnavailableError: see `Retrier.call`; the latter also where a server gives no
                log-probabilities.
        """
        if (read_out := call.read_out) is None:
            return await super().generate(call)
        messages, escaped = self._messages(call.prompt)
        if read_out.continuations:
            continued = [escape_blocks(each) for each in read_out.continuations]
            escaped += max(n for _, n in continued)
            completion, places = Completion("", usage=Usage()), [Place(text) for text, _ in continued]
        else:
            completion, places = await self._answered(lambda: self._reply(call, messages, self._with_places))
        read = await side_by_side(self._read(call, messages, place) for place in places)
        usage = sum((used for _, used in read), completion.usage)
        distributions = tuple(distribution for distribution, _ in read)
        return replace(
            completion,
            usage=replace(usage, calls=1),
            distributions=distributions,
            escaped_special_tokens=escaped,
        )

    async def _read(self, call: Call, messages: Chat, place: Place) -> tuple[LabelDistribution, Usage]:
        """The distribution at one place, with as many requests as it takes."""
        assert call.read_out is not None
        reading, used = read_labels(call.read_out.labels), Usage()
        begun = next(reading)
        while True:
            likely = place.known.get(begun)
            if likely is None:
                likely, usage = await self._likely_after(call, messages, place.said + begun)
                used += usage
            try:
                begun = reading.send(likely)
            except StopIteration as end:
                return end.value, used

    async def _likely_after(self, call: Call, messages: Chat, said: str) -> tuple[Likely, Usage]:
        """What the model would say next, once it has said this."""
        one_token = replace(call, sampling=Sampling(temperature=0.0, max_tokens=1), schema=None)
        going_on = [*messages, {"role": "assistant", "content": said}]
        return await self._answered(lambda: self._adapted(one_token, going_on, {}, self._likely))

    async def _ask(self, call: Call, messages: Chat) -> Completion:
        return await self._reply(call, messages, self._completion)

    async def _reply(self, call: Call, messages: Chat, read: Callable[[Any], T]) -> T:
        if call.schema is None:
            return await self._adapted(call, messages, {}, read)
        schema = ById(call.schema)
        return await self.response_format.answer(
            lambda form: self._adapted(call, messages, response_format(schema, form), read)
        )

    async def _adapted(self, call: Call, messages: Chat, form: dict[str, Any], read: Callable[[Any], T]) -> T:
        """One request, and again without each parameter that the server says it does not take."""
        while True:
            parameters = self._parameters(call, messages)
            try:
                body = {"model": self.model, "messages": messages, **parameters, **form, **self._extra_body}
                return read(await self._post(call, body))
            except TransportError as error:
                if error.status not in (400, 422) or not self._adapt(error, parameters):
                    raise

    def _adapt(self, error: TransportError, parameters: Mapping[str, Any]) -> bool:
        """Send no more what the server says that it does not take; False where it says nothing of the kind."""
        said, unsupported = error.message, _UNSUPPORTED.search(error.message)
        name = str(unsupported[1]) if unsupported else next((each for each in _GOING_ON if each in said), "")
        if name in parameters:
            self._rename(name, said)
            return True
        sent = parameters.get("top_logprobs", 0) if "logprobs" in said else 0
        fewer = [n for n in map(int, re.findall(r"\b\d+\b", said)) if 0 < n < sent]
        if fewer:
            self._top_logprobs = min(self._top_logprobs, max(fewer))
        return bool(fewer)

    def _rename(self, name: str, message: str) -> None:
        if name in self._renamed:
            return  # another call has found it out
        own = next((each for each, sent in self._renamed.items() if sent == name), name)
        self._renamed[own] = "max_completion_tokens" if name == "max_tokens" else None
        log.warning("%s: %s; sending %s", self.base_url, message, self._renamed[own] or f"no {name}")

    def _parameters(self, call: Call, messages: Chat) -> dict[str, Any]:
        """Sampling, seed and what is to be read out by the names that the server has for them."""
        is_reply = messages[-1]["role"] != "assistant"
        sampling = self._sampling(call) if is_reply else call.sampling.to_dict()
        wanted: dict[str, Any] = {"seed": call.seed, **sampling}
        if call.read_out is not None:
            wanted |= {"logprobs": True, "top_logprobs": self._top_logprobs}
        if not is_reply:
            wanted |= _GOING_ON
        named = ((self._renamed.get(name, name), value) for name, value in wanted.items())
        return {name: value for name, value in named if name is not None}

    def _tokens_used(self, answer: Mapping[str, Any]) -> int:
        return _usage(answer).total_tokens

    def _completion(self, answer: Any) -> Completion:
        choice = _choice(answer)
        message, reason = choice["message"], choice.get("finish_reason")
        text, refusal = message.get("content"), message.get("refusal")
        thinking = first_text(message, "reasoning_content", "reasoning")
        if text is None and thinking and not refusal:  # it came no further
            text = ""
        if not isinstance(text, str):
            problem = self._client.redacted(f"the model refused: {refusal}") if refusal else "an answer without text"
            raise TransportError("no_text", problem, is_retryable=not refusal)
        text = text.lstrip() if thinking else text
        said = Completion(text, reason if isinstance(reason, str) else "stop", _usage(answer), thinking=thinking)
        return with_thinking_apart(said)

    def _with_places(self, answer: Any) -> tuple[Completion, list[Place]]:
        completion = self._completion(answer)
        tokens = self._tokens(answer)
        if completion.text and not tokens:
            raise self._without_logprobs()
        return completion, [_escaped(place) for place in places_of(completion.text, tokens)]

    def _likely(self, answer: Any) -> tuple[Likely, Usage]:
        tokens = self._tokens(answer)
        return tokens[0].likely if tokens else {}, _usage(answer)

    def _tokens(self, answer: Any) -> list[Token]:
        try:
            tokens = tokens_of(_choice(answer).get("logprobs"))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise TransportError("bad_answer", "log-probabilities that cannot be read", is_retryable=True) from None
        if tokens is None:
            raise self._without_logprobs()
        return tokens

    def _without_logprobs(self) -> BackendUnavailableError:
        problem = f"{self.model} at {self.base_url}: the server gives no log-probabilities, so nothing can be read out"
        return BackendUnavailableError(problem, hint=READOUT_HINT)


def _extra_body(thinking: ThinkingSettings, given: Mapping[str, Any]) -> dict[str, Any]:
    """The further fields of every request: those that were given, and what the model is told of thinking."""
    variables = {**mapping(given.get("chat_template_kwargs")), **thinking.template_variables(by_effort=False)}
    effort = {} if thinking.effort is None else {"reasoning_effort": thinking.effort}
    return {**effort, **given, **({"chat_template_kwargs": variables} if variables else {})}


def _choice(answer: Any) -> dict[str, Any]:
    try:
        choice = answer["choices"][0]
        is_one = isinstance(choice, dict) and isinstance(choice["message"], dict)
    except (IndexError, KeyError, TypeError):
        is_one = False
    if not is_one:
        raise TransportError("bad_answer", "an answer that is not a completion", is_retryable=True)
    return answer["choices"][0]


def _usage(answer: Any) -> Usage:
    tokens = mapping(answer.get("usage"))
    cached = mapping(tokens.get("prompt_tokens_details")).get("cached_tokens")
    thought = mapping(tokens.get("completion_tokens_details")).get("reasoning_tokens")
    said, asked = count(tokens.get("completion_tokens")), count(tokens.get("prompt_tokens"))
    return Usage(asked, count(cached), said, 1, count(thought))


def _escaped(place: Place) -> Place:
    text, _ = escape_blocks((Block([Segment(place.said, is_content=True)]),))
    return replace(place, said=text)
