"""What models were sent, rendered again from the record of a run."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from debate import DebateEvaluator, Scale, Task
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.errors import CallError, ConfigError
from debate.evaluators.base import Evaluator
from debate.evaluators.callback import CallbackEvaluator
from debate.evaluators.panel import PanelEvaluator
from debate.evaluators.value import ValueEvaluator
from debate.evaluators.vote import VoteEvaluator
from debate.jobs.control import control_job
from debate.jobs.run import Run
from debate.jobs.run_directory import RunDirectory
from debate.jobs.sent import CHANGED, Prompts
from debate.store import Store, StoredRun
from debate.store.tables import CALLS
from debate.testing import SilentListener, reply_for

TASKS = """{"id": "a", "x": "Which?", "candidates": ["one", "two"]}
{"id": "b", "x": "What?", "candidates": ["x", "y"]}
"""


class Remembering:
    """A scripted model that keeps its calls, the first of which can fail or be answered with nonsense."""

    def __init__(self, first: Callable[[Call], Any] = reply_for) -> None:
        self.first, self.calls = first, list[Call]()

    def __call__(self, call: Call) -> Any:
        self.calls.append(call)
        return self.first(call) if len(self.calls) == 1 else reply_for(call)

    def of(self, task_id: str) -> list[tuple[dict[str, str], ...]]:
        """The messages of a task."""
        return sorted((tuple(c.messages) for c in self.calls if c.info["task_id"] == task_id), key=repr)


def run(folder: Path, evaluator: Evaluator, model: Remembering, settings: RunSettings | None = None) -> RunDirectory:
    folder.mkdir(exist_ok=True)
    (folder / "tasks.jsonl").write_text(TASKS)
    job = Run(evalset=EvalSet(folder / "tasks.jsonl"), folder=folder, evaluator=evaluator,
              settings=settings or RunSettings())  # fmt: skip
    return job.execute({"m": Scripted(model, model="m")}, SilentListener())[0]


@contextmanager
def looked_at(directory: RunDirectory) -> Generator[StoredRun]:
    with directory.open_store(read_only=True) as store:
        yield store.read(directory.name)


def shown(directory: RunDirectory, task_id: str = "a") -> list[tuple[dict[str, str], ...]]:
    with looked_at(directory) as record:
        prompts = Prompts(record, RunDirectory.existing(directory.path).identity)
        return sorted((sent.messages for sent in prompts.of_task(task_id)), key=repr)


@pytest.mark.parametrize(
    "evaluator",
    [
        DebateEvaluator("general", rounds=2),
        DebateEvaluator("general", rounds=2, candidate_order="balanced", weights=(1.0, 0.5, 0.5, 0.5, 0.5)),
        DebateEvaluator("general", mode="simultaneous", readout="cells", silent_readouts=True),
        ValueEvaluator(samples=2),
        VoteEvaluator(ballots=3, ballot="pairwise"),
        PanelEvaluator(members={"debate": DebateEvaluator("general", rounds=1), "votes": VoteEvaluator(ballots=2)}),
    ],
    ids=["debate", "balanced", "cells", "value", "vote", "panel"],
)
def test_what_was_sent_is_shown_for_a_run_that_was_begun_in_python(tmp_path: Path, evaluator: Evaluator) -> None:
    model = Remembering()
    directory = run(tmp_path / "run", evaluator, model)
    for task_id in ("a", "b"):
        assert shown(directory, task_id) == model.of(task_id)


def test_a_run_with_settings_is_made_again_from_them(tmp_path: Path) -> None:
    settings = RunSettings(evaluator="vote", options={"ballots": 2, "ballot": "plurality"})
    model = Remembering()
    directory = run(tmp_path / "run", settings.make_evaluator(), model, settings)
    assert shown(directory) == model.of("a")


def test_calls_that_were_asked_again_or_failed_are_shown_with_what_came_after_them(tmp_path: Path) -> None:
    def refused(call: Call) -> str:
        raise CallError("refused", "no")

    def nonsense(call: Call) -> str:
        return "nonsense"

    for name, first in (("nonsense", nonsense), ("refused", refused)):
        model = Remembering(first)
        directory = run(tmp_path / name, DebateEvaluator("general", rounds=2), model)
        assert [shown(directory, each) for each in "ab"] == [model.of("a"), model.of("b")]


def test_calls_are_in_their_order_and_say_what_they_are_about(tmp_path: Path) -> None:
    directory = run(tmp_path / "run", DebateEvaluator("general", rounds=2, convergence=None), Remembering())
    with looked_at(directory) as record:
        sent = Prompts(record).of_task("a")
    assert [(each.about["round"], each.about["agent"]) for each in sent] == [
        (r, name) for r in range(2) for name in ("Critic", "Supporter", "Neutral Observer")
    ]
    assert sent[0].to_dict()["call"] == sent[0].call
    assert "task_id" not in sent[0].to_dict()["about"]


def test_the_store_alone_is_enough_for_a_debate_of_more_rounds_than_usual(tmp_path: Path) -> None:
    model = Remembering()
    directory = run(tmp_path / "run", DebateEvaluator("general", rounds=4, convergence=None, retries=0), model)
    with looked_at(directory) as record:
        sent = Prompts(record).of_task("b")
    assert sorted((each.messages for each in sent), key=repr) == model.of("b")
    assert len(sent) == 12


def test_of_a_control_the_silent_panels_prompts_are_shown(tmp_path: Path) -> None:
    evaluator = DebateEvaluator("general", rounds=2, convergence=None)
    directory, model = run(tmp_path / "run", evaluator, Remembering()), Remembering()
    job, _ = control_job(directory, evaluator, {"m": Scripted(model, model="m")}, RunSettings())
    control, _ = job.execute({"m": Scripted(model, model="m")}, SilentListener())
    assert len(shown(control)) == 6
    assert shown(control) == model.of("a")


def test_a_prompt_that_is_not_the_recorded_one_is_not_shown(tmp_path: Path) -> None:
    directory = run(tmp_path / "run", DebateEvaluator("general", rounds=1), Remembering())
    changed = update(CALLS).where(CALLS.c.address == "1").values(prompt_hash="another")
    with Store(directory.store_url) as store:
        store._database.run(lambda connection: connection.execute(changed))  # pyright: ignore[reportPrivateUsage]
    with looked_at(directory) as record:
        first, *others = Prompts(record).of_task("a")
    assert (first.messages, first.problem) == ((), CHANGED)
    assert others
    assert all(each.messages and not each.problem for each in others)


def score(x: str, text: str) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("evaluator", "why"),
    [
        (PanelEvaluator(members={"one": VoteEvaluator(ballots=1)}), "cannot be made again from what is recorded"),
        (CallbackEvaluator(score, scale=Scale(0, 1)), "cannot be made again from what is recorded"),
        (ValueEvaluator(samples=2), "begun in Python, and the store has only those settings that shape prompts"),
    ],
    ids=["panel", "callback", "value"],
)
def test_an_evaluator_of_which_too_little_is_recorded_is_named_in_a_sentence(
    tmp_path: Path, evaluator: Evaluator, why: str
) -> None:
    directory = run(tmp_path / "run", evaluator, Remembering())
    with looked_at(directory) as record, pytest.raises(ConfigError, match=why):
        Prompts(record)


def test_nothing_that_a_run_names_is_imported(tmp_path: Path) -> None:
    directory = run(tmp_path / "run", DebateEvaluator("general", rounds=1), Remembering())
    with looked_at(directory) as record:
        record.about = {**record.about, "settings": {"evaluator": "no_such_module:Judge"}}
        with pytest.raises(ConfigError, match="no_such_module:Judge, and nothing that a run names is imported"):
            Prompts(record)


def test_an_evaluator_that_is_given_takes_the_place_of_the_recorded_one(tmp_path: Path) -> None:
    evaluator, model = PanelEvaluator(members={"one": VoteEvaluator(ballots=1)}), Remembering()
    directory = run(tmp_path / "run", evaluator, model)
    with looked_at(directory) as record:
        sent = Prompts(record, evaluator=evaluator).of_task("a")
    assert [each.messages for each in sent] == model.of("a")
    assert sent[0].call.startswith("0.0.")


def test_a_task_without_an_evaluation_was_sent_nothing(tmp_path: Path) -> None:
    directory = run(tmp_path / "run", DebateEvaluator("general", rounds=1), Remembering())
    assert shown(directory, Task("other", ["x"]).id) == []
