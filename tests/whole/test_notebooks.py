"""Cells of a notebook in a real kernel: interrupted, run again, and with their progress shown."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import debate
from tests.required import required_module

nbclient = required_module("nbclient")
nbformat = required_module("nbformat")
required_module("ipykernel")

SETUP = """
import asyncio, os, threading, time
from debate import Engine
from debate.testing import reply_for
from tests.small_flows import Loadable, debates, tasks

calls, loads = [], []

class Slow(Loadable):
    async def start(self):
        if not self.is_loaded:
            loads.append(self)
            await asyncio.sleep(0.8)
        await super().start()

async def answer(call):
    calls.append(call)
    await asyncio.sleep(0.05)
    return reply_for(call)

def threads():
    return [each.name for each in threading.enumerate()].count("debate-engine")

print(os.getpid())
"""
ENGINE = "engine = Engine(Slow(answer, model='judge'), max_concurrency=2)"
BATCH = "print('begun', flush=True); found = await engine.aevaluate_batch(tasks(500), debates())"


@dataclass
class Ran:
    """What a cell wrote, displayed and raised, and the seconds that it took."""

    text: str
    shown: list[dict[str, Any]]
    error: str | None
    seconds: float


class Notebook:
    """Cells that are run one after the other, and again."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.pid = int(self.run(SETUP).text)

    def run(self, source: str, *, interrupt_after: float | None = None) -> Ran:
        """Run a cell; interrupted, the kernel gets what a notebook's stop button sends."""
        cell = nbformat.v4.new_code_cell(source)
        self._client.nb.cells.append(cell)
        stop = None if interrupt_after is None else threading.Timer(interrupt_after, self._interrupt)
        if stop is not None:
            stop.start()
        began = time.monotonic()
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        outputs: list[Any] = cell.outputs
        return Ran(
            text="".join(each.text for each in outputs if each.output_type == "stream" and each.name == "stdout"),
            shown=[dict(each.data) for each in outputs if each.output_type in ("display_data", "execute_result")],
            error=next((each.ename for each in outputs if each.output_type == "error"), None),
            seconds=time.monotonic() - began,
        )

    def _interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)


@pytest.fixture(scope="module")
def notebook() -> Iterator[Notebook]:
    client: Any = nbclient.NotebookClient(
        nbformat.v4.new_notebook(),
        timeout=120,
        allow_errors=True,
        resources={"metadata": {"path": str(Path(debate.__file__).parents[1])}},
    )
    with client.setup_kernel():
        yield Notebook(client)


@pytest.mark.parametrize("how", ["await engine.aevaluate_batch", "engine.evaluate_batch"])
def test_a_batch_that_is_interrupted_stops_at_once_and_asks_no_more(notebook: Notebook, how: str) -> None:
    notebook.run(ENGINE)
    ran = notebook.run(BATCH.replace("await engine.aevaluate_batch", how), interrupt_after=2.0)
    assert ran.error in ("CancelledError", "KeyboardInterrupt")
    assert ran.seconds < 10  # all of it would take 50
    after = notebook.run("n = len(calls); await asyncio.sleep(0.5); print(n > 0, len(calls) - n)")
    assert after.text.split() == ["True", "0"]
    again = notebook.run("print([each.status for each in await engine.aevaluate_batch(tasks(2), debates())])")
    assert again.text.strip() == "['ok', 'ok']"


def test_a_stream_that_is_awaited_can_be_interrupted(notebook: Notebook) -> None:
    notebook.run(ENGINE)
    ran = notebook.run("async for each in engine.astream(tasks(500), debates()): pass", interrupt_after=2.0)
    assert ran.error in ("CancelledError", "KeyboardInterrupt")
    assert ran.seconds < 10
    assert notebook.run("n = len(calls); await asyncio.sleep(0.5); print(len(calls) - n)").text.strip() == "0"


def test_the_cell_of_the_engine_can_be_run_again_and_the_model_stays_loaded_once(notebook: Notebook) -> None:
    notebook.run("loads.clear()\nengine = None")
    made = ENGINE.replace("judge", "again")
    once = f"{made}\nprint((await engine.aevaluate_batch(tasks(1), debates()))[0].status, len(loads))"
    assert [notebook.run(once).text.strip() for _ in range(3)] == ["ok 1"] * 3
    assert notebook.run(f"{made}\nengine").error is None  # the notebook now keeps it among its outputs
    assert notebook.run(once).text.strip() == "ok 1"
    notebook.run(BATCH, interrupt_after=1.0)  # and a traceback keeps this one
    assert notebook.run(once).text.strip() == "ok 1"


def test_an_engine_that_is_deleted_is_gone(notebook: Notebook) -> None:
    notebook.run("engine = Engine(Slow(answer, model='another'))\nengine.evaluate_batch(tasks(1), debates());")
    gone = "before = threads()\nengine = None\ntime.sleep(1)\nprint(before - threads())"
    assert notebook.run(gone).text.strip() == "1"


def test_progress_is_one_output_of_the_cell_that_tells_of_loading_too(notebook: Notebook) -> None:
    notebook.run("engine = Engine(Slow(answer, model='judge-7b'), max_concurrency=2)")
    loading = notebook.run("await engine.aevaluate_batch(tasks(9), debates(), progress=True)", interrupt_after=0.6)
    assert [each["text/plain"].partition(",")[0] for each in loading.shown] == ["loading judge-7b"]
    for call in ("await engine.aevaluate_batch", "engine.evaluate_batch"):
        done = notebook.run(f"found = {call}(tasks(9), debates(), progress=True)")
        [shown] = done.shown
        assert shown["text/plain"].startswith("9 of 9 tasks, 36 calls, ")
        assert shown["text/html"].startswith('<progress value="9" max="9"></progress> 9 of 9 tasks')
        assert (done.error, done.text) == (None, "")


FOUND = """
from pathlib import Path
import debate
from debate import DebateEvaluator
from tests.report.pages import debated
debated(Path({folder!r}))
run = debate.load({folder!r})
found = Engine(Scripted(reply_for)).evaluate_batch(tasks(3), DebateEvaluator("general", rounds=2))
"""


def test_values_are_shown_as_html_and_plots_as_pictures(notebook: Notebook, tmp_path: Path) -> None:
    for library in ("matplotlib", "pandas", "polars"):
        required_module(library)
    made = notebook.run("from debate.backends import Scripted" + FOUND.format(folder=str(tmp_path / "run")))
    assert made.error is None
    html = ("found", "found[0]", "tasks(1)[0]", "found[0].transcript", "run", "run.agreement()", "run.compare(run)")
    for cell in (*html, "run.to_dataframe('cells')", "found.to_dataframe(library='polars')"):
        [shown] = notebook.run(cell).shown
        assert "<table" in shown["text/html"], cell
        assert "<script" not in shown["text/html"]
        assert len(shown["text/plain"]) < 5_000, cell
    for cell in ("found[0].plot()", "run.plot()"):
        [shown] = notebook.run(cell).shown
        assert shown["image/png"].startswith("iVBOR"), cell
