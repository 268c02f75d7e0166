"""What every evaluator asks and comes to, held against files that an earlier version wrote; see `golden_cases`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pytest

from tests.golden_cases import GOLDEN, Case, cases, perform, sha, with_new_keys

CASES = cases()
_LAST_DIGITS = ("probabilities",)
"""Made by `exp`, whose last digit is the processor's."""
_SHOWN = 300


def differences(expected: Any, found: Any, where: str = "") -> Iterator[str]:
    """Each place where two plain values differ, the first first; the order of keys counts."""
    is_same_kind = type(expected) is type(found)
    if isinstance(expected, dict) and isinstance(found, dict):
        yield from _of_mappings(cast("dict[str, Any]", expected), cast("dict[str, Any]", found), where)
    elif isinstance(expected, list) and isinstance(found, list):
        yield from _of_lists(cast("list[Any]", expected), cast("list[Any]", found), where)
    elif not is_same_kind or (expected != found and not _is_close(expected, found, where)):
        start = _first_difference(expected, found)
        yield f"{where}:\n  was {_shown(expected, start)}\n  is  {_shown(found, start)}"


def _of_mappings(expected: Mapping[str, Any], found: Mapping[str, Any], where: str) -> Iterator[str]:
    for key, value in expected.items():
        if key not in found:
            yield f"{where}.{key}: is missing; it was {_shown(value)}"
        else:
            yield from differences(value, found[key], f"{where}.{key}")
    for key in found.keys() - expected.keys():
        yield f"{where}.{key}: is new: {_shown(found[key])}"
    if expected.keys() == found.keys() and list(expected) != list(found):
        yield f"{where}: the keys stand in another order: was {list(expected)}, is {list(found)}"


def _of_lists(expected: Sequence[Any], found: Sequence[Any], where: str) -> Iterator[str]:
    for n, (old, new) in enumerate(zip(expected, found, strict=False)):
        yield from differences(old, new, f"{where}[{n}]")
    if len(expected) != len(found):
        yield f"{where}: were {len(expected)}, are {len(found)}"


def _is_close(expected: Any, found: Any, where: str) -> bool:
    is_made_by_exp = any(f".{name}[" in where for name in _LAST_DIGITS)
    return is_made_by_exp and isinstance(expected, float) and math.isclose(expected, found, rel_tol=1e-12)


def _first_difference(expected: Any, found: Any) -> int:
    """Where two texts part; 0 for other values."""
    if not (isinstance(expected, str) and isinstance(found, str)):
        return 0
    return next((n for n, (old, new) in enumerate(zip(expected, found, strict=False)) if old != new), 0)


def _shown(value: Any, start: int = 0) -> str:
    """A value, or the part of a long text around a place."""
    begin = max(0, start - _SHOWN // 2) if isinstance(value, str) else 0
    text: str = json.dumps(value[begin:] if begin else value, ensure_ascii=False)
    cut = f"{text[:_SHOWN]}... ({len(text)} characters)" if len(text) > _SHOWN else text
    return f"(from character {begin}) {cut}" if begin else cut


def first_differing_call(expected: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> str:
    """Which call is the first that differs, what it is about, and in what."""
    for n, (old, new) in enumerate(zip(expected, found, strict=False)):
        if old != new:
            about = f"call {n} of task {old['task_id']!r} {json.dumps(old['about'])}"
            return "\n".join([f"the first call that differs is {about}", *differences(old, new, f"calls[{n}]")])
    return f"there were {len(expected)} calls, and are {len(found)}"


@pytest.mark.parametrize("name", CASES)
def test_the_same_is_asked_and_comes_of_it(name: str) -> None:
    expected = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    expected = {key: with_new_keys(value) if key == "evaluations" else value for key, value in expected.items()}
    found = perform(CASES[name])
    if expected["calls"] != found["calls"]:
        texts = list(differences(expected["messages"], found["messages"], "messages"))[:1]
        schemas = list(differences([*expected["schemas"].values()], [*found["schemas"].values()], "schemas"))[:1]
        pytest.fail("\n".join([f"{name}:", first_differing_call(expected["calls"], found["calls"]), *texts, *schemas]))
    others = list(differences(expected, found))
    if others:
        more = f"\n(and {len(others) - 1} more)" if len(others) > 1 else ""
        pytest.fail(f"{name}: the calls are the same, and what came of them is not\n{others[0]}{more}")


def test_every_file_has_a_case_and_every_case_a_file() -> None:
    assert {file.stem for file in GOLDEN.glob("*.json")} == set(CASES)


def test_every_evaluator_has_cases_with_replies_that_could_not_be_read() -> None:
    kept = {name: json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8")) for name in CASES}
    asked = [(name, call["about"].get("attempt", 0)) for name, each in kept.items() for call in each["calls"]]
    kinds = ("debate", "value", "vote", "panel", "cross", "step")
    assert {kind for kind in kinds if any(name.startswith(kind) and attempt for name, attempt in asked)} == {*kinds}


def test_the_files_name_the_texts_they_hold_in_full() -> None:
    for name in CASES:
        each = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
        for number, messages in each["messages"].items():
            assert each["calls"][int(number.removeprefix("call "))]["messages"] == sha(messages), name
        for digest, schema in each["schemas"].items():
            assert digest == sha(schema), name


def test_a_difference_is_named_by_its_place() -> None:
    old: dict[str, Any] = {"a": [1, {"b": 2.0}], "probabilities": [0.25], "c": None}
    new: dict[str, Any] = {"a": [1, {"b": 3.0}, 4], "probabilities": [0.25 + 1e-17], "c": 0}
    assert [each.partition(":")[0] for each in differences(old, new)] == [".a[1].b", ".a", ".c"]
    assert list(differences(old, old)) == []
    assert "another order" in next(differences({"a": 1, "b": 2}, {"b": 2, "a": 1}))


def test_a_case_comes_out_the_same_again() -> None:
    case: Case = CASES["panel_mixed"]
    assert perform(case) == perform(case)
