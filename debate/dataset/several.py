"""Several eval sets as one: their tasks one after the other, with ids that tell files apart where that is wanted."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debate.dataset.build import LocatedTask
from debate.dataset.evalset import EvalSet, Reading
from debate.errors import ConfigError


@dataclass(frozen=True)
class EvalSets:
    """The tasks of several eval sets, in the order of the files.

    Args:
        files: each is read in the format that is given to it, or that its own keys tell.
        limit: how many tasks are read at most, of all files together; None is all.
        prefix_ids: whether an id that a file gives has the file's name before it, `NAME/ID`.

    Raises:
        ConfigError: without a file, or for a limit below 1.
    """

    files: tuple[EvalSet, ...]
    limit: int | None = None
    prefix_ids: bool = False

    def __post_init__(self) -> None:
        if not self.files:
            raise ConfigError("needs at least one file", field="evalset")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"must be at least 1, or None, got {self.limit}", field="limit")

    @property
    def path(self) -> Path:
        """The first of the files."""
        return self.files[0].path

    @property
    def recorded(self) -> dict[str, Any]:
        """What a run's folder says of it."""
        return {"path": str(self.path), "more": [str(each.path) for each in self.files[1:]]}

    def read(self) -> Readings:
        """Begin a pass over all files; raises `TaskError` as `EvalSet.read` does."""
        return Readings(self)

    def tasks(self) -> Iterator[LocatedTask]:
        """The tasks of a pass: `iter(self.read())`."""
        return iter(self.read())

    def digest(self) -> str:
        """Hash of everything that the tasks depend on."""
        return self.read().digest()


class Readings:
    """One pass over several eval sets, which raises what `Reading` raises. `parts` are the readings of each."""

    def __init__(self, evalsets: EvalSets) -> None:
        self.evalsets = evalsets
        self.parts: list[Reading] = [each.read() for each in evalsets.files]
        self.prefixes = names_of([each.path for each in evalsets.files]) if evalsets.prefix_ids else None

    def __iter__(self) -> Iterator[LocatedTask]:
        """The tasks in order, once; a file that the limit leaves out is not opened."""
        return itertools.islice(self._tasks(), self.evalsets.limit)

    def digest(self) -> str:
        """Hash of the limit, of the prefixes, and of each file's own digest, in order."""
        parts = [each.digest() for each in self.parts]
        return hashlib.sha256(repr((self.evalsets.limit, self.prefixes, parts)).encode()).hexdigest()

    def _tasks(self) -> Iterator[LocatedTask]:
        for n, part in enumerate(self.parts):
            for located in part:
                task = located.task
                if self.prefixes is not None and task.has_given_id:
                    task = task.renamed(f"{self.prefixes[n]}/{task.id}")
                yield located._replace(task=task)


def evalset_of(
    paths: Sequence[Path],
    limit: int | None = None,
    format: str | None = None,  # noqa: A002 - that of EvalSet
    answers: tuple[Path, ...] = (),
    columns: Mapping[str, str] | None = None,
    *,
    prefix_ids: bool = False,
) -> EvalSet | EvalSets:
    """The eval set in one file, or in several as one. `format` and `columns` are those of every file.

    Raises:
        ConfigError: as `EvalSet`, and for answers where there are several files.
    """
    if len(paths) == 1 and not prefix_ids:
        return EvalSet(paths[0], limit, format, answers, columns or {})
    if answers and len(paths) > 1:
        hint = "say for each eval set which answers are its own: one run per eval set, or a file with all candidates"
        raise ConfigError("go with one eval set", field="answers", hint=hint)
    files = tuple(EvalSet(path, None, format, answers, columns or {}) for path in paths)
    return EvalSets(files, limit, prefix_ids)


def names_of(paths: Sequence[Path]) -> tuple[str, ...]:
    """A name for each file: its own without ending, and before it as many folders as it takes to tell all apart."""
    for depth in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = tuple("/".join((*path.parts[-depth:-1], path.stem)) for path in paths)
        if len(set(names)) == len(names):
            return names
    return tuple(f"{n}/{path.stem}" for n, path in enumerate(paths, 1))


_LONGEST = 80


def joined_name(paths: Sequence[Path]) -> str:
    """A name for the folder of a run of these files: theirs, or the first one's and how many more there are."""
    name = "+".join(path.stem for path in paths)
    return name if len(name) <= _LONGEST or len(paths) == 1 else f"{paths[0].stem}+{len(paths) - 1}"
