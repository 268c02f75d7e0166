"""Stop rules and smaller panels, tried on the rounds that a run recorded, without asking a model.

A rule is decided by the function that a live debate asks, so that the outcome is what a run under the rule gives. Two
things a record cannot tell: how a debate would have gone on that its own rule had ended already (`Trial.undecided`),
and what a smaller panel says after the first round, in which its agents heard those that are left out
(`Trial.is_exact`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from debate.errors import InputError
from debate.evaluation import verdict
from debate.evaluators.debate.settings import CELL_SCALE
from debate.meta_evaluation.aggregation import Aggregation, choice_of, debates_of
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.statistics import Mean, paired_difference, share
from debate.stop_rules import Rounds, StopRule
from debate.store.queries import Decoded
from debate.types import UNSPOKEN, FloatArray

WITHIN = 0.01
"""How far the recommended rule may be behind the best."""
_SILENT_DEPTH = 5
"""Parts that the address of a silent read-out has, inside its debate; turns have fewer."""
_GRID = (
    *(f"cv={cv},over={over}" for over in ("agents", "cells", "pooled") for cv in (0.05, 0.1, 0.2, 0.4)),
    *("ranking", "change=0.02", "change=0.05", "change=0.1", "spread=0.05", "spread=0.1", "spread=0.2"),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one rule and one size of the panel.

    Attributes:
        rule: its text.
        agents: the first so many speak.
        accuracy: share of the labeled tasks whose choice is right; ties and tasks without a choice are not.
        difference: its difference to that of the debates as recorded, on the same tasks.
        same_choice: share of all tasks that choose as the debates as recorded do.
        rounds: mean per debate.
        tokens: decoded, mean per task.
        tokens_share: of those of the debates as recorded.
        undecided: debates that had ended by the run's own rule before this one would have ended them. Their outcome is
            the recorded one, and their rounds and tokens are a lower bound.
        unscored: tasks without a choice.
        is_exact: whether a run of this rule and panel would have given this, the undecided debates apart.
    """

    rule: str
    agents: int
    accuracy: Mean
    difference: Mean
    same_choice: Mean
    rounds: float
    tokens: float
    tokens_share: float
    undecided: int
    unscored: int
    is_exact: bool

    @property
    def can_be_recommended(self) -> bool:
        """Whether all of it is known."""
        return self.is_exact and not self.undecided


@dataclass(frozen=True, slots=True)
class Stopping:
    """Rules and panels tried on a run.

    Attributes:
        tasks: debated tasks of the run, on which the rules are tried.
        left_out: evaluated tasks without a debate.
        labeled: of the tasks, those whose right candidates people named.
        rounds: the most that a debate could have.
        recorded: what the run did.
        trials: in the order in which they were asked for.
        best: the highest accuracy among those that can be recommended; without labels 1, the recorded debates' own.
        cheapest: of those the one with the fewest tokens within a point of the best; None where no choice is known.
    """

    tasks: int
    left_out: int
    labeled: int
    rounds: int
    recorded: Trial
    trials: tuple[Trial, ...]
    best: float
    cheapest: Trial | None


class Outcome(NamedTuple):
    """What one debate, or both of a balanced one, come to under a rule."""

    scores: FloatArray
    """(J,), NaN = unscored."""
    rounds: tuple[int, ...]
    """Per debate."""
    tokens: int
    """Decoded."""
    choice: tuple[int, ...]
    """The candidates with the highest score; empty where nothing is scored."""
    undecided: int = 0
    """Debates that had ended before the rule would have."""


class Replay:
    """One task's recorded rounds.

    Args:
        task: with its debates.
        aggregation: of the run.
        tokens: decoded per turn, one (R, I) array per debate.
    """

    def __init__(self, task: Judged, aggregation: Aggregation, tokens: Sequence[FloatArray]) -> None:
        self.task = task
        self.debates = debates_of(task)
        self._aggregation = aggregation.of_task(task)
        self._tokens = tokens
        self._rounds: dict[tuple[int, int], tuple[Rounds, Counter[int]]] = {}
        self._known: dict[tuple[int, ...], Outcome] = {}

    def outcome(self, rule: StopRule, n_agents: int) -> Outcome:
        """What the task comes to when its first `n_agents` debate under a rule."""
        found = [self._end(d, rule, n_agents) for d in range(len(self.debates))]
        key = (n_agents, *(end for end, _ in found))
        if key not in self._known:
            self._known[key] = self._after(n_agents, key[1:])
        undecided = sum(is_undecided for _, is_undecided in found)
        return self._known[key]._replace(undecided=undecided) if undecided else self._known[key]

    @cached_property
    def recorded(self) -> Outcome:
        """What the run itself came to."""
        rounds = tuple(len(_tensor(each)) for each in self.debates)
        tokens = sum(int(each.sum()) for each in self._tokens)
        return Outcome(self.task.scores, rounds, tokens, choice_of(self.task.scores))

    def _after(self, n_agents: int, rounds: tuple[int, ...]) -> Outcome:
        """What the first agents come to after so many rounds of each debate."""
        parts = [_tensor(debate)[:end, :n_agents] for debate, end in zip(self.debates, rounds, strict=True)]
        scores = [self.task.scale.hold(self._aggregation.scores(part)) for part in parts]
        tokens = sum(int(each[:end, :n_agents].sum()) for each, end in zip(self._tokens, rounds, strict=True))
        held = self.task.scale.hold(np.stack(scores).mean(axis=0)) if self.task.members else scores[0]
        return Outcome(held, rounds, tokens, choice_of(held))

    def _end(self, d: int, rule: StopRule, n_agents: int) -> tuple[int, bool]:
        """After how many rounds the debate `d` ends, and whether the record ends before that is known."""
        rounds, failed = self._seen(d, n_agents)
        n_rounds, size = rounds.tensor.shape[0], _tensor(self.debates[d]).shape[1]
        for r in range(n_rounds):
            # A debate ends with a round in which every turn failed; of a larger panel another agent may have spoken.
            if failed[r] == n_agents or rounds.stop_reason(rule, r, self._aggregation.min_rounds) is not None:
                return r + 1, False
        own = ("converged", "stop_rule", "abstained", *(("token_budget", "time_budget") if n_agents < size else ()))
        return n_rounds, self.debates[d].stop_reason in own and n_rounds < self._aggregation.rounds

    def _seen(self, d: int, n_agents: int) -> tuple[Rounds, Counter[int]]:
        """The rounds of the first agents, and how many of their turns failed in each."""
        if (d, n_agents) not in self._rounds:
            debate = self.debates[d]
            failed = Counter(turn.round for turn in debate.turns if turn.is_unread and turn.agent < n_agents)
            tensor = _tensor(debate)[:, :n_agents]
            rounds = Rounds(
                tensor=tensor,
                is_whole=[not failed[r] for r in range(len(tensor))],
                weights=self._aggregation.weights,
                quorum=self._aggregation.quorum_of(n_agents),
                width=CELL_SCALE.high - CELL_SCALE.low,
            )
            self._rounds[d, n_agents] = rounds, failed
        return self._rounds[d, n_agents]


def try_rules(run: JudgedRun, rules: Sequence[StopRule] = (), agents: Sequence[int] = ()) -> Stopping:
    """Try rules, each with the whole panel and with its first agents.

    Args:
        run: of debates; one that no rule ended early tells most.
        rules: none is a grid of all kinds, and each number of rounds.
        agents: sizes of smaller panels, each with every rule; without rules none is all, with one round and with all.

    Raises:
        InputError: for a run of other evaluators, or without a debate; or a panel that is larger than the run's.
    """
    aggregation = Aggregation.of_run(run)
    replays = [] if aggregation is None else list(replays_of(run, aggregation))
    if aggregation is None or not replays:
        raise InputError("holds no debates, whose rounds rules could be tried on", file=run.directory.path)
    size = max(_tensor(replay.debates[0]).shape[1] for replay in replays)
    if wrong := [n for n in agents if not 1 <= n <= size]:
        raise InputError(f"the panel has {size} agents, not {wrong[0]}", field="--agents")
    heard = run.identity["evaluator"].get("mode") != "independent"
    grid = _grid(rules, agents, size, aggregation)
    recorded = _trial(str(aggregation.stops_by), size, replays, [each.recorded for each in replays], is_exact=True)
    trials = [
        _trial(str(rule), n, replays, outcomes, is_exact=n == size or not heard or _is_one_round(outcomes))
        for rule, n in grid
        for outcomes in [[replay.outcome(rule, n) for replay in replays]]
    ]
    best, cheapest = _cheapest([recorded, *trials], is_labeled=recorded.accuracy.n > 0)
    left_out = len(run.tasks) - len(replays)
    n_labeled = recorded.accuracy.n
    return Stopping(len(replays), left_out, n_labeled, aggregation.rounds, recorded, tuple(trials), best, cheapest)


def replays_of(run: JudgedRun, aggregation: Aggregation) -> Iterator[Replay]:
    """The tasks of a run that were debated, with what their turns decoded."""
    with run.directory.open_store() as store:
        decoded = dict(store.read(run.directory.name).decoded())
    for task in run.tasks:
        if is_debated(task):
            yield Replay(task, aggregation, decoded_per_turn(task, decoded.get(task.task_id, [])))


def is_debated(task: Judged) -> bool:
    """Whether the task has turns, rather than a silent round alone or nothing."""
    return all(each.tensor is not None and each.stop_reason not in UNSPOKEN for each in debates_of(task))


def decoded_per_turn(task: Judged, calls: Sequence[Decoded]) -> list[FloatArray]:
    """Tokens that each turn decoded, retries and read-outs of its cells included, (R, I) per debate of the task.

    What was read silently, outside of the turns, is left out.
    """
    debates, is_balanced = debates_of(task), bool(task.members)
    found = [np.zeros(_tensor(each).shape[:2]) for each in debates]
    for call in calls:
        address = [int(part) for part in call.address.split(".")]
        d = address[1] if is_balanced else 0
        is_silent = len(address) - 2 * is_balanced >= _SILENT_DEPTH
        if is_silent or call.round is None or call.agent not in debates[d].agents:
            continue
        if call.round < len(found[d]):
            found[d][call.round, debates[d].agents.index(call.agent)] += call.tokens
    return found


def _grid(
    rules: Sequence[StopRule], agents: Sequence[int], size: int, aggregation: Aggregation
) -> list[tuple[StopRule, int]]:
    of_panels = [StopRule.parse("rounds=1"), aggregation.stops_by]
    if rules or agents:
        sizes = [size, *(n for n in agents if n != size)] if rules else agents
        return [(rule, n) for n in sizes for rule in rules or of_panels]
    texts = [*(f"rounds={r}" for r in range(1, aggregation.rounds)), *_GRID]
    small = [(rule, n) for n in range(1, size) for rule in of_panels]
    return [*((StopRule.parse(text), size) for text in texts), *small]


def _trial(
    rule: str, n_agents: int, replays: Sequence[Replay], outcomes: Sequence[Outcome], *, is_exact: bool
) -> Trial:
    before = [each.recorded for each in replays]
    choices = [(now.choice, then.choice) for now, then in zip(outcomes, before, strict=True)]
    right = np.array(
        [[_is_right(replay.task, choice) for choice in each] for replay, each in zip(replays, choices, strict=True)]
    )  # (n, 2)
    tokens, tokens_before = (np.mean([each.tokens for each in side]) for side in (outcomes, before))
    return Trial(
        rule=rule,
        agents=n_agents,
        accuracy=share(right[:, 0]),
        difference=paired_difference(right[:, 0], right[:, 1]),
        same_choice=share([now == then for now, then in choices]),
        rounds=float(np.mean([n for each in outcomes for n in each.rounds])),
        tokens=float(tokens),
        tokens_share=float(tokens / tokens_before) if tokens_before else math.nan,
        undecided=sum(each.undecided for each in outcomes),
        unscored=sum(not now for now, _ in choices),
        is_exact=is_exact,
    )


def _is_right(task: Judged, choice: tuple[int, ...]) -> float:
    """1 or 0; NaN where people named no candidate right, or all of them."""
    best = task.labels.together.choice
    return math.nan if len(best) in (0, len(task.scores)) else float(verdict(choice, best) == "right")


def _is_one_round(outcomes: Sequence[Outcome]) -> bool:
    return all(n == 1 for each in outcomes for n in each.rounds)


def _cheapest(trials: Sequence[Trial], *, is_labeled: bool) -> tuple[float, Trial | None]:
    """The best value of those that can be recommended, and of those within a point of it the one with fewest tokens."""
    known = [(_worth(each, is_labeled), each) for each in trials if each.can_be_recommended]
    best = max(worth for worth, _ in known)
    near = [each for worth, each in known if worth >= best - WITHIN - 1e-9]
    return best, min(near, key=lambda each: each.tokens, default=None)


def _worth(trial: Trial, is_labeled: bool) -> float:
    return (trial.accuracy if is_labeled else trial.same_choice).estimate


def _tensor(debate: Judged) -> FloatArray:
    assert debate.tensor is not None
    return debate.tensor
