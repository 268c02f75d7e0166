"""What an ideal persona says and scores, given what it believes the answer to be.

The Critic finds the error, the Supporter sees what is near, the others weigh. In the first round of a hard question the
first two go further from the middle than they do once they have heard each other. A belief may be wrong: that is how a
debate's history comes to hold mistakes. Knows nothing of prompts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from judging.facts import Facts
from judging.world import Question, Reply

Style = Literal["named", "compact", "none"]
"""How a reply says its scores: by name, in the order of the components, or not at all."""
PERSONAS = ("Critic", "Supporter", "Neutral Observer", "Expert")
"""Those of the judge's profile, and a fourth one for larger debates."""
COMPONENTS = ("accuracy", "relevance", "completeness")
OUTSIDE = "outside what I was taught"
"""Why an agent abstains."""
_WORDS = {
    "right": ("holds", "is right", "fits", "fits"),
    "near": ("misses", "comes near", "is near", "is near"),
    "part": ("lacks some", "has most", "is part", "is part"),
    "wrong": ("is false", "tries", "is wrong", "is wrong"),
    "open": ("is open", "may be", "is unclear", "is unclear"),
}
_SCORES = {"right": (9, 9, 9), "near": (3, 8, 6), "part": (5, 8, 3), "wrong": (1, 7, 5), "open": (5, 8, 5)}


@dataclass(frozen=True)
class Said:
    """One turn: the words and the scores, by candidate."""

    overall: str
    comments: tuple[str, ...]
    """Empty where it abstains."""
    scores: tuple[tuple[int, ...], ...]
    """(J, K)"""

    def reply(self, labels: tuple[str, ...], style: Style = "named") -> str:
        """The JSON text in the order of the schema, without white space."""
        candidates = {
            label: {"comment": comment} | _scores(scores, style)
            for label, comment, scores in zip(labels, self.comments, self.scores, strict=False)
        }
        return json.dumps({"overall": self.overall, "candidates": candidates or None}, separators=(",", ":"))


ABSTAINED = Said(OUTSIDE, (), ())


def _scores(scores: tuple[int, ...], style: Style) -> dict[str, Any]:
    match style:
        case "named":
            return {"scores": dict(zip(COMPONENTS, scores, strict=True))}
        case "compact":
            return {"scores": scores}
        case "none":
            return {}


def verdict(value: str, belief: str | None) -> str:
    """How an answer stands to the one believed: right, near (first digit and length agree), part, wrong or open."""
    if belief is None:
        return "open"
    if value == belief:
        return "right"
    if belief.startswith(value + " "):
        return "part"
    if len(value) == len(belief) > 1 and value[0] == belief[0]:
        return "near"
    return "wrong"


def say(
    question: Question, belief: str | None, agent: int, *, first: bool, stance: str = "", known: Facts | None = None
) -> Said:
    """What persona `agent` says of all candidates; `first` in its first turn of the debate.

    stance: what it says of those before it.
    known: the facts that it knows; all that are needed where nothing is given.
    """
    judged = [judge(question, reply, belief, agent, first=first) for reply in question.replies]
    comments, scores = zip(*judged, strict=True)
    return Said(question.working(belief, known) + stance, comments, scores)


def judge(
    question: Question, reply: Reply, belief: str | None, agent: int, *, first: bool
) -> tuple[str, tuple[int, ...]]:
    """The comment on one candidate, and its scores."""
    if reply.style == "off":
        return "off topic", (0, 0, 0)
    found = verdict(reply.value, belief)
    accuracy, relevance, completeness = _SCORES[found]
    lean = (-2, 2, 0, 0)[agent] if first and question.level == "hard" and found != "open" else 0
    accuracy, completeness = (min(9, max(0, score + lean)) for score in (accuracy, completeness))
    comment = f"{reply.value} {_WORDS[found][agent]}"
    if reply.style == "padded":
        return comment + ", padded", (accuracy, relevance - 3, completeness)
    if reply.style == "hedged":
        return comment + ", unsure", (max(0, accuracy - 2), relevance, completeness)
    return comment, (accuracy, relevance, completeness)
