"""What the page of a served store asks for: runs, pages of evaluations, one evaluation, and how a run goes on.

Two read-only connections: what takes long on a large run, as counting its calls, keeps no reader waiting.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, overload

from markupsafe import Markup, escape

from debate.errors import ConfigError, InputError
from debate.files import json_text
from debate.jobs.run_directory import RunDirectory
from debate.jobs.sent import Prompts
from debate.meta_evaluation.judged import JudgedRun, as_judged, judged_run
from debate.report.html import Section, excerpt, facts_of, figures_of, policy, script_of, static, template
from debate.report.rows import FILTERS, Indexed, columns
from debate.report.trees import level_of
from debate.store import Store, StoredRun
from debate.store.pages import Asked, Recorded, Searches
from debate.store.workers import WorkerState

_LABELS = {each.name: each.label for each in FILTERS} | {"unchosen": "nothing chosen"}
_MOST_ROWS = 1000
_LARGEST = 2**31 - 1
_MOST_RUNS = 200
MOST_JUDGED = 10_000
"""Evaluations of a run up to which `worth` is worked out: these take some ten seconds."""
_TOO_MANY = (
    "{:,} tasks are evaluated; here these figures are worked out of up to {:,}. Of any number, `debate agree {}` "
    "prints them, and `debate report {} --only wrong` writes them into a file{}."
)
_EXACT = {"yes": True, "no": False}
_LEAST_SECONDS, _TIMES_ITS_COST = 1.0, 20
"""How long a figure stands: it is counted anew for a twentieth of the time at most."""
Query = Mapping[str, str]


class Viewer:
    """Answers what the page asks. Thread-safe; close it when done.

    Args:
        open_store: opens the store to look at, read-only; it is called twice.
        first: the run that is shown first, by its folder, which knows more of it than the store; None is the newest.
        worth: what `debate agree` says of a run, as sections of a report.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        first: RunDirectory | None = None,
        worth: Callable[[JudgedRun], Sequence[Section]] = lambda run: (),
    ) -> None:
        self._opened = ExitStack()
        with ExitStack() as opened:
            self._pages, self._figures = (opened.enter_context(open_store()) for _ in range(2))
            self._opened = opened.pop_all()
        self._first, self._worth = first, worth
        self._searches = Searches()
        self._questions = self._pages.questions()
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._lock = threading.Lock()
        self.answers: Mapping[str, Callable[[Query], str]] = {
            "runs": self.runs,
            "sizes": self.sizes,
            "rows": self.rows,
            "one": self.one,
            "search": self.search,
            "prompts": self.prompts,
            "progress": self.progress,
            "counts": self.counts,
            "figures": self.figures,
            "worth": self.worth,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def runs(self, query: Query) -> str:
        """All runs of the store, the newest first; the 200 newest of more. What they hold is counted by `sizes`."""
        runs = self._pages.begun()
        found = [
            {
                "name": name,
                "title": _title(name),
                "began": f"{datetime.fromtimestamp(created_at, UTC):%Y-%m-%d %H:%M} UTC",
            }
            for name, created_at in runs[:_MOST_RUNS]
        ]
        filters = [{"name": name, "label": _LABELS[name]} for name in self._questions]
        first = self._first.name if self._first else (runs[0][0] if runs else "")
        return json_text({"runs": found, "filters": filters, "first": first})

    def sizes(self, query: Query) -> str:
        """How many tasks and evaluations each run has, by its name."""
        with self._lock:
            kept = self._kept.setdefault(("sizes", ""), _Kept())
        return kept.get(
            lambda: json_text({each.name: [each.evaluated, each.tasks] for each in self._figures.listed()[:_MOST_RUNS]})
        )

    def rows(self, query: Query) -> str:
        """A page of the list, as columns.

        Raises:
            InputError: for a filter that is not known, or a number that is none.
        """
        asked = self._asked(query)
        found = self._pages.read(query.get("run")).page(asked, self._searches)
        shown = _columns(found) | {"position": [each.position for each in found]}
        return json_text({"columns": shown, "is_end": len(found) < asked.limit})

    def one(self, query: Query) -> str:
        """One evaluation with its task.

        Raises:
            InputError: when there is none.
        """
        name = query.get("task", "")
        found = self._pages.read(query.get("run")).one(name)
        if found is None:
            raise InputError(f"there is no evaluation of the task {name!r}")
        row = {key: values[0] for key, values in _columns([found]).items()}
        return f'{{"task": {json_text(found.task)}, "row": {json_text(row)}, "evaluation": {found.evaluation}}}'

    def search(self, query: Query) -> str:
        """The levels of one search over thoughts, by its group, in their order: the first 1,000."""
        asked = Asked(group=query.get("g", ""), limit=_MOST_ROWS)
        found = self._pages.read(query.get("run")).page(asked)
        levels = [level_of(each.task_id, each.task, each.evaluation) for each in found]
        return json_text([each for each in levels if each is not None])

    def prompts(self, query: Query) -> str:
        """What was sent to the models about one task, or why that cannot be shown.

        Raises:
            InputError: when the run is not there.
        """
        record = self._figures.read(query.get("run"))
        try:
            sent = Prompts(record, self._directory(record).identity).of_task(query.get("task", ""))
        except ConfigError as error:
            return json_text({"calls": [], "problem": error.message})
        return json_text({"calls": [each.to_dict() for each in sent], "problem": ""})

    def progress(self, query: Query) -> str:
        """How far a run is, who works on it, and how quickly."""
        return self._keep("progress", query, _progress)

    def counts(self, query: Query) -> str:
        """How many evaluations there are, and how many each filter shows."""
        return self._keep("counts", query, _counts)

    def figures(self, query: Query) -> str:
        """What the run came to so far; of a large run this takes longer than the counts."""
        return self._keep("figures", query, _figures)

    def worth(self, query: Query) -> str:
        """What the judge is worth and how its scores are distributed, as HTML; or why that is not worked out."""
        return self._keep("worth", query, self._worked_out)

    def _worked_out(self, run: StoredRun) -> dict[str, str]:
        evaluated, directory = run.progress()[0], self._directory(run)
        if evaluated > MOST_JUDGED:
            is_known = directory is self._first
            place, hint = (directory.path, "") if is_known else ("RUN", ", where RUN is the run's folder")
            return {"html": "", "problem": _TOO_MANY.format(evaluated, MOST_JUDGED, place, place, hint)}
        judged = judged_run(run, directory)
        return {"html": figures_of(judged, self._worth(judged)), "problem": ""}

    def _directory(self, run: StoredRun) -> RunDirectory:
        """The run's folder; of a run that is not shown by its folder one that is not looked into."""
        if self._first is not None and run.name == self._first.name:
            return self._first
        return RunDirectory(Path(_title(run.name)), run.name)

    def _asked(self, query: Query) -> Asked:
        questions = frozenset(name for name in query.get("f", "").split(",") if name)
        if unknown := sorted(questions.difference(self._questions)):
            raise InputError(f"there is no filter {unknown[0]!r}", hint=f"known: {', '.join(self._questions)}")
        after, limit, rounds = _number(query, "after", -1), _number(query, "limit", 100), _number(query, "r")
        return Asked(
            questions,
            query.get("g"),
            query.get("x"),
            rounds,
            query.get("q", ""),
            _EXACT.get(query.get("exact", "")),
            after=after,
            limit=max(1, min(limit, _MOST_ROWS)),
        )

    def _keep(self, what: str, query: Query, count: Callable[[StoredRun], dict[str, Any]]) -> str:
        name = query.get("run", "")
        store = self._pages if what == "progress" else self._figures
        run = store.read(name)  # of a run that is not there nothing is kept
        with self._lock:
            kept = self._kept.setdefault((what, name), _Kept())
        return kept.get(lambda: json_text(count(run)))


class _Kept:
    """An answer that is good for a while: the longer it takes to make, the longer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text, self._until = "", 0.0

    def get(self, make: Callable[[], str]) -> str:
        with self._lock:
            began = time.monotonic()
            if began >= self._until:
                self._text = make()
                ended = time.monotonic()
                self._until = ended + max(_LEAST_SECONDS, _TIMES_ITS_COST * (ended - began))
            return self._text


def view_page() -> tuple[str, str]:
    """The page, and its content security policy."""
    script, style = script_of("page.js", "view.js"), static("page.css")
    text = template("view").render(style=Markup(style), script=Markup(script), is_served=True)
    return text, policy(script, style) + "; connect-src 'self'; frame-ancestors 'none'"


def _title(name: str) -> str:
    """A run's name; of one that is named by its folder the last part."""
    return Path(name).name if Path(name).is_absolute() else name


@overload
def _number(query: Query, name: str, usual: int) -> int: ...
@overload
def _number(query: Query, name: str) -> int | None: ...
def _number(query: Query, name: str, usual: int | None = None) -> int | None:
    """A whole number that is asked for, which a database can hold."""
    given = query.get(name)
    try:
        return usual if given is None else max(-1, min(int(given), _LARGEST))
    except ValueError:
        raise InputError(f"`{name}` is a whole number, not {given!r}") from None


def _columns(found: list[Recorded]) -> dict[str, list[Any]]:
    rows = [Indexed(as_judged(each.task_id, each.task, json.loads(each.evaluation))) for each in found]
    return columns(rows, [excerpt(each.task["x"]) for each in found])


def _progress(run: StoredRun) -> dict[str, Any]:
    workers = run.workers()
    done, tasks = run.progress()
    living = [each for each in workers if each.state == "alive"]
    return {
        "done": done,
        "tasks": tasks,
        "workers": len(living),
        "rate": sum(map(_rate, living)),
        "processes": list(map(_process, workers)),
    }


def _process(worker: WorkerState) -> dict[str, Any]:
    named = {key: str(worker.about.get(key) or "-") for key in ("host", "process")}
    return {**named, "state": worker.state, "tasks": worker.tasks, "rate": _rate(worker)}


def _rate(worker: WorkerState) -> float:
    """Tasks per second."""
    seconds = worker.last_commit - worker.started_at
    return worker.tasks / seconds if seconds > 0 else 0.0


def _figures(run: StoredRun) -> dict[str, Any]:
    totals = run.totals()
    facts = facts_of(run.identity, totals, run)
    return {
        "facts": [(name, str(escape(text))) for name, text in facts],
        "failures": totals.failures,
        "answered": totals.answered,
        "cached": totals.cached,
    }


def _counts(run: StoredRun) -> dict[str, Any]:
    counts = run.counts()
    return {
        "evaluated": counts.evaluated,
        "questions": dict(counts.questions),
        "stops": dict(counts.stops),
        "rounds": {str(taken): count for taken, count in counts.rounds.items()},
        "groups": dict(counts.groups),
    }
