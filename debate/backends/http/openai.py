"""Any server that speaks OpenAI's chat completions: vllm serve, llama.cpp, hosted ones.

The `openai` client carries the bytes; its own retries are off, ours are in `persistence`. A schema is sent in the
strongest form that the server takes (see `schema_forms`), and a parameter that it says it does not take is left out.
Redirects are not followed, and the key comes from the environment alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from debate.backends.base import Call
from debate.backends.http.client import HTTPBackend, count, log
from debate.backends.http.response_format import ResponseFormat, response_format
from debate.errors import ConfigError
from debate.flow import Completion
from debate.net.retry import RetryPolicy, TransportError, error_from_status
from debate.types import Usage

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_UNSUPPORTED = re.compile(r"unsupported (?:parameter|value):? ['\"`](\w+)['\"`]", re.IGNORECASE)
_MOST_CHARACTERS = 500


class OpenAICompatible(HTTPBackend):
    """A model behind an OpenAI-compatible server.

    >>> OpenAICompatible("Qwen/Qwen3-8B", base_url="http://localhost:8000/v1")

    Args:
        model: the name the server knows it by.
        base_url: up to and with `/v1`; None takes OPENAI_BASE_URL, or OpenAI's own.
        api_key_env: the environment variable that holds the key.
        slots: most requests under way at once.
        retry_policy: timeouts, attempts and the circuit breaker.
        structured: the form to send schemas in, one of `schema_forms.FORMS`; None finds out.
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
        super().__init__(model, address, slots=slots, retry_policy=retry_policy)
        self._given_form = structured
        self.forms = ResponseFormat(structured, self.base_url)
        self._renamed: dict[str, str | None] = {}
        self._api_key_env = api_key_env
        self._extra_body = dict(extra_body or {})
        self._client: AsyncOpenAI | None = None

    async def start(self) -> None:
        """Make the client; nothing is sent.

        Raises:
            ConfigError: when OpenAI's own server is meant and there is no key, or the key is none.
        """
        if self._client is not None:
            return
        key = self._key()
        if not key and "api.openai.com" in self.base_url:
            raise ConfigError(f"set {self._api_key_env}, or give --base-url for a server of yours", field="api_key_env")
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"{self._api_key_env} holds characters that no key has", field="api_key_env")
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self._begin()
        self.forms = ResponseFormat(self._given_form, self.base_url)
        self._client = AsyncOpenAI(
            api_key=key or "none",
            base_url=self.base_url,
            max_retries=0,
            timeout=self.retry_policy.timeout,
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        if call.schema is None:
            return await self._adapted(call, messages, {})
        schema = call.schema
        return await self.forms.answer(lambda form: self._adapted(call, messages, response_format(schema, form)))

    async def _adapted(self, call: Call, messages: list[dict[str, str]], form: dict[str, Any]) -> Completion:
        """One request, and again without each parameter that the server says it does not take."""
        while True:
            parameters = self._parameters(call)
            try:
                return await self._request(messages, {**parameters, **form})
            except TransportError as fault:
                named = _UNSUPPORTED.search(fault.message) if fault.status in (400, 422) else None
                if named is None or named[1] not in parameters:
                    raise
                self._rename(named[1], fault.message)

    def _rename(self, name: str, message: str) -> None:
        if name not in self._renamed:
            self._renamed[name] = "max_completion_tokens" if name == "max_tokens" else None
            log.warning("%s: %s; sending %s", self.base_url, message, self._renamed[name] or f"no {name}")

    def _parameters(self, call: Call) -> dict[str, Any]:
        """Sampling and seed by the names that the server has for them."""
        wanted = {"seed": call.seed, **call.sampling.to_dict()}
        named = ((self._renamed.get(name, name), value) for name, value in wanted.items())
        return {name: value for name, value in named if name is not None}

    async def _request(self, messages: list[dict[str, str]], options: dict[str, Any]) -> Completion:
        import httpx2
        import openai

        assert self._client is not None, "start the backend first"
        body = {"model": self.model, "messages": messages, **options, **self._extra_body}
        try:
            # The client's own models of requests and answers cost more than all of ours: it carries plain JSON.
            response = await self._client.post("/chat/completions", body=body, cast_to=httpx2.Response)
            answer: Any = response.json()
        except openai.APIStatusError as error:
            raise self._fault(error) from None
        except openai.APITimeoutError:
            raise TransportError("timeout", "the server did not answer in time", is_retryable=True) from None
        except openai.APIConnectionError as error:
            message = self._shown(f"no connection: {error.__cause__ or error}")
            raise TransportError("no_connection", message, is_retryable=True) from None
        except (openai.OpenAIError, ValueError, TypeError) as error:
            message = self._shown(f"an answer that is not a completion: {error}")
            raise TransportError("bad_answer", message, is_retryable=True) from None
        return self._completion(answer)

    def _completion(self, answer: Any) -> Completion:
        try:
            choice = answer["choices"][0]
            message, reason, used = choice["message"], choice.get("finish_reason"), answer.get("usage")
            text, refusal = message.get("content"), message.get("refusal")
        except (AttributeError, IndexError, KeyError, TypeError):
            raise TransportError("bad_answer", "an answer that is not a completion", is_retryable=True) from None
        if not isinstance(text, str):
            problem = self._shown(f"the model refused: {refusal}") if refusal else "an answer without text"
            raise TransportError("no_text", problem, is_retryable=not refusal)
        tokens = _mapping(used)
        cached = _mapping(tokens.get("prompt_tokens_details")).get("cached_tokens")
        usage = Usage(count(tokens.get("prompt_tokens")), count(cached), count(tokens.get("completion_tokens")), 1)
        return Completion(text, reason if isinstance(reason, str) else "stop", usage)

    def _fault(self, error: APIStatusError) -> TransportError:
        body = cast("object", error.body)
        detail: object = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else body
        message = self._shown(str(detail or error.message))
        if error.status_code in (401, 403):
            message += f" (the key is read from {self._api_key_env})"
        header = error.response.headers.get("retry-after")
        return error_from_status(error.status_code, message, header, details=json.dumps(body, default=str))

    def _key(self) -> str:
        return os.environ.get(self._api_key_env, "").strip()

    def _shown(self, text: str) -> str:
        """What a server said, without the key it may have repeated, and at a length for a message."""
        key = self._key()
        return (text.replace(key, "***") if key else text)[:_MOST_CHARACTERS]


def _mapping(value: object) -> dict[str, object]:
    """A JSON object as it is; an empty one for whatever else stands there."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
