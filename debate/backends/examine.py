"""What a model that can be asked is able to do, found by asking it a few short questions.

Knows nothing of how that is shown. Nothing is recorded.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from debate.backends.base import Backend, Call
from debate.errors import BackendError, ConfigError
from debate.flow import Block, Completion, Prompt, ReadOut, Segment
from debate.parsing.schema import bounded_text, object_of, whole_number_in
from debate.scoring.distributions import LEAST_MASS
from debate.types import Sampling, Usage

Seeds = Literal["kept", "alike", "ignored"]
"""`kept`: equal seeds give equal replies, and another seed another. `alike`: all replies are equal. `ignored`: equal
seeds give different replies."""
_QUESTION = "What is the capital of Australia, and how sure are you of that? Reply in JSON."
_SCHEMA = object_of({"place_name": bounded_text(80), "sureness": whole_number_in(0, 10)})
"""Keys that nobody would choose who has not seen them."""
_FREE_QUESTION = "Invent a name for a boat."
_BEGUN = '{"place_name": "Canberra", "sureness": '
_LABELS = tuple(map(str, range(11)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the model showed.

    Attributes:
        model: its name.
        address: of its server; None where there is none.
        reply: the first reply.
        seconds: of the first reply.
        usage: of the first reply, as the backend counts it; zeros where the server states no numbers.
        schema_form: how the reply's JSON schema is sent, one of `response_format.FORMS`; None where the backend has one
            way alone.
        follows_schema: whether the first reply has the schema's keys, which the question does not name.
        seeds: what seeds do; None where the model does not answer without a schema.
        reads: for each `readout` setting that is read from probabilities, whether it works.
        read_fault: why nothing could be read out; None where something could.
    """

    model: str
    address: str | None
    reply: str
    seconds: float
    usage: Usage
    schema_form: str | None
    follows_schema: bool
    seeds: Seeds | None
    reads: Mapping[str, bool]
    read_fault: str | None


async def examine(backend: Backend) -> Examined:
    """Start a backend, ask its model half a dozen short questions, and close it.

    Raises:
        ConfigError: for a backend that asks no chat model.
        BackendError: when the model cannot be asked.
    """
    if not (getattr(backend, "is_chat", False) or getattr(backend, "reads_labels", False)):
        raise ConfigError("asks no chat model, so no question can be put to it", field="backend")
    await backend.start()
    try:
        return await _examined(backend)
    finally:
        await backend.aclose()


async def _examined(backend: Backend) -> Examined:
    began = time.perf_counter()
    first = await _ask(backend, _QUESTION, schema=_SCHEMA)
    seconds = time.perf_counter() - began
    fault, reads = await _reads(backend)
    form = getattr(getattr(backend, "response_format", None), "current", None)
    return Examined(
        model=backend.model,
        address=getattr(backend, "base_url", None),
        reply=first.text,
        seconds=seconds,
        usage=first.usage,
        schema_form=form if isinstance(form, str) else None,
        follows_schema=_follows(first.text),
        seeds=await _seeds(backend),
        reads=reads,
        read_fault=fault,
    )


async def _ask(backend: Backend, question: str, *, seed: int = 0, **how: Any) -> Completion:
    sampling = how.pop("sampling", Sampling(temperature=0.0, max_tokens=200))
    prompt = Prompt.from_messages(question)
    return await backend.generate(Call(model=backend.model, prompt=prompt, sampling=sampling, seed=seed, **how))


def _follows(text: str) -> bool:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and [*cast("dict[str, Any]", found)] == [*_SCHEMA["properties"]]


async def _seeds(backend: Backend) -> Seeds | None:
    sampling = Sampling(temperature=1.0, max_tokens=40)
    try:
        one, again, other = [
            (await _ask(backend, _FREE_QUESTION, seed=seed, sampling=sampling)).text for seed in (1, 1, 2)
        ]
    except BackendError:
        return None
    return "ignored" if one != again else "alike" if one == other else "kept"


async def _reads(backend: Backend) -> tuple[str | None, dict[str, bool]]:
    """Why nothing can be read out, and for each way of reading whether it works."""
    reads = {"expected": False, "cells": False}
    if not getattr(backend, "reads_labels", False):
        return "this backend gives no probabilities", reads
    begun = ((Block([Segment(_BEGUN, is_content=False)]),),)
    asked: dict[str, dict[str, Any]] = {
        "expected": {"schema": _SCHEMA, "read_out": ReadOut(_LABELS)},
        "cells": {"read_out": ReadOut(_LABELS, begun)},
    }
    fault = None
    for name, how in asked.items():
        try:
            found = (await _ask(backend, _QUESTION, **how)).distributions
        except BackendError as error:
            fault = fault or error.message
            continue
        reads[name] = bool(found) and all(each.mass >= LEAST_MASS for each in found)
    return (fault or "the labels 0 to 10 have too little of the probability") if not any(
        reads.values()
    ) else None, reads
