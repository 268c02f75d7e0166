"""Measure everything but the model: what the engine itself costs a turn, in CPU time and in memory.

    scripts/bench overhead [--sizes 100 1000 10000] [--repetitions 5]

Debates of 3 agents, 3 rounds, 4 candidates and 5 components run over a scripted backend whose replies were written
beforehand, with comments of about 200 characters. Each line is one size; every repetition is a fresh process.

The unit is one render of a turn's whole prompt (system, task, the turns so far, agent; contexts ready) and one
`json.loads` of its reply. It is measured in the same process, just before and just after the engine. How to read it:

    unit us, turn us   CPU of one unit, and CPU of the process for one turn of the engine
    turn / unit        their ratio; to be at most 4, and the same in every line
    turn / new         the same beside a sterner unit: rendering only the blocks that are new in a turn, and json.loads
    peak MiB           peak memory of the process; to be flat from 128 debates on, as many as are open at once
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from debate import DebateEvaluator, Engine, Task
from debate.backends import Call, Scripted
from debate.evaluators.debate.candidate_order import arrange
from debate.evaluators.debate.prompts import AGENT, SYSTEM, TASK, TURN, system_context, task_context, turn_context
from debate.evaluators.debate.settings import CELL_SCALE
from debate.parsing.debate_reply import ReplyForm
from debate.templates import Trusted, task_delimiter

LABELS = "ABCD"
SENTENCES = (
    "The second step is right, but the sum in the third is not what it says. ",
    "It names the rule, applies it to the case at hand and checks the result. ",
    "Nothing here speaks of the boundary, which the question asks about first. ",
    "The claim in the middle is stated as a fact and holds only for whole numbers. ",
)
Step = tuple[str, dict[str, Any]]
"""A template and its context."""


def text(n: int, length: int) -> str:
    """Prose of `length` characters that differs with `n`."""
    pieces: list[str] = [SENTENCES[(n + i + n // 4**i) % len(SENTENCES)] for i in range(length // 70 + 2)]
    return f"({n}) {''.join(pieces)}"[:length]


def replies(components: Sequence[str]) -> list[str]:
    """Replies of every candidate, about 1,500 characters each; no two agents agree, so no debate stops early."""

    def candidate(n: int) -> dict[str, Any]:
        scores = {name: (n * 7 + k * 3) % 21 / 2 for k, name in enumerate(components)}
        return {"comment": text(n, 200), "scores": scores}

    return [
        json.dumps({"overall": text(n, 200), "candidates": {label: candidate(n + i) for i, label in enumerate(LABELS)}})
        for n in range(64)
    ]


def tasks(n: int) -> Iterator[Task]:
    """Tasks that are all different: an input of 300 characters, candidates of 200."""
    for i in range(n):
        yield Task(text(i, 300), [text(i + j, 200) for j in range(len(LABELS))], f"task-{i}")


@dataclass(frozen=True)
class Unit:
    """What the turns of one debate are measured by."""

    evaluator: DebateEvaluator
    prompts: list[list[Step]]
    """One list a turn, in turn order."""
    replies: list[str]

    def render(self, prompt: list[Step]) -> list[str]:
        """The prompt's blocks as text."""
        templates = self.evaluator.prompt_templates
        return ["".join(segment.text for segment in templates.render(*step)) for step in prompt]

    def seconds(self, times: int, prompts: list[list[Step]]) -> float:
        """CPU seconds of one turn: rendering its steps, and reading its reply."""
        render = self.evaluator.prompt_templates.render
        began = time.process_time()
        for _ in range(times):
            for prompt, reply in zip(prompts, self.replies, strict=True):
                for step in prompt:
                    render(*step)
                json.loads(reply)
        return (time.process_time() - began) / (times * len(prompts))


def unit_of(evaluator: DebateEvaluator, script: Callable[[Call], str]) -> Unit:
    """The contexts of one real debate, checked to render what the engine sent."""
    calls: list[Call] = []

    def overheard(call: Call) -> str:
        calls.append(call)
        return script(call)

    task = next(tasks(1))
    with Engine(Scripted(overheard)) as engine:
        transcript = engine.evaluate(task, evaluator).transcript
        today = engine.run_context.today
    profile = evaluator.loaded_profile
    form = ReplyForm(tuple(LABELS), tuple(component.name for component in evaluator.components))
    ordering = arrange(list(transcript.turns[0].labels.values()), len(profile.personas), rotate=False)
    word = Trusted(task_delimiter(task))
    turns: list[Step] = [(TURN, turn_context(turn, profile, word, with_scores=True)) for turn in transcript]
    prompts: list[list[Step]] = []
    for n in range(len(turns)):
        persona = profile.personas[n % len(profile.personas)]
        agent: dict[str, Any] = {
            "agent": persona.name, "role": persona.role, "agreement": None, "memories": [], "is_first": n == 0,
            "delimiter": word, "labels": list(LABELS),
        }  # fmt: skip
        head: list[Step] = [
            (SYSTEM, system_context(evaluator.components, CELL_SCALE, today, form)),
            (TASK, task_context(task, ordering, 0)),
        ]
        prompts.append([*head, *turns[:n], (AGENT, agent)])
    unit = Unit(evaluator, prompts, [script(call) for call in calls])
    for call, prompt in zip(calls, prompts, strict=True):
        system, *user = unit.render(prompt)
        assert call.messages == [{"role": "system", "content": system}, {"role": "user", "content": "".join(user)}]
    return unit


def measure(n_debates: int) -> dict[str, float]:
    """One repetition: the unit, the engine, the unit again."""
    evaluator = DebateEvaluator("general", rounds=3, convergence=None)
    written = replies([component.name for component in evaluator.components])
    places = {persona.name: i for i, persona in enumerate(evaluator.personas)}

    def script(call: Call) -> str:
        n: int = call.info["round"] * 31 + places[call.info["agent"]] * 17 + call.seed
        return written[n % len(written)]

    unit = unit_of(evaluator, script)
    n_turns = len(unit.prompts)
    # What a turn adds: the turn before it, where there is one, and its own agent block.
    new = [prompt[-2:] if n else prompt[-1:] for n, prompt in enumerate(unit.prompts)]
    times = 10
    with Engine(Scripted(script)) as engine:
        for _ in engine.iter_evaluate(tasks(20), evaluator):
            pass  # warm
        units, news = [unit.seconds(times, unit.prompts)], [unit.seconds(times, new)]
        began = time.process_time()
        n_ok = sum(e.status == "ok" and e.rounds_run == 3 for e in engine.iter_evaluate(tasks(n_debates), evaluator))
        seconds = time.process_time() - began
        units.append(unit.seconds(times, unit.prompts))
        news.append(unit.seconds(times, new))
    assert n_ok == n_debates, f"{n_debates - n_ok} debates failed"
    return {
        "unit": statistics.mean(units) * 1e6,
        "turn": seconds / (n_debates * n_turns) * 1e6,
        "new": statistics.mean(news) * 1e6,
        "peak": peak_mib(),
    }


def peak_mib() -> float:
    """Peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def in_a_process(n_debates: int) -> dict[str, float]:
    """One repetition in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(n_debates)]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return figures


def table(sizes: Sequence[int], runs: dict[int, list[dict[str, float]]]) -> str:
    """Medians, and the spread of the ratio."""
    lines = [f"{'debates':>8}{'unit us':>10}{'turn us':>10}{'turn / unit':>22}{'turn / new':>12}{'peak MiB':>10}"]
    for size in sizes:
        ratios = [run["turn"] / run["unit"] for run in runs[size]]
        middle = {key: statistics.median(run[key] for run in runs[size]) for key in runs[size][0]}
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        sterner = statistics.median(run["turn"] / run["new"] for run in runs[size])
        lines.append(
            f"{size:>8,}{middle['unit']:>10.0f}{middle['turn']:>10.0f}{ratio:>22}{sterner:>12.2f}{middle['peak']:>10.1f}"
        )
    return "\n".join(lines)


def main() -> int:
    """Parse the command line, run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1000, 10_000], help="debates in each line")
    parser.add_argument("--repetitions", type=int, default=5, help="processes for each size, interleaved")
    parser.add_argument("--measure", type=int, metavar="N", help="one repetition of N debates in this process, as JSON")
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(options.measure)))
        return 0
    runs: dict[int, list[dict[str, float]]] = {size: [] for size in options.sizes}
    for _ in range(options.repetitions):
        for size in options.sizes:
            runs[size].append(in_a_process(size))
    print(table(options.sizes, runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
