"""An eval set: where its tasks stand, in which format, read as a stream.

Knows nothing of what is done with the tasks, or of names for equal ones; the formats are in `debate.jobs.formats`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from debate.errors import ConfigError, TaskError
from debate.jobs.formats import joined, pairs
from debate.jobs.formats.columns import table
from debate.jobs.formats.making import Placed
from debate.jobs.formats.opening import opened
from debate.jobs.formats.own import read_own
from debate.jobs.formats.records import Record, records
from debate.types import Task


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the keys by which its first record is recognised, and how its records become tasks."""

    description: str
    keys: tuple[frozenset[str], ...]
    """Any of these sets, as a whole."""
    read: Callable[[Iterator[Record], Sequence[Path]], Iterator[Placed]] | None = None
    """From the records, and the further files of a format that has its answers apart."""


Read = Callable[[Iterator[Record], Sequence[Path]], Iterator[Placed]]


def _alone(read: Callable[[Iterator[Record]], Iterator[Placed]]) -> Read:
    def without_answers(found: Iterator[Record], answers: Sequence[Path]) -> Iterator[Placed]:
        return read(found)

    return without_answers


def _keys(*alternatives: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(each.split()) for each in alternatives)


FORMATS: Mapping[str, Format] = {
    "own": Format("our JSONL: x and candidates, one task a line", _keys("x candidates")),
    "table": Format("CSV or parquet: x and candidates in columns", ()),
    "pandalm": Format("PandaLM test set", _keys("instruction response1 response2"), _alone(pairs.pandalm)),
    "llmbar": Format("LLMBar", _keys("input output_1 output_2"), _alone(pairs.llmbar)),
    "judge_bench": Format("JudgeBench", _keys("pair_id question response_A response_B"), _alone(pairs.judge_bench)),
    "reward_bench": Format(
        "RewardBench, versions 1 and 2", _keys("prompt chosen rejected"), _alone(pairs.reward_bench)
    ),
    "chat_eval": Format("FairEval and ChatEval", _keys("question response"), _alone(pairs.chat_eval)),
    "openai_batch": Format(
        "OpenAI batch output, with its input by --answers", _keys("custom_id response"), joined.openai_batch
    ),
    "lm_eval": Format("lm-eval samples, one file a model", _keys("doc_id arguments resps"), joined.lm_eval),
    "mt_bench": Format(
        "MT-bench questions, with answer files", _keys("question_id turns", "question_id text"), joined.mt_bench
    ),
    "alpaca_eval": Format("AlpacaEval outputs, one file a model", _keys("instruction output"), joined.alpaca_eval),
}
"""By the names that `--format` takes."""

_TABLES = {".csv", ".tsv", ".parquet"}
_ANSWERS = ("answer_*.jsonl", "answer/*.jsonl", "model_answer/*.jsonl")
"""Where MT-bench puts answers, beside question.jsonl."""


@dataclass(frozen=True)
class EvalSet:
    """The tasks of a file, or of a folder in MT-bench's layout.

    Args:
        path: the file or the folder.
        limit: how many tasks are read at most; None is all.
        format: one of `FORMATS`; None recognises it by the keys of the first record.
        answers: further files, for formats that have candidates in files of their own.
        columns: of a table, {our name: its column}.

    Raises:
        ConfigError: for a limit below 1, or a format that is not there.
    """

    path: Path
    limit: int | None = None
    format: str | None = None
    answers: tuple[Path, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"must be at least 1, or None, got {self.limit}", field="limit")
        if self.format is not None and self.format not in FORMATS:
            raise ConfigError(f"there is no format {self.format!r}", field="format", hint=", ".join(FORMATS))

    @property
    def file(self) -> Path:
        """The file itself, or the questions in an MT-bench folder."""
        questions = self.path / "question.jsonl"
        return questions if questions.is_file() else self.path

    def tasks(self) -> Iterator[Placed]:
        """The tasks in order, reading no further than is asked. Ids are not checked against each other.

        Raises:
            TaskError: at the first that is no task, with file, line and field; when there is none, or no file.
        """
        return itertools.islice(self._all(), self.limit)

    def digest(self) -> str:
        """Hash of everything that `tasks` depends on.

        Raises:
            TaskError: when it cannot be read, or is a pipe, which could not be read a second time.
        """
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
            hint = "save it to a file first"
            raise TaskError("is not a regular file, so it can be read only once", file=self.path, hint=hint)
        found = hashlib.sha256(repr((self.limit, self.format, sorted(self.columns.items()))).encode())
        for file in (self.file, *self._answers()):
            with opened(file) as stream:
                for block in iter(lambda stream=stream: stream.read(1 << 20), b""):
                    found.update(block)
        return found.hexdigest()

    def recognised(self) -> str:
        """The name of its format.

        Raises:
            TaskError: when the keys of its first record are those of no format.
        """
        if self.format is not None:
            return self.format
        if self.file.suffix.lower() in _TABLES:
            return "table"
        try:
            first = next(records(self.file), None)
        except TaskError:
            return "own"  # whose reader says best what is wrong with a line
        keys = set(first.data) if first else set[str]()
        for name, known in FORMATS.items():
            if any(needed <= keys for needed in known.keys):
                return name
        if first is None or keys & {"x", "candidates"} or (self.file.suffix == ".jsonl" and not _is_foreign(keys)):
            return "own"
        raise TaskError(
            f"is in no format that is known, by its keys {', '.join(sorted(keys)[:8])}",
            file=self.file,
            hint=f"--format takes {', '.join(FORMATS)}",
        )

    def _all(self) -> Iterator[Placed]:
        name = self.recognised()
        if name == "own":
            return (Placed(task, str(self.file), line) for task, line in read_own(self.file))
        if name == "table":
            return self._not_empty(table(records(self.file), self.columns))
        read = FORMATS[name].read
        assert read is not None
        return self._not_empty(read(records(self.file), self._answers()))

    def _not_empty(self, tasks: Iterator[Placed]) -> Iterator[Placed]:
        first = next(tasks, None)
        if first is None:
            raise TaskError("holds no tasks", file=self.file)
        yield first
        yield from tasks

    def _answers(self) -> tuple[Path, ...]:
        if self.answers or self.recognised() != "mt_bench":
            return self.answers
        folder = self.file.parent
        return tuple(sorted(found for pattern in _ANSWERS for found in folder.glob(pattern)))


def _is_foreign(keys: set[str]) -> bool:
    """Whether a record has nothing of a task of ours, however misspelt."""
    return len(keys) >= 3


def read_evalset(path: str | Path, limit: int | None = None) -> Iterator[Task]:
    """Yield the tasks of the eval set at `path`, in the order of the file, reading no further than is asked.

    A line holds `x` (text) and `candidates` (texts, or objects of `text`, `id`, `generator`, `metadata`), and may hold
    `id` (text, unique), `context` (texts) and `metadata` (an object). Blank lines are skipped; a null is as good as a
    key left out, where it may be left out. Only the given ids are held, with the lines they stand on.

    Raises:
        TaskError: at the first line that is no such task, with file, line and field; when the file cannot be read or
            holds no task.
        ConfigError: for a limit below 1.
    """
    first_lines: dict[str, int] = {}
    for task, file, line in EvalSet(Path(path), limit).tasks():
        first = first_lines.setdefault(task.id, line) if task.has_given_id else line
        if first != line:
            raise TaskError(f"{task.id!r} stands twice, first on line {first}", file=file, line=line, field="id")
        yield task


def check_evalset(path: str | Path, limit: int | None = None) -> int:
    """Read the eval set once, so that a broken line is known before any model is loaded; returns how many tasks.

    Raises:
        TaskError: as `read_evalset`, and when `path` is a pipe, which could not be read a second time.
        ConfigError: for a limit below 1.
    """
    file = Path(path)
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise TaskError("is not a regular file, so it can be read only once", file=file, hint="save it to a file first")
    return sum(1 for _ in read_evalset(file, limit))
