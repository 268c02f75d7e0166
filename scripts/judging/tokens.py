"""The judge's tokenizer: digits alone, long pieces for what is said often, single bytes for everything else.

The marks of its templates are control tokens, which no content can forge. Knows nothing of the world but its texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
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


def with_words(tokenizer: Any, words: Iterable[str]) -> Any:
    """The same tokenizer, in which each of some words is a piece, made as BPE makes them."""
    from tokenizers import Tokenizer

    state = json.loads(tokenizer.backend_tokenizer.to_str())
    model = state["model"]
    for word in words:
        while len(pieces := tokenizer.tokenize(word)) > 1:
            model["merges"].append(pieces[:2])
            model["vocab"].setdefault(pieces[0] + pieces[1], len(model["vocab"]))
            tokenizer._tokenizer = Tokenizer.from_str(json.dumps(state))
    return tokenizer
