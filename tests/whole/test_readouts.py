"""Runs whose scores are read out as distributions: killed, resumed, replayed, forked, cached and under a budget.

Whatever happens to a run, a read-out is one call with one record, it is asked once, and the results are those of a run
that nothing disturbed.
"""

from __future__ import annotations

import datetime
import json
import shutil
import signal
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from debate import DebateEvaluator, Engine, Evaluation, Task
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.dataset.evalset import EvalSet
from debate.errors import BudgetExceededError
from debate.jobs.run import Run
from debate.runtime.limits import Budget
from debate.scoring.distributions import expectation_of
from debate.sql.connect import normalize_url
from debate.store import Store
from debate.testing import Recorder, SilentListener, reply_for
from tests.command_line import debate
from tests.processes import watched
from tests.recorded_runs import RUNS
from tests.small_flows import debates, plain, tasks
from tests.store.conftest import url as url

TODAY = datetime.date(2031, 2, 3)
READ: dict[str, dict[str, Any]] = {
    "cells": {"readout": "cells", "silent_readouts": True},
    "expected": {"readout": "expected", "silent_readouts": True, "abstain": True, "reply": "compact"},
}
"""Settings of debates whose scores are read out."""
N_AGENTS = 2  # of `debates`
KILLED = """
import datetime, json, os, signal, sys

from debate import Engine
from debate.backends import Scripted
from debate.testing import reply_for
from tests.small_flows import debates, tasks

url, settings, asked = sys.argv[1:]
read_outs = 0

def script(call):
    global read_outs
    with open(asked, "a") as file:
        file.write(f"{call.prompt_hash} {call.seed}\\n")
    read_outs += call.read_out is not None
    if read_outs == 4:  # those before are answered: two of each debate are asked at once, and then one at a time
        os.kill(os.getpid(), signal.SIGKILL)
    return reply_for(call)

with Engine(Scripted(script), store=url, max_concurrency=1, today=datetime.date(2031, 2, 3)) as engine:
    engine.evaluate_batch(tasks(3), debates(**json.loads(settings)), run="r")
"""


def name(call: Call) -> str:
    """What tells a call from others."""
    return f"{call.prompt_hash} {call.seed}"


def refuse(call: Call) -> str:
    raise AssertionError(f"was asked again: {call.info}")


def evaluated(
    evaluator: DebateEvaluator, script: Any = reply_for, store: str | None = None, **options: Any
) -> list[Evaluation]:
    """Three tasks, in the run `r` where there is a store."""
    with Engine(Scripted(script), store=store, today=TODAY, **options) as engine:
        return engine.evaluate_batch(tasks(3), evaluator, run=store and "r")


def comparable(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    return [plain(each) for each in evaluations]


def is_read_out(call: Call) -> bool:
    return call.read_out is not None


# ---- One call, one record


def test_a_run_killed_in_the_middle_of_a_read_out_asks_for_that_one_again_and_for_nothing_else_twice(
    url: str, tmp_path: Path
) -> None:
    asked, settings = tmp_path / "asked", READ["cells"]
    ended = watched(KILLED, url, json.dumps(settings), str(asked))
    assert ended.code == -signal.SIGKILL, ended.err
    before = asked.read_text().splitlines()
    resumed, whole = Recorder(), Recorder()
    results = evaluated(debates(**settings), resumed, url, max_concurrency=1)
    after = [name(call) for call in resumed.calls]
    assert (after[0], is_read_out(resumed.calls[0])) == (before[-1], True)
    assert not {*before[:-1]} & {*after}
    undisturbed = evaluated(debates(**settings), whole)
    assert sorted([*before[:-1], *after]) == sorted(map(name, whole.calls))
    assert comparable(results) == comparable(undisturbed)
    assert comparable(evaluated(debates(**settings), refuse, url)) == comparable(undisturbed)


@pytest.mark.parametrize("settings", READ.values(), ids=READ)
def test_other_weights_are_applied_to_what_was_read_without_asking(url: str, settings: dict[str, Any]) -> None:
    evaluated(debates(**settings), store=url)
    weights = {"clarity": 0.1, "truth": 1.0}
    replayed = evaluated(debates(**settings, weights=weights), refuse, url)
    assert comparable(replayed) == comparable(evaluated(debates(**settings, weights=weights)))
    assert all(each.p_best is not None for each in replayed)


@pytest.mark.parametrize("mode", ["sequential", "simultaneous"])
@pytest.mark.parametrize("rounds", [(1, 2), (2, 1)])
def test_a_run_goes_on_with_more_rounds_or_fewer_and_reads_out_what_is_new(
    tmp_path: Path, mode: Any, rounds: tuple[int, int]
) -> None:
    settings, store = {**READ["cells"], "mode": mode}, str(tmp_path / "run.sqlite")
    first, second = Recorder(), Recorder()
    evaluated(debates(**{**settings, "rounds": rounds[0]}), first, store)
    results = evaluated(debates(**{**settings, "rounds": rounds[1]}), second, store)
    assert comparable(results) == comparable(evaluated(debates(**{**settings, "rounds": rounds[1]})))
    turns = 2 * N_AGENTS if rounds == (1, 2) else 0
    assert len(second.calls) == 3 * (turns + N_AGENTS)
    assert not {*map(name, first.calls)} & {*map(name, second.calls)}


def test_a_fork_takes_over_the_read_outs_that_still_fit(url: str, tmp_path: Path) -> None:
    def run(evaluator: DebateEvaluator, script: Any, folder: str = "out", fork: bool = False) -> list[Evaluation]:
        settings = RunSettings(run=None, store=url)
        job = Run(evalset=EvalSet(evalset), folder=tmp_path / folder, evaluator=evaluator, settings=settings, fork=fork)
        directory, _ = job.execute({"scripted": Scripted(script)}, SilentListener())
        with Store(url) as store:
            return [each for _, each in store.read(directory.name).results()]

    evalset = tmp_path / "tasks.jsonl"
    evalset.write_text(
        "".join(json.dumps({"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b"]}) + "\n" for n in "12")
    )
    first, forked = Recorder(), Recorder()
    run(debates(**READ["cells"]), first)
    found = run(debates(**READ["cells"], mode="simultaneous", weights=[0.2, 1.0]), forked, fork=True)
    # The first agent's turn of the first round and what it and the others held before are asked as they were.
    kept = 2 + N_AGENTS
    assert len(first.calls) == len(forked.calls) + 2 * kept == 2 * 6 * N_AGENTS
    assert not {*map(name, first.calls)} & {*map(name, forked.calls)}
    alone = run(debates(**READ["cells"], mode="simultaneous", weights=[0.2, 1.0]), reply_for, "alone")
    assert comparable(found) == comparable(alone)


def test_a_cache_answers_equal_read_outs_with_equal_distributions(url: str) -> None:
    judge, asked = debates(**READ["expected"]), Recorder()
    with Store(url) as store:
        first = evaluated(judge, asked, cache=store.cache())
        again = evaluated(judge, refuse, cache=store.cache())
        assert store.cache().stats().replies == len(asked.calls)
    assert comparable(again) == comparable(first)


def rows(url: str, query: str) -> list[Any]:
    engine = create_engine(normalize_url(url))
    with engine.connect() as connection:
        found = list(connection.execute(text(query)))
    engine.dispose()
    return found


@pytest.mark.parametrize("settings", READ.values(), ids=READ)
def test_a_read_out_is_one_call_in_records_usage_and_budgets(url: str, settings: dict[str, Any]) -> None:
    asked, budget = Recorder(), Budget(tokens=10**9)
    found = evaluated(debates(**settings), asked, url, budget=budget)
    read = sum(map(is_read_out, asked.calls))
    assert rows(url, "SELECT count(*) FROM calls") == [(len(asked.calls),)]
    [(recorded,)] = rows(url, "SELECT count(*) FROM calls WHERE distributions IS NOT NULL")
    assert 0 < recorded <= read  # an agent that abstains altogether has no place that could be read
    assert sum(each.usage.calls for each in found) == len(asked.calls)
    assert sum(each.usage.total_tokens for each in found) == budget.spent
    if settings["readout"] == "cells":
        assert recorded == read


def test_a_budget_that_is_used_up_by_a_read_out_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    judge, store, whole = debates(**READ["cells"]), str(tmp_path / "run.sqlite"), Recorder()
    undisturbed = evaluated(judge, whole)
    first, second = Recorder(), Recorder()
    with pytest.raises(BudgetExceededError):
        evaluated(judge, first, store, budget=Budget(tokens=1), max_concurrency=1)
    assert comparable(evaluated(judge, second, store)) == comparable(undisturbed)
    assert is_read_out(first.calls[-1])
    assert sorted(map(name, [*first.calls, *second.calls])) == sorted(map(name, whole.calls))


def test_a_run_of_an_older_store_opens_and_has_no_distributions(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "debate", tmp_path / "debate")
    record = json.loads((tmp_path / "debate" / "run.json").read_text())
    with Store(tmp_path / "debate" / "run.sqlite") as store:
        found = [each for _, each in store.read(record["run"]).results()]
    assert found
    for each in found:
        assert each.p_best is None
        assert each.spread is None
        assert (each.before, each.after) == ((), ())
        assert all(turn.distributions == () for member in each.members for turn in member.transcript)


# ---- The command line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": f"t{n}", "x": f"{n}?", "candidates": ["a", "b"], "best": 0}) for n in range(3)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_the_command_line_reads_out_and_asks_nothing_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ["run", folder / "tasks.jsonl", "--out", folder / "out", "--profile", "judge", "--rounds", 2]
    read = [*run, "--convergence", "none", "--readout", "cells", "--silent-readouts", "true"]
    assert debate(monkeypatch, *read, "--backend", "debate.testing:reply_for") == 0
    lines = (folder / "out" / "results.jsonl").read_text().splitlines()
    assert len(lines) == 3
    for evaluation in map(Evaluation.from_dict, map(json.loads, lines)):
        assert evaluation.p_best is not None
        assert evaluation.p_best.sum() == pytest.approx(1.0)
        assert len(evaluation.before) == len(evaluation.after) == len(evaluation.agents)
        assert_expectations(evaluation)
    assert debate(monkeypatch, *read, "--backend", f"{__name__}:refuse") == 0
    assert (folder / "out" / "results.jsonl").read_text().splitlines() == lines


def assert_expectations(evaluation: Evaluation) -> None:
    """That the tensor and what was read silently are the means of the distributions, or NaN."""
    assert evaluation.tensor is not None
    for turn in evaluation.transcript:
        here = evaluation.tensor[turn.round, evaluation.agents.index(turn.agent)]  # (J, K)
        is_read = len(turn.distributions) > 0  # no, where an agent abstained altogether
        means = expectation_of(turn.distributions) if is_read else np.full(here.shape, np.nan)
        np.testing.assert_array_equal(here, means)
    for silent in (*evaluation.before, *evaluation.after):
        assert all(cell.mass > 0 for row in silent.distributions for cell in row)
        np.testing.assert_array_equal(silent.scores, expectation_of(silent.distributions))
    spread = np.full(evaluation.tensor.shape, np.nan) if evaluation.spread is None else evaluation.spread
    np.testing.assert_array_equal(np.isnan(spread), np.isnan(evaluation.tensor))


# ---- vLLM

FORMS: list[dict[str, Any]] = [
    {"readout": "reply", "reply": "compact"},
    {"readout": "expected", "silent_readouts": True},
    {"readout": "expected", "reply": "compact"},
    {"readout": "expected", "abstain": True},
    {"readout": "cells", "silent_readouts": True},
    {"readout": "cells", "abstain": True},
]


def test_every_way_to_read_scores_runs_on_vllm_and_is_replayed_from_the_store(
    vllm_engine: Engine, tmp_path: Path
) -> None:
    def judges(**more: Any) -> list[DebateEvaluator]:
        return [debates(rounds=1, comment_chars=12, overall_chars=12, **settings, **more) for settings in FORMS]

    questions = [Task("What is 2 + 2?", ["4", "5"], id=f"t{n}") for n in range(len(FORMS))]
    model = next(iter(vllm_engine.backends))
    again = Engine(Scripted(refuse, model=model), seed=1)
    with again, Store(tmp_path / "run.sqlite") as store, closing(store.run("r", {}, seed=1)) as run:
        asked = vllm_engine.evaluate_batch(questions, judges(), run=run)
        replayed = again.evaluate_batch(questions, judges(weights=[1.0, 0.1]), run=run)
    for settings, evaluation, same in zip(FORMS, asked, replayed, strict=True):
        assert evaluation.tensor is not None
        np.testing.assert_array_equal(evaluation.tensor, same.tensor)
        assert same.usage == evaluation.usage
        if settings["readout"] == "reply":
            assert ((evaluation.tensor >= 0) & (evaluation.tensor <= 10)).all()
        else:
            assert_expectations(evaluation)
            assert settings.get("abstain") or all(turn.distributions for turn in evaluation.transcript)
            assert same.p_best is not None
        # Of random weights, all labels together have hardly any probability where no grammar holds.
        assert {failure.reason for failure in evaluation.failures} <= {"label_mass"}
        assert len(evaluation.before) == len(evaluation.after) == N_AGENTS * ("silent_readouts" in settings)
