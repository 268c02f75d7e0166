"""Pydantic's findings in words for people who write YAML."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from debate.yaml_files import Finding, first_finding


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    title: str = ""
    share: float = Field(default=0.5, ge=0, lt=1)
    count: int = 1
    is_on: bool = True


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    parts: list[Part] = Field(default=[Part()], min_length=1)
    named: dict[str, Part] = {}


def finding(data: Any) -> Finding:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(data)
    return first_finding(caught.value, Whole)


@pytest.mark.parametrize(
    ("key", "given", "message"),
    [
        ("title", None, "must be text, got nothing"),
        ("title", ["a"], "must be text, got a list"),
        ("share", "half", "must be a number, got 'half'"),
        ("share", float("inf"), "must be a finite number, got inf"),
        ("share", 1, "must lie in [0, 1), got 1"),
        ("share", -0.5, "must lie in [0, 1), got -0.5"),
        ("count", 1.5, "must be a whole number, got 1.5"),
        ("count", {}, "must be a whole number, got a mapping"),
        ("is_on", "a" * 100, f"must be true or false, got '{'a' * 56}..."),
    ],
)
def test_a_finding_says_what_must_be_and_what_was_given(key: str, given: object, message: str) -> None:
    assert finding({"name": "x", "parts": [{key: given}]}) == Finding(("parts", 0, key), message, None)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, Finding(("name",), "is missing", None)),
        ([], Finding((), "must be a mapping of keys to values, got a list", None)),
        ({"name": "x", "parts": {}}, Finding(("parts",), "must be a list, got a mapping", None)),
        ({"name": "x", "parts": []}, Finding(("parts",), "is empty", None)),
        ({"name": "x", "named": []}, Finding(("named",), "must be a mapping of keys to values, got a list", None)),
        ({"name": False}, Finding(("name",), "must be text, got false", "put it in quotes")),
    ],
)
def test_what_is_missing_empty_or_of_another_kind_is_called_so(data: object, expected: Finding) -> None:
    assert finding(data) == expected


def test_an_unknown_key_comes_before_what_it_made_missing_and_the_rest_is_counted() -> None:
    assert finding({"nam": "x", "parts": 1}) == Finding(("nam",), "unknown key (and 2 more)", "did you mean 'name'?")


@pytest.mark.parametrize("around", [{"parts": [{"zzz": 1}]}, {"named": {"left": {"zzz": 1}}}])
def test_a_key_like_no_other_is_answered_with_the_keys_that_its_place_knows(around: dict[str, Any]) -> None:
    assert finding({"name": "x", **around}).hint == "known keys: title, share, count, is_on"
