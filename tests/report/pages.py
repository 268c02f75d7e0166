"""Reports of small runs, and what is read back from them."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from debate import CallbackEvaluator, DebateEvaluator, Engine, Scale
from debate.backends import Call, Scripted
from debate.evaluators.base import Evaluator
from debate.meta_evaluation.judged import JudgedRun
from debate.search import beam
from debate.testing import reply_for
from tests.meta_evaluation.small_runs import scripted_run

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
TEXTS = [
    HOSTILE,
    "[link](javascript:alert(1))",
    "a\u202eb\u200bc\u0000d\u001b[31me",
    "long " * 2_000,
]


def tasks(count: int = 12) -> list[dict[str, Any]]:
    """Labeled tasks of two groups."""
    return [
        {
            "id": f"t{n}",
            "x": f"Question {n}?",
            "candidates": ["one", "two", "three"],
            "metadata": {"best": n % 3, "group": "odd" if n % 2 else "even"},
        }
        for n in range(count)
    ]


def debated(folder: Path, given: list[dict[str, Any]] | None = None, **settings: Any) -> JudgedRun:
    """A run of debates whose scores are drawn."""
    evaluator = DebateEvaluator("general", **_two_rounds(settings))
    return _elsewhere(folder, given or tasks(), evaluator)


def _two_rounds(settings: dict[str, Any]) -> dict[str, Any]:
    return {"rounds": 2} | settings


def evaluated(folder: Path, evaluator: Evaluator, given: list[dict[str, Any]] | None = None) -> JudgedRun:
    """A run of another evaluator."""
    return _elsewhere(folder, given or tasks(4), evaluator)


def doubtful(folder: Path, count: int = 12) -> JudgedRun:
    """A run of balanced debates, some of whose two orders disagree; of every third task a candidate has no score."""
    given = [task | {"candidates": ["one", "two", "none" if n % 3 else "mute"]} for n, task in enumerate(tasks(count))]
    evaluator = DebateEvaluator("general", rounds=2, candidate_order="balanced", abstain=True)
    return _elsewhere(folder, given, evaluator, _without_mute)


def searched(store: Path) -> None:
    """A recorded search over thoughts, three levels deep; each thought adds a letter, and every b is worth a point."""

    def search() -> None:
        counting = CallbackEvaluator(_b_count, scale=Scale(0, 3))
        with Engine(Scripted(reply_for), store=store) as engine:
            beam(engine, "Which word has most b?", lambda x, text: [text + each for each in "abc"], counting,
                 width=2, depth=3, run="letters")  # fmt: skip

    with ThreadPoolExecutor(1) as thread:
        thread.submit(search).result()


def _b_count(x: str, text: str) -> int:
    return text.count("b")


def _without_mute(call: Call) -> str:
    """A reply that abstains from the candidate that says `mute`, and from no other."""
    reply = json.loads(reply_for(call))
    for label, j in call.info["labels"].items():
        scores, is_mute = reply["candidates"][label]["scores"], j == 2 and "mute" in str(call.messages)
        reply["candidates"][label]["scores"] = {name: None if is_mute else score or 0 for name, score in scores.items()}
    return json.dumps(reply)


def _elsewhere(*arguments: Any) -> JudgedRun:
    """A scripted run made in another thread: in this one, a browser has an event loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(scripted_run, *arguments).result()


def unpacked(page: str, name: str) -> Any:
    """The data of an inert script."""
    found = re.search(f'<script type="application/gzip" id="{name}">([^<]*)</script>', page)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def noted(told: list[str], key: str) -> Callable[[Any], None]:
    """Add an attribute of what it is called with, as an event of a page."""
    return lambda event: told.append(str(getattr(event, key)))
