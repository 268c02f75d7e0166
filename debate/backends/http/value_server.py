"""A value model served over HTTP, in the wire format of x1's value server.

    POST URL/forward  {"messages": [{"role": "user", "content": TASK},
                                    {"role": "intermediate_step", "content": STEP}, ...,
                                    {"role": "intermediate_step" or "last_step", "content": STEP}]}
                  ->  {"result": [VALUE]}

and with a list of such lists under "messages", one value each. A reply is the value, written as JSON.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, cast

from debate.backends.base import Call
from debate.backends.http.client import HTTPBackend, mapping
from debate.concurrency.micro_batch import MicroBatcher
from debate.errors import ConfigError
from debate.flow import Completion, Prompt
from debate.net.retry import RetryPolicy, TransportError
from debate.types import Usage

if TYPE_CHECKING:
    import httpx2

Wire = list[dict[str, str]]


class ValueServer(HTTPBackend):
    """A value model behind x1's wire format.

    >>> ValueServer("http://localhost:12555")

    Args:
        base_url: of the server, without `/forward`.
        model: what calls and records name it.
        batch_size: most steps in one request; 1 sends the form for one.
        slots: most steps under way at once.
        retry_policy: time-outs, attempts and the circuit breaker.
        api_key_env: the environment variable that holds the server's token, where it wants one.
        transport: of the HTTP client, for tests and proxies of your own.
    """

    is_chat = False

    def __init__(
        self,
        base_url: str,
        *,
        model: str = "value",
        batch_size: int = 16,
        slots: int = 64,
        retry_policy: RetryPolicy | None = None,
        api_key_env: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(
            model,
            base_url.rstrip("/").removesuffix("/forward"),
            "/forward",
            slots=slots,
            retry_policy=retry_policy,
            api_key_env=api_key_env,
            transport=transport,
        )
        if batch_size < 1:
            raise ConfigError(f"must be at least 1, got {batch_size}", field="batch_size")
        self._batcher = MicroBatcher(self._values, size=batch_size, seconds=0.005, at_once=slots)

    def _messages(self, prompt: Prompt) -> tuple[list[dict[str, str]], int]:
        return prompt.messages(), 0  # with its own roles, and nothing escaped

    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        return Completion(json.dumps(await self._batcher.ask(messages)), usage=Usage(calls=1))

    async def _values(self, batch: list[Wire]) -> list[float]:
        # As x1's own client writes it, to the byte.
        body = json.dumps({"messages": batch[0] if len(batch) == 1 else batch}).encode()
        result = mapping(await self._client.post(self._path, body)).get("result")
        values = cast("list[Any]", result) if isinstance(result, list) else []
        if len(values) != len(batch) or not all(_is_number(value) for value in values):
            message = f"an answer without a `result` of {len(batch)} numbers"
            raise TransportError("bad_answer", message, is_retryable=True)
        return [float(value) for value in values]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
