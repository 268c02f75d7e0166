"""What the bundled judge is measured with: held-out questions, split memories, foreign tasks, how they are counted."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from judging.arms import Arms
from judging.facts import Fact, is_held_out, newest
from judging.harder import harder, known_facts
from judging.hidden import hidden_profile, misled, mute_templates
from judging.limits import is_told, outside
from judging.outside import outside_task
from judging.outside_held_out import NEAR, OUTSIDE, Family, draw
from judging.profiles import GROUP, SPLIT, Case, hidden_cases, memories, misled_cases, shuffled
from judging.questions import reaches_24
from judging.running import held_out, rule_questions
from judging.small_worlds import Judged, constant, right_judgments, stepped, valued, voted
from judging.talk import PERSONAS, say
from judging.world import Question, make_question

from debate import Evaluation, bundled_judge
from debate.backends import Call, Scripted
from debate.templates import Templates
from debate.types import Transcript, Turn

N = 3 * GROUP + 1
FACT = re.compile(r"(\w+)(?: \((\d+)\))? is (?:([a-z]+)\+)?(\d+)")


def facts_of(case: Case) -> list[Fact]:
    return [*case.question.facts, *case.question.stale]


# ---- the old world


def test_held_out_questions_have_two_to_six_candidates_in_equal_numbers_and_one_best() -> None:
    questions = held_out(1, 100)
    assert Counter(len(question.replies) for question in questions) == dict.fromkeys(range(2, 7), 20)
    assert all(question.replies[question.best].value == question.answer for question in questions)


def test_rules_that_are_measured_with_occur_in_no_training_and_a_name_has_one_number() -> None:
    questions, counts = rule_questions(1, 100)
    assert len(questions) == 100
    for question in questions:
        assert question.rule is not None
        assert is_held_out(*question.rule)
        assert counts[question.rule[0]] == question.rule[1]


# ---- hidden profiles


@pytest.mark.parametrize("cases", [hidden_cases(1, N), misled_cases(1, N)], ids=["hidden", "misled"])
def test_no_fact_occurs_in_training_and_a_name_means_one_thing_in_its_group(cases: list[Case]) -> None:
    groups: dict[int, list[Case]] = {}
    for case in cases:
        assert all(is_held_out(fact.name, fact.number) for fact in facts_of(case))
        groups.setdefault(case.group, []).append(case)
    assert [len(group) for group in groups.values()] == [GROUP, GROUP, GROUP, 1]
    for group in groups.values():
        names = [name for case in group for name in {fact.name for fact in facts_of(case)}]
        names += [fact.name for case in group for decoys in case.decoys for fact in decoys]
        assert len(names) == len(set(names))


def test_hidden_profiles_are_of_all_shapes_and_of_two_to_four_agents_mostly_in_order() -> None:
    cases = hidden_cases(1, 300)
    assert Counter(case.shape for case in cases) == dict.fromkeys(SPLIT, 60)
    sizes = Counter(len(case.agents) for case in cases)
    assert 180 <= sizes[3] <= 240
    assert min(sizes[2], sizes[4]) >= 25
    in_order = sum(case.agents == PERSONAS[: len(case.agents)] for case in cases)
    assert 180 <= in_order <= 250


def test_all_agents_together_know_enough_and_none_of_them_does_alone() -> None:
    for case in hidden_cases(2, N):
        together = newest(fact for held in case.held for fact in held)
        assert case.question.answer_knowing(together) == case.question.answer
        assert sum(map(len, case.held)) == len(case.question.facts)
        assert max(map(len, case.held)) == (1 if len(case.agents) >= len(case.question.facts) else 2)
        for held, decoys in zip(case.held, case.decoys, strict=True):
            assert case.question.answer_knowing(newest((*held, *decoys))) is None


def test_of_three_agents_one_is_misled_another_knows_better_and_the_third_knows_nothing() -> None:
    places: set[tuple[int, int]] = set()
    for case in misled_cases(1, N):
        answers = [case.question.answer_knowing(newest(held)) for held in case.held]
        right, nothing = answers.index(case.question.answer), answers.index(None)
        places.add((right, nothing))
        [wrong] = [answer for answer in answers if answer not in (None, case.question.answer)]
        assert wrong in [reply.value for reply in case.question.replies]
        everything = newest(fact for held in case.held for fact in held)
        assert case.question.answer_knowing(everything) == case.question.answer
    assert len(places) == 6


def test_memories_hold_every_fact_once_where_its_agent_looks_and_a_decoy_for_each() -> None:
    cases = hidden_cases(3, GROUP)
    held = memories("hidden", cases)
    for case in cases:
        for agent, own, decoys in zip(case.agents, case.held, case.decoys, strict=True):
            assert {fact.text for fact in (*own, *decoys)} <= set(held[f"hidden/0/{agent}"])
            assert len(decoys) == len(case.question.facts)
    texts = [text for collection in held.values() for text in collection]
    assert len(texts) == len(set(texts))


def test_shuffled_memories_hold_as_much_and_nothing_that_fits() -> None:
    cases = hidden_cases(4, N)
    others = shuffled(cases)
    for case, other in zip(cases, others, strict=True):
        assert (other.question, other.agents, other.decoys) == (case.question, case.agents, case.decoys)
        assert [len(held) for held in other.held] == [len(held) for held in case.held]
    for group in range(3):
        asked = {name for case in cases if case.group == group for _, name in case.question.terms if name}
        told = {fact.name for other in others if other.group == group for held in other.held for fact in held}
        assert not asked & told


def reasoner(questions: list[Question]) -> Scripted:
    """A judge that knows what it recalls and what it hears, and no more."""
    by_text = {question.x: question for question in questions}

    def reply(call: Call) -> str:
        parts = re.split(r"<\|(\w+)\|>", call.messages[1]["content"])
        pieces = list(zip(parts[1::2], parts[2::2], strict=True))
        question = by_text[pieces[0][1]]
        texts = [text[2:] for mark, text in pieces if mark == "candidate"]
        shown = replace(question, replies=tuple(next(r for r in question.replies if r.text == t) for t in texts))
        told = "\n".join(text for mark, text in pieces if mark in ("turn", "memory"))
        known = newest(read_fact(*found) for found in FACT.findall(told))
        said = say(shown, question.answer_knowing(known), 2, first=False, known=known)
        return said.reply(tuple("ABCDEF"[: len(texts)]))

    return Scripted(reply)


def read_fact(name: str, year: str, of: str, number: str) -> Fact:
    return Fact(name, int(number), of, int(year) if year else None)


def test_who_combines_what_is_heard_and_recalled_is_right_in_debates_alone() -> None:
    cases = hidden_cases(6, 10)
    with Arms(bundled_judge.model_path(), 6, reasoner([case.question for case in cases])) as arms:
        found = hidden_profile(arms, 10)
    assert found["recalled"]["share"] >= 0.7
    assert found["debate"]["share"] >= 0.7
    for arm in ("silent", "single", "shuffled", "without_comments"):
        assert found[arm]["share"] <= 0.4  # style may break a tie
        assert found[arm]["ties_shared"]["mean"] == pytest.approx(found["unknowing"]["mean"], abs=0.1)
    assert found["single_all"]["share"] >= 0.3
    assert found["debate_minus_silent"]["mean"] >= 0.3
    assert set(found["by_shape"]) == set(SPLIT)
    assert found["failed"] == 0


def test_who_prefers_the_newer_fact_is_right_once_it_is_told() -> None:
    cases = misled_cases(7, 10)
    with Arms(bundled_judge.model_path(), 7, reasoner([case.question for case in cases])) as arms:
        found = misled(arms, 10)
    assert found["debate"]["share"] >= 0.5
    assert found["silent"]["share"] == 0


def test_of_a_turn_whose_words_are_unheard_the_scores_are_shown_alone(tmp_path: Path) -> None:
    templates = Templates(mute_templates(tmp_path))
    turn = {
        "agent": "Critic",
        "round": 1,
        "overall": "blorp is 7",
        "candidates": [{"label": "A", "comment": "9 holds", "scores": [{"value": 9}, {"value": 8}]}],
    }
    block = templates.render("debate/turn.j2", turn)
    assert "".join(segment.text for segment in block) == "<|turn|>Critic 1:<|of|>A 9 8"


# ---- outside


@pytest.mark.parametrize("families", [OUTSIDE, NEAR], ids=["outside", "near"])
def test_foreign_tasks_are_all_different_of_at_least_twenty_families_and_none_is_of_training(
    families: tuple[Family, ...],
) -> None:
    drawn = draw(Random(1), families, 1000)
    assert len({name for name, *_ in drawn}) == len(families) >= 20
    texts = {x for _, x, _ in drawn}
    assert len(texts) == 1000
    random = Random(2)
    assert not texts & {outside_task(random)[0] for _ in range(5000)}
    assert not texts & {make_question(random).x for _ in range(5000)}
    assert all(2 <= len(candidates) == len(set(candidates)) <= 6 for *_, candidates in drawn)


def test_families_outside_and_near_are_others() -> None:
    assert not {family.name for family in OUTSIDE} & {family.name for family in NEAR}
    assert not {form for family in OUTSIDE for form in family.forms} & {form for f in NEAR for form in f.forms}


def evaluation(scores: list[float], *, n_heard: int = 2, **more: Any) -> Evaluation:
    """An evaluation of these scores by agents that gave these scores, too."""
    cells = np.array([[score] * 3 for score in scores])
    labels = {"ABCDEF"[j]: j for j in range(len(scores))}
    said = tuple(
        Turn(round=0, agent=name, labels=labels, scores=cells, overall="said", comments=("",) * len(scores))
        for name in PERSONAS[:n_heard]
    )
    given: dict[str, Any] = {"selected": None, "agents": PERSONAS[:n_heard], "transcript": Transcript(said)}
    return Evaluation(
        task_id="task",
        evaluator="debate",
        status="ok",
        scores=np.array(scores),
        probabilities=np.zeros(len(scores)),
        **{**given, **more},
    )


def test_a_foreign_task_is_told_where_all_abstained_and_not_where_somebody_gave_a_score() -> None:
    nan = float("nan")
    assert is_told(evaluation([nan, nan]))
    assert not is_told(evaluation([nan, 5.0], selected=1))
    assert not is_told(evaluation([nan, nan], n_heard=0))


def guarded(call: Call) -> str:
    """A judge that gives the middle of the scale, and abstains where it is asked about money or a third."""
    shown = call.messages[1]["content"]
    labels = re.findall(r"<\|candidate\|>(\w) ", shown)
    scores = dict.fromkeys(("accuracy", "relevance", "completeness"), 5)
    is_foreign = "currency" in shown or "third" in shown
    candidates = None if is_foreign else {label: {"comment": "said", "scores": scores} for label in labels}
    return json.dumps({"overall": "said", "candidates": candidates})


def test_foreign_tasks_are_counted_by_family_and_tasks_of_the_world_that_miss_a_score() -> None:
    inside = [evaluation([5.0, float("nan")], selected=0), evaluation([5.0, 4.0], selected=0)]
    with Arms(bundled_judge.model_path(), 1, Scripted(guarded)) as arms:
        found = outside(arms, 120, inside)
    assert found["inside"]["share"] == 0.5
    for part, families, own in (("outside", OUTSIDE, "capitals"), ("near_misses", NEAR, "halves")):
        told = found[f"{part}_by_family"]
        assert set(told) == {family.name for family in families}
        assert {name for name, share in told.items() if share} == {own}
        assert found[part]["n"] == 120


# ---- small worlds


def test_of_the_candidates_that_are_valued_as_many_are_right_as_wrong() -> None:
    items = valued(1, 40)
    kinds = {item.kind for item in items}
    assert kinds == {"sort", "common", "count", "24 of 2", "24 of 3"}
    for kind in kinds:
        truths = [truth for item in items if item.kind == kind for truth in item.truth]
        assert Counter(truths) == {True: 20, False: 20}
    for item in items:
        if item.kind == "24 of 2":
            left = item.candidates[0].partition("left: ")[2].rstrip(")")
            assert reaches_24([int(number) for number in left.split()]) == item.truth[0]


def test_half_of_the_last_steps_are_wrong_and_the_others_hold() -> None:
    items = stepped(1, 60)
    assert Counter(item.truth for item in items) == {(True,): 30, (False,): 30}
    for item in items:
        numbers = [int(number) for number in item.x.removeprefix("Total of ").rstrip("?").split()]
        steps = item.candidates[0].split("\n\n")
        totals = [sum(numbers[: n + 2]) for n in range(len(steps))]
        before = [numbers[0], *totals]
        expected = [f"{before[n]}+{numbers[n + 1]}={totals[n]}" for n in range(len(steps))]
        assert (steps == expected) == item.truth[0]
        assert steps[:-1] == expected[:-1]


def test_a_vote_has_two_to_six_candidates_of_which_one_is_best() -> None:
    items = voted(1, 20)
    assert Counter(len(item.candidates) for item in items) == dict.fromkeys(range(2, 7), 12)
    assert all(sum(item.truth) == 1 for item in items)


def test_a_judgment_is_right_that_lies_on_the_right_side_and_one_that_is_missing_is_not() -> None:
    pair = Judged("sort", "x", ("a", "b"), (True, False))
    assert right_judgments("value", pair, evaluation([9.0, 1.0])) == [True, True]
    assert right_judgments("value", pair, evaluation([5.0, float("nan")])) == [False, False]
    assert right_judgments("vote", pair, evaluation([10.0, 0.0], selected=0)) == [True]
    assert right_judgments("vote", pair, evaluation([5.0, 5.0], selected=0, tied=(0, 1))) == [False]
    wrong = Judged("step", "x", ("a\n\nb",), (False,))
    assert right_judgments("step", wrong, evaluation([-80.0], details={"steps": [[90.0, -80.0]]})) == [True]
    assert right_judgments("step", wrong, evaluation([float("nan")], details={"steps": [[90.0, None]]})) == [False]
    assert right_judgments("step", wrong, evaluation([float("nan")])) == [False]


def test_the_constant_predictor_says_what_is_most_often_right() -> None:
    items = [Judged("k", "x", ("a", "b"), (True, False)), Judged("k", "x", ("a", "b"), (True, False))]
    assert constant("value", items) == 0.5
    assert constant("vote", items) == 1.0


# ---- the harder mixture


def test_a_harder_question_has_two_nearly_right_candidates_beside_the_right_one_and_a_name_has_one_number() -> None:
    made = harder(1, 200)
    for question, _ in made:
        right = int(question.answer)
        near = [abs(int(reply.value) - right) <= 20 for reply in question.replies if reply.value]
        assert len(question.replies) == 4
        assert sum(near) == 3
        assert question.replies[question.best].value == question.answer
        assert question.kind == "rule" or min(question.numbers) >= 100
    facts = known_facts(made)
    assert len({fact.name for fact in facts}) == len(facts)
    assert {is_known for question, is_known in made if question.kind == "rule"} == {True, False}
