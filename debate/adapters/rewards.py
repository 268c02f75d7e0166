"""Rewards for reinforcement learning: the completions of one prompt are one debate. No framework is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from debate.adapters.judge import Judge, Judged
from debate.adapters.texts import as_text
from debate.errors import ConfigError
from debate.hashing import canonical
from debate.settings import check_value
from debate.types import Task

Kind = Literal["scores", "ranks", "probabilities"]
Rewards = list[float | None]
_Row = tuple[str, str]
"""A group, and a completion in it."""


def group_reward(
    judge: Judge,
    kind: Kind = "scores",
    *,
    component: str | None = None,
    reference: str | None = None,
) -> Callable[..., Rewards]:
    """A reward function in TRL's signature, `reward(prompts, completions, completion_ids=None, **columns)`.

    Completions of equal prompts are the candidates of one debate, wherever they stand in the batch; where a process
    holds a part of a group, these are compared with each other. Equal completions are one candidate, and so have equal
    rewards. Prompts and completions are texts or lists of messages.

    A completion without a score has the reward None, whatever the judge's rule: TRL then leaves it out.

    Args:
        judge: rewards of the kind `scores` are on its scale.
        kind: `scores`; `ranks`, from 1 for the best to 0 for the worst of the group, the same for those that tie; or
            `probabilities`, the softmax of the scores, which sum to 1 over the different completions of a group. Ranks
            and probabilities compare: a completion that is alone in its group has None.
        component: rewards are the scores on this component, such as one function for each component under TRL's
            `multi_objective_aggregation="normalize_then_sum"`. Several functions of one judge pay for one debate.
        reference: name of the column that holds the answer known to be right.

    Raises:
        ConfigError: for a component with another kind than `scores`; from the function, for lists that do not fit, a
            column that is not there, and a component that the evaluator does not have.
    """
    check_value("kind", kind, Kind)
    if component is not None and kind != "scores":
        raise ConfigError("goes with the kind `scores` alone", field="component")

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Any = None, **columns: Any
    ) -> Rewards:
        known = _references(reference, columns, len(prompts))
        rows = _rows(prompts, known, completions)
        groups = _grouped(rows)
        tasks = [_task(prompts, known, completions, [*said.values()]) for said in groups.values()]
        worth: dict[_Row, float | None] = {}
        for (key, said), judged in zip(groups.items(), judge.many(tasks), strict=True):
            worth |= zip([(key, each) for each in said], _worth(judged, kind, component), strict=True)
        return [worth[row] for row in rows]

    reward.__name__ = f"debate_{component or kind}"  # under which TRL logs it
    return reward


def _references(column: str | None, columns: dict[str, Any], n: int) -> list[str | None]:
    """The known answer of each row."""
    if column is None:
        return [None] * n
    if column not in columns:
        hint = f"the data set has {', '.join(map(repr, columns)) or 'no columns'}"
        raise ConfigError(f"there is no column {column!r}", field="reference", hint=hint)
    given = columns[column]
    if len(given) != n:
        raise ConfigError(
            f"the column {column!r} must be as long as the prompts, {n}, got {len(given)}", field="reference"
        )
    return [None if value is None else as_text(value) for value in given]


def _rows(prompts: Sequence[Any], known: Sequence[str | None], completions: Sequence[Any]) -> list[_Row]:
    if len(completions) != len(prompts):
        problem = f"must be as many as the prompts, {len(prompts)}, got {len(completions)}"
        raise ConfigError(problem, field="completions")
    groups = [canonical([*about]) for about in zip(prompts, known, strict=True)]
    return [*zip(groups, map(canonical, completions), strict=True)]


def _grouped(rows: Sequence[_Row]) -> dict[str, dict[str, int]]:
    """Group -> each different completion of it -> the row where it first stands."""
    groups: dict[str, dict[str, int]] = {}
    for n, (key, said) in enumerate(rows):
        groups.setdefault(key, {}).setdefault(said, n)
    return groups


def _task(
    prompts: Sequence[Any], known: Sequence[str | None], completions: Sequence[Any], where: Sequence[int]
) -> Task:
    """The completions of some rows of one group."""
    return Task(prompts[where[0]], [completions[n] for n in where], reference=known[where[0]])


def _worth(judged: Judged, kind: Kind, component: str | None) -> Rewards:
    """The rewards of a group's candidates."""
    evaluation = judged.evaluation
    n = len(evaluation.scores)
    if component is not None:
        return [_of_component(judged, j, component) for j in range(n)]
    if kind == "scores":
        return [judged.score(j) if judged.is_scored(j) else None for j in range(n)]
    scored = int(np.isfinite(evaluation.scores).sum())
    if scored < 2:
        return [None] * n
    if kind == "ranks":
        return _by_rank(evaluation.ranks(), scored)
    return [float(evaluation.probabilities[j]) if judged.is_scored(j) else None for j in range(n)]


def _by_rank(ranks: Sequence[int | None], scored: int) -> Rewards:
    """From 1 for the best to 0 for the worst; those that tie have the mean of their places."""
    places = [None if rank is None else rank - 1 + (ranks.count(rank) - 1) / 2 for rank in ranks]
    return [None if place is None else 1 - place / (scored - 1) for place in places]


def _of_component(judged: Judged, j: int, component: str) -> float | None:
    found = judged.components(j)
    if component not in found:
        hint = f"it has {', '.join(map(repr, found)) or 'none'}"
        raise ConfigError(f"the evaluator has no component {component!r}", field="component", hint=hint)
    return None if np.isnan(found[component]) else found[component]
