"""Questions of a narrow world, each with two to six candidates of which exactly one is best, seldom two or none.

Sums, differences, the largest of some numbers, sorting; sums of names that count as a number, which only memories say
("blorp is 7"); and, for evaluators that ask about one candidate or compare them, what two rows have in common and how
often a word occurs. Everything follows from the random generator that is passed in. Knows nothing of personas, prompts
or models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, zip_longest
from random import Random
from typing import Literal

from judging.facts import Fact, Facts, Terms, draw_names, draw_number, number_of, statement

Kind = Literal["add", "sub", "max", "sort", "rule", "hidden", "common", "count", "outside"]
Level = Literal["easy", "hard"]
Style = Literal["plain", "padded", "hedged", "off"]
KINDS: tuple[Kind, ...] = ("add", "sub", "max", "sort", "rule", "hidden", "common", "count")
DEBATED: tuple[Kind, ...] = ("add", "sub", "max", "sort")
"""Kinds that need no memory and are debated."""
_COLORS = ("red", "blue", "green", "pink", "gray", "gold")
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
    """What the answer is computed from; empty where names stand for numbers."""
    answer: str
    replies: tuple[Reply, ...] = ()
    best: int = -1
    """-1 where no candidate is right."""
    terms: Terms = ()
    """What is added up where names stand for numbers."""
    facts: tuple[Fact, ...] = ()
    """What has to be known, in the order in which it is told."""
    stale: tuple[Fact, ...] = ()
    """Older facts that are not true any more."""
    rows: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    """The words that are compared or counted."""

    @property
    def rule(self) -> tuple[str, int] | None:
        """The word and the number that it counts as, where one rule is needed."""
        return (self.facts[0].name, self.facts[0].number) if self.kind == "rule" else None

    @property
    def has_a_rival(self) -> bool:
        """Whether a wrong candidate is put as well as the best, so that manner alone does not decide."""
        best = self.replies[self.best]
        return any(reply.style == best.style and reply.value != best.value for reply in self.replies)

    def answer_knowing(self, known: Facts) -> str | None:
        """The answer of one who knows these facts; None where they do not suffice."""
        if not self.terms:
            return self.answer
        values = [multiple * number for multiple, name in self.terms if (number := number_of(name, known)) is not None]
        return str(sum(values)) if len(values) == len(self.terms) else None

    def working(self, value: str | None, known: Facts | None = None) -> str:
        """The way to an answer, as one who believes in `value` writes it; None: too little is known.

        known: facts by name; all that are needed where nothing is given.
        """
        if not self.terms:
            return "unknown" if value is None else _WORKINGS[self.kind](self, value)
        given = {fact.name: fact for fact in self.facts if value is not None} if known is None else known
        told = statement(self.terms, given)
        return told if value is None else f"{told}; {';'.join(_adding(self.terms, given, value))}"


def _adding(terms: Terms, known: Facts, value: str) -> list[str]:
    """Chains of names, products and sums one after the other; the last one comes to `value`."""
    steps: list[tuple[Literal["+", "*"], int, int]] = []
    worth: list[int] = []
    for multiple, name in terms:
        number = _through(name, known, steps)
        if name and multiple > 1:
            steps.append(("*", multiple, number))
        worth.append(multiple * number)
    for sum_before, each in zip(accumulate(worth), worth[1:], strict=False):
        steps.append(("+", sum_before, each))
    results = [str(a + b if sign == "+" else a * b) for sign, a, b in steps[:-1]] + [value]
    return [
        added((a, b), result) if sign == "+" else f"{a}*{b}={result}"
        for (sign, a, b), result in zip(steps, results, strict=True)
    ]


def _through(name: str, known: Facts, steps: list[tuple[Literal["+", "*"], int, int]]) -> int:
    """What a name comes to; appends the steps of its chain."""
    if not name:
        return 1
    fact = known[name]
    if not fact.of:
        return fact.number
    number = _through(fact.of, known, steps)
    steps.append(("+", number, fact.number))
    return number + fact.number


def rule_text(word: str, number: int) -> str:
    """A planted rule as a memory holds it."""
    return Fact(word, number).text


def as_case(random: Random, fact: Fact) -> Fact:
    """The fact as it follows from a labeled case: a question that needs it and the candidate that is best."""
    b = random.randint(1, 9)
    x = random.choice((f"{fact.name}+{b}?", f"What is {fact.name} + {b}?"))
    best = _put(random, str(fact.number + b), "padded" if random.random() < 0.1 else "plain")
    return replace(fact, case=f'Asked "{x}", best was "{best.text}"', added=b)


def make_question(
    random: Random,
    kind: Kind | None = None,
    *,
    n: int | None = None,
    held_out: bool = False,
    shape: str | None = None,
    odd: float = 0.0,
) -> Question:
    """One question, of any kind when none is named.

    n: how many candidates; 2 to 6 when None.
    held_out: whether names and numbers are paired as in no training, or as only there.
    shape: of a hidden profile, one of `SHAPES`.
    odd: probability of two right candidates, and of none.
    """
    kind = kind or random.choices(KINDS[:6], (3, 3, 1.5, 1.5, 1, 4))[0]
    n = n or random.choices(range(2, 7), (2, 2, 4, 1.5, 1.5))[0]
    made = _MAKERS[kind](random, held_out, shape)
    replies, best = _replies(random, made, n, odd)
    return replace(made, replies=replies, best=best)


def _operands(random: Random) -> tuple[int, int]:
    """One digit, two digits, now and then three, seldom four."""
    digits = random.choices((1, 2, 3, 4), (3, 6, 1.5, 0.5))[0]
    low, high = (0, 9) if digits == 1 else (10 ** (digits - 1), 10**digits - 1)
    second = random.choices((digits, 1), (3, 1))[0]
    return random.randint(low, high), random.randint(0 if second == 1 else low, 9 if second == 1 else high)


def _add(random: Random, *_: object) -> Question:
    a, b = _operands(random)
    x = random.choice((f"{a}+{b}?", f"Add {a} and {b}.", f"What is {a} + {b}?"))
    level: Level = "easy" if a % 10 + b % 10 < 10 and a < 100 else "hard"
    return Question(x, "add", level, (a, b), str(a + b))


def _sub(random: Random, *_: object) -> Question:
    a, b = sorted(_operands(random), reverse=True)
    x = random.choice((f"{a}-{b}?", f"Take {b} from {a}.", f"What is {a} - {b}?"))
    level: Level = "easy" if a % 10 >= b % 10 and a < 100 else "hard"
    return Question(x, "sub", level, (a, b), str(a - b))


def _max(random: Random, *_: object) -> Question:
    n = random.choice((3, 4))
    numbers = random.sample(range(10, 100) if random.random() < 0.7 else range(10), n)
    level: Level = "easy" if n == 3 else "hard"
    return Question(f"Largest of {_row(numbers)}?", "max", level, tuple(numbers), str(max(numbers)))


def _sort(random: Random, *_: object) -> Question:
    n = random.choice((3, 4, 5))
    numbers = random.sample(range(10), n)
    level: Level = "easy" if n == 3 else "hard"
    return Question(f"Sort {_row(numbers)}.", "sort", level, tuple(numbers), _row(sorted(numbers)))


def _row(numbers: Sequence[object]) -> str:
    return " ".join(map(str, numbers))


def _rule(random: Random, held_out: bool, _: object) -> Question:
    [name], b = draw_names(random, 1, held_out), random.randint(1, 30)
    number = draw_number(random, name, 2, 19, held_out)
    return _of_terms(random, "rule", ((1, name), (b, "")), (Fact(name, number),))


SHAPES = ("two", "times", "three", "chain", "chain of three", "dated")
"""Two names, one of them taken several times, three names, a name that leads to another one, a fact that changed."""


def _hidden(random: Random, held_out: bool, shape: str | None) -> Question:
    shape = shape or random.choices(SHAPES, (4, 3, 2, 3, 1, 5))[0]
    names = draw_names(random, 3, held_out, numbers=2 if shape == "dated" else 1)
    numbers = [draw_number(random, name, 2, 9, held_out) for name in names]
    first, second, third = names
    plain = tuple(map(Fact, names, numbers))
    b = random.randint(1, 9)
    match shape:
        case "two":
            terms = random.choice((((1, first), (1, second)), ((1, first), (1, second), (b, ""))))
            return _of_terms(random, "hidden", terms, plain[:2])
        case "times":
            terms = random.sample([(1, first), (random.randint(2, 4), second)], 2)
            return _of_terms(random, "hidden", tuple(terms), plain[:2])
        case "three":
            return _of_terms(random, "hidden", ((1, first), (1, second), (1, third)), plain)
        case "chain":
            chain = (Fact(first, numbers[0], of=second), plain[1])
            return _of_terms(random, "hidden", ((1, first), (b, "")), chain)
        case "chain of three":
            chain = (Fact(first, numbers[0], of=second), Fact(second, numbers[1], of=third), plain[2])
            return _of_terms(random, "hidden", ((1, first), (b, "")), chain)
        case _:
            old, new = sorted(random.sample(range(2020, 2027), 2))
            before = draw_number(random, first, 2, 9, held_out, other_than=numbers[0])
            facts = (Fact(first, numbers[0], year=new),)
            terms = ((1, first), (b, ""))
            return replace(_of_terms(random, "hidden", terms, facts), stale=(Fact(first, before, year=old),))


def _of_terms(random: Random, kind: Kind, terms: Terms, facts: tuple[Fact, ...]) -> Question:
    parts = [
        (str(multiple) if not name else f"{multiple} {name}" if multiple > 1 else name) for multiple, name in terms
    ]
    x = random.choice(("+".join(parts) + "?", f"What is {' + '.join(parts)}?"))
    asked = Question(x, kind, "easy", (), "", terms=terms, facts=facts)
    answer = asked.answer_knowing({fact.name: fact for fact in facts})
    assert answer is not None
    if kind != "rule":
        return replace(asked, answer=answer)
    numbers = (facts[0].number, terms[1][0])
    level: Level = "easy" if numbers[0] % 10 + numbers[1] % 10 < 10 else "hard"
    return replace(asked, answer=answer, numbers=numbers, level=level)


def _common(random: Random, *_: object) -> Question:
    """Set intersection (Besta et al. 2023) in small."""
    first = random.sample(range(10), random.choice((3, 4)))
    second = random.sample(range(10), random.choice((3, 4)))
    answer = _row([each for each in first if each in second]) or "none"
    rows = (tuple(map(str, first)), tuple(map(str, second)))
    return Question(f"Common to {_row(first)} and {_row(second)}?", "common", "easy", (), answer, rows=rows)


def _count(random: Random, *_: object) -> Question:
    """Counting keywords (Besta et al. 2023) in small."""
    word, *others = random.sample(_COLORS, random.choice((3, 4)))
    row = random.choices((word, *others), (2, *(1 for _ in others)), k=random.randint(3, 6))
    x = f"Count {word} in {_row(row)}."
    return Question(x, "count", "easy", (), str(row.count(word)), rows=((word,), tuple(row)))


_MAKERS: Mapping[Kind, Callable[..., Question]] = {
    "add": _add, "sub": _sub, "max": _max, "sort": _sort, "rule": _rule, "hidden": _hidden, "common": _common,
    "count": _count,
}  # fmt: skip


def added(numbers: tuple[int, ...], value: str) -> str:
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


def _common_working(rows: Sequence[Sequence[str]], value: str) -> str:
    """Member by member, `1 no,4 yes,7 no,row 4`."""
    return ",".join([*(f"{each} {'yes' if each in rows[1] else 'no'}" for each in rows[0]), f"row {value}"])


def _count_working(rows: Sequence[Sequence[str]], value: str) -> str:
    """Word by word, how many there have been so far, `red 1,blue 1,red 2,2 red`."""
    (word,), row = rows
    so_far = accumulate(int(each == word) for each in row)
    return ",".join([*(f"{each} {n}" for each, n in zip(row, so_far, strict=True)), f"{value} {word}"])


_WORKINGS: Mapping[Kind, Callable[[Question, str], str]] = {
    "add": lambda asked, value: added(asked.numbers, value),
    "sub": lambda asked, value: _difference_working(asked.numbers, value),
    "max": lambda asked, value: _largest_working(asked.numbers, value),
    "sort": lambda _, value: f"row {value}",
    "common": lambda asked, value: _common_working(asked.rows, value),
    "count": lambda asked, value: _count_working(asked.rows, value),
}


def wrong_answer(random: Random, kind: Kind, answer: str) -> str:
    """Another answer of the same shape: nearly right, or plainly wrong."""
    while True:
        is_row = kind in ("sort", "common")
        wrong = _wrong_row(random, kind, answer) if is_row else _wrong_number(random, int(answer))
        if wrong != answer:
            return wrong


def _wrong_row(random: Random, kind: Kind, answer: str) -> str:
    parts = answer.split() if answer != "none" else []
    if kind == "common" and (len(parts) < 2 or random.random() < 0.6):
        other = str(random.randrange(10))
        changed = [*parts, other] if other not in parts else [part for part in parts if part != other]
        return " ".join(changed) or "none"
    if random.random() < 0.4 and len(parts) > 2:
        return " ".join(parts[:-1])  # right as far as it goes
    i, j = random.sample(range(len(parts)), 2)
    if kind == "common" or random.random() < 0.15:
        parts[i] = str(random.randrange(10))
    else:
        parts[i], parts[j] = parts[j], parts[i]
    return " ".join(dict.fromkeys(parts))


def _wrong_number(random: Random, answer: int) -> str:
    if random.random() < 0.6:
        return str(abs(answer + random.choice((-10, -2, -1, 1, 2, 10))))
    return str(random.randint(0, max(20, 2 * answer)))


def _replies(random: Random, asked: Question, n: int, odd: float) -> tuple[tuple[Reply, ...], int]:
    """The candidates in random order: the best, and others that fall short in different ways."""
    answer, best_style = asked.answer, "padded" if random.random() < 0.15 else "plain"
    oddity = random.choices(("two", "none", ""), (odd, odd, 1 - 2 * odd))[0]
    made = [_put(random, answer, best_style)] if oddity != "none" else []
    seen = {answer}
    for fact in asked.stale:
        value = asked.answer_knowing({fact.name: fact})
        if value is not None and len(made) < n:
            seen.add(value)
            made.append(_put(random, value, "plain"))
    if oddity == "two" and len(made) < n:
        made.append(_put(random, answer, best_style))
    if best_style == "plain" and len(made) < n and random.random() < 0.3 and oddity != "none":
        made.append(_put(random, answer, random.choice(("padded", "hedged"))))
    if len(made) < n and random.random() < 0.12 * n:
        made.append(Reply(random.choice(_OFF), "", "off"))
    while len(made) < n:
        value = wrong_answer(random, asked.kind, answer)
        if value not in seen:
            seen.add(value)
            made.append(_put(random, value, random.choices(("plain", "padded", "hedged"), (6, 1, 1))[0]))
    order = random.sample(range(n), n)
    return tuple(made[i] for i in order), order.index(0) if oddity != "none" else -1


def _put(random: Random, value: str, style: Style) -> Reply:
    forms = {"plain": _PLAIN, "padded": _PADDED, "hedged": _HEDGED}[style]
    return Reply(random.choice(forms).format(value), value, style)
