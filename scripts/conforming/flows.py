"""Functions that ask a judge, a callback or a server: answered by the evaluators, over a scripted model."""

from __future__ import annotations

import asyncio
import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx2

from conforming import originals
from conforming.cases import Input
from conforming.verdicts import Answer
from debate.backends import Scripted, ValueServer
from debate.backends.base import Call
from debate.engine import Engine
from debate.errors import TaskError
from debate.evaluators.callback import CallbackEvaluator
from debate.evaluators.steps.evaluator import StepEvaluator
from debate.evaluators.steps.reward_models import ValueModelSteps
from debate.evaluators.value import EarlyStop, ValueEvaluator
from debate.parsing.values import JsonField
from debate.search.validate_improve import validate_and_improve
from debate.server.forward import forward
from debate.store import Store
from debate.types import Candidate, Scale, Task

TEN = JsonField("value", 0, 10)
WIDE = Scale(-1e9, 1e9)


def reply(value: float) -> str:
    return json.dumps({"reasoning": "", "value": value})


def combined(given: Input, literal: bool) -> Any:
    """One call for all thoughts, which are named by their place; what has no score is not there."""

    def callback(x: str, answers: Sequence[str]) -> Any:
        return given["callback_returns"]

    return _by_callback(given, callback, combined=True)


def one_by_one(given: Input, literal: bool) -> Any:
    """One call for each thought; a null in what the callback returns stands for an exception."""
    if literal and None in given["callback_returns"]:
        raise ValueError("the callback raised, and the graph stops")

    def callback(x: str, answer: str) -> float:
        if (score := given["callback_returns"][int(answer)]) is None:
            raise ValueError("no score")
        return score

    return _by_callback(given, callback, combined=False)


def _by_callback(given: Input, callback: Callable[..., Any], *, combined: bool) -> list[Any]:
    names = [str(n) for n in range(given.get("n_thoughts", len(given["callback_returns"])))]
    evaluator = CallbackEvaluator(callback, scale=WIDE, combined=combined)
    with Engine(Scripted(lambda call: "")) as engine:
        scores = engine.evaluate(Task("x", names), evaluator).scores.tolist()
    return [[n, score] for n, score in enumerate(scores) if score == score]


def ground_truth(given: Input, literal: bool) -> Any:
    """Whether each thought solves the problem; null stands for an evaluator that raises, and is unknown."""
    found = dict(one_by_one({"callback_returns": [None if n is None else int(n) for n in given["solved"]]}, False))
    unknown = False if literal else None
    return [found[n] == 1 if n in found else unknown for n in range(len(given["solved"]))]


def improved(given: Input, literal: bool) -> Any:
    flow = validate_and_improve(
        str(given["start"]),
        lambda text: int(text) >= given["valid_from"],
        lambda text: str(int(text) + 1),
        given.get("num_tries", 3) if given.get("improve", True) else 0,
    )
    with Engine(Scripted(lambda call: "")) as engine:
        result = engine.drive(flow)
    return {"final_v": int(result.text), "valid": result.is_valid, "attempts": len(result.attempts)}


def parallel(given: Input, literal: bool) -> Any:
    worth = {chr(ord("A") + n): float(n + 1) for n in range(26)}  # the recorded judge's
    return _scores(given["ys"], lambda call: reply(worth[given["ys"][call.info["candidate"]]]), ValueEvaluator())


def duplicates(given: Input, literal: bool) -> Any:
    """Values of texts of which some are equal: each is the number that the judge's `values` name for it."""
    evaluator = ValueEvaluator(samples=1, reader=TEN, duplicates="zero" if literal else "share")
    ys: Sequence[str] = given["ys"]
    return _scores(ys, lambda call: reply(given["values"][ys[call.info["candidate"]]]), evaluator)


def stopped(given: Input, literal: bool) -> Any:
    """Scores come one after the other from a stream."""
    stream: Iterator[float] = iter(given["score_stream"])
    threshold, n = given.get("confidence_threshold", 0.95), given.get("n_evaluate_sample", 3)
    ys = given.get("ys", ["a", "b", "c"])
    if literal:
        return originals.evaluation_early_stop(len(ys), stream, n, threshold)
    stop = EarlyStop(threshold=threshold)
    evaluator = ValueEvaluator(samples=n, reader=TEN, early_stop=stop, duplicates="evaluate")
    return _scores(ys, lambda call: reply(next(stream)), evaluator)


def cached_pairs(given: Input, literal: bool) -> Any:
    """Two inputs, each valued once, with a cache: what each is worth (its text as a number), and the calls made."""
    pairs: Sequence[tuple[str, str]] = given["pairs"]
    calls: list[Call] = []

    def judge(call: Call) -> str:
        calls.append(call)
        return reply(float(pairs[int(call.info["task_id"])][1]))

    evaluator = ValueEvaluator(samples=1, reader=JsonField("value", -1e9, 1e9))
    with Store("sqlite://") as store, Engine(Scripted(judge), cache=store.cache(ttl=3600)) as engine:
        scores = [
            float(engine.evaluate(Task(x, [y], id=str(n)), evaluator).scores[0]) for n, (x, y) in enumerate(pairs)
        ]
    return {"a": scores[0], "b": scores[1], "llm_calls": len(calls)}


def cached_value(given: Input, literal: bool) -> Any:
    """The value of one text, stored by the first evaluation and read by the second."""
    found = cached_pairs({"pairs": [["x", str(given["value"])]] * 2}, literal)
    return found["b"] if found["llm_calls"] == 1 else math.nan


def more_samples(given: Input, literal: bool) -> Any:
    """Valued with one sample, then with five, with a cache: the calls that the second made."""
    calls: list[Call] = []

    def judge(call: Call) -> str:
        calls.append(call)
        return reply(5.0)

    with Store("sqlite://") as store, Engine(Scripted(judge), cache=store.cache(ttl=3600)) as engine:
        for n in (1, 5):
            engine.evaluate(Task("x", ["y"]), ValueEvaluator(samples=n))
    return {"llm_calls": len(calls)}


def value_model(given: Input, literal: bool) -> Any:
    """The client's request to a server that answers as the recorded one did, through the whole engine."""
    memory, step = given["contextual_memory"], given["step"]
    if not memory:
        raise TaskError("is empty: its first item is the task", field="memory")
    if not isinstance(step, str):
        raise TaskError(f"must be a string, got {type(step).__name__}", field="step")
    seen: dict[str, Any] = {}

    def served(request: httpx2.Request) -> httpx2.Response:
        seen.update(url=str(request.url), payload=json.loads(request.content))
        return httpx2.Response(200, json={"result": given.get("result", [0.25])})

    server = ValueServer(given.get("value_api_url", "http://h:12555"), transport=httpx2.MockTransport(served))
    task = Task(memory[0], [Candidate(step, metadata={"final": given["is_final"]})], context=memory[1:])
    with Engine(server) as engine:
        score = engine.evaluate(task, StepEvaluator(judge=ValueModelSteps())).scores[0]
    return {"value": float(score), **seen}


def posted(given: Input, literal: bool) -> Any:
    """The recorded server's model is a stub: 0.1 for the first conversation, 0.2 for the second, ..."""

    async def stub(conversations: Sequence[Any]) -> list[float]:
        return [0.1 * (n + 1) for n in range(len(conversations))]

    status, body = asyncio.run(forward(given["body"], stub))
    return {"status": status, "json": body}


def _scores(ys: Sequence[str], judge: Callable[[Call], str], evaluator: ValueEvaluator) -> list[float]:
    with warnings.catch_warnings(), Engine(Scripted(judge)) as engine:
        return [float(score) for score in engine.evaluate(Task("x", ys), evaluator).scores]


ANSWERS = {
    "Score(combined=True": Answer(combined, why="a callback that scores some and not others scored none"),
    "Score(combined=False": Answer(
        one_by_one, option="a ValueError", why="a callback that raises on one thought costs no other its score"
    ),
    "GroundTruth": Answer(ground_truth, option="solved=False", why="an evaluator that raised has not said no"),
    "ValidateAndImprove": Answer(improved),
    "get_values": Answer(duplicates, option='duplicates="zero"', why="an equal text is worth as much"),
    "evaluate_parallel": Answer(parallel, why="scores come back in the candidates' order"),
    "evaluate_with_early_stopping": Answer(stopped, option="evaluation_early_stop"),
    "get_value cache key": Answer(cached_pairs, why="the key is of all that shapes the reply, each part by itself"),
    "get_cached_value": Answer(cached_value, why="what was stored is what is read"),
    "get_value with n=1 then n=5": Answer(more_samples, why="five samples are five replies, of which one is cached"),
    "ValueModel.evaluate_step": Answer(
        value_model,
        refusals={"ValueError": TaskError},
        why="a step that is missing is refused by name",
    ),
    "POST /forward": Answer(posted),
}
