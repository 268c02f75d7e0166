"""`debate control` and `debate run --control`, over a backend that notes when it is loaded and asked."""

from __future__ import annotations

import json
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.cli.execution import Trust
from debate.errors import ConfigError, DebateError, InputError

N_TASKS = 4
NOTING = """
from pathlib import Path
from debate.backends import Scripted
from debate.testing import reply_for

class Noting(Scripted):
    def __init__(self, path: str) -> None:
        super().__init__(self.answer)
        self.path = Path(path)

    def note(self, event):
        with self.path.open("a") as file:
            print(event, file=file)

    def answer(self, call):
        self.note("ask")
        return reply_for(call)

    async def start(self):
        self.note("start")

    async def aclose(self):
        self.note("close")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("debate.cli.execution.end_as_on_interrupt", lambda: None)  # the signals are pytest's
    tasks = [{"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b"], "best": n % 2} for n in range(N_TASKS)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    (tmp_path / "noting.py").write_text(NOTING)
    return tmp_path


@dataclass
class Done:
    """What a command in this process came to."""

    code: int
    stdout: str
    stderr: str
    error: str


def debate(folder: Path, *arguments: str) -> Done:
    with chdir(folder):
        done = CliRunner().invoke(app, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit | DebateError):
        raise done.exception
    code = 2 if isinstance(done.exception, InputError) else done.exit_code
    return Done(code, done.stdout, done.stderr, str(done.exception))


def run(folder: Path, *more: str) -> Done:
    where = ("--backend", "noting:Noting", "--engine-arg", "path=events", "--out", "out")
    return debate(folder, "run", "tasks.jsonl", *where, *more)


def events(folder: Path) -> list[str]:
    file = folder / "events"
    found = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return found


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / "control" / "results.jsonl").read_text().splitlines()]


def test_a_run_with_its_control_loads_the_model_once(folder: Path) -> None:
    done = run(folder, "--control")
    assert done.code == 0, done.error
    found = events(folder)
    assert (found[0], found[-1], {*found[1:-1]}) == ("start", "close", {"ask"})
    assert len(found) - 2 == 2 * N_TASKS * 3 * 3
    assert done.stdout.index("results") < done.stdout.index("silent panel")
    assert "Debating does not pay here" in done.stdout
    assert len(lines(folder)) == N_TASKS


def test_the_control_is_made_afterwards_of_the_recorded_settings_and_again_asks_nothing(folder: Path) -> None:
    run(folder)
    events(folder)
    with pytest.raises(ConfigError, match="debate control out --trust"):
        Trust(Path("out"), is_given=False, command="control").ask("names a server")
    made = debate(folder, "control", "out", "--trust")
    assert (made.code, events(folder).count("ask")) == (0, N_TASKS * 3 * 3)
    again = debate(folder, "control", "out", "--trust", "--json")
    assert (again.code, events(folder)) == (0, [])
    figures = json.loads(again.stdout)
    assert (figures["tasks"], figures["labeled"]) == (N_TASKS, N_TASKS)
    assert figures["sentence"] in made.stdout.replace("\n", " ")


def test_resume_goes_on_with_the_run_and_names_the_command_for_its_control(folder: Path) -> None:
    run(folder, "--control")
    events(folder)
    refused = debate(folder, "resume", "out/control", "--trust")
    assert refused.code == 2
    assert "is the control of the run" in refused.error
    assert "debate control out" in refused.error
    before = (folder / "out" / "control" / "run.json").read_bytes()
    assert debate(folder, "resume", "out", "--trust").code == 0
    assert (folder / "out" / "control" / "run.json").read_bytes() == before
    assert events(folder) == []


def test_of_an_unfinished_run_it_says_how_much_is_left(folder: Path) -> None:
    run(folder, "--max-tokens", "4500", "--max-concurrency", "1", "--rounds", "1")
    n_first = len((folder / "out" / "results.jsonl").read_text().splitlines())
    assert 0 < n_first < N_TASKS
    made = debate(folder, "control", "out", "--trust", "--max-tokens", "1000000")
    assert made.code == 0, made.error
    assert f"{N_TASKS - n_first} tasks have no debate yet" in made.stderr
    assert len(lines(folder)) == n_first


def test_what_has_no_control_is_refused_before_a_model_is_loaded(folder: Path) -> None:
    for more in (("--evaluator", "value"), ("--mode", "independent"), ("--prepare",)):
        refused = run(folder, "--control", *more)
        assert (refused.code, events(folder)) == (2, [])
        assert "control" in refused.error
    assert not (folder / "out").exists()


def test_the_debates_and_their_control_are_shown_and_exported_alike(folder: Path) -> None:
    run(folder, "--control")
    shown = debate(folder, "show", "out/control", "t1")
    assert (shown.code, "t1" in shown.stdout) == (0, True)
    assert debate(folder, "export", "out/control").code == 0
