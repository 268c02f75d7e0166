"""Training samples: the prompt of one turn or one question as the engine renders it, and what should be said after it.

A debate is simulated: its earlier agents are right or wrong, remember what is needed or not, and the turn that is
learnt is always that of an agent that reasons well. Knows nothing of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from string import ascii_uppercase

import numpy as np

from debate.evaluators.debate.candidate_order import Ordering
from debate.evaluators.debate.prompts import DebatePrompts
from debate.evaluators.debate.settings import CELL_SCALE
from debate.flow import Prompt
from debate.parsing.debate_reply import ReplyForm
from debate.profiles import Persona, Profile, load_profile
from debate.templates import Templates
from debate.types import Candidate, Memory, Task, Turn
from judging.facts import Fact, draw_name, draw_number, look_alike, needed, newest
from judging.outside import outside_task
from judging.talk import ABSTAINED, COMPONENTS, PERSONAS, Said, say
from judging.world import Question, as_case, make_question, wrong_answer

EXPERT = Persona("Expert", "state facts")
"""A fourth agent, for larger debates than the profile's."""
RECALLED = 4
"""Most memories of a turn."""


@dataclass(frozen=True)
class Sample:
    """A prompt and what should be said after it."""

    prompt: Prompt
    said: Said
    labels: tuple[str, ...]
    kind: str
    """What it asks for, to tell figures apart."""

    @property
    def reply(self) -> str:
        """The JSON text that should follow the prompt, in the named form."""
        return self.said.reply(self.labels)

    @property
    def form(self) -> ReplyForm:
        """The named form with these labels."""
        return form_of(self.labels)


@cache
def form_of(labels: tuple[str, ...]) -> ReplyForm:
    """The named reply; the compact templates state no form."""
    return ReplyForm(labels, COMPONENTS, abstain=True)


@cache
def judge_profile(agents: tuple[str, ...] = PERSONAS[:3]) -> Profile:
    """The profile that the judge is trained with, of some of its agents in some order."""
    profile = load_profile("judge")
    by_name = {
        persona.name: persona for persona in (*profile.personas, replace(EXPERT, memory=profile.personas[0].memory))
    }
    return replace(profile, personas=tuple(by_name[name] for name in agents))


@cache
def judge_templates() -> Templates:
    """The compact templates."""
    return Templates("compact")


def make_sample(random: Random, *, alone: float = 0.45) -> Sample:
    """The last turn of `make_debate`."""
    return make_debate(random, alone=alone)[-1]


def make_debate(random: Random, *, alone: float = 0.45) -> list[Sample]:
    """The first turns of a simulated debate; with probability `alone` one of an agent that hears nobody."""
    n_heard = 0 if random.random() < alone else random.choices(range(1, 12), (8, 8, 5, 3, 3, 1, 1, 2, 0.5, 0.5, 0.5))[0]
    if random.random() < 0.1:
        return [_abstaining(random, n_heard)]
    return _Debate(random, make_question(random, odd=0.04)).samples(n_heard)


def make_unheard(random: Random) -> Sample:
    """The first turn of an agent about its own world."""
    return _Debate(random, make_question(random, odd=0.04)).samples(0)[0]


Known = dict[str, Fact]
_Heard = list[tuple[Said, str | None]]
"""What was said, and what the one who said it believes."""


class _Debate:
    """A simulated debate over one question."""

    def __init__(self, random: Random, question: Question) -> None:
        self.random = random
        self.question = question
        agents = random.choices((2, 3, 4), (1, 6, 1))[0]
        in_order = agents == 3 and random.random() < 0.6
        self.agents = PERSONAS[:3] if in_order else tuple(random.sample(PERSONAS, agents))
        self.has_cases = random.random() < 0.2
        self.held = [[self._as_held(fact) for fact in facts] for facts in self._split()]
        self.prompts = _prompts(as_task(question), self.agents)
        self.told: Known = {}
        """What anybody has told so far."""

    def samples(self, n_heard: int) -> list[Sample]:
        """The turns that are learnt: after nobody, and after each one of those who may be mistaken."""
        n = len(self.agents)
        first = self.random.randrange(n) if n_heard == 0 else 0
        rate = self.random.choices((0.0, 0.4, 0.8), (5, 3, 2))[0]
        said: _Heard = []
        found: list[Sample] = []
        for t in range(n_heard + 1):
            at = (first + t) % n
            facts = self._memories(at)
            target, _ = self._turn(said, at, facts, is_first=t < n)
            found.append(self._sample(said, at, facts, target))
            said.append(self._turn(said, at, facts, is_first=t < n, rate=rate))
        return found

    def _sample(self, said: _Heard, at: int, facts: Sequence[Fact], target: Said) -> Sample:
        history = [_turn(t, one, self.agents, len(self.question.replies)) for t, (one, _) in enumerate(said)]
        prompt = self.prompts.prompt(at, history, _recalled([fact.text for fact in facts]))
        kind = self.question.kind + (" heard" if said else " alone")
        return Sample(prompt, target, labels_of(self.question), kind)

    def _turn(
        self, said: _Heard, at: int, memories: Sequence[Fact], *, is_first: bool, rate: float = 0.0
    ) -> tuple[Said, str | None]:
        """What an agent says, and what it believes: of a sum, wrong at a rate."""
        recalled = newest((*self.told.values(), *memories))
        names = needed(self.question.terms, recalled)
        known = {name: fact for name, fact in recalled.items() if name in names}
        self.told = known
        belief = self.question.answer_knowing(known)
        if belief is not None and self.random.random() < rate:
            belief = self._mistaken()
        stance = _stance(said, belief)
        agent = PERSONAS.index(self.agents[at])
        return say(self.question, belief, agent, first=is_first, stance=stance, known=known), belief

    def _mistaken(self) -> str:
        random, question = self.random, self.question
        offered = [reply.value for reply in question.replies if reply.value not in ("", question.answer)]
        if offered and random.random() < 0.6:
            return random.choice(offered)
        return wrong_answer(random, question.kind, question.answer)

    def _split(self) -> list[list[Fact]]:
        """The facts that each agent's memory holds."""
        random, n = self.random, len(self.agents)
        held: list[list[Fact]] = [[] for _ in range(n)]
        facts = list(self.question.facts)
        how = random.choices(("split", "all", "lacking"), (7, 2, 1) if self.question.kind == "hidden" else (1, 7, 2))[0]
        if how == "all":
            return [[*facts, *self.question.stale] if random.random() < 0.5 else list(facts) for _ in held]
        if how == "lacking":
            facts = random.sample(facts, random.randrange(len(facts) + 1) if len(facts) > 1 else 0)
        for fact, agent in zip(facts, _shuffled(random, n, len(facts)), strict=True):
            held[agent].append(fact)
        for fact in self.question.stale:
            held[random.randrange(n)].append(fact)
        if facts and random.random() < 0.2:
            held[random.randrange(n)].append(random.choice(facts))
        return held

    def _as_held(self, fact: Fact) -> Fact:
        """The fact, or a labeled case that it follows from."""
        is_case = self.has_cases and not (fact.of or fact.year) and self.random.random() < 0.7
        return as_case(self.random, fact) if is_case else fact

    def _memories(self, agent: int) -> list[Fact]:
        """What an agent recalls now: of its memory what has to do with the names that it knows of, and other things."""
        random = self.random
        asked = {name for _, name in self.question.terms} | {fact.of for fact in self.told.values()}
        seen = [fact for fact in self.held[agent] if fact.name in asked or random.random() < 0.3]
        shares = (2, 0.5, 0.5, 1, 6) if self.question.terms else (6, 0.5, 0.5, 0.5, 3)
        n = random.choices(range(RECALLED + 1), shares)[0]
        names = [name for name in asked if name] or [draw_name(random)]
        used = {fact.name for fact in (*self.question.facts, *self.question.stale)} | set(names)
        others: list[Fact] = []
        while len(others) < min(n, RECALLED - len(seen)):
            name = look_alike(random, random.choice(names)) if random.random() < 0.7 else draw_name(random)
            if name not in used:
                used.add(name)
                year = other_year(random, self.question)
                of = draw_name(random) if random.random() < 0.2 else ""
                others.append(self._as_held(Fact(name, draw_number(random, name, 2, 19, False), of, year)))
        return random.sample([*seen, *others], len(seen) + len(others))


def other_year(random: Random, question: Question) -> int | None:
    """The year of a memory that has nothing to do with a question: often one of the question's own years."""
    years = [fact.year for fact in (*question.facts, *question.stale) if fact.year]
    if years and random.random() < 0.7:
        return random.choice(years)
    return random.randint(2020, 2026) if random.random() < 0.15 else None


def _shuffled(random: Random, n: int, k: int) -> list[int]:
    """An agent for each of k facts, each another one as far as there are."""
    order = random.sample(range(n), n)
    return [order[i % n] for i in range(k)]


def _stance(said: _Heard, belief: str | None) -> str:
    """Agree with the one before, or name its error."""
    if not said or belief is None or said[-1][1] is None:
        return ""
    return ", as said" if said[-1][1] == belief else f", not {said[-1][1]}"


def _abstaining(random: Random, n_heard: int) -> Sample:
    """A turn of an agent that is asked something outside of its world."""
    x, texts = outside_task(random)
    agents = PERSONAS[:3] if random.random() < 0.7 else tuple(random.sample(PERSONAS, random.choice((2, 3, 4))))
    at = n_heard % len(agents) if n_heard else random.randrange(len(agents))
    names = [draw_name(random) for _ in range(random.choices((0, 1, RECALLED), (3, 1, 2))[0])]
    recalled = [Fact(name, draw_number(random, name, 2, 19, False)).text for name in names]
    history = [_turn(t, ABSTAINED, agents, len(texts)) for t in range(n_heard)]
    prompt = _prompts(Task(x, texts), agents).prompt(at, history, _recalled(recalled))
    return Sample(prompt, ABSTAINED, tuple(ascii_uppercase[: len(texts)]), "outside")


def _recalled(texts: Sequence[str]) -> list[Memory]:
    return [Memory(id=str(i), text=text, collection="judge", score=1.0) for i, text in enumerate(texts)]


def labels_of(question: Question) -> tuple[str, ...]:
    """The labels of its candidates, in order."""
    return tuple(ascii_uppercase[: len(question.replies)])


def as_task(question: Question, task_id: str | None = None) -> Task:
    """The question as the engine takes it."""
    candidates = [Candidate(reply.text) for reply in question.replies]
    metadata = {"kind": question.kind, "level": question.level} | (
        {"best": question.best} if question.best >= 0 else {}
    )
    return Task(question.x, candidates, id=task_id, metadata=metadata)


def _prompts(task: Task, agents: tuple[str, ...]) -> DebatePrompts:
    n = len(task.candidates)
    labels = tuple(ascii_uppercase[:n])
    return DebatePrompts(
        judge_templates(),
        judge_profile(agents),
        task,
        Ordering(labels, (tuple(range(n)),) * len(agents)),
        today="",
        scale=CELL_SCALE,
        form=form_of(labels),
        history_scores=True,
    )


def _turn(t: int, said: Said, agents: tuple[str, ...], n: int) -> Turn:
    unscored = ((float("nan"),) * len(COMPONENTS),) * n
    return Turn(
        round=t // len(agents),
        agent=agents[t % len(agents)],
        labels={ascii_uppercase[j]: j for j in range(n)},
        scores=np.array(said.scores or unscored, dtype=np.float64),  # (J, K)
        overall=said.overall,
        comments=said.comments or ("",) * n,
    )
