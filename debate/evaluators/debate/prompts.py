"""The prompts of one debate, as blocks that grow at the end.

    system    rules, components, reply format                   the same for every debate of a run
    task      the input and the candidates                      the same for every turn of a debate
    turn ...  one block per turn taken, oldest first            only ever appended
    agent     the persona, its memories, what to do now         last, so that all before it is a shared prefix
    retry     why the last reply could not be used              only when asking again

Each block is rendered once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from debate.errors import ReplyError
from debate.evaluators.debate.candidate_order import Ordering
from debate.flow import Block, Prompt
from debate.hashing import ById
from debate.parsing.debate_reply import ReplyForm
from debate.profiles import Component, Persona, Profile
from debate.scoring.distributions import ABSTAIN
from debate.templates import Templates, Trusted, joined, plain_number, task_delimiter
from debate.types import Memory, Scale, Task, Turn

SYSTEM, TASK, TURN, AGENT, RETRY = (f"debate/{name}.j2" for name in ("system", "task", "turn", "agent", "retry"))
TEMPLATE_NAMES = (SYSTEM, TASK, TURN, AGENT, RETRY)


class DebatePrompts:
    """Renders the blocks of one debate and joins them to the prompt of each turn."""

    def __init__(
        self,
        templates: Templates,
        profile: Profile,
        task: Task,
        ordering: Ordering,
        *,
        today: str,
        scale: Scale,
        form: ReplyForm,
        history_scores: bool,
    ) -> None:
        self._profile = profile
        self._task = task
        self._ordering = ordering
        self._history_scores = history_scores
        self._delimiter = Trusted(task_delimiter(task))
        self._render = partial(templates.render, among=TEMPLATE_NAMES)
        self._system = _system_block(ById(templates), profile.components, scale, today, form)
        self._task_blocks: dict[tuple[int, ...], Block] = {}
        self._turn_blocks: dict[tuple[int, str], Block] = {}
        self._agent_blocks: dict[tuple[int, tuple[Memory, ...], bool], Block] = {}

    def prompt(
        self, agent: int, history: Sequence[Turn], memories: Sequence[Memory], error: ReplyError | None = None
    ) -> Prompt:
        """The prompt of agent `agent` (index) after `history`, with the last reply's `error` where there was one."""
        blocks = [self._task_block(agent), *(self._turn_block(turn) for turn in history)]
        blocks.append(self._agent_block(agent, tuple(memories), not history))
        if error is not None:
            blocks.append(self._render(RETRY, {"error": error.message}))
        return Prompt(system=(self._system,), user=tuple(blocks))

    def _task_block(self, agent: int) -> Block:
        order = self._ordering.orders[agent]
        if order not in self._task_blocks:
            self._task_blocks[order] = self._render(TASK, task_context(self._task, self._ordering, agent))
        return self._task_blocks[order]

    def _agent_block(self, agent: int, memories: tuple[Memory, ...], is_first: bool) -> Block:
        key = (agent, memories, is_first)
        if key not in self._agent_blocks:
            persona, labels = self._profile.personas[agent], list(self._ordering.shown(agent))
            context = agent_context(persona, memories, labels, self._delimiter, is_first=is_first)
            self._agent_blocks[key] = self._render(AGENT, context)
        return self._agent_blocks[key]

    def _turn_block(self, turn: Turn) -> Block:
        key = (turn.round, turn.agent)
        if key not in self._turn_blocks:
            context = turn_context(turn, self._profile, self._delimiter, with_scores=self._history_scores)
            self._turn_blocks[key] = self._render(TURN, context)
        return self._turn_blocks[key]


@lru_cache(maxsize=16)
def _system_block(
    templates: ById, components: tuple[Component, ...], scale: Scale, today: str, form: ReplyForm
) -> Block:
    """The system block, shared by all debates with the same rules; templates of a folder may be read again later."""
    return templates.value.render(SYSTEM, system_context(components, scale, today, form), TEMPLATE_NAMES)


def system_context(components: Sequence[Component], scale: Scale, today: str, form: ReplyForm) -> dict[str, Any]:
    """The variables of `debate/system.j2`; the reply format is that of `form`."""
    return {
        "today": today,
        "scale": {"low": plain_number(scale.low), "high": plain_number(scale.high)},
        "components": [{"name": component.name, "description": component.description} for component in components],
        "reply_format": joined(form.stated_parts),
    }


def task_context(task: Task, ordering: Ordering, agent: int) -> dict[str, Any]:
    """The variables of `debate/task.j2`."""
    return {
        "x": task.x,
        "context": list(task.background),
        "candidates": [
            {"label": Trusted(label), "text": task.candidates[j].text} for label, j in ordering.shown(agent).items()
        ],
        "delimiter": Trusted(task_delimiter(task)),
    }


def turn_context(turn: Turn, profile: Profile, delimiter: Trusted, *, with_scores: bool) -> dict[str, Any]:
    """The variables of `debate/turn.j2`. Means of read-outs are shown as the whole numbers that agents write."""
    names = [component.name for component in profile.components]
    scores = np.round(turn.scores) if turn.distributions else turn.scores  # (J, K)
    return {
        "agent": turn.agent,
        "round": turn.round + 1,
        "overall": turn.overall,
        "candidates": [
            {
                "label": Trusted(label),
                "comment": turn.comments[j],
                "scores": [
                    {"component": name, "value": ABSTAIN if math.isnan(score) else plain_number(score)}
                    for name, score in zip(names, scores[j].tolist(), strict=True)
                ]
                if with_scores
                else [],
            }
            for label, j in sorted(turn.labels.items(), key=lambda shown: (len(shown[0]), shown[0]))  # Z before AA
        ],
        "delimiter": delimiter,
    }


def agent_context(
    persona: Persona, memories: Sequence[Memory], labels: Sequence[str], delimiter: Trusted, *, is_first: bool
) -> dict[str, Any]:
    """The variables of `debate/agent.j2`."""
    return {
        "agent": persona.name,
        "role": persona.role,
        "agreement": persona.agreement,
        "memories": [{"text": memory.text} for memory in memories],
        "is_first": is_first,
        "labels": labels,
        "delimiter": delimiter,
    }


def check_templates(templates: Templates, profile: Profile, scale: Scale) -> None:
    """Render every template once on a small debate, so that a faulty one is found before a model is loaded."""
    task = Task("x", ["first", "second"], context=["context"])
    ordering = Ordering(("A", "B"), ((0, 1),))
    n_components = len(profile.components)
    turn = Turn(
        round=0,
        agent="agent",
        labels={"A": 0, "B": 1},
        scores=np.ones((2, n_components)),  # (J, K)
        overall="overall",
        comments=("one", "two"),
    )
    delimiter, labels = Trusted("delimiter"), ["A", "B"]
    templates.check_files()
    form = ReplyForm(ordering.labels, tuple(component.name for component in profile.components))
    templates.check(SYSTEM, system_context(profile.components, scale, "2000-01-01", form))
    templates.check(TASK, task_context(task, ordering, 0))
    for with_scores in (True, False):
        templates.check(TURN, turn_context(turn, profile, delimiter, with_scores=with_scores))
    first, later = Persona("agent", "role", agreement=5), Persona("agent", "role")
    templates.check(AGENT, agent_context(first, [Memory("memory")], labels, delimiter, is_first=True))
    templates.check(AGENT, agent_context(later, [], labels, delimiter, is_first=False))
    templates.check(RETRY, {"error": "error"})
