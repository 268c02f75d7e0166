"""Evaluators small enough to reason about, and the scripts that answer them."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from debate import Component, DebateEvaluator, Evaluation, Persona, Profile, Scale, Task
from debate.backends import Call, Scripted
from debate.errors import BackendError
from debate.evaluators.base import Footprint, RunContext
from debate.flow import Block, Completion, Flow, Generate, Prompt, Segment, gather, generate
from debate.testing import reply_for
from debate.types import Failure

PROFILE = Profile(
    "pair",
    (Persona("Critic", "You look for faults."), Persona("Reader", "You read for pleasure.")),
    (Component("clarity", "Is it clear?"), Component("truth", "Is it true?", 0.5)),
)
WIDE = Scale(-100.0, 100.0)
"""Of sums of replies."""


class Stalling:
    """A script that takes a minute, and says when it was asked and when it was cancelled."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.cancelled = threading.Event()

    async def answer(self, call: Call) -> str:
        self.asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "1"


@dataclass(frozen=True)
class FlowEvaluator:
    """An evaluator made of one flow function."""

    body: Callable[[Task, RunContext], Flow[Evaluation]]
    models: frozenset[str] = frozenset()
    size: Callable[[Task], Footprint] = lambda task: Footprint(characters=30, replies=1, max_tokens=10)
    name: str = "small"
    scale: Scale = WIDE

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        return self.body(task, run)

    def footprint(self, task: Task) -> Footprint:
        return self.size(task)

    def check(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"evaluator": self.name}


def ask(task: Task, text: str, **settings: Any) -> Generate:
    """A call whose prompt is `text`."""
    prompt = Prompt(system=(), user=(Block([Segment(text, is_content=True)]),))
    return Generate(prompt=prompt, info={"task_id": task.id, "text": text}, **settings)


def scored(task: Task, score: float, **more: Any) -> Evaluation:
    """An evaluation that gives every candidate the same score."""
    n = len(task.candidates)
    return Evaluation(
        task_id=task.id,
        evaluator="small",
        status="ok",
        scores=np.full(n, score),  # (J,)
        probabilities=np.full(n, 1 / n),  # (J,)
        selected=0,
        scale=WIDE,
        **more,
    )


def number_in(answer: Completion | Failure) -> float:
    """The number that was replied; -1 for a failed call."""
    return float(answer.text) if isinstance(answer, Completion) else -1.0


def asks(n: int) -> FlowEvaluator:
    """Asks n times, one after the other, and scores with the sum of the replies."""

    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        total = 0.0
        for i in range(n):
            total += number_in((yield from generate(ask(task, f"{task.x} {i}"))))
        return scored(task, total)

    return FlowEvaluator(flow)


def gathers(children: int, calls: int = 2) -> FlowEvaluator:
    """Asks once, then gathers children that ask on their own; they are the members of the evaluation."""

    def flow(task: Task, run: RunContext) -> Flow[Evaluation]:
        first = number_in((yield from generate(ask(task, f"{task.x} first"))))
        members = yield from gather([asks(calls).flow(Task(f"{task.x} {n}", ["a"]), run) for n in range(children)])
        total = first + sum(float(member.scores[0]) for member in members)
        return scored(task, total, members=members)

    return FlowEvaluator(flow)


def debates(**settings: Any) -> DebateEvaluator:
    """A debate of two agents over two components: two rounds, so four turns, unless told otherwise."""
    told: dict[str, Any] = {"profile": PROFILE, "rounds": 2, "convergence": None, **settings}
    return DebateEvaluator(**told)


def tasks(n: int) -> list[Task]:
    """n tasks, named t0, t1, ..."""
    return [Task(f"question {i}", ["one", "two"], id=f"t{i}") for i in range(n)]


def late(script: Callable[[Call], str], seed: int, longest: float = 0.004) -> Callable[[Call], Any]:
    """The same replies after random delays of at most `longest` seconds."""
    draw = random.Random(seed)

    async def answer(call: Call) -> str:
        await asyncio.sleep(draw.random() * longest)
        return script(call)

    return answer


class Startable(Scripted):
    """A scripted backend that notes when it is started and closed, and that may fail to start."""

    def __init__(self, fn: Any = reply_for, *, model: str = "scripted", faults: int = 0) -> None:
        super().__init__(fn, model=model)
        self.events: list[str] = []
        self.faults = faults

    async def start(self) -> None:
        if self.faults:
            self.faults -= 1
            raise BackendError("out of memory")
        self.events.append("start")

    async def aclose(self) -> None:
        self.events.append("aclose")


class Loadable(Startable):
    """A scripted backend that counts its loads and may be taken over."""

    def __init__(self, fn: Any = reply_for, *, model: str = "scripted", size: int = 1) -> None:
        super().__init__(fn, model=model)
        self.size = size
        self.is_loaded = False
        self.loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        if not self.is_loaded:
            await super().start()
            self.is_loaded, self.loop = True, asyncio.get_running_loop()

    async def aclose(self) -> None:
        if self.is_loaded:
            await super().aclose()
            self.is_loaded = False

    async def generate(self, call: Call) -> Any:
        assert self.is_loaded
        assert asyncio.get_running_loop() is self.loop, "what is loaded belongs to one loop"
        return await super().generate(call)

    def is_equal(self, other: object) -> bool:
        return isinstance(other, Loadable) and (self.model, self.size) == (other.model, other.size)

    def take_over(self, other: Any) -> None:
        if other is not self:
            self.is_loaded, self.loop, other.is_loaded = other.is_loaded, other.loop, False


def plain(evaluation: Evaluation) -> dict[str, Any]:
    """What must be the same when an evaluation is repeated: all but the seconds, its own and its members'."""
    return _without_seconds(evaluation.to_dict())


def _without_seconds(data: dict[str, Any]) -> dict[str, Any]:
    members = [_without_seconds(member) for member in data["members"]]
    return {**{key: value for key, value in data.items() if key != "seconds"}, "members": members}
