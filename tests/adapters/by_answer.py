"""Scripted agents that give each response the number that stands in it, so that a test knows every score."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from debate.backends import Call

_SHOWN = re.compile(r"\[candidate ([A-Z]+) (\w+)\]\n(.*?)\n\[/candidate \1 \2\]", re.DOTALL)


class ByAnswer:
    """Both components of a response have the first number in it, at most 10; a riddle gets no readable reply.

    Of a response that says `secret`, nobody can know the truth: that component is abstained from.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.tasks: set[str] = set()
        """Ids of the tasks that were asked about."""

    def answer(self, call: Call) -> str:
        """The reply of an agent."""
        self.calls += 1
        self.tasks.add(call.info["task_id"])
        text = call.messages[-1]["content"]
        if "riddle" in text:
            return "I cannot say."
        candidates = {label: _judged(said) for label, _, said in _SHOWN.findall(text)}
        return json.dumps({"overall": "so it is", "candidates": candidates})


class Late:
    """A script that answers after some seconds, and knows how many calls were under way together, at most."""

    def __init__(self, answer: Callable[[Call], str], seconds: float) -> None:
        self._answer = answer
        self._seconds = seconds
        self._now = 0
        self.most = 0

    async def answer(self, call: Call) -> str:
        """The reply, late."""
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(self._seconds)
        self._now -= 1
        return self._answer(call)


def _judged(said: str) -> dict[str, Any]:
    number = re.search(r"\d+", said)
    worth = min(int(number[0]), 10) if number else 0
    comment = "it is right" if worth > 5 else "say how to add: one by one"
    truth = None if "secret" in said else worth
    return {"comment": comment, "scores": {"clarity": worth, "truth": truth}}
