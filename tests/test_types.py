"""The values check themselves when they are made, and name the field that is wrong."""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import debate
from debate.errors import ConfigError, ProfileError, TaskError
from debate.profiles import Component, MemorySettings, Persona, Profile
from debate.types import Candidate, Price, Sampling, Scale, Task, Transcript, Turn, UniqueIds, Usage, cost_of

NAN, INF = math.nan, math.inf


# Tasks


def test_strings_are_accepted_as_candidates() -> None:
    task = Task("x", ["one", Candidate("two", generator="m")])
    assert task.candidates == (Candidate("one"), Candidate("two", generator="m"))


def test_a_task_without_an_id_has_the_same_one_in_every_process() -> None:
    code = "from debate import Task; print(Task('x é 🎉', ['a', 'b'], context=['c'], metadata={'k': 1}).id)"
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        cwd=Path(debate.__file__).parents[1],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.strip() == Task("x é 🎉", ["a", "b"], context=["c"], metadata={"k": 1}).id


def test_the_id_follows_from_all_of_the_content_and_nothing_else() -> None:
    base = Task("x", ["a", "b"])
    others = [
        Task("y", ["a", "b"]),
        Task("x", ["b", "a"]),
        Task("x", ["ab"]),
        Task("x", ["a", "b"], context=["c"]),
        Task("x", ["a", Candidate("b", id="1")]),
        Task("x", ["a", Candidate("b", generator="m")]),
    ]
    assert len({task.id for task in [base, *others]}) == 7
    assert Task("x", ["a", Candidate("b", metadata={"k": 1})], metadata={"line": 3}).id == base.id


def test_a_given_id_is_kept() -> None:
    task = Task("x", ["a"], id=" row 7 ")
    assert (task.id, task.has_given_id, Task("x", ["a"]).has_given_id) == (" row 7 ", True, False)


@pytest.mark.parametrize(
    ("arguments", "field", "says"),
    [
        ({"candidates": "one string"}, "candidates", "not one string"),
        ({"candidates": b"bytes"}, "candidates", "not one string"),
        ({"candidates": []}, "candidates", "at least one"),
        ({"candidates": (each for each in ())}, "candidates", "at least one"),
        ({"candidates": np.array([])}, "candidates", "at least one"),
        ({"candidates": {"a", "b"}}, "candidates", "in an order, got set"),
        ({"candidates": frozenset("ab")}, "candidates", "in an order, got frozenset"),
        ({"candidates": {"A": "a", "B": "b"}}, "candidates", "in an order, got dict"),
        ({"candidates": 3}, "candidates", "in an order, got int"),
        ({"candidates": np.array([1, 2])}, "candidates.0", "must be a string, got int64"),
        ({"candidates": np.array([["a"], ["b"]])}, "candidates.0", "must be a string, got ndarray"),
        ({"candidates": ["a", 3]}, "candidates.1", "got int"),
        ({"candidates": ["a", None]}, "candidates.1", "got NoneType"),
        ({"candidates": ["a", "cut \ud83d"]}, "candidates.1", "character 4"),
        ({"context": "one string"}, "context", "not one string"),
        ({"context": ["a", 3]}, "context.1", "got int"),
        ({"context": {"a", "b"}}, "context", "in an order, got set"),
        ({"metadata": ["best"]}, "metadata", "must be a mapping, got list"),
        ({"context": ["\udc00"]}, "context.0", "lone surrogate"),
        ({"x": 3}, "x", "got int"),
        ({"x": "\ud800"}, "x", "lone surrogate"),
        ({"reference": 0}, "reference", "got int"),
        ({"reference": ["4"]}, "reference", "got list"),
        ({"id": ""}, "id", "non-empty"),
        ({"id": "  "}, "id", "non-empty"),
        ({"id": 7}, "id", "non-empty string"),
        ({"id": "\ud800"}, "id", "lone surrogate"),
    ],
)
def test_a_task_that_cannot_be_evaluated_names_the_field(arguments: dict[str, Any], field: str, says: str) -> None:
    fine: dict[str, Any] = {"x": "x", "candidates": ["a"]}
    with pytest.raises(TaskError) as caught:
        Task(**fine | arguments)
    assert caught.value.field == field
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"text": 3}, "text"),
        ({"id": 0}, "id"),
        ({"id": "\ud800"}, "id"),
        ({"generator": 0}, "generator"),
        ({"generator": "\ud800"}, "generator"),
    ],
)
def test_a_candidate_that_cannot_be_written_down_is_refused(arguments: dict[str, Any], field: str) -> None:
    fine: dict[str, Any] = {"text": "a"}
    with pytest.raises(TaskError) as caught:
        Candidate(**fine | arguments)
    assert caught.value.field == field


def test_an_empty_response_is_a_candidate() -> None:
    assert Task("", ["", ""]).candidates == (Candidate(""), Candidate(""))


def test_generators_and_arrays_of_texts_are_read_whole() -> None:
    task = Task("x", (text for text in "ab"), context=map(str, [1, 2]))
    assert task == Task("x", np.array(["a", "b"]), context=["1", "2"])
    assert [type(candidate.text) for candidate in task.candidates] == [str, str]


AUTHORED = [Candidate("one", id="c1", generator="m0"), Candidate("two", id="c2", generator="m1"), "three"]


@pytest.mark.parametrize(
    ("label", "indices"),
    [
        (0, (0,)),
        (2, (2,)),
        (1.0, (1,)),
        (np.int64(1), (1,)),
        ("A", (0,)),
        ("C", (2,)),
        ("c2", (1,)),
        ("m0", (0,)),
        ([2, 0], (0, 2)),
        (("B", 1), (1,)),
        (["m1", "C"], (1, 2)),
        (None, ()),
    ],
)
def test_a_label_names_candidates_by_index_letter_id_or_generator(label: Any, indices: tuple[int, ...]) -> None:
    beside, inside = Task("x", AUTHORED, best=label), Task("x", AUTHORED, metadata={"best": label, "k": 1})
    assert beside.best == inside.best == indices
    kept = None if not indices else indices[0] if len(indices) == 1 else list(indices)
    assert beside.metadata.get("best") == kept
    assert inside.metadata == {"best": kept, "k": 1}
    assert Task("x", AUTHORED, metadata=inside.metadata, best=beside.metadata.get("best")).best == indices


@pytest.mark.parametrize(
    ("label", "field", "says"),
    [
        (3, "best", "one of 3 candidates, got 3"),
        (-1, "best", "got -1"),
        (0.5, "best", "got 0.5"),
        (NAN, "best", "got nan"),
        (True, "best", "got True"),
        ({"index": 0}, "best", "got {'index': 0}"),
        ("D", "best", "'D' names no candidate"),
        ("a", "best", "'a' names no candidate"),
        ("1", "best", "'1' names no candidate"),
        ("", "best", "'' names no candidate"),
        ([], "best", "empty list"),
        ([0, "Z"], "best.1", "'Z' names no candidate"),
        ([0, [1]], "best.1", "got [1]"),
    ],
)
def test_a_label_without_a_plain_meaning_is_refused(label: Any, field: str, says: str) -> None:
    places: list[tuple[dict[str, Any], str]] = [
        ({"best": label}, field),
        ({"metadata": {"best": label}}, f"metadata.{field}"),
    ]
    for given, where in places:
        with pytest.raises(TaskError) as caught:
            Task("x", AUTHORED, **given)
        assert caught.value.field == where
        assert says in str(caught.value)


def test_a_letter_that_is_another_candidates_id_is_refused() -> None:
    with pytest.raises(TaskError, match="'A' names several candidates"):
        Task("x", [Candidate("one", id="B"), Candidate("two", id="A")], best="A")
    assert Task("x", [Candidate("one", id="A"), Candidate("two", id="B")], best="A").best == (0,)


def test_two_labels_must_agree() -> None:
    assert Task("x", ["a", "b"], metadata={"best": "B"}, best=1).best == (1,)
    with pytest.raises(TaskError, match=r"best: contradicts metadata\.best, which is 0"):
        Task("x", ["a", "b"], metadata={"best": 0}, best=1)


def test_a_reference_is_content_and_a_label_is_not() -> None:
    plain, referred = Task("x", ["a", "b"]), Task("x", ["a", "b"], reference="r")
    assert Task("x", ["a", "b"], best=1).id == plain.id
    assert len({plain.id, referred.id, Task("x", ["a", "b"], context=["r"]).id}) == 3
    assert (plain.background, referred.background) == ((), ("Reference answer:\nr",))
    assert (referred.context, Task("x", ["a"], None, ["c"], None, "r").background[0]) == ((), "c")
    assert Task("x", ["a", "b"], reference="").id == plain.id
    with pytest.raises(TaskError, match="reference: must be a string, got int"):
        Task("x", ["a"], reference=3)  # pyright: ignore[reportArgumentType]


def test_the_task_keeps_its_own_copies_at_every_depth() -> None:
    candidates, about = ["a"], {"steps": ["one"]}
    metadata: dict[str, Any] = {"k": 1, "deep": [{"rows": [1]}]}
    task = Task("x", [*candidates, Candidate("b", metadata=about)], metadata=metadata)
    candidates.append("b")
    metadata["k"] = 2
    metadata["deep"][0]["rows"].append(2)
    about["steps"].append("two")
    assert (len(task.candidates), task.metadata) == (2, {"k": 1, "deep": [{"rows": [1]}]})
    assert task.candidates[1].metadata == {"steps": ["one"]}


def test_metadata_may_hold_any_object_but_not_itself() -> None:
    lock = threading.Lock()
    assert Task("x", ["a"], metadata={"lock": lock}).metadata["lock"] is lock
    loop: dict[str, Any] = {}
    loop["self"] = [loop]
    with pytest.raises(TaskError, match="metadata: holds itself"):
        Task("x", ["a"], metadata=loop)


def test_tasks_can_be_hashed_compared_copied_and_pickled() -> None:
    def made(**more: Any) -> Task:
        return Task("x", ["a", Candidate("b", metadata={"k": [1]})], metadata={"k": [1], **more})

    task = made()
    copies = [made(), copy.copy(task), copy.deepcopy(task), pickle.loads(pickle.dumps(task)), task.renamed(task.id)]
    assert copies[:4] == [task] * 4
    assert {*copies[:4], task} == {task}
    assert made(more=1) != task
    assert (copies[4].id, copies[4].has_given_id, task.has_given_id) == (task.id, True, False)


# Ids


def test_every_task_gets_an_id_of_its_own_unless_it_was_given_twice() -> None:
    taken: set[str] = set()
    ids = UniqueIds(taken.__contains__)
    same = Task("x", ["a"])
    for wanted in (same.id, f"{same.id}-2", f"{same.id}-4"):
        assert ids.of(same) == wanted
        taken |= {wanted, f"{same.id}-3"}
    with pytest.raises(TaskError, match=f"id: duplicate id '{same.id}'"):
        ids.of(same.renamed(same.id))


def test_naming_many_equal_tasks_asks_about_each_name_but_once_or_twice() -> None:
    taken: set[str] = set()
    asked: list[str] = []

    def is_taken(name: str) -> bool:
        asked.append(name)
        return name in taken

    ids, same = UniqueIds(is_taken), Task("x", ["a"])
    for _ in range(100):
        taken.add(ids.of(same))
    assert len(taken) == 100 and len(asked) <= 200


# Personas, components, profiles


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"name": " "}, "name"),
        ({"role": "\n"}, "role"),
        ({"agreement": -1}, "agreement"),
        ({"agreement": 11}, "agreement"),
        ({"agreement": "3"}, "agreement"),
        ({"agreement": 2.5}, "agreement"),
        ({"name": 3}, "name"),
        ({"role": None}, "role"),
        ({"sampling": 0.7}, "sampling"),
        ({"memory": "built-in"}, "memory"),
    ],
)
def test_a_persona_names_the_field_that_is_wrong(arguments: dict[str, Any], field: str) -> None:
    fine: dict[str, Any] = {"name": "Critic", "role": "You criticise."}
    with pytest.raises(ProfileError) as caught:
        Persona(**fine | arguments)
    assert caught.value.field == field


@pytest.mark.parametrize("agreement", [0, 10])
def test_agreement_runs_from_0_to_10(agreement: int) -> None:
    assert Persona("a", "b", agreement=agreement).agreement == agreement


@pytest.mark.parametrize("weight", [-0.1, 1.1, NAN, INF])
def test_a_components_weight_lies_in_0_to_1(weight: float) -> None:
    with pytest.raises(ProfileError, match=r"weight: must (lie in|be a number)"):
        Component("accuracy", "d", weight)
    assert [Component("accuracy", "d", end).weight for end in (0.0, 1.0)] == [0.0, 1.0]


def test_numbers_of_numpy_become_plain_ones_in_personas_and_components() -> None:
    component = Component("accuracy", "d", np.float32(0.5))  # pyright: ignore[reportArgumentType]
    persona = Persona("a", "b", agreement=np.int64(3))  # pyright: ignore[reportArgumentType]
    assert [type(component.weight), type(persona.agreement)] == [float, int]
    assert (component, persona) == (Component("accuracy", "d", 0.5), Persona("a", "b", agreement=3))


@pytest.mark.parametrize("personas", ["Critic", [1], Persona("a", "b"), 3])
def test_what_is_no_list_of_personas_is_refused(personas: Any) -> None:
    with pytest.raises(ProfileError, match="personas: must be a list of Personas"):
        Profile("p", personas)


def test_a_component_needs_a_name() -> None:
    with pytest.raises(ProfileError, match="name: must not be empty"):
        Component("", "d")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"k": 0}, "k"), ({"max_tokens": -1}, "max_tokens"), ({"k": "3"}, "k"), ({"collections": 3}, "collections")],
)
def test_memory_settings_out_of_range_are_refused(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MemorySettings(**arguments)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("personas", "components", "field"),
    [
        ([], ["c"], "personas"),
        (["a"], [], "components"),
        (["a", "b", "A"], ["c"], "personas.2.name"),
        (["a"], ["tone", "Tone"], "components.1.name"),
    ],
)
def test_a_profile_needs_distinct_personas_and_components(
    personas: list[str], components: list[str], field: str
) -> None:
    with pytest.raises(ProfileError) as caught:
        Profile("p", tuple(Persona(name, "r") for name in personas), tuple(Component(name, "d") for name in components))
    assert caught.value.field == field


def test_a_profiles_weights_follow_its_components() -> None:
    profile = Profile("p", (Persona("a", "r"),), (Component("c", "d", 0.25), Component("e", "f")))
    assert profile.weights.tolist() == [0.25, 1.0]


# Sampling and scales


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", NAN),
        ("temperature", INF),
        ("top_p", 1.1),
        ("top_p", -0.1),
        ("top_k", -2),
        ("min_p", 2.0),
        ("max_tokens", 0),
    ],
)
def test_sampling_out_of_range_names_the_field(name: str, value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        Sampling(**{name: value})  # pyright: ignore[reportArgumentType]
    assert caught.value.field == name


def test_sampling_goes_over_its_defaults_value_by_value() -> None:
    mine = Sampling(temperature=0.0, max_tokens=9)
    merged = mine.over(Sampling(temperature=0.7, top_p=0.9, top_k=40, min_p=0.1))
    assert merged == Sampling(temperature=0.0, top_p=0.9, top_k=40, min_p=0.1, max_tokens=9)
    assert mine.to_dict() == {"temperature": 0.0, "max_tokens": 9}


@pytest.mark.parametrize(("end", "value"), [("low", "0"), ("high", None), ("high", True)])
def test_the_ends_of_a_scale_are_numbers(end: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"scale.{end}: must be a number, got {value!r}"):
        Scale(**{end: value})
    scale = Scale(np.int64(0), np.float32(4))  # pyright: ignore[reportArgumentType]
    assert (scale, type(scale.low), type(scale.high)) == (Scale(0, 4.0), int, float)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (NAN, 1.0)])
def test_a_scale_needs_room(low: float, high: float) -> None:
    with pytest.raises(ConfigError) as caught:
        Scale(low, high)
    assert caught.value.field == "scale"


def test_the_best_end_of_a_scale_maps_to_1() -> None:
    assert [Scale(2, 6).to_unit(score) for score in (2, 5, 6)] == [0.0, 0.75, 1.0]
    assert [Scale(2, 6, higher_is_better=False).to_unit(score) for score in (2, 5, 6)] == [1.0, 0.25, 0.0]


# Usage and transcripts


def test_usage_adds_up() -> None:
    total = Usage(10, 4, 3, 1) + Usage(1, 2, 3, 4)
    assert (total, total.total_tokens) == (Usage(11, 6, 6, 5), 17)


def test_a_transcript_gives_the_turns_of_a_round() -> None:
    turns = [Turn(round=r, agent=a, labels={}, scores=np.zeros((0, 1))) for r in (0, 1) for a in "ab"]
    transcript = Transcript(tuple(turns))
    assert [turn.agent for turn in transcript.of_round(1)] == ["a", "b"]
    assert transcript.of_round(1) == tuple(turns[2:])
    assert (len(transcript), list(transcript)) == (4, turns)


# Prices

tokens = st.integers(0, 10**9)
money = st.floats(0, 1e4)


@hypothesis.given(tokens, tokens, tokens, money, money, money | st.none())
def test_a_price_is_read_as_it_is_written_and_charges_every_token_once(
    uncached: int, cached: int, output: int, of_input: float, of_output: float, of_cached: float | None
) -> None:
    price = Price(of_input, of_output, of_cached)
    again = Price.read(str(price))
    usage = Usage(uncached + cached, cached, output, 1)
    by_hand = uncached * of_input + cached * (of_input if of_cached is None else of_cached) + output * of_output
    assert price.cost(usage) == pytest.approx(by_hand / 1e6)
    assert again.cost(usage) == pytest.approx(price.cost(usage))


def test_cached_tokens_beyond_those_of_the_prompt_cost_nothing() -> None:
    assert Price(2, 0, 1).cost(Usage(1_000_000, 5_000_000, 0, 1)) == 1.0


@pytest.mark.parametrize("text", ["", "1", "1,2,3,4", "a,b", "1;2", "-1,2", "nan,1", "inf,1"])
def test_what_is_no_price_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^price"):
        Price.read(text)


def test_models_without_a_price_count_nothing() -> None:
    used = {"a": Usage(1_000_000), "b": Usage(1_000_000)}
    assert cost_of(used, {"a": Price(3, 5)}) == 3.0
