"""Silent rounds of the bundled judge on vLLM: what they settle, and what they cost beside a debate."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from debate import DebateEvaluator, Engine, Task, bundled_judge
from debate.backends import VLLM, Call, Scripted
from debate.files import json_text
from debate.flow import CallFunction, Completion, Flow
from debate.store import Store
from debate.testing import Recorder

TASKS = [
    Task("16+24?", ["40", "42", "28", "39"], id="sum"),
    Task("Take 4 from 30.", ["26", "34", "24"], id="difference"),
    Task("Largest of 60 70 89?", ["70", "89", "60"], id="largest"),
    Task("Add 44 and 81.", ["125", "124", "115"], id="another sum"),
]


def evaluator(**settings: Any) -> DebateEvaluator:
    return replace(bundled_judge.evaluator(), rounds=1, **settings)


def test_a_rule_that_everything_passes_settles_all_and_decodes_little(judge_engine: Engine) -> None:
    settled = judge_engine.evaluate_batch(TASKS, evaluator(settle="p_best=0.01"))
    debated = judge_engine.evaluate_batch(TASKS, evaluator())
    ended = [each for each in settled if each.stop_reason == "settled"]
    assert ended, "where two candidates share the best score, a task is debated"
    for each in ended:
        other = debated[[task.id for task in TASKS].index(each.task_id)]
        assert each.selected == int(each.scores.argmax())
        assert each.p_best is not None
        assert abs(each.p_best.sum() - 1) < 1e-9
        assert each.usage.calls == len(each.agents)
        assert each.usage.completion_tokens < other.usage.completion_tokens


def test_what_a_silent_round_leaves_in_doubt_is_debated_as_without_a_rule(judge_engine: Engine) -> None:
    strict = judge_engine.evaluate_batch(TASKS, evaluator(settle="p_best=1"))
    debated = judge_engine.evaluate_batch(TASKS, evaluator())
    assert "settled" not in {each.stop_reason for each in strict}
    assert [each.selected for each in strict] == [each.selected for each in debated]
    assert all(each.before for each in strict)


BEST = {
    "16+24?": "40",
    "Take 4 from 30.": "26",
    "Largest of 60 70 89?": "89",
    "Add 44 and 81.": "125",
    "kelor+gurax?": "9",
    "vroz+2 jelmb?": "14",
}
"""What the oracle knows."""
COMPONENTS = ("accuracy", "relevance", "completeness")
DOUBTFUL = [
    *TASKS,
    Task("kelor+gurax?", ["8", "9", "11"], id="hidden"),
    Task("vroz+2 jelmb?", ["14", "15", "4", "13"], id="another hidden one"),
]


class Lent:
    """The bundled judge as a further engine's backend, while its own engine runs on."""

    model, reads_labels = "bundled", True

    def __init__(self, engine: Engine, backend: VLLM) -> None:
        self._engine, self._backend = engine, backend

    @property
    def capacity(self) -> Any:
        return self._backend.capacity

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...

    async def generate(self, call: Call) -> Completion:
        async def ask() -> Completion:
            return await self._backend.generate(call)

        def flow() -> Flow[Completion]:
            return (yield CallFunction(ask))  # type: ignore[return-value]

        return await asyncio.to_thread(self._engine.drive, flow())


def oracle(call: Call) -> str:
    """A turn of one that finds the right answer in a table."""
    task = next(each for each in DOUBTFUL if each.id == call.info["task_id"])
    right = next(j for j, each in enumerate(task.candidates) if each.text == BEST[task.x])
    scores = {name: (dict.fromkeys(COMPONENTS, 9 if j == right else 1)) for name, j in call.info["labels"].items()}
    candidates = {name: {"comment": "as the table says", "scores": each} for name, each in scores.items()}
    return json_text({"overall": "I looked it up.", "candidates": candidates})


def test_in_a_cascade_the_bundled_judge_settles_and_an_oracle_debates_the_rest(
    judge_engine: Engine, judge_backend: VLLM, tmp_path: Path
) -> None:
    seen = Recorder(oracle)
    backends = {"oracle": Scripted(seen, model="oracle"), "bundled": Lent(judge_engine, judge_backend)}
    silent = judge_engine.evaluate_batch(DOUBTFUL, evaluator(settle="p_best=0.01"))
    sure = sorted(each.p_best.max() for each in silent if each.stop_reason == "settled" and each.p_best is not None)
    rule = evaluator(settle=f"p_best={sure[len(sure) // 2]:.3f},model=bundled")
    with Store(tmp_path / "store.sqlite") as store, Engine(backends, store=store) as engine:
        found = engine.evaluate_batch(DOUBTFUL, rule, run="cascade")
        used = store.read("cascade").used()
    settled = [each for each in found if each.stop_reason == "settled"]
    debated = [each for each in found if each.stop_reason != "settled"]
    assert [each.task_id for each in found] == [each.id for each in DOUBTFUL]
    assert settled
    assert debated
    assert {call.info["task_id"] for call in seen.calls} == {each.task_id for each in debated}
    right = {each.id: [c.text for c in each.candidates].index(BEST[each.x]) for each in DOUBTFUL}
    assert [each.selected for each in debated] == [right[each.task_id] for each in debated]
    n_agents = len(found[0].agents)
    assert used["bundled"].calls == n_agents * len(found)
    assert used["oracle"].calls == n_agents * len(debated) == len(seen.calls)
    assert used["bundled"].prompt_tokens > 0
    assert used["bundled"].total_tokens + used["oracle"].total_tokens == sum(each.usage.total_tokens for each in found)
