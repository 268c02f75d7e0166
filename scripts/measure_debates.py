"""Run many debates on real vLLM in one go and check and measure what the engine promises.

    python scripts/measure_debates.py --model DIR [--debates 200] [--orders fixed shuffle rotate]

For each candidate order it prints: whether every tensor is full and in range and every stop is the one that its tensor
gives; how many debates stopped early; the share of prompt tokens read from the prefix cache beside the share that was
attainable; how full the engine was while debates were waiting for room. Exits with 1 when a check fails.

Attainable is, for each prompt, its longest common prefix with any earlier prompt of the same debate, cut to whole
cache blocks; what different debates share (the rules) may come on top.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from debate import DebateEvaluator, Engine, Evaluation, Task
from debate.backends import VLLM, Call
from debate.convergence import coefficient_of_variation, has_converged
from debate.flow import Completion

WORDS = ["the", "answer", "is", "of", "four", "rivers", "because", "stone", "paper", "light", "seven", "under", "green"]


def make_tasks(n: int, *, n_candidates: int = 4, seed: int = 0) -> list[Task]:
    """Tasks of 40 to 120 words, all different."""
    rng = np.random.default_rng(seed)

    def text(low: int, high: int) -> str:
        return " ".join(rng.choice(WORDS, int(rng.integers(low, high))))

    return [Task(text(20, 60), [text(5, 15) for _ in range(n_candidates)], f"task-{i}") for i in range(n)]


class Attainable:
    """Sums up what a prefix cache could have served, prompt by prompt of each debate."""

    def __init__(self, backend: VLLM, block_size: int) -> None:
        self._backend = backend
        self._block_size = block_size
        self._earlier: dict[str, list[list[int]]] = defaultdict(list)
        self.prompt_tokens = self.attainable = self.cached = 0

    def __call__(self, call: Call, completion: Completion) -> None:
        """Count one completed call."""
        ids = self._backend.token_ids(call.prompt)
        earlier = self._earlier[call.info["task_id"]]
        longest = max((_common(ids, before) for before in earlier), default=0)
        # At least one token is always computed.
        self.attainable += min(longest, len(ids) - 1) // self._block_size * self._block_size
        self.prompt_tokens += len(ids)
        self.cached += completion.usage.cached_tokens
        earlier.append(ids)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    n = min(len(a), len(b))
    different = np.flatnonzero(np.asarray(a[:n]) != np.asarray(b[:n]))
    return int(different[0]) if different.size else n


def faults(evaluation: Evaluation, evaluator: DebateEvaluator) -> list[str]:
    """What is wrong with one evaluation; empty when it is as promised."""
    tensor = evaluation.tensor
    assert tensor is not None
    found: list[str] = []
    if np.isnan(tensor).any():
        found.append("cells are missing")
    if not ((tensor >= 0) & (tensor <= 10)).all():
        found.append("a score is out of range")
    cv = [coefficient_of_variation(matrices, evaluator.over) for matrices in tensor]
    if not np.allclose(cv, evaluation.cv, rtol=0, atol=1e-12):
        found.append("the CV is not that of the tensor")
    stop = next((r for r, value in enumerate(cv) if has_converged(value, evaluator.convergence)), None)
    expected = (evaluator.rounds, "max_rounds") if stop is None else (stop + 1, "converged")
    if (evaluation.rounds_run, evaluation.stop_reason) != expected:
        found.append(f"stopped {evaluation.stop_reason} after {evaluation.rounds_run}, expected {expected}")
    return found


def measure(engine: Engine, backend: VLLM, order: Any, tasks: list[Task], convergence: float) -> bool:
    """Run the debates in one candidate order and print the figures; whether every check passed."""
    evaluator = DebateEvaluator(
        "general", rounds=3, convergence=convergence, candidate_order=order, comment_chars=24, overall_chars=24
    )
    watch = Attainable(backend, backend.block_size)
    engine.on_completion = watch
    first_step = len(backend.stats.running)
    began = time.perf_counter()
    evaluations = engine.evaluate_batch(tasks, evaluator)
    seconds = time.perf_counter() - began
    engine.on_completion = None
    wrong = [f"{e.task_id}: {fault}" for e in evaluations for fault in faults(e, evaluator)]
    early = sum(e.stop_reason == "converged" for e in evaluations)
    turns = sum(len(e.transcript) for e in evaluations)
    tokens = sum(e.usage.completion_tokens for e in evaluations)
    running = np.array(backend.stats.running[first_step:])
    waiting = np.array(backend.stats.waiting[first_step:])
    crowded = running[waiting > 0]
    share = watch.cached / watch.prompt_tokens
    attainable = watch.attainable / watch.prompt_tokens
    print(f"{order}: {len(evaluations)} debates, {turns} turns, {seconds:.0f} s, {tokens / seconds:,.0f} tokens/s")
    print(
        f"  complete and consistent: {len(evaluations) - len({w.split(':')[0] for w in wrong})} of {len(evaluations)}"
    )
    print(f"  stopped early: {early}")
    print(f"  cached share {share:.3f}, attainable {attainable:.3f}, ratio {share / attainable:.3f}")
    slots = backend.capacity.slots
    fullness = crowded.mean() / slots if crowded.size else float("nan")
    print(f"  running requests while others waited: {fullness:.3f} of {slots} slots, over {crowded.size} steps")
    for fault in wrong[:5]:
        print(f"  FAULT {fault}")
    return not wrong and share >= 0.95 * attainable and not fullness < 0.9 and 0 < early < len(evaluations)


def main() -> int:
    """Parse the command line, run, and say whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--debates", type=int, default=200)
    parser.add_argument("--orders", nargs="+", default=["fixed", "shuffle", "rotate"])
    parser.add_argument("--convergence", type=float, default=0.42)
    parser.add_argument("--slots", type=int, default=64)
    options = parser.parse_args()
    backend = VLLM(
        options.model,
        enforce_eager=True,
        max_model_len=16384,
        max_num_seqs=options.slots,
        kv_cache_memory_bytes=1 << 30,
    )
    tasks = make_tasks(options.debates)
    with Engine(backend, seed=1) as engine:
        engine.start()
        passed = [measure(engine, backend, order, tasks, options.convergence) for order in options.orders]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
