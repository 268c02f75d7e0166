"""The demo's tasks and what its agents remember: plain questions, agents that are misled, hidden profiles.

    PYTHONPATH=scripts:. python -m judging.demonstration    # writes the tasks of `debate demo` and memory/judge.jsonl

No pair of a name and a number occurs in training, and no name in two tasks, for all tasks share the agents' memories.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from debate.bundled_judge import demo_tasks
from judging.facts import Fact, is_held_out, look_alike
from judging.talk import PERSONAS
from judging.world import Kind, Question, make_question

REPOSITORY = Path(__file__).resolve().parents[2]
TASKS = demo_tasks()
MEMORY = REPOSITORY / "memory" / "judge.jsonl"
PLAIN, MISLED, HIDDEN = "plain questions", "stale memories", "hidden profiles"
"""The groups of tasks."""
AGENTS = PERSONAS[:3]
_PLAIN_KINDS: tuple[tuple[str, Kind], ...] = (
    ("sum", "add"), ("sum", "add"), ("difference", "sub"), ("largest", "max"), ("sorted", "sort"),
    ("by-a-rule", "rule"),
)  # fmt: skip
_SHAPES = ("two", "times", "three", "chain")


class Demonstration:
    """All tasks, and the memories that they need, from one seed.

    Attributes:
        tasks: rows of an eval set.
        questions: what the tasks are made of, by their ids.
        held: the facts that each agent remembers.
    """

    def __init__(self, seed: int = 3, plain: int = 18, misled: int = 12, hidden: int = 16) -> None:
        self._random = Random(f"demonstration-{seed}")
        self._taken: set[str] = set()
        self.tasks: list[dict[str, Any]] = []
        self.questions: dict[str, Question] = {}
        self.held: dict[str, list[Fact]] = {agent: [] for agent in AGENTS}
        for n in range(plain):
            self._add_plain(n)
        for n in range(misled):
            self._add_misled(n)
        for n in range(hidden):
            self._add_hidden(n)
        self._add_decoys()
        for facts in self.held.values():
            self._random.shuffle(facts)

    def memories(self) -> Iterable[dict[str, Any]]:
        """Rows of a file of memories."""
        about = {"kind": "semantic", "importance": 5, "created_at": "2026-01-01T00:00:00+00:00", "source": "built-in"}
        for agent, facts in self.held.items():
            yield from ({"collection": f"judge/{agent}", "text": fact.text} | about for fact in facts)

    def _add_plain(self, n: int) -> None:
        """A question that every agent can answer alone; the first one is a short sum without a carry."""
        name, kind = _PLAIN_KINDS[n % len(_PLAIN_KINDS)]
        question = next(each for each in self._questions(n, kind) if n or _has_no_carry(each))
        for agent in AGENTS:
            self._give(agent, question.facts)
        before = sum(row["id"].startswith(name) for row in self.tasks)
        topic = "a rule in memory" if kind == "rule" else kind
        self._add(f"{name}-{before + 1}", question, PLAIN, topic)

    def _add_misled(self, n: int) -> None:
        """A fact that changed: one agent remembers what it was, another one what it is."""
        question = next(self._questions(n, "hidden", "dated"))
        stale, new = self._agents(2) if n else AGENTS[:2]
        self._give(stale, question.stale)
        self._give(new, question.facts)
        self._add(f"corrected-{n + 1}", question, MISLED, "dated")

    def _add_hidden(self, n: int) -> None:
        """A question whose answer no agent knows alone; for the first one, the first two agents do together.

        A chain is told in the order of the speakers: after a first round in which nobody could say more, all agree.
        """
        shape = _SHAPES[n % len(_SHAPES)]
        question = next(each for each in self._questions(n, "hidden", shape) if each.has_a_rival)
        agents = self._agents(len(question.facts)) if n else AGENTS[:2]
        if shape == "chain":
            agents = sorted(agents, key=AGENTS.index)
        for agent, fact in zip(agents, question.facts, strict=True):
            self._give(agent, [fact])
        self._add(f"hidden-{n + 1}", question, HIDDEN, shape)

    def _questions(self, n: int, kind: Kind, shape: str | None = None) -> Iterator[Question]:
        """Questions of new names with three candidates, four, five, six or two, in turn; the first one put plainly."""
        while True:
            question = make_question(self._random, kind, n=2 + (n + 1) % 5, held_out=True, shape=shape)
            facts = (*question.facts, *question.stale)
            names = {fact.name for fact in facts}
            is_new = not names & self._taken and all(is_held_out(fact.name, fact.number) for fact in facts)
            if is_new and (n or all(reply.style == "plain" for reply in question.replies)):
                yield question

    def _agents(self, n: int) -> Sequence[str]:
        """Some of the agents in any order."""
        return self._random.sample(AGENTS, n)

    def _give(self, agent: str, facts: Sequence[Fact]) -> None:
        self.held[agent] += facts
        self._taken |= {fact.name for fact in facts}

    def _add_decoys(self) -> None:
        """For the names that are needed others that look like them, as far as there are, in the memory of any agent."""
        for fact in [fact for question in self.questions.values() for fact in question.facts]:
            name = look_alike(self._random, fact.name)
            numbers = [number for number in range(2, 20) if is_held_out(name, number)]
            if numbers and name not in self._taken:
                self._give(self._random.choice(AGENTS), [Fact(name, self._random.choice(numbers))])

    def _add(self, task_id: str, question: Question, group: str, topic: str) -> None:
        metadata: dict[str, Any] = {"group": group, "topic": topic, "level": question.level, "best": question.best}
        if question.facts:
            metadata["needs"] = [fact.text for fact in question.facts]
        candidates = [reply.text for reply in question.replies]
        self.questions[task_id] = question
        self.tasks.append({"id": task_id, "x": question.x, "candidates": candidates, "metadata": metadata})


def _has_no_carry(question: Question) -> bool:
    return question.level == "easy" and 20 < sum(question.numbers) < 100


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    made = Demonstration()
    write(TASKS, made.tasks)
    write(MEMORY, made.memories())
