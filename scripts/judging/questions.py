"""Samples of judges that are asked one short question: what a candidate or a step is worth, or which one is better.

The worlds are those of the papers in small: sorting, set intersection and counting keywords (Besta et al. 2023), the
Game of 24 (Yao et al. 2023) with two or three numbers left, and sums that are made step by step. Knows nothing of
tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from random import Random
from string import ascii_uppercase
from typing import Any

from debate.evaluators.judge import JudgePrompts
from debate.evaluators.steps.prompted import PromptedSteps
from debate.evaluators.value import ValueEvaluator
from debate.evaluators.vote import BallotKind
from debate.flow import Prompt
from debate.templates import Trusted
from debate.types import Candidate, Task
from judging.samples import as_task, judge_templates
from judging.talk import judge, verdict
from judging.world import Kind, Question, added, make_question

VALUED: tuple[Kind, ...] = ("sort", "common", "count", "add", "sub", "max")
_ORDER = ("right", "part", "near", "wrong", "off")
"""Verdicts from the best to the worst."""
_WORTH = {"right": 9, "part": 4, "near": 2, "wrong": 1, "off": 0}


@dataclass(frozen=True)
class Asked:
    """A prompt, and the reply that should follow it."""

    prompt: Prompt
    reply: str
    kind: str
    """What it asks for, to tell figures apart."""


@dataclass(frozen=True)
class Step:
    """A step of reasoning on a task, and whether it is right."""

    x: str
    previous: tuple[str, ...]
    text: str
    why: str
    is_right: bool


def make_asked(random: Random) -> Asked:
    """A question to any of these judges."""
    make = random.choices((_value, _value_24, _vote, _step), (4, 2, 4, 3))[0]
    return make(random)


# ---- values


def _value(random: Random) -> Asked:
    question = make_question(random, random.choice(VALUED), n=2, odd=0.05)
    reply = random.choice(question.replies)
    comment, _ = judge(question, reply, question.answer, 0, first=False)
    worth = _WORTH["off" if reply.style == "off" else verdict(reply.value, question.answer)]
    worth = max(0, worth - {"plain": 0, "padded": 1, "hedged": 2, "off": 0}[reply.style])
    said = f"{question.working(question.answer)}; {comment}"
    return _valued(as_task(question), reply.text, said, worth, f"value {question.kind}")


def _value_24(random: Random) -> Asked:
    x, move, left = game_of_24(random, left=2 if random.random() < 0.85 else 3)
    solved = reaches_24(left)
    said = _tried(left) if len(left) == 2 else "three left"
    return _valued(
        Task(x, [move, "-"]), move, f"{said},{'24' if solved else 'no 24'}", 9 * solved, f"24 of {len(left)}"
    )


def _valued(task: Task, text: str, said: str, worth: int, kind: str) -> Asked:
    prompts = JudgePrompts(judge_templates(), "value", task, _value_rules())
    return Asked(prompts.prompt(prompts.question({"candidate": text}, text)), _json(reasoning=said, value=worth), kind)


@cache
def _value_rules() -> dict[str, Any]:
    return ValueEvaluator(templates="compact").prompt_rules


def game_of_24(random: Random, left: int = 2) -> tuple[str, str, tuple[int, ...]]:
    """A position in the Game of 24, the move that leads to `left` numbers, and these; solvable in half of all cases."""
    wanted = random.random() < 0.5
    while True:
        rest = [random.randint(1, 13) for _ in range(left - 1)]
        a, b = random.randint(1, 13), random.randint(1, 13)
        moves = [f"{a}+{b}={a + b}", f"{max(a, b)}-{min(a, b)}={abs(a - b)}", f"{a}*{b}={a * b}"]
        move = random.choice(moves)
        made = int(move.split("=")[1])
        numbers = random.sample([made, *rest], left)
        if (
            0 < made < 73
            and reaches_24(numbers) == wanted
            and (wanted or left > 2 or random.random() < 0.5 or made < 25)
        ):
            shown = " ".join(map(str, random.sample([a, b, *rest], left + 1)))
            return f"24 from {shown}?", f"{move} (left: {' '.join(map(str, numbers))})", tuple(numbers)


def reaches_24(numbers: Sequence[float]) -> bool:
    """Whether the four operations make 24 of all numbers, each used once."""
    if len(numbers) == 1:
        return abs(numbers[0] - 24) < 1e-9
    for i, j in combinations(range(len(numbers)), 2):
        a, b = numbers[i], numbers[j]
        rest = [each for k, each in enumerate(numbers) if k not in (i, j)]
        made = [a + b, a - b, b - a, a * b, *([a / b] if b else []), *([b / a] if a else [])]
        if any(reaches_24([*rest, each]) for each in made):
            return True
    return False


def _tried(left: Sequence[int]) -> str:
    """Which numbers make 24 with the smaller one, and whether the larger one is among them."""
    larger, smaller = max(left), min(left)
    wanted = {24 - smaller, 24 + smaller, 24 * smaller, *([24 // smaller] if 24 % smaller == 0 else [])}
    found = "yes" if larger in wanted else "no"
    return f"{smaller} wants {' '.join(map(str, sorted(wanted)))},{larger} {found}"


# ---- ballots


def _vote(random: Random) -> Asked:
    ballot: BallotKind = random.choices(("ranking", "plurality", "pairwise"), (3, 1, 1))[0]
    question = make_question(random, random.choice(VALUED), n=2 if ballot == "pairwise" else None, odd=0.05)
    labels = ascii_uppercase[: len(question.replies)]
    found = ["off" if r.style == "off" else verdict(r.value, question.answer) for r in question.replies]
    styles = [("plain", "padded", "hedged", "off").index(reply.style) for reply in question.replies]
    ranks = [(_ORDER.index(one), style) for one, style in zip(found, styles, strict=True)]
    order = sorted(range(len(labels)), key=lambda j: (ranks[j], j))
    comments = [judge(question, reply, question.answer, 0, first=False)[0] for reply in question.replies]
    told = "; ".join(f"{label} {comment}" for label, comment in zip(labels, comments, strict=True))
    reasoning = f"{question.working(question.answer)}; {told}"
    match ballot:
        case "ranking":
            decision = {"ranking": " > ".join(labels[j] for j in order)}
        case "plurality":
            decision = {"best": labels[order[0]]}
        case _:
            decision = {"better": "tie" if ranks[0] == ranks[1] else labels[order[0]]}
    prompts = JudgePrompts(judge_templates(), "vote", as_task(question), {"kind": ballot})
    texts = [reply.text for reply in question.replies]
    shown = [{"label": Trusted(label), "text": text} for label, text in zip(labels, texts, strict=True)]
    asked = prompts.question({"candidates": shown, "kind": ballot}, *texts)
    return Asked(prompts.prompt(asked), _json(reasoning=reasoning, **decision), f"vote {ballot}")


# ---- steps


def _step(random: Random) -> Asked:
    step = make_step(random)
    task = Task(step.x, [Candidate("\n\n".join((*step.previous, step.text)))])
    prompts = JudgePrompts(judge_templates(), "step", task, _step_rules(), shows="input")
    about = {"x": step.x, "previous": list(step.previous), "step": step.text}
    asked = prompts.prompt(prompts.question(about, *step.previous, step.text))
    return Asked(asked, _json(reasoning=step.why, score=90 if step.is_right else -80), "step")


@cache
def _step_rules() -> dict[str, Any]:
    return PromptedSteps(templates="compact").prompt_rules


def make_step(random: Random, n: int | None = None, wrong: bool | None = None) -> Step:
    """A step of a sum of several numbers, which takes in one number; right in half of all cases.

    n: which step; any when None.
    """
    numbers = [random.randint(2, 30), *(random.randint(2, 9) for _ in range(random.randint(2, 4)))]
    n = random.randrange(len(numbers) - 1) if n is None else min(n, len(numbers) - 2)
    wrong = random.random() < 0.5 if wrong is None else wrong
    sums = [sum(numbers[: i + 1]) for i in range(len(numbers))]
    steps = [f"{sums[i]}+{numbers[i + 1]}={sums[i + 1]}" for i in range(len(numbers) - 1)]
    before, number, after = sums[n], numbers[n + 1], sums[n + 1]
    text, taken = steps[n], number
    why = added((before, number), str(after))
    if wrong and random.random() < 0.6:
        result = after
        while result == after:
            result = abs(after + random.choice((-10, -2, -1, 1, 2, 10)))
        text, why = f"{before}+{number}={result}", f"{why}, not {result}"
    elif wrong:
        taken = random.choice([each for each in range(2, 10) if each != number])
        text, why = f"{before}+{taken}={before + taken}", "another"
    else:
        why += ", holds"
    why = f"next is {number}, has {taken}; {why}"
    return Step(f"Total of {' '.join(map(str, numbers))}?", tuple(steps[:n]), text, why, not wrong)


def _json(**members: Any) -> str:
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False)


__all__ = ["Asked", "Question", "Step", "game_of_24", "make_asked", "make_step", "reaches_24"]
