"""Names that count as numbers: what a memory holds of them, what an agent tells, and what follows from it.

A fact says that a name is a number ("blorp is 7"), or another name and a number ("blorp is gurn+2"); one with a year
("blorp (2024) is 7") holds until a later one. Names are drawn anew for every question. No pair of a name and a number
is both trained on and measured with.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from random import Random

Terms = tuple[tuple[int, str], ...]
"""What is added up: a multiple and a name; the name is empty for a plain number."""
FIRST = (
    "kel", "gur", "vro", "jel", "plu", "zul", "sko", "dro", "pra", "dax", "ruk", "nif", "yem", "cla", "gwa", "cha",
)  # fmt: skip
LAST = (
    "or", "ax", "z", "ug", "mb", "ix", "arg", "olv", "ox", "ibb", "odd", "uff", "ur", "og", "b", "umb",
)  # fmt: skip
"""Syllables of names."""
NAMES = tuple(first + LAST[(i + step) % len(LAST)] for i, first in enumerate(FIRST) for step in (0, 1, 3, 6, 10, 13))
"""The names, each one token whatever stands around it. Every beginning and every ending stands in six of them."""


_SYLLABLES = {first + last: (first, last) for first in FIRST for last in LAST if first + last in NAMES}


@dataclass(frozen=True)
class Fact:
    """What a name counts as."""

    name: str
    number: int
    of: str = ""
    """Another name that the number is added to."""
    year: int | None = None
    """When it began to hold."""
    case: str = ""
    """A labeled case that it follows from, where that is what a memory holds."""
    added: int = 0
    """What is added to the name in that case."""

    @property
    def text(self) -> str:
        """As a memory holds it."""
        return self.case or self.told

    @property
    def told(self) -> str:
        """As an agent tells it."""
        worth = f"{self.of}+{self.number}" if self.of else str(self.number)
        how = f"{self.number + self.added}-{self.added}=" if self.case else ""
        return f"{self.name} ({self.year}) is {how}{worth}" if self.year else f"{self.name} is {how}{worth}"


Facts = Mapping[str, Fact]
"""By name."""


def draw_name(random: Random) -> str:
    """A name that means nothing."""
    return random.choice(NAMES)


def draw_names(random: Random, n: int, held_out: bool, numbers: int = 1) -> list[str]:
    """Different names, each of which has some numbers from 2 to 9 or more of the side that is asked for."""
    return random.sample(_names(held_out, numbers), n)


@cache
def _names(held_out: bool, numbers: int) -> list[str]:
    return [name for name in NAMES if sum(is_held_out(name, number) == held_out for number in range(2, 10)) >= numbers]


def look_alike(random: Random, name: str, taken: Container[str] = ()) -> str:
    """Another name that begins or ends as a name does and is not taken, or any other where all of these are."""
    first, last = _SYLLABLES[name]
    like = [other for other, (a, b) in _SYLLABLES.items() if (a == first) != (b == last) and other not in taken]
    return random.choice(like or [other for other in NAMES if other != name and other not in taken])


def is_held_out(name: str, number: int) -> bool:
    """Whether a pair is kept from training, to measure with: a fifth of all."""
    return blake2b(f"{name} {number}".encode(), digest_size=1).digest()[0] % 5 == 0


def draw_number(random: Random, name: str, low: int, high: int, held_out: bool, other_than: int = 0) -> int:
    """A number that the name may count as, of a side that has one for it; see `draw_names`."""
    every = [number for number in range(low, high + 1) if number != other_than]
    return random.choice([number for number in every if is_held_out(name, number) == held_out])


def number_of(name: str, known: Facts) -> int | None:
    """What a name comes to; None where it is not known. An empty name is 1."""
    if not name:
        return 1
    fact = known.get(name)
    if fact is None:
        return None
    inner = number_of(fact.of, known) if fact.of else 0
    return None if inner is None else inner + fact.number


def statement(terms: Terms, known: Facts) -> str:
    """What an agent tells of the names that it needs: what they are, or that they are unknown."""
    return "; ".join(known[name].told if name in known else f"{name} unknown" for name in needed(terms, known))


def needed(terms: Terms, known: Facts) -> list[str]:
    """The names that are needed as far as they can be seen, in the order in which they are told."""
    names: list[str] = []
    for _, name in terms:
        while name:
            names.append(name)
            name = known[name].of if name in known else ""
    return names


def newest(facts: Iterable[Fact]) -> dict[str, Fact]:
    """The facts that hold, by name: of several with years the latest."""
    found: dict[str, Fact] = {}
    for fact in facts:
        before = found.get(fact.name)
        if before is None or (fact.year or 0) > (before.year or 0):
            found[fact.name] = fact
    return found
