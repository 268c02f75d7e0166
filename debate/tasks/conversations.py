"""Conversations as texts: chat messages become a transcript in which no message can pass for another.

    System:                       Assistant, call 1:
    Be brief.                     weather({"city": "Canberra"})

    User (anna):                  Tool, result of call 1:
    How warm is it there?         {"celsius": 21}

Every message stands under its role, a call of a tool and its result under headings of their own. What looks like such a
heading inside a message is broken by a middle dot, as in `U·ser:`: a line that is a heading but for case, spaces, marks
or look-alike letters, and a line that begins with one and a capital letter, as in `User: thanks`. Knows no templates:
their delimiters, and control tokens, are broken where a prompt is rendered, as in every text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeGuard, cast

from debate.errors import TaskError
from debate.tasks.lookalikes import DOT, FOLD, places_of

Message = Mapping[str, Any]
"""A chat message: `role`, `content`, and perhaps `name`, `tool_calls` and `tool_call_id`."""

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal")
_NOT_SHOWN = {"reasoning_content", "reasoning", "annotations", "id", "index"}
"""Keys of servers' messages that are left out: what a model thought is not what it said."""
_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_NAME = re.compile(r"\w(?:[\w .@+-]{0,62}\w)?")
_TOOL = re.compile(r"[^\s()]{1,200}")
_FORM = 'a message is {"role": "user", "content": "..."}'


# ---- what is a message


def is_conversation(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether something is meant for messages and no text: a list of them."""
    return isinstance(given, list | tuple)


def checked_messages(given: object, where: str) -> tuple[Message, ...]:
    """Messages as plain data of their own: contents as one text, calls in the form of OpenAI's chat API.

    where: the field that holds them, for errors.

    Raises:
        TaskError: for what is no conversation of texts; names the field.
    """
    if not is_conversation(given):
        raise TaskError(f"must be a list of messages, got {type(given).__name__}", field=where, hint=_FORM)
    if not given:
        raise TaskError("is empty: a conversation has at least one message", field=where, hint=_FORM)
    return tuple(checked_message(each, f"{where}.{n}") for n, each in enumerate(given))


def checked_message(given: object, where: str) -> Message:
    """One message; as `checked_messages`."""
    if not isinstance(given, Mapping):
        raise TaskError(f"must be a message, got {type(given).__name__}", field=where, hint=_FORM)
    said = {str(key): value for key, value in cast("Mapping[Any, Any]", given).items() if value not in (None, [])}
    for key in said:
        if key not in _KEYS and key not in _NOT_SHOWN:
            hint = f"a message has {', '.join(_KEYS[:5])}; take out what the judges shall not see"
            raise TaskError("cannot be shown to a judge", field=_in(where, key), hint=hint)
    role = said.get("role")
    if role not in ROLES:
        problem = "is missing" if role is None else f"must be one of {', '.join(ROLES)}, got {role!r:.60}"
        raise TaskError(problem, field=_in(where, "role"), hint=_FORM)
    calls = list(_calls(said, role, where))
    found = {"role": role, "content": _content(said, where, may_lack=bool(calls)), "tool_calls": calls}
    if "name" in said:
        found["name"] = _one_line(said["name"], _NAME, _in(where, "name"))
    if "tool_call_id" in said:
        found["tool_call_id"] = _text(said["tool_call_id"], _in(where, "tool_call_id"))
    return {key: value for key, value in found.items() if value not in (None, [])}


def _in(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise TaskError(f"must be a string, got {type(value).__name__}", field=where)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        problem = f"is not valid Unicode: lone surrogate at character {error.start}"
        hint = "the text was cut inside a character; repair or drop that character"
        raise TaskError(problem, field=where, hint=hint) from None
    return str(value)


def _one_line(value: object, pattern: re.Pattern[str], where: str) -> str:
    if pattern.fullmatch(text := _text(value, where)):
        return text
    raise TaskError(f"must be a plain name, got {text!r:.60}", field=where)


def _content(said: Mapping[str, Any], where: str, *, may_lack: bool) -> str | None:
    field = _in(where, "content")
    if "content" in said and isinstance(said["content"], list | tuple):
        parts = cast("Sequence[object]", said["content"])
        return "\n".join(_part(part, f"{field}.{n}") for n, part in enumerate(parts))
    if "content" in said:
        return _text(said["content"], field)
    if "refusal" in said:
        return _text(said["refusal"], _in(where, "refusal"))
    if not may_lack:
        raise TaskError("is missing", field=field, hint=_FORM)
    return None


def _part(given: object, where: str) -> str:
    if isinstance(given, str):
        return _text(given, where)
    if not isinstance(given, Mapping):
        raise TaskError(f"must be text or a part of a content, got {type(given).__name__}", field=where)
    part = cast("Mapping[str, Any]", given)
    kind = part.get("type", "text" if "text" in part else None)
    if kind not in _TEXT_PARTS:
        hint = "judges read text alone: put what it shows into words, or take the part out"
        raise TaskError(f"is of the type {kind!r:.60}, and cannot be shown as text", field=where, hint=hint)
    return _text(part.get(_TEXT_PARTS[kind]), _in(where, _TEXT_PARTS[kind]))


def _calls(said: Mapping[str, Any], role: str, where: str) -> Iterator[dict[str, Any]]:
    field = _in(where, "tool_calls")
    given = said.get("tool_calls", [])
    if not isinstance(given, list | tuple):
        raise TaskError(f"must be a list of calls, got {type(given).__name__}", field=field)
    calls = [(each, f"{field}.{n}") for n, each in enumerate(cast("Sequence[object]", given))]
    if "function_call" in said:  # as it was before there were tools
        calls.append((said["function_call"], _in(where, "function_call")))
    if calls and role != "assistant":
        raise TaskError(f"the {role} calls no tools, the assistant does", field=calls[0][1])
    for each, place in calls:
        yield _call(each, place)


def _call(given: object, where: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise TaskError(f"must be a call, got {type(given).__name__}", field=where)
    call = cast("Mapping[str, Any]", given)
    kind = call.get("type", "function")
    if kind != "function":
        raise TaskError(f"is of the type {kind!r:.60}; calls of functions can be shown", field=where)
    is_inside = isinstance(call.get("function"), Mapping)
    function = cast("Mapping[str, Any]", call["function"]) if is_inside else call
    inner = _in(where, "function") if is_inside else where
    if function.get("name") is None:
        raise TaskError("is missing", field=_in(inner, "name"))
    named = {
        "name": _one_line(function["name"], _TOOL, _in(inner, "name")),
        "arguments": _arguments(function.get("arguments"), _in(inner, "arguments")),
    }
    own = {} if call.get("id") is None else {"id": _text(call["id"], _in(where, "id"))}
    return {**own, "type": "function", "function": named}


def _arguments(given: object, where: str) -> str:
    """The arguments as JSON; a text is taken as it is, for a model may have written what is none."""
    if given is None or isinstance(given, str):
        return _text(given or "", where)
    try:
        return _text(json.dumps(given, ensure_ascii=False, allow_nan=False), where)
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(f"cannot be written as JSON: {error}", field=where) from None


# ---- the transcript


def transcript(messages: Sequence[Message], alone: Literal["user", "assistant"]) -> str:
    """Checked messages as one text.

    alone: whose single message without a name or calls stands as it is, without a heading.
    """
    first = messages[0]
    if len(messages) == 1 and set(first) == {"role", "content"} and first["role"] == alone:
        return without_headings(first["content"])
    return "\n\n".join(f"{heading}:\n{without_headings(text)}" for heading, text in _blocks(messages))


def _blocks(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """Headings, without their colons, and what stands under them."""
    numbers: dict[str, int] = {}
    n_calls = 0
    for message in messages:
        calls = cast("list[dict[str, Any]]", message.get("tool_calls", []))
        if "content" in message and not (calls and not message["content"].strip()):
            yield _heading(message, numbers), message["content"]
        for call in calls:
            n_calls += 1
            numbers[call.get("id", "")] = n_calls
            yield f"Assistant, call {n_calls}", f"{call['function']['name']}({call['function']['arguments']})"


def _heading(message: Message, numbers: Mapping[str, int]) -> str:
    role = message["role"]
    named = f" ({message['name']})" if "name" in message else ""
    if role not in ("tool", "function"):
        return role.capitalize() + named
    number = numbers.get(message.get("tool_call_id") or "-")
    return f"Tool{named}, result" + (f" of call {number}" if number else "")


_SPACE = r"[ *_]*"
_LIKE_HEADING = re.compile(
    rf"^[ *_#>]*(?P<role>{'|'.join(ROLES)}){_SPACE}(?:\([^()\n]*\){_SPACE})?"
    rf"(?:, *(?:call|result|turn)\b[^:\n]{{0,40}})?[:∶꞉ː](?P<rest>[^\n]*)$",
    re.MULTILINE,
)
"""A line of folded text that is a heading, or begins with one."""


def without_headings(text: str) -> str:
    """The text, with what looks like a heading of a transcript broken."""
    found = list(_LIKE_HEADING.finditer(text.translate(FOLD)))
    if not found:
        return text
    places = places_of(text)
    starts = [(places[each.start("role")], each["rest"].strip(" *_")) for each in found]
    dotted = [start + 1 for start, rest in starts if not (rest and text[start].islower())]
    return DOT.join(text[a:b] for a, b in zip([0, *dotted], [*dotted, None], strict=True))
