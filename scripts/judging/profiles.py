"""Hidden profiles: questions whose facts are split over the memories of several agents, among look-alikes. Pure.

Tasks share memories in groups: an agent's collection holds its facts of all tasks of a group, and for every fact of a
task a look-alike's. In a group a name means one thing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from judging.facts import NAMES, Fact, look_alike
from judging.talk import PERSONAS
from judging.world import SHAPES, Question, make_question

GROUP = 4
"""Tasks whose facts are in the same memories."""
SPLIT = tuple(shape for shape in SHAPES if shape != "dated")
Held = tuple[tuple[Fact, ...], ...]


@dataclass(frozen=True)
class Case:
    """A question, who debates it, and what each of them has in memory of it."""

    question: Question
    shape: str
    agents: tuple[str, ...]
    held: Held
    """By agent: facts of the question, current or stale."""
    decoys: Held
    """By agent: what else names like those count as."""
    group: int


def hidden_cases(seed: int, n: int) -> list[Case]:
    """Tasks of which no agent knows enough, as many of each shape as of another."""
    return _cases(Random(f"held-out-hidden-{seed}"), n, SPLIT, _split)


def misled_cases(seed: int, n: int) -> list[Case]:
    """Tasks with three agents: one holds a stale fact, another one the current fact, the third nothing of it."""
    return _cases(Random(f"held-out-misled-{seed}"), n, ("dated",), _misled)


def shuffled(cases: Sequence[Case]) -> list[Case]:
    """The same tasks with the memories of others: each fact is told of a name that none of these asks for."""
    random = Random("shuffled")
    taken: defaultdict[int, set[str]] = defaultdict(set)
    for case in cases:
        taken[case.group] |= {fact.name for held in (*case.held, *case.decoys) for fact in held}
    return [_renamed(random, case, taken[case.group]) for case in cases]


def memories(part: str, cases: Iterable[Case]) -> dict[str, list[str]]:
    """The texts of all collections, by name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        for agent, *held in zip(case.agents, case.held, case.decoys, strict=True):
            found[collection(part, case, agent)] += [fact.text for facts in held for fact in facts]
    return dict(found)


def collection(part: str, case: Case, agent: str) -> str:
    """The name of an agent's collection in the group of a case."""
    return f"{part}/{case.group}/{agent}"


def _cases(
    random: Random, n: int, shapes: Sequence[str], split: Callable[[Random, Question], tuple[tuple[str, ...], Held]]
) -> list[Case]:
    found: list[Case] = []
    taken: set[str] = set()
    for i in range(n):
        if i % GROUP == 0:
            taken = set()
        question = _question(random, shape := shapes[i % len(shapes)], taken)
        facts = (*question.facts, *question.stale)
        taken |= {fact.name for fact in facts}
        agents, held = split(random, question)
        decoys = tuple(tuple(_decoy(random, fact, taken) for fact in question.facts) for _ in agents)
        found.append(Case(question, shape, agents, held, decoys, i // GROUP))
    return found


def _question(random: Random, shape: str, taken: set[str]) -> Question:
    """A question whose names are new in its group, whose facts are in no training, and which manner does not decide."""
    while True:
        question = make_question(random, "hidden", held_out=True, shape=shape)
        names = {fact.name for fact in (*question.facts, *question.stale)}
        if not taken & names and question.has_a_rival:
            return question


def _agents(random: Random, n: int) -> tuple[str, ...]:
    """Some of the agents: the first ones in their order, or in a third of all cases any in any order."""
    return tuple(random.sample(PERSONAS, n)) if random.random() < 1 / 3 else PERSONAS[:n]


def _split(random: Random, question: Question) -> tuple[tuple[str, ...], Held]:
    """Each fact to another agent, as far as there are enough."""
    agents = _agents(random, random.choices((2, 3, 4), (15, 70, 15))[0])
    order = random.sample(range(len(agents)), len(agents))
    held: list[list[Fact]] = [[] for _ in agents]
    for i, fact in enumerate(random.sample(question.facts, len(question.facts))):
        held[order[i % len(agents)]].append(fact)
    return agents, tuple(map(tuple, held))


def _misled(random: Random, question: Question) -> tuple[tuple[str, ...], Held]:
    agents = _agents(random, 3)
    held: Held = (question.stale, question.facts, ())
    return agents, tuple(random.sample(held, 3))


def _decoy(random: Random, fact: Fact, taken: set[str]) -> Fact:
    name = look_alike(random, fact.name, taken)
    taken.add(name)
    return replace(fact, name=name, number=random.randint(2, 9), of="")


def _renamed(random: Random, case: Case, taken: set[str]) -> Case:
    old = sorted({fact.name for held in case.held for fact in held})
    names = dict(zip(old, random.sample(sorted(set(NAMES) - taken), len(old)), strict=True))
    taken |= set(names.values())
    held = tuple(
        tuple(replace(fact, name=names[fact.name], of=names.get(fact.of, fact.of)) for fact in facts)
        for facts in case.held
    )
    return replace(case, held=held)
