"""Ollama over its native chat API, with `format` as the reply's schema.

The context window is set on every request: left alone, Ollama cuts a longer prompt from the front without a word, and a
judge would score what it has not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from debate.backends.base import Call
from debate.backends.http.client import HTTPBackend, count, first_text, mapping
from debate.backends.thinking import Thinking, thinking_settings, with_thinking_apart
from debate.errors import ConfigError
from debate.flow import Completion
from debate.hashing import ById
from debate.net.rate import RateLimits
from debate.net.retry import RetryPolicy, TransportError
from debate.types import Usage


class Ollama(HTTPBackend):
    """A model that an Ollama server runs.

    >>> Ollama("llama3.1:8b", context_length=16384)

    Args:
        model: as `ollama list` names it.
        base_url: of the server, without `/api`.
        context_length: tokens of prompt and reply together (`num_ctx`); a prompt that does not fit fails its call.
        slots: most requests under way at once; Ollama itself works on OLLAMA_NUM_PARALLEL.
        retry_policy: time-outs, attempts and the circuit breaker.
        api_key_env: the environment variable that holds the key, where a proxy before the server wants one.
        thinking, thinking_tokens: see `debate.backends.thinking.ThinkingSettings`; sent as `think`.
        rpm: most requests per minute, retries included, of this process; None is without limit.
        tpm: most tokens per minute, likewise.
    """

    def __init__(
        self,
        model: str,
        base_url: str = "http://localhost:11434",
        *,
        context_length: int = 16384,
        slots: int = 8,
        retry_policy: RetryPolicy | None = None,
        api_key_env: str | None = None,
        thinking: Thinking | bool = "auto",
        thinking_tokens: int | None = None,
        rpm: int | None = None,
        tpm: int | None = None,
    ) -> None:
        settings = thinking_settings(thinking, thinking_tokens, None)
        super().__init__(
            model,
            base_url.rstrip("/").removesuffix("/api"),
            "/api/chat",
            slots=slots,
            retry_policy=retry_policy,
            api_key_env=api_key_env,
            thinking=settings,
            limits=RateLimits(rpm, tpm),
        )
        self._think = {} if settings.thinking == "auto" else {"think": settings.effort or settings.is_asked_for}
        if context_length < 1:
            raise ConfigError(f"must be at least 1, got {context_length}", field="context_length")
        self._context_length = context_length

    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        try:
            return self._completion(mapping(await self._post(call, self._body(call, messages))))
        except TransportError as error:
            if error.status == 404:
                error.message += f" (`ollama pull {self.model}` fetches it)"
            raise

    def _body(self, call: Call, messages: list[dict[str, str]]) -> dict[str, Any]:
        options = {"seed": call.seed, "num_ctx": self._context_length, **self._sampling(call)}
        if "max_tokens" in options:
            options["num_predict"] = options.pop("max_tokens")
        body: dict[str, Any] = {"model": self.model, "messages": messages, "stream": False, "options": options}
        body |= self._think
        return body if call.schema is None else {**body, "format": ById(call.schema)}

    def _tokens_used(self, answer: Mapping[str, Any]) -> int:
        return count(answer.get("prompt_eval_count")) + count(answer.get("eval_count"))

    def _completion(self, data: dict[str, Any]) -> Completion:
        message = mapping(data.get("message"))
        text, thinking = message.get("content"), first_text(message, "thinking")
        if not isinstance(text, str) or data.get("done") is False:
            raise TransportError("bad_answer", "an answer without a finished message", is_retryable=True)
        prompt_tokens, completion_tokens = count(data.get("prompt_eval_count")), count(data.get("eval_count"))
        if prompt_tokens >= self._context_length:
            raise TransportError(
                "context_length",
                f"the prompt fills the context of {self._context_length} tokens and may have been cut; "
                "raise context_length, or show less of the debate with history=1",
                is_retryable=False,
            )
        reason = "length" if data.get("done_reason") == "length" else "stop"
        usage, text = Usage(prompt_tokens, 0, completion_tokens, 1), text.lstrip() if thinking else text
        return with_thinking_apart(Completion(text, reason, usage, thinking=thinking))
