"""A chat server on the loopback interface that answers every schema, and misbehaves as it is told.

It speaks OpenAI's chat completions and Ollama's `/api/chat`. Its replies follow the schema in the request, so it can
stand in for a judge of any evaluator. Where log-probabilities are asked for, its tokens have those of `likely_after`,
and it goes on with a message of the assistant as vLLM's server does.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from debate.hashing import derive
from debate.runtime.loop_thread import LoopThread
from debate.testing.flows import write_value

_DRIP_SECONDS = 1.0
_REPLY_TOKENS = 20
"""What every reply counts; with fewer allowed it is cut off."""
_TOKEN = re.compile(r"\d|[^\W\d]+|\s+|.", re.DOTALL)
_VALUE_IS_DUE = re.compile(r"[:\[,]\s*$")


@dataclass(frozen=True)
class Request:
    """One request as it came. `n` counts from 1."""

    n: int
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def schema(self) -> dict[str, Any] | None:
        """The reply's schema, wherever it stands."""
        return self.body.get("format") or self.body.get("response_format", {}).get("json_schema", {}).get("schema")

    @property
    def max_tokens(self) -> int:
        """Most tokens that the reply may have."""
        options = {**self.body.get("options", {}), **self.body}
        given = (options.get(name) for name in ("max_completion_tokens", "max_tokens", "num_predict"))
        return next((n for n in given if n is not None), _REPLY_TOKENS)

    @property
    def may_think(self) -> bool:
        """Whether thinking was not switched off, in either protocol."""
        switches = {**self.body.get("chat_template_kwargs", {}), "think": self.body.get("think")}
        return all(switches.get(name) is not False for name in ("enable_thinking", "think"))

    @property
    def begun(self) -> str:
        """The reply's beginning, where the server is to go on with it."""
        return self.body["messages"][-1]["content"] if self.body.get("continue_final_message") else ""

    @property
    def text(self) -> str:
        """All messages."""
        return "\n".join(message["content"] for message in self.body["messages"])


@dataclass(frozen=True)
class Reply:
    """What the server does with a request.

    `send` answers, `hang` never does, `drip` sends a byte per second, `reset` closes the connection, and `die` the
    server's socket for good.
    """

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    action: Literal["send", "hang", "drip", "reset", "die"] = "send"


Behavior = Callable[[Request], Reply | None]
"""What happens to a request; None is a proper answer."""
HANG, DRIP, RESET, DIE = (Reply(action=action) for action in ("hang", "drip", "reset", "die"))


def properly(request: Request) -> Reply | None:
    """No misbehavior."""
    return None


def failing(status: int, message: str = "out of order", **headers: str) -> Reply:
    """An error as OpenAI words it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"error": {"message": message, "type": "error"}}, named)


def every(n: int, reply: Reply) -> Behavior:
    """Misbehave at every n-th request."""
    return lambda request: reply if request.n % n == 0 else None


def first(n: int, reply: Reply) -> Behavior:
    """Misbehave at the first n requests."""
    return lambda request: reply if request.n <= n else None


def from_the(n: int, reply: Reply) -> Behavior:
    """Misbehave from request n on."""
    return lambda request: reply if request.n >= n else None


def limited(n: int, seconds: float = 60.0) -> Behavior:
    """Refuse, with 429, what is more than n requests in any window of so many seconds."""
    taken: deque[float] = deque()

    def refuse_more(request: Request) -> Reply | None:
        now = time.monotonic()
        while taken and taken[0] <= now - seconds:
            taken.popleft()
        if len(taken) >= n:
            return failing(429, "rate limit reached", retry_after=f"{taken[0] + seconds - now:.3f}")
        taken.append(now)
        return None

    return refuse_more


def only(*forms: str) -> Behavior:
    """Refuse every `response_format` but these: json_schema, json_schema_plain, json_object, none."""
    return lambda request: None if form_of(request) in forms else failing(400, "response_format is not supported")


def form_of(request: Request) -> str:
    """The form that a schema came in."""
    kind = request.body.get("response_format", {}).get("type", "none")
    return "json_schema_plain" if kind == "json_schema" and '"pattern"' not in json.dumps(request.schema) else kind


def refusing(parameter: str) -> Behavior:
    """Refuse requests with a parameter, as OpenAI words it."""
    refusal = failing(400, f"Unrecognized request argument supplied: {parameter}")
    return lambda request: refusal if parameter in request.body else None


def judgment(schema: Mapping[str, Any]) -> str:
    """A reply under the schema; that of a debate is the same for all agents."""
    if "candidates" not in schema["properties"]:
        return json.dumps(write_value(schema))
    candidates = schema["properties"]["candidates"]["properties"]
    said = {
        label: {"comment": f"On {label}.", **_scores(shape["properties"], ord(label[0]))}
        for label, shape in candidates.items()
    }
    return json.dumps({"overall": "All in all.", "candidates": said})


def _scores(asked: Mapping[str, Any], shift: int) -> dict[str, Any]:
    """A candidate's scores by name, or as a list, or none, as the schema asks for them."""
    if "scores" not in asked:
        return {}
    if "properties" in asked["scores"]:
        return {"scores": {name: (len(name) + shift) % 11 for name in asked["scores"]["properties"]}}
    return {"scores": [(n + shift) % 11 for n in range(asked["scores"]["minItems"])]}


def completion(
    text: str | None,
    finish_reason: str = "stop",
    thought: str = "",
    field: str = "reasoning_content",
    **changes: object,
) -> dict[str, Any]:
    """The body of an OpenAI chat completion that says `text`, after a thought of a token a word, in this field."""
    message: dict[str, Any] = {"role": "assistant", "content": text, **({field: thought} if thought else {})}
    n_thought = len(thought.split())
    said = n_thought + (0 if thought and text is None else _REPLY_TOKENS)
    usage: dict[str, Any] = {"prompt_tokens": 100, "completion_tokens": said, "total_tokens": 100 + said}
    if thought:
        usage["completion_tokens_details"] = {"reasoning_tokens": n_thought}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    made = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return {**made, **changes}


def likely_after(said: str) -> dict[str, float]:
    """Probabilities of the next token once a reply has said this, likeliest first.

    Where a value of JSON is due, they are those of single digits and `null`; after the 1 of such a value, of the 0 that
    makes it a ten. Elsewhere it is a word.
    """
    if _VALUE_IS_DUE.search(said):
        tokens = [*"0123456789", "null", '"']
    elif _VALUE_IS_DUE.search(said.removesuffix("1")) and said.endswith("1"):
        tokens = [*"0,}"]
    else:
        return {"Well": 0.5, "So": 0.25}
    draw = random.Random(derive(said))
    drawn = {token: draw.random() ** 2 * (1.0 if token.isdigit() else 0.1) for token in tokens}
    total = sum(drawn.values())
    return {token: drawn[token] / total for token in sorted(tokens, key=drawn.__getitem__, reverse=True)}


def logprobs_of(begun: str, text: str, top: int) -> dict[str, Any]:
    """The `logprobs` of a text that goes on from `begun`."""
    said, content = begun, list[dict[str, Any]]()
    for token in _TOKEN.findall(text):
        likely = {**likely_after(said)}
        told = [_told(each, likely[each]) for each in likely][:top]
        content.append({**_told(token, likely.get(token, 0.01)), "top_logprobs": told})
        said += token
    return {"content": content}


def _told(token: str, probability: float) -> dict[str, Any]:
    return {"token": token, "bytes": [*token.encode()], "logprob": math.log(probability)}


class FakeServer:
    """The server, in a thread of its own while the `with` block lasts.

    Attributes:
        behavior: what happens to the next requests; may be set at any time.
        requests: those that came, in order.
        most_at_once: the most requests that were open at the same time.

    >>> with FakeServer(every(5, failing(503))) as server:
    ...     check_backend(OpenAICompatible("m", f"{server.url}/v1"))
    """

    def __init__(
        self,
        behavior: Behavior | None = None,
        *,
        logprobs: bool = True,
        thinking: str = "",
        thinking_field: str = "reasoning_content",
        delay: float = 0.0,
        port: int = 0,
    ) -> None:
        """A server that starts with the `with` block.

        Args:
            behavior: what happens to a request; None answers them all.
            logprobs: whether it gives log-probabilities to those who ask for them.
            thinking: what it thinks before a reply, unless it is told not to; each word counts as a token.
            thinking_field: the member of OpenAI's messages that says it.
            delay: seconds before each answer.
            port: 0 takes a free one.
        """
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.port = port
        self.behavior = behavior or properly
        self._logprobs = logprobs
        self._thinking = thinking
        self._thinking_field = thinking_field
        self._delay = delay
        self._at_once = 0
        self._schema: dict[str, Any] | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Its address, without `/v1`."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._loop = LoopThread("fake-server")
        self._loop.run(self._open())
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.run(self._die())
        self._loop.close()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _die(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while (request := await self._read(reader)) is not None:
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
                try:
                    await self._answer(request, writer)
                finally:
                    self._at_once -= 1
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(len(self.requests) + 1, head[0].split()[1], headers, json.loads(body or b"{}"))
        self.requests.append(request)
        self._schema = request.schema or self._schema
        return request

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        reply = self.behavior(request) or self._proper(request)
        if reply.action == "send":
            await asyncio.sleep(self._delay)
            writer.write(_bytes_of(reply))
            await writer.drain()
        elif reply.action == "hang":
            await asyncio.sleep(3600)
        elif reply.action == "drip":
            for byte in _bytes_of(self._proper(request)):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(_DRIP_SECONDS)
        elif reply.action == "die":
            await self._die()
        else:
            writer.transport.abort()

    def _proper(self, request: Request) -> Reply:
        text, reason = judgment(self._schema) if self._schema else "Hello.", "stop"
        words = self._thinking.split() if request.may_think and not request.begun else []
        thought = " ".join(words[: request.max_tokens])
        if request.begun:
            text, reason = next(iter(likely_after(request.begun))), "length"
        elif words and request.max_tokens <= len(words):
            text, reason = "", "length"
        elif request.max_tokens < len(words) + _REPLY_TOKENS:
            text, reason = text[: len(text) // 2], "length"
        if request.path == "/v1/chat/completions":
            answer = completion(text or None, reason, thought, self._thinking_field)
            if request.body.get("logprobs") and self._logprobs:
                answer["choices"][0]["logprobs"] = logprobs_of(request.begun, text, request.body["top_logprobs"])
            return Reply(body=answer)
        if request.path == "/api/chat":
            message = {"role": "assistant", "content": text, **({"thinking": thought} if thought else {})}
            counts = {"prompt_eval_count": 100, "eval_count": len(thought.split()) + _REPLY_TOKENS * bool(text)}
            return Reply(body={"model": "m", "message": message, "done": True, "done_reason": reason, **counts})
        return failing(404, "no such path")


def _bytes_of(reply: Reply) -> bytes:
    body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
