"""Which function of this package answers which function of the originals.

A case's `function` may say more after the name (`get_value_hybrid (models stubbed)`): the longest known name that it
begins with counts. GoT has three functions called `num_errors`; their files tell them apart.
"""

from __future__ import annotations

from conforming import evaluation, flows, got, steps, tot
from conforming.cases import Case
from conforming.verdicts import Answer

ANSWERS: dict[str, Answer] = {
    **tot.ANSWERS,
    **got.ANSWERS,
    **evaluation.ANSWERS,
    **steps.ANSWERS,
    **flows.ANSWERS,
}


def answer_to(case: Case) -> Answer | None:
    """What answers a case; None when nothing does."""
    if case.function == "num_errors":
        return got.num_errors(case)
    name = _longest(case.function, ANSWERS)
    return ANSWERS[name] if name else None


def _longest(function: str, names: dict[str, Answer]) -> str | None:
    known = [name for name in names if function.startswith(name) and not function[len(name) :][:1].isidentifier()]
    return max(known, key=len, default=None)
