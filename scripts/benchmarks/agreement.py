"""Show what `debate agree` says of the bundled judge: held-out tasks, half of them hidden profiles, with the control.

    scripts/bench agreement [--tasks 300] [--seed 1] [--model FOLDER] [--out FOLDER]

All tasks share one memory per agent, in which a name means one thing. Of a hidden profile, no agent remembers all that
is needed; no pair of a name and a number occurs in training. Prints the figures of the control, and the page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from judging.demonstration import AGENTS
from judging.facts import Fact
from judging.world import DEBATED, Question, make_question

from debate.bundled_judge import BUILT_IN
from debate.files import json_text
from debate.memory import HashingEmbedder, MemoryStore

SHAPES = ("two", "times", "three", "chain")


@dataclass
class World:
    """What the names count as, and who remembers it."""

    random: Random
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    holder: dict[str, str] = field(default_factory=dict[str, str])

    def hidden(self, n: int) -> Question:
        """A question of facts that different agents remember, none of which contradicts an earlier one."""
        while True:
            question = make_question(self.random, "hidden", held_out=True, shape=SHAPES[n % len(SHAPES)])
            if question.has_a_rival and self._takes(question):
                return question

    def plain(self, n: int) -> Question:
        """A question that needs no memory."""
        return make_question(self.random, DEBATED[n % len(DEBATED)], held_out=True)

    def _takes(self, question: Question) -> bool:
        if any(self.facts.get(fact.name, fact) != fact for fact in question.facts):
            return False
        new = {fact.name: fact for fact in question.facts if fact.name not in self.facts}
        holder = {name: self.random.choice(AGENTS) for name in new} | self.holder
        if len({holder[fact.name] for fact in question.facts}) == 1:
            return False
        self.facts |= new
        self.holder = holder
        return True


def rows(world: World, n: int) -> list[dict[str, Any]]:
    """An eval set of n labeled tasks, as many hidden profiles as plain questions."""
    made: dict[str, Callable[[int], Question]] = {"hidden profiles": world.hidden, "plain questions": world.plain}
    found: list[dict[str, Any]] = []
    for i in range(n):
        group = list(made)[i % 2]
        question = made[group](i // 2)
        texts = [reply.text for reply in question.replies]
        metadata = {"group": group, "topic": question.kind, "best": question.best}
        found.append({"id": f"{group.split()[0]}-{i // 2}", "x": question.x, "candidates": texts, "metadata": metadata})
    return found


def measure(out: Path, model: str, n: int, seed: int) -> int:
    """Make the tasks and the memory in a folder, debate, and print the page; returns the exit code."""
    world, memory = World(Random(f"agreement-{seed}")), out / "memory.sqlite"
    tasks = rows(world, n)
    (out / "tasks.jsonl").write_text("".join(json_text(row) + "\n" for row in tasks), encoding="utf-8")
    with MemoryStore(memory, HashingEmbedder(), "exact") as store:
        for agent in AGENTS:
            store.add(
                f"judge/{agent}", [fact.text for name, fact in world.facts.items() if world.holder[name] == agent]
            )
    debate = [sys.executable, "-m", "debate"]
    flags = ["--model", model, "--profile", "judge", "--memory", str(memory), "--seed", str(seed)]
    flags += ["--convergence", "none", "--control", "--out", str(out / "run")]
    done = subprocess.run([*debate, "run", str(out / "tasks.jsonl"), *flags], check=False)
    if done.returncode not in (0, 3):
        return done.returncode
    return subprocess.run([*debate, "agree", str(out / "run")], check=False).returncode


def main() -> int:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default=BUILT_IN, help="folder of a judge")
    parser.add_argument("--out", type=Path, help="folder that keeps all; otherwise it is deleted afterwards")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        return measure(out, args.model, args.tasks, args.seed)
