"""The levels of a search over thoughts, from which the page draws its tree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from debate.evaluation import from_plain
from debate.search import SEARCH, kept_of
from debate.types import Scale

_LONGEST = 400
"""Characters of a thought that are shown; its level has it whole."""


def level_of(task_id: str, task: Mapping[str, Any], evaluation: str) -> dict[str, Any] | None:
    """One level of a search, as plain data; None for a task that is none, or whose record of it cannot be read.

    Args:
        task_id: the task's.
        task: its data, whose metadata say which thoughts it goes on from; see `debate.search`.
        evaluation: as JSON.
    """
    said, n = task["metadata"].get(SEARCH), len(task["candidates"])
    if not isinstance(said, dict):
        return None
    about = cast("dict[str, Any]", said)
    found = json.loads(evaluation)
    scale = from_plain(Scale, found["scale"])
    try:
        parents = [None if each is None else f"{each[0]}/{int(each[1])}" for each in about["parents"]]
        kept = kept_of(found["scores"], int(about["width"]), scale, about.get("threshold"))
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    if len(parents) != n or len(found["scores"]) != n:
        return None
    return {
        "id": task_id,
        "texts": [_end_of(each["text"]) for each in task["candidates"]],
        "scores": found["scores"],
        "scale": found["scale"],
        "parents": parents,
        "kept": kept,
    }


def _end_of(text: str) -> str:
    """The end of a thought, which is what it adds to the one before."""
    return text if len(text) <= _LONGEST else f"... {text[-_LONGEST:]}"
