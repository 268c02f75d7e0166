"""The judge's tokenizer: digits alone, long pieces for what is said often, single bytes for everything else.

The marks of its templates are control tokens, which no content can forge. Knows nothing of the world but its texts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from byte_level import train_byte_level

MARKS = ("input", "context", "candidate", "turn", "of", "agent", "memory", "retry")


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """Byte-level BPE over whole phrases: pieces may cross spaces, but never hold a digit beside something else."""
    from tokenizers import pre_tokenizers

    pieces = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return train_byte_level(texts, vocabulary, pieces, [f"<|{mark}|>" for mark in MARKS])


def with_syllables(tokenizer: Any, syllables: Iterable[str]) -> Any:
    """The same tokenizer, in which each of some syllables is a piece, made as BPE makes them."""
    from tokenizers import Tokenizer

    state = json.loads(tokenizer.backend_tokenizer.to_str())
    model = state["model"]
    for syllable in syllables:
        while len(pieces := tokenizer.tokenize(syllable)) > 1:
            model["merges"].append(pieces[:2])
            model["vocab"].setdefault(pieces[0] + pieces[1], len(model["vocab"]))
            tokenizer._tokenizer = Tokenizer.from_str(json.dumps(state))
    return tokenizer


def with_pieces(tokenizer: Any, texts: Iterable[str], kept: Iterable[str], n: int = 32) -> Any:
    """The same tokenizer with at most `n` more pieces for `texts`, made as BPE makes them.

    kept: texts whose tokens stay as they are.
    """
    from tokenizers import Tokenizer

    def split(text: str) -> list[str]:
        return tokenizer.convert_ids_to_tokens(tokenizer.encode(text, add_special_tokens=False))

    state = json.loads(tokenizer.backend_tokenizer.to_str())
    model = state["model"]
    barred = {pair for text in set(kept) for pair in pairwise(split(text))}
    rows = [split(text) for text in texts]
    for _ in range(n):
        counts = Counter(pair for row in rows for pair in pairwise(row) if pair not in barred and not _digits(*pair))
        if not counts or counts.most_common(1)[0][1] < len(rows) // 200:
            break
        first, second = counts.most_common(1)[0][0]
        model["merges"].append([first, second])
        model["vocab"][first + second] = len(model["vocab"])
        rows = [_merged(row, first, second) for row in rows]
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(state))
    return tokenizer


def _digits(*pieces: str) -> bool:
    """Whether a piece is a digit, which stands alone."""
    return any(piece.isdigit() for piece in pieces)


def _merged(row: Sequence[str], first: str, second: str) -> list[str]:
    merged: list[str] = []
    for piece in row:
        if merged and merged[-1] == first and piece == second:
            merged[-1] = first + second
        else:
            merged.append(piece)
    return merged
