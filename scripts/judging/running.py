"""The engine over held-out questions, with the bundled judge or another model of its templates.

Questions come from a generator of their own, whose seeds no training uses. Knows nothing of how a judge is trained.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from debate import DebateEvaluator, Engine, Evaluation, Task, bundled_judge
from debate.memory import HashingEmbedder, MemoryStore
from debate.profiles import MemorySettings
from debate.types import Sampling
from judging.measuring import difference, paired, share
from judging.samples import as_task, judge_profile
from judging.world import KINDS, WORDS, Kind, Question, make_question, rule_text

ROUNDS = 3
CONVERGENCE = 0.1
_COLLECTION = "judge/rules"


def held_out(seed: int, n: int) -> list[Question]:
    """Fresh questions that need no rule."""
    random = Random(f"held-out-{seed}")
    kinds: list[Kind] = [kind for kind in KINDS if kind != "rule"]
    return [make_question(random, random.choice(kinds)) for _ in range(n)]


def rule_questions(seed: int, n: int) -> tuple[list[Question], dict[str, int]]:
    """Questions that need a rule, and what each word counts as in all of them."""
    random = Random(f"held-out-rules-{seed}")
    counts = {word: random.randint(2, 19) for word in WORDS}
    found: list[Question] = []
    while len(found) < n:
        question = make_question(random, "rule")
        if question.rule is not None and counts[question.rule[0]] == question.rule[1]:
            found.append(question)
    return found, counts


def reversed_(question: Question) -> Question:
    """The same question with its candidates in the opposite order."""
    return replace(question, replies=question.replies[::-1], best=len(question.replies) - 1 - question.best)


class Measurement:
    """All arms over the same questions."""

    def __init__(self, model: Path, seed: int, n: int) -> None:
        self.model = model
        self.seed = seed
        self.questions = held_out(seed, n)
        self.rules, self.counts = rule_questions(seed, max(10, n // 4))

    def run(self) -> dict[str, Any]:
        """The figures."""
        began = time.monotonic()
        with self._engine() as engine:
            engine.start()
            loaded = time.monotonic()
            debates = self._arm(engine, "debate", self.questions, self._evaluator())
            silent = self._silent(engine, debates)
            sampled = self._silent(engine, debates, temperature=0.7)
            one = self._arm(engine, "one judge", self.questions, self._one_judge())
            turned = [reversed_(question) for question in self.questions]
            back = self._arm(engine, "reversed", turned, self._evaluator(candidate_order="fixed"))
            forth = self._arm(engine, "in order", self.questions, self._evaluator(candidate_order="fixed"))
        memory = self._memory()
        return self._figures(debates, silent, sampled, one, forth, back, memory) | {
            "seconds": {"loading": round(loaded - began, 1), "all": round(time.monotonic() - began, 1)}
        }

    def _engine(self, **more: Any) -> Engine:
        return Engine(bundled_judge.backend(self.model, max_num_seqs=64), seed=self.seed, **more)

    def _evaluator(self, **settings: Any) -> DebateEvaluator:
        return bundled_judge.evaluator(self.model, **{"rounds": ROUNDS, "convergence": CONVERGENCE, **settings})

    def _one_judge(self) -> DebateEvaluator:
        profile = judge_profile()
        observer = replace(profile, personas=profile.personas[-1:])
        return self._evaluator(profile=observer, rounds=1)

    def _silent(
        self, engine: Engine, debates: Sequence[Evaluation], temperature: float | None = None
    ) -> list[Evaluation]:
        """The same agents for as many turns as each debate took, who do not hear anybody."""
        sampling = {} if temperature is None else {"sampling": Sampling(temperature=temperature)}
        own = [
            self._evaluator(mode="independent", convergence=None, rounds=each.rounds_run, **sampling)
            for each in debates
        ]
        name = "silent judges" if temperature is None else f"silent judges at temperature {temperature}"
        return self._arm(engine, name, self.questions, own)

    def _arm(
        self, engine: Engine, name: str, questions: Sequence[Question], how: DebateEvaluator | list[DebateEvaluator]
    ) -> list[Evaluation]:
        began = time.monotonic()
        tasks = [self._task(question, n) for n, question in enumerate(questions)]
        found = engine.evaluate_batch(tasks, how)
        _say(f"{name}: {len(tasks)} tasks, {_turns(found)} turns, {time.monotonic() - began:.0f} s")
        return found

    def _task(self, question: Question, n: int) -> Task:
        return as_task(question, f"held-out-{self.seed}-{n}")

    def _memory(self) -> dict[str, Any]:
        """Questions that need a rule, with a memory that holds it and without."""
        profile = judge_profile()
        remembering = replace(
            profile,
            personas=tuple(
                replace(one, memory=replace(one.memory or MemorySettings(), collections=(_COLLECTION,)))
                for one in profile.personas
            ),
        )
        found: dict[str, list[bool]] = {}
        with MemoryStore("sqlite://", HashingEmbedder(), "exact") as store:
            store.add(_COLLECTION, [rule_text(word, number) for word, number in self.counts.items()])
            for name, memory in (("with", store), ("without", None)):
                with self._engine(memory=memory) as engine:
                    how = self._evaluator(profile=remembering)
                    answers = self._arm(engine, f"rules {name} memory", self.rules, how)
                found[name] = _hits(answers, self.rules)
        return {
            "with": share(found["with"]),
            "without": share(found["without"]),
            "difference": paired(_numbers(found["with"]), _numbers(found["without"])),
        }

    def _figures(
        self,
        debates: list[Evaluation],
        silent: list[Evaluation],
        sampled: list[Evaluation],
        one: list[Evaluation],
        forth: list[Evaluation],
        back: list[Evaluation],
        memory: dict[str, Any],
    ) -> dict[str, Any]:
        right, silently = _hits(debates, self.questions), _hits(silent, self.questions)
        same = [
            a.selected is not None and b.selected is not None and a.selected == len(a.scores) - 1 - b.selected
            for a, b in zip(forth, back, strict=True)
        ]
        rounds = {
            level: [float(each.rounds_run) for each, q in zip(debates, self.questions, strict=True) if q.level == level]
            for level in ("easy", "hard")
        }
        kinds = sorted({question.kind for question in self.questions})
        return {
            "seed": self.seed,
            "tasks": len(self.questions),
            "one_judge": share(_hits(one, self.questions)),
            "silent_judges": share(silently),
            "silent_judges_sampled": share(_hits(sampled, self.questions)),
            "debate": share(right),
            "debate_minus_silent": paired(_numbers(right), _numbers(silently)),
            "debate_minus_silent_sampled": paired(_numbers(right), _numbers(_hits(sampled, self.questions))),
            "by_kind": {
                kind: share([hit for hit, q in zip(right, self.questions, strict=True) if q.kind == kind])
                for kind in kinds
            },
            "three_digit_sums": share(
                [hit for hit, q in zip(right, self.questions, strict=True) if q.kind in ("add", "sub") and _is_long(q)]
            ),
            "same_winner_reversed": share(same),
            "rounds": {level: round(sum(each) / max(len(each), 1), 3) for level, each in rounds.items()},
            "rounds_hard_minus_easy": difference(rounds["hard"], rounds["easy"]),
            "stopped_early": share([each.stop_reason == "converged" and each.rounds_run < ROUNDS for each in debates]),
            "failed": sum(each.status != "ok" for each in (*debates, *silent, *sampled, *one, *forth, *back)),
            "turns": {"debate": _turns(debates), "silent_judges": _turns(silent)},
            "memory": memory,
        }


def _is_long(question: Question) -> bool:
    return max(question.numbers) >= 100


def _hits(evaluations: Sequence[Evaluation], questions: Sequence[Question]) -> list[bool]:
    return [each.verdict([question.best]) == "right" for each, question in zip(evaluations, questions, strict=True)]


def _numbers(hits: Sequence[bool]) -> list[float]:
    return [float(hit) for hit in hits]


def _turns(evaluations: Sequence[Evaluation]) -> int:
    return sum(len(each.transcript) for each in evaluations)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
