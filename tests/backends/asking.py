"""Single calls and small debates for backends that talk to a server."""

from __future__ import annotations

import asyncio
from typing import Any

from debate.backends import Call, RetryPolicy
from debate.backends.http.client import HTTPBackend
from debate.flow import Block, Completion, Prompt, Segment
from debate.parsing.debate_reply import ReplyForm
from debate.types import Sampling, Task

SCHEMA = ReplyForm(("A", "B"), ("c0", "c1")).schema
QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.01, timeout=2, deadline=8)


def call_of(text: str = "Judge.", **changes: Any) -> Call:
    """A call whose user message is `text`, all of it content."""
    prompt = Prompt((Block([Segment("You judge.", is_content=False)]),), (Block([Segment(text, is_content=True)]),))
    told: dict[str, Any] = {"schema": SCHEMA, "sampling": Sampling(temperature=0.5, max_tokens=64), **changes}
    return Call(model="m", prompt=prompt, seed=7, **told)


def ask(backend: HTTPBackend, *calls: Call) -> list[Completion | BaseException]:
    """What a backend, started and closed again, says to calls made side by side."""

    async def scene() -> list[Completion | BaseException]:
        await backend.start()
        try:
            return await asyncio.gather(*map(backend.generate, calls), return_exceptions=True)
        finally:
            await backend.aclose()

    return asyncio.run(scene())


def answer(backend: HTTPBackend, call: Call | None = None) -> Completion:
    """The completion of one call, or its error."""
    (outcome,) = ask(backend, call or call_of())
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def tasks(n: int) -> list[Task]:
    """Tasks t0, t1, ... of two candidates each."""
    return [Task(f"Question {k}?", ["yes", "no"], id=f"t{k}") for k in range(n)]
