"""Any server that speaks OpenAI's chat completions: vllm serve, llama.cpp, hosted ones.

The `openai` client carries the bytes; its own retries are off, ours are in `persistence`. A schema is sent in the
strongest form that the server takes, found out at the first calls. Redirects are not followed, and the key comes from
the environment alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from debate.backends.base import Call
from debate.backends.chat import ChatServer, log
from debate.backends.persistence import Patience, ServerFault, fault_of_status
from debate.errors import ConfigError
from debate.flow import Completion
from debate.types import Usage

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

FORMS = ("json_schema", "json_schema_plain", "json_object", "none")
"""How a schema is sent, strongest first: whole, without bounds on strings and numbers, as a bare wish for JSON, or
not at all; then the prompt alone asks for it, and the reply's parser is what stands between."""
_BOUNDS = ("pattern", "minLength", "maxLength", "minimum", "maximum")


class OpenAICompatible(ChatServer):
    """A model behind an OpenAI-compatible server.

    >>> OpenAICompatible("Qwen/Qwen3-8B", base_url="http://localhost:8000/v1")

    Args:
        model: the name the server knows it by.
        base_url: up to and with `/v1`; None takes OPENAI_BASE_URL, or OpenAI's own.
        api_key_env: the environment variable that holds the key.
        slots: most requests under way at once.
        patience: timeouts, attempts and the circuit breaker.
        structured: the form to send schemas in; None finds out.
        extra_body: further fields for every request, such as {"chat_template_kwargs": {...}}.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key_env: str = "OPENAI_API_KEY",
        slots: int = 64,
        patience: Patience | None = None,
        structured: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        address = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        super().__init__(model, address, slots=slots, patience=patience)
        if structured is not None and structured not in FORMS:
            raise ConfigError(f"must be one of {', '.join(FORMS)}, got {structured!r}", field="structured")
        self.structured = structured or FORMS[0]
        """The form in use."""
        self._is_found_out = structured is not None
        self._api_key_env = api_key_env
        self._extra_body = dict(extra_body or {})
        self._client: AsyncOpenAI | None = None

    async def start(self) -> None:
        """Make the client; nothing is sent.

        Raises:
            ConfigError: when OpenAI's own server is meant and there is no key.
        """
        if self._client is not None:
            return
        key = os.environ.get(self._api_key_env)
        if not key and "api.openai.com" in self.base_url:
            raise ConfigError(f"set {self._api_key_env}, or give --base-url for a server of yours", field="api_key_env")
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        self._client = AsyncOpenAI(
            api_key=key or "none",
            base_url=self.base_url,
            max_retries=0,
            timeout=self.persistence.patience.timeout,
            http_client=DefaultAsyncHttpxClient(follow_redirects=False),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        while True:
            form = self.structured
            try:
                answer = await self._request(call, messages, form)
            except ServerFault as fault:
                if call.schema is None or not self._weaken(form, fault):
                    raise
                continue
            self._is_found_out = self._is_found_out or call.schema is not None
            return answer

    def _weaken(self, form: str, fault: ServerFault) -> bool:
        """After a refusal, whether the call is to be made again with a weaker form."""
        if form != self.structured:
            return True  # another call has found out meanwhile
        if self._is_found_out or form == FORMS[-1] or fault.status not in (400, 422, 500, 501):
            return False
        if fault.status == 500 and "schema" not in fault.message and "grammar" not in fault.message:
            return False
        self.structured = FORMS[FORMS.index(form) + 1]
        log.warning("%s does not take %s (%s); sending %s", self.base_url, form, fault.message, self.structured)
        return True

    async def _request(self, call: Call, messages: list[dict[str, str]], form: str) -> Completion:
        import openai

        assert self._client is not None, "start the backend first"
        try:
            create: Any = self._client.chat.completions.create
            answer: Any = await create(
                model=self.model,
                messages=cast("Any", messages),
                seed=call.seed,
                **self._options(call, form),
            )
        except openai.APIStatusError as error:
            raise self._fault(error) from None
        except openai.APITimeoutError:
            raise ServerFault("timeout", "the server did not answer in time", is_retryable=True) from None
        except openai.APIConnectionError as error:
            reason = error.__cause__ or error
            message = self._without_key(f"no connection: {reason}")
            raise ServerFault("no_connection", message, is_retryable=True) from None
        except (openai.OpenAIError, ValueError, TypeError) as error:
            message = self._without_key(f"an answer that is not a completion: {error}")
            raise ServerFault("bad_answer", message, is_retryable=True) from None
        return self._completion(answer)

    def _options(self, call: Call, form: str) -> dict[str, Any]:
        """Sampling, and the schema in its form."""
        wanted = call.sampling.to_dict()
        extra = {**self._extra_body, **{name: wanted.pop(name) for name in ("top_k", "min_p") if name in wanted}}
        options: dict[str, Any] = {**wanted, "extra_body": extra}
        if call.schema is None or form == "none":
            return options
        if form == "json_object":
            return {**options, "response_format": {"type": "json_object"}}
        schema = call.schema if form == "json_schema" else _without_bounds(call.schema)
        named = {"name": "reply", "schema": schema, "strict": True}
        return {**options, "response_format": {"type": "json_schema", "json_schema": named}}

    def _completion(self, answer: Any) -> Completion:
        try:
            choice = answer.choices[0]
            text, reason, used = choice.message.content, choice.finish_reason, answer.usage
            if not isinstance(text, str):
                refusal = getattr(choice.message, "refusal", None)
                message = f"the model refused: {refusal}" if refusal else "an answer without text"
                raise ServerFault("no_text", message, is_retryable=not refusal)
            details = getattr(used, "prompt_tokens_details", None)
            cached = getattr(details, "cached_tokens", None) or 0
            usage = Usage(used.prompt_tokens, cached, used.completion_tokens, 1) if used else Usage(calls=1)
        except (AttributeError, IndexError, TypeError) as error:
            message = f"an answer that is not a completion: {error}"
            raise ServerFault("bad_answer", message, is_retryable=True) from None
        return Completion(text, reason or "stop", usage)

    def _fault(self, error: APIStatusError) -> ServerFault:
        body = cast("object", error.body)
        detail: object = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else None
        message = self._without_key(str(detail or error.message)[:500])
        if error.status_code in (401, 403):
            message += f" (the key is read from {self._api_key_env})"
        if 300 <= error.status_code < 400:
            message = "a redirect, which is not followed; give the final address as --base-url"
        return fault_of_status(error.status_code, message, error.response.headers.get("retry-after"))

    def _without_key(self, text: str) -> str:
        key = os.environ.get(self._api_key_env)
        return text.replace(key, "***") if key else text


def _without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its shape alone: what stricter servers take."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            pairs = cast("Mapping[str, Any]", value).items()
            return {key: plain(item) for key, item in pairs if key not in _BOUNDS or isinstance(item, Mapping)}
        return value

    return plain(schema)
