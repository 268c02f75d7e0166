"""What was read out comes back from the store, the cache and a fork as it went in, in a short form."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from debate.evaluation import Evaluation, failed
from debate.flow import Block, Call, Completion, Prompt, Segment
from debate.journal import CallKey
from debate.scoring.distributions import distribution_of, expectation_of
from debate.sql.connect import connect, normalize_url
from debate.store import Store, StoredRun
from debate.types import Failure, LabelDistribution, Sampling, Task, Transcript, Turn, Usage

IDENTITY = {"evaluator": {"name": "e"}, "models": {"m": "m"}}
PROMPT = Prompt((), (Block([Segment("?", True)]),))
CALL = Call(model="m", prompt=PROMPT, sampling=Sampling(), seed=1, prompt_hash="asked")
SURE, ABSTAINED = LabelDistribution({"7": 0.98, "8": 0.02}, 0.9994), LabelDistribution({"null": 1.0})
ASIDE = LabelDistribution({"1": 1.0}, 0.1)


def at_most_one(probabilities: Mapping[str, float]) -> dict[str, float]:
    total = max(1.0, math.fsum(probabilities.values()))
    return {label: p / total for label, p in probabilities.items()}


labels = st.sampled_from([*map(str, range(11)), "null"]) | st.text(max_size=3)
distributions = st.dictionaries(labels, st.floats(0, 1), max_size=5).map(at_most_one).map(distribution_of)
completions = st.builds(
    Completion,
    st.text(max_size=9),
    usage=st.builds(Usage, st.integers(0, 9), calls=st.just(1)),
    distributions=st.lists(distributions, max_size=4).map(tuple),
)


async def put(record: StoredRun, task: Task, completion: Completion) -> None:
    await (await record.open(task, "s")).put(CallKey((0,), 0), CALL, completion)


def kept(record: StoredRun, task: Task) -> Any:
    journal = asyncio.run(record.open(task, "s"))
    return journal.get(CallKey((0,), 0), CALL.prompt_hash, CALL.seed)


def column(url: str, query: str) -> list[Any]:
    engine = connect(normalize_url(url))
    with engine.connect() as connection:
        found = list(connection.execute(text(query)).scalars())
    engine.dispose()
    return found


def test_every_completion_survives_the_store_a_fork_and_the_cache(url: str) -> None:
    numbers = count()
    with Store(url) as store:
        record, fork, cache = store.run("r", IDENTITY), store.run("f", IDENTITY), store.cache()

        @settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(completions)
        def survives(completion: Completion) -> None:
            task = Task("x", ["a"], f"t{next(numbers)}")
            asyncio.run(put(record, task, completion))
            assert kept(record, task) == replace(completion, call="0")
            asyncio.run(cache.put(task.id, "m", completion))
            assert asyncio.run(cache.get(task.id)) == replace(completion, cached=True)

        survives()
        tasks = [task for task in record.pending("s")]
        fork.read_evalset([(task, None, None) for task in tasks], dict)
        assert fork.inherit(record) == len(tasks) == next(numbers)
        assert [kept(fork, task) for task in tasks] == [kept(record, task) for task in tasks]


def test_a_distribution_is_kept_in_a_short_form_and_what_was_not_read_out_as_null(url: str) -> None:
    short = '[{"7":0.98,"8":0.02},0.9994]'
    with Store(url) as store:
        record, cache = store.run("r", IDENTITY), store.cache()
        for name, read_out in (("read", (SURE, SURE)), ("said", ())):
            asyncio.run(put(record, Task("x", ["a"], name), Completion(name, distributions=read_out)))
            asyncio.run(cache.put(name, "m", Completion(name, distributions=read_out)))
        asyncio.run(finish(record, evaluated(((SURE,), (SURE,)))))
    assert column(url, "SELECT distributions FROM calls ORDER BY position") == [f"[{short},{short}]", None]
    assert ["distributions" in json.loads(data) for data in column(url, "SELECT data FROM replies ORDER BY key")] == [
        True,
        False,
    ]
    assert column(url, "SELECT distribution FROM turns") == [f"[[{short}],[{short}]]"]


def evaluated(cells: tuple[tuple[LabelDistribution, ...], ...], name: str = "t") -> Evaluation:
    """An evaluation of two candidates by one turn that was read out."""
    spoken = Turn(round=0, agent="a", labels={"A": 0, "B": 1}, scores=expectation_of(cells), distributions=cells)
    return replace(failed(name, "debate", 2, Failure("f", "m")), transcript=Transcript((spoken,)))


async def finish(record: StoredRun, evaluation: Evaluation) -> None:
    task = Task("x", ["a", "b"], evaluation.task_id)
    await (await record.open(task, "s")).finish(evaluation)


def test_cells_without_a_score_because_an_agent_abstained_are_counted_from_columns(url: str) -> None:
    silent = Turn(round=0, agent="a", labels={"A": 0, "B": 1}, scores=np.full((2, 2), np.nan))
    broken = replace(silent, round=1, failure=Failure("unreadable_reply", "m"))
    nothing = failed("none", "debate", 2, Failure("f", "m"))
    evaluations = [
        evaluated(((SURE, ABSTAINED), (ABSTAINED, ASIDE)), "read out"),
        replace(nothing, task_id="in the reply", transcript=Transcript((silent, broken))),
        replace(nothing, task_id="member", members=(evaluated(((ABSTAINED,), (SURE,)), "inside"),)),
        nothing,
    ]
    with Store(url) as store:
        record = store.run("r", IDENTITY)
        for each in evaluations:
            asyncio.run(finish(record, each))
        totals = record.totals()
    assert column(url, "SELECT abstained FROM evaluations ORDER BY position") == [2, 4, 1, None]
    assert (totals.abstained, totals.cells) == (7, 14)
