"""How often intervals of 95 % hold the truth, in simulations where the truth is known.

    scripts/bench coverage [--repetitions 1000] [--seed 1]

Each line is one kind of interval at one size:

    covers   share of the simulated samples whose interval holds the truth, with its own 95 % interval
    width    mean width of these intervals
    goal     93 to 97 % from 50 clusters or 100 labels on, of corrected pass rates at least 93 %; below these sizes the
             figures say how far the intervals can be trusted there

What is drawn:

    clustered mean      right or wrong, 70 % right; 4 items in each task, as hard as their task (correlation 1/3)
    ignoring clusters   the same, as if items were independent: what clusters are for
    paired difference   two systems on the same tasks of 4 items, one 5 points better than the other
    PPI++               labels that are 60 % positive; a judge who is right in 85 % of these and 80 % of the others;
                        2,000 more items that it judged alone
    pass rate           the same judge, 70 % pass, 1,000 judged items, labels of a random sample
    judges              five judges who err in 20 % with a planted correlation, on 400 items: the mean effective number
                        and its standard deviation, beside the true one

The program ends with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from debate.statistics import (
    Estimate,
    clustered_mean,
    effective_judges,
    paired_difference,
    ppi_mean,
    rogan_gladen,
    wilson,
)

Truths = NDArray[np.bool_]
PER_TASK = 4
CLUSTERS = (10, 20, 30, 50, 100, 200)
LABELS = (20, 30, 50, 100, 200)


@dataclass(frozen=True)
class Kind:
    """A kind of interval: draws a sample of a size and estimates from it what is `truth`."""

    name: str
    truth: float
    sample: Callable[[Generator, int], Estimate]
    unit: str
    sizes: tuple[int, ...]
    from_size: int | None
    """The goal holds from this size on; None for no goal."""
    at_most: float = 0.97


@dataclass(frozen=True)
class Coverage:
    """What came of one kind at one size."""

    kind: Kind
    size: int
    covers: Estimate
    width: float

    @property
    def is_met(self) -> bool | None:
        """Whether the share lies within its goal; None without a goal."""
        if self.kind.from_size is None or self.size < self.kind.from_size:
            return None
        return 0.93 <= self.covers.estimate <= self.kind.at_most


def tasks_of_items(draw: Generator, tasks: int, ignoring: bool = False) -> Estimate:
    """The accuracy on items that are as hard as their task."""
    right = draw.random((tasks, PER_TASK)) < draw.beta(1.4, 0.6, size=(tasks, 1))
    return clustered_mean(right.ravel(), None if ignoring else np.repeat(np.arange(tasks), PER_TASK))


def two_systems(draw: Generator, tasks: int) -> Estimate:
    """The difference of two systems on the same items."""
    ease = draw.uniform(0.3, 0.9, size=(tasks, 1))
    ours, theirs = (draw.random((tasks, PER_TASK)) < ease + lead for lead in (0.05, 0.0))
    return paired_difference(ours.ravel(), theirs.ravel(), np.repeat(np.arange(tasks), PER_TASK))


def judged(draw: Generator, n: int, positive: float, sensitivity: float, specificity: float) -> tuple[Truths, Truths]:
    """True labels and those of a judge, (n,) each."""
    truth = draw.random(n) < positive
    return truth, np.where(draw.random(n) < np.where(truth, sensitivity, specificity), truth, ~truth)


def few_labels(draw: Generator, labels: int) -> Estimate:
    """A mean by PPI++."""
    truth, said = judged(draw, labels + 2000, 0.6, 0.85, 0.8)
    return ppi_mean(truth[:labels], said[:labels], said[labels:])


def pass_rate(draw: Generator, labels: int) -> Estimate:
    """A corrected pass rate; without an interval where the labels are all of one kind."""
    truth, said = judged(draw, labels, 0.7, 0.85, 0.8)
    passed = float(judged(draw, 1000, 0.7, 0.85, 0.8)[1].mean())
    if truth.all() or not truth.any():
        return Estimate(math.nan, (math.nan, math.nan), 0, "labels of one kind")
    specificity, sensitivity = float((~said[~truth]).mean()), float(said[truth].mean())
    return rogan_gladen(passed, 1000, specificity, int((~truth).sum()), sensitivity, int(truth.sum()))


KINDS = (
    Kind("clustered mean", 0.7, tasks_of_items, "tasks", CLUSTERS, 50),
    Kind("ignoring clusters", 0.7, lambda draw, n: tasks_of_items(draw, n, ignoring=True), "tasks", (50, 200), None),
    Kind("paired difference", 0.05, two_systems, "tasks", CLUSTERS, 50),
    Kind("PPI++", 0.6, few_labels, "labels", LABELS, 100),
    Kind("pass rate", 0.7, pass_rate, "labels", LABELS, 100, at_most=1.0),
)


def coverage(kind: Kind, size: int, repetitions: int, seed: int) -> Coverage:
    """One kind at one size; every repetition draws anew."""
    draw = np.random.default_rng([seed, KINDS.index(kind), size])
    ends = np.array([kind.sample(draw, size).interval for _ in range(repetitions)])  # (repetitions, 2)
    held = (ends[:, 0] <= kind.truth) & (kind.truth <= ends[:, 1])  # an interval that is missing holds nothing
    return Coverage(kind, size, wilson(int(held.sum()), repetitions), float(np.nanmean(ends[:, 1] - ends[:, 0])))


def planted_judges(rho: float, repetitions: int, seed: int, judges: int = 5, items: int = 400) -> tuple[float, ...]:
    """The true effective number of judges, and mean and standard deviation of the estimates."""
    draw = np.random.default_rng([seed, 99, round(100 * rho)])

    def estimate() -> float:
        chance = draw.beta(0.2 * (1 / rho - 1), 0.8 * (1 / rho - 1), size=(items, 1)) if rho else 0.2
        return effective_judges(draw.random((items, judges)) < chance, draws=0).estimate

    found = [estimate() for _ in range(repetitions)]
    return judges / (1 + (judges - 1) * rho), float(np.mean(found)), float(np.std(found))


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="bench coverage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def line(found: Coverage) -> str:
    """One line of the table."""
    low, high = (100 * end for end in found.covers.interval)
    goal = {None: "", True: "met", False: "MISSED"}[found.is_met]
    size = f"{found.size} {found.kind.unit}"
    share = f"{100 * found.covers.estimate:.1f} % ({low:.1f} to {high:.1f})"
    return f"{found.kind.name:<19}{size:>12}  {share:<24}{found.width:>7.3f}  {goal}".rstrip()


def main() -> int:
    """Print all figures."""
    options = arguments()
    print(f"{'interval':<19}{'size':>12}  {'covers':<24}{'width':>7}  goal")
    missed = 0
    for kind in KINDS:
        for size in kind.sizes:
            found = coverage(kind, size, options.repetitions, options.seed)
            missed += found.is_met is False
            print(line(found), flush=True)
    print(f"\n{'judges':<19}{'correlation':>12}  {'true number':<14}found")
    for rho in (0.0, 0.1, 0.3, 0.6):
        truth, mean, spread = planted_judges(rho, max(options.repetitions // 5, 2), options.seed)
        print(f"{'five':<19}{rho:>12.1f}  {truth:<14.2f}{mean:.2f} (standard deviation {spread:.2f})", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
