"""What all parts of a measurement ask of the engine: debates, silent judges at equal numbers of turns, one memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from debate import DebateEvaluator, Engine, Evaluation, Task, bundled_judge
from debate.backends.base import Backend
from debate.memory import HashingEmbedder, MemoryStore
from debate.profiles import MemorySettings, Profile
from judging.samples import as_task, judge_profile
from judging.world import Question

ROUNDS = 3
CONVERGENCE = 0.1
How = DebateEvaluator | Sequence[DebateEvaluator]


class Arms:
    """A judge, loaded once, and a memory that each part fills with collections of its own."""

    def __init__(self, model: Path, seed: int, backend: Backend | None = None) -> None:
        self.model = model
        self.seed = seed
        self._until = ExitStack()
        self.memory = self._until.enter_context(MemoryStore("sqlite://", HashingEmbedder(), "exact"))
        backend = backend or bundled_judge.backend(model, max_num_seqs=64)
        self._engine = self._until.enter_context(Engine(backend, memory=self.memory, seed=seed)).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._until.close()

    def evaluator(self, **settings: Any) -> DebateEvaluator:
        """A debate with this judge; `settings` are those of `DebateEvaluator`."""
        return bundled_judge.evaluator(self.model, **{"rounds": ROUNDS, "convergence": CONVERGENCE, **settings})

    def ask(self, name: str, tasks: Sequence[Task], how: How) -> list[Evaluation]:
        """Evaluate all tasks, with one evaluator or one for each."""
        began = time.monotonic()
        found = self._engine.evaluate_batch(tasks, how)
        say(f"{name}: {len(tasks)} tasks, {turns(found)} turns, {time.monotonic() - began:.0f} s")
        return found

    def silent(
        self,
        name: str,
        tasks: Sequence[Task],
        debates: Sequence[Evaluation],
        profiles: Sequence[Profile] | None = None,
        **settings: Any,
    ) -> list[Evaluation]:
        """The same agents for as many turns as each debate took, who do not hear anybody."""
        profiles = profiles or [judge_profile()] * len(tasks)
        own = [
            self.evaluator(mode="independent", convergence=None, rounds=each.rounds_run, profile=profile, **settings)
            for each, profile in zip(debates, profiles, strict=True)
        ]
        return self.ask(name, tasks, own)

    def tasks(self, part: str, questions: Sequence[Question]) -> list[Task]:
        """The questions as tasks whose ids are those of a part of the measurement."""
        return [as_task(question, f"{part}-{self.seed}-{n}") for n, question in enumerate(questions)]


def remembering(profile: Profile, collections: Callable[[str], tuple[str, ...]]) -> Profile:
    """The profile with memories of its agents: the collections that belong to a name."""
    personas = [
        replace(one, memory=replace(one.memory or MemorySettings(), collections=collections(one.name)))
        for one in profile.personas
    ]
    return replace(profile, personas=tuple(personas))


def hits(evaluations: Sequence[Evaluation], questions: Sequence[Question]) -> list[bool]:
    """Whether the one best candidate was selected, tied with no other."""
    return [each.verdict([question.best]) == "right" for each, question in zip(evaluations, questions, strict=True)]


def turns(evaluations: Sequence[Evaluation]) -> int:
    """The number of turns of all."""
    return sum(len(each.transcript) for each in evaluations)


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)
