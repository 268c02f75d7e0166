"""A setting is declared once: checks, description, docstring and the forms of files and flags follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pytest

from debate import DebateEvaluator, Sampling
from debate.errors import ConfigError
from debate.settings import (
    REQUIRED,
    Declaration,
    check_settings,
    declarations,
    describe_settings,
    documented,
    plain_values,
    setting,
)


@dataclass(frozen=True)
class Part:
    depth: int = setting(1, "How deep.", ge=1)

    def describe(self) -> dict[str, Any]:
        return {"kind": "part", **plain_values(self)}


@dataclass(frozen=True)
class Parent:
    mode: Literal["fast", "slow"] = setting("fast", "How to go.")
    not_a_setting: int = 7


@documented
@dataclass(frozen=True)
class Example(Parent):
    """An example."""

    rounds: int = setting(3, "Most rounds.", ge=1, shapes_prompts=False)
    share: float | None = setting(None, "A share.", gt=0, le=1, shapes_prompts=False)
    is_loud: bool = setting(False, "Whether it is loud.")
    title: str = setting("t", "What it is called.")
    folder: Path | str | None = setting(None, "Where it is.", file_type=Path | None)
    part: Part = setting(Part, "A part of it.")

    def __post_init__(self) -> None:
        check_settings(self)


def declared(name: str) -> Declaration:
    return next(each for each in declarations(Example) if each.name == name)


def test_declarations_come_in_the_order_of_the_fields_inherited_ones_first() -> None:
    names = ["mode", "rounds", "share", "is_loud", "title", "folder", "part"]
    assert [each.name for each in declarations(Example)] == names


def test_a_declaration_says_all_that_a_flag_or_a_model_of_a_file_needs() -> None:
    share = declared("share")
    assert (share.type, share.file_type, share.default) == (float | None, float | None, None)
    assert (share.help, share.shapes_prompts, share.bounds) == ("A share.", False, {"gt": 0, "le": 1})
    assert declared("folder").file_type == Path | None
    assert declared("part").default == Part()


def test_a_setting_without_a_default_is_required() -> None:
    @dataclass
    class Strict:
        size: int = setting(REQUIRED, "How large.")

    with pytest.raises(TypeError, match="size"):
        Strict()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mode", "one of fast, slow"),
        ("rounds", "a whole number, at least 1"),
        ("share", "a number, above 0 and at most 1, or None"),
        ("is_loud", "true or false"),
        ("title", "text"),
        ("folder", ""),
    ],
)
def test_what_is_expected_is_said_in_words(name: str, words: str) -> None:
    assert declared(name).expected == words


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "quick"),
        ("mode", None),
        ("mode", ["fast"]),
        ("rounds", 1.0),
        ("rounds", True),
        ("rounds", "3"),
        ("share", float("nan")),
        ("share", float("inf")),
        ("share", True),
        ("is_loud", 1),
        ("is_loud", "yes"),
        ("title", 5),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_field(name: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Example(**{name: value})
    assert str(caught.value) == f"{name}: must be {declared(name).expected}, got {value!r}"


class Reader(Protocol):
    @property
    def scale(self) -> int: ...

    def __call__(self, reply: str) -> float: ...


class Reads:
    scale = 3

    def __call__(self, reply: str) -> float:
        return 1.0


@dataclass(frozen=True)
class Composed:
    part: Part | None = setting(None, "A part.")
    names: Sequence[str] | Mapping[str, int] = setting((), "Names.", is_hashable=False)
    make: Callable[..., Any] = setting(len, "A function.")
    read: Reader = setting(Reads(), "A reader.")
    size: int | str = setting(1, "A size.", le=5)

    def __post_init__(self) -> None:
        check_settings(self)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("part", 3, "a Part"),
        ("part", Part, "a Part"),
        ("names", 3, "a list or a mapping"),
        ("names", {1}, "a list or a mapping"),
        ("make", "len", "a function"),
        ("read", 3, "a Reader"),
        ("read", Reads, "a Reader"),
        ("read", len, "a Reader"),
        ("size", 1.5, "a whole number or text, at most 5"),
    ],
)
def test_a_value_that_is_not_plain_is_checked_by_its_class_or_protocol(name: str, value: Any, wanted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Composed(**{name: value})
    assert str(caught.value) == f"{name}: must be {wanted}, got {value!r}"


def test_values_of_the_right_class_or_protocol_are_kept() -> None:
    given: dict[str, Any] = {"part": Part(2), "names": {"a": 1}, "make": Part, "read": Reads(), "size": "small"}
    composed = Composed(**given)
    assert {name: getattr(composed, name) for name in given} == given
    assert hash(composed) == hash(replace(composed, names=()))


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("size", np.int64(2), 2),
        ("size", np.str_("a"), "a"),
        ("names", np.array(["a", "b"]), ["a", "b"]),
    ],
)
def test_numpy_values_become_the_plain_ones_that_they_hold(name: str, value: Any, kept: Any) -> None:
    found = getattr(Composed(**{name: value}), name)
    assert found == kept and type(found) is type(kept)


def test_a_numpy_value_is_held_to_the_same_type_and_bounds() -> None:
    with pytest.raises(ConfigError, match=r"rounds: must be a whole number, at least 1, got 2\.5"):
        Example(rounds=np.float64(2.5))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="size: must be at most 5, got 6"):
        Composed(size=np.int64(6))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [("rounds", 0, "at least 1"), ("share", 0, "above 0 and at most 1"), ("share", 1.01, "above 0 and at most 1")],
)
def test_a_value_out_of_bounds_is_refused_by_its_field(name: str, value: Any, bounds: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Example(**{name: value})
    assert str(caught.value) == f"{name}: must be {bounds}, got {value:g}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("mode", "slow"), ("rounds", 1), ("share", 1), ("share", None), ("share", 0.5), ("folder", Path("f"))],
)
def test_a_value_within_its_bounds_is_kept_as_it_was_given(name: str, value: Any) -> None:
    assert getattr(Example(**{name: value}), name) is value


def test_a_prefix_says_whose_setting_it_is() -> None:
    with pytest.raises(ConfigError) as caught:
        check_settings(Part(0), "part.")
    assert caught.value.field == "part.depth"


def test_a_description_holds_plain_values_apart_from_those_that_shape_no_prompt() -> None:
    assert describe_settings(Example(folder=Path("f")), evaluator="example", aggregation={"more": 1}) == {
        "evaluator": "example",
        "mode": "fast",
        "is_loud": False,
        "title": "t",
        "part": {"kind": "part", "depth": 1},
        "aggregation": {"rounds": 3, "share": None, "more": 1},
    }


@dataclass(frozen=True)
class Grown(Parent):
    tone: str = setting("plain", "How it sounds.", came_later=True)
    pace: int = setting(1, "How fast it is.", shapes_prompts=False, came_later=True)


def test_a_setting_that_came_later_is_described_once_it_differs_from_its_default() -> None:
    assert describe_settings(Grown()) == describe_settings(Parent())
    assert describe_settings(Grown(tone="warm", pace=2)) == {"mode": "fast", "tone": "warm", "aggregation": {"pace": 2}}


def test_a_docstring_lists_every_setting_with_what_is_expected_and_the_default() -> None:
    lines = (Example.__doc__ or "").splitlines()
    assert lines[:3] == ["An example.", "", "Args:"]
    assert lines[3:] == [
        "    mode: How to go. (one of fast, slow; default 'fast')",
        "    rounds: Most rounds. (a whole number, at least 1; default 3)",
        "    share: A share. (a number, above 0 and at most 1, or None; default None)",
        "    is_loud: Whether it is loud. (true or false; default False)",
        "    title: What it is called. (text; default 't')",
        "    folder: Where it is. (default None)",
        "    part: A part of it.",
    ]


def test_an_argument_of_a_wrong_name_is_a_type_error_with_the_name_that_was_meant() -> None:
    made: Any = DebateEvaluator
    with pytest.raises(TypeError, match=r"(?s)round: DebateEvaluator has no such argument.*did you mean `rounds`\?"):
        made("general", round=2)
    with pytest.raises(ConfigError, match="did you mean `rounds`"):
        replace(DebateEvaluator("general"), round=2)


def test_an_argument_that_is_near_none_is_answered_with_all_of_them() -> None:
    made: Any = Sampling
    with pytest.raises(TypeError, match=r"(?s)xyz: Sampling has no such argument.*it has temperature, "):
        made(xyz=1)


def test_what_a_class_takes_is_still_told_by_its_signature() -> None:
    assert [*signature(Sampling).parameters][:2] == ["temperature", "top_p"]
