"""A mixture that is hard for the bundled judge: mostly three digits, and wrong candidates that are nearly right.

Sums and differences of three digits, and sums by a rule that the memory holds or lacks. Beside the right candidate
stand two that are nearly right, and one that is plainly wrong or about something else. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from judging.facts import Fact
from judging.world import Kind, Question, Reply, make_question

RULES, KNOWN = 0.2, 0.7
"""Share of the questions that need a rule, and of these the share of which the rule is known."""
_NEAR = (-20, -10, -2, -1, 1, 2, 10, 20)


def harder(seed: int, n: int) -> list[tuple[Question, bool]]:
    """Questions, and whether the rule that each may need is known. In all of them a name counts as one number."""
    random = Random(f"harder-{seed}")
    counts: dict[str, int] = {}
    return [_one(random, counts) for _ in range(n)]


def known_facts(questions: list[tuple[Question, bool]]) -> list[Fact]:
    """What the names of all questions count as, each once."""
    return list(dict.fromkeys(fact for question, _ in questions for fact in question.facts))


def _one(random: Random, counts: dict[str, int]) -> tuple[Question, bool]:
    if random.random() < RULES:
        return _with_near(random, _rule(random, counts)), random.random() < KNOWN
    return _with_near(random, _long(random)), True


def _rule(random: Random, counts: dict[str, int]) -> Question:
    while True:
        question = make_question(random, "rule", n=4)
        [fact] = question.facts
        if counts.setdefault(fact.name, fact.number) == fact.number:
            return question


def _long(random: Random) -> Question:
    """A sum or a difference of two numbers with three digits each."""
    kind: Kind = random.choice(("add", "sub"))
    while True:
        question = make_question(random, kind, n=4)
        if all(100 <= number <= 999 for number in question.numbers):
            return question


def _with_near(random: Random, question: Question) -> Question:
    """The same question with other candidates: the right one, two nearly right ones and one that is neither."""
    right = int(question.answer)
    near = random.sample([right + step for step in _NEAR if right + step >= 0], 2)
    far = random.choice([each for each in range(2 * right + 30) if abs(each - right) > 20])
    replies = [Reply(f"It is {value}.", str(value), "plain") for value in (right, *near, far)]
    if random.random() < 0.3:
        replies[-1] = Reply("Rain is wet.", "", "off")
    order = random.sample(range(4), 4)
    return replace(question, replies=tuple(replies[i] for i in order), best=order.index(0))
