"""Training samples: the prompt of one turn as the engine renders it, and the ideal reply.

A debate is simulated: its earlier agents are right or wrong, remember the rule or not, and the turn that is learnt is
always that of an agent that reasons well. Knows nothing of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np

from debate.evaluators.debate.candidate_order import Ordering
from debate.evaluators.debate.prompts import DebatePrompts
from debate.evaluators.debate.settings import CELL_SCALE
from debate.flow import Prompt
from debate.parsing.debate_reply import ReplyForm
from debate.profiles import Profile, load_profile
from debate.templates import Templates
from debate.types import Candidate, Memory, Task, Turn
from judging.talk import COMPONENTS, PERSONAS, Said, say
from judging.world import WORDS, Question, make_question, rule_text, wrong_answer

LABELS = ("A", "B", "C", "D")
FORM = ReplyForm(LABELS, COMPONENTS)
"""Of the named reply; the compact templates state no form."""
_ORDERING = Ordering(LABELS, ((0, 1, 2, 3),) * len(PERSONAS))


@dataclass(frozen=True)
class Sample:
    """A prompt and what should be said after it."""

    prompt: Prompt
    said: Said

    @property
    def reply(self) -> str:
        """The JSON text that should follow the prompt, in the named form."""
        return self.said.reply(LABELS)


@cache
def judge_profile() -> Profile:
    """The profile that the judge is trained with."""
    return load_profile("judge")


@cache
def judge_templates() -> Templates:
    """The compact templates."""
    return Templates("compact")


def make_sample(random: Random, *, alone: float = 0.45) -> Sample:
    """One turn of a simulated debate; with probability `alone` of an agent that hears nobody."""
    question = make_question(random)
    is_silent = random.random() < alone
    n_heard = 0 if is_silent else random.choices(range(1, 9), (8, 8, 3, 2, 2, 1, 1, 1))[0]
    agent = random.randrange(3) if is_silent else n_heard % 3
    remembers = _who_remembers(random)
    said = _history(random, question, n_heard, remembers)
    memories = _memories(random, question, has_rule=remembers[agent])
    target = _target(question, said, agent, is_first=n_heard < 3, knows=remembers[agent])
    prompt = _prompts(question).prompt(agent, [_turn(t, one) for t, (one, _) in enumerate(said)], memories)
    return Sample(prompt, target)


Heard = list[tuple[Said, str | None]]


def _who_remembers(random: Random) -> tuple[bool, ...]:
    return random.choices(((True,) * 3, (False,) * 3, tuple(random.random() < 0.5 for _ in range(3))), (7, 2, 1))[0]


def _history(random: Random, question: Question, n_turns: int, remembers: Sequence[bool]) -> Heard:
    """The turns before: each agent right, or mistaken at the debate's own rate."""
    rate = random.choices((0.0, 0.4, 0.8), (5, 3, 2))[0]
    said: Heard = []
    for t in range(n_turns):
        knows = remembers[t % 3] or any(belief is not None for _, belief in said)
        belief = _belief(random, question, rate) if question.rule is None or knows else None
        said.append((_say(question, said, belief, t % 3, is_first=t < 3), belief))
    return said


def _belief(random: Random, question: Question, rate: float) -> str:
    if random.random() >= rate:
        return question.answer
    offered = [reply.value for reply in question.replies if reply.value not in ("", question.answer)]
    if offered and random.random() < 0.6:
        return random.choice(offered)
    return wrong_answer(random, question.kind, question.answer)


def _target(question: Question, said: Heard, agent: int, *, is_first: bool, knows: bool) -> Said:
    heard = any(belief is not None for _, belief in said)
    belief = question.answer if question.rule is None or knows or heard else None
    return _say(question, said, belief, agent, is_first=is_first)


def _say(question: Question, said: Heard, belief: str | None, agent: int, *, is_first: bool) -> Said:
    return say(question, belief, agent, first=is_first, stance=_stance(said, belief))


def _stance(said: Heard, belief: str | None) -> str:
    """Agree with the one before, or name its error."""
    if not said or belief is None or said[-1][1] is None:
        return ""
    return ", as said" if said[-1][1] == belief else f", not {said[-1][1]}"


def _memories(random: Random, question: Question, *, has_rule: bool) -> list[Memory]:
    """Up to two rules: the one that is needed, and others, in any order."""
    others = random.sample([word for word in WORDS if question.rule is None or word != question.rule[0]], 2)
    texts = [rule_text(word, random.randint(2, 19)) for word in others]
    if question.rule is not None:
        n = random.choice((1, 2)) if has_rule else random.choice((0, 0, 1, 2))
        texts = ([rule_text(*question.rule), *texts] if has_rule else texts)[:n]
    else:
        texts = texts[: random.choices((0, 1, 2), (5, 1, 1))[0]]
    random.shuffle(texts)
    return [Memory(id=str(i), text=text, collection="judge", score=1.0) for i, text in enumerate(texts)]


def as_task(question: Question, task_id: str | None = None) -> Task:
    """The question as the engine takes it."""
    candidates = [Candidate(reply.text) for reply in question.replies]
    metadata = {"kind": question.kind, "level": question.level, "best": question.best}
    return Task(question.x, candidates, id=task_id, metadata=metadata)


def _prompts(question: Question) -> DebatePrompts:
    return DebatePrompts(
        judge_templates(),
        judge_profile(),
        as_task(question),
        _ORDERING,
        today="",
        scale=CELL_SCALE,
        form=FORM,
        history_scores=True,
    )


def _turn(t: int, said: Said) -> Turn:
    return Turn(
        round=t // 3,
        agent=PERSONAS[t % 3],
        labels={label: j for j, label in enumerate(LABELS)},
        scores=np.array(said.scores, dtype=np.float64),  # (J, K)
        overall=said.overall,
        comments=said.comments,
    )
