"""Any server that speaks OpenAI's chat completions: vllm serve, llama.cpp, hosted ones.

A schema is sent in the strictest form that the server supports (see `response_format`), and a parameter that it says it
does not support is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from debate.backends.base import Call
from debate.backends.http.client import HTTPBackend, count, log, mapping
from debate.backends.http.response_format import ResponseFormat, response_format
from debate.errors import ConfigError
from debate.flow import Completion
from debate.hashing import ById
from debate.net.retry import RetryPolicy, TransportError
from debate.types import Usage

_UNSUPPORTED = re.compile(r"unsupported (?:parameter|value):? ['\"`](\w+)['\"`]", re.IGNORECASE)


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
        extra_body: further fields for every request, such as {"chat_template_kwargs": {...}}.
    """

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
    ) -> None:
        address = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        path = "/chat/completions"
        super().__init__(model, address, path, slots=slots, retry_policy=retry_policy, api_key_env=api_key_env)
        self._structured = structured
        self.response_format = ResponseFormat(structured, self.base_url)
        self._renamed: dict[str, str | None] = {}
        self._extra_body = dict(extra_body or {})

    async def start(self) -> None:
        """Make the client; nothing is sent.

        Raises:
            ConfigError: when OpenAI's own server is meant and there is no key, or the key is none.
        """
        if not self._client.key() and "api.openai.com" in self.base_url:
            name = self._client.api_key_env
            raise ConfigError(f"set {name}, or give --base-url for a server of yours", field="api_key_env")
        if not self._client.is_open:
            self.response_format = ResponseFormat(self._structured, self.base_url)
        await super().start()

    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        if call.schema is None:
            return await self._adapted(call, messages, {})
        schema = ById(call.schema)
        return await self.response_format.answer(
            lambda form: self._adapted(call, messages, response_format(schema, form))
        )

    async def _adapted(self, call: Call, messages: list[dict[str, str]], form: dict[str, Any]) -> Completion:
        """One request, and again without each parameter that the server says it does not take."""
        while True:
            parameters = self._parameters(call)
            try:
                body = {"model": self.model, "messages": messages, **parameters, **form, **self._extra_body}
                return self._completion(await self._post(call, body))
            except TransportError as error:
                named = _UNSUPPORTED.search(error.message) if error.status in (400, 422) else None
                if named is None or named[1] not in parameters:
                    raise
                self._rename(named[1], error.message)

    def _rename(self, name: str, message: str) -> None:
        if name not in self._renamed:
            self._renamed[name] = "max_completion_tokens" if name == "max_tokens" else None
            log.warning("%s: %s; sending %s", self.base_url, message, self._renamed[name] or f"no {name}")

    def _parameters(self, call: Call) -> dict[str, Any]:
        """Sampling and seed by the names that the server has for them."""
        wanted = {"seed": call.seed, **call.sampling.to_dict()}
        named = ((self._renamed.get(name, name), value) for name, value in wanted.items())
        return {name: value for name, value in named if name is not None}

    def _completion(self, answer: Any) -> Completion:
        try:
            choice = answer["choices"][0]
            message, reason, used = choice["message"], choice.get("finish_reason"), answer.get("usage")
            text, refusal = message.get("content"), message.get("refusal")
        except (AttributeError, IndexError, KeyError, TypeError):
            raise TransportError("bad_answer", "an answer that is not a completion", is_retryable=True) from None
        if not isinstance(text, str):
            problem = self._client.redacted(f"the model refused: {refusal}") if refusal else "an answer without text"
            raise TransportError("no_text", problem, is_retryable=not refusal)
        tokens = mapping(used)
        cached = mapping(tokens.get("prompt_tokens_details")).get("cached_tokens")
        usage = Usage(count(tokens.get("prompt_tokens")), count(cached), count(tokens.get("completion_tokens")), 1)
        return Completion(text, reason if isinstance(reason, str) else "stop", usage)
