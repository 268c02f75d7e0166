"""The settings of a debate: refused by field, resolved once, described for the record."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from debate.errors import ConfigError, ProfileError, TaskError, TemplateError
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.profiles import Component, MemorySettings, Persona, Profile
from debate.scoring.tensor import Method, normalize_tensor
from debate.settings import declarations
from debate.types import Sampling, Scale, Task
from tests.driving import evaluator, panel, rubric_task, task

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rounds", 0),
        ("min_rounds", 0),
        ("convergence", -0.1),
        ("convergence", NAN),
        ("over", "everything"),
        ("stop_rule", "boredom"),
        ("stop_rule", "cv=little"),
        ("stop_rule", "ranking=2"),
        ("history", -1),
        ("mode", "parallel"),
        ("candidate_order", "random"),
        ("method", "mk2"),
        ("quorum", 0),
        ("quorum", 3),
        ("selection", "best"),
        ("softmax_temperature", 0.0),
        ("softmax_temperature", -1.0),
        ("softmax_temperature", NAN),
        ("softmax_temperature", INF),
        ("retries", -1),
        ("ties", "last"),
        ("token_budget", 0),
        ("comment_chars", 0),
        ("overall_chars", 0),
        ("weights", [1.0]),
        ("weights", [1.0, 1.0, 1.0]),
        ("weights", []),
        ("weights", [[1.0], [1.0]]),
        ("weights", [1.0, NAN]),
        ("weights", [1.0, INF]),
        ("weights", ["high", "low"]),
        ("weights", [1.0, None]),
        ("weights", 1.0),
        ("weights", "11"),
        ("weights", {"c0": 0.5, "c9": 1.0}),
        ("weights", {"c0": "high"}),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_its_field(field: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        evaluator(**{field: value})
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


@pytest.mark.parametrize("method", get_args(Method))
def test_weights_that_are_negative_or_sum_to_zero_are_refused_whatever_the_method(method: Method) -> None:
    with pytest.raises(ConfigError, match=r"^weights: sum to 0: at least one component must count$"):
        evaluator(method=method, weights=[0, 0])
    for weights in ([1, -0.5], {"c1": -0.5}):
        with pytest.raises(ConfigError, match=r"^weights.c1: must be at least 0, got -0.5$"):
            evaluator(method=method, weights=weights)


def test_weights_that_are_too_large_for_a_method_are_refused() -> None:
    with pytest.raises(ConfigError, match="weights: the scores and weights are too large"):
        evaluator(method="mk1", weights=[1e308, 1e308])
    assert evaluator(method="weighted_mean", weights=[1e308, 1e308]).scale == Scale(0, 10)


def test_a_debate_takes_the_weighted_mean_unless_it_is_told_otherwise() -> None:
    assert evaluator().method == "weighted_mean"
    assert inspect.signature(normalize_tensor).parameters["method"].default == "article"


@pytest.mark.parametrize(
    "told",
    [
        {"rounds": 1, "min_rounds": 5},
        {"convergence": 0.0, "history": 0, "retries": 0},
        {"quorum": 2, "token_budget": 1, "comment_chars": 1, "overall_chars": 1},
    ],
)
def test_the_ends_of_the_ranges_are_allowed(told: dict[str, Any]) -> None:
    settings = evaluator(**told)
    assert {name: getattr(settings, name) for name in told} == told


@pytest.mark.parametrize(
    ("weights", "resolved"),
    [
        (None, (1.0, 0.5)),
        ([0.25, 0], (0.25, 0.0)),
        ((2, 3), (2.0, 3.0)),
        (np.array([0.25, 0.75]), (0.25, 0.75)),
        ({"tone": 0.125}, (1.0, 0.125)),
        ({"tone": 0, "truth": 0.25}, (0.25, 0.0)),
        ({}, (1.0, 0.5)),
    ],
)
def test_weights_come_in_order_or_by_name_or_from_the_profile(weights: Any, resolved: tuple[float, ...]) -> None:
    components = (Component("truth", "d"), Component("tone", "d", 0.5))
    settings = evaluator(Profile("p", (Persona("a", "r"),), components), weights=weights)
    assert settings.component_weights.tolist() == list(resolved)


def test_an_unknown_weight_comes_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match="'c9' is no component; there are c0, c1"):
        evaluator(weights={"c9": 1.0})


@pytest.mark.parametrize(("n_agents", "size"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_quorum_is_more_than_half_unless_it_is_told(n_agents: int, size: int) -> None:
    assert evaluator(panel(n_agents)).quorum_size == size
    assert evaluator(panel(n_agents), quorum=1).quorum_size == 1


@pytest.mark.parametrize(
    ("weights", "ends"),
    [
        ([1, 1, 1], {"article": 10, "weighted_mean": 10, "mk1": 30}),
        ([1, 0.5, 0.5], {"article": 20 / 3, "weighted_mean": 10, "mk1": 20}),
        ([7, 7, 0], {"article": 140 / 3, "weighted_mean": 10, "mk1": 140}),
    ],
)
def test_the_scale_follows_from_the_weights(weights: list[float], ends: dict[str, float]) -> None:
    scales = {method: evaluator(panel(2, 3), method=method, weights=weights).scale for method in ends}
    assert scales == {method: Scale(0, end) for method, end in ends.items()}


def test_a_profile_is_found_by_name_or_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\npersonas: [{name: a, role: r}]\ncomponents: [{name: c, description: d}]\n", "utf-8")
    assert DebateEvaluator("general").profile_name == "general"
    assert [persona.name for persona in DebateEvaluator(file).personas] == ["a"]
    with pytest.raises(ProfileError):
        DebateEvaluator("no-such-profile")


def test_a_folder_of_templates_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="no such folder"):
        evaluator(templates=tmp_path / "none")


# The record


def rich_profile() -> Profile:
    memory = MemorySettings(collections=("a",), k=3)
    persona = Persona("a", "r", model="big", sampling=Sampling(top_k=5), agreement=3, memory=memory)
    return Profile("rich", (persona, Persona("b", "r")), (Component("c", "d", 0.5),))


def test_a_description_is_plain_data() -> None:
    described = evaluator(rich_profile(), convergence=0.2, weights={"c": 2}).describe()
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert (described["evaluator"], described["profile"], described["aggregation"]["weights"]) == (
        "debate",
        "rich",
        [2.0],
    )
    assert described["personas"][0] == {
        "name": "a",
        "role": "r",
        "model": "big",
        "sampling": {"top_k": 5},
        "agreement": 3,
        "memory": {"collections": ["a"], "k": 3},
    }


_CHANGES: dict[str, Any] = {
    "rounds": 4, "weights": [1, 0], "convergence": 0.3, "over": "cells", "min_rounds": 2, "history": 1,
    "mode": "simultaneous", "candidate_order": "rotate", "method": "mk1", "quorum": 1, "selection": "sample",
    "softmax_temperature": 2.0, "retries": 1, "history_scores": False, "blind_first_round": True, "ties": "seeded",
    "token_budget": 9, "sampling": Sampling(temperature=0.1), "comment_chars": 9, "overall_chars": 9,
    "readout": "cells", "reply": "compact", "abstain": True, "silent_readouts": True,
    "stop_rule": "ranking", "settle": "agreement", "task_components": "instead",
}  # fmt: skip


@pytest.mark.parametrize("name", _CHANGES)
def test_a_description_changes_with_every_setting(name: str) -> None:
    assert evaluator(**{name: _CHANGES[name]}).describe() != evaluator().describe()


def test_no_setting_is_missing_from_the_test_above() -> None:
    names = {declared.name for declared in declarations(DebateEvaluator)}
    assert names - {"profile", "templates"} == set(_CHANGES)


def test_a_debate_without_read_outs_is_described_as_before_there_were_any() -> None:
    assert not {"readout", "reply", "abstain", "silent_readouts"} & evaluator().describe().keys()


def test_a_debate_that_scores_components_of_tasks_beside_its_own_is_described_as_before_there_were_any() -> None:
    assert "task_components" not in evaluator().describe()


def test_a_tasks_own_components_make_its_footprint_larger() -> None:
    plain, own = task(), rubric_task("c8", description="d" * 500)
    assert evaluator().footprint(own).characters == evaluator().footprint(plain).characters + 500
    assert evaluator().footprint(own).max_tokens > evaluator().footprint(plain).max_tokens


def test_a_task_may_not_name_a_component_as_the_profile_does() -> None:
    with pytest.raises(TaskError) as caught:
        evaluator(panel(2, 2)).check_task(rubric_task("C1"))
    assert (caught.value.field, caught.value.problem) == (
        "components.0.name",
        "'C1' is a component of the profile 'panel', too",
    )
    assert "task_components=instead" in str(caught.value.hint)
    evaluator(panel(2, 2), task_components="instead").check_task(rubric_task("C1"))


def test_a_debate_without_a_stop_rule_is_described_as_before_there_were_any() -> None:
    assert "stop_rule" not in evaluator().describe()["aggregation"]
    assert evaluator(stop_rule="cv=0.10").describe()["aggregation"]["stop_rule"] == "cv=0.1,over=agents"


_READ: list[tuple[dict[str, Any], set[str | None]]] = [
    ({}, set()), ({"abstain": True}, set()), ({"readout": "expected"}, {None, "big"}),
    ({"readout": "cells"}, {None, "big"}), ({"silent_readouts": True}, {None, "big"}),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "read"), _READ)
def test_a_debate_names_the_models_whose_labels_it_reads(settings: dict[str, Any], read: set[str | None]) -> None:
    assert evaluator(rich_profile(), **settings).read_models == read


@pytest.mark.parametrize("name", ["system", "task", "turn", "agent", "retry"])
def test_a_description_changes_with_a_templates_text(tmp_path: Path, name: str) -> None:
    (tmp_path / "debate").mkdir()
    file = tmp_path / "debate" / f"{name}.j2"
    descriptions: list[Any] = [evaluator().describe()]
    for text in ("one", "two"):
        file.write_text(text, encoding="utf-8")
        descriptions.append(evaluator(templates=tmp_path).describe())
    assert len({described["templates"] for described in descriptions}) == 3
    file.unlink()
    assert evaluator(templates=tmp_path).describe() == descriptions[0]


def test_a_description_changes_with_a_components_or_a_personas_words() -> None:
    def described(role: str, description: str) -> dict[str, Any]:
        return evaluator(Profile("p", (Persona("a", role),), (Component("c", description),))).describe()

    assert described("r", "d") != described("other", "d")
    assert described("r", "d") != described("r", "other")


# How long a debate can grow


def test_a_footprint_grows_with_the_texts_the_rounds_and_the_agents() -> None:
    small = evaluator(panel(2), rounds=2).footprint(task(2))
    assert small.replies == 4
    assert evaluator(panel(3), rounds=5).footprint(task(2)).replies == 15
    longer = Task("x" * 1000, ["a" * 500, "b" * 500], context=["c" * 100])
    assert evaluator(panel(2), rounds=2).footprint(longer).characters >= small.characters + 2000


def test_a_footprint_allows_the_longest_reply_of_any_persona() -> None:
    talker = Persona("talker", "r", sampling=Sampling(max_tokens=9000))
    profile = Profile("p", (Persona("quiet", "r", sampling=Sampling(max_tokens=5)), talker), (Component("c", "d"),))
    assert evaluator(profile).footprint(task()).max_tokens == 9000
