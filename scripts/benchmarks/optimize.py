"""Measure what the judges' words are worth to a prompt optimizer: GEPA with them, without them, and with others'.

    scripts/bench optimize [--model built-in] [--seeds 20] [--budget 100] [--rounds 1] [--side-by-side 4]

DSPy's GEPA optimizes the instruction of `examples/optimize_prompt.py` with `debate.adapters.dspy.as_metric`: a bad
prompt, to which one sentence is missing for each of four kinds of question. The program that answers and the rewriter
are scripted; the judge is scripted, too, or with `--model built-in` the bundled one on vLLM. It needs DSPy, with vLLM
in the same environment: `pip install 'debate-eval[cpu]' dspy`. Each seed draws its own twelve questions. Several
optimizations run side by side, in threads, over one engine and one `Judge`. How to read it:

    feedback       what the rewriter is told: what the judges said of an input (`judges`), nothing (`none`), or what
                   they said of another input (`shuffled`); equal budgets of metric calls
    start, end     mean score of the first and of the last prompt over a seed's questions, from 0 to 1
    cured          sentences of four that the last prompt has
    all            optimizations that ended with all four
    minus judges   mean difference of `end` to the same seed's with the judges' words, with its 95 % interval
    asked, pairs   metric calls; different pairs of a question and a response among them
    paid           evaluations that the engine made; the exit code is 1 unless it is `pairs`, no call made twice
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Lock
from typing import Any, get_args

import numpy as np

from debate import DebateEvaluator, Engine, Judge, Task, bundled_judge
from debate.adapters.judge import Judged
from debate.backends import Call, Scripted
from debate.flow import Completion
from debate.statistics import paired_difference
from examples import optimize_prompt as example


@dataclass(frozen=True)
class Optimized:
    """What one optimization came to."""

    start: float
    end: float
    cured: int


class Counting(Judge):
    """A judge that counts what it is asked, and its engine's calls."""

    asked = 0

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.pairs: set[Task] = set()
        self.calls: Counter[tuple[Any, ...]] = Counter()
        self._counting = Lock()
        self.engine.on_completion = self._note

    def submit(self, task: Task) -> Future[Judged]:
        """As a judge's, counted."""
        with self._counting:
            self.asked += 1
            self.pairs.add(task)
        return super().submit(task)

    def _note(self, call: Call, _: Completion) -> None:
        info = call.info
        self.calls[info["task_id"], info.get("agent"), info.get("round"), info.get("attempt")] += 1

    @property
    def paid(self) -> int:
        """Evaluations that were made."""
        return len({task_id for task_id, *_ in self.calls})


def optimized(judge: Judge, seed: int, feedback: example.Feedback, budget: int) -> Optimized:
    """One optimization from the bad prompt."""
    questions = example.questions(seed)
    best = example.with_gepa(judge, example.START, questions, seed=seed, feedback=feedback, budget=budget)
    start, end = (example.mean_score(judge, prompt, questions) for prompt in (example.START, best))
    return Optimized(start, end, sum(cure in best for cure in example.CURES.values()))


def measure(judge: Counting, seeds: int, budget: int, side_by_side: int) -> dict[str, list[Optimized]]:
    """All optimizations, by what the rewriter is told."""
    found: dict[str, list[Optimized]] = {}
    with ThreadPoolExecutor(side_by_side) as threads:
        for feedback in get_args(example.Feedback):
            work = [threads.submit(optimized, judge, seed, feedback, budget) for seed in range(seeds)]
            found[feedback] = [each.result() for each in work]
    return found


def table(found: dict[str, list[Optimized]]) -> str:
    """The figures, a line for each feedback."""
    best = [each.end for each in found["judges"]]
    lines = [f"{'feedback':<10}{'seeds':>6}{'start':>8}{'end':>8}{'cured':>8}{'all':>6}   minus judges"]
    for name, runs in found.items():
        start, end, cured = (float(np.mean([getattr(each, of) for each in runs])) for of in ("start", "end", "cured"))
        whole = sum(each.cured == len(example.CURES) for each in runs)
        line = f"{name:<10}{len(runs):>6}{start:>8.3f}{end:>8.3f}{cured:>8.2f}{whole:>6}"
        if name != "judges":
            minus = paired_difference([each.end for each in runs], best)
            low, high = minus.interval
            line += f"   {minus.estimate:+.3f} ({low:+.3f} to {high:+.3f})"
        lines.append(line)
    return "\n".join(lines)


def opened(model: str | None, rounds: int) -> tuple[Any, DebateEvaluator]:
    """The backend of the judge, and the debate."""
    if model is None:
        return Scripted(example.judge_answers, model="judge"), DebateEvaluator("general", rounds=rounds)
    return bundled_judge.backend(model), bundled_judge.evaluator(model, rounds=rounds)


@contextlib.contextmanager
def silence() -> Any:
    """Without what DSPy and GEPA say of each step."""
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="`built-in`, or a model that vLLM loads; scripted without one")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=100, help="metric calls of one optimization")
    parser.add_argument("--rounds", type=int, default=1, help="of a debate, at most")
    parser.add_argument("--side-by-side", type=int, default=4, help="optimizations at once")
    options = parser.parse_args(arguments)
    if find_spec("dspy") is None:
        print("error: dspy is not installed\n  hint: pip install dspy, beside the package", file=sys.stderr)
        return 2
    backend, evaluator = opened(options.model, options.rounds)
    with Engine(backend) as engine:
        engine.start()
        judge = Counting(engine, evaluator, on_unscored="fallback")
        with silence():
            found = measure(judge, options.seeds, options.budget, options.side_by_side)
    print(table(found))
    twice = sum(n > 1 for n in judge.calls.values())
    print(f"asked {judge.asked:,}, pairs {len(judge.pairs):,}, paid {judge.paid:,}; {twice} calls made twice")
    return 0 if judge.paid == len(judge.pairs) and not twice else 1


if __name__ == "__main__":
    sys.exit(main())
