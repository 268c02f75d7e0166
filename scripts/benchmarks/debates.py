"""Run many debates on real vLLM in one go and check and measure what the engine promises.

    scripts/bench debates --model DIR [--debates 200] [--orders fixed shuffle rotate]

For each candidate order it prints: whether every tensor is full and in range and every stop is the one that its tensor
gives; how many debates stopped early; the share of prompt tokens read from the prefix cache beside the share that was
attainable; how full the engine was while debates were waiting for room. Exits with 1 when a check fails.

Attainable is, for each prompt, its longest common prefix with any earlier prompt of the same debate, cut to whole
cache blocks. What all debates share (the rules) comes on top, and is printed as a second figure.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
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


class EngineStats:
    """Running totals over engine steps, as vLLM's scheduler reports them: how many requests run and how many wait.

    vLLM calls this interface of its own not stable; what is read of it is two counts.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.running = 0
        """Requests under way, summed over the steps."""
        self.saturated_steps = 0
        """Steps in which further requests waited for a slot."""
        self.saturated_running = 0
        """Requests under way, summed over those."""

    def logger(self, vllm_config: Any, engine_index: int = 0) -> Any:
        """A stat logger for vLLM that reports here."""
        from vllm.v1.metrics.loggers import StatLoggerBase

        stats = self

        class Logger(StatLoggerBase):
            def __init__(self, vllm_config: Any, engine_index: int = 0) -> None: ...

            def record(self, scheduler_stats: Any, *_: Any, **__: Any) -> None:
                if scheduler_stats is not None:
                    # A request whose grammar was being compiled counts as skipped until it runs.
                    skipped = getattr(scheduler_stats, "num_skipped_waiting_reqs", 0)
                    stats.count(scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs + skipped)

            def log_engine_initialized(self) -> None: ...

        return Logger(vllm_config, engine_index)

    def count(self, running: int, waiting: int) -> None:
        """Count one step."""
        self.steps += 1
        self.running += running
        if waiting:
            self.saturated_steps += 1
            self.saturated_running += running


class Attainable:
    """Sums up what a prefix cache could have served, prompt by prompt of each debate."""

    def __init__(self, backend: VLLM, block_size: int) -> None:
        self._backend = backend
        self._block_size = block_size
        self._earlier: dict[str, list[list[int]]] = defaultdict(list)
        self._first: list[int] = []
        self.prompt_tokens = self.cached = self.attainable = self.attainable_with_rules = 0

    def __call__(self, call: Call, completion: Completion) -> None:
        """Count one completed call."""
        ids = self._backend.token_ids(call.prompt)
        earlier = self._earlier[call.info["task_id"]]
        in_debate = max((_common(ids, before) for before in earlier), default=0)
        self.attainable += self._whole_blocks(in_debate, ids)
        self.attainable_with_rules += self._whole_blocks(max(in_debate, _common(ids, self._first)), ids)
        self._first = self._first or ids
        self.prompt_tokens += len(ids)
        self.cached += completion.usage.cached_tokens
        earlier.append(ids)

    def _whole_blocks(self, tokens: int, ids: Sequence[int]) -> int:
        # At least one token is always computed.
        return min(tokens, len(ids) - 1) // self._block_size * self._block_size


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


@dataclass(frozen=True)
class Figures:
    """What one batch of debates came to."""

    order: str
    evaluations: list[Evaluation]
    faults: list[str]
    seconds: float
    cached_share: float
    attainable_share: float
    """Within a debate."""
    attainable_with_rules: float
    """Within a debate, and the rules that all debates share."""
    fullness: float
    """Mean of running requests over slots, in the steps in which requests waited; NaN when none did."""

    @property
    def stopped_early(self) -> int:
        """Debates that converged before their last round."""
        return sum(evaluation.stop_reason == "converged" for evaluation in self.evaluations)

    @property
    def passed(self) -> bool:
        """Whether everything is as promised."""
        return (
            not self.faults
            and 0 < self.stopped_early < len(self.evaluations)
            and self.cached_share >= 0.95 * self.attainable_share
            and not self.fullness < 0.9
        )

    def __str__(self) -> str:
        n = len(self.evaluations)
        turns = sum(len(evaluation.transcript) for evaluation in self.evaluations)
        tokens = sum(evaluation.usage.completion_tokens for evaluation in self.evaluations)
        wrong = len({fault.split(":")[0] for fault in self.faults})
        lines = [
            f"{self.order}: {n} debates, {turns} turns, {self.seconds:.0f} s, {tokens / self.seconds:,.0f} tokens/s",
            f"  complete, in range and stopped as their tensor says: {n - wrong} of {n}",
            f"  stopped early: {self.stopped_early}",
            f"  cached share of prompt tokens {self.cached_share:.3f}, attainable {self.attainable_share:.3f}, "
            f"ratio {self.cached_share / self.attainable_share:.3f} "
            f"(with the rules all debates share: attainable {self.attainable_with_rules:.3f}, "
            f"ratio {self.cached_share / self.attainable_with_rules:.3f})",
            f"  running requests over slots while others waited: {self.fullness:.3f}",
            *(f"  FAULT {fault}" for fault in self.faults[:5]),
        ]
        return "\n".join(lines)


def measure(
    engine: Engine, backend: VLLM, stats: EngineStats, order: Any, tasks: list[Task], convergence: float
) -> Figures:
    """Run the debates in one candidate order."""
    evaluator = DebateEvaluator(
        "general", rounds=3, convergence=convergence, candidate_order=order, comment_chars=24, overall_chars=24
    )
    watch = Attainable(backend, backend.engine.vllm_config.cache_config.block_size)
    engine.on_completion = watch
    steps_before, running_before = stats.saturated_steps, stats.saturated_running
    began = time.perf_counter()
    evaluations = engine.evaluate_batch(tasks, evaluator)
    seconds = time.perf_counter() - began
    engine.on_completion = None
    steps, running = stats.saturated_steps - steps_before, stats.saturated_running - running_before
    return Figures(
        order=order,
        evaluations=evaluations,
        faults=[f"{e.task_id}: {fault}" for e in evaluations for fault in faults(e, evaluator)],
        seconds=seconds,
        cached_share=watch.cached / watch.prompt_tokens,
        attainable_share=watch.attainable / watch.prompt_tokens,
        attainable_with_rules=watch.attainable_with_rules / watch.prompt_tokens,
        fullness=running / steps / backend.capacity.slots if steps else float("nan"),
    )


def main() -> int:
    """Parse the command line, run, and say whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--debates", type=int, default=200)
    parser.add_argument("--orders", nargs="+", default=["fixed", "shuffle", "rotate"])
    parser.add_argument("--convergence", type=float, default=0.42)
    parser.add_argument("--slots", type=int, default=64)
    options = parser.parse_args()
    stats = EngineStats()
    backend = VLLM(
        options.model,
        stat_loggers=[stats.logger],
        enforce_eager=True,
        max_model_len=16384,
        max_num_seqs=options.slots,
        kv_cache_memory_bytes=1 << 30,
    )
    tasks = make_tasks(options.debates)
    with Engine(backend, seed=1) as engine:
        engine.start()
        all_passed = True
        for order in options.orders:
            figures = measure(engine, backend, stats, order, tasks, options.convergence)
            print(figures, flush=True)
            all_passed &= figures.passed
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
