"""The file of a report: the head as plain HTML, then the debates in compressed blocks, then the page's own script.

It loads nothing: a content security policy names the script and the styles by their hashes and forbids all else. The
blocks are written as they are read, so that memory does not grow with the run.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TextIO, TypeVar
from urllib.parse import urlencode

import numpy as np
from jinja2 import DictLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from debate.errors import ConfigError, InputError
from debate.evaluation import plain
from debate.evaluators.debate.settings import CELL_SCALE
from debate.files import atomic_write, json_text, valid_unicode
from debate.jobs.sent import Prompts
from debate.meta_evaluation.judged import JudgedRun
from debate.meta_evaluation.people import right_verdicts
from debate.report import charts
from debate.report.packing import inert_json, inert_script
from debate.report.rows import FILTERS, Indexed, columns, counts, indexed, scores_of
from debate.report.trees import level_of
from debate.statistics.calibration import expected_calibration_error
from debate.store import StoredRun
from debate.store.queries import Totals
from debate.types import FloatArray

BLOCK = 100
"""Evaluations per compressed block; one is unpacked when one of its evaluations is opened."""
_EXCERPT = 160
_LARGE = 100 * 2**20
_DETAILS = "DEBATES_STAND_HERE"
Searches = dict[str, list[dict[str, Any]]]
"""The levels of each search, by its group."""


@dataclass(frozen=True, slots=True)
class Link:
    """A text that leads to a place of the page.

    Attributes:
        text: what is read.
        target: as it stands in an address, from `#` on; see `address`.
    """

    text: str
    target: str


Cell = str | Link


def address(**shown: str | int) -> str:
    """The address of what the page shows.

    >>> address(t="my task")
    '#t=my+task'

    Args:
        shown: `t` is a task, `f` names of filters with commas between, `g` a group, `e` why a debate ended, `r` how
            many rounds it took, `s` the order, `q` what is searched for.
    """
    return f"#{urlencode(shown)}"


@dataclass(frozen=True, slots=True)
class Tabular:
    """A table of texts and links.

    Attributes:
        headers: of the columns.
        rows: the cells.
        right: the columns that are aligned right.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or several, or a link."""

    text: Cell


Part = Tabular | Paragraph


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Attributes:
        evaluations: how many the file holds.
        size: of the file, in bytes.
    """

    evaluations: int
    size: int

    @property
    def is_large(self) -> bool:
        """Whether a browser takes long to open it: above 100 MiB."""
        return self.size > _LARGE


def write_report(
    run: JudgedRun,
    file: Path,
    sections: Sequence[Section] = (),
    *,
    only: Sequence[str] = (),
    other: JudgedRun | None = None,
    cost: str = "",
    prompts: bool = False,
) -> Written:
    """Write a run as one HTML file. The same run gives the same bytes.

    Args:
        run: from `debate.meta_evaluation.judged.read_run`.
        file: is replaced when all is written.
        sections: what else stands in its head, as the page of `debate agree`.
        only: names of `FILTERS`; the file then holds the tasks alone that one of them shows. Figures are of all tasks.
        other: a second run, whose evaluations stand beside those of the first; tasks that both were asked are shown.
        cost: what the run cost, in words; empty where that is not known.
        prompts: put what was sent to the models into the file, too.

    Raises:
        ConfigError: for a filter that is not known, or where prompts cannot be made again; see `debate.jobs.sent`.
        InputError: when no task is in both runs.
        StoreError: as `RunDirectory.open_store`.
    """
    known = {each.name: each for each in FILTERS}
    if unknown := [name for name in only if name not in known]:
        raise ConfigError(f"there is no filter {unknown[0]!r}", field="--only", hint=f"known: {', '.join(known)}")
    rows, runs = indexed(run, other), [each for each in (run, other) if each is not None]
    if not rows:
        raise InputError("has no task in common with the other run", file=run.directory.path)
    kept = [row for row in rows if not only or any(known[name].holds(row) for name in only)]
    with ExitStack() as opened:
        out = opened.enter_context(opened.enter_context(atomic_write(file)).open("w", encoding="utf-8"))
        records = [opened.enter_context(each.directory.open_store()).read(each.directory.name) for each in runs]
        sent = (
            [Prompts(record, each.directory.identity) for record, each in zip(records, runs, strict=True)]
            if prompts
            else []
        )
        totals = replace(records[0].totals(), accuracy=right_verdicts(run.tasks))
        facts = facts_of(run.identity, totals, records[0], cost)
        before, _, after = _page(runs, rows, sections, facts).rpartition(_DETAILS)  # a name above may hold it, too
        out.write(before)
        ids = [row.task.task_id for row in kept]
        texts, searches = _write_blocks(out, records, ids)
        if sent:
            _write_prompts(out, sent, ids)
        index = {"columns": columns(kept, texts), "block": BLOCK, "filters": _filters(rows), "prompts": prompts}
        out.write(inert_script("searches", searches))
        out.write(inert_script("index", index | {"runs": list(map(_title, runs))}))
        out.write(after)
    return Written(len(kept), file.stat().st_size)


def _title(run: JudgedRun) -> str:
    return run.directory.path.resolve().name


def _filters(rows: Sequence[Indexed]) -> list[dict[str, Any]]:
    counted = counts(rows)
    return [{"name": each.name, "label": each.label, "count": counted[each.name]} for each in FILTERS]


def _write_blocks(out: TextIO, records: Sequence[StoredRun], ids: Sequence[str]) -> tuple[list[str], Searches]:
    """Write the evaluations of these tasks, in blocks; returns the beginning of each task's input, and the searches.

    ids: in the order in which the first run has them.
    """
    texts, block, n_blocks = list[str](), list[str](), 0
    searches: Searches = {}
    first, *others = [_of_ids(record.result_data(), ids) for record in records]
    for task_id, task, data in first:
        if (level := level_of(task_id, task, data)) is not None:
            searches.setdefault(str(task["metadata"].get("group")), []).append(level)
        texts.append(excerpt(task["x"]))
        other = "".join(f',"other":{next(each)[2]}' for each in others)
        block.append(f'{{"task":{json_text(task)},"evaluation":{data}{other}}}')
        if len(block) == BLOCK:
            out.write(inert_json(f"b{n_blocks}", f"[{','.join(block)}]"))
            n_blocks, block = n_blocks + 1, []
    if block:
        out.write(inert_json(f"b{n_blocks}", f"[{','.join(block)}]"))
    return texts, searches


def _write_prompts(out: TextIO, sent: Sequence[Prompts], ids: Sequence[str]) -> None:
    """Write what was sent about these tasks, in blocks of as many: for each task a list for each run."""
    of_runs = zip(*(_of_ids(each.of_all(), ids) for each in sent), strict=True)
    for n in range(-(-len(ids) // BLOCK)):
        block = [[[each.to_dict() for each in found] for _, found in task] for task in islice(of_runs, BLOCK)]
        out.write(inert_script(f"p{n}", block))


_Of = TypeVar("_Of", bound=tuple[Any, ...])


def _of_ids(found: Iterator[_Of], ids: Sequence[str]) -> Iterator[_Of]:
    """What was found of these tasks, in this order; what comes earlier than it is asked for is kept meanwhile.

    found: begins with the id of a task each.
    """
    early, wanted = dict[str, _Of](), set(ids)
    for task_id in ids:
        while task_id not in early:
            following = next(found)
            if following[0] in wanted:
                early[following[0]] = following
        yield early.pop(task_id)


def excerpt(text: str) -> str:
    """The beginning of a text, in one line."""
    return valid_unicode(" ".join(text[: 4 * _EXCERPT].split()))[:_EXCERPT]


def _page(
    runs: Sequence[JudgedRun],
    rows: Sequence[Indexed],
    sections: Sequence[Section],
    facts: Sequence[tuple[str, str]],
) -> str:
    script, style = script_of("page.js", "report.js"), static("page.css")
    return template("page").render(
        title=" and ".join(map(_title, runs)),
        policy=policy(script, style),
        style=Markup(style),
        script=Markup(script),
        details=_DETAILS,
        is_served=False,
        facts=facts,
        filters=[each | {"link": address(f=each["name"])} for each in _filters(rows) if each["count"]],
        tasks=len(rows),
        **_figures(rows, sections),
    )


def figures_of(run: JudgedRun, sections: Sequence[Section]) -> str:
    """The part of a report's head that is worked out of all evaluations, as HTML: sections, then distributions."""
    return template("figures").render(_figures(indexed(run), sections))


def _figures(rows: Sequence[Indexed], sections: Sequence[Section]) -> dict[str, Any]:
    return {
        "pictures": list(_pictures(rows)),
        "sections": [(each.title, [(isinstance(part, Tabular), part) for part in each.parts]) for each in sections],
    }


def template(name: str) -> Template:
    """A page of this package, or a part of one; whatever it is given stands in it as text."""
    files = {each: static(f"{each}.html.j2") for each in ("page", "view", "list", "figures")}
    made = Environment(loader=DictLoader(files), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return made.get_template(name)


def policy(script: str, style: str) -> str:
    """The content security policy of a page with one script and one style sheet."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def script_of(*names: str) -> str:
    """The page's own script, made of these files."""
    scale = f"  const CELL_SCALE = {json_text(plain(CELL_SCALE))};\n"
    return '"use strict";\n(() => {\n' + scale + "\n".join(map(static, names)) + "})();\n"


def static(name: str) -> str:
    """The text of a file of this package."""
    return files("debate.report").joinpath(name).read_text(encoding="utf-8")


def facts_of(identity: Mapping[str, Any], totals: Totals, record: StoredRun, cost: str = "") -> list[tuple[str, str]]:
    """What ran, how much of it, and what it cost; a text that is `Markup` has links."""
    evaluator, used = identity.get("evaluator", {}), totals.usage
    who = [str(each["name"]) for each in evaluator.get("personas", ())]
    stops = sorted(((name, count) for name, count in totals.stops.items() if name), key=lambda each: -each[1])
    tokens = f"{used.prompt_tokens:,} prompt ({used.cached_tokens:,} cached), {used.completion_tokens:,} completion"
    facts = [
        ("evaluator", " ".join(str(evaluator[key]) for key in ("evaluator", "profile") if evaluator.get(key))),
        ("agents", ", ".join(who)),
        ("models", ", ".join(_short(name) for name in identity.get("models", {}))),
        ("tasks", f"{totals.n_evaluated:,} of {totals.tasks:,} evaluated: " + _statuses(totals)),
        ("accuracy", _accuracy(totals)),
        ("stopped", Markup(", ").join(_link(f"{count:,} {name}", address(e=name)) for name, count in stops)),
        ("tokens", tokens),
        ("calls", f"{used.calls:,}"),
        ("cost", cost),
        ("seed, date", f"{record.context.seed}, {record.context.today}"),
        ("versions", _versions(record.about)),
    ]
    return [(name, text) for name, text in facts if text]


def _link(text: str, target: str) -> Markup:
    return Markup('<a href="{target}">{text}</a>').format(target=target, text=text)


def _statuses(totals: Totals) -> Markup:
    """How many evaluations came out how; those that failed, whole or in part, lead to their tasks."""
    counted = sorted(totals.statuses.items())
    known = {each.name for each in FILTERS}
    return Markup(", ").join(
        _link(f"{count:,} {name}", address(f=name)) if name in known else f"{count:,} {name}" for name, count in counted
    )


def _accuracy(totals: Totals) -> str:
    found = totals.accuracy
    if not found.labeled:
        return ""
    low, high = found.share.interval
    share, interval, chance = 100 * found.share.estimate, f"{100 * low:.1f} to {100 * high:.1f}", 100 * found.chance
    return f"{share:.1f} % [{interval}], {found.right:,} of {found.labeled:,} right; chance {chance:.0f} %"


def _short(model: str) -> str:
    """A model's name; of a folder its last parts, because a report is sent to others."""
    path = Path(model)
    return "/".join(path.parts[-2:]) if path.is_absolute() else model


def _versions(about: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in dict(about.get("versions") or {}).items())


def _pictures(rows: Sequence[Indexed]) -> Iterator[Markup]:
    """How scores, disagreement and rounds are distributed, and whether probabilities mean what they say."""
    shares = list(scores_of(rows))
    edges = np.linspace(0, 1, 21)
    if shares:
        found, _ = np.histogram(np.concatenate(shares), edges)
        yield charts.bars(
            "Scores of all candidates, from the lowest to the best of the scale",
            found.tolist(),
            [f"{low:.0%} to {high:.0%}" for low, high in pairwise(edges)],
        )
    debated = [row.task for row in rows if row.task.rounds_run]
    if means := _mean_cv([task.cv for task in debated]):
        labels, to_spread = [f"round {rounds}" for rounds in means], [address(s="cv")] * len(means)
        yield charts.bars("Mean coefficient of variation in each round", list(means.values()), labels, links=to_spread)
    if debated:
        counted = np.bincount([task.rounds_run for task in debated])[1:].tolist()
        taken = range(1, len(counted) + 1)
        links = [address(r=rounds) for rounds in taken]
        yield charts.bars("Debates by rounds taken", counted, [f"round {rounds}" for rounds in taken], links=links)
        if len(stops := Counter(task.stop_reason for task in debated if task.stop_reason).most_common()) > 1:
            names, links = [name for name, _ in stops], [address(e=name) for name, _ in stops]
            yield charts.bars("Debates by why they ended", [n for _, n in stops], names, links=links)
    table = _calibration(rows)
    if len(table) > 1:
        yield charts.reliability("Winner's probability against how often it was right", table)


def _mean_cv(series: Sequence[FloatArray]) -> dict[int, float]:
    """The mean CV by round, counted from 1; a round in which no debate has one is left out.

    series: of each debate one value per round, NaN where it is not defined, as with a single agent.
    """
    longest = max((len(cv) for cv in series), default=0)
    known = {r + 1: [cv[r] for cv in series if len(cv) > r and not np.isnan(cv[r])] for r in range(longest)}
    return {rounds: float(np.mean(found)) for rounds, found in known.items() if found}


def _calibration(rows: Sequence[Indexed]) -> list[tuple[float, float, int]]:
    chosen = [(row.task.probabilities[row.task.choice[0]], row.task.verdict == "right") for row in rows
              if row.task.verdict and len(row.task.choice) == 1]  # fmt: skip
    if not chosen:
        return []
    said, right = (np.array(each, dtype=np.float64) for each in zip(*chosen, strict=True))
    found = expected_calibration_error(said, right, draws=0)
    return [(each.promised, each.observed, each.n) for each in found.bins]
