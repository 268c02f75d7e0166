"""What `debate show` and the summary of a run look like, held as text: at 80 and 120 columns, in ASCII, with colors.

`SNAPSHOTS=write` in the environment writes the screens of `tests/data/screens` anew; look at each of them then. In
those with colors, `{31}` stands for the code that begins red, and `{0}` for its end.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from debate import Component, DebateEvaluator, Persona, Profile
from debate.backends import Call, Scripted
from debate.cli.progress import Progress
from debate.cli.show import show
from debate.cli.summary import print_summary
from debate.dataset.evalset import EvalSet
from debate.jobs.run import Run
from debate.jobs.run_directory import RunDirectory
from debate.store.queries import Totals
from debate.testing import SilentListener

SCREENS = Path(__file__).parents[1] / "data" / "screens"
PROFILE = Profile(
    "trio",
    (Persona("Critic", "Look for faults."), Persona("Supporter", "Defend."), Persona("Observer", "Weigh up.")),
    (Component("accuracy", "Is it true?"), Component("clarity", "Is it clear?", 0.5)),
)
TASKS = (
    ("boiling", "At which temperature does water boil on Mount Everest?", ("100 °C.", "Near 70 °C."), 1, "physics"),
    ("ice", "Why does ice float?", ("It is less dense.", "It is colder.", "It holds air."), 0, "physics"),
    ("capital", "What is the capital of Australia?", ("Sydney.", "Canberra.", "Melbourne."), 1, "geography"),
    ("river", "Which river is the longest?", ("The Nile.", "The Amazon."), 0, "geography"),
    ("lake", "Which lake is the deepest?", ("Lake Baikal.", "Lake Tanganyika."), None, "geography"),
    ("desert", "Which desert is the largest?", ("The Sahara.", "Antarctica."), 1, "geography"),
)
"""Id, question, answers, the right one by its index, group."""
SCORES: dict[str, tuple[tuple[tuple[int, int], ...], ...]] = {
    "boiling": (((7, 8), (5, 7)), ((2, 8), (9, 7))),
    "ice": (((9, 8), (3, 6), (2, 6)),),
    "capital": (((8, 9), (5, 7), (4, 7)), ((8, 9), (6, 7), (4, 7))),
    "river": (((7, 7), (7, 7)),),
    "lake": (((9, 9), (6, 9)),),
}
"""Of each candidate, (accuracy, clarity), by round; the last one stays."""
TALK: dict[str, tuple[str, ...]] = {
    "boiling": (
        "The boiling point falls with the pressure; up there it is near 70 °C.",
        "Forgets the height.",
        "Right.",
    ),
    "ice": ("Density decides what floats.", "Right.", "Cold water does not float.", "Ice floats without air, too."),
}


def reply(call: Call) -> str:
    """What an agent says; the Critic is stricter at first, and nobody can read what is said about deserts."""
    task, agent = call.info["task_id"], call.info["agent"]
    r: int = call.info["round"]
    labels: dict[str, int] = call.info["labels"]
    if task == "desert":
        return "I would rather not say."
    rounds: tuple[tuple[tuple[int, int], ...], ...] = SCORES[task]
    scores = rounds[min(r, len(rounds) - 1)]
    overall, *comments = TALK.get(task, ("It is as it is.", *["So it says."] * len(scores)))
    less = 4 if agent == "Critic" and r == 0 and len(rounds) > 1 else 0
    candidates = {
        label: {"comment": comments[j], "scores": {"accuracy": scores[j][0] - less, "clarity": scores[j][1]}}
        for label, j in labels.items()
    }
    return json.dumps({"overall": overall if agent != "Supporter" else f"Yes: {overall}", "candidates": candidates})


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, Totals]:
    """A run of debates that come out in every way."""
    folder = tmp_path_factory.mktemp("screens")
    rows = [
        {"id": name, "x": x, "candidates": texts, "best": best, "metadata": {"group": group}}
        for name, x, texts, best, group in TASKS
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    evaluator = DebateEvaluator(PROFILE, rounds=2, retries=1, method="article")
    job = Run(evalset=EvalSet(folder / "tasks.jsonl"), folder=folder / "run", evaluator=evaluator)
    return job.execute({"scripted": Scripted(reply)}, SilentListener())


LOOKS = {
    "80": {"COLUMNS": "80"},
    "120": {"COLUMNS": "120"},
    "ascii": {"COLUMNS": "80"},
    "colors": {"COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "xterm-256color"},
}
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "debate": ("boiling",),
    "wrong": ("capital",),
    "failed": ("desert", "--raw"),
    "list": (),
    "sorted": ("--sort", "margin", "--group", "geography"),
}


def screen_of(command: Callable[..., None], look: str, folder: Path, *arguments: str) -> str:
    """What a command prints, as it is held; the run's folder is `RUN`, and every number of seconds the same."""
    app = typer.Typer()
    app.command()(command)
    runner = CliRunner(charset="ascii" if look == "ascii" else "utf-8")
    cleared = dict.fromkeys(("FORCE_COLOR", "NO_COLOR", "TERM", "TTY_COMPATIBLE"))
    text = runner.invoke(app, arguments, env=cleared | LOOKS[look], catch_exceptions=False).output
    text = re.sub(r"\d+\.\d s", "0.1 s", re.sub(r"\x1b\[([\d;]*)m", r"{\1}", text.replace(str(folder), "RUN")))
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def check(text: str, name: str) -> None:
    """Compare what was printed with the screen that is expected, or write that one."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 120 or "colors" in name


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("screen", ARGUMENTS)
def test_what_is_shown_looks_as_it_did(done: tuple[RunDirectory, Totals], screen: str, look: str) -> None:
    folder = done[0].path
    check(screen_of(show, look, folder, str(folder), *ARGUMENTS[screen]), f"{screen}.{look}")


@pytest.mark.parametrize("look", LOOKS)
def test_the_summary_looks_as_it_did(done: tuple[RunDirectory, Totals], look: str) -> None:
    def summary() -> None:
        print_summary(*done, Progress(model=""))

    check(screen_of(summary, look, done[0].path), f"summary.{look}")
