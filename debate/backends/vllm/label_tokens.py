"""Labels as tokens: what a model must be asked at a place where a label is due, and what its answers say of the labels.

A label of one token has that token's probability. Of several, it has the product over its tokens; and one whose tokens
begin a longer label (`1` of `10`) has what the tokens that lead on to the longer one leave to it. So the labels form a
trie, of which each inner place that is likely enough is read by a one-token request of its own.

Knows nothing of vLLM, and asks nobody.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from debate.backends.base import READOUT_HINT
from debate.errors import ConfigError
from debate.parsing.places import value_spans
from debate.scoring.distributions import distribution_of
from debate.types import LabelDistribution

LEAST_SHARED = 1e-6
"""Probability of a beginning that several labels share, above which it is read what they make of it. Below, it all goes
to the label that ends there: of scores from 0 to 10, that moves no expectation by more than 1e-5."""

Path = tuple[int, ...]
"""Tokens from the place on."""
Read = dict[Path, Mapping[int, float]]
"""Probabilities of tokens, by the path after which they were read; of those that lead to labels alone."""


class LabelTokens:
    """The trie of some labels.

    labels: which label each path of tokens spells; several may spell the same one.
    """

    def __init__(self, labels: Mapping[Path, str]) -> None:
        self._labels = dict(labels)
        nexts: dict[Path, dict[int, None]] = {}
        for path in labels:
            for depth, token in enumerate(path):
                nexts.setdefault(path[:depth], {})[token] = None
        self.nexts: dict[Path, list[int]] = {path: list(tokens) for path, tokens in nexts.items()}
        """The tokens that lead on to labels, after each path from which there are any."""
        self.tokens = sorted({token for path in labels for token in path})
        """All tokens of the labels."""
        self._n_labels = Counter(path[:depth] for path in labels for depth in range(1, len(path)))

    def shared(self, path: Path) -> int | None:
        """The next token that most labels share, of those that lead on to another; None where none does.

        A request that reads after `path` also reads after this one, where its own next token is made to be this one.
        """
        leading = [token for token in self.nexts[path] if (*path, token) in self.nexts]
        return max(leading, key=lambda token: self._n_labels[*path, token], default=None)

    def due(self, read: Read) -> list[Path]:
        """The paths after which must be read before the distribution is known: at first the empty one."""
        if () not in read:
            return [()]
        reached = [path for path in self.nexts if path not in read and path[:-1] in read]
        return [path for path in reached if self._probability(path, read) > LEAST_SHARED]

    def distribution(self, read: Read) -> LabelDistribution:
        """The labels' distribution, once nothing is due."""
        raw = dict.fromkeys(self._labels.values(), 0.0)
        for path, label in self._labels.items():
            if path[:-1] in read:
                onward = sum(read[path].values()) if path in read else 0.0
                raw[label] += self._probability(path, read) * max(0.0, 1.0 - onward)
        return distribution_of(raw)

    def along(self, path: Path, tokens: Sequence[int], row: Callable[[int], Mapping[int, float]]) -> Read:
        """What is known of the labels where the model has said these tokens after `path`.

        row: probabilities of `self.tokens` at the n-th of them.
        """
        read: Read = {}
        for n, token in enumerate(tokens):
            if path not in self.nexts:
                break
            found = row(n)
            read[path] = {each: found[each] for each in self.nexts[path]}
            path = (*path, token)
        return read

    def nothing(self) -> Read:
        """What is known at a place where no label can be told: that none has any probability."""
        return {(): dict.fromkeys(self.nexts[()], 0.0)}

    def _probability(self, path: Path, read: Read) -> float:
        found = 1.0
        for depth, token in enumerate(path):
            found *= read[path[:depth]][token]
        return found


def spell(labels: Iterable[str], encode: Callable[[str], list[int]], decode: Callable[[list[int]], str]) -> LabelTokens:
    """The labels as they are spelled after a colon, as JSON's values are.

    A blank before a label belongs to it where the tokenizer joins the two: ` 7` is then the label `7`, too.

    Raises:
        ConfigError: where the tokenizer joins the colon and a label, so that no place is in between.
    """
    start = encode('":')
    spelled: dict[Path, str] = {}
    for label in labels:
        tokens, spaced = (encode(f'":{blank}{label}') for blank in ("", " "))
        if tokens[: len(start)] != start or len(tokens) == len(start):
            problem = f"the model's tokenizer joins the label {label!r} with the colon before it"
            raise ConfigError(problem, field="readout", hint=READOUT_HINT)
        spelled[tuple(tokens[len(start) :])] = label
        rest = tuple(spaced[len(start) :])
        if spaced[: len(start)] == start and rest and decode([rest[0]]).strip():
            spelled.setdefault(rest, label)
    return LabelTokens(spelled)


def places(text: str, ends: Sequence[int]) -> list[int | None]:
    """Index of the token that begins each value of a reply; None where one begins before the value, with more than
    white space.

    ends: where each token of the reply ends, in characters of the text.
    """
    found: list[int | None] = []
    for start, _ in value_spans(text):
        at = bisect_right(ends, start)
        begin = ends[at - 1] if at else 0
        found.append(None if text[begin:start].strip() else at)
    return found


def count_distinct(sequences: Iterable[list[int]]) -> int:
    """Tokens of some sequences, those that they share at their beginning counted once."""
    ordered = sorted(sequences)
    return sum(map(len, ordered[:1])) + sum(len(after) - _shared(before, after) for before, after in pairwise(ordered))


def _shared(first: Sequence[int], second: Sequence[int]) -> int:
    for n, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return n
    return min(len(first), len(second))
