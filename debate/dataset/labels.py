"""What people say of a task's candidates: the labels in its metadata, and files of labels that are joined later.

    {"task_id": "q1", "best": 0}                                                 one is right, or a list of them
    {"task_id": "q1", "ranking": [2, 1, 1]}                                      1 is best; equal ranks are a tie
    {"task_id": "q1", "scores": {"clarity": [3, 5, null]}}                       a score per candidate
    {"task_id": "q1", "votes": [{"by": "anna", "best": 0}, {"by": "ben", "ranking": [1, 1, 1]}]}     several people

The same keys stand in the `metadata` of a task. `best` names candidates as `Task.best` does. In a file, lines of
different people (`by`) on one task are votes, too. What people say together is what stands beside the votes, or else
follows from them: the choice that more than half of them made, and the mean of their scores. A line may say how its
task was drawn (`drawn`), as `debate label` writes it. Knows neither runs nor judges.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from debate.dataset.readers import TABLES, RecordFile
from debate.dataset.records import Record
from debate.errors import TaskError
from debate.selection import level_ties
from debate.types import FloatArray, Names, named_candidates

LABELS = frozenset({"best", "ranking", "scores", "votes"})
"""The keys under which labels stand."""


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

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return bool(self.best or self.ranking is not None or self.scores)

    @cached_property
    def preference(self) -> FloatArray | None:
        """A number per candidate by which people order them, best highest, (J,); None where they order nothing.

        It is minus the rank; without a ranking 1 for the right candidates and 0 for the others; without these the mean
        of the components' scores, NaN where one is missing; means that are equal to within rounding are made equal.
        """
        if self.ranking is not None:
            return -np.asarray(self.ranking, dtype=np.float64)
        if self.best:
            return np.isin(np.arange(self.n_candidates), self.best).astype(np.float64)
        return level_ties(np.mean(list(self.scores.values()), axis=0)) if self.scores else None

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
        return bool(self.votes or self.together)


def labels_of(metadata: Mapping[str, Any], names: Names, task_id: str = "") -> Labels:
    """The labels in a task's metadata, which say nothing where there are none.

    names: the id and the generator of each candidate, by which a label may call it.
    task_id: for messages.

    Raises:
        TaskError: for labels of another form; names the field, and the task where its id is given.
    """
    try:
        return _labels(Record(metadata, Path(), 0, "metadata"), names)
    except TaskError as error:
        problem = f"task {task_id!r}: {error.problem}" if task_id else error.problem
        raise TaskError(problem, field=error.field, hint=error.hint) from None


@dataclass(frozen=True, slots=True)
class Joined:
    """A file of labels, joined with the tasks of a run.

    Attributes:
        labels: by task id; only of tasks that the run has.
        unknown: ids in the file that the run does not have, in the file's order.
    """

    labels: Mapping[str, Labels]
    unknown: tuple[str, ...]


def read_labels(file: Path, names: Mapping[str, Names]) -> Joined:
    """Read a file of labels (JSON lines, JSON, CSV, parquet) with a `task_id` per record.

    Lines of one task are put together: at most one without `by`, and one per person. A person's later line replaces an
    earlier one, so that a label can be corrected; without a label in it, it takes the earlier one back. In CSV, lists
    and objects are JSON in their cells.

    names: of each task of the run, by its id, the id and the generator of each candidate.

    Raises:
        TaskError: naming file, line and field; also where the run has none of the file's tasks.
    """
    found: dict[str, list[Record]] = {}
    unknown: dict[str, None] = {}
    for record in RecordFile(file):
        name = record.text("task_id")
        if name in names:
            _check_index(record, names[name])
            found.setdefault(name, []).append(_with_cells(record))
        else:
            unknown[name] = None
    if unknown and not found:
        hint = f"the run's tasks are called {next(iter(names), '')!r} and the like: see `task_id` in its results.jsonl"
        raise TaskError(f"no task of the run has one of these ids: {', '.join([*unknown][:3])}", file=file, hint=hint)
    return Joined({name: _together(each, names[name]) for name, each in found.items()}, tuple(unknown))


def label_records(file: Path) -> Iterator[Record]:
    """The lines of a file of labels, in which what CSV holds as text is read: a label, and how its task was drawn.

    Raises as `RecordFile`.
    """
    return map(_with_cells, RecordFile(file))


def _with_cells(record: Record) -> Record:
    if record.file.suffix.lower() not in TABLES:
        return record
    keys = {*LABELS, "drawn"} & record.data.keys()
    return replace(record, data={**record.data, **{key: record.cell(key) for key in keys}})


def _check_index(record: Record, names: Names) -> None:
    """Refuse a whole number in a cell of a table that could be an index or the name of another candidate."""
    text, index = record.data.get("best"), _with_cells(record).data.get("best")
    if not isinstance(text, str) or not isinstance(index, int):
        return
    for j, each in enumerate(names):
        if j != index and (text in each or str(index) in each):
            what = "id" if each[0] in (text, str(index)) else "generator"
            hint = 'give the letter, from A, or the name in JSON lines: {"best": "' + str(index) + '"}'
            record.refuse(f"`{text}` is both an index from 0 and the {what} of candidate {j}", "best", hint)


def author(record: Record) -> str:
    """Who gave the label of a line; empty where nobody is named.

    Raises:
        TaskError: for something that is no name.
    """
    return record.optional_text("by") or ""


def _together(records: Sequence[Record], names: Names) -> Labels:
    alone = [record for record in records if not author(record)]
    if len(alone) > 1:
        hint = "name the people with `by`, or keep one of the lines"
        alone[1].refuse(f"is a second label of this task, beside that of line {alone[0].line}", "task_id", hint)
    together = _opinion(checked_label(alone[0]), names) if alone else Opinion(len(names))
    votes = _votes(alone[0], names) if alone else []
    signed = [_vote(record, names) for record in records if author(record)]
    return _concluded(together, [*votes, *signed])


def _labels(record: Record, names: Names) -> Labels:
    return _concluded(_opinion(record, names), _votes(record, names))


def _votes(record: Record, names: Names) -> list[Opinion]:
    given = record.mappings("votes") if record.data.get("votes") not in (None, "", []) else []
    votes = [_vote(vote, names) for vote in given]
    votes = [replace(vote, by=vote.by or f"person {n}") for n, vote in enumerate(votes, 1)]
    for n, vote in enumerate(votes):
        if vote.by in (other.by for other in votes[:n]):
            given[n].refuse(f"is a second vote of {vote.by!r}", "by")
    return votes


def _vote(record: Record, names: Names) -> Opinion:
    if record.data.get("votes") not in (None, ""):
        record.refuse("is inside the vote of one person", "votes", "leave out `by` where several people voted")
    return _opinion(checked_label(record), names)


def checked_label(record: Record) -> Record:
    """A record that holds a label, if only an empty one: one without is misspelled.

    Raises:
        TaskError: for a record without one.
    """
    if not LABELS & record.data.keys():
        hint = f"one of {', '.join(sorted(LABELS))} holds it"
        record.refuse(f"holds no label, by its keys {', '.join(record.data)}", hint=hint)
    return record


def _concluded(together: Opinion, given: Iterable[Opinion]) -> Labels:
    """The labels with what follows from the votes where it is not said. A person's last vote counts."""
    votes = tuple(vote for vote in {each.by: each for each in given}.values() if vote)
    if votes and not together.best and together.ranking is None:
        together = replace(together, **_majority(votes))
    if votes and not together.scores:
        together = replace(together, scores=_means(votes))
    return Labels(together, votes)


def _majority(votes: Sequence[Opinion]) -> dict[str, Any]:
    """The choice that more than half of those made who named or ranked candidates; nothing where there is none."""
    choices = Counter(vote.choice for vote in votes if vote.best or vote.ranking is not None)
    if not choices:
        return {}
    choice, count = choices.most_common(1)[0]
    if 2 * count <= choices.total():
        return {}
    is_tie = len(choice) == votes[0].n_candidates > 1
    return {"ranking": (1.0,) * len(choice)} if is_tie else {"best": choice}


def _means(votes: Iterable[Opinion]) -> dict[str, FloatArray]:
    """The mean score per component, over those who gave one."""
    given: dict[str, list[FloatArray]] = {}
    for vote in votes:
        for component, scores in vote.scores.items():
            given.setdefault(component, []).append(scores)
    return {component: _mean(np.stack(each)) for component, each in given.items()}


def _mean(scores: FloatArray) -> FloatArray:
    is_given = ~np.isnan(scores)
    n = is_given.sum(axis=0)  # (J,)
    return np.where(n > 0, np.where(is_given, scores, 0).sum(axis=0) / np.maximum(n, 1), np.nan)


def _opinion(record: Record, names: Names) -> Opinion:
    given = {key for key in LABELS if record.data.get(key) not in (None, "")}
    opinion = Opinion(
        len(names),
        best=_best(record, names) if "best" in given else (),
        ranking=_ranking(record, names) if "ranking" in given else None,
        scores=_scores(record, names) if "scores" in given else {},
        by=author(record),
        at=record.optional_text("at") or "",
        drawn=_drawn(record) if given else None,
    )
    if opinion.best and opinion.ranking is not None and opinion.best != replace(opinion, best=()).choice:
        record.refuse(f"contradicts the ranking {record.data['ranking']}", "best", "give one of the two")
    return opinion


def _best(record: Record, names: Names) -> tuple[int, ...]:
    try:
        return tuple(named_candidates(record.data["best"], names, "best"))
    except TaskError as error:
        record.refuse(error.problem, error.field, error.hint)


def _ranking(record: Record, names: Names) -> tuple[float, ...]:
    ranks = _numbers(record, record.items("ranking"), "ranking", len(names))
    if np.isnan(ranks).any():
        record.refuse("must rank every candidate; equal ranks are a tie", "ranking")
    return tuple(ranks.tolist())


def _scores(record: Record, names: Names) -> dict[str, FloatArray]:
    given = record.mapping("scores")
    filled = [name for name, scores in given.data.items() if scores is not None]
    return {name: _numbers(given, given.items(name), name, len(names)) for name in filled}


def _drawn(record: Record) -> Drawn | None:
    if not isinstance(record.data.get("drawn"), dict):
        return None  # in metadata the word may stand for anything
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
    return np.array([_number(record, value, f"{field}.{j}") for j, value in enumerate(values)])  # (J,)


def _number(record: Record, value: Any, field: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > sys.float_info.max:
        record.refuse(f"must be a number, or null where there is none, got {value!r}", field)
    return float(value)
