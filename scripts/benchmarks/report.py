"""Measure `debate report` on large runs: seconds and memory to make the file, and how quick it is in a browser.

    scripts/bench report [--sizes 1000 10000]

Two hundred labeled debates (3 agents, 1 to 3 rounds, 4 candidates, 5 components, comments of about 120 characters) over
a scripted backend are copied in their store until there are as many as asked for. Each line is one size:

    made s, peak MiB   of the command in a process of its own; the goal is 60 s and 500 MB for 10,000 tasks
    file MiB           of the file
    usable s           from asking a new Chromium page for the file until its table can be used; the goal is 2 s
    filter ms          from ticking a filter, and from the last letter of a search, until the rows are drawn; the slower
    open ms            from opening a debate in the middle of the run until it is drawn
    heap MiB           JavaScript's heap after ten debates were opened, after a collection; the goal is 100 MiB

The browser is the one on the search path, driven by Playwright (`pip install playwright`; `scripts/chromium`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.meta_evaluation import RUN, enlarge
from benchmarks.overhead import text
from debate import DebateEvaluator
from debate.backends import Call, Scripted
from debate.dataset.evalset import EvalSet
from debate.jobs.run import Run
from debate.testing import SilentListener, reply_for

CANDIDATES = 4
_ROUNDS, _CONVERGENCE = 3, 0.44
_DRAWN = "() => new Promise(done => { %s; requestAnimationFrame(() => done(performance.now() - began)); })"
_FILTER = _DRAWN % "const began = performance.now(); document.querySelector('#filters input').click()"
_SEARCH = _DRAWN % (
    "const began = performance.now(), box = document.querySelector('#search'); box.value = 'question 17'; "
    "box.dispatchEvent(new Event('input'))"
)
_OPEN = """(task) => new Promise(done => {
  const began = performance.now(), found = () => document.querySelector("#detail h2")?.textContent === task;
  const look = () => (found() ? done(performance.now() - began) : requestAnimationFrame(look));
  location.hash = "#t=" + task; look();
})"""


def debated_tasks(n: int) -> list[dict[str, Any]]:
    """Labeled tasks of three groups, with some hundred characters of input and of each candidate."""
    draw = random.Random(0)

    def task(i: int) -> dict[str, Any]:
        candidates = [text(CANDIDATES * i + j, 160) for j in range(CANDIDATES)]
        metadata = {"best": draw.randrange(CANDIDATES), "group": ("plain", "hidden", "stale")[i % 3]}
        return {"id": f"task-{i}", "x": f"question {i}: {text(i, 200)}", "candidates": candidates, "metadata": metadata}

    return [task(i) for i in range(n)]


def talkative_reply(call: Call) -> str:
    """A reply whose scores are drawn, with comments as long as a model's."""
    said = json.loads(reply_for(call))
    draw = random.Random(call.seed)
    said["overall"] = text(draw.randrange(10**6), 150)
    for candidate in said["candidates"].values():
        candidate["comment"] = text(draw.randrange(10**6), 120)
    return json.dumps(said)


def make_run(folder: Path, size: int) -> None:
    """A finished run of so many debates."""
    folder.mkdir()
    evalset = folder / "tasks.jsonl"
    evalset.write_text("".join(json.dumps(task) + "\n" for task in debated_tasks(RUN)), encoding="utf-8")
    evaluator = DebateEvaluator("general", rounds=_ROUNDS, convergence=_CONVERGENCE)
    Run(evalset=EvalSet(evalset), folder=folder, evaluator=evaluator).execute(
        {"scripted": Scripted(talkative_reply)}, SilentListener()
    )
    enlarge(folder, size)


def made(run: Path, file: Path) -> dict[str, float]:
    """Seconds and peak memory of the command."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "debate", "report", str(run), "--out", str(file)]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"`{' '.join(command)}` ended with {started.returncode}")
    return {"made": time.perf_counter() - began, "peak": used.ru_maxrss / 1024, "file": file.stat().st_size / 2**20}


def browsed(file: Path, size: int) -> dict[str, float]:
    """How quick the file is in a browser; memory is that of the page's JavaScript."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page: Any = browser.new_context(offline=True).new_page()
        page.goto("about:blank")
        began = time.perf_counter()
        page.goto(file.as_uri(), wait_until="commit")
        page.wait_for_selector("html[data-ready]")
        found = {"usable": time.perf_counter() - began, "filter": page.evaluate(_FILTER)}
        page.evaluate(_FILTER)  # it is shown no more
        found["filter"] = max(found["filter"], page.evaluate(_SEARCH))
        ids = [n * size // 10 + n for n in range(10)]
        opened = [page.evaluate(_OPEN, _task_id(n)) for n in ids]
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        heap = session.send("Runtime.getHeapUsage")["usedSize"] / 2**20
        browser.close()
    return found | {"open": sorted(opened)[len(opened) // 2], "heap": heap}


def _task_id(n: int) -> str:
    return f"task-{n % RUN}" if n < RUN else f"task-{n % RUN}-{n // RUN}"


def main() -> int:
    """Parse the command line, measure, and print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000], help=f"tasks, multiples of {RUN}")
    options = parser.parse_args()
    names = {"made": "made s", "peak": "peak MiB", "file": "file MiB", "usable": "usable s", "filter": "filter ms",
             "open": "open ms", "heap": "heap MiB"}  # fmt: skip
    print(f"{'tasks':>8}" + "".join(f"{name:>11}" for name in names.values()))
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            run, file = Path(folder) / "run", Path(folder) / "report.html"
            make_run(run, size)
            found = made(run, file) | browsed(file, size)
        print(f"{size:>8,}" + "".join(f"{found[name]:>11.1f}" for name in names), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
