"""x1's `POST /forward`: what comes in, what goes out, and what is refused. Knows nothing of HTTP or evaluators.

    {"messages": [{"role": "user", "content": TASK}, {"role": "intermediate_step", "content": STEP}, ...]}
    -> 200 {"result": [VALUE]}

A list of such lists has one value each. Values lie in -1..1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

Said = Mapping[str, str]
Answer = tuple[int, dict[str, Any]]
"""HTTP status and JSON body."""
Value = Callable[[Sequence[Sequence[Said]]], Awaitable[Sequence[float]]]
"""The values of some conversations, each a task and its steps; raises `Unvalued` where one has none."""

_NO_LIST = "Invalid input, input messages is not a list."
_NO_DICTIONARIES = "Invalid input, input messages is not a list of dictionaries with keys 'role' and 'content'."


class Unvalued(Exception):
    """A conversation that could not be valued, and why."""


async def forward(body: object, value: Value) -> Answer:
    """Answer one request, in the words of x1's own server where it is refused."""
    messages: object = cast("dict[str, Any]", body).get("messages") if isinstance(body, dict) else None
    if not messages:
        return 400, {"error": "Invalid input"}
    if not isinstance(messages, list):
        return 400, {"error": _NO_LIST}
    items = cast("list[object]", messages)
    conversations = items if all(isinstance(item, list) for item in items) else [items]
    if not all(_is_conversation(each) for each in conversations):
        return 400, {"error": _NO_DICTIONARIES}
    checked = cast("list[list[Said]]", conversations)
    for each in checked:
        if len(each) < 2 or each[0]["role"] != "user":
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
