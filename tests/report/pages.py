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

from debate import DebateEvaluator
from debate.evaluators.base import Evaluator
from debate.meta_evaluation.judged import JudgedRun
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
