"""A package that is not part of this one: it offers an evaluator, a backend, an export and a format of eval sets."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from debate.backends import Capacity
from debate.dataset import LocatedTask, Record, located_task
from debate.evaluation import Evaluation
from debate.evaluators.base import BaseEvaluator
from debate.evaluators.result import build_evaluation
from debate.export import Export, ExportSummary, Results
from debate.flow import Call, Completion, Flow, Generate, Prompt, RunContext, generate
from debate.types import Scale, Task

sys.stderr.write("debate_outside is imported\n")


@dataclass(frozen=True, kw_only=True)
class Grade(BaseEvaluator):
    """One number from 0 to 100 per candidate."""

    bonus: float = 0.0
    name: str = field(default="grade", init=False)

    @property
    def scale(self) -> Scale:
        return Scale(0, 100)

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        scores: list[float] = []
        for j, candidate in enumerate(task.candidates):
            prompt = Prompt.from_messages(f"Grade from 0 to 90: {candidate.text}")
            reply = yield from generate(Generate(prompt=prompt, sample_key=(j,), info={"task_id": task.id}))
            scores.append(float(reply.text) + self.bonus if isinstance(reply, Completion) else np.nan)
        return build_evaluation(self, task, run, scores=np.array(scores))

    def describe(self) -> dict[str, object]:
        return {"evaluator": self.name, "aggregation": {"bonus": self.bonus}}


class Counting:
    """Answers with the number of characters that it was asked with."""

    def __init__(self, model: str = "counting", factor: int = 1) -> None:
        self.model = model
        self.factor = factor
        self.capacity = Capacity(4)

    async def start(self) -> None: ...

    async def generate(self, call: Call) -> Completion:
        return Completion(answer(call, self.factor))

    async def aclose(self) -> None: ...


def answer(call: Call, factor: int = 1) -> str:
    """The same as a plain function, for `--backend debate_outside:answer`."""
    return str(factor * len(call.messages[-1]["content"]))


def lengths(x: str, text: str) -> float:
    """For `--evaluator callback --option function=debate_outside:lengths`."""
    return float(len(text))


def _write(results: Results, path: Path, run: str) -> ExportSummary:
    rows = [f"{task.id}\t{evaluation.selected}\n" for task, evaluation in results]
    path.write_text("".join(rows), encoding="utf-8")
    return ExportSummary(rows=len(rows))


CHOSEN = Export(_write, "chosen.tsv")


def questions(records: Iterator[Record]) -> Iterator[LocatedTask]:
    """`q` and `answers`."""
    for record in records:
        yield located_task(record, record.text("q"), record.texts("answers"), record.optional_text("name"))


def lines(results: Results, path: Path, run: str) -> ExportSummary:
    """A plain function as an export, for `--to debate_outside:lines`."""
    path.write_text(json.dumps([task.id for task, _ in results]), encoding="utf-8")
    return ExportSummary()
