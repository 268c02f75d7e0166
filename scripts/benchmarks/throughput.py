"""How close debates on real vLLM come to what the engine could do at best.

    scripts/bench throughput --model DIR
    scripts/bench throughput --dummy 8b        random weights in the shape of an 8B Llama, for a GPU

Four arms do the same work: the same prompts, and replies of the same, skewed lengths.

    oracle      the prompts of a finished run, all known beforehand, sent in turn order: nobody waits for anybody
    engine      our engine: each debate goes on as soon as its turn is done
    lockstep    all debates wait for the slowest turn of each step
    one by one  one debate after another, as a for-loop does; on a few debates, scaled

They are interleaved, each starts with an empty prefix cache. The ratios by steps count the engine's steps instead of
seconds: they say how full the slots were, also on a machine with other work, and nothing of our CPU. Read the ratios:
engine/oracle is at best 1, engine/one by one is what batching across debates is worth. Debates should be several times
the slots, or the tail, when few debates are left, is all that is measured.

With --grammar, three more arms send the requests of a run that was decoded under its JSON schemas:

    oracle of its lengths   its prompts and reply lengths, without a grammar
    oracle, grammar         its prompts under their schemas, with vLLM's parameters made beforehand
    engine, grammar         our engine

It also prints the CPU that vLLM's input processor takes for a request of that run, with parameters that it checks each
time and with ours. engine, grammar over oracle, grammar is what the engine costs there; oracle, grammar over oracle of
its lengths is the grammar's own share. --digests 1 64 256 also sends the first 256 of the oracle's prompts, greedily,
at most so many at once, and prints a digest of the replies: on a GPU they are equal with VLLM_BATCH_INVARIANT=1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from make_tiny_model import make_tiny_model

from benchmarks.debates import EngineStats, make_tasks
from debate import DebateEvaluator, Task
from debate.backends import VLLM, Call, Capacity
from debate.evaluators.base import RunContext
from debate.flow import Completion
from debate.hashing import derive, digest
from debate.runtime.limits import Admission
from debate.runtime.runner import Runner
from debate.runtime.scheduler import EvaluationRequest, stream

LENGTHS = (20, 30, 40, 160)
"""Tokens of a reply, one drawn for each turn: most are short and a few are long."""
RATIOS = (
    ("engine", "oracle", "  goal: at least 0.97"),
    ("engine", "lockstep", "  goal: above 1"),
    ("engine", "one by one", "  goal: at least 5"),
    ("engine, grammar", "oracle, grammar", "  goal: at least 0.95"),
    ("oracle, grammar", "oracle of its lengths", ""),
)
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
    params: Any = None
    """VLLM's parameters that it was sent with, where they are more than a length."""


@dataclass(frozen=True)
class Result:
    """One arm, once."""

    seconds: float
    tokens: int
    requests: int
    cached: float
    steps: int
    """Of the engine."""
    cpu: float
    """Seconds of this process."""

    @property
    def rate(self) -> float:
        """Generated tokens a second."""
        return self.tokens / self.seconds

    @property
    def per_step(self) -> float:
        """Generated tokens a step: how full the slots were, whatever else the machine had to do."""
        return self.tokens / self.steps


class Measured:
    """An engine on vLLM whose steps are counted."""

    def __init__(self, model: str | Path, **arguments: Any) -> None:
        self._stats = EngineStats()
        self.vllm = VLLM(model, stat_loggers=[self._stats.logger], **arguments)

    async def arm(self, arm: Callable[[], Awaitable[list[Completion]]]) -> Result:
        """One arm from a cold prefix cache."""
        await self.vllm.engine.reset_prefix_cache()
        steps, cpu, began = self._stats.steps, time.process_time(), time.perf_counter()
        completions = await arm()
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        usages = [completion.usage for completion in completions]
        prompt, cached = (sum(getattr(u, name) for u in usages) for name in ("prompt_tokens", "cached_tokens"))
        tokens = sum(usage.completion_tokens for usage in usages)
        return Result(seconds, tokens, len(completions), cached / prompt, self._stats.steps - steps, cpu)


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
        completion = await self._vllm.request(
            ids, fixed_length(n_tokens, call.seed), session=call.session, replies_ahead=call.replies_ahead
        )
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
        params = self._vllm.sampling_params(call, len(ids))
        self.recorded.append(Recorded(call.info["task_id"], ids, completion.usage.completion_tokens, params))
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


def in_turn_order(debates: list[list[Recorded]]) -> list[Recorded]:
    """All first turns, then all second ones, and so on."""
    longest = max(len(debate) for debate in debates)
    return [debate[t] for t in range(longest) for debate in debates if t < len(debate)]


async def oracle(vllm: VLLM, turns: list[list[Recorded]]) -> list[Completion]:
    """Everything at once, first turns first."""
    return await asyncio.gather(*(_send(vllm, turn) for turn in in_turn_order(turns)))


async def oracle_with_grammar(vllm: VLLM, turns: list[list[Recorded]]) -> list[Completion]:
    """The same, each request with the parameters that it had."""
    return await asyncio.gather(*(vllm.request(turn.ids, turn.params) for turn in in_turn_order(turns)))


async def digest_at(vllm: VLLM, requests: Sequence[Recorded], at_once: int) -> str:
    """Digest of the greedy replies to some prompts, at most so many of them under way at a time."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    room = asyncio.Semaphore(at_once)
    params = SamplingParams(temperature=0, max_tokens=64, ignore_eos=True, output_kind=RequestOutputKind.FINAL_ONLY)

    async def reply(request: Recorded) -> str:
        async with room:
            return (await vllm.request(request.ids, params)).text

    return digest(await asyncio.gather(*map(reply, requests)))


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


def print_cost_of_checking(vllm: VLLM, request: Recorded) -> None:
    """CPU of this process from parameters to what is sent to the engine's process, checked each time and once."""
    from vllm import SamplingParams

    names = ("temperature", "max_tokens", "seed", "structured_outputs", "output_kind")
    checked_each_time = SamplingParams(**{name: getattr(request.params, name) for name in names})
    prompt = {"type": "token", "prompt_token_ids": request.ids}
    for name, params in (("each time", checked_each_time), ("once per shape", request.params)):
        began = time.process_time()
        for _ in range(20):
            vllm.engine.input_processor.process_inputs("request", prompt, params, ("generate",))
        print(f"a request's parameters, checked {name}: {(time.process_time() - began) / 20 * 1000:.2f} ms")


def by_debate(recorded: Sequence[Recorded]) -> list[list[Recorded]]:
    """Requests of each debate in turn order; a debate's requests are recorded in their order."""
    debates: dict[str, list[Recorded]] = defaultdict(list)
    for turn in recorded:
        debates[turn.task_id].append(turn)
    return list(debates.values())


async def compare(
    measured: Measured,
    tasks: list[Task],
    repetitions: int,
    few: int,
    *,
    grammar: bool,
    digests: Sequence[int],
    arms_wanted: Sequence[str] | None,
) -> dict[str, list[Result]]:
    """All arms, or those wanted, interleaved: every second repetition goes through them backwards."""
    vllm = measured.vllm
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
    if grammar:
        real_evaluator = DebateEvaluator("general", rounds=2, convergence=None, comment_chars=60, overall_chars=60)
        watched = Watched(vllm)
        await run_engine(watched, tasks, real_evaluator)
        print_cost_of_checking(vllm, watched.recorded[0])
        arms["oracle of its lengths"] = lambda: oracle(vllm, by_debate(watched.recorded))
        arms["oracle, grammar"] = lambda: oracle_with_grammar(vllm, by_debate(watched.recorded))
        arms["engine, grammar"] = lambda: run_engine(Watched(vllm), tasks, real_evaluator)
    results: dict[str, list[Result]] = {name: [] for name in arms if arms_wanted is None or name in arms_wanted}
    for repetition in range(repetitions):
        for name in list(results)[:: -1 if repetition % 2 else 1]:
            results[name].append(result := await measured.arm(arms[name]))
            print(f"  {repetition + 1}/{repetitions} {name}: {result.rate:,.0f} tokens/s", flush=True)
    for at_once in digests:
        await vllm.engine.reset_prefix_cache()
        print(f"greedy replies, {at_once} at once: {await digest_at(vllm, in_turn_order(turns)[:256], at_once)}")
    await vllm.aclose()
    return results


def report(results: dict[str, list[Result]], n_debates: int) -> None:
    """A table of medians, and the ratios: medians over the repetitions, with the least and the greatest."""
    print_arms(results)
    if "engine" in results:
        debates = n_debates / median(result.seconds for result in results["engine"])
        print(f"\nengine: {debates:.2f} debates/s")
    print()
    for above, below, goal in RATIOS:
        if above in results and below in results:
            print(f"{above} / {below}".ljust(42), ratio(results[above], results[below]), goal)


def print_arms(results: Mapping[str, Sequence[Result]]) -> None:
    """A table of medians; `CPU ms` is that of this process for each request."""
    print(f"\n{'arm':<22}{'tokens/s':>10}{'requests':>10}{'seconds':>9}{'cached':>8}{'tokens/step':>13}{'CPU ms':>8}")
    for name, runs in results.items():
        rate, seconds = median(run.rate for run in runs), median(run.seconds for run in runs)
        per_step, cpu = median(run.per_step for run in runs), median(run.cpu / run.requests * 1000 for run in runs)
        n, cached = runs[-1].requests, runs[-1].cached
        print(f"{name:<22}{rate:>10,.0f}{n:>10}{seconds:>9.1f}{cached:>8.1%}{per_step:>13.2f}{cpu:>8.2f}")


def ratio(above: Sequence[Result], below: Sequence[Result]) -> str:
    """Ratio of two arms, per second and per step: the median over the repetitions, the least and the greatest."""
    pairs = list(zip(above, below, strict=True))
    seconds, steps = [a.rate / b.rate for a, b in pairs], [a.per_step / b.per_step for a, b in pairs]
    return f"{_spread(seconds)}, by steps {_spread(steps)}"


def _spread(each: Sequence[float]) -> str:
    return f"{median(each):.2f} ({min(each):.2f} to {max(each):.2f})"


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
    parser.add_argument("--grammar", action="store_true", help="three more arms, for decoding under a schema")
    parser.add_argument("--arms", nargs="+", default=None, help="only these arms; all by default")
    parser.add_argument("--digests", nargs="+", type=int, default=[], help="compare greedy replies, so many at once")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--cache-gib", type=float, default=None, help="KV cache; on GPUs vLLM's own choice by default")
    options = parser.parse_args()
    arguments: dict[str, Any] = {
        "max_model_len": 16384,
        "max_num_seqs": options.slots,
    }
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
            compare(
                Measured(model, **arguments),
                tasks,
                options.repetitions,
                options.few,
                grammar=options.grammar,
                digests=options.digests,
                arms_wanted=options.arms,
            )
        )
        report(results, options.debates)


if __name__ == "__main__":
    main()
