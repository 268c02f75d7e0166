"""The Game of 24 by beam search: reach 24 from four numbers with + - * / (Tree of Thoughts, Yao et al. 2023).

    python examples/game24.py "4 9 10 13" --model NAME
    python examples/game24.py                               # valued by trying all moves; seconds, anywhere

A thought is a line per move:

    4 + 8 = 12 (left: 6 12 9)

The proposer makes every possible move. Who values the thoughts is open: `by_model` asks the model whether 24 can still
be reached, `by_search` finds it out. Exit code 3: no solution was found; 2: bad input; 4: the engine failed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

from debate import CallbackEvaluator, Engine, Scale, ValueEvaluator
from debate.backends import Scripted
from debate.config.settings import RunSettings
from debate.errors import BackendError, DebateError
from debate.parsing.values import LabelMap
from debate.scorers import scored_on
from debate.search import beam

LABELS = LabelMap({"sure": 20.0, "likely": 1.0, "impossible": 0.001})
"""Tree of Thoughts' worth of the words."""
TARGET = Fraction(24)
_LEFT = re.compile(r"\(left: ([^()]*)\)\s*$")


def numbers_left(x: str, text: str) -> tuple[Fraction, ...]:
    """The numbers that are left after the moves of a thought; those of the problem before any."""
    found = _LEFT.search(text)
    return tuple(Fraction(word) for word in (found[1] if found else x).split())


def propose(x: str, text: str) -> Iterator[str]:
    """Every move with two of the numbers that are left."""
    left = numbers_left(x, text)
    for i, j in permutations(range(len(left)), 2):
        rest = [number for k, number in enumerate(left) if k not in (i, j)]
        for sign, result in _results(left[i], left[j]):
            if sign in "+*" and i > j:
                continue  # the same move the other way round
            remaining = " ".join(map(str, sorted([*rest, result])))
            yield f"{text}{left[i]} {sign} {left[j]} = {result} (left: {remaining})\n"


def is_solved(x: str, text: str) -> bool:
    """Whether 24 alone is left."""
    return numbers_left(x, text) == (TARGET,)


def by_model(samples: int = 3) -> ValueEvaluator:
    """The model says sure, likely or impossible, and the sum of its samples counts, as in Tree of Thoughts."""
    return ValueEvaluator(samples=samples, reader=LABELS, reduce="sum", template="game24")


@scored_on(Scale(0.0, 1.0))
def reachable(x: str, text: str) -> float:
    """1 where 24 can still be reached, else 0; by trying all moves."""
    return float(_can_reach(tuple(sorted(numbers_left(x, text)))))


def by_search() -> CallbackEvaluator:
    """What is possible, found out instead of judged."""
    return CallbackEvaluator(reachable)


@lru_cache(maxsize=100_000)
def _can_reach(left: Sequence[Fraction]) -> bool:
    if len(left) == 1:
        return left[0] == TARGET
    return any(
        _can_reach(tuple(sorted([*(number for k, number in enumerate(left) if k not in (i, j)), result])))
        for i, j in permutations(range(len(left)), 2)
        for _, result in _results(left[i], left[j])
    )


def _results(a: Fraction, b: Fraction) -> Iterator[tuple[str, Fraction]]:
    yield "+", a + b
    yield "-", a - b
    yield "*", a * b
    if b:
        yield "/", a / b


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="?", default="4 9 10 13")
    for flag in ("--model", "--backend", "--base-url", "--seed"):
        parser.add_argument(flag, help="as for `debate run`")
    options = parser.parse_args(arguments)
    try:
        settings = RunSettings.read(
            None, {name: value for name, value in vars(options).items() if value and name != "numbers"}
        )
        backend = Scripted(lambda call: "") if settings.model is None else settings.open_backend()
        valued = by_search() if settings.model is None else by_model()
        with Engine(backend, seed=settings.seed) as engine:
            found = beam(engine, options.numbers, propose, valued, width=5, depth=3, is_solved=is_solved)
    except DebateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4 if isinstance(error, BackendError) else 2
    if not found.is_solved:
        return 3
    print(found.best[0].text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
