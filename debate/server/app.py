"""The HTTP application: evaluations as JSON, and x1's wire beside them. FastAPI is imported when it is made.

    POST /evaluate          a task -> its evaluation
    POST /evaluate/batch    several tasks -> their evaluations, as one JSON object or as JSON lines
    POST /forward           x1's wire, see `debate.server.forward`
    GET  /                  that the server runs
    GET  /openapi.json      the description of all this, and /docs the same as a page

What is wrong with a request is answered with 4xx and a sentence. A client that leaves cancels its evaluations.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from debate.config.settings import ServerLimits
from debate.errors import ConfigError, DebateError
from debate.evaluation import Evaluation
from debate.files import json_text
from debate.runtime.tracing import under_caller
from debate.server.access import Access
from debate.server.evaluations import Refused, Served
from debate.server.forward import Value, forward
from debate.server.openapi import docs_page, document
from debate.types import Task

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

T = TypeVar("T")
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
LINES = "application/x-ndjson"
_KINDS_OF_LINES = (LINES, "application/ndjson", "application/jsonl", "application/jsonlines")
_OPEN = ("/docs", "/openapi.json")
"""Nothing of these is secret, and a browser that opens a page sends no token."""
_CLOSE = {"connection": "close"}
"""For answers to a body that was not read to its end."""
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
_ENDING = "The server is ending."
_log = logging.getLogger("debate")


class _Unanswered(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, problem: str, *, closes: bool = False) -> None:
        super().__init__(problem)
        self.status = status
        self.headers = _CLOSE if closes else None


def create_app(
    value: Value | None = None,
    served: Served | None = None,
    *,
    token: str | None = None,
    host: str = "127.0.0.1",
    limits: ServerLimits | None = None,
    is_traced: bool = False,
) -> FastAPI:
    """The application. A client that leaves cancels its evaluations.

    Args:
        value: what values steps, for `/forward`; see `valued_by`. None leaves that address out.
        served: the evaluator of `/evaluate` and `/evaluate/batch`. None leaves these out.
        token: must come as `Authorization: Bearer TOKEN` with every request; None asks for none. The description of
            the addresses is shown without it.
        host: what the server listens on; see `Access`.
        limits: None takes the defaults.
        is_traced: whether the engine's spans stand under the span that a request names as its `traceparent`.

    Raises:
        ConfigError: when FastAPI is not installed.
    """
    try:
        from fastapi import FastAPI
        from starlette.exceptions import HTTPException
    except ImportError:
        hint = "pip install 'debate-eval[serve]'"
        raise ConfigError("FastAPI is not installed", field="serve", hint=hint) from None
    app, bounds = FastAPI(title="debate", docs_url=None, redoc_url=None, openapi_url=None), limits or ServerLimits()
    app.add_middleware(_Guarded, access=Access(host, token), is_traced=is_traced)
    for kind in (HTTPException, Refused, _Unanswered, DebateError):
        app.add_exception_handler(kind, _refusal)
    app.add_route("/", _status, methods=["GET"])
    if value is not None:
        app.add_route("/forward", _forwarding(value, bounds), methods=["POST"])
    if served is not None:
        app.add_route("/evaluate", _evaluating(served, bounds), methods=["POST"])
        app.add_route("/evaluate/batch", _evaluating_many(served, bounds), methods=["POST"])
    _add_description(app, document(forwards=value is not None, evaluates=served is not None))
    return app


# ---- addresses


async def _status(request: Request) -> Response:
    flags = {"allow_training": False, "stop_training_flag": False, "allow_inference": True}
    return _answer({"status": "running", **flags})


def _forwarding(value: Value, limits: ServerLimits) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        raw = await _body(request, limits)
        code, body = await _unless_gone(request, forward(_parsed(raw), value, limits))
        return _answer(body, code)

    return answer


def _evaluating(served: Served, limits: ServerLimits) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        task = served.task(await _body(request, limits), limits)
        evaluation = await _unless_gone(request, served.evaluate(task))
        return _answer(evaluation.to_json())

    return answer


def _evaluating_many(served: Served, limits: ServerLimits) -> Callable[[Request], Awaitable[Any]]:
    async def answer(request: Request) -> Any:
        are_lines = _media_type(request.headers.get("content-type", "")) in _KINDS_OF_LINES
        tasks = served.tasks(await _body(request, limits), limits, are_lines=are_lines)
        if any(_media_type(each) in _KINDS_OF_LINES for each in request.headers.get("accept", "").split(",")):
            return _Lines(served, tasks)
        evaluations = await _unless_gone(request, _all(served, tasks))
        return _answer(f'{{"evaluations":[{",".join(each.to_json() for each in evaluations)}]}}')

    return answer


def _add_description(app: FastAPI, described: dict[str, Any]) -> None:
    from starlette.responses import HTMLResponse

    page, policy = docs_page(described)

    async def as_json(request: Request) -> Response:
        return _answer(described)

    async def as_page(request: Request) -> Response:
        return HTMLResponse(page, headers={"content-security-policy": policy})

    app.add_route("/openapi.json", as_json, methods=["GET"])
    app.add_route("/docs", as_page, methods=["GET"])


async def _all(served: Served, tasks: Sequence[Task]) -> list[Evaluation]:
    return await asyncio.gather(*map(served.evaluate_one_of_many, tasks))


class _Lines:
    """An answer whose lines are sent as the evaluations finish. A client that leaves ends them."""

    def __init__(self, served: Served, tasks: Sequence[Task]) -> None:
        self._served = served
        self._tasks = tasks
        self._done: asyncio.Queue[tuple[int, Evaluation] | None] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, by ASGI."""
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", LINES.encode())]}
        work = [asyncio.ensure_future(self._one(n, task)) for n, task in enumerate(self._tasks)]
        leaving = asyncio.ensure_future(receive())
        leaving.add_done_callback(lambda _: self._done.put_nowait(None))
        try:
            await send(start)
            for _ in self._tasks:
                if (found := await self._done.get()) is None:
                    return
                line = f'{{"index":{found[0]},"evaluation":{found[1].to_json()}}}\n'
                await send({"type": "http.response.body", "body": line.encode(), "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            for each in (*work, leaving):
                each.cancel()

    async def _one(self, n: int, task: Task) -> None:
        self._done.put_nowait((n, await self._served.evaluate_one_of_many(task)))


# ---- what all of them share


class _Guarded:
    """Asks who is there before anything else, and puts the headers of every answer on it."""

    def __init__(self, app: Any, access: Access, is_traced: bool) -> None:
        self._app = app
        self._access = access
        self._is_traced = is_traced

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, by ASGI."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        from starlette.datastructures import Headers

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.encode(), text.encode()) for name, text in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        headers = Headers(scope=scope)
        refused = self._access.refusal(headers, asks_token=scope["path"] not in _OPEN)
        answer = self._app if refused is None else _answer(refused[1], refused[0], _challenge(refused[0]))
        with under_caller(headers) if self._is_traced else nullcontext():
            await answer(scope, receive, with_headers)


def _challenge(status: int) -> dict[str, str]:
    return {**_CLOSE, "www-authenticate": "Bearer"} if status == 401 else _CLOSE


async def _refusal(request: Request, error: Exception) -> Response:
    """What is said where there is no other answer."""
    if isinstance(error, Refused):
        return _answer(error.problem.model_dump(exclude_none=True), error.status)
    if isinstance(error, _Unanswered):
        return _answer({"error": str(error)}, error.status, error.headers)
    if isinstance(error, DebateError):
        _log.error("a request could not be answered: %s", error)
        return _answer({"error": "The task could not be evaluated; the server's log says why."}, 503)
    status = getattr(error, "status_code", 500)
    told = {404: f"There is nothing at {request.url.path}; /docs says what there is."}
    told[405] = f"{request.url.path} does not take {request.method}; /docs says what it takes."
    return _answer({"error": told.get(status, str(error))}, status, getattr(error, "headers", None))


def _answer(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON; a text is JSON already."""
    from starlette.responses import Response

    text = body if isinstance(body, str) else json_text(body)
    return Response(text, status, headers, media_type="application/json")


async def _body(request: Request, limits: ServerLimits) -> bytes:
    """The request's body. Raises `_Unanswered` for one that is too long, too slow or cut off."""
    from starlette.requests import ClientDisconnect

    raw = b""
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for piece in request.stream():
                raw += piece
                if len(raw) > limits.max_body:
                    raise _Unanswered(413, f"More than {limits.max_body} bytes", closes=True)
    except TimeoutError:
        problem = f"The body did not arrive within {limits.body_seconds:g} seconds"
        raise _Unanswered(408, problem, closes=True) from None
    except ClientDisconnect:
        raise _gone() from None
    return raw


async def _unless_gone(request: Request, work: Awaitable[T]) -> T:
    """What the work comes to, unless the client leaves or the server ends first, which cancels it."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise _gone()
        return working.result()
    except asyncio.CancelledError:
        raise _Unanswered(503, _ENDING) from None
    finally:
        working.cancel()
        leaving.cancel()


def _gone() -> _Unanswered:
    """Sent to nobody."""
    return _Unanswered(499, "The client has left.", closes=True)


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
