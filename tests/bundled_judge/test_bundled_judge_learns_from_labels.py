"""The bundled judge on real vLLM learns what its world's names count as from labels alone, and forgets it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest
from judging.facts import draw_names, draw_number
from judging.world import wrong_answer

from debate import Engine, Task, bundled_judge
from debate.backends.base import Backend
from debate.dataset.evalset import EvalSet
from debate.jobs.run import Run
from debate.memory import HashingEmbedder, MemoryStore
from debate.meta_evaluation.align import Teaching, align, plan_alignment
from debate.meta_evaluation.judged import read_run
from debate.meta_evaluation.teaching import forget
from debate.runtime.kept import kept_loaded
from debate.testing import SilentListener
from tests.required import required

pytestmark = pytest.mark.vllm
Backends = Mapping[str, Backend]
FORMS = ("{}", "It is {}.", "{}.", "Answer {}.")


@pytest.fixture(scope="module")
def backends() -> Iterator[Backends]:
    """The judge, loaded once for all runs here."""
    required(find_spec("vllm"), "vLLM is not installed")
    with kept_loaded({"built-in": bundled_judge.backend(max_num_seqs=64)}) as kept:
        yield kept


def world(n_names: int) -> dict[str, int]:
    """What some names count as, in pairs that occur in no training."""
    random = Random("learned from labels")
    return {name: draw_number(random, name, 2, 19, True) for name in draw_names(random, n_names, True)}


def questions(n: int, seed: int, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """n labeled tasks, each a sum that needs one of the names."""
    random = Random(f"learned from labels {seed}")
    found: list[dict[str, Any]] = []
    for i in range(n):
        name, added = list(counts)[i % len(counts)], random.randint(1, 9)
        values = {str(counts[name] + added): None}
        while len(values) < 4:
            values[wrong_answer(random, "rule", str(counts[name] + added))] = None
        order = random.sample(range(4), 4)
        texts = [random.choice(FORMS).format(list(values)[j]) for j in order]
        x = random.choice((f"{name}+{added}?", f"What is {name} + {added}?"))
        found.append({"id": f"s{seed}-{i}", "x": x, "candidates": texts, "best": order.index(0)})
    return found


def right(backends: Backends, rows: Sequence[Mapping[str, Any]], memory: MemoryStore) -> float:
    tasks = [Task(row["x"], row["candidates"], id=row["id"]) for row in rows]
    with Engine(backends, memory=memory) as engine:
        found = engine.evaluate_batch(tasks, bundled_judge.evaluator())
    return sum(each.verdict([row["best"]]) == "right" for each, row in zip(found, rows, strict=True)) / len(rows)


def test_fifty_labels_teach_the_rules_of_its_world_until_they_are_forgotten(backends: Backends, tmp_path: Path) -> None:
    counts = world(10)
    rows, new = questions(65, 0, counts), questions(60, 1, counts)
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluator, run = bundled_judge.evaluator(), tmp_path / "run"
    Run(evalset=EvalSet(tmp_path / "tasks.jsonl"), folder=run, evaluator=evaluator).execute(backends, SilentListener())
    with MemoryStore(tmp_path / "memory.sqlite", HashingEmbedder(), "exact") as memory:
        before = right(backends, new, memory)
        plan = plan_alignment(read_run(run), evaluator, Teaching())
        assert plan.cases[0].texts["judge/Critic"].startswith('Asked "')
        found = align(plan, backends, memory, SilentListener())
        taught = right(backends, new, memory)
        forget(memory, found.run)
        after = right(backends, new, memory)
    most = found.learned[-1]
    assert most.labels == 50
    assert most.difference is not None
    assert most.difference.estimate >= 0.3
    assert taught - before >= 0.3
    assert taught - after >= 0.3
    assert abs(after - before) <= 0.1
