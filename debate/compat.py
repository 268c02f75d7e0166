"""The `compat` options: what an original program literally does, where ours does otherwise.

A function that has such an option takes the name of the program it follows:

    seed           the code blocks of seed document 000
    tot            tree-of-thought-llm, the programs of Tree of Thoughts
    got            graph-of-thoughts, the programs of seed 001
    x1             x1's prompted step evaluation, seed 002
    sal            search-and-learn, its aggregation of step scores
    processbench   ProcessBench's evaluation script

They exist to reproduce published figures, accidents included. This module does not know what the programs do.
"""

from __future__ import annotations


def is_compat(given: str | None, name: str) -> bool:
    """Whether the `compat` option of a function that follows one program is set.

    Raises ValueError for the name of another program.
    """
    if given not in (None, name):
        raise ValueError(f"unknown compat {given!r}, expected {name!r} or None")
    return given == name
