"""Checks of what the engine relies on in an evaluator or a backend, in the manner of sklearn's `check_estimator`."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from debate.backends.base import Backend
from debate.backends.scripted import Scripted
from debate.errors import CallError, ConfigError, EvaluatorError
from debate.evaluation import Evaluation
from debate.evaluators import contract
from debate.evaluators.base import Evaluator, Footprint, check_task
from debate.flow import Block, Call, Completion, Prompt, ReadOut, RunContext, Segment
from debate.parsing.places import value_spans
from debate.parsing.schema import bounded_text, number_in, object_of
from debate.runtime.runner import Runner
from debate.testing.flows import DictJournal, Recorder, reply_for
from debate.types import Sampling, Scale, Task

T = TypeVar("T")
_RUN = RunContext(seed=1, today="2031-02-03")
_SCHEMA = object_of({"comment": bounded_text(40), "score": number_in(0, 10)})
_LABELS = tuple(map(str, range(11)))
_LABEL_SCHEMA = object_of({"comment": bounded_text(40), "score": {"enum": list(range(11))}})
_CHARACTERS_PER_TOKEN = 3.0
_SECONDS = 120.0


def check_evaluator(evaluator: Evaluator, tasks: Sequence[Task], reply: Callable[[Call], Any] = reply_for) -> None:
    """Check that an evaluator does what the engine, the store and the exports rely on.

    Its settings are plain data; its flow is a generator that returns an `Evaluation` with a score per candidate, within
    the scale or NaN, that survives JSON; the same task asks for the same prompts under the same seeds, and recorded
    answers are replayed without a call; the footprint is an upper bound; a call that fails becomes a failure of the
    evaluation.

    Args:
        evaluator: an instance.
        tasks: some that it can evaluate.
        reply: what its models answer; needed where calls have no schema.

    Raises:
        AssertionError: naming the first rule that is broken. Whatever the flow raises goes through.

    >>> check_evaluator(ValueEvaluator(samples=2), [Task("What is 2 + 2?", ["4", "5"])])
    """
    _check_settings(evaluator)
    for task in tasks:
        check_task([evaluator], task)
        asked, journal = Recorder(reply), DictJournal()
        first = asyncio.run(_runner(evaluator, asked).drive(_asserted(contract.checked_flow, evaluator, task, _RUN)))
        _check_evaluation(first, evaluator, task)
        _check_footprint(_asserted(contract.checked_footprint, evaluator, task), asked.calls)
        _check_repeated(evaluator, task, first, Recorder(reply), asked, journal)
        _check_replayed(evaluator, task, first, journal)
        for n in {0, len(asked.calls) - 1} if asked.calls else ():
            _check_failing(evaluator, task, reply, n)


def _asserted(check: Callable[..., T], *arguments: Any) -> T:
    """What the engine's own check says, as an assertion."""
    try:
        return check(*arguments)
    except (ConfigError, EvaluatorError) as error:
        raise AssertionError(str(error)) from error


def _check_settings(evaluator: Evaluator) -> None:
    _asserted(contract.check_evaluator, evaluator)
    assert evaluator.name and isinstance(evaluator.name, str), f"`name` is a string, not {evaluator.name!r}"
    assert isinstance(evaluator.scale, Scale), f"`scale` is a Scale, not {evaluator.scale!r}"
    evaluator.check()
    said = evaluator.describe()
    try:
        again = json.loads(json.dumps(said, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"`describe` returns plain data that JSON can hold: {error}") from error
    assert again == json.loads(json.dumps(evaluator.describe())), "`describe` says the same each time"


def _runner(evaluator: Evaluator, reply: Callable[[Call], Any]) -> Runner:
    return Runner({name: Scripted(reply, model=name) for name in ("scripted", *sorted(evaluator.models))}, _RUN)


def _check_evaluation(returned: object, evaluator: Evaluator, task: Task) -> None:
    found = _asserted(contract.check_evaluation, returned, task)
    assert found.scale == evaluator.scale, f"`scale` is the evaluator's: {evaluator.scale}, not {found.scale}"
    scored = np.flatnonzero(~np.isnan(found.scores)).tolist()
    total = float(np.sum(found.probabilities))
    assert math.isclose(total, 1.0 if scored else 0.0, abs_tol=1e-9), f"probabilities sum to 1, not {total}"
    assert found.selected in (scored or [None]), f"`selected` is a candidate with a score, or None: {found.selected}"
    text = found.to_json()
    assert Evaluation.from_dict(json.loads(text)).to_json() == text, "the evaluation survives JSON"


def _check_footprint(footprint: Footprint, calls: Sequence[Call]) -> None:
    bound = footprint.characters / _CHARACTERS_PER_TOKEN + footprint.replies * footprint.max_tokens
    for call in calls:
        reply = call.sampling.max_tokens or footprint.max_tokens
        needed = sum(map(len, call.prompt.texts)) / _CHARACTERS_PER_TOKEN + reply
        assert needed <= bound, f"the footprint is an upper bound: {bound:.0f} tokens, and {needed:.0f} are needed"


def _check_repeated(
    evaluator: Evaluator, task: Task, first: Evaluation, again: Recorder, asked: Recorder, journal: DictJournal
) -> None:
    second = asyncio.run(_runner(evaluator, again).evaluate(evaluator, task, journal))
    one, other = (sorted((call.prompt_hash, call.seed) for call in each.calls) for each in (asked, again))
    assert one == other, "the same task asks for the same prompts under the same seeds"
    assert _are_equal(second, first), "the same replies give the same evaluation"


def _check_replayed(evaluator: Evaluator, task: Task, first: Evaluation, journal: DictJournal) -> None:
    asked = Recorder()
    replayed = asyncio.run(_runner(evaluator, asked).evaluate(evaluator, task, DictJournal(journal.entries)))
    assert not asked.calls, f"recorded answers are replayed, yet {len(asked.calls)} calls were made"
    assert _are_equal(replayed, first), "recorded answers give the same evaluation"


def _check_failing(evaluator: Evaluator, task: Task, reply: Callable[[Call], Any], n: int) -> None:
    """With the n-th call failing."""
    asked = Recorder(reply)

    def faulty(call: Call) -> Any:
        if len(asked.calls) == n:
            asked.calls.append(call)
            raise CallError("refused", "this call fails")
        return asked(call)

    found = asyncio.run(_runner(evaluator, faulty).evaluate(evaluator, task))
    raised = [failure.message for failure in found.failures if failure.reason == "evaluator_error"]
    assert not raised, f"a failed call is a value, not an exception: {raised}"
    assert found.status != "ok", f"after the failure of call {n} the status is partial or failed, not ok"


def _timeless(evaluation: Evaluation) -> Evaluation:
    return replace(evaluation, seconds=0.0, members=tuple(map(_timeless, evaluation.members)))


def _are_equal(one: Evaluation, other: Evaluation) -> bool:
    return _timeless(one).to_json() == _timeless(other).to_json()


def check_backend(backend: Backend, refused: str | None = None) -> None:
    """Check that a backend does what the engine relies on. Starts it, asks some short prompts, closes it.

    It answers a text, a schema, and calls side by side; one that `reads_labels` answers with a distribution for each
    place; usage is counted; a reply that is cut off says `length`; cancelled calls free what they hold; a call that
    cannot be answered raises `CallError`; `aclose` may be called twice, and before `start`.

    Args:
        backend: not started yet.
        refused: a user message that it cannot answer. None takes one beyond its context length, where that is known.

    Raises:
        AssertionError: naming the first rule that is broken. What the backend raises goes through.

    >>> check_backend(OpenAICompatible("m", f"{server.url}/v1"))
    """
    asyncio.run(_check_backend(backend, refused))


async def _check_backend(backend: Backend, refused: str | None) -> None:
    await backend.aclose()
    await backend.start()
    try:
        assert backend.capacity.slots >= 1, f"`capacity.slots` is at least 1, not {backend.capacity.slots}"
        _check_completion(await _ask(backend, _call(backend, "Say hello.")))
        await _check_schema(backend)
        if getattr(backend, "reads_labels", False):
            await _check_read_out(backend)
        if not backend.capacity.thinking_tokens:  # which a reply may have, too
            cut = await _ask(backend, _call(backend, "Count to one hundred.", max_tokens=1))
            assert cut.finish_reason == "length", f"a reply that is cut off says `length`, not {cut.finish_reason!r}"
        await _check_side_by_side(backend)
        await _check_refused(backend, refused)
    finally:
        await backend.aclose()
        await backend.aclose()


def _call(backend: Backend, text: str, *, seed: int = 0, max_tokens: int = 32, **more: Any) -> Call:
    sampling = Sampling(temperature=0.0, max_tokens=max_tokens)
    info = {"task_id": "check", "attempt": 0}
    return Call(model=backend.model, prompt=Prompt((), _content(text)), sampling=sampling, seed=seed, info=info, **more)


def _content(text: str) -> tuple[Block, ...]:
    return (Block([Segment(text, is_content=True)]),)


async def _ask(backend: Backend, call: Call) -> Completion:
    return await asyncio.wait_for(backend.generate(call), _SECONDS)


def _check_completion(said: object) -> None:
    assert isinstance(said, Completion), f"`generate` returns a Completion, not {type(said).__name__}"
    assert said.usage.calls == 1, f"a reply counts as one call, not {said.usage.calls}"
    assert said.usage.prompt_tokens > 0 < said.usage.completion_tokens, f"tokens are counted: {said.usage}"


async def _check_schema(backend: Backend) -> None:
    said = await _ask(backend, _call(backend, "Score this.", max_tokens=256, schema=_SCHEMA))
    try:
        value = json.loads(said.text)
    except ValueError as error:
        raise AssertionError(f"a call with a schema is answered with JSON: {said.text!r}") from error
    assert set(value) == set(_SCHEMA["properties"]), f"a reply has the schema's keys: {said.text!r}"
    assert 0 <= value["score"] <= 10, f"a reply keeps the schema's bounds: {said.text!r}"


async def _check_read_out(backend: Backend) -> None:
    continuations = tuple(_content(f'{{"comment":"{comment}","score":') for comment in ("Good.", "Bad."))
    read_out = ReadOut(_LABELS, continuations)
    said = await _ask(backend, _call(backend, "Score this.", schema=_SCHEMA, read_out=read_out))
    assert said.text == "", f"where continuations are read out, nothing is said, and not {said.text!r}"
    _check_distributions(said, len(continuations))
    call = _call(backend, "Score this.", max_tokens=256, schema=_LABEL_SCHEMA, read_out=ReadOut(_LABELS))
    said = await _ask(backend, call)
    _check_distributions(said, len(value_spans(said.text)))


def _check_distributions(said: Completion, places: int) -> None:
    _check_completion(said)
    found = said.distributions
    assert len(found) == places, f"each place has its distribution: there are {places}, and {len(found)} distributions"
    for each in found:
        shares = each.probabilities
        assert set(shares) <= set(_LABELS), f"probabilities are those of labels: {[*shares]}"
        assert 0 <= each.mass <= 1, f"the mass is a probability, not {each.mass}"
        assert not each.mass or math.isclose(sum(shares.values()), 1, abs_tol=1e-5), f"they sum to 1: {shares}"


async def _check_side_by_side(backend: Backend) -> None:
    calls = [_call(backend, f"Say {n}.", seed=n) for n in range(min(2 * backend.capacity.slots, 64))]
    for said in await asyncio.gather(*(_ask(backend, call) for call in calls)):
        _check_completion(said)
    started = [asyncio.ensure_future(backend.generate(call)) for call in calls]
    await asyncio.sleep(0)
    for task in started:
        task.cancel()
    outcomes = await asyncio.wait_for(asyncio.gather(*started, return_exceptions=True), _SECONDS)
    other = [each for each in outcomes if not isinstance(each, Completion | asyncio.CancelledError)]
    assert not other, f"a cancelled call ends with CancelledError, not {other[0]!r}"
    _check_completion(await _ask(backend, calls[0]))


async def _check_refused(backend: Backend, refused: str | None) -> None:
    context = backend.capacity.context_length
    text = "word " * (context + 1) if refused is None and context else refused
    if text is None:
        return
    try:
        said = await _ask(backend, _call(backend, text))
    except CallError as error:
        assert error.reason, "a CallError has a short code as its reason"
    else:
        raise AssertionError(f"a call that cannot be answered raises CallError, and this one said {said.text!r}")
