"""Debates, values, votes and judged steps in one engine at once, beside the same calls sent as plain requests.

    scripts/bench mixed --model DIR [--tasks 100] [--slots 24] [--repetitions 3]

First the mix is evaluated for real, with every reply decoded under its schema, and it is counted what came of it. Then
three arms do the same work, interleaved, with prompts and reply lengths of that mix, from a cold prefix cache:

    plain    every prompt known beforehand and sent at once: nobody waits for anybody
    mixed    our engine: the longest tasks begin first, and requests with more replies ahead leave vLLM's queue first
    as come  the same, but tasks begin in their order and requests leave vLLM's queue as they came

Read the ratio mixed/plain of generated tokens a second: at best 1, and to be at least 0.95.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.debates import make_tasks
from benchmarks.throughput import LENGTHS, Measured, Paced, Recorded, Result, Watched, fixed_length, print_arms, ratio
from debate import DebateEvaluator, StepEvaluator, Task, ValueEvaluator, VoteEvaluator
from debate.backends import VLLM, Call
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, RunContext
from debate.evaluators.steps.prompted import PromptedSteps
from debate.flow import Completion
from debate.hashing import derive
from debate.runtime.limits import Admission
from debate.runtime.runner import Runner
from debate.runtime.scheduler import EvaluationRequest, stream

SHORT: dict[str, Any] = {"reasoning_chars": 60}


def evaluators() -> list[Evaluator]:
    """One of each kind; a quarter of the tasks goes to each."""
    return [
        DebateEvaluator("general", rounds=2, convergence=None, comment_chars=60, overall_chars=60),
        ValueEvaluator(samples=3, **SHORT),
        VoteEvaluator(ballots=5, **SHORT),
        StepEvaluator(split=r"(?<=\s\S{7}) ", judge=PromptedSteps(**SHORT)),
    ]


def reply_to(schema: Any, draw: random.Random) -> Any:
    """Some value that a schema allows."""
    if "enum" in schema:
        return draw.choice(schema["enum"])
    match schema["type"]:
        case "object":
            return {name: reply_to(each, draw) for name, each in schema["properties"].items()}
        case "number":
            return draw.randint(int(schema["minimum"]), int(schema["maximum"]))
        case _:
            return "The answer is sound in its main point and leaves out a step."


class AtLength(Paced):
    """The engine's backend with every reply at its drawn length; what it says is made up, and readable."""

    async def generate(self, call: Call) -> Completion:
        """Generate for as long as the call's draw says, then answer with what its schema allows."""
        n_tokens = LENGTHS[call.seed % len(LENGTHS)]
        ids = self._vllm.token_ids(call.prompt)
        completion = await self._vllm.request(
            ids, fixed_length(n_tokens, call.seed), session=call.session, replies_ahead=call.replies_ahead
        )
        self.recorded.append(Recorded(call.info["task_id"], ids, n_tokens))
        text = json.dumps(reply_to(call.schema, random.Random(call.seed)))
        return Completion(text, "stop", completion.usage)


class AsTheyCome(AtLength):
    """The same with every request of the same priority."""

    async def generate(self, call: Call) -> Completion:
        """Say nothing of what is ahead."""
        return await super().generate(replace(call, replies_ahead=0))


async def mixed(
    backend: Paced | Watched, tasks: Sequence[Task], *, in_order: bool = False
) -> tuple[list[Evaluation], list[Completion]]:
    """All tasks through runner, admission and stream, as the engine wires them."""
    completions: list[Completion] = []
    capacity = backend.capacity
    admission = Admission(limit=None, cache_tokens=capacity.cache_tokens, context_length=capacity.context_length)
    runner = Runner(
        {backend.model: backend},
        RunContext(seed=1, today="2026-01-01"),
        observe=lambda _, completion: completions.append(completion),
    )
    kinds = evaluators()
    jobs = [EvaluationRequest(position, task, kinds[position % len(kinds)]) for position, task in enumerate(tasks)]
    given = iter(jobs) if in_order else jobs
    found = [evaluation async for _, evaluation in stream(runner, admission, given)]
    return found, completions


async def plain(vllm: VLLM, requests: Sequence[Recorded]) -> list[Completion]:
    """Everything at once, in the order in which the engine was answered."""
    return await asyncio.gather(
        *(
            vllm.request(each.ids, fixed_length(each.n_tokens, derive(each.task_id, n)))
            for n, each in enumerate(requests)
        )
    )


async def run(measured: Measured, tasks: list[Task], repetitions: int) -> dict[str, list[Result]]:
    """The real mix, then all arms."""
    vllm = measured.vllm
    await vllm.start()
    evaluations, completions = await mixed(Watched(vllm), tasks)
    for name, counts in _statuses(evaluations).items():
        print(f"  {name:<8}{', '.join(f'{count} {status}' for status, count in counts.items())}")
    print(f"  {len(evaluations)} of {len(tasks)} evaluations, {len(completions)} calls")
    warm = AtLength(vllm)
    await mixed(warm, tasks)

    async def engine() -> list[Completion]:
        return (await mixed(AtLength(vllm), tasks))[1]

    async def as_come() -> list[Completion]:
        return (await mixed(AsTheyCome(vllm), tasks, in_order=True))[1]

    arms = {"plain": lambda: plain(vllm, warm.recorded), "mixed": engine, "as come": as_come}
    results: dict[str, list[Result]] = {name: [] for name in arms}
    for repetition in range(repetitions):
        for name in list(arms)[:: -1 if repetition % 2 else 1]:
            results[name].append(await measured.arm(arms[name]))
        rates = ", ".join(f"{name} {runs[-1].rate:,.0f} tokens/s" for name, runs in results.items())
        print(f"  {repetition + 1}/{repetitions} {rates}", flush=True)
    await vllm.aclose()
    return results


def _statuses(evaluations: Sequence[Evaluation]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for evaluation in evaluations:
        found.setdefault(evaluation.evaluator, Counter())[evaluation.status] += 1
    return found


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a model folder or name")
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--slots", type=int, default=24)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    measured = Measured(
        options.model,
        max_model_len=16384,
        max_num_seqs=options.slots,
        enforce_eager=True,
        kv_cache_memory_bytes=2**30,
        scheduling_policy="priority",
    )
    print(f"{options.tasks} tasks of 4 candidates: debates, values, votes and steps by turns; {options.model}")
    results = asyncio.run(run(measured, make_tasks(options.tasks, seed=3), options.repetitions))
    print_arms(results)
    print(f"\nas come / plain {ratio(results['as come'], results['plain'])}")
    print(f"mixed / plain   {ratio(results['mixed'], results['plain'])}   goal: at least 0.95")


if __name__ == "__main__":
    main()
