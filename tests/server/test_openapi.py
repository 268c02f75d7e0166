"""The description of the server's addresses holds for what is sent and answered, and its page loads nothing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from debate import DebateEvaluator, Engine, Task
from debate.backends import Call, Scripted
from debate.server.openapi import docs_page, document
from debate.testing import reply_for
from tests.required import required_module

DOCUMENT = document()


def conforms(name: str, data: Any) -> bool:
    """Whether some data are what a schema of the document describes."""
    jsonschema = required_module("jsonschema")
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    return jsonschema.Draft202012Validator(schema).is_valid(data)


def test_it_is_an_openapi_document() -> None:
    required_module("fastapi")
    from fastapi.openapi.models import OpenAPI

    assert set(OpenAPI.model_validate(DOCUMENT).paths or {}) == {"/", "/evaluate", "/evaluate/batch", "/forward"}


def test_every_reference_leads_to_a_schema() -> None:
    names = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT))
    assert set(names) <= set(DOCUMENT["components"]["schemas"])
    assert {"Task", "Evaluation", "Problem", "Turn"} <= set(names)


@pytest.mark.parametrize("fails", [False, True])
def test_evaluations_are_what_it_describes(fails: bool) -> None:
    def script(call: Call) -> str:
        return "no JSON" if fails else reply_for(call)

    with Engine(Scripted(script)) as engine:
        found = engine.evaluate(Task("Q", ["A", "B"]), DebateEvaluator("general", rounds=1, candidate_order="balanced"))
    data = json.loads(found.to_json())
    assert conforms("Evaluation", data)
    assert conforms("BatchAnswer", {"evaluations": [data]})
    assert not conforms("Evaluation", {**data, "status": "fine"})


@pytest.mark.parametrize(
    ("task", "is_one"),
    [
        ({"x": "Q", "candidates": ["A"]}, True),
        ({"x": [{"role": "user", "content": "Q"}], "candidates": [{"text": "A", "id": "a"}], "best": "a"}, True),
        ({"x": "Q", "candidates": []}, False),
        ({"x": "Q", "candidates": ["A"], "extra": 1}, False),
        ({"candidates": ["A"]}, False),
    ],
)
def test_tasks_are_what_it_describes(task: Any, is_one: bool) -> None:
    assert conforms("Task", task) == is_one
    assert conforms("Batch", {"tasks": [task]}) == is_one


def test_fields_are_described_as_in_the_code() -> None:
    fields = DOCUMENT["components"]["schemas"]["Evaluation"]["properties"]
    assert fields["selected"]["description"].startswith("Index of the winner")
    assert all("description" in each for each in DOCUMENT["components"]["schemas"]["Task"]["properties"].values())


def test_what_is_not_served_is_not_described() -> None:
    assert set(document(evaluates=False)["paths"]) == {"/", "/forward"}
    assert set(document(forwards=False)["paths"]) == {"/", "/evaluate", "/evaluate/batch"}


class Elements(HTMLParser):
    """The elements of a page, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.names, self.links, self.ids, self.outside = set[str](), set[str](), set[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = {name: value or "" for name, value in attrs}
        self.names.add(tag)
        self.ids |= {about["id"]} if "id" in about else set()
        self.links |= {about["href"]} if "href" in about else set()
        self.outside += [about["src"]] if "src" in about else []
        assert not [name for name in about if name.startswith("on") or name == "style"]


def test_the_page_has_no_script_and_loads_nothing() -> None:
    page, policy = docs_page(DOCUMENT)
    found = Elements()
    found.feed(page)
    assert not found.names & {"script", "link", "img", "iframe", "object"}
    assert found.outside == []
    assert {link.removeprefix("#") for link in found.links if link.startswith("#")} <= found.ids
    assert {link for link in found.links if not link.startswith("#")} == {"/openapi.json"}
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
