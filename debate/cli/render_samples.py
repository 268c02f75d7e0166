"""What a judge that does not debate replied, and what came of it, as a person would read it.

Renderables of `rich`, like those of `debate.cli.render_debate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from rich.console import RenderableType

from debate.cli.console import block, escape_controls, heading, line
from debate.evaluation import Evaluation
from debate.types import Judgment


def samples(evaluation: Evaluation, *, raw: bool) -> Iterator[RenderableType]:
    """Every reply, with what was read in it."""
    if evaluation.judgments:
        yield ""
        yield heading("Replies")
    for sample in evaluation.judgments:
        yield line(f"{about(sample)}: {found(sample)}", "bold")
        for n, each in enumerate(sample.invalid_replies):
            yield block(f"reply {n + 1} could not be read ({each.reason}): {each.message}", style="yellow")
            if raw:
                yield block(each.text or "(empty)", indent=6)
        if sample.failure is not None:
            yield block(f"failed ({sample.failure.reason}): {sample.failure.message}", style="red")
        if sample.text.strip():
            yield block(sample.text.strip())


def about(sample: Judgment) -> str:
    """What a reply is about: candidates from 1, a step, which of several it is."""
    several = "s" if len(sample.candidates) > 1 else ""
    text = f"candidate{several} {', '.join(str(j + 1) for j in sample.candidates)}"
    if sample.step is not None:
        text += f", step {sample.step + 1}"
    return f"{text}, sample {sample.sample + 1}"


def found(sample: Judgment) -> str:
    """What was read in a reply."""
    if sample.failure is not None:
        return "nothing"
    if sample.value is not None:
        return f"{sample.value:g}"
    return " > ".join(str(j + 1) for j in sample.ranking) or "no preference"


def details(evaluation: Evaluation) -> Iterator[RenderableType]:
    """What else the evaluator found out."""
    for name, value in evaluation.details.items():
        if value not in ({}, [], None):
            yield line(f"{name.replace('_', ' ')}: {escape_controls(_plain(value))}", "dim")


def _plain(value: Any) -> str:
    match value:
        case float():
            return f"{value:.3g}"
        case Mapping():
            members = cast("Mapping[str, Any]", value)
            return ", ".join(f"{key} {_plain(each)}" for key, each in members.items() if each not in ({}, []))
        case list() | tuple():
            items = cast("list[Any]", value)
            return "; ".join(map(_plain, items)) if any(map(_is_nested, items)) else " ".join(map(_plain, items))
        case None:
            return "-"
        case _:
            return str(value)


def _is_nested(value: object) -> bool:
    return isinstance(value, list | tuple | Mapping)
