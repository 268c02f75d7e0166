"""YAML as plain data: what is a number, on which line each value stands, and where pydantic's findings are put."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from debate.errors import ConfigError, InputError
from debate.yaml_files import Finding, Located, as_input_error, first_finding, read_yaml

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str | bytes) -> Path:
        file = tmp_path / "mine.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return file

    return write_file


def test_every_value_has_its_line_and_what_is_missing_that_of_its_surroundings(write: Write) -> None:
    located = read_yaml(write("a:\n- 1\n- b: |\n    text\n  c:\n    2\n"))
    assert located.data == {"a": [1, {"b": "text\n", "c": 2}]}
    lines = {(): 1, ("a",): 1, ("a", 0): 2, ("a", 1): 3, ("a", 1, "b"): 3, ("a", 1, "c"): 5}
    assert dict(located.lines) == lines
    assert located.line_of(("a", 1, "missing", 0)) == 3


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[("12", 12), ("-0", 0), ("+3", 3), ("0.5", 0.5), (".5", 0.5), ("1e-3", 0.001), ("-.inf", float("-inf"))],
        *[("true", True), ("Off", False), ("~", None), ("", None), ("'12'", "12"), ("'no'", "no")],
        *[("010", "010"), ("0x1F", "0x1F"), ("1_000", "1_000"), ("12:30", "12:30"), ("2024-01-01", "2024-01-01")],
    ],
)
def test_only_what_plainly_is_a_number_is_read_as_one(write: Write, written: str, value: object) -> None:
    data = read_yaml(write(f"a: {written}\n")).data
    assert (data["a"], type(data["a"])) == (value, type(value))


@pytest.mark.parametrize(
    "text", ["a: &x 1", "a: !!str 1", "no: 1", "a: 1\na: 2", "a: 1\n---\nb: 2", "a: [1", "a:\n\t- 1"]
)
def test_the_pure_python_parser_refuses_the_same(write: Write, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def place() -> tuple[int | None, str | None, str | None]:
        with pytest.raises(ConfigError) as caught:
            read_yaml(write(text + "\n"))
        return caught.value.line, caught.value.field, caught.value.hint

    with_c = place()
    monkeypatch.setattr("debate.yaml_files._PARSER", yaml.SafeLoader)
    assert place() == with_c


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    mode: Literal["fast", "slow"] = "fast"
    share: float = Field(default=0.5, gt=0, lt=1)


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    parts: dict[str, Inner] = {}
    one: Inner | None = None


def findings(located: Located) -> InputError:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(located.data)
    return as_input_error(caught.value, located, Outer)


def test_open_bounds_are_shown_as_open(write: Write) -> None:
    error = findings(read_yaml(write("one:\n  share: 1\n")))
    assert error.message.endswith(":2: one.share: must lie in (0, 1), got 1")


def test_a_finding_without_words_of_its_own_keeps_those_of_pydantic(write: Write) -> None:
    error = findings(read_yaml(write("one:\n  mode: quick\n")))
    assert error.message.endswith(":2: one.mode: input should be 'fast' or 'slow'")


def test_an_unknown_key_inside_a_mapping_of_models_is_placed(write: Write) -> None:
    error = findings(read_yaml(write("parts:\n  left:\n    shar: 1\n")))
    assert (error.line, error.field, error.hint) == (3, "parts.left.shar", "did you mean 'share'?")


def test_a_key_that_would_move_the_cursor_is_shown_escaped(write: Write) -> None:
    assert "\u202e" not in str(findings(read_yaml(write('"a\\u202e": 1\n'))))


@pytest.mark.parametrize(
    ("text", "line", "field", "shown"),
    [
        ('name: ok\nparts:\n  - title: "a\\eb"', 3, "parts.0.title", r"'\x1b'"),
        ('"a\\0": 1', 1, None, r"'\x00'"),
        ('name: "\\x9b"', 1, "name", r"'\x9b'"),
    ],
)
def test_an_escape_holds_no_character_that_may_not_be_written(
    write: Write, text: str, line: int, field: str | None, shown: str
) -> None:
    with pytest.raises(ConfigError, match="holds the control character") as caught:
        read_yaml(write(text))
    assert (caught.value.line, caught.value.field) == (line, field)
    assert shown in caught.value.problem


def test_escapes_of_what_may_be_written_are_read(write: Write) -> None:
    assert read_yaml(write('name: "a\\tb\\n\\u00e9 \\U0001F642"')).data == {"name": "a\tb\né 🙂"}


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
