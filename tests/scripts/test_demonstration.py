"""The demo: its files are those of its seed, and judged by agents that reason well it shows what it promises."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache

import pytest
from judging.demonstration import AGENTS, HIDDEN, MEMORY, MISLED, PLAIN, TASKS, Demonstration
from judging.facts import Fact, is_held_out, newest
from judging.talk import PERSONAS, say

from debate.backends import Call
from tests.command_line import debate

_FACT = re.compile(r"\b([a-z]+)(?: \((\d{4})\))? is (?:([a-z]+)\+)?(\d+)")


@cache
def demonstration() -> Demonstration:
    return Demonstration()


def ideal(call: Call) -> str:
    """What an agent says that knows what it recalls and was told, and nothing else, and makes no mistake."""
    question = demonstration().questions[call.info["task_id"]]
    labels: dict[str, int] = call.info["labels"]
    found: list[tuple[str, ...]] = _FACT.findall(call.messages[-1]["content"])
    known = newest(Fact(name, int(n), of, int(year) if year else None) for name, year, of, n in found)
    shown = replace(question, replies=tuple(question.replies[j] for j in labels.values()))
    agent, is_first = PERSONAS.index(call.info["agent"]), call.info["round"] == 0
    belief = question.answer_knowing(known)
    return say(shown, belief, agent, first=is_first, known=known if question.terms else None).reply(tuple(labels))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `debate demo` prints when its agents are ideal."""
    out = tmp_path_factory.mktemp("demo") / "out"
    backend = ["--backend", f"{__name__}:ideal", "--templates", "compact"]
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as monkeypatch, redirect_stdout(printed):
        assert debate(monkeypatch, "demo", *backend, "--out", out) == 0
    return printed.getvalue()


def right(shown: str, group: str) -> list[float]:
    """The share of a group's tasks that each arm judged rightly, in percent, from the table."""
    [row] = [line for line in shown.splitlines() if line.strip().startswith(group) and " % [" in line]
    return [float(each) for each in re.findall(r"([\d.]+) %", row)]


def test_the_files_are_those_that_the_generator_makes() -> None:
    tasks, memories = ([json.loads(line) for line in path.read_text().splitlines()] for path in (TASKS, MEMORY))
    assert tasks == demonstration().tasks
    assert memories == list(demonstration().memories())


def test_no_fact_of_the_demo_was_trained_on_and_no_name_means_two_things_in_one_memory() -> None:
    for agent in AGENTS:
        facts = demonstration().held[agent]
        assert all(is_held_out(fact.name, fact.number) for fact in facts)
        assert len({fact.name for fact in facts}) == len(facts)


def test_no_agent_alone_remembers_what_a_hidden_profile_needs() -> None:
    for row in demonstration().tasks:
        if row["metadata"]["group"] == HIDDEN:
            needed = set(row["metadata"]["needs"])
            assert not any(needed <= {fact.text for fact in held} for held in demonstration().held.values())


def test_hidden_profiles_are_found_by_ideal_agents_that_debate_and_by_no_others(shown: str) -> None:
    debated, silent, one = right(shown, HIDDEN)
    assert debated == 100
    assert max(silent, one) < 40, "all candidates tie, or nearly all"


def test_ideal_agents_correct_the_one_that_is_misled(shown: str) -> None:
    debated, silent, one = right(shown, MISLED)
    assert debated > 90, "now and then scores agree well enough before all have heard what is new"
    assert max(silent, one) < 70


def test_ideal_agents_need_no_debate_where_each_can_answer_alone(shown: str) -> None:
    assert right(shown, PLAIN) == [100, 100, 100]


def test_three_debates_are_shown_turn_by_turn_with_what_to_look_for(shown: str) -> None:
    parts = re.split(r"(?m)^\w+-1 ─+$", shown)[1:]
    assert len(parts) == 3
    assert all("right: candidate" in part for part in parts)
    assert parts[0].count("Critic") == 1, "the plain sum is settled in one round"
    assert "unknown" in parts[2]
