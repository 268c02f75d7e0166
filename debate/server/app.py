"""The HTTP application: an evaluator behind x1's `POST /forward`. FastAPI is imported when it is made.

    {"messages": [{"role": "user", "content": TASK}, {"role": "intermediate_step", "content": STEP}, ...]}
    -> 200 {"result": [VALUE]}

A list of such lists has one value each. Values lie in -1..1.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from debate.engine import Engine
from debate.errors import ConfigError, TaskError
from debate.evaluators.base import Evaluator
from debate.types import Candidate, Task

if TYPE_CHECKING:
    from fastapi import FastAPI

MAX_BODY = 8 * 1024 * 1024
Said = Mapping[str, str]
Answer = tuple[int, dict[str, Any]]
"""HTTP status and JSON body."""
Value = Callable[[Sequence[Sequence[Said]]], Awaitable[Sequence[float]]]
"""The values of some conversations, each a task and its steps; raises `Unvalued` where one has none."""

_NO_DICTIONARIES = "Invalid input, input messages is not a list of dictionaries with keys 'role' and 'content'."


class Unvalued(Exception):
    """A conversation that could not be valued, and why."""


def valued_by(engine: Engine, evaluator: Evaluator) -> Value:
    """Values in -1..1 from the evaluator's scores of the last step, the steps before it as the task's context."""

    async def value(conversations: Sequence[Sequence[Said]]) -> list[float]:
        try:
            tasks = [_task(said, n) for n, said in enumerate(conversations)]
        except TaskError as error:
            raise Unvalued(str(error)) from None
        evaluations = await engine.aevaluate_batch(tasks, evaluator)
        values: list[float] = []
        for evaluation in evaluations:
            score = float(evaluation.scores[0])
            if score != score:
                raise Unvalued(evaluation.error or "the step could not be scored")
            values.append(2.0 * evaluation.scale.to_unit(score) - 1.0)
        return values

    return value


def create_app(value: Value, *, token: str | None = None) -> FastAPI:
    """The application.

    Args:
        value: what values steps; see `valued_by`.
        token: must come as `Authorization: Bearer TOKEN` with every request; None asks for none.

    Raises:
        ConfigError: when FastAPI is not installed.
    """
    try:
        from fastapi import FastAPI, Request
        from fastapi.responses import JSONResponse
    except ImportError:
        hint = "pip install 'debate-eval[serve]'"
        raise ConfigError("FastAPI is not installed", field="serve", hint=hint) from None
    app = FastAPI(title="debate", docs_url=None, redoc_url=None, openapi_url=None)

    def is_allowed(request: Request) -> bool:
        given = request.headers.get("authorization", "")
        return token is None or secrets.compare_digest(given.encode(), f"Bearer {token}".encode())

    async def status(request: Request) -> JSONResponse:
        if not is_allowed(request):
            return JSONResponse({"error": "Unauthorized"}, 401)
        flags = {"allow_training": False, "stop_training_flag": False, "allow_inference": True}
        return JSONResponse({"status": "running", **flags})

    async def answer(request: Request) -> JSONResponse:
        if not is_allowed(request):
            return JSONResponse({"error": "Unauthorized"}, 401)
        raw = b""
        async for piece in request.stream():
            raw += piece
            if len(raw) > MAX_BODY:
                return JSONResponse({"error": f"More than {MAX_BODY} bytes"}, 413)
        code, body = await forward(_parsed(raw), value)
        return JSONResponse(body, code)

    app.add_route("/", status, methods=["GET"])
    app.add_route("/forward", answer, methods=["POST"])
    return app


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _task(said: Sequence[Said], n: int) -> Task:
    step = Candidate(said[-1]["content"], metadata={"final": said[-1]["role"] == "last_step"})
    task = Task(said[0]["content"], [step], context=[each["content"] for each in said[1:-1]])
    return Task(task.x, task.candidates, f"{task.id}.{n}", task.context)


async def forward(body: object, value: Value) -> Answer:
    """Answer one request, in the words of x1's own server where it is refused."""
    messages: object = cast("dict[str, Any]", body).get("messages") if isinstance(body, dict) else None
    if not messages:
        return 400, {"error": "Invalid input"}
    if not isinstance(messages, list):
        return 400, {"error": "Invalid input, input messages is not a list."}
    items = cast("list[object]", messages)
    conversations = items if all(isinstance(item, list) for item in items) else [items]
    if not all(_is_conversation(each) for each in conversations):
        return 400, {"error": _NO_DICTIONARIES}
    checked = cast("list[list[Said]]", conversations)
    if any(len(each) < 2 or each[0]["role"] != "user" for each in checked):
        return 400, {"error": "Invalid input, a task of the role 'user' and at least one step are needed."}
    try:
        return 200, {"result": list(await value(checked))}
    except Unvalued as error:
        return 503, {"error": str(error)}


def _is_conversation(item: object) -> bool:
    said = cast("list[Any]", item)
    return isinstance(item, list) and all(
        isinstance(each, dict)
        and all(isinstance(cast("dict[str, Any]", each).get(key), str) for key in ("role", "content"))
        for each in said
    )
