"""Ways of reading a judge's scores side by side: as numbers that it writes, and as probabilities that it holds.

    scripts/bench readout [--model FOLDER] [--tasks 500] [--seeds 5] [--arms NAME ...] [--minutes 25] [--json FILE]

Arms (`named` is what the others are compared with, task by task):

    named      the reply gives each score beside its component's name
    compact    the reply gives the scores as a list
    expected   the named reply, each score the mean of the labels' probabilities at its place
    cells      comments without scores; then every score is read from the model's probabilities, all at once
    silent     as cells, and read out without a word before the first turn and after the last

The tasks are harder than those that the judge is trained on: sums and differences of three digits, sums by a rule that
its memory holds or lacks, two nearly right candidates beside the right one. They are evaluated at temperatures 0 and
0.7, then a part of them under further seeds (which shuffle the candidates, too), then a part without a grammar. The
arms take turns block by block, so that what else the machine does falls on all alike.

Every figure has its 95 % interval: Wilson's for shares of tasks, otherwise a bootstrap over tasks, or over blocks for
speed. The bundled judge is small and its tasks are few of a kind: read differences between arms, not absolute figures.
"Right" of one judge alone says how hard the tasks are. Tables are printed, and FILE is written, after every phase;
Ctrl-C keeps what there is.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
from judging.arms import remembering
from judging.harder import harder, known_facts
from judging.measuring import mean_of, paired, ratio_of, share
from judging.samples import as_task, judge_profile
from judging.world import Question

from debate import DebateEvaluator, Engine, Evaluation, bundled_judge
from debate.backends.base import Backend
from debate.flow import Call, Completion
from debate.memory import HashingEmbedder, MemoryStore
from debate.types import Sampling

ARMS: dict[str, dict[str, Any]] = {
    "named": {},
    "compact": {"reply": "compact"},
    "expected": {"readout": "expected"},
    "cells": {"readout": "cells"},
    "silent": {"readout": "cells", "silent_readouts": True},
    "one judge": {"rounds": 1},
}
COMPARED = ("named", "compact", "expected", "cells")
_COLLECTION = "judge/rules"
_BINS = 10


@dataclass(frozen=True)
class Outcome:
    """What came of one task in one arm."""

    phase: str
    arm: str
    seed: int
    task: int
    choice: tuple[int, ...]
    right: bool
    failed: bool
    p: tuple[float, ...]
    """(J,), the probability of each candidate being the best."""
    best: int
    ties: int
    """Pairs of candidates with the same score."""
    pairs: int
    turns: int
    decoded: int
    """Tokens of replies."""
    read: int
    """Tokens that were read as labels instead."""
    cells: int
    unscored: int
    before: bool | None = None
    """Whether the silent agents were right before the first turn, where they were read out."""
    after: bool | None = None


@dataclass(frozen=True)
class Block:
    """How long one arm took for some tasks."""

    phase: str
    arm: str
    number: int
    tasks: int
    seconds: float


class Grammarless:
    """A backend that can be told to leave the grammar away."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.has_grammar = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    async def generate(self, call: Call) -> Completion:
        """The reply to a call, under its grammar or under none."""
        return await self._backend.generate(call if self.has_grammar else replace(call, schema=None))


class Counter:
    """Counts the tokens of replies and those of read-outs, by task."""

    def __init__(self) -> None:
        self.decoded: defaultdict[str, int] = defaultdict(int)
        self.read: defaultdict[str, int] = defaultdict(int)

    def __call__(self, call: Call, completion: Completion) -> None:
        """Count one call."""
        is_read = call.read_out is not None and call.read_out.continuations
        (self.read if is_read else self.decoded)[call.info["task_id"]] += completion.usage.completion_tokens


class Comparison:
    """All arms over the same tasks."""

    def __init__(self, options: argparse.Namespace, backend: Callable[[], Backend]) -> None:
        self.options = options
        self._backend = backend
        self.questions = harder(options.seed, options.tasks)
        self.outcomes: list[Outcome] = []
        self.blocks: list[Block] = []
        self.tables: dict[str, list[str]] = {}
        self._began = time.monotonic()

    def run(self) -> None:
        """All phases, as far as time allows."""
        try:
            for seed in range(self.options.seeds):
                with self._engine(seed) as (engine, backend):
                    self._phases(seed, engine, backend)
        except KeyboardInterrupt:
            _say("interrupted; what was done is kept")
            self._tell(self.outcomes[-1].phase if self.outcomes else "")
        self._tell("")

    def _phases(self, seed: int, engine: Engine, backend: Grammarless) -> None:
        few, arms = range(self.options.few), [arm for arm in self.options.arms if arm != "silent"]
        if seed > 0:
            share_of_time = 0.74 + 0.26 * seed / (self.options.seeds - 1)
            self._phase("temperature 0.7", seed, engine, arms, few, 0.7, share_of_time)
            return
        every = range(len(self.questions))
        self._phase("one judge", 0, engine, ["one judge"], few, 0.0, 0.04)
        self._phase("temperature 0", 0, engine, arms, every, 0.0, 0.34)
        self._phase("temperature 0.7", 0, engine, arms, every, 0.7, 0.64)
        if "silent" in self.options.arms:
            self._phase("silent read-outs", 0, engine, ["cells", "silent"], few[:100], 0.0, 0.7)
        backend.has_grammar = False
        self._phase("without grammar", 0, engine, arms, few[:50], 0.0, 0.74)
        backend.has_grammar = True

    def _phase(
        self,
        phase: str,
        seed: int,
        engine: Engine,
        arms: Sequence[str],
        places: Sequence[int],
        temperature: float,
        share_of_time: float,
    ) -> None:
        """The arms take turns, in another order for every block; none begins that would not end in time.

        share_of_time: how much of the time may be over at the end of the phase. The first block is always done.
        """
        began, last = time.monotonic(), 0.0
        until, size = self._began + 60 * self.options.minutes * share_of_time, self.options.block
        for number, start in enumerate(range(0, len(places), size)):
            at = time.monotonic()
            if number and at + last > until:
                _say(f"{phase}, seed {seed}: its time is over after {start} of {len(places)} tasks")
                break
            turned = number % len(arms)
            for arm in (*arms[turned:], *arms[:turned]):
                self._block(phase, arm, seed, engine, number, places[start : start + size], temperature)
            last = time.monotonic() - at
        _say(f"{phase}, seed {seed}: {time.monotonic() - began:.0f} s")
        self._tell(phase)

    def _block(
        self, phase: str, arm: str, seed: int, engine: Engine, number: int, places: Sequence[int], temperature: float
    ) -> None:
        engine.on_completion = counter = Counter()
        settings = {**ARMS[arm], "sampling": Sampling(temperature=temperature)}
        knowing, unknowing = (self._evaluator(settings, knows, is_alone=arm == "one judge") for knows in (True, False))
        tasks = [as_task(self.questions[n][0], f"task-{n}") for n in places]
        began = time.monotonic()
        found = engine.evaluate_batch(tasks, [knowing if self.questions[n][1] else unknowing for n in places])
        self.blocks.append(Block(phase, arm, 1000 * seed + number, len(places), time.monotonic() - began))
        for n, evaluation in zip(places, found, strict=True):
            self.outcomes.append(_outcome(phase, arm, seed, n, evaluation, self.questions[n][0], counter))

    def _evaluator(self, settings: Mapping[str, Any], knows: bool, *, is_alone: bool) -> DebateEvaluator:
        profile = judge_profile()
        profile = replace(profile, personas=profile.personas[-1:]) if is_alone else profile
        if knows:  # otherwise each has a memory of its own, which is empty
            profile = remembering(profile, lambda _: (_COLLECTION,))
        settings = {"rounds": self.options.rounds, **settings}
        return bundled_judge.evaluator(self.options.model, **settings, profile=profile)

    @contextmanager
    def _engine(self, seed: int) -> Generator[tuple[Engine, Grammarless]]:
        backend = Grammarless(self._backend())
        with MemoryStore("sqlite://", HashingEmbedder(), "exact") as memory:
            memory.add(_COLLECTION, [fact.text for fact in known_facts(self.questions)])
            with Engine(cast("Backend", backend), memory, seed=seed) as engine:
                yield engine.start(), backend

    def _tell(self, phase: str) -> None:
        """Print the tables of a phase and write all to the file; without one, the tables over several seeds."""
        mine = [each for each in self.outcomes if each.phase == phase and each.seed == 0]
        if any(each.seed for each in self.outcomes[-1:]) or not phase:
            title, lines = "seeds", _retest_table([each for each in self.outcomes if each.phase == "temperature 0.7"])
        else:
            title, lines = phase, _table(mine, [each for each in self.blocks if each.phase == phase])
        if lines:
            self.tables[title] = [f"### {title}", "", *lines, ""]
        if phase == "" or title != "seeds":
            print("\n".join(self.tables.get(title, [])), flush=True)
        if self.options.json is not None:
            tables = [line for each in self.tables.values() for line in each]
            data = {"tables": tables, "blocks": self.blocks, "outcomes": self.outcomes}
            fresh = self.options.json.with_suffix(".new")
            fresh.write_text(json.dumps(data, default=asdict, separators=(",", ":")), encoding="utf-8")
            fresh.replace(self.options.json)


def _outcome(
    phase: str, arm: str, seed: int, n: int, evaluation: Evaluation, question: Question, counter: Counter
) -> Outcome:
    # The reply as it is has no distributions; the softmax of its scores is what it offers in their stead.
    p = evaluation.probabilities if evaluation.p_best is None else evaluation.p_best  # (J,)
    scored = [score for score in evaluation.scores.tolist() if not math.isnan(score)]
    tensor = evaluation.tensor if evaluation.tensor is not None else np.full((1, 1), np.nan)
    weights = [component.weight for component in judge_profile().components]

    def silently(readouts: Sequence[Any]) -> bool | None:
        if not readouts:
            return None
        means = np.mean([readout.scores @ weights for readout in readouts], axis=0)  # (J,)
        return bool(np.nanargmax(means) == question.best) if not np.isnan(means).all() else False

    return Outcome(
        phase=phase,
        arm=arm,
        seed=seed,
        task=n,
        choice=evaluation.choice,
        right=evaluation.verdict([question.best]) == "right",
        failed=evaluation.status == "failed",
        p=tuple(float(each) for each in p),
        best=question.best,
        ties=sum(abs(a - b) < 1e-9 for a, b in combinations(scored, 2)),
        pairs=math.comb(len(scored), 2),
        turns=len(evaluation.transcript),
        decoded=counter.decoded[evaluation.task_id],
        read=counter.read[evaluation.task_id],
        cells=tensor.size,
        unscored=int(np.isnan(tensor).sum()),
        before=silently(evaluation.before),
        after=silently(evaluation.after),
    )


def brier(outcome: Outcome) -> float:
    """Squared distance of the probabilities to what is true, 0 to 2 (Brier 1950)."""
    return sum((p - (j == outcome.best)) ** 2 for j, p in enumerate(outcome.p))


def calibration_error(outcomes: Sequence[Outcome]) -> float:
    """Expected calibration error: how far the likeliest candidate's probability is from how often it is right.

    The mean over ten bins of equal width, weighted by their tasks (Guo et al. 2017). Of candidates that are equally
    likely, one is drawn.
    """
    bins: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for outcome in outcomes:
        top = max(outcome.p)
        tops = [j for j, p in enumerate(outcome.p) if p >= top - 1e-9]
        bins[min(int(top * _BINS), _BINS - 1)].append((top, (outcome.best in tops) / len(tops)))
    gaps = (abs(sum(sure - right for sure, right in each)) for each in bins.values())
    return sum(gaps) / max(len(outcomes), 1)


def _bootstrap(outcomes: Sequence[Outcome], figure: Callable[[Sequence[Outcome]], float]) -> dict[str, Any]:
    random = Random(0)
    drawn = sorted(figure(random.choices(outcomes, k=len(outcomes))) for _ in range(400))
    return {"mean": figure(outcomes), "interval": [drawn[9], drawn[-10]]}


def _table(outcomes: Sequence[Outcome], blocks: Sequence[Block]) -> list[str]:
    by_arm = _by(outcomes, lambda each: each.arm)
    first = next(iter(by_arm))
    base = "named" if "named" in by_arm else first
    arms = [arm for arm in ARMS if arm in by_arm]
    rows: list[tuple[str, Callable[[str], str]]] = [
        ("tasks", lambda arm: str(len(by_arm[arm]))),
        ("right", lambda arm: _percent(share([each.right for each in by_arm[arm]]), "share")),
        ("right, minus the first", lambda arm: _points(_difference(by_arm, arm, base, lambda each: each.right))),
        ("pairs of candidates that tie", lambda arm: _percent(_of_pairs(by_arm[arm]))),
        ("ties, times the first", lambda arm: _times(_ratio(by_arm, arm, base, lambda each: each.ties))),
        ("Brier score", lambda arm: _number(mean_of([brier(each) for each in by_arm[arm]]))),
        ("Brier score, minus the first", lambda arm: _number(_difference(by_arm, arm, base, brier), sign="+")),
        ("calibration error", lambda arm: _number(_bootstrap(by_arm[arm], calibration_error))),
        ("turns per debate", lambda arm: _number(mean_of([each.turns for each in by_arm[arm]]))),
        ("decoded tokens per turn", lambda arm: _number(_per_turn(by_arm[arm], lambda each: each.decoded), 1)),
        ("labels read per turn", lambda arm: _number(_per_turn(by_arm[arm], lambda each: each.read), 1)),
        ("decoded per turn, times the first", lambda arm: _times(_ratio_per_turn(by_arm, arm, base))),
        ("debates per second", lambda arm: f"{_speed(blocks, arm):.2f}"),
        ("debates per second, times the first", lambda arm: _times(_faster(blocks, arm, base))),
        ("unscored cells", lambda arm: _percent(_unscored(by_arm[arm]))),
        ("failed debates", lambda arm: _percent(share([each.failed for each in by_arm[arm]]), "share")),
    ]
    if any(each.before is not None for each in outcomes):
        rows.append(("right before the first turn", lambda arm: _silently([each.before for each in by_arm[arm]])))
        rows.append(("right after the last turn", lambda arm: _silently([each.after for each in by_arm[arm]])))
    lines = [f"| | {' | '.join(arms)} |", "|---|" + "--:|" * len(arms)]
    return lines + [f"| {name} | {' | '.join(told(arm) for arm in arms)} |" for name, told in rows]


def _retest_table(outcomes: Sequence[Outcome]) -> list[str]:
    """Whether the same candidate wins under another seed, pair of seeds by pair of seeds."""
    by_seed = _by(outcomes, lambda each: each.seed)
    if len(by_seed) < 2:
        return []
    arms = [arm for arm in ARMS if any(each.arm == arm for each in outcomes)]
    agreed: dict[str, dict[int, float]] = {}
    for arm in arms:
        choices = _by([each for each in outcomes if each.arm == arm], lambda each: each.task)
        agreed[arm] = {n: _agreement([each.choice for each in found]) for n, found in choices.items() if len(found) > 1}
    base = agreed[arms[0]]
    lines = [f"| {len(by_seed)} seeds | {' | '.join(arms)} |", "|---|" + "--:|" * len(arms)]

    def row(name: str, told: Callable[[str], str]) -> None:
        lines.append(f"| {name} | {' | '.join(told(arm) for arm in arms)} |")

    def against(arm: str) -> dict[str, Any]:
        both = [n for n in agreed[arm] if n in base]
        return paired([agreed[arm][n] for n in both], [base[n] for n in both])

    row("tasks", lambda arm: str(len(agreed[arm])))
    row("same winner under another seed", lambda arm: _percent(mean_of(list(agreed[arm].values()))))
    row("the same, minus the first", lambda arm: "" if arm == arms[0] else _points(against(arm)))
    row("right, all seeds", lambda arm: _percent(_clustered([each for each in outcomes if each.arm == arm])))
    return lines


def _agreement(choices: Sequence[tuple[int, ...]]) -> float:
    """Share of the pairs of evaluations that chose the same; what chose nothing agrees with none."""
    pairs = list(combinations(choices, 2))
    return sum(a == b != () for a, b in pairs) / len(pairs)


def _clustered(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return mean_of(
        [float(np.mean([each.right for each in found])) for found in _by(outcomes, lambda e: e.task).values()]
    )


def _by(outcomes: Iterable[Outcome], key: Callable[[Outcome], Any]) -> dict[Any, list[Outcome]]:
    found: defaultdict[Any, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        found[key(outcome)].append(outcome)
    return dict(found)


def _matched(by_arm: Mapping[str, Sequence[Outcome]], arm: str, base: str) -> list[tuple[Outcome, Outcome]]:
    theirs = {each.task: each for each in by_arm[base]}
    return [(each, theirs[each.task]) for each in by_arm[arm] if each.task in theirs]


def _difference(
    by_arm: Mapping[str, Sequence[Outcome]], arm: str, base: str, figure: Callable[[Outcome], float]
) -> dict[str, Any] | None:
    pairs = _matched(by_arm, arm, base)
    return None if arm == base else paired([figure(ours) for ours, _ in pairs], [figure(theirs) for _, theirs in pairs])


def _ratio(
    by_arm: Mapping[str, Sequence[Outcome]], arm: str, base: str, figure: Callable[[Outcome], float]
) -> dict[str, Any] | None:
    pairs = _matched(by_arm, arm, base)
    if arm == base:
        return None
    return ratio_of([(figure(ours), 1.0, figure(theirs), 1.0) for ours, theirs in pairs])


def _ratio_per_turn(by_arm: Mapping[str, Sequence[Outcome]], arm: str, base: str) -> dict[str, Any] | None:
    pairs = _matched(by_arm, arm, base)
    return None if arm == base else ratio_of([(a.decoded, a.turns, b.decoded, b.turns) for a, b in pairs])


def _of_pairs(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Share of the pairs of scored candidates that tie; the interval draws tasks, not pairs."""
    return ratio_of([(each.ties, each.pairs, 1.0, 1.0) for each in outcomes])


def _per_turn(outcomes: Sequence[Outcome], figure: Callable[[Outcome], float]) -> dict[str, Any]:
    return ratio_of([(figure(each), each.turns, 1.0, 1.0) for each in outcomes])


def _unscored(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return ratio_of([(each.unscored, each.cells, 1.0, 1.0) for each in outcomes])


def _speed(blocks: Sequence[Block], arm: str) -> float:
    mine = [block for block in blocks if block.arm == arm]
    return sum(block.tasks for block in mine) / sum(block.seconds for block in mine)


def _faster(blocks: Sequence[Block], arm: str, base: str) -> dict[str, Any] | None:
    """Mean over blocks of the logarithm of the ratio, as a ratio."""
    if arm == base:
        return None
    seconds = {(block.arm, block.number): block.seconds for block in blocks}
    numbers = [number for name, number in seconds if name == arm and (base, number) in seconds]
    logs = [math.log(seconds[base, number] / seconds[arm, number]) for number in numbers]
    found = mean_of(logs)
    return {"mean": math.exp(found["mean"]), "interval": [math.exp(end) for end in found["interval"]]}


def _silently(hits: Sequence[bool | None]) -> str:
    known = [hit for hit in hits if hit is not None]
    return _percent(share(known), "share") if known else ""


def _percent(found: Mapping[str, Any], name: str = "mean") -> str:
    if found[name] is None:
        return ""
    low, high = found["interval"]
    return f"{100 * found[name]:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _points(found: Mapping[str, Any] | None) -> str:
    if found is None or found["mean"] is None:
        return ""
    low, high = found["interval"]
    return f"{100 * found['mean']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def _number(found: Mapping[str, Any] | None, digits: int = 3, sign: str = "") -> str:
    if found is None or found["mean"] is None:
        return ""
    low, high = found["interval"]
    return f"{found['mean']:{sign}.{digits}f} ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"


def _times(found: Mapping[str, Any] | None) -> str:
    return "" if found is None else _number(found, 2)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=bundled_judge.BUILT_IN, help="a judge's folder; the bundled one by default")
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--few", type=int, default=200, help="tasks under further seeds, and with silent read-outs")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arms", nargs="+", choices=[*COMPARED, "silent"], default=[*COMPARED, "silent"])
    parser.add_argument("--rounds", type=int, default=2, help="most rounds of a debate")
    parser.add_argument("--block", type=int, default=50, help="tasks of one arm before the next has its turn")
    parser.add_argument("--minutes", type=float, default=25, help="each phase has a share of them")
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1, help="of the tasks; the bundled judge's training uses none")
    parser.add_argument("--short", action="store_true", help="a few tasks, for a test")
    parser.add_argument("--json", type=Path, help="file for every outcome and the tables, written as it goes")
    options = parser.parse_args(given)
    if options.short:
        options.tasks, options.few, options.seeds, options.block = 6, 4, 2, 3
    return options


def main() -> int:
    """Parse the command line, run all arms, and print the tables."""
    options = arguments()
    Comparison(options, lambda: bundled_judge.backend(options.model, max_num_seqs=options.slots)).run()
    return 0
