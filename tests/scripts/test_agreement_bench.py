"""The tasks of `scripts/bench agreement`: what makes them hidden profiles."""

from __future__ import annotations

from random import Random

from benchmarks.agreement import World, rows
from judging.facts import Fact, is_held_out


def test_no_agent_remembers_all_that_a_hidden_profile_needs_and_a_name_means_one_thing() -> None:
    world = World(Random("a test"))
    questions = [world.hidden(n) for n in range(24)]
    for question in questions:
        facts: tuple[Fact, ...] = question.facts
        assert len({world.holder[fact.name] for fact in facts}) > 1
        assert all(world.facts[fact.name] == fact and is_held_out(fact.name, fact.number) for fact in facts)


def test_half_of_the_tasks_are_hidden_profiles_and_every_one_has_a_label() -> None:
    found = rows(World(Random("another")), 20)
    assert len({row["id"] for row in found}) == 20
    assert sum(row["metadata"]["group"] == "hidden profiles" for row in found) == 10
    assert all(0 <= row["metadata"]["best"] < len(row["candidates"]) for row in found)
