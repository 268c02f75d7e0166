"""How close debates on real vLLM come to what the engine could do at best.

    scripts/bench throughput --model DIR
    scripts/bench throughput --dummy 8b        random weights in the shape of an 8B Llama, for a GPU

Four arms do the same work: the same prompts, and replies of the same, skewed lengths.

    oracle      the prompts of a finished run, all known beforehand, sent in turn order: nobody waits for anybody
    engine      our engine: each debate goes on as soon as its turn is done
    lockstep    all debates wait for the slowest turn of each step
    one by one  one debate after another, as a for-loop does; on a few debates, scaled

They are interleaved, each starts with an empty prefix cache, medians are compared. Read the ratios: engine/oracle is
at best 1, engine/one by one is what batching across debates is worth. Debates should be several times the slots, or the
tail, when few debates are left, is all that is measured. With --json, two more arms put decoding under the reply's JSON
schema beside the oracle of that same run: what constrained decoding costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from make_tiny_model import make_tiny_model

from benchmarks.debates import make_tasks
from debate import DebateEvaluator, Task
from debate.backends import VLLM, Call, Capacity
from debate.evaluators.base import RunContext
from debate.flow import Completion
from debate.hashing import derive
from debate.runtime.limits import Admission
from debate.runtime.runner import Runner
from debate.runtime.scheduler import EvaluationRequest, stream

LENGTHS = (20, 30, 40, 160)
"""Tokens of a reply, one drawn for each turn: most are short and a few are long."""
SHAPES = {
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32},
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32},
}


@dataclass(frozen=True)
class Recorded:
    """One request of a finished run."""

    task_id: str
    ids: list[int]
    n_tokens: int


@dataclass(frozen=True)
class Result:
    """One arm, once."""

    seconds: float
    tokens: int
    requests: int
    cached: float

    @property
    def rate(self) -> float:
        """Generated tokens a second."""
        return self.tokens / self.seconds


def fixed_length(n_tokens: int, seed: int) -> Any:
    """Sampling that generates exactly so many tokens."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=0.7,
        seed=seed,
        max_tokens=n_tokens,
        min_tokens=n_tokens,
        ignore_eos=True,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


class Paced:
    """The engine's backend with every reply at its drawn length; what it says is made up, and readable."""

    def __init__(self, vllm: VLLM) -> None:
        self.model = vllm.model
        self._vllm = vllm
        self.recorded: list[Recorded] = []

    @property
    def capacity(self) -> Capacity:
        """That of the real one."""
        return self._vllm.capacity

    async def start(self) -> None:
        """Started by its owner."""

    async def aclose(self) -> None:
        """Closed by its owner."""

    async def generate(self, call: Call) -> Completion:
        """Generate for as long as the turn's draw says, then answer with scores that never agree."""
        n_tokens = LENGTHS[derive(call.info["task_id"], call.info["agent"], call.info["round"]) % len(LENGTHS)]
        ids = self._vllm.token_ids(call.prompt)
        completion = await self._vllm.request(ids, fixed_length(n_tokens, call.seed))
        self.recorded.append(Recorded(call.info["task_id"], ids, n_tokens))
        return Completion(_reply(call), "stop", completion.usage)


class Watched:
    """The real backend, constrained decoding and all, with its requests recorded."""

    def __init__(self, vllm: VLLM) -> None:
        self.model = vllm.model
        self.capacity = vllm.capacity
        self._vllm = vllm
        self.recorded: list[Recorded] = []

    async def start(self) -> None:
        """Started by its owner."""

    async def aclose(self) -> None:
        """Closed by its owner."""

    async def generate(self, call: Call) -> Completion:
        """Pass it on."""
        completion = await self._vllm.generate(call)
        ids = self._vllm.token_ids(call.prompt)
        self.recorded.append(Recorded(call.info["task_id"], ids, completion.usage.completion_tokens))
        return completion


def _reply(call: Call) -> str:
    assert call.schema is not None
    candidates = call.schema["properties"]["candidates"]["properties"]
    said = {
        label: {
            "comment": "The answer is sound in its main point and leaves out one of the steps.",
            "scores": {
                name: derive(call.seed, label, name) % 11 for name in shape["properties"]["scores"]["properties"]
            },
        }
        for label, shape in candidates.items()
    }
    return json.dumps({"overall": "They differ in what they leave out.", "candidates": said})


async def run_engine(backend: Paced | Watched, tasks: Sequence[Task], evaluator: DebateEvaluator) -> list[Completion]:
    """All debates through runner, admission and stream, as the engine wires them."""
    completions: list[Completion] = []
    capacity = backend.capacity
    admission = Admission(limit=None, cache_tokens=capacity.cache_tokens, context_length=capacity.context_length)
    runner = Runner(
        {backend.model: backend},
        RunContext(seed=1, today="2026-01-01"),
        observe=lambda _, completion: completions.append(completion),
    )
    jobs = [EvaluationRequest(position, task, evaluator) for position, task in enumerate(tasks)]
    async for _, evaluation in stream(runner, admission, jobs):
        assert evaluation.tensor is not None
    return completions


async def oracle(vllm: VLLM, turns: list[list[Recorded]]) -> list[Completion]:
    """Everything at once, first turns first."""
    longest = max(len(debate) for debate in turns)
    ordered = [debate[t] for t in range(longest) for debate in turns if t < len(debate)]
    return await asyncio.gather(*(_send(vllm, turn) for turn in ordered))


async def lockstep(vllm: VLLM, turns: list[list[Recorded]]) -> list[Completion]:
    """Step t of all debates, then step t + 1."""
    completions: list[Completion] = []
    for t in range(max(len(debate) for debate in turns)):
        step = [debate[t] for debate in turns if t < len(debate)]
        completions += await asyncio.gather(*(_send(vllm, turn) for turn in step))
    return completions


async def one_by_one(vllm: VLLM, turns: list[list[Recorded]]) -> list[Completion]:
    """A for-loop."""
    return [await _send(vllm, turn) for debate in turns for turn in debate]


async def _send(vllm: VLLM, turn: Recorded) -> Completion:
    return await vllm.request(turn.ids, fixed_length(turn.n_tokens, derive(turn.task_id, turn.n_tokens)))


async def timed(vllm: VLLM, arm: Callable[[], Awaitable[list[Completion]]]) -> Result:
    """One arm from a cold prefix cache."""
    await vllm.engine.reset_prefix_cache()
    began = time.perf_counter()
    completions = await arm()
    seconds = time.perf_counter() - began
    prompt = sum(completion.usage.prompt_tokens for completion in completions)
    cached = sum(completion.usage.cached_tokens for completion in completions)
    tokens = sum(completion.usage.completion_tokens for completion in completions)
    return Result(seconds, tokens, len(completions), cached / prompt)


def by_debate(recorded: Sequence[Recorded]) -> list[list[Recorded]]:
    """Requests of each debate in turn order; a debate's requests are recorded in their order."""
    debates: dict[str, list[Recorded]] = defaultdict(list)
    for turn in recorded:
        debates[turn.task_id].append(turn)
    return list(debates.values())


async def compare(
    vllm: VLLM, tasks: list[Task], repetitions: int, few: int, *, with_json: bool
) -> dict[str, list[Result]]:
    """All arms, interleaved."""
    await vllm.start()
    paced_evaluator = DebateEvaluator("general", rounds=2, convergence=None)
    warm = Paced(vllm)
    await run_engine(warm, tasks, paced_evaluator)
    turns = by_debate(warm.recorded)
    arms: dict[str, Callable[[], Awaitable[list[Completion]]]] = {
        "oracle": lambda: oracle(vllm, turns),
        "engine": lambda: run_engine(Paced(vllm), tasks, paced_evaluator),
        "lockstep": lambda: lockstep(vllm, turns),
        "one by one": lambda: one_by_one(vllm, turns[:few]),
    }
    if with_json:
        real_evaluator = DebateEvaluator("general", rounds=2, convergence=None, comment_chars=60, overall_chars=60)
        watched = Watched(vllm)
        await run_engine(watched, tasks, real_evaluator)
        arms["oracle of JSON"] = lambda: oracle(vllm, by_debate(watched.recorded))
        arms["engine, JSON schema"] = lambda: run_engine(Watched(vllm), tasks, real_evaluator)
    results: dict[str, list[Result]] = {name: [] for name in arms}
    for repetition in range(repetitions):
        for name, arm in arms.items():
            results[name].append(await timed(vllm, arm))
            print(f"  {repetition + 1}/{repetitions} {name}: {results[name][-1].rate:,.0f} tokens/s", flush=True)
    await vllm.aclose()
    return results


def report(results: dict[str, list[Result]], n_debates: int) -> None:
    """A table of medians, and the ratios."""
    rates = {name: statistics.median(result.rate for result in runs) for name, runs in results.items()}
    print(f"\n{'arm':<22}{'tokens/s':>10}{'turns/s':>10}{'seconds':>10}{'cached':>9}")
    for name, runs in results.items():
        turns = statistics.median(result.requests / result.seconds for result in runs)
        seconds = statistics.median(result.seconds for result in runs)
        print(f"{name:<22}{rates[name]:>10,.0f}{turns:>10.1f}{seconds:>10.1f}{runs[-1].cached:>9.1%}")
    debates = n_debates / statistics.median(result.seconds for result in results["engine"])
    print(f"\nengine: {debates:.2f} debates/s")
    print(f"engine / oracle        {rates['engine'] / rates['oracle']:.2f}   (goal: at least 0.85)")
    print(f"engine / lockstep      {rates['engine'] / rates['lockstep']:.2f}   (goal: above 1)")
    print(f"engine / one by one    {rates['engine'] / rates['one by one']:.1f}   (goal: at least 5)")
    if "oracle of JSON" in rates:
        print(f"JSON schema / oracle   {rates['engine, JSON schema'] / rates['oracle of JSON']:.2f}")


def dummy_model(shape: str, folder: Path) -> Path:
    """A folder with the configuration of a bigger Llama and the tiny model's tokenizer; vLLM invents the weights."""
    make_tiny_model(folder)
    (folder / "model.safetensors").unlink()
    config = json.loads((folder / "config.json").read_text())
    config.update(SHAPES[shape], num_key_value_heads=8, head_dim=128 if shape == "8b" else 64, vocab_size=128256)
    config["tie_word_embeddings"] = False
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", type=Path, help="a model folder or name")
    which.add_argument("--dummy", choices=sorted(SHAPES), help="random weights in a bigger model's shape")
    parser.add_argument("--debates", type=int, default=96)
    parser.add_argument("--few", type=int, default=4, help="debates of the arm that runs one by one")
    parser.add_argument("--slots", type=int, default=24)
    parser.add_argument("--json", action="store_true", help="two more arms, with constrained decoding")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--cache-gib", type=float, default=None, help="KV cache; on GPUs vLLM's own choice by default")
    options = parser.parse_args()
    arguments: dict[str, Any] = {"max_model_len": 16384, "max_num_seqs": options.slots}
    if options.cache_gib is not None:
        arguments["kv_cache_memory_bytes"] = int(options.cache_gib * 2**30)
    with tempfile.TemporaryDirectory() as folder:
        if options.dummy:
            model = dummy_model(options.dummy, Path(folder) / "model")
            arguments["load_format"] = "dummy"
        else:
            model = options.model
            arguments["enforce_eager"] = True
        tasks = make_tasks(options.debates, seed=3)
        characters = int(np.mean([len(task.x) + sum(len(c.text) for c in task.candidates) for task in tasks]))
        print(f"{options.debates} debates of 3 agents, 2 rounds, 4 candidates of {characters} characters; {model}")
        results = asyncio.run(
            compare(VLLM(model, **arguments), tasks, options.repetitions, options.few, with_json=options.json)
        )
        report(results, options.debates)


if __name__ == "__main__":
    main()
