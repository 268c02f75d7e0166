"""Search over thoughts with any evaluator (Yao et al. 2023): breadth first with a beam, and depth first.

    result = beam(engine, "4 9 10 13", propose, evaluator, width=5, depth=3)
    result.best[0].text

A thought is the text of a partial solution. `propose(x, text)` gives the texts that may come next. A whole frontier is
one task, so all its questions are in the batch at once; under a run's name each is recorded in the engine's store, and
the same search again asks only for what is missing. `beam_flow` and `depth_first_flow` are the searches as flows, for
`Engine.adrive` and `gather`. `examples/game24.py` is a whole example.
"""

from debate.search.thoughts import (
    SEARCH,
    Level,
    Propose,
    SearchResult,
    Thought,
    beam,
    beam_flow,
    depth_first,
    depth_first_flow,
    kept_of,
)

__all__ = [
    "SEARCH",
    "Level",
    "Propose",
    "SearchResult",
    "Thought",
    "beam",
    "beam_flow",
    "depth_first",
    "depth_first_flow",
    "kept_of",
]
