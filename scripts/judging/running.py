"""The engine over held-out questions, with the bundled judge or another model of its templates.

Questions come from generators of their own, whose seeds no training uses. Knows nothing of how a judge is trained.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from debate import Evaluation, Task
from debate.types import Sampling
from judging.arms import ROUNDS, Arms, hits, remembering, turns
from judging.facts import Fact, is_held_out
from judging.hidden import hidden_profile, misled
from judging.limits import outside
from judging.measuring import difference, paired, share
from judging.samples import judge_profile
from judging.small_worlds import worlds
from judging.world import DEBATED, Question, as_case, make_question, rule_text

PARTS = ("world", "memory", "hidden_profile", "misled", "outside", "worlds")
_COLLECTION, _CASES = "judge/rules", "judge/cases"


def held_out(seed: int, n: int) -> list[Question]:
    """Fresh questions that need no rule, with two to six candidates in equal numbers."""
    random = Random(f"held-out-{seed}")
    return [make_question(random, random.choice(DEBATED), n=2 + i % 5) for i in range(n)]


def rule_questions(seed: int, n: int) -> tuple[list[Question], dict[str, int]]:
    """Questions that need a rule which occurs in no training, and what each name counts as in all of them."""
    random = Random(f"held-out-rules-{seed}")
    counts: dict[str, int] = {}
    found: list[Question] = []
    while len(found) < n:
        question = make_question(random, "rule", held_out=True)
        assert question.rule is not None
        name, number = question.rule
        if is_held_out(name, number) and counts.setdefault(name, number) == number:
            found.append(question)
    return found, counts


def reversed_(question: Question) -> Question:
    """The same question with its candidates in the opposite order."""
    return replace(question, replies=question.replies[::-1], best=len(question.replies) - 1 - question.best)


@dataclass(frozen=True)
class Measurement:
    """All parts with one model, or some of them."""

    model: Path
    seed: int
    n: int
    only: Collection[str] = PARTS

    def run(self) -> dict[str, Any]:
        """The figures."""
        began = time.monotonic()
        found: dict[str, Any] = {"seed": self.seed, "tasks": self.n}
        seconds: dict[str, float] = {}
        if set(self.only) - {"worlds"}:
            with Arms(self.model, self.seed) as arms:
                seconds["loading"] = round(time.monotonic() - began, 1)
                found |= self._debated(arms)
        if "worlds" in self.only:
            found["worlds"] = worlds(self.model, self.seed, max(20, self.n // 3))
        return found | {"seconds": seconds | {"all": round(time.monotonic() - began, 1)}}

    def _debated(self, arms: Arms) -> dict[str, Any]:
        world, found = World(arms, self.n), dict[str, Any]()
        if "world" in self.only:
            found |= world.figures() | {"two_candidates": two_candidates(arms)}
        if "memory" in self.only:
            found["memory"] = memory(arms, max(10, self.n // 4))
        if "hidden_profile" in self.only:
            found["hidden_profile"] = hidden_profile(arms, max(10, self.n // 2))
        if "misled" in self.only:
            found["misled"] = misled(arms, max(10, self.n // 2))
        if "outside" in self.only:
            found["outside"] = outside(arms, 2 * self.n, world.debates)
        return found


def memory(arms: Arms, n: int) -> dict[str, Any]:
    """Questions that need a rule, with a memory that holds it, without, and with labeled cases that it follows from."""
    questions, counts = rule_questions(arms.seed, n)
    arms.memory.add(_COLLECTION, [rule_text(word, number) for word, number in counts.items()])
    tasks = arms.tasks("rules", questions)
    shared = remembering(judge_profile(), lambda _: (_COLLECTION,))
    with_it = hits(arms.ask("rules with memory", tasks, arms.evaluator(profile=shared)), questions)
    without = hits(arms.ask("rules without memory", tasks, arms.evaluator()), questions)
    random = Random(f"held-out-cases-{arms.seed}")
    arms.memory.add(_CASES, [as_case(random, Fact(word, number)).text for word, number in counts.items()])
    taught = remembering(judge_profile(), lambda _: (_CASES,))
    by_cases = hits(arms.ask("rules with labeled cases", tasks, arms.evaluator(profile=taught)), questions)
    return {
        "with": share(with_it),
        "without": share(without),
        "difference": paired(with_it, without),
        "cases": share(by_cases),
    }


def two_candidates(arms: Arms) -> dict[str, Any]:
    """A question with two candidates, of which the second is right."""
    task = Task("What is 17 + 25?", ["41", "42"], id=f"two-{arms.seed}")
    [found] = arms.ask("two candidates", [task], arms.evaluator())
    return {"winner": found.selected, "right": found.verdict([1]) == "right", "scores": found.to_dict()["scores"]}


class World:
    """The questions that need no memory."""

    def __init__(self, arms: Arms, n: int) -> None:
        self._arms = arms
        self.questions = held_out(arms.seed, n)
        self.tasks = arms.tasks("held-out", self.questions)

    @cached_property
    def debates(self) -> list[Evaluation]:
        """The debates over all questions."""
        return self._arms.ask("debate", self.tasks, self._arms.evaluator())

    def figures(self) -> dict[str, Any]:
        """One judge, silent judges, the debate, and the candidates reversed."""
        arms, questions, debates = self._arms, self.questions, self.debates
        silent = arms.silent("silent judges", self.tasks, debates)
        warm = "silent judges at temperature 0.7"
        sampled = arms.silent(warm, self.tasks, debates, sampling=Sampling(temperature=0.7))
        observer = replace(judge_profile(), personas=judge_profile().personas[-1:])
        one = arms.ask("one judge", self.tasks, arms.evaluator(profile=observer, rounds=1))
        fixed = arms.evaluator(candidate_order="fixed")
        back = arms.ask("reversed", arms.tasks("held-out", list(map(reversed_, questions))), fixed)
        forth = arms.ask("in order", self.tasks, fixed)
        right, silently, warmly = (hits(each, questions) for each in (debates, silent, sampled))
        return {
            "one_judge": share(hits(one, questions)),
            "silent_judges": share(silently),
            "silent_judges_sampled": share(warmly),
            "debate": share(right),
            "debate_minus_silent": paired(right, silently),
            "debate_minus_silent_sampled": paired(right, warmly),
            **_by_question(questions, right),
            "same_winner_reversed": share(_same(forth, back)),
            **_rounds(questions, debates),
            "failed": sum(each.status != "ok" for each in (*debates, *silent, *sampled, *one, *forth, *back)),
            "turns": {"debate": turns(debates), "silent_judges": turns(silent)},
        }


def _by_question(questions: Sequence[Question], right: Sequence[bool]) -> dict[str, Any]:
    pairs = list(zip(questions, right, strict=True))
    kinds, sizes = sorted({q.kind for q in questions}), sorted({len(q.replies) for q in questions})
    return {
        "by_kind": {kind: share([hit for q, hit in pairs if q.kind == kind]) for kind in kinds},
        "candidates": {str(size): share([hit for q, hit in pairs if len(q.replies) == size]) for size in sizes},
        "three_digit_sums": share([hit for q, hit in pairs if q.kind in ("add", "sub") and max(q.numbers) >= 100]),
    }


def _same(forth: Sequence[Evaluation], back: Sequence[Evaluation]) -> list[bool]:
    """Whether the same candidate won with the candidates in the opposite order."""
    return [
        a.selected is not None and b.selected is not None and a.selected == len(a.scores) - 1 - b.selected
        for a, b in zip(forth, back, strict=True)
    ]


def _rounds(questions: Sequence[Question], debates: Sequence[Evaluation]) -> dict[str, Any]:
    pairs = list(zip(questions, debates, strict=True))
    rounds = {level: [float(e.rounds_run) for q, e in pairs if q.level == level] for level in ("easy", "hard")}
    return {
        "rounds": {level: round(sum(each) / max(len(each), 1), 3) for level, each in rounds.items()},
        "rounds_hard_minus_easy": difference(rounds["hard"], rounds["easy"]),
        "stopped_early": share([each.stop_reason == "converged" and each.rounds_run < ROUNDS for each in debates]),
    }
