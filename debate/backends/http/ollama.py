"""Ollama over its native chat API, with `format` as the reply's schema (seed 002 reaches its judge this way).

The context window is set on every request: left alone, Ollama cuts a longer prompt from the front without a word, and a
judge would score what it has not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from debate.backends.base import Call
from debate.backends.http.client import HTTPBackend, count
from debate.errors import ConfigError
from debate.flow import Completion
from debate.net.retry import RetryPolicy, TransportError, error_from_status
from debate.types import Usage

if TYPE_CHECKING:
    import httpx2


class Ollama(HTTPBackend):
    """A model that an Ollama server runs.

    >>> Ollama("llama3.1:8b", context_length=16384)

    Args:
        model: as `ollama list` names it.
        base_url: of the server, without `/api`.
        context_length: tokens of prompt and reply together (`num_ctx`); a prompt that does not fit fails its call.
        slots: most requests under way at once; Ollama itself works on OLLAMA_NUM_PARALLEL.
        retry_policy: timeouts, attempts and the circuit breaker.
    """

    def __init__(
        self,
        model: str,
        base_url: str = "http://localhost:11434",
        *,
        context_length: int = 16384,
        slots: int = 8,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        super().__init__(model, base_url.rstrip("/").removesuffix("/api"), slots=slots, retry_policy=retry_policy)
        if context_length < 1:
            raise ConfigError(f"must be at least 1, got {context_length}", field="context_length")
        self._context_length = context_length
        self._client: httpx2.AsyncClient | None = None

    async def start(self) -> None:
        """Make the client; nothing is sent."""
        if self._client is None:
            import httpx2

            self._begin()
            limits = httpx2.Limits(max_connections=self.capacity.slots)
            self._client = httpx2.AsyncClient(timeout=self.retry_policy.timeout, limits=limits, follow_redirects=False)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        import httpx2

        assert self._client is not None, "start the backend first"
        try:
            response = await self._client.post(f"{self.base_url}/api/chat", json=self._body(call, messages))
        except httpx2.TimeoutException:
            raise TransportError("timeout", "the server did not answer in time", is_retryable=True) from None
        except httpx2.HTTPError as error:
            message = f"no connection: {error or type(error).__name__}"
            raise TransportError("no_connection", message, is_retryable=True) from None
        data = _json(response)
        if response.status_code != 200:
            message = str(data.get("error", response.reason_phrase))[:500]
            if response.status_code == 404:
                message += f" (`ollama pull {self.model}` fetches it)"
            raise error_from_status(response.status_code, message, response.headers.get("retry-after"))
        return self._completion(data)

    def _body(self, call: Call, messages: list[dict[str, str]]) -> dict[str, Any]:
        options = {"seed": call.seed, "num_ctx": self._context_length, **call.sampling.to_dict()}
        if "max_tokens" in options:
            options["num_predict"] = options.pop("max_tokens")
        body: dict[str, Any] = {"model": self.model, "messages": messages, "stream": False, "options": options}
        return body if call.schema is None else {**body, "format": call.schema}

    def _completion(self, data: dict[str, Any]) -> Completion:
        message: Any = data.get("message")
        text = cast("dict[str, Any]", message).get("content") if isinstance(message, dict) else None
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
        return Completion(text, reason, Usage(prompt_tokens, 0, completion_tokens, 1))


def _json(response: httpx2.Response) -> dict[str, Any]:
    """The body as an object; a fault that may pass when it is none."""
    try:
        data: Any = response.json()
    except ValueError:
        data = None
    if isinstance(data, dict):
        return cast("dict[str, Any]", data)
    if response.status_code != 200:
        return {}
    raise TransportError("bad_answer", "an answer that is no JSON object", is_retryable=True)
