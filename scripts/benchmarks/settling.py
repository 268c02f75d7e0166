"""Show what settling tasks silently saves: the bundled judge, with a threshold of one run tried on other tasks.

    scripts/bench settling [--calibration 600] [--tasks 100] [--error 0.05] [--seed 1] [--by p_best] [--every-round]
                           [--out FOLDER]

Half of the tasks are hidden profiles, where no agent remembers all that is needed. The first run records silent rounds
of labeled tasks, and nothing else; a threshold is chosen on it, as `debate stopping --settle-error` does. Other tasks
are then debated twice, all of them and only the doubtful ones: until the agents agree, or in every round of the
profile. Prints both parts of the second with their accuracy, and what it took of the first.

    scripts/bench settling --simulate    how often the promise is broken, in 1,000 draws, with and without a shift
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from judging.demonstration import AGENTS
from numpy.typing import NDArray

from benchmarks.agreement import World, rows
from debate.bundled_judge import BUILT_IN
from debate.evaluation import verdict
from debate.files import json_text
from debate.memory import HashingEmbedder, MemoryStore
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.meta_evaluation.people import right_choices
from debate.meta_evaluation.settling import PartFigures, choose_settling, settling_figures, silent_rounds
from debate.statistics import paired_difference, selective_threshold

DEBATE = [sys.executable, "-m", "debate"]


def main() -> int:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibration", type=int, default=600, help="tasks that the threshold is chosen on")
    parser.add_argument("--tasks", type=int, default=100, help="tasks that it is tried on")
    parser.add_argument("--error", type=float, default=0.05, help="promised of what is settled")
    parser.add_argument("--by", default="p_best", help="measure of certainty: p_best, margin, agreement")
    parser.add_argument("--every-round", action="store_true", help="debates go on where the agents agree")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--simulate", action="store_true", help="no model: try the promise itself")
    parser.add_argument("--out", type=Path, help="folder that keeps all; otherwise it is deleted afterwards")
    args = parser.parse_args()
    if args.simulate:
        return simulate(args.error, args.calibration, args.seed)
    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        return measure(out, args)


def measure(out: Path, args: argparse.Namespace) -> int:
    """Make tasks and memories, run three times, and print the figures; returns the exit code."""
    world = World(Random(f"settling-{args.seed}"))
    made = rows(world, args.calibration + args.tasks)
    _write(out / "calibration.jsonl", made[: args.calibration])
    _write(out / "tasks.jsonl", made[args.calibration :])
    with MemoryStore(out / "memory.sqlite", HashingEmbedder(), "exact") as store:
        for agent in AGENTS:
            texts = [fact.text for name, fact in world.facts.items() if world.holder[name] == agent]
            store.add(f"judge/{agent}", texts)
    _run(out, "calibration", "calibration.jsonl", "--settle", "p_best=0.000001")  # which is every task
    calibration = read_run(out / "calibration")
    _silent(calibration)
    chosen = choose_settling(calibration, args.error, args.by)
    found = chosen.found
    print(f"{chosen.rule or 'no rule'} settles {found.kept} of {chosen.tasks} tasks, {found.wrong} of them wrongly")
    if chosen.rule is None:
        print(f"Nothing is settled: {found.reason}.")
        return 0
    debated = ["--convergence", "none"] if args.every_round else []
    _run(out, "whole", "tasks.jsonl", *debated)
    _run(out, "settled", "tasks.jsonl", "--settle", chosen.rule, *debated)
    _report(read_run(out / "whole"), read_run(out / "settled"))
    return 0


def simulate(error: float, n: int, seed: int, draws: int = 1000) -> int:
    """Draw tasks to calibrate and to test on, and count how often the threshold of the first fails on the second."""
    rng = np.random.default_rng(seed)
    print(f"{n} tasks to calibrate on and {n} to test on, {draws:,} draws; promised: at most {error:.0%} wrong")
    names = ("wrong more often than then", "true error above it", "test error above it", "no promise", "settled")
    print(" ".join(f"{name:>{w}}" for name, w in zip(names, (28, 20, 20, 11, 8), strict=True)))
    for shift in (0.0, 0.02, 0.05, 0.1):
        true, seen, kept = list[bool](), list[bool](), list[float]()
        for _ in range(draws):
            found = selective_threshold(*_drawn(rng, n, 0.0), error)
            if found.reason is not None:
                continue
            certainty, wrong = _drawn(rng, n, shift)
            above = certainty >= found.threshold
            kept.append(float(above.mean()))
            seen.append(bool(above.any() and wrong[above].mean() > error))
            true.append(bool(_rates(np.linspace(found.threshold, 1, 10_000), shift).mean() > error))
        figures = (sum(true) / draws, sum(seen) / draws, 1 - len(kept) / draws, sum(kept) / max(len(kept), 1))
        print(f"{shift:>+28.0%}" + "".join(f"{each:>{w}.1%}" for each, w in zip(figures, (21, 21, 12, 9), strict=True)))
    print("The promise is of the true error, and may be broken in 5 % of the draws; test tasks vary around it.")
    return 0


def _rates(certainty: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
    """How often a choice of this certainty is wrong: seldom above 0.4, ever more often below."""
    return np.clip(np.where(certainty >= 0.4, 0.01, 0.01 + 1.5 * (0.4 - certainty)) + shift, 0, 1)


def _drawn(rng: np.random.Generator, n: int, shift: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    certainty = rng.random(n)
    return certainty, (rng.random(n) < _rates(certainty, shift)).astype(float)


def _silent(run: JudgedRun) -> None:
    """How often silent choices are right, by group."""
    found: dict[str, list[bool]] = {}
    for each in silent_rounds(run):
        right = verdict(each.choice, each.task.labels.together.choice) == "right"
        found.setdefault(each.task.group, []).append(right)
    for group, hits in found.items():
        print(f"  {group}: silent choice right in {sum(hits) / len(hits):.1%} of {len(hits)} tasks")


def _write(file: Path, made: list[dict[str, Any]]) -> None:
    file.write_text("".join(json_text(row) + "\n" for row in made), encoding="utf-8")


def _run(out: Path, name: str, tasks: str, *flags: str) -> None:
    given = ["--model", BUILT_IN, "--profile", "judge", "--memory", str(out / "memory.sqlite"), *flags]
    done = subprocess.run([*DEBATE, "run", str(out / tasks), *given, "--out", str(out / name)], check=False)
    if done.returncode not in (0, 3):
        sys.exit(done.returncode)


def _report(whole: JudgedRun, settled: JudgedRun) -> None:
    found = settling_figures(settled)
    assert found is not None
    print(f"\nrule {found.rule}: {found.share.estimate:.1%} of {len(settled.tasks)} tasks are settled silently\n")
    for name, part in (("settled", found.settled), ("debated", found.debated)):
        print(f"  {name:<9} {_told(part)}")
    by_id = {task.task_id: task for task in whole.tasks}
    pairs = [(float(task.verdict == "right"), float(by_id[task.task_id].verdict == "right")) for task in settled.tasks]
    difference = paired_difference([now for now, _ in pairs], [before for _, before in pairs])
    low, high = difference.interval
    print(f"\n  accuracy: {right_choices(settled.tasks).share.estimate:.1%}, all debated "
          f"{right_choices(whole.tasks).share.estimate:.1%}, difference {100 * difference.estimate:+.1f} points "
          f"[{100 * low:+.1f}, {100 * high:+.1f}]")  # fmt: skip
    now, before = _tokens(settled), _tokens(whole)
    print(f"  decoded plus uncached prompt tokens: {now:,}, all debated {before:,}, ratio {now / before:.2f}")
    groups = sorted({task.group for task in settled.tasks})
    for group in groups:
        ended = [task.stop_reason == "settled" for task in settled.tasks if task.group == group]
        print(f"  {group}: {sum(ended)} of {len(ended)} settled")


def _told(part: PartFigures) -> str:
    right = "-" if part.right is None or not part.right.labeled else (
        f"{part.right.share.estimate:.1%} right (95 %: {part.right.share.interval[0]:.1%} to "
        f"{part.right.share.interval[1]:.1%})"
    )  # fmt: skip
    return (
        f"{part.tasks:>4} tasks, {right}, {part.uncached_prompt_tokens + part.completion_tokens:,.0f} tokens per task"
    )


def _tokens(run: JudgedRun) -> int:
    return sum(task.usage.prompt_tokens - task.usage.cached_tokens + task.usage.completion_tokens for task in run.tasks)
