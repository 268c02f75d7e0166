"""Tasks out of the bodies of requests, in the JSON of eval sets, and their evaluations. Knows no HTTP.

{"x": "What is 2 + 2?", "candidates": ["4", "5"]}              one task
{"tasks": [{"x": ..., "candidates": [...]}, ...]}              several
one task per line                                              several, as a file of JSON lines has them
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from pydantic import BaseModel, Field, ValidationError

from debate.config.settings import ServerLimits
from debate.dataset.native_jsonl import NativeTask, native_jsonl
from debate.dataset.records import JSON, Record
from debate.engine import Engine
from debate.errors import DebateError, InputError, TaskError
from debate.evaluation import Evaluation, failed
from debate.evaluators.base import Evaluator, check_task
from debate.files import DuplicateKey
from debate.types import Failure, Task, UniqueIds
from debate.yaml_files import FileModel, dotted, first_finding

_BODY = Path("body")
_SHAPES = 'one task is {"x": "What is 2 + 2?", "candidates": ["4", "5"]}, several are {"tasks": [TASK, ...]}'


class Problem(BaseModel):
    """Why a request has no answer."""

    error: str = Field(description="What is wrong, in a sentence.")
    field: str | None = Field(None, description="Where in the body it stands: `tasks.3.candidates.0.text`.")
    hint: str | None = Field(None, description="What to do next.")


class Refused(Exception):
    """A request that has no answer: its status, and why, for the client."""

    def __init__(self, problem: Problem, status: int = 422) -> None:
        super().__init__(problem.error)
        self.problem = problem
        self.status = status


class Batch(FileModel):
    """Several tasks, evaluated side by side."""

    tasks: list[NativeTask] = Field(min_length=1, description="The tasks; ids that are given must be unique.")


class BatchAnswer(BaseModel):
    """The evaluations of several tasks, in their order. One that failed says why in `error` and `failures`."""

    evaluations: list[Evaluation]


class BatchLine(BaseModel):
    """A line of the answer as JSON lines: they come as the evaluations finish."""

    index: int = Field(description="The task's place in the request, from 0.")
    evaluation: Evaluation


@dataclass(frozen=True, slots=True)
class Served:
    """An evaluator, and the engine in whose one batch all requests are evaluated."""

    engine: Engine
    evaluator: Evaluator

    async def evaluate(self, task: Task) -> Evaluation:
        """The evaluation of a task; raises what the engine raises."""
        return await self.engine.aevaluate(task, self.evaluator)

    async def evaluate_one_of_many(self, task: Task) -> Evaluation:
        """The evaluation of a task; a failed one where the engine cannot go on."""
        try:
            return await self.evaluate(task)
        except DebateError as error:
            failure = Failure("run_ended", error.message)
            return failed(task.id, self.evaluator.name, len(task.candidates), failure, self.evaluator.scale)

    def task(self, raw: bytes, limits: ServerLimits) -> Task:
        """The task of a body. Raises `Refused` for what is none, or cannot be evaluated."""
        return self.task_of(_decoded(raw), limits)

    def task_of(self, data: object, limits: ServerLimits) -> Task:
        """The task of the value of a JSON text. Raises `Refused` as `task` does."""
        return self._checked(_task(data, ""), limits, "")

    def tasks(self, raw: bytes, limits: ServerLimits, *, are_lines: bool) -> list[Task]:
        """The tasks of a body, each with an id of its own. Raises `Refused` as `task` does.

        are_lines: whether the body is JSON lines.
        """
        return self._unique(_of_lines(raw, limits) if are_lines else _of_list(raw, limits), limits)

    def _unique(self, tasks: list[Task], limits: ServerLimits) -> list[Task]:
        taken = set[str]()
        ids, named = UniqueIds(taken.__contains__), list[Task]()
        for n, task in enumerate(tasks):
            inside = f"tasks.{n}"
            try:
                its = ids.of(task)
            except TaskError as error:
                _refuse(error, inside)
            taken.add(its)
            named.append(self._checked(task if its == task.id else task.renamed(its), limits, inside))
        return named

    def _checked(self, task: Task, limits: ServerLimits, inside: str) -> Task:
        """The task, if it is not too long and the evaluator can evaluate it."""
        if _characters(task) > limits.max_characters:
            problem = f"a task of more than {limits.max_characters} characters"
            raise Refused(_problem(problem, inside or None, None), 413)
        try:
            check_task([self.evaluator], task)
        except InputError as error:
            _refuse(error, inside)
        return task


def _characters(task: Task) -> int:
    """How long a task's texts are together."""
    texts = [task.x, *(each.text for each in task.candidates), *task.background, *task.criteria]
    return sum(map(len, texts))


def _of_list(raw: bytes, limits: ServerLimits) -> list[Task]:
    data = _decoded(raw)
    given = cast("dict[str, Any]", data).get("tasks") if isinstance(data, dict) else None
    if isinstance(given, list):
        _check_number(len(cast("list[Any]", given)), limits)
    try:
        Batch.model_validate(data)
    except ValidationError as found:
        first = first_finding(found, Batch)
        where = dotted(first.loc) or None
        hint = first.hint if where is not None and where.startswith("tasks.") else _SHAPES
        raise Refused(_problem(first.message, where, hint)) from None
    return [_task(each, f"tasks.{n}") for n, each in enumerate(cast("list[Any]", given))]


def _of_lines(raw: bytes, limits: ServerLimits) -> list[Task]:
    lines = [line for line in raw.split(b"\n") if line.strip()]
    if not lines:
        raise Refused(_problem("holds no tasks", None, "each line is a task, as one line of JSON"))
    _check_number(len(lines), limits)
    return [_task(_decoded(line, f"tasks.{n}"), f"tasks.{n}") for n, line in enumerate(lines)]


def _check_number(n: int, limits: ServerLimits) -> None:
    if n > limits.max_tasks:
        hint = "send them in several requests: all of them share the batch of the engine"
        raise Refused(_problem(f"more than {limits.max_tasks} tasks", "tasks", hint), 413)


def _task(data: object, inside: str) -> Task:
    if not isinstance(data, dict):
        raise Refused(_problem("must be an object: a task", inside or None, _SHAPES))
    try:
        ((task, _, _),) = native_jsonl(iter([Record(cast("dict[str, Any]", data), _BODY, 1, inside)]))
    except TaskError as error:
        _refuse(error, "")
    return task


def _decoded(raw: bytes, inside: str = "") -> Any:
    """The JSON value of a text in UTF-8."""
    try:
        return JSON.decode(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8, at byte {error.start + 1}"
    except DuplicateKey as error:
        problem = f"the key {error.args[0]!r} stands twice in one object"
    except RecursionError:
        problem = "is nested too deeply"
    except ValueError as error:
        problem = f"is not valid JSON: {error}"
    raise Refused(_problem(problem, inside or None, None))


def _problem(problem: str, field: str | None, hint: str | None) -> Problem:
    return Problem(error=f"{field or 'the body'}: {problem}", field=field, hint=hint)


def _refuse(error: InputError, inside: str) -> NoReturn:
    """Refuse a task for what an error says, without the file and the line that it has not."""
    field = ".".join(part for part in (inside, error.field) if part) or None
    raise Refused(_problem(error.problem, field, error.hint)) from None
