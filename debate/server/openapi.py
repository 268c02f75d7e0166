"""The description of the server's addresses: an OpenAPI document, and the same as a page without a script."""

from __future__ import annotations

import ast
import base64
import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any, cast

from pydantic import TypeAdapter

from debate import evaluation, types
from debate.dataset.native_jsonl import NativeTask
from debate.evaluation import Evaluation
from debate.registry import version_of
from debate.server.evaluations import Batch, BatchAnswer, BatchLine, Problem

_TASK = {"x": "What is 2 + 2?", "candidates": ["4", "5"], "reference": "4"}
_IN_PYTHON = re.compile(r"\b(NaN|None)\b")
"""What is null in JSON."""
_NAMES = {"NativeTask": "Task", "NativeCandidate": "Candidate"}
"""Names of models, as the document has them."""
_GIVEN = ("Task", "Candidate", "Batch")
"""The models of requests, of which some fields must be given."""
_STATUSES = {
    "401": "The token is missing, or is another one.",
    "403": "The request names another Host, or comes from a page of another Origin.",
    "408": "The body came too slowly.",
    "413": "The body, the tasks or one of them are more than the server takes.",
    "422": "The body is no JSON, or no task; `field` says where.",
    "503": "The task cannot be evaluated, since the model is gone or the server ends.",
}
_FAILURES = "A task that fails has an evaluation too, with the status `failed` and the reason."
_LINES = (
    "With `Accept: application/x-ndjson` each evaluation is a line of its own, sent when it is finished: one task that "
    "takes long holds up no other. With `Content-Type: application/x-ndjson` the body is a file of tasks as it is."
)


def document(*, forwards: bool = True, evaluates: bool = True) -> dict[str, Any]:
    """The OpenAPI document, made of the models that requests and answers are checked and written by.

    Args:
        forwards: whether there is `/forward`.
        evaluates: whether there are `/evaluate` and `/evaluate/batch`.
    """
    paths = {"/": {"get": {"summary": "Whether the server runs.", "responses": {"200": {"description": "It does."}}}}}
    if evaluates:
        paths |= {"/evaluate": {"post": _one()}, "/evaluate/batch": {"post": _several()}}
    if forwards:
        paths |= {"/forward": {"post": _forward()}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "debate",
            "version": version_of("debate-eval") or "unknown",
            "description": (
                "Evaluates candidate responses. Scores that are missing are null, never a made-up number. Shapes of "
                "arrays are told by rounds R, agents I, candidates J and components K, all counted from 0."
            ),
        },
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Where the server was given a token."}
            },
            "schemas": _schemas(),
        },
    }


def _one() -> dict[str, Any]:
    return {
        "summary": "Evaluate the candidates of one task.",
        "description": f"{_FAILURES} A client that leaves cancels the calls of its tasks.",
        "requestBody": {"required": True, "content": _content("Task", _TASK)},
        "responses": {"200": {"description": "The evaluation.", "content": _content("Evaluation")}, **_refusals()},
    }


def _several() -> dict[str, Any]:
    answers = _content("BatchAnswer") | {"application/x-ndjson": {"schema": _reference("BatchLine")}}
    bodies = _content("Batch", {"tasks": [_TASK]}) | {"application/x-ndjson": {"schema": _reference("Task")}}
    return {
        "summary": "Evaluate several tasks side by side.",
        "description": f"{_FAILURES} {_LINES}",
        "requestBody": {"required": True, "content": bodies},
        "responses": {"200": {"description": "An evaluation for each task.", "content": answers}, **_refusals()},
    }


def _forward() -> dict[str, Any]:
    message = {"type": "object", "properties": {"role": {"type": "string"}, "content": {"type": "string"}}}
    said = {"type": "array", "items": {**message, "required": ["role", "content"]}}
    body = {"type": "object", "required": ["messages"], "properties": {"messages": {"anyOf": [said, _list_of(said)]}}}
    values = {"type": "object", "properties": {"result": _list_of({"type": "number"})}}
    example = [{"role": "user", "content": "2 + 2?"}, {"role": "last_step", "content": "4"}]
    refusals = {code: about for code, about in _refusals().items() if code != "422"}
    return {
        "summary": "Value the last step of conversations, from -1 to 1: x1's wire.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": body, "example": {"messages": example}}},
        },
        "responses": {
            "200": {"description": "A value for each.", "content": {"application/json": {"schema": values}}},
            "400": _refusal("The body is no conversation."),
            **refusals,
        },
    }


def _list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _content(name: str, example: Any = None) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(name), **({} if example is None else {"example": example})}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _refusals() -> dict[str, Any]:
    return {code: _refusal(about) for code, about in _STATUSES.items()}


def _refusal(about: str) -> dict[str, Any]:
    return {"description": about, "content": _content("Problem")}


# ---- schemas


@cache
def _schemas() -> dict[str, Any]:
    """The schemas of all models by name, with the descriptions that stand in their classes."""
    given = [(kind, "validation", TypeAdapter[Any](kind)) for kind in (NativeTask, Batch)]
    made = [(kind, "serialization", TypeAdapter[Any](kind)) for kind in (Evaluation, BatchAnswer, BatchLine, Problem)]
    template = "#/components/schemas/{model}"
    _, found = TypeAdapter.json_schemas(cast("Any", [*given, *made]), ref_template=template)
    schemas: dict[str, Any] = _renamed(found["$defs"])
    texts = dict(_attribute_docs())
    for name, schema in schemas.items():
        _describe(schema, {} if name in _NAMES.values() else texts.get(name, {}))
    return dict(sorted(schemas.items()))


def _renamed(value: Any) -> Any:
    """The same with the names that the document has for models."""
    match value:
        case dict():
            entries = cast("dict[str, Any]", value).items()
            return {_NAMES.get(key, key): _renamed(each) for key, each in entries}
        case list():
            return [_renamed(each) for each in cast("list[Any]", value)]
        case str():
            head, slash, name = value.rpartition("/")
            return f"{head}{slash}{_NAMES.get(name, name)}"
        case _:
            return value


def _describe(schema: dict[str, Any], texts: Mapping[str, str]) -> None:
    """Put descriptions at a schema's properties, and leave out titles, which only repeat names."""
    schema.pop("title", None)
    for name, its in cast("dict[str, Any]", schema.get("properties", {})).items():
        its.pop("title", None)
        if name in texts:
            its["description"] = texts[name]


def _attribute_docs() -> Iterator[tuple[str, dict[str, str]]]:
    """The names of our dataclasses, and the docstrings that stand under their attributes."""
    for module in (types, evaluation):
        for each in ast.parse(inspect.getsource(module)).body:
            if isinstance(each, ast.ClassDef):
                yield each.name, dict(_docs_under(each.body))


def _docs_under(lines: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for line, below in pairwise(lines):
        text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(text, str):
            yield line.target.id, _IN_PYTHON.sub("null", " ".join(text.split()))


# ---- the page

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { padding: .8rem; overflow-x: auto; border: 1px solid #8888; border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid #8884; }
td:first-child { white-space: nowrap; }
h2 { margin-top: 2.5rem; }
"""


def docs_page(described: Mapping[str, Any]) -> tuple[str, str]:
    """The document as an HTML page that loads nothing, and its content security policy."""
    info, paths = described["info"], described["paths"]
    parts = [
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f"<p>{_text(info['description'])} The same for programs: <a href='/openapi.json'>openapi.json</a>.</p>",
        "<p>Where the server was given a token, each request carries <code>Authorization: Bearer TOKEN</code>.</p>",
    ]
    for path, methods in paths.items():
        parts += [part for method, about in methods.items() for part in _address(method, path, about)]
    parts.append("<h1>Schemas</h1>")
    parts += [part for name, schema in described["components"]["schemas"].items() for part in _schema(name, schema)]
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(info["title"])}'
    page = (
        f'<!doctype html><html lang="en"><head>{head}</title><style>{_STYLE}</style></head><body>{body}</body></html>'
    )
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; "
    return page, policy + "frame-ancestors 'none'"


def _address(method: str, path: str, about: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{_text(about['summary'])}</p>"
    if "description" in about:
        yield f"<p>{_text(about['description'])}</p>"
    if "requestBody" in about:
        first = about["requestBody"]["content"]["application/json"]
        example = TypeAdapter(Any).dump_json(first["example"]).decode()
        yield f"<pre>curl -d {escape(repr(example))} http://HOST:PORT{escape(path)}</pre>"
        yield f"<p>Body: {_kind(first['schema'])}</p>"
    rows = [(code, _answered(each)) for code, each in about["responses"].items()]
    yield _table([(f"<code>{code}</code>", text) for code, text in rows])


def _answered(response: Mapping[str, Any]) -> str:
    kinds = [_kind(each["schema"]) for each in response.get("content", {}).values()]
    return " ".join([_text(response["description"]), *([" or ".join(kinds)] if kinds else [])])


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h2 id="{escape(name)}">{escape(name)}</h2>'
    if "description" in schema:
        yield f"<p>{_text(schema['description'])}</p>"
    needed = schema.get("required", ())
    rows: list[tuple[str, str]] = []
    for field, its in schema.get("properties", {}).items():
        must = " (required)" if field in needed and name in _GIVEN else ""
        rows.append((f"<code>{escape(field)}</code>", f"{_kind(its)}{must}. {_text(its.get('description', ''))}"))
    yield _table(rows)


def _table(rows: list[tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><td>{left}</td><td>{right}</td></tr>" for left, right in rows) + "</table>"


def _kind(schema: Mapping[str, Any]) -> str:
    """What a schema allows, in a few words of HTML."""
    if "$ref" in schema:
        name = escape(str(schema["$ref"]).rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    match schema.get("type"):
        case "array":
            items = schema.get("items", {})
            if isinstance(items.get("type"), list) and "array" in items["type"]:
                return "array of numbers and nulls"
            return f"list of {_kind(items)}" if items else "list"
        case None:
            return "any value"
        case str(kind):
            return escape(kind)
        case kinds:
            return " or ".join(map(str, kinds))


def _text(text: str) -> str:
    """A description as HTML, with what stands between backticks as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if n % 2 else piece for n, piece in enumerate(pieces))
