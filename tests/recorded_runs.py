"""Runs as an earlier version recorded them, and the server that answered: later versions must go on with them.

    python -m tests.recorded_runs --write tests/data/runs      records them anew

The runs in `tests/data/runs` were recorded by version 0.1.0 (before the layout changed), each by `debate run` from the
eval set `tasks.jsonl` beside them:

    interrupted/             killed halfway: some tasks done, some begun, some not
    debate/, vote/, step/    finished; the last two with other evaluators
    undisturbed.jsonl        what the interrupted run comes to when nothing disturbs it, by task id, without times
    answered.json            digests of the requests that were answered before the interruption, and of all there are
    NAME.preferences.jsonl   what `debate export --to preferences` writes of each
    NAME.other.jsonl         what a finished run comes to when its answers are put together in another way
    judge.yaml, judge.jsonl  the built-in profile and memories of these runs, which have changed since

The port of the server stands in `run.json`. Who goes on gives the one of now: by the same `debate run` with another
`--base-url`, which is no part of what a run is; or in `settings.base_url` of `run.json`, for `debate resume`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import debate
from debate.testing.fake_server import HANG, FakeServer, Reply, Request, completion, failing
from tests.golden_cases import with_new_keys

RUNS = Path(__file__).parent / "data" / "runs"
TASKS = "tasks.jsonl"
CHECKOUT = "checkout"
"""Folder of the package in the folder in which a command is called; else it is the one that is imported here."""
OF_THE_INTERRUPTED = (
    *("--profile", "judge", "--rounds", "2", "--convergence", "none", "--seed", "7"),
    *("--memory", "built-in", "--max-concurrency", "3"),
)
"""What was asked for, besides the eval set, the server and the folder."""
FINISHED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "debate": (
        ("--profile", "general", "--candidate-order", "balanced", "--rounds", "2", "--limit", "2"),
        ("--config", "other.yaml"),
    ),
    "vote": (
        ("--evaluator", "vote", "--option", "ballots=3", "--limit", "3"),
        ("--option", "count=borda_span", "--option", "ties=seeded"),
    ),
    "step": (
        ("--evaluator", "step", "--option", r'split="\\n"', "--limit", "3"),
        ("--option", "reduce=mean", "--option", "threshold=20"),
    ),
}
"""How each finished run was asked for, and what puts its answers together in another way."""
OTHER_SETTINGS = "weights: {accuracy: 0.2}\nmethod: weighted_mean\nties: seeded\n"
"""The content of `other.yaml`."""
_ANSWERED = 30
"""Requests that are answered before the interruption."""


# ---- The server


def digest(request: Request) -> str:
    """Of what a reply depends on: the model, the messages and the seed."""
    asked = [request.body[name] for name in ("model", "messages", "seed")]
    return hashlib.sha256(json.dumps(asked, ensure_ascii=True).encode()).hexdigest()[:32]


def answer(request: Request) -> Reply:
    """A reply that is a function of the request: some cannot be read, and some calls fail."""
    drawn = [int(digit, 16) for digit in digest(request)]
    if drawn[0] == 0 and drawn[1] < 8:
        return failing(400, "no such thing")
    assert request.schema is not None
    text = json.dumps(_value(request.schema, drawn[2:]), ensure_ascii=False)
    return Reply(body=completion(text if drawn[1] else text[: len(text) // 2]))


def _value(schema: dict[str, Any], drawn: list[int]) -> Any:
    drawn.append(drawn.pop(0))
    if "enum" in schema:
        return schema["enum"][drawn[0] % len(schema["enum"])]
    match schema["type"]:
        case "object":
            return {name: _value(each, drawn) for name, each in schema["properties"].items()}
        case "string":
            return ("Right.", 'Wrong: candidate A says "so".', "Ünïcödé 🙂\nand <|im_end|>", "[candidate B is best]")[
                drawn[0] % 4
            ]
        case _:
            low, high = schema["minimum"], schema["maximum"]
            return low + (high - low) * drawn[0] / 20


class Counted:
    """Answers so many requests, and then none; `answered` holds their digests."""

    def __init__(self, most: int | None = None) -> None:
        self.answered: list[str] = []
        self.waiting = 0
        self._most = most
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        with self._lock:
            if self._most is not None and len(self.answered) >= self._most:
                self.waiting += 1
                return HANG
            self.answered.append(digest(request))
        return answer(request)


# ---- The command line


def command(folder: str, url: str, *more: str) -> list[str]:
    """`debate run` of the eval set into a folder, both in the folder where it is called."""
    where = ("--backend", "openai", "--model", "judge", "--base-url", f"{url}/v1", "--engine-arg", "timeout=60")
    return ["run", TASKS, *where, "--out", folder, *more]


_AS_THEN = """
from debate.memory import store
from debate.memory.embedders import embedder_named

store.HashingEmbedder = lambda: embedder_named("hashing-1")  # what found the built-in memories
"""


def check_out(folder: Path) -> None:
    """Make a checkout of the package of now, with the built-in profile and memories of these runs."""
    now = Path(debate.__file__).parents[1]
    for name in ("personas", "memory"):
        shutil.copytree(now / name, folder / name)
    shutil.copy(RUNS / "judge.yaml", folder / "personas")
    shutil.copy(RUNS / "judge.jsonl", folder / "memory")
    for name in ("debate", "templates"):
        (folder / name).symlink_to(now / name)
    (folder / "sitecustomize.py").write_text(_AS_THEN, encoding="utf-8")


def started(arguments: Sequence[str], cwd: Path) -> subprocess.Popen[str]:
    """`debate` with some arguments, under way in a folder."""
    package = str(checkout if (checkout := cwd / CHECKOUT).exists() else Path(debate.__file__).parents[1])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DEBATE_", "OPENAI_"))}
    path = os.pathsep.join([package, *filter(None, [kept.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "debate", *arguments],
        cwd=cwd,
        env={**kept, "PYTHONPATH": path, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def called(arguments: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """`debate` with some arguments, at its end."""
    process = started(arguments, cwd)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def results(folder: Path) -> list[dict[str, Any]]:
    """The results of a run by task id, without what depends on the machine and the moment."""
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted((_timeless(with_new_keys(json.loads(line))) for line in lines), key=lambda each: each["task_id"])


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        kept = {name: _timeless(each) for name, each in items if name not in ("seconds", "cached_tokens")}
        if "probabilities" in kept:  # made by `exp`, whose last digit is the processor's
            kept["probabilities"] = [round(each, 12) for each in kept["probabilities"]]
        return kept
    return [_timeless(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def written(evaluations: Sequence[dict[str, Any]]) -> str:
    """Results as they are kept, one a line."""
    return "".join(json.dumps(each, ensure_ascii=False, separators=(",", ":")) + "\n" for each in evaluations)


# ---- How they were recorded


def _task(n: int) -> dict[str, Any]:
    x, a, b = f"What is {n} + {n * 7}?", f"It is {n * 8}.", f"{n} + {n * 7}\n= {n * 8 + n % 3}"
    more: dict[str, Any] = {"context": ["Sums are of whole numbers."]} if n == 2 else {}
    return {"id": f"sum-{n}", "x": x, "candidates": [a, b, "Ich weiß es nicht. 🙂 <|im_start|>"][: 2 + n % 2], **more}


def _record_interrupted(cwd: Path) -> list[str]:
    counted = Counted(_ANSWERED)
    with FakeServer(counted) as server:
        process = started(command("interrupted", server.url, *OF_THE_INTERRUPTED), cwd)
        _wait(lambda: counted.waiting >= 3 and _n_calls(cwd / "interrupted") == _ANSWERED)
        process.kill()
        process.communicate()
    return counted.answered


def _n_calls(folder: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{folder / 'run.sqlite'}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM calls WHERE kind = 'generate'").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def _wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _emptied(folder: Path) -> None:
    """A run as if nothing had been asked yet."""
    (folder / "results.jsonl").write_text("")
    with closing(sqlite3.connect(folder / "run.sqlite", isolation_level=None)) as connection:
        for table in ("calls", "evaluations", "turns"):
            connection.execute(f"DELETE FROM {table}")


def _tidied(folder: Path) -> None:
    """One file of a store, and nothing in the folder that names this machine."""
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    was, record["run"] = record["run"], f"runs/{folder.name}"
    record["versions"] = {"debate-eval": record["versions"]["debate-eval"]}
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    (folder / "run.json").write_text(text, encoding="utf-8")
    with closing(sqlite3.connect(folder / "run.sqlite", isolation_level=None)) as connection:
        somebody = json.dumps({"pid": 1, "host": "elsewhere", "since": "2026-01-31T12:00:00+00:00"})
        changed = connection.execute(
            "UPDATE runs SET name = ?, holder = ? WHERE name = ?", (record["run"], somebody, was)
        )
        assert changed.rowcount == 1
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    for file in folder.iterdir():
        if file.name not in ("run.json", "run.sqlite", "results.jsonl"):
            file.unlink()


def record(into: Path) -> None:
    """Record all runs anew."""
    with tempfile.TemporaryDirectory() as temporary:
        cwd = Path(temporary)
        (cwd / TASKS).write_text(written([_task(n) for n in range(1, 8)]), encoding="utf-8")
        (cwd / "other.yaml").write_text(OTHER_SETTINGS, encoding="utf-8")
        answered = _record_interrupted(cwd)
        every = Counted()
        shutil.copytree(cwd / "interrupted", cwd / "undisturbed")
        _emptied(cwd / "undisturbed")  # the same run at its beginning: memories are of the same age
        with FakeServer(every) as server:
            done = called(command("undisturbed", server.url, *OF_THE_INTERRUPTED), cwd)
            assert done.returncode in (0, 3), done.stderr
        kept = {"answered": sorted(answered), "all": sorted(every.answered)}
        assert len(answered) == len({*answered}) and {*answered} < {*every.answered}
        (cwd / "answered.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        (cwd / "undisturbed.jsonl").write_text(written(results(cwd / "undisturbed")), encoding="utf-8")
        with FakeServer(answer) as server:
            for name, (arguments, other) in FINISHED.items():
                done = called(command(name, server.url, *arguments), cwd)
                assert done.returncode in (0, 3), done.stderr
                shutil.copytree(cwd / name, cwd / "copy")
                done = called(command("copy", server.url, *arguments, *other), cwd)
                assert done.returncode in (0, 3), done.stderr
                (cwd / f"{name}.other.jsonl").write_text(written(results(cwd / "copy")), encoding="utf-8")
                shutil.rmtree(cwd / "copy")
        for name in ("interrupted", *FINISHED):
            done = called(["export", name, "--to", "preferences", "--out", f"{name}.preferences.jsonl"], cwd)
            assert done.returncode == 0, done.stderr
            _tidied(cwd / name)
            shutil.copytree(cwd / name, into / name, dirs_exist_ok=True)
        for file in cwd.iterdir():
            if file.is_file():
                shutil.copy(file, into / file.name)


def main() -> None:
    """Record the runs anew."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", type=Path, required=True, metavar="DIR")
    into: Path = parser.parse_args().write
    into.mkdir(parents=True, exist_ok=True)
    record(into)


if __name__ == "__main__":
    main()
