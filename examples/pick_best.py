"""Pick the best candidate of every task of an eval set: a batch job in one screen.

    python examples/pick_best.py tasks.jsonl --model NAME --out best.jsonl
    python examples/pick_best.py                             # general tasks, a scripted model; seconds, anywhere

Reads tasks as a stream, debates many at once, and writes one line per task as it finishes, in no fixed order:

    {"id": "capital", "selected": 0, "text": "Canberra.", "score": 8.4, "probability": 0.93, "status": "ok"}

`score` is the selected candidate's, on 0..10, and `probability` its share of the softmax. A task that no agent could
score has null in these places: nothing is picked for it, it is named on stderr, and the exit code is 3 (0: everything
was picked; 2: bad input; 4: the engine failed). For a run that can be resumed, use `debate run`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TextIO

from debate import Engine, Evaluation, Task
from debate.backends import Backend, Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.errors import BackendError, ConfigError, DebateError
from debate.evaluators.base import Evaluator
from debate.runtime.scheduler import with_unique_ids

GENERAL = Path(__file__).parents[1] / "scripts" / "general_tasks.jsonl"


def pick(engine: Engine, evaluator: Evaluator, tasks: Iterable[Task]) -> Iterator[dict[str, Any]]:
    """One row per task, as they finish. Only the tasks in progress are held, so an eval set may have any size."""
    under_way: dict[str, Task] = {}

    def remembered() -> Iterator[Task]:
        for task in with_unique_ids(tasks):  # equal tasks without an id get names of their own here already
            under_way[task.id] = task
            yield task

    for evaluation in engine.iter_evaluate(remembered(), evaluator):
        yield row(under_way.pop(evaluation.task_id), evaluation)


def row(task: Task, evaluation: Evaluation) -> dict[str, Any]:
    """The output for one task; null where nothing was selected."""
    j = evaluation.selected
    return {
        "id": task.id,
        "selected": j,
        "text": None if j is None else task.candidates[j].text,
        "score": None if j is None else round(float(evaluation.scores[j]), 4),
        "probability": None if j is None else round(float(evaluation.probabilities[j]), 4),
        "status": evaluation.status,
    }


def write(rows: Iterable[dict[str, Any]], total: int, out: TextIO) -> int:
    """Write each row as it comes, with progress on stderr; returns how many tasks were left unscored."""
    unscored = 0
    for done, picked in enumerate(rows, 1):
        print(json.dumps(picked), file=out, flush=True)
        if picked["selected"] is None:
            unscored += 1
            print(f"unscored: {picked['id']!r}", file=sys.stderr)
        if done % 10 == 0 or done == total:
            print(f"{done} of {total} tasks, {unscored} unscored", file=sys.stderr)
    return unscored


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evalset", type=Path, nargs="?", default=GENERAL, help="JSONL; by default general tasks")
    parser.add_argument("--out", type=Path, help="file to write, made anew; stdout by default")
    parser.add_argument("--limit", type=int, help="only the first so many tasks")
    for flag in ("--model", "--backend", "--base-url", "--seed"):
        parser.add_argument(flag, help="as for `debate run`")
    parser.add_argument("--config", type=Path, help="YAML of further settings, as for `debate run`")
    options = parser.parse_args(arguments)
    try:
        names = ("limit", "model", "backend", "base_url", "seed")
        given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
        settings = RunSettings.read(options.config, given)
        backend: Backend = Scripted(judge) if settings.model is None else settings.open_backend()
        evaluator = settings.make_evaluator()
        # Read through once: a broken line is known before a model is loaded and before the old --out is emptied.
        evalset = EvalSet(options.evalset, settings.limit)
        total = sum(1 for _ in evalset.tasks())
        with opened(options.out, options.evalset) as out, Engine(backend, seed=settings.seed) as engine:
            tasks = (task for task, _, _ in evalset.tasks())
            return 3 if write(pick(engine, evaluator, tasks), total, out) else 0
    except DebateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4 if isinstance(error, BackendError) else 2


def opened(path: Path | None, evalset: Path) -> AbstractContextManager[TextIO]:
    """The file to write, or stdout."""
    if path is None:
        return nullcontext(sys.stdout)
    if path.exists() and path.samefile(evalset):
        raise ConfigError("is the eval set itself", field="--out")
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", field="--out") from None


# The scripted model: a rule in place of a judge. A copy of this file for a real model does without it.

CANDIDATE = re.compile(r"\[candidate ([A-Z]+) (\w+)\]\n(.*?)\n\[/candidate \1 \2\]", re.DOTALL)


def judge(call: Call) -> str:
    """Score a candidate by how many of the input's longer words it takes up: a repeatable rule."""
    assert call.schema is not None
    shown = call.messages[-1]["content"]
    wanted = words(shown.partition("# Candidates")[0])
    one = next(iter(call.schema["properties"]["candidates"]["properties"].values()))
    components = one["properties"]["scores"]["properties"]
    candidates: dict[str, Any] = {}
    for label, _, text in CANDIDATE.findall(shown):
        share = len(wanted & words(text)) / max(1, len(wanted))
        comment = f"It takes up {share:.0%} of the input's words."
        candidates[label] = {"comment": comment, "scores": dict.fromkeys(components, round(10 * share, 1))}
    return json.dumps({"overall": "Scored by shared words.", "candidates": candidates})


def words(text: str) -> set[str]:
    """The words of at least four letters."""
    return set(re.findall(r"[^\W\d_]{4,}", text.lower()))


if __name__ == "__main__":
    sys.exit(main())
