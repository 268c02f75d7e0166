"""The live line: one that stays whole on a small terminal, lines of plain text elsewhere, the other workers counted."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from debate.backends import Call, Scripted
from debate.cli import progress as module
from debate.cli.progress import Progress
from debate.engine import Engine
from debate.evaluation import failed
from debate.flow import Completion
from debate.store.workers import Others
from debate.testing import reply_for
from debate.types import Failure, Price, Status, Task, Usage
from tests.backends.asking import call_of
from tests.scripts_loader import REPOSITORY
from tests.small_flows import debates

N_TASKS = 3


@pytest.fixture(autouse=True)
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAIN_SECONDS", 0.0)


def told(*heard: Others | None, width: int = 0) -> list[str]:
    """The lines of a run of three debates here, 500 in all, in which this was heard: None is that one has to wait."""
    written = StringIO()
    console = Console(file=written, width=width or 200, force_terminal=bool(width), color_system=None)
    tasks = [Task("Q?", ["a", "b"], id=f"t{n}") for n in range(N_TASKS)]

    def reply(call: Call) -> str:
        return reply_for(call)

    with Progress(model="", console=console) as progress:
        progress.started(500, 100)
        progress.loading()
        with Engine(Scripted(reply), on_completion=progress.answered) as engine:
            progress.loaded()
            for evaluation in engine.iter_evaluate(tasks, debates(rounds=1)):
                progress.finished(evaluation)
        for each in heard:
            progress.waiting() if each is None else progress.shared(each)
    return [line for line in written.getvalue().replace("\r", "\n").splitlines() if line]


def test_a_run_of_one_process_counts_its_debates_and_no_workers() -> None:
    assert told(Others(0, 0, 0))[-1].startswith("103 of 500 tasks, ")


def test_debates_of_all_workers_are_counted_and_ones_own_apart() -> None:
    assert told(Others(2, 297, 0))[-1].startswith("400 of 500 tasks (3 workers, 3 here), ")


def test_others_that_have_ended_are_still_counted_by_what_they_did() -> None:
    assert told(Others(2, 290, 0), Others(0, 297, 0))[-1].startswith("400 of 500 tasks (1 worker, 3 here), ")


def test_who_waits_says_for_how_many_workers_and_tasks() -> None:
    assert "(2 workers, 3 here), waiting for 1 worker, 100 tasks left" in told(Others(1, 297, 0), None)[-1]


def test_nobody_waits_for_workers_that_are_not_there() -> None:
    assert "waiting" not in told(Others(0, 297, 0), None)[-1]


def test_the_line_of_a_small_terminal_keeps_the_counts() -> None:
    assert any("3 workers" in line and "400/500" in line for line in told(Others(2, 297, 0), width=80))


# ---- what it looks like

SCREENS = Path(__file__).parents[1] / "data" / "screens"
LOOKS = {"80": (80, "utf-8"), "120": (120, "utf-8"), "ascii": (80, "ascii")}
"""Columns and encoding of the terminal."""
ASKED = call_of("Which?")


class Scene:
    """A run that is told to a live line, on a clock of its own."""

    def __init__(self, look: str, **given: Any) -> None:
        self.width, encoding = LOOKS[look]
        self.now = 0.0
        self.sent = io.BytesIO()
        self.written = io.TextIOWrapper(self.sent, encoding=encoding, errors="backslashreplace")
        console = Console(file=self.written, width=self.width, force_terminal=True, color_system=None)
        self.progress = Progress(model="m", console=console, clock=lambda: self.now, **given)

    def begin(self, total: int = 500, before: int = 0) -> None:
        self.progress.started(total, before)
        self.progress.loading()
        self.now += 42
        self.progress.loaded()

    def replies(self, n: int, seconds: float, **more: Any) -> None:
        for _ in range(n):
            self.progress.answered(ASKED, Completion("", usage=Usage(1000, 450, 150, 1), **more))
        self.now += seconds

    def tasks(self, n: int, calls: int, *failures: Failure, status: Status = "ok") -> None:
        found = failed("t", "debate", 2, failures[0] if failures else Failure("r", "m"))
        for _ in range(n):
            self.progress.finished(replace(found, status=status, failures=failures, usage=Usage(calls=calls)))

    @property
    def line(self) -> str:
        """The line as it stands at the end, with a mark in place of the spinner."""
        self.written.flush()
        plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", self.sent.getvalue().decode()).replace("\r", "\n")
        lines = [line.rstrip() for line in plain.splitlines() if "/" in line]
        assert all(len(line) <= self.width for line in plain.splitlines())
        return re.sub(r"^\S+ ", "* ", lines[-1])


def loading(scene: Scene) -> None:
    scene.progress.started(500, 0)
    scene.progress.loading()
    scene.now += 42


def beginning(scene: Scene) -> None:
    scene.begin()
    scene.replies(31, 12)


def middle(scene: Scene) -> None:
    scene.begin()
    scene.replies(1200, 400)
    scene.tasks(120, 9)
    scene.tasks(2, 9, Failure("unreadable_reply", "m", round=0), status="failed")
    scene.progress.judged(74, 122)


def shared(scene: Scene) -> None:
    scene.begin(before=100)
    scene.replies(900, 4000)
    scene.tasks(90, 9)
    scene.progress.shared(Others(3, 200, 0))
    scene.progress.judged(150, 190)


def waiting(scene: Scene) -> None:
    shared(scene)
    scene.progress.waiting()


def values(scene: Scene) -> None:
    scene.begin()
    scene.replies(400, 100)
    scene.tasks(90, 4)
    scene.tasks(1, 4, Failure("unreadable_reply", "m"), status="partial")


def functions(scene: Scene) -> None:
    scene.begin(4000)
    scene.now += 30
    scene.tasks(1500, 0)
    scene.progress.judged(1200, 1500)


SCENES: dict[str, tuple[Callable[[Scene], None], dict[str, Any]]] = {
    "loading": (loading, {}),
    "beginning": (beginning, {}),
    "middle, with a price": (middle, {"prices": {"m": Price(1, 2, 0.5)}}),
    "with other workers": (shared, {}),
    "waiting for other workers": (waiting, {}),
    "a value judge": (values, {}),
    "a function": (functions, {}),
}


def line_of(name: str, look: str) -> str:
    tell, given = SCENES[name]
    scene = Scene(look, **given)
    with scene.progress:
        tell(scene)
    return scene.line


@pytest.mark.parametrize("look", LOOKS)
def test_the_live_line_looks_as_it_did_and_never_wraps(look: str) -> None:
    text = "".join(f"{name}:\n{line_of(name, look)}\n" for name in SCENES)
    path = SCREENS / f"progress.{look}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert look != "ascii" or text.isascii()


@pytest.mark.parametrize("width", [1, 10, 20, 30, 45, 60])
def test_on_a_small_terminal_the_count_stays_longest_and_then_the_time_left(width: int) -> None:
    scene = Scene("80", **SCENES["middle, with a price"][1])
    with scene.progress:
        middle(scene)
        line = scene.progress.line(width)
    assert len(line) <= width
    assert line.startswith("122/500"[:width])
    assert ("left" in line) == (width >= 20)
    assert ("2 failed" in line) == (width >= 30)
    assert ("61% right" in line) == (width >= 45)
    assert ("cost" in line) == (width >= 60)


def test_the_time_left_is_that_of_the_calls_that_are_to_come() -> None:
    scene = Scene("80")
    scene.begin(total=10)
    scene.replies(50, 100)  # 2 s each
    scene.tasks(4, 10)  # 40 calls; 10 more are made for the other 6 tasks
    assert scene.progress.line(30).split(", ")[1] == "1:40 left"


def test_what_others_do_shortens_the_time_left() -> None:
    scene = Scene("80")
    scene.begin(total=100)
    scene.replies(50, 100)
    scene.tasks(10, 5)
    scene.progress.shared(Others(1, 40, 0))
    assert scene.progress.line(30).split(", ")[1] == "1:40 left"


def test_replies_from_a_cache_cost_nothing() -> None:
    scene = Scene("80", prices={"m": Price(1000, 0)})
    scene.begin()
    scene.replies(3, 1, cached=True)
    scene.replies(1, 1)
    assert "cost 1.00," in scene.progress.line(80)


CHILD = "import os; os.write(2, b'noise of a process\\n'); os.write(1, b'and more\\n')"
SHOWING = f"""
import subprocess, sys
from pathlib import Path
from debate.cli.progress import Progress
from debate.cli.streams import lasting_output
with lasting_output():
    try:
        with Progress(model="m", log=Path("engine.log")) as progress:
            progress.started(5, 0)
            progress.loading()
            subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
            print("of our own", file=sys.stderr)
            progress.loaded()
            progress.note("a note")
            if len(sys.argv) > 1:
                raise RuntimeError("it failed")
    except RuntimeError:
        pass
    print("after", file=sys.stderr)
    subprocess.run([sys.executable, "-c", "import os; os.write(2, b'later')"], check=True)
"""


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """What a terminal of 80 columns is sent by `SHOWING`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-c", SHOWING, *arguments],
        cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    sent = b""
    with suppress(OSError):  # the end of a terminal is an error
        while data := os.read(ours, 65536):
            sent += data
    os.close(ours)
    assert process.wait(60) == 0
    return sent.decode()


def test_what_a_process_writes_while_the_line_stands_goes_to_the_log(tmp_path: Path) -> None:
    sent = on_a_terminal(tmp_path)
    assert "noise" not in sent
    assert "and more" not in sent
    assert (tmp_path / "engine.log").read_text() == "noise of a process\nand more\n"
    assert (tmp_path / "engine.log").stat().st_mode & 0o777 == 0o600
    assert [word in sent for word in ("of our own", "a note", "after", "later")] == [True] * 4


def test_when_the_run_fails_what_a_process_wrote_is_shown(tmp_path: Path) -> None:
    sent = on_a_terminal(tmp_path, "fail")
    assert "noise of a process" in sent
    assert sent.index("noise of a process") < sent.index("after")


def test_without_a_terminal_stderr_stays_as_it_is(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", SHOWING], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "noise of a process" in told.stderr
    assert not (tmp_path / "engine.log").exists()
