"""Trying stop rules on recorded rounds gives what a run under the rule gives, and says what it cannot tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debate import DebateEvaluator, Evaluation, ValueEvaluator
from debate.errors import InputError
from debate.evaluation import plain
from debate.evaluators.base import RunContext
from debate.flow import Generate
from debate.meta_evaluation.aggregation import Aggregation, choice_of
from debate.meta_evaluation.judged import Judged, JudgedRun, as_judged
from debate.meta_evaluation.stopping import Replay, Stopping, Trial, replays_of, try_rules
from debate.stop_rules import StopRule
from debate.store.serialization import task_data
from debate.testing import drive
from tests.driving import TEMPLATES, panel, shown, task
from tests.meta_evaluation.small_runs import scripted_run

TASKS = [
    {"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b", "c"][: 2 + n % 2], "metadata": {"best": 0}} for n in range(6)
]
RULES = ("cv=0.5,over=pooled", "ranking", "change=0.25", "rounds=2")
rules = st.one_of(
    st.builds(StopRule, st.sampled_from(["cv"]), st.floats(0, 1), st.sampled_from(["agents", "cells", "pooled"])),
    st.builds(StopRule, st.sampled_from(["change", "spread"]), st.floats(0, 0.6)),
    st.sampled_from([StopRule.parse(text) for text in ("ranking", "none", "rounds=1", "rounds=2")]),
)


class Debate(NamedTuple):
    """Random debates: how they are held, and the agents' replies."""

    n_agents: int
    n_candidates: int
    rounds: int
    told: Mapping[str, Any]
    seed: int
    levels: int
    """So many different scores are given, so that rankings repeat and rounds converge."""
    silent: float
    """How likely an agent abstains from a turn."""
    unreadable: float
    """How likely a turn fails."""

    def held(self, n_agents: int | None = None, **more: Any) -> Evaluation:
        """The debate of the first so many agents."""
        told: dict[str, Any] = {"rounds": self.rounds, "retries": 0, "templates": TEMPLATES, **self.told, **more}
        evaluator = DebateEvaluator(panel(n_agents or self.n_agents), abstain=True, **told)
        return drive(evaluator.flow(task(self.n_candidates), RunContext(self.seed)), self.reply)

    def reply(self, call: Generate) -> str:
        """A function of agent, round and candidate order."""
        texts = shown(call)
        key = [self.seed, call.info["round"], int(call.info["agent"][5:]), int(next(iter(texts.values()))[5:])]
        random = np.random.default_rng(key)
        if random.random() < self.unreadable:
            return "what?"
        is_silent = random.random() < self.silent
        scores = random.integers(0, self.levels, (len(texts), 2)).tolist()
        said = {
            label: {"comment": "", "scores": {f"c{k}": None if is_silent else scores[n][k] for k in range(2)}}
            for n, label in enumerate(texts)
        }
        return json.dumps({"overall": "", "candidates": said})


debates = st.builds(
    Debate,
    n_agents=st.integers(1, 4),
    n_candidates=st.integers(1, 4),
    rounds=st.integers(1, 4),
    told=st.fixed_dictionaries(
        {
            "mode": st.sampled_from(["sequential", "simultaneous", "independent"]),
            "candidate_order": st.sampled_from(["shuffle", "rotate", "balanced"]),
            "method": st.sampled_from(["article", "weighted_mean", "mk1"]),
            "weights": st.sampled_from([(1.0, 1.0), (1.0, 0.0), (0.5, 2.0)]),
            "quorum": st.sampled_from([None, 1]),
            "min_rounds": st.integers(1, 3),
        }
    ),
    seed=st.integers(0, 2**32 - 1),
    levels=st.integers(1, 11),
    silent=st.sampled_from([0.0, 0.3, 0.9]),
    unreadable=st.sampled_from([0.0, 0.1, 0.5]),
)


def judged(evaluation: Evaluation) -> Judged:
    asked = task_data(task(len(evaluation.scores)))
    return as_judged("t1", asked, json.loads(json.dumps(evaluation.to_dict())))


def replay(debate: Debate, **recorded: Any) -> Replay:
    evaluation = debate.held(**recorded)
    described = DebateEvaluator(panel(debate.n_agents), rounds=debate.rounds, **debate.told, **recorded).describe()
    aggregation = Aggregation.of_described(described)
    assert aggregation is not None
    nothing = [np.zeros((debate.rounds, debate.n_agents))] * (len(evaluation.members) or 1)
    return Replay(judged(evaluation), aggregation, nothing)


def assert_same(found: Replay, live: Evaluation, rule: StopRule, n_agents: int) -> None:
    outcome = found.outcome(rule, n_agents)
    np.testing.assert_array_equal(outcome.scores, live.scores)
    assert choice_of(outcome.scores) == live.choice
    assert outcome.rounds == tuple(each.rounds_run for each in live.members or [live])
    assert outcome.undecided == 0


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(debates, rules)
def test_a_rule_tried_on_recorded_rounds_gives_what_a_debate_under_it_gives(debate: Debate, rule: StopRule) -> None:
    assert_same(replay(debate, convergence=None), debate.held(stop_rule=str(rule)), rule, debate.n_agents)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(debates, rules, st.data())
def test_agents_who_hear_nobody_are_as_good_as_recorded_alone(debate: Debate, rule: StopRule, data: Any) -> None:
    n = data.draw(st.integers(1, debate.n_agents))
    debate = debate._replace(told={**debate.told, "mode": "independent"})
    assert_same(replay(debate, convergence=None), debate.held(n, stop_rule=str(rule)), rule, n)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(debates, rules, rules)
def test_a_debate_that_ended_too_early_is_undecided_and_no_other(debate: Debate, own: StopRule, rule: StopRule) -> None:
    found, live = replay(debate, stop_rule=str(own)), debate.held(stop_rule=str(rule))
    outcome = found.outcome(rule, debate.n_agents)
    rounds = tuple(each.rounds_run for each in live.members or [live])
    assert outcome.undecided >= sum(now > then for now, then in zip(rounds, outcome.rounds, strict=True))
    if not outcome.undecided:
        assert_same(found, live, rule, debate.n_agents)


# ---- runs


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    return scripted_run(tmp_path_factory.mktemp("run"), TASKS, DebateEvaluator("general", convergence=None))


def trial(found: Stopping, rule: str, agents: int = 3) -> Trial:
    [one] = [each for each in found.trials if (each.rule, each.agents) == (rule, agents)]
    return one


@pytest.mark.parametrize("rule", RULES)
def test_a_run_under_the_rule_chooses_and_decodes_what_was_tried(
    tmp_path: Path, recorded: JudgedRun, rule: str
) -> None:
    tried = StopRule.parse(rule)
    aggregation = Aggregation.of_run(recorded)
    assert aggregation is not None
    live = scripted_run(tmp_path, TASKS, DebateEvaluator("general", stop_rule=rule))
    for replayed, now in zip(replays_of(recorded, aggregation), live.tasks, strict=True):
        outcome = replayed.outcome(tried, 3)
        np.testing.assert_array_equal(outcome.scores, now.scores)
        assert (outcome.rounds, outcome.tokens) == ((len(now.cv),), now.usage.completion_tokens)
    found, again = try_rules(recorded, [tried]).trials[0], try_rules(live, [tried]).recorded
    assert (found.accuracy, found.rounds, found.tokens) == (again.accuracy, again.rounds, again.tokens)


@pytest.mark.parametrize(
    "told",
    [
        {"mode": "simultaneous"},
        {"candidate_order": "balanced"},
        {"candidate_order": "balanced", "mode": "simultaneous", "convergence": 0.4},
        {"readout": "cells"},
    ],
    ids=lambda told: ",".join(map(str, told.values())),
)
def test_every_decoded_token_belongs_to_one_turn(tmp_path: Path, told: dict[str, Any]) -> None:
    run = scripted_run(tmp_path, TASKS, DebateEvaluator("general", **told))
    aggregation = Aggregation.of_run(run)
    assert aggregation is not None
    for replayed in replays_of(run, aggregation):
        assert replayed.recorded.tokens == replayed.task.usage.completion_tokens


def test_what_is_read_silently_belongs_to_no_turn(tmp_path: Path, recorded: JudgedRun) -> None:
    silent = scripted_run(tmp_path, TASKS, DebateEvaluator("general", convergence=None, silent_readouts=True))
    assert try_rules(silent).recorded.tokens == try_rules(recorded).recorded.tokens


def test_the_first_round_of_the_first_agents_is_what_they_say_alone(recorded: JudgedRun) -> None:
    found = try_rules(recorded)
    assert trial(found, "rounds=1", 2).is_exact
    assert not trial(found, "none", 2).is_exact
    assert trial(found, "rounds=1", 1).tokens < trial(found, "rounds=1", 2).tokens < trial(found, "rounds=1").tokens


def test_the_grid_holds_every_kind_of_rule_and_every_size(recorded: JudgedRun) -> None:
    found = try_rules(recorded)
    kinds = {each.rule.partition("=")[0] for each in found.trials}
    assert kinds == {"cv", "ranking", "change", "spread", "rounds", "none"}
    assert {each.agents for each in found.trials} == {1, 2, 3}
    json.dumps(plain(found), allow_nan=False)


def test_rules_with_sizes_are_tried_with_all_agents_too(recorded: JudgedRun) -> None:
    found = try_rules(recorded, [StopRule.parse("ranking")], [1])
    assert [(each.rule, each.agents) for each in found.trials] == [("ranking", 3), ("ranking", 1)]
    only_sizes = try_rules(recorded, [], [2])
    assert [(each.rule, each.agents) for each in only_sizes.trials] == [("rounds=1", 2), ("none", 2)]


def test_debates_that_their_own_rule_ended_are_no_evidence_for_a_longer_one(tmp_path: Path) -> None:
    run = scripted_run(tmp_path, TASKS, DebateEvaluator("general", stop_rule="rounds=1"))
    found = try_rules(run, [StopRule.parse("rounds=2"), StopRule.parse("rounds=1")])
    assert [each.undecided for each in found.trials] == [6, 0]
    assert found.cheapest is found.recorded


def test_the_cheapest_rule_within_a_point_of_the_best_is_named(recorded: JudgedRun) -> None:
    found = try_rules(recorded, [StopRule.parse(f"rounds={n}") for n in (1, 2, 3)])
    right = {each.rule: each.accuracy.estimate for each in found.trials}
    assert found.best == max(right.values())
    assert found.cheapest is not None
    near = [each for each in (found.recorded, *found.trials) if each.accuracy.estimate >= found.best - 0.01]
    assert found.cheapest.tokens == min(each.tokens for each in near)


def test_without_labels_the_choice_is_held_against_that_of_the_recorded_debates(tmp_path: Path) -> None:
    tasks = [{**each, "metadata": {}} for each in TASKS]
    found = try_rules(scripted_run(tmp_path, tasks, DebateEvaluator("general", convergence=None)))
    assert (found.labeled, found.best, found.recorded.same_choice.estimate) == (0, 1.0, 1.0)
    assert found.cheapest is not None
    assert found.cheapest.same_choice.estimate >= 0.99


def test_a_run_without_debates_is_refused_and_so_is_a_panel_that_is_too_large(
    tmp_path: Path, recorded: JudgedRun
) -> None:
    with pytest.raises(InputError, match="holds no debates"):
        try_rules(scripted_run(tmp_path, TASKS, ValueEvaluator()))
    with pytest.raises(InputError, match="the panel has 3 agents, not 4"):
        try_rules(recorded, [], [4])
