"""A value model served over HTTP, in the wire format of x1's value server (seed 002).

    POST URL/forward  {"messages": [{"role": "user", "content": TASK},
                                    {"role": "intermediate_step", "content": STEP}, ...,
                                    {"role": "intermediate_step" or "last_step", "content": STEP}]}
                  ->  {"result": [VALUE]}

and with a list of such lists under "messages", one value each. A reply is the value, written as JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from debate.backends.base import Call
from debate.backends.http.client import HTTPBackend
from debate.concurrency.micro_batch import MicroBatcher
from debate.errors import ConfigError, TaskError
from debate.flow import Completion
from debate.net.retry import RetryPolicy, TransportError, error_from_status
from debate.types import Usage

if TYPE_CHECKING:
    import httpx2

Wire = list[dict[str, str]]


def wire_messages(memory: Sequence[str], step: str, is_final: bool) -> Wire:
    """The messages that ask for the value of a step after `memory`: the task, then the steps before.

    Raises:
        TaskError: when there is no task in memory, or no step.
    """
    if not memory:
        raise TaskError("is empty: its first item is the task", field="memory")
    if not isinstance(step, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TaskError(f"must be a string, got {type(step).__name__}", field="step")
    said = [("user", memory[0]), *(("intermediate_step", text) for text in memory[1:])]
    said.append(("last_step" if is_final else "intermediate_step", step))
    return [{"role": role, "content": text} for role, text in said]


class ValueServer(HTTPBackend):
    """A value model behind x1's wire format.

    >>> ValueServer("http://localhost:12555")

    Args:
        base_url: of the server, without `/forward`.
        model: what calls and records name it.
        batch_size: most steps in one request; 1 sends the form for one.
        slots: most steps under way at once.
        retry_policy: timeouts, attempts and the circuit breaker.
        transport: of the HTTP client, for tests and proxies of your own.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str = "value",
        batch_size: int = 16,
        slots: int = 64,
        retry_policy: RetryPolicy | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(model, base_url.rstrip("/").removesuffix("/forward"), slots=slots, retry_policy=retry_policy)
        if batch_size < 1:
            raise ConfigError(f"must be at least 1, got {batch_size}", field="batch_size")
        self._batch_size = batch_size
        self._transport = transport
        self._client: httpx2.AsyncClient | None = None
        self._batcher: MicroBatcher[Wire, float] | None = None

    async def start(self) -> None:
        """Make the client; nothing is sent."""
        if self._client is None:
            import httpx2

            self._begin()
            self._client = httpx2.AsyncClient(
                timeout=self.retry_policy.timeout, follow_redirects=False, transport=self._transport
            )
            self._batcher = MicroBatcher(self._post, size=self._batch_size, seconds=0.005, at_once=self.capacity.slots)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def generate(self, call: Call) -> Completion:
        """Ask for a value, again where that may help; its roles are kept as they are.

        Raises:
            CallError, BackendUnavailableError: see `Retrier.call`.
        """
        async with self._room:
            return await self.persistence.call(lambda: self._ask(call, call.messages))

    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        assert self._batcher is not None, "start the backend first"
        value = await self._batcher.ask(messages)
        return Completion(json.dumps(value), usage=Usage(calls=1))

    async def _post(self, batch: list[Wire]) -> list[float]:
        import httpx2

        assert self._client is not None
        # As x1's own client writes it, to the byte.
        body = json.dumps({"messages": batch[0] if len(batch) == 1 else batch})
        headers = {"Content-Type": "application/json"}
        try:
            response = await self._client.post(f"{self.base_url}/forward", content=body, headers=headers)
        except httpx2.TimeoutException:
            raise TransportError("timeout", "the server did not answer in time", is_retryable=True) from None
        except httpx2.HTTPError as error:
            message = f"no connection: {error or type(error).__name__}"
            raise TransportError("no_connection", message, is_retryable=True) from None
        if response.status_code != 200:
            raise error_from_status(response.status_code, response.text[:500], response.headers.get("retry-after"))
        return _values(response, len(batch))


def _values(response: httpx2.Response, n: int) -> list[float]:
    try:
        data: Any = response.json()
    except ValueError:
        data = None
    result: Any = cast("dict[str, Any]", data).get("result") if isinstance(data, dict) else None
    values = cast("list[Any]", result) if isinstance(result, list) else []
    if len(values) != n or not all(_is_number(value) for value in values):
        raise TransportError("bad_answer", f"an answer without a `result` of {n} numbers", is_retryable=True)
    return [float(value) for value in values]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
