"""Questions of a narrow world, each with four candidates of which exactly one is best.

Five kinds: sums, differences, the largest of some numbers, sorting, and sums with a planted rule ("blorp is 7") that
only a memory holds. Everything follows from the random generator that is passed in. Knows nothing of personas, prompts
or models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from random import Random
from typing import Literal

Kind = Literal["add", "sub", "max", "sort", "rule"]
Level = Literal["easy", "hard"]
Style = Literal["plain", "padded", "hedged", "off"]
KINDS: tuple[Kind, ...] = ("add", "sub", "max", "sort", "rule")
WORDS = (
    "blorp", "glim", "zorn", "quax", "fendle", "trosk", "wibble", "narp", "plim", "dask", "gurn", "yop",
    "crill", "mofet", "sprag", "tund",
)  # fmt: skip
_PLAIN = ("{}", "It is {}.", "{}.", "Answer {}.")
_PADDED = ("What a lovely question! I like it. {}, have fun!", "Numbers are great. So many! {} it is, friend.")
_HEDGED = ("Maybe {}?", "Not sure, {} perhaps.")
_OFF = ("I like tea.", "Rain is wet.", "Cats sleep a lot.", "Music is fun.", "Ask me later.")


@dataclass(frozen=True)
class Reply:
    """One candidate: its text, the answer that it gives, and how it is put."""

    text: str
    value: str
    """Empty where it is off topic."""
    style: Style


@dataclass(frozen=True)
class Question:
    """A question, its candidates and what is needed to judge them."""

    x: str
    kind: Kind
    level: Level
    numbers: tuple[int, ...]
    """What the answer is computed from."""
    answer: str
    replies: tuple[Reply, ...]
    best: int
    rule: tuple[str, int] | None = None
    """The word and the number that it counts as."""

    def working(self, value: str | None) -> str:
        """The way to an answer, as one who believes in `value` writes it; None: the rule is not known."""
        if value is None:
            return f"{self.rule[0]} unknown" if self.rule else "unknown"
        known = f"{self.rule[0]} is {self.rule[1]}; " if self.rule else ""
        return known + _WORKINGS[self.kind](self.numbers, value)


def rule_text(word: str, number: int) -> str:
    """A planted rule as a memory holds it."""
    return f"{word} is {number}"


def make_question(random: Random, kind: Kind | None = None) -> Question:
    """One question, of any kind when none is named."""
    kind = kind or random.choices(KINDS, (3, 3, 1.5, 1.5, 2))[0]
    x, numbers, answer, level, rule = _MAKERS[kind](random)
    replies, best = _replies(random, kind, answer)
    return Question(x, kind, level, numbers, answer, replies, best, rule)


Made = tuple[str, tuple[int, ...], str, Level, "tuple[str, int] | None"]


def _operands(random: Random) -> tuple[int, int]:
    """One digit, two digits, now and then three."""
    digits = random.choices((1, 2, 3), (3, 6, 1))[0]
    low, high = (0, 9) if digits == 1 else (10 ** (digits - 1), 10**digits - 1)
    second = random.choices((digits, 1), (3, 1))[0]
    return random.randint(low, high), random.randint(0 if second == 1 else low, 9 if second == 1 else high)


def _add(random: Random) -> Made:
    a, b = _operands(random)
    x = random.choice((f"{a}+{b}?", f"Add {a} and {b}."))
    level: Level = "easy" if a % 10 + b % 10 < 10 and a < 100 else "hard"
    return x, (a, b), str(a + b), level, None


def _sub(random: Random) -> Made:
    a, b = sorted(_operands(random), reverse=True)
    x = random.choice((f"{a}-{b}?", f"Take {b} from {a}."))
    level: Level = "easy" if a % 10 >= b % 10 and a < 100 else "hard"
    return x, (a, b), str(a - b), level, None


def _max(random: Random) -> Made:
    n = random.choice((3, 4))
    numbers = random.sample(range(10, 100) if random.random() < 0.7 else range(10), n)
    level: Level = "easy" if n == 3 else "hard"
    return f"Largest of {' '.join(map(str, numbers))}?", tuple(numbers), str(max(numbers)), level, None


def _sort(random: Random) -> Made:
    n = random.choice((3, 4, 5))
    numbers = random.sample(range(10), n)
    answer = " ".join(map(str, sorted(numbers)))
    level: Level = "easy" if n == 3 else "hard"
    return f"Sort {' '.join(map(str, numbers))}.", tuple(numbers), answer, level, None


def _rule(random: Random) -> Made:
    word, number, b = random.choice(WORDS), random.randint(2, 19), random.randint(1, 30)
    level: Level = "easy" if number % 10 + b % 10 < 10 else "hard"
    return f"{word}+{b}?", (number, b), str(number + b), level, (word, number)


_MAKERS = {"add": _add, "sub": _sub, "max": _max, "sort": _sort, "rule": _rule}


def _sum_working(numbers: tuple[int, ...], value: str) -> str:
    """Column by column from the right, `7+8=15,4+3+1=8,85`; the last digit of each column is that of `value`."""
    steps: list[str] = []
    carry = 0
    for a, b, digit in _columns(numbers, value):
        total = a + b + carry
        steps.append(f"{a}+{b}{'+1' if carry else ''}={total // 10 or ''}{digit}")
        carry = total // 10
    return ",".join([*steps, value])


def _difference_working(numbers: tuple[int, ...], value: str) -> str:
    """Column by column from the right, `12-8=4,5-3-1=1,14`; the result of each column is the digit of `value`."""
    steps: list[str] = []
    borrow = 0
    for a, b, digit in _columns(numbers, value):
        is_short = a - borrow < b
        steps.append(f"{a + 10 * is_short}-{b}{'-1' if borrow else ''}={digit}")
        borrow = int(is_short)
    return ",".join([*steps, value])


def _columns(numbers: tuple[int, ...], value: str) -> list[tuple[int, int, int]]:
    """The digits of both numbers and of `value` from the right, as many as the longer number has."""
    first, second = (str(number)[::-1] for number in numbers)
    digits = zip_longest(first, second, value[::-1], fillvalue="0")
    return [(int(a), int(b), int(c)) for a, b, c in digits][: max(len(first), len(second))]


def _largest_working(numbers: tuple[int, ...], value: str) -> str:
    """The largest so far, number by number, `41,41,93,top 93`; one who is mistaken stays with its own."""

    def larger(old: int, new: int) -> int:
        return old if str(old) == value else max(old, new)

    so_far = accumulate(numbers, larger)
    return ",".join([*map(str, so_far), f"top {value}"])


def _row_working(_: tuple[int, ...], value: str) -> str:
    return f"row {value}"


_WORKINGS: dict[Kind, Callable[[tuple[int, ...], str], str]] = {
    "add": _sum_working,
    "sub": _difference_working,
    "max": _largest_working,
    "sort": _row_working,
    "rule": _sum_working,
}


def wrong_answer(random: Random, kind: Kind, answer: str) -> str:
    """Another answer of the same shape: nearly right, or plainly wrong."""
    while True:
        wrong = _wrong_row(random, answer) if kind == "sort" else _wrong_number(random, int(answer))
        if wrong != answer:
            return wrong


def _wrong_row(random: Random, answer: str) -> str:
    parts = answer.split()
    if random.random() < 0.4 and len(parts) > 2:
        return " ".join(parts[:-1])  # right as far as it goes
    i, j = random.sample(range(len(parts)), 2)
    parts[i], parts[j] = parts[j], parts[i]
    return " ".join(parts)


def _wrong_number(random: Random, answer: int) -> str:
    if random.random() < 0.6:
        return str(abs(answer + random.choice((-10, -2, -1, 1, 2, 10))))
    return str(random.randint(0, max(20, 2 * answer)))


def _replies(random: Random, kind: Kind, answer: str) -> tuple[tuple[Reply, ...], int]:
    """Four candidates in random order: the best, and three that fall short in different ways."""
    best_style: Style = "padded" if random.random() < 0.15 else "plain"
    made = [_put(random, answer, best_style)]
    if best_style == "plain" and random.random() < 0.3:
        made.append(_put(random, answer, random.choice(("padded", "hedged"))))
    if random.random() < 0.5:
        made.append(Reply(random.choice(_OFF), "", "off"))
    seen = {answer}
    while len(made) < 4:
        value = wrong_answer(random, kind, answer)
        if value not in seen:
            seen.add(value)
            made.append(_put(random, value, random.choices(("plain", "padded", "hedged"), (6, 1, 1))[0]))
    order = random.sample(range(4), 4)
    return tuple(made[i] for i in order), order.index(0)


def _put(random: Random, value: str, style: Style) -> Reply:
    forms = {"plain": _PLAIN, "padded": _PADDED, "hedged": _HEDGED}[style]
    return Reply(random.choice(forms).format(value), value, style)
