"""What it is worth that a debate's requests go to one of several engines.

    scripts/bench affinity --model DIR [--debates 32] [--engines 2] [--repetitions 2]

One vLLM with `data_parallel_size` engines, each with a KV cache of its own, runs the same debates in two ways, in turn:

    pinned      as the package does: a debate's requests go to the engine that the hash of its session names
    scattered   vLLM's own balancer sends each request to the engine with the fewest requests

The caches are small, so that the debates admitted at once fill them: scattered, a debate's prefix takes room in each.
Read `cached`, the share of prompt tokens that came out of a cache; replies are of drawn lengths, see `throughput`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.debates import make_tasks
from benchmarks.throughput import Measured, Paced, Result, print_arms, ratio, run_engine
from debate import DebateEvaluator, Task
from debate.backends import Call
from debate.flow import Completion


class Scattered(Paced):
    """Calls without their session."""

    async def generate(self, call: Call) -> Completion:
        """Let the balancer choose."""
        return await super().generate(replace(call, session=""))


async def run(measured: Measured, tasks: Sequence[Task], repetitions: int) -> dict[str, list[Result]]:
    """Both arms, interleaved: every second repetition begins with the other one."""
    await measured.vllm.start()
    print(f"{measured.vllm.capacity.cache_tokens:,} tokens of KV cache in all", flush=True)
    evaluator = DebateEvaluator("general", rounds=2, convergence=None)
    arms = {"pinned": Paced, "scattered": Scattered}
    results: dict[str, list[Result]] = {name: [] for name in arms}
    for repetition in range(repetitions):
        for name in list(arms)[:: -1 if repetition % 2 else 1]:
            backend = arms[name](measured.vllm)
            results[name].append(result := await measured.arm(lambda b=backend: run_engine(b, tasks, evaluator)))
            print(f"  {repetition + 1}/{repetitions} {name}: {result.cached:.1%} cached", flush=True)
    await measured.vllm.aclose()
    return results


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a model folder or name")
    parser.add_argument("--debates", type=int, default=32)
    parser.add_argument("--engines", type=int, default=2)
    parser.add_argument("--slots", type=int, default=8, help="of each engine")
    parser.add_argument("--cache-mib", type=float, default=16, help="KV cache of each engine")
    parser.add_argument("--repetitions", type=int, default=2)
    options = parser.parse_args()
    measured = Measured(
        options.model,
        data_parallel_size=options.engines,
        max_model_len=8192,
        max_num_seqs=options.slots,
        kv_cache_memory_bytes=int(options.cache_mib * 2**20),
        enforce_eager=True,
    )
    print(f"{options.debates} debates of 3 agents, 2 rounds, on {options.engines} engines; {options.model}")
    results = asyncio.run(run(measured, make_tasks(options.debates, seed=3), options.repetitions))
    print_arms(results)
    print(f"\npinned / scattered   {ratio(results['pinned'], results['scattered'])}")


if __name__ == "__main__":
    main()
