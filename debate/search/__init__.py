"""Search over thoughts with any evaluator (Tree of Thoughts, seed 000): breadth first with a beam, and depth first.

    result = beam(engine, "4 9 10 13", game24.propose, game24.by_model(), width=5, depth=3)
    result.best[0].text

A thought is the text of a partial solution. `propose(x, text)` gives the texts that may come next. A whole frontier is
one task of the evaluator's, so all its questions are in the batch at once; under a run's name each is recorded in the
engine's store, and the same search again asks only for what is missing.
"""

from debate.search.beam import abeam, beam
from debate.search.depth_first import adepth_first, depth_first
from debate.search.thoughts import Level, Propose, SearchResult, Thought

__all__ = [
    "Level",
    "Propose",
    "SearchResult",
    "Thought",
    "abeam",
    "adepth_first",
    "beam",
    "depth_first",
]
