"""A run as arrays: per task what the evaluator said, what people say, and what the figures are grouped by.

Reads the evaluations as plain data, without their texts: ten thousand of them take seconds. Knows no
figure: they are made in the other modules here, on `debate.statistics`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from debate.dataset.labels import Labels, labels_of, read_labels
from debate.errors import InputError
from debate.evaluation import Evaluation, from_plain, verdict
from debate.jobs.run_directory import RunDirectory
from debate.store import StoredRun
from debate.store.serialization import content_hash
from debate.types import UNSPOKEN, FloatArray, Names, Scale, Task, Usage, Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """One turn, without its texts.

    Attributes:
        round: from 0.
        agent: index along I.
        order: candidate indices in the order in which the agent saw them.
        is_unread: whether its reply could not be read in the end.
    """

    round: int
    agent: int
    order: tuple[int, ...]
    is_unread: bool


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One evaluated task.

    Attributes:
        task_id: the task's.
        labels: what people say of it.
        metadata: the task's.
        generators: of the J candidates; "" where none is named.
        lengths: of the candidates' texts in characters, (J,).
        scores: (J,), NaN = unscored.
        choice: the selected candidate and those that tie with it; empty when nothing was selected.
        probabilities: (J,).
        scale: of the scores.
        tensor: S, (R, I, J, K), NaN = unscored; of a task that was settled without a debate, the one silent round. None
            for evaluators without one.
        agents: names along I.
        components: names along K.
        cv: one per round.
        turns: in the order in which they were taken.
        status: `ok`, `partial`, `failed`.
        stop_reason: why the debate ended; "" for evaluators that have no rounds.
        order_agreement: for a balanced debate, whether both orders chose alike.
        usage: tokens and calls.
        members: the evaluations this one was made from, as for a balanced debate.
        content: a hash of what the task asks, by which two runs know that a task is the same.
        own_weights: of the components that the task has of its own.
        rounds_run: how many rounds were debated, of both orders of a balanced debate the longer one; 0 for a task that
            was settled without a debate, and for evaluators that have no rounds.
    """

    task_id: str
    labels: Labels
    metadata: Mapping[str, Any]
    generators: tuple[str, ...]
    lengths: FloatArray
    scores: FloatArray
    choice: tuple[int, ...]
    probabilities: FloatArray
    scale: Scale
    tensor: FloatArray | None
    agents: tuple[str, ...]
    components: tuple[str, ...]
    cv: FloatArray
    turns: tuple[Shown, ...]
    status: str
    stop_reason: str
    order_agreement: bool | None
    usage: Usage
    members: tuple[Judged, ...] = ()
    content: str = ""
    own_weights: tuple[float, ...] = ()
    rounds_run: int = 0

    @property
    def group(self) -> str:
        """The `group` in the task's metadata; "" where it names none."""
        return str(self.metadata.get("group", ""))

    @property
    def verdict(self) -> Verdict | None:
        """How the choice stands to the right candidates, as `Evaluation.verdict`; None where people named none."""
        return verdict(self.choice, self.labels.together.best)


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRun:
    """The evaluated tasks of a run, in their order.

    Attributes:
        directory: its folder.
        tasks: what was evaluated.
        identity: the evaluator and the models, as the run recorded them.
        unknown_labels: task ids of the labels file that the run does not have.
    """

    directory: RunDirectory
    tasks: Sequence[Judged]
    identity: Mapping[str, Any]
    unknown_labels: tuple[str, ...] = ()

    def evaluation(self, task_id: str) -> tuple[Task, Evaluation]:
        """One task with its evaluation, whole.

        Raises:
            InputError: when the run has no evaluation of it.
            StoreError: as `RunDirectory.open_store`.
        """
        return evaluation_of(self.directory, task_id)


def evaluation_of(directory: RunDirectory, task_id: str) -> tuple[Task, Evaluation]:
    """One task of a run with its evaluation, as `JudgedRun.evaluation`."""
    with directory.open_store() as store:
        for found in store.read(directory.name).results(task_id):
            return found
    raise InputError(f"there is no evaluation of the task {task_id!r}", file=directory.path)


def read_run(folder: Path, labels: Path | None = None, *, read_only: bool = False) -> JudgedRun:
    """The evaluated tasks of a run, with the labels in their metadata, or those of a file in their place.

    read_only: as of `Store`.

    Raises:
        ConfigError: when the folder holds no run.
        InputError: when nothing is evaluated yet.
        StoreError: as `RunDirectory.open_store`.
        TaskError: for labels of another form; names file, line and field.
    """
    directory = RunDirectory.existing(folder)
    with directory.open_store(read_only=read_only) as store:
        return judged_run(store.read(directory.name), directory, labels)


def judged_run(record: StoredRun, directory: RunDirectory, labels: Path | None = None) -> JudgedRun:
    """As `read_run`, of a run whose store is open.

    directory: the run's, which need not be there: then what only its folder knows is left out.
    """
    found: list[Judged] = []
    names: dict[str, Names] = {}
    for task_id, task, data in record.result_data():
        names[task_id] = _names(task)
        said = labels_of({} if labels else task["metadata"], names[task_id], task_id)
        found.append(as_judged(task_id, task, json.loads(data), said))
    if not found:
        hint = f"`debate resume {directory.path}` goes on with the run"
        raise InputError("holds no evaluation yet", file=directory.path, hint=hint)
    unknown: tuple[str, ...] = ()
    if labels is not None:
        joined = read_labels(labels, names)
        unknown = joined.unknown
        found = [_labeled(each, joined.labels.get(each.task_id, each.labels)) for each in found]
    return JudgedRun(directory, found, directory.identity or {}, unknown)


def _labeled(judged: Judged, labels: Labels) -> Judged:
    return replace(judged, labels=labels, members=tuple(_labeled(member, labels) for member in judged.members))


def _names(task: Mapping[str, Any]) -> Names:
    return [(each["id"], each["generator"]) for each in task["candidates"]]


def as_judged(task_id: str, task: Mapping[str, Any], data: Mapping[str, Any], labels: Labels | None = None) -> Judged:
    """One task, from the plain data of it and of its evaluation.

    labels: None is those in its metadata.
    """
    labels = labels_of(task["metadata"], _names(task), task_id) if labels is None else labels
    candidates = task["candidates"]
    return Judged(
        task_id=task_id,
        labels=labels,
        metadata=task["metadata"],
        generators=tuple(each["generator"] or "" for each in candidates),
        lengths=np.array([len(each["text"]) for each in candidates], dtype=np.float64),  # (J,)
        members=tuple(as_judged(task_id, task, member, labels) for member in data["members"]),
        content=content_hash(task),
        own_weights=tuple(each["weight"] for each in task.get("components", ())),
        **_said(data),
    )


def _said(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the evaluator said, from the plain data of an evaluation."""
    selected, tied, tensor = data["selected"], tuple(data["tied"]), data["tensor"]
    if data["stop_reason"] in UNSPOKEN and data.get("before"):
        tensor = [[each["scores"] for each in data["before"]]]
    agents = tuple(data["agents"])
    return {
        "scores": _array(data["scores"]),  # (J,)
        "choice": () if selected is None else tied if selected in tied else (selected,),
        "probabilities": _array(data["probabilities"]),  # (J,)
        "scale": from_plain(Scale, data["scale"]),
        "tensor": None if tensor is None else _array(tensor),  # (R, I, J, K)
        "agents": agents,
        "components": tuple(data["components"]),
        "cv": _array(data["cv"]),  # (R,)
        "turns": tuple(_shown(turn, agents) for turn in data["transcript"]),
        "status": data["status"],
        "stop_reason": data["stop_reason"] or "",
        "order_agreement": data["order_agreement"],
        "rounds_run": data["rounds_run"],
        "usage": Usage(**data["usage"]),
    }


def _shown(turn: Mapping[str, Any], agents: Sequence[str]) -> Shown:
    agent = agents.index(turn["agent"]) if turn["agent"] in agents else -1
    return Shown(turn["round"], agent, tuple(turn["labels"].values()), turn["failure"] is not None)


def _array(values: Any) -> FloatArray:
    """Numbers in nested lists; null is NaN."""
    return np.array(values, dtype=np.float64)
