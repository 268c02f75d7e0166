"""Which tasks of a run a person is asked about, how they are shown, and the file that the answers go to.

The tasks are drawn by a seed and shown blind: their texts in an order of their own for each task and person, without
scores, choices and generators.
"""

from __future__ import annotations

import codecs
import fcntl
import hashlib
import html
import json
import math
import os
import re
import sys
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from debate.dataset.labels import LABELS, Drawn, author, checked_label, label_records
from debate.dataset.readers import TABLES, json_lines
from debate.dataset.records import Record
from debate.errors import ConfigError, InputError, StoreError
from debate.evaluators.debate.settings import CELL_SCALE
from debate.files import json_text, valid_unicode
from debate.hashing import digest
from debate.meta_evaluation.judged import Judged, JudgedRun

CHOICE = frozenset({"best", "ranking"})
"""The keys of a label that says which candidate is best."""


@dataclass(frozen=True, slots=True)
class Item:
    """A task as it is shown to one person.

    Attributes:
        task_id: the task's; it is not shown.
        drawn: how it was drawn.
        x: the input.
        context: further texts.
        reference: an answer that is known to be right; None where there is none.
        candidates: the texts in the order in which they are shown.
        order: the index in the task of each of them.
        components: what the task was scored on, where it has components of its own; else empty.
    """

    task_id: str
    drawn: Drawn
    x: str
    context: tuple[str, ...]
    reference: str | None
    candidates: tuple[str, ...]
    order: tuple[int, ...]
    components: tuple[str, ...] = ()


# ---- the sample


def draw(strata: Mapping[str, str], seed: int) -> list[str]:
    """Task ids in a random order that the seed alone decides; the first N are a sample of N.

    A larger sample holds a smaller one, and every stratum gives as many tasks, as long as it has any.

    strata: the stratum of each task, by its id.
    """
    priority = {task_id: digest(seed, task_id) for task_id in strata}
    ranks: dict[str, int] = {}
    seen: dict[str, int] = {}
    for task_id in sorted(strata, key=priority.__getitem__):
        ranks[task_id] = seen[strata[task_id]] = seen.get(strata[task_id], -1) + 1
    return sorted(strata, key=lambda task_id: (ranks[task_id], priority[task_id]))


def strata_of(tasks: Iterable[Judged], key: str) -> dict[str, str]:
    """The value of each task's metadata under a key, by the task's id; "" for all without a key."""
    return {task.task_id: str(task.metadata.get(key, "")) if key else "" for task in tasks}


def eligible(tasks: Iterable[Judged], *, is_scored: bool) -> list[Judged]:
    """The tasks that can be labeled: for a choice they take two candidates."""
    return [task for task in tasks if is_scored or len(task.scores) > 1]


def draw_sample(
    run: JudgedRun, size: int, seed: int = 0, stratify: str = "", *, is_scored: bool = False
) -> dict[str, Drawn]:
    """A random sample of a run's tasks, by id, in the order in which they are asked about.

    Raises:
        ConfigError: for a run without tasks that can be labeled, and a key that no task has.
    """
    tasks = eligible(run.tasks, is_scored=is_scored)
    if not tasks:
        hint = "add --scores, which asks for scores instead"
        raise ConfigError("every task has one candidate, so that none can be the best", field="--sample", hint=hint)
    if stratify and not any(stratify in task.metadata for task in tasks):
        keys = sorted({key for task in tasks for key in task.metadata})
        hint = f"they have: {', '.join(keys)}" if keys else "they have none"
        raise ConfigError(f"no task has {stratify!r} in its metadata", field="--stratify", hint=hint)
    strata = strata_of(tasks, stratify)
    return {
        task_id: Drawn(seed, min(size, len(tasks)), len(tasks), stratify, strata[task_id])
        for task_id in draw(strata, seed)[:size]
    }


def blind_items(run: JudgedRun, sample: Mapping[str, Drawn], by: str) -> list[Item]:
    """The tasks of a sample as one person sees them, in the sample's order.

    Raises:
        StoreError: as `RunDirectory.open_store`.
    """
    with run.directory.open_store() as store:
        found = store.read(run.directory.name).result_data()
        items = {task_id: _item(task_id, task, sample[task_id], by) for task_id, task, _ in found if task_id in sample}
    own = {task.task_id: task.components for task in run.tasks if task.own_weights}
    items = {task_id: replace(item, components=own.get(task_id, ())) for task_id, item in items.items()}
    return [items[task_id] for task_id in sample]


def _item(task_id: str, task: Mapping[str, Any], drawn: Drawn, by: str) -> Item:
    texts: list[str] = [each["text"] for each in task["candidates"]]
    order = tuple(sorted(range(len(texts)), key=lambda j: digest(by, task_id, j)))
    shown = tuple(texts[j] for j in order)
    return Item(task_id, drawn, task["x"], tuple(task["context"]), task.get("reference"), shown, order)


# ---- what a person says


@dataclass(frozen=True, slots=True)
class Rating:
    """What is asked for where people score: a number per component and candidate, on the judge's scale.

    high: None where the scale has no upper end.
    """

    components: tuple[str, ...]
    low: float
    high: float | None

    @property
    def range(self) -> str:
        """The scale in words."""
        return f"{self.low:g} or more" if self.high is None else f"{self.low:g} to {self.high:g}"

    def checked(self, text: str) -> float:
        """A score on the scale. Raises ValueError for another."""
        with suppress(ValueError):
            score = float(text)
            if self.low <= score <= (sys.float_info.max if self.high is None else self.high):
                return score
        raise ValueError(f"A score is a number from {self.range}, got {text!r}.")


def rating_of(run: JudgedRun) -> Rating:
    """What people are asked to score: the judge's components, or `score` where it has none.

    Components are asked for on the scale on which agents score them, and `score` on that of the judge's scores. A task
    with components of its own says in its `Item` what it was scored on.
    """
    names = dict.fromkeys(name for task in run.tasks if not task.own_weights for name in task.components)
    scale = CELL_SCALE if any(task.components for task in run.tasks) else run.tasks[0].scale
    return Rating(tuple(names) or ("score",), scale.low, scale.high if math.isfinite(scale.high) else None)


def best_of(item: Item, shown: Iterable[int]) -> dict[str, Any]:
    """The label that the candidates at these places are equally good and better than the others; a tie of all."""
    best = sorted({item.order[place] for place in shown})
    if len(best) == len(item.order):
        return {"ranking": [1] * len(best)}
    return {"best": best[0] if len(best) == 1 else best}


def scores_of(item: Item, shown: Mapping[str, Iterable[float | None]]) -> dict[str, Any]:
    """The label of scores per component, given in the order in which the candidates are shown."""
    in_order = {name: dict(zip(item.order, scores, strict=True)) for name, scores in shown.items()}
    return {"scores": {name: [scores[j] for j in sorted(scores)] for name, scores in in_order.items()}}


def is_answered(label: Mapping[str, Any], rating: Rating | None) -> bool:
    """Whether a line of a person already says what is asked for."""
    return bool(label.keys() & (CHOICE if rating is None else {"scores"}))


def _with_earlier(label: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """A line with what the same person's earlier one says besides, since the last line counts alone."""
    kept = (CHOICE | {"scores"}) - (CHOICE if label.keys() & CHOICE else {"scores"})
    return {**{key: value for key, value in earlier.items() if key in kept}, **label}


class LabelFile:
    """A file of labels, one JSON object per line, that several people may append to at the same time.

    Raises:
        ConfigError: for a file of another format.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix.lower() in (".csv", ".tsv", ".json", ".parquet"):
            raise ConfigError("labels are written as JSON lines", file=path, hint="name a file that ends in .jsonl")
        self.path = path

    def of(self, by: str) -> dict[str, dict[str, Any]]:
        """The last line of a person on each task, by its id; none where there is no file.

        Raises:
            TaskError: for a line that is no JSON, or without a task; names file and line.
        """
        return {task_id: dict(record.data) for (who, task_id), record in self._held().items() if who == by}

    def _held(self) -> dict[tuple[str, str], Record]:
        return _last_lines(self.path) if self.path.exists() else {}

    def add(self, item: Item, said: Mapping[str, Any], by: str) -> None:
        """Append what a person says of a task, with who and when, and how the task was drawn. Raises as `append`."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        drawn = {key: value for key, value in asdict(item.drawn).items() if value != ""}
        label = {"task_id": item.task_id, **said, "by": by, "at": at, "drawn": drawn}
        self.append([_with_earlier(label, self.of(by).get(item.task_id, {}))])

    def join(self, others: Path, unknown: Collection[str] = ()) -> tuple[int, int]:
        """Append the lines of another file of labels, as the form makes them; returns how many, and how many not.

        A person's last line on a task counts. It is left out where the file has one of the same person on the same
        task that is as new. Check the other file first: `read_run(folder, others)`.

        unknown: ids of tasks that are left out, and not counted.

        Raises:
            TaskError: before anything is written: for a line by nobody that is newer than one in the file, which would
                have two labels of the task then; and as `of`.
        """
        told = {key: record for key, record in _last_lines(others).items() if key[1] not in unknown}
        self.repair()
        held = self._held()
        newer = [
            (record, held.get(key)) for key, record in told.items() if key not in held or _is_newer(record, held[key])
        ]
        for new, old in newer:
            if old is not None and not author(new):
                problem = f"is newer than {self.path}:{old.line}, and neither says whose label of this task it is"
                new.refuse(problem, "task_id", "name the people with `by`, or delete the older line")
        self.append(_with_earlier(_filled(new), old.data if old else {}) for new, old in newer)
        return len(newer), len(told) - len(newer)

    def repair(self) -> None:
        """Remove a last line that was cut off, where there is a file of labels. Raises as `append`."""
        if self.path.exists():
            self.append(())

    def append(self, labels: Iterable[Mapping[str, Any]]) -> None:
        """Write lines, on the disk before this returns. A last line that was cut off is removed first.

        Raises:
            ConfigError: for a file of something else, which stays as it is.
            InputError: when the file cannot be opened.
            StoreError: when it cannot be written.
            TaskError: when a last line was cut off, and one before it is no label; the file stays as it is.
        """
        lines = "".join(f"{json_text(each)}\n" for each in labels).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            stream = self.path.open("ab+", buffering=0)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=self.path) from None
        try:
            with stream:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(stream, fcntl.LOCK_EX)
                _append(stream, lines, self.path)
        except OSError as error:
            hint = "what was labeled before is in it; make room and go on with the same command"
            raise StoreError(f"{self.path}: cannot be written: {error.strerror}", hint=hint) from None


def _append(stream: FileIO, lines: bytes, file: Path) -> None:
    stream.seek(0)
    kept = _complete(stream.read(), file)
    stream.truncate(len(kept))
    rest = memoryview(lines if kept.endswith(b"\n") or not kept else b"\n" + lines)
    try:
        while rest:
            rest = rest[stream.write(rest) :]
        os.fsync(stream.fileno())
    except BaseException:
        stream.truncate(len(kept))
        raise


def _complete(data: bytes, file: Path) -> bytes:
    """The bytes without a last line that was cut off. One that lacks its line feed alone is complete.

    Raises:
        ConfigError: where the bytes are not those of a file of labels: nothing of it may be removed.
        TaskError: where a label was cut off, and a line before it is none.
    """
    text = data.removeprefix(codecs.BOM_UTF8)
    if text.strip() and not text.lstrip().startswith(b"{"):
        raise ConfigError("is no file of labels: it does not begin with {", file=file, hint=_ANOTHER_FILE)
    last = text.rpartition(b"\n")[2]
    if not last.strip() or _is_json(last):
        return data
    if not last.lstrip().startswith(b"{"):
        problem = "is no label, which begins with {"
        raise ConfigError(problem, file=file, line=text.count(b"\n") + 1, hint=_ANOTHER_FILE)
    whole = data[: len(data) - len(last)]
    for record in json_lines(whole.split(b"\n"), file):
        checked_label(record).text("task_id")
    return whole


_ANOTHER_FILE = "labels are JSON lines, an object each; name another file, which need not exist yet, or repair this one"


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _last_lines(file: Path) -> dict[tuple[str, str], Record]:
    """The last line of each person on each task, by both."""
    return {(author(record), record.text("task_id")): record for record in label_records(file)}


def _filled(record: Record) -> dict[str, Any]:
    """A line; one of a table without its empty cells, but with an empty label where it holds no other."""
    if record.file.suffix.lower() not in TABLES:
        return dict(record.data)
    filled = {key: value for key, value in record.data.items() if value not in (None, "")}
    return filled if filled.keys() & LABELS else {**filled, **dict.fromkeys(record.data.keys() & LABELS)}


def _is_newer(record: Record, other: Record) -> bool:
    return _at(record.data) > _at(other.data)


def _at(label: Mapping[str, Any]) -> datetime:
    """When a label was given; the beginning of time where it does not say."""
    try:
        at = datetime.fromisoformat(str(label.get("at")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


# ---- the form


def html_form(items: Sequence[Item], by: str, rating: Rating | None = None) -> str:
    """A page that asks one person about all items: one file that loads nothing, for any browser.

    What is labeled is kept in the browser, and a button saves it as a file of labels.

    rating: asks for scores in place of the best.
    """
    page = Path(__file__).with_name("label_form.html").read_text(encoding="utf-8")
    rated = None if rating is None else asdict(rating)
    key = digest(by, [item.task_id for item in items], rated)
    data = {"key": key, "by": by, "rated": rated, "items": [asdict(item) for item in items]}
    values = {kind: _sha256(page, kind) for kind in ("script", "style")}
    values |= {"by": html.escape(valid_unicode(by)), "data": json_text(data).replace("<", "\\u003c")}
    return re.sub("@@([a-z]+)@@", lambda found: values[found[1]], page)


def _sha256(page: str, tag: str) -> str:
    """The hash of the text of the page's one element of this name, as a content security policy names it."""
    text = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
