"""What people say of a task's candidates: the labels in its metadata, and files of labels that are joined later.

    {"task_id": "q1", "best": 0}                                                 one is right, or a list of them
    {"task_id": "q1", "ranking": [2, 1, 1]}                                      1 is best; equal ranks are a tie
    {"task_id": "q1", "scores": {"clarity": [3, 5, null]}}                       a score per candidate
    {"task_id": "q1", "votes": [{"by": "anna", "best": 0}, {"by": "ben", "ranking": [1, 1, 1]}]}     several people

The same keys stand in the `metadata` of a task. In a file, lines of different people (`by`) on one task are votes, too.
What people say together is what stands beside the votes, or else follows from them: the choice that more than half of
them made, and the mean of their scores. A line may say how its task was drawn (`drawn`), as `debate label` writes it.
Knows neither runs nor judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from debate.dataset.readers import RecordFile
from debate.dataset.records import Record
from debate.errors import TaskError
from debate.types import FloatArray

_KEYS = ("best", "ranking", "scores")


@dataclass(frozen=True, slots=True)
class Drawn:
    """How a task came to be labeled: by a random draw of the program.

    Attributes:
        seed: of the draw.
        size: of the sample.
        of: number of tasks that it was drawn from.
        stratify: the key of the metadata by whose values it was stratified; empty where it was not.
        stratum: the task's value of that key.
    """

    seed: int
    size: int
    of: int
    stratify: str = ""
    stratum: str = ""


@dataclass(frozen=True)
class Opinion:
    """What one person, or people together, say of the J candidates of a task.

    Attributes:
        n_candidates: J.
        best: indices of the right candidates; empty where none was named.
        ranking: (J,), 1 is best and equal ranks are a tie; None where none was given.
        scores: per component (J,), on people's own scale; NaN where none was given.
        by: who; empty where nobody is named.
        at: when, as it was written down.
        drawn: how the task was drawn; None where it is not known to be of a random sample.
    """

    n_candidates: int
    best: tuple[int, ...] = ()
    ranking: tuple[float, ...] | None = None
    scores: Mapping[str, FloatArray] = field(default_factory=dict[str, FloatArray])
    by: str = ""
    at: str = ""
    drawn: Drawn | None = None

    @cached_property
    def preference(self) -> FloatArray | None:
        """A number per candidate by which people order them, best highest, (J,); None where they order nothing.

        It is minus the rank; without a ranking 1 for the right candidates and 0 for the others; without these the mean
        of the components' scores, NaN where one is missing.
        """
        if self.ranking is not None:
            return -np.asarray(self.ranking, dtype=np.float64)
        if self.best:
            return np.isin(np.arange(self.n_candidates), self.best).astype(np.float64)
        return np.mean(list(self.scores.values()), axis=0) if self.scores else None

    @cached_property
    def choice(self) -> tuple[int, ...]:
        """Indices of the candidates that come first; all of them in a tie of all, none where nothing is ordered."""
        if self.best:
            return self.best
        if self.preference is None or np.isnan(self.preference).any():
            return ()
        return tuple(np.flatnonzero(self.preference == self.preference.max()).tolist())


@dataclass(frozen=True)
class Labels:
    """What people say of one task: together, and each of them.

    Attributes:
        together: of all of them; it says nothing where they do not agree by more than half.
        votes: of each person; empty where only what they say together is known.
    """

    together: Opinion
    votes: tuple[Opinion, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is said, be it by one person."""
        together = self.together
        return bool(self.votes or together.best or together.ranking is not None or together.scores)


def labels_of(metadata: Mapping[str, Any], n_candidates: int, task_id: str) -> Labels:
    """The labels in a task's metadata, which say nothing where there are none.

    Raises:
        TaskError: for labels of another form; names the task and the field.
    """
    at = Record(metadata, Path(), 0)
    try:
        return _labels(at, n_candidates)
    except TaskError as error:
        problem = f"task {task_id!r}: {error.problem}"
        raise TaskError(problem, field=f"metadata.{error.field}", hint=error.hint) from None


@dataclass(frozen=True, slots=True)
class Joined:
    """A file of labels, joined with the tasks of a run.

    Attributes:
        labels: by task id; only of tasks that the run has.
        unknown: ids in the file that the run does not have, in the file's order.
    """

    labels: Mapping[str, Labels]
    unknown: tuple[str, ...]


def read_labels(file: Path, n_candidates: Mapping[str, int]) -> Joined:
    """Read a file of labels (JSON lines, JSON, CSV, parquet) with a `task_id` per record.

    Lines of one task are put together: at most one without `by`, and one per person. A person's later line replaces an
    earlier one, so that a label can be corrected.

    n_candidates: how many candidates each task of the run has, by its id.

    Raises:
        TaskError: naming file, line and field.
    """
    found: dict[str, list[Record]] = {}
    unknown: dict[str, None] = {}
    for record in RecordFile(file):
        name = record.text("task_id")
        if name in n_candidates:
            found.setdefault(name, []).append(record)
        else:
            unknown[name] = None
    return Joined({name: _together(each, n_candidates[name]) for name, each in found.items()}, tuple(unknown))


def _together(records: Sequence[Record], n_candidates: int) -> Labels:
    alone = [record for record in records if not record.data.get("by")]
    if len(alone) > 1:
        hint = "name the people with `by`, or keep one of the lines"
        alone[1].refuse(f"is a second label of this task, beside that of line {alone[0].line}", "task_id", hint)
    signed = [_opinion(record, n_candidates) for record in records if record.data.get("by")]
    known = _labels(alone[0], n_candidates) if alone else Labels(Opinion(n_candidates))
    votes = tuple({each.by: each for each in (*known.votes, *signed)}.values())
    return _concluded(known.together, votes)


def _labels(record: Record, n_candidates: int) -> Labels:
    given = record.data.get("votes")
    votes = () if given is None else tuple(_opinion(vote, n_candidates) for vote in record.mappings("votes"))
    votes = tuple(replace(vote, by=vote.by or f"person {n}") for n, vote in enumerate(votes, 1))
    return _concluded(_opinion(record, n_candidates), votes)


def _concluded(together: Opinion, votes: tuple[Opinion, ...]) -> Labels:
    """The labels with what follows from the votes where it is not said."""
    if votes and not together.best and together.ranking is None:
        together = replace(together, **_majority(votes))
    if votes and not together.scores:
        together = replace(together, scores=_means(votes))
    return Labels(together, votes)


def _majority(votes: Sequence[Opinion]) -> dict[str, Any]:
    """The choice that more than half of those made who chose; nothing where there is none."""
    choices = Counter(vote.choice for vote in votes if vote.choice)
    if not choices:
        return {}
    choice, count = choices.most_common(1)[0]
    if 2 * count <= choices.total():
        return {}
    is_tie = len(choice) == votes[0].n_candidates
    return {"ranking": (1.0,) * len(choice)} if is_tie else {"best": choice}


def _means(votes: Iterable[Opinion]) -> dict[str, FloatArray]:
    """The mean score per component, over those who gave one."""
    given: dict[str, list[FloatArray]] = {}
    for vote in votes:
        for component, scores in vote.scores.items():
            given.setdefault(component, []).append(scores)
    return {component: _mean(np.stack(each)) for component, each in given.items()}


def _mean(scores: FloatArray) -> FloatArray:
    n = (~np.isnan(scores)).sum(axis=0)  # (J,)
    return np.divide(np.nansum(scores, axis=0), n, out=np.full(n.shape, np.nan), where=n > 0)


def _opinion(record: Record, n_candidates: int) -> Opinion:
    read = {"best": _best, "ranking": _ranking, "scores": _scores}
    said = {key: read[key](record, n_candidates) for key in _KEYS if record.data.get(key) not in (None, "")}
    signed = {key: record.optional_text(key) or "" for key in ("by", "at")}
    return Opinion(n_candidates, **said, **signed, drawn=_drawn(record))  # pyright: ignore[reportArgumentType]


def _best(record: Record, n_candidates: int) -> tuple[int, ...]:
    value = record.data["best"]
    given = cast("list[Any]", value) if isinstance(value, list) else [value]
    return tuple(sorted({_index(record, each, n_candidates) for each in given}))


def _index(record: Record, value: Any, n_candidates: int) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or int(text) >= n_candidates:
        record.refuse(f"must be the index of one of {n_candidates} candidates, from 0, got {value!r}", "best")
    return int(text)


def _ranking(record: Record, n_candidates: int) -> tuple[float, ...]:
    ranks = _numbers(record, record.items("ranking"), "ranking", n_candidates)
    if np.isnan(ranks).any():
        record.refuse("must rank every candidate; equal ranks are a tie", "ranking")
    return tuple(ranks.tolist())


def _scores(record: Record, n_candidates: int) -> dict[str, FloatArray]:
    given = record.mapping("scores")
    return {name: _numbers(record, given.items(name), f"scores.{name}", n_candidates) for name in given.data}


def _drawn(record: Record) -> Drawn | None:
    if record.data.get("drawn") in (None, ""):
        return None
    given = record.mapping("drawn")
    seed, size, of = (_whole(given, key) for key in ("seed", "size", "of"))
    stratify, stratum = (given.optional_text(key) or "" for key in ("stratify", "stratum"))
    return Drawn(seed, size, of, stratify, stratum)


def _whole(record: Record, key: str) -> int:
    value = record.data.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        record.refuse("is missing" if value is None else f"must be a whole number, got {value!r}", key)
    return value


def _numbers(record: Record, values: Sequence[Any], field: str, n_candidates: int) -> FloatArray:
    if len(values) != n_candidates:
        record.refuse(f"must hold a number for each of {n_candidates} candidates, got {len(values)}", field)
    for value in values:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            record.refuse(f"must hold numbers, or null where there is none, got {value!r}", field)
    return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)  # (J,)
