"""Small debates and replies to them, so that they are tested without an engine or a model.

The replies go by the reply format and the delimiters of the built-in templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from debate.evaluation import Evaluation
from debate.evaluators.base import RunContext
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.flow import Completion, Generate, Recall
from debate.profiles import Component, Persona, Profile
from debate.templates import Templates
from debate.testing import Recorder, drive
from debate.types import Failure, Memory, Task

Answerer = Callable[[Generate], str | Completion | Failure]
Recaller = Callable[[Recall], Sequence[Memory]]
Score = Callable[[Generate, str, str], float]
"""(call, text of the candidate, name of the component) -> score."""

TEMPLATES = Templates()
RUN = RunContext(seed=2, today="2031-02-03")
_CANDIDATE = re.compile(r"\[candidate ([A-Z]+) (\w+)\]\n(.*?)\n\[/candidate \1 \2\]", re.DOTALL)
_SAID = re.compile(r"said:(\w+):(\d+)")


def panel(n_agents: int = 2, n_components: int = 2) -> Profile:
    """A profile of personas agent0, agent1, ... and components c0, c1, ..., all of weight 1."""
    return Profile(
        "panel",
        tuple(Persona(f"agent{i}", f"You are the judge number {i}.") for i in range(n_agents)),
        tuple(Component(f"c{k}", f"How good it is in respect {k}.") for k in range(n_components)),
    )


def task(n_candidates: int = 3, id: str | None = "t1") -> Task:  # noqa: A002 - as in Task
    """A task whose candidates read `text 0`, `text 1`, ..."""
    return Task("Which one?", [f"text {j}" for j in range(n_candidates)], id=id)


def evaluator(profile: Profile | None = None, **settings: Any) -> DebateEvaluator:
    """A debate that never stops early unless told to, on templates that are compiled once."""
    told: dict[str, Any] = {"convergence": None, "templates": TEMPLATES, **settings}
    return DebateEvaluator(profile or panel(), **told)


def debate(
    settings: DebateEvaluator, answer: Answerer, on: Task | None = None, recall: Recaller | None = None
) -> Evaluation:
    """The evaluation of one task, in the run `RUN`."""
    return drive(settings.flow(on or task(), RUN), answer, recall)


class Judge(Recorder):
    """Answers by a score function. Every reply says who spoke in which round: see `heard`."""

    def __init__(self, score: Score) -> None:
        super().__init__(lambda call: reply(call, score))


def reply(call: Generate, score: Score) -> str:
    """A readable reply. It goes by what the prompt shows, as a model would, never by `call.info['labels']`."""
    speaker, r = call.info["agent"], call.info["round"]
    candidates = {
        label: {
            "comment": f"{speaker} on {text} in {r}",
            "scores": {component: score(call, text, component) for component in components_of(call)},
        }
        for label, text in shown(call).items()
    }
    return json.dumps({"overall": f"said:{speaker}:{r}", "candidates": candidates})


def components_of(call: Generate) -> list[str]:
    """The components that the call's schema asks for."""
    assert call.schema is not None
    any_candidate = next(iter(call.schema["properties"]["candidates"]["properties"].values()))
    return list(any_candidate["properties"]["scores"]["properties"])


def user_text(call: Generate) -> str:
    """The user message."""
    return call.prompt.messages()[-1]["content"]


def system_text(call: Generate) -> str:
    """The system message."""
    return call.prompt.messages()[0]["content"]


def shown(call: Generate) -> dict[str, str]:
    """Label -> text of the candidate, as the prompt shows them, in that order."""
    return {label: text for label, _, text in _CANDIDATE.findall(user_text(call))}


def heard(call: Generate) -> list[tuple[str, int]]:
    """(agent, round) of the turns whose words the prompt shows, in that order."""
    return [(agent, int(r)) for agent, r in _SAID.findall(user_text(call))]


def by_text(call: Generate, text: str, component: str) -> float:
    """A score that depends on the agent, the round, the candidate's text and the component, and not on any place."""
    agent = int(call.info["agent"].removeprefix("agent"))
    parts = (agent, call.info["round"], int(text.removeprefix("text ")), int(component.removeprefix("c")))
    return sum(part * step for part, step in zip(parts, (0.25, 0.5, 1.0, 0.125), strict=True))


def flat(call: Generate, text: str, component: str) -> float:
    """The same score for everything."""
    return 5.0


def rubric_task(*names: str, weights: Sequence[float] = (), description: str = "How it is.") -> Task:
    """The small task with components of its own: `c8` and `c9`, or those named."""
    named = names or ("c8", "c9")
    given = weights or [1.0] * len(named)
    own = [Component(name, description, weight) for name, weight in zip(named, given, strict=True)]
    return Task("Which one?", ["text 0", "text 1", "text 2"], id="t1", components=own)
