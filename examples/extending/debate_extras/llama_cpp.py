"""A backend: llama.cpp's own `POST /completion`.

The base class sees to slots, timeouts, retries, keys and special tokens in content; what is left is the body of a
request and how its answer is read.
"""

from __future__ import annotations

from typing import Any

from debate.backends import Call, RetryPolicy
from debate.backends.http.client import HTTPBackend, count, mapping
from debate.flow import Completion
from debate.net.retry import TransportError
from debate.types import Usage


class LlamaCpp(HTTPBackend):
    """A model behind llama.cpp's server, prompted without a chat template.

    >>> LlamaCpp("my-model", "http://localhost:8080")
    """

    def __init__(
        self,
        model: str = "llama.cpp",
        base_url: str = "http://localhost:8080",
        *,
        slots: int = 4,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        super().__init__(model, base_url, "/completion", slots=slots, retry_policy=retry_policy)

    async def _ask(self, call: Call, messages: list[dict[str, str]]) -> Completion:
        prompt = "\n\n".join(f"### {message['role']}\n{message['content']}" for message in messages)
        body: dict[str, Any] = {"prompt": f"{prompt}\n\n### assistant\n", "seed": call.seed % 2**31}
        sampling = call.sampling.to_dict()
        if "max_tokens" in sampling:
            body["n_predict"] = sampling.pop("max_tokens")
        if call.schema is not None:
            body["json_schema"] = call.schema
        return self._completion(mapping(await self._post(call, {**body, **sampling})))

    def _completion(self, data: dict[str, Any]) -> Completion:
        text = data.get("content")
        if not isinstance(text, str):
            raise TransportError("bad_answer", "an answer without content", is_retryable=True)
        reason = "length" if data.get("stop_type") == "limit" else "stop"
        usage = Usage(count(data.get("tokens_evaluated")), 0, count(data.get("tokens_predicted")), 1)
        return Completion(text, reason, usage)
