"""The multi-agent debate of Yucha 2024 ("TextEvolve Evaluate") as a flow.

    with `settle`:  read all agents silently; end here where that settles the task
    for each round:
        for each agent:  recall, prompt, generate, parse -> a turn with its (J, K) score matrix
        stop when the agents agree

The tensor is evaluated by `debate.scoring` and `debate.convergence`; prompts are made in `prompts` and the templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from debate.convergence import coefficient_of_variation
from debate.errors import ReplyError
from debate.evaluation import Evaluation
from debate.evaluators.base import RunContext
from debate.evaluators.debate.candidate_order import arrange, base_order
from debate.evaluators.debate.prompts import DebatePrompts
from debate.evaluators.debate.reading import Reader, low_mass
from debate.evaluators.debate.settings import CELL_SCALE, DebateSettings
from debate.evaluators.debate.settling import measures
from debate.evaluators.result import build_evaluation
from debate.flow import Completion, Flow, Generate, ReadOut, Recall, RoundEnd, gather, generate_parsed, recall
from debate.hashing import derive
from debate.parsing.debate_reply import ParsedReply
from debate.scoring.distributions import p_best
from debate.scoring.tensor import normalize_tensor
from debate.selection import all_best
from debate.settings import documented
from debate.stop_rules import Rounds
from debate.types import UNSPOKEN, Failure, FloatArray, Memory, SilentReadout, StopReason, Task, Transcript, Turn


@documented
@dataclass(frozen=True)
class DebateEvaluator(DebateSettings):
    """A debate between the profile's agents.

    >>> DebateEvaluator("general", rounds=2, convergence=None)
    """

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Debate the candidates of `task`; twice, in opposite orders, if `candidate_order` is balanced."""
        return debate_flow((self, self), task, run)


class _Silent(NamedTuple):
    """A silent read-out, and what went wrong with it."""

    found: SilentReadout
    failure: Failure | None


class _Debate:
    """State of one debate: its prompts, the turns taken, the CV of each round."""

    def __init__(self, settings: DebateSettings, task: Task, run: RunContext, base: Sequence[int]) -> None:
        self.settings = settings
        self.task = task
        self.run = run
        self.components = tuple(component.name for component in settings.components)
        self.ordering = arrange(base, len(settings.personas), rotate=settings.candidate_order == "rotate")
        form = settings.form(self.ordering.labels)
        self.readers = [Reader(settings.readout, form, order) for order in self.ordering.orders]
        self.prompts = DebatePrompts(
            settings.prompt_templates,
            settings.loaded_profile,
            task,
            self.ordering,
            today=run.today,
            scale=CELL_SCALE,
            form=form,
            history_scores=settings.history_scores,
        )
        self.samplings = settings.samplings(len(task.candidates))
        self.turns: list[Turn] = []
        self.cv: list[float] = []
        self.tokens = 0

    def flow(self, opening: Sequence[_Silent] | None = None) -> Flow[Evaluation]:
        """The whole debate, after a silent round that was read already or is read now, where there is to be one."""
        stop: StopReason | None = None
        before = (yield from self.silent_round()) if opening is None else opening
        for r in range(self.settings.rounds):
            self.turns += yield from self._round(r)
            self.cv.append(self._cv(r))
            stop = self._stop_reason(r) or ("max_rounds" if r + 1 == self.settings.rounds else None)
            self.run.tell(RoundEnd(r, self.cv[-1], stop))
            if stop is not None:
                break
        after = (yield from self.silent_round()) if self.settings.silent_readouts else ()
        return self._evaluation(stop or "max_rounds", before, after)

    def unspoken(self, opening: Sequence[_Silent], stop: StopReason) -> Evaluation:
        """What the silent round alone comes to."""
        silent, pooling = [each.found for each in opening], self.settings.pooling
        return self._built(
            stop,
            scores=pooling.scores(silent),
            failures=[each.failure for each in opening if each.failure is not None],
            p_best=pooling.p_best(silent),
            before=tuple(silent),
        )

    def silent_round(self) -> Flow[list[_Silent]]:
        """How every agent would score now, having heard what its next turn would show, without a word of its own."""
        if not self.settings.opens_silently:
            return []

        def all_agents() -> Flow[tuple[_Silent, ...]]:
            return (yield from gather([self._silent(i) for i in range(len(self.readers))]))

        # One level deeper than turns, so that no address is a turn's in a run that goes on with more or fewer rounds.
        [silent] = yield from gather([all_agents()])
        return list(silent)

    def _silent(self, i: int) -> Flow[_Silent]:
        heard = [turn for turn in self._earlier_rounds(len(self.cv)) if turn.failure is None]
        memories = yield from self._recall(i, heard)
        moment = "after" if self.turns else "before"
        prompt, name = self.prompts.prompt(i, heard, memories), self.settings.personas[i].name
        rule = self.settings.settles_by
        model = {"model": rule.model} if rule is not None and rule.model is not None else {}

        def ask(read_out: ReadOut) -> Generate:
            return replace(self._call(i, len(self.cv), moment=moment, prompt=prompt, read_out=read_out), **model)

        cells = yield from self.readers[i].read_out(None, ask)
        self.tokens += cells.tokens
        failure = cells.failure or low_mass(cells.distributions, self.components)
        found = SilentReadout(agent=name, scores=cells.scores, distributions=cells.distributions)
        return _Silent(found, None if failure is None else replace(failure, agent=name))

    def _round(self, r: int) -> Flow[list[Turn]]:
        """The I turns of one round: in sequence, or at once where agents do not see each other's turns in it."""
        agents = range(len(self.settings.personas))
        earlier = self._earlier_rounds(r)
        if self.settings.mode != "sequential" or (r == 0 and self.settings.blind_first_round):
            return list((yield from gather([self._turn(r, i, earlier) for i in agents])))
        taken: list[Turn] = []
        for i in agents:
            taken.append((yield from self._turn(r, i, [*earlier, *taken])))
        return taken

    def _earlier_rounds(self, r: int) -> list[Turn]:
        """The turns of the last l complete rounds before round r."""
        if self.settings.mode == "independent":
            return []
        window = r if self.settings.history is None else self.settings.history
        return [turn for turn in self.turns if turn.round >= r - window]

    def _turn(self, r: int, i: int, history: Sequence[Turn]) -> Flow[Turn]:
        """Recall, prompt, generate and read the scores; an unreadable reply is asked again with the error shown."""
        heard = [turn for turn in history if turn.failure is None]
        memories = yield from self._recall(i, heard)
        reader, first = self.readers[i], self.prompts.prompt(i, heard, memories)

        def call(attempt: int, error: ReplyError | None) -> Generate:
            prompt = first if error is None else self.prompts.prompt(i, heard, memories, error)
            read_out = ReadOut(reader.form.score_labels) if reader.readout == "expected" else None
            sampling, schema = self.samplings[i], reader.shown.schema
            return self._call(i, r, attempt, prompt=prompt, sampling=sampling, schema=schema, read_out=read_out)

        def ask(read_out: ReadOut) -> Generate:
            return self._call(i, r, prompt=first, read_out=read_out)

        def read(said: Completion) -> ParsedReply:
            return reader.form.read(said.text, said.finish_reason)

        asked = yield from generate_parsed(call, read, self.settings.retries)
        cells = yield from reader.cells(asked, ask)
        self.tokens += asked.tokens + cells.tokens
        reply, name = asked.value, self.settings.personas[i].name
        turn = Turn(
            round=r,
            agent=name,
            labels=self.ordering.shown(i),
            scores=cells.scores,
            distributions=cells.distributions,
            overall="" if reply is None else reply.overall,
            comments=() if reply is None else reply.comments,
            thinking=asked.thinking,
            failure=None if cells.failure is None else replace(cells.failure, round=r, agent=name),
            invalid_replies=asked.invalid_replies,
            memories=memories,
            escaped_special_tokens=asked.escaped_special_tokens,
        )
        self.run.tell(turn)
        return turn

    def _recall(self, i: int, heard: Sequence[Turn]) -> Flow[tuple[Memory, ...]]:
        """The agent's memories for this turn, m_i = M(a_i, x, y, history); none without memory settings."""
        settings = self.settings.recalls[i]
        if settings is None:
            return ()
        said = [turn.overall for turn in heard[-len(self.settings.personas) :]]
        queries = (self.task.x, *(candidate.text for candidate in self.task.candidates), *said)
        return (yield from recall(Recall(queries=queries, task=self.task, **settings)))

    def _call(self, i: int, r: int, attempt: int = 0, *, moment: str = "", **asked: Any) -> Generate:
        """A call of agent `i` in round `r`, or at a moment outside the rounds, when so many were taken."""
        persona = self.settings.personas[i]
        about = {"round": r, "agent": persona.name, "attempt": attempt, "labels": self.ordering.shown(i)}
        return Generate(
            model=persona.model,
            sample_key=(persona.name, moment or r),
            attempt=attempt,
            info={"task_id": self.task.id, **about, **({"moment": moment} if moment else {})},
            **asked,
        )

    def _matrices(self, r: int) -> FloatArray:
        """The score matrices of round r, (I, J, K)."""
        return np.stack([turn.scores for turn in self.turns if turn.round == r])

    def _cv(self, r: int) -> float:
        return coefficient_of_variation(self._matrices(r), self.settings.stops_by.over, self.settings.quorum_size)

    def _stop_reason(self, r: int) -> StopReason | None:
        settings = self.settings
        failures = [turn.failure for turn in self.turns if turn.round == r]
        if any(failure is not None and failure.reason == "time_budget" for failure in failures):
            return "time_budget"
        if None not in failures:
            return "failed"
        if (reason := self._rounds().stop_reason(settings.stops_by, r, settings.min_rounds)) is not None:
            return reason
        if r + 1 < settings.rounds and settings.token_budget is not None and self.tokens >= settings.token_budget:
            return "token_budget"
        return None

    def _rounds(self) -> Rounds:
        settings, n_rounds = self.settings, range(len(self.cv))
        failed = {turn.round for turn in self.turns if turn.failure is not None}
        return Rounds(
            tensor=np.stack([self._matrices(r) for r in n_rounds]),  # (R, I, J, K)
            is_whole=[r not in failed for r in n_rounds],
            weights=settings.component_weights,
            quorum=settings.quorum_size,
            width=CELL_SCALE.high - CELL_SCALE.low,
        )

    def _evaluation(self, stop: StopReason, before: Sequence[_Silent], after: Sequence[_Silent]) -> Evaluation:
        settings, tensor = self.settings, self._rounds().tensor  # (R, I, J, K)
        failures = (*map(self._failure_of, self.turns), *(silent.failure for silent in (*before, *after)))
        return self._built(
            stop,
            scores=normalize_tensor(tensor, settings.component_weights, settings.method, settings.quorum_size),
            failures=[failure for failure in failures if failure is not None],
            tensor=tensor,
            p_best=self._p_best(),
            before=tuple(silent.found for silent in before),
            after=tuple(silent.found for silent in after),
            cv=tuple(self.cv),
            rounds_run=len(self.cv),
            transcript=Transcript(tuple(self.turns)),
        )

    def _built(self, stop: StopReason, **parts: Any) -> Evaluation:
        return build_evaluation(
            self.settings,
            self.task,
            self.run,
            stop_reason=stop,
            turns=self.turns,
            components=self.components,
            agents=tuple(persona.name for persona in self.settings.personas),
            **parts,
        )

    def _p_best(self) -> FloatArray | None:
        """Probability of each candidate being the best, (J,); None where no scores are read out."""
        settings, unread = self.settings, ((None,) * len(self.components),) * len(self.task.candidates)
        if settings.readout == "reply":
            return None
        return p_best(
            [turn.distributions or unread for turn in self.turns],
            settings.component_weights,
            rounds=[turn.round for turn in self.turns],
            quorum=settings.quorum_size,
        )

    def _failure_of(self, turn: Turn) -> Failure | None:
        """The turn's own failure, or that of some of its cells."""
        low = None if turn.failure else low_mass(turn.distributions, self.components)
        return turn.failure if low is None else replace(low, round=turn.round, agent=turn.agent)


def debate_flow(settings: Sequence[DebateSettings], task: Task, run: RunContext) -> Flow[Evaluation]:
    """The debate on a task; `settings` are of its candidate orders, which differ in nothing but their rounds."""
    debates = _debates(settings, task, run)
    if debates[0].settings.settles_by is not None:
        return _settled_or_debated(debates, task, run)
    flows = [debate.flow() for debate in debates]
    return _balanced(debates, flows, task, run) if len(flows) > 1 else flows[0]


def _debates(settings: Sequence[DebateSettings], task: Task, run: RunContext) -> list[_Debate]:
    settings = [own.of_task(task) for own in settings]
    kind = settings[0].candidate_order
    base = base_order(kind, len(task.candidates), derive(run.seed, "order", task.id))
    orders = (base, base[::-1]) if kind == "balanced" else (base,)
    return [_Debate(own, task, run, order) for own, order in zip(settings, orders, strict=False)]


def _settled_or_debated(debates: Sequence[_Debate], task: Task, run: RunContext) -> Flow[Evaluation]:
    """The silent round, of both candidate orders where there are two, and a debate unless it settles the task."""
    rule, pooling = debates[0].settings.settles_by, debates[0].settings.pooling
    openings = yield from _openings(debates)
    has_failed = any(each.failure is not None for opening in openings for each in opening)
    found = measures([[each.found for each in opening] for opening in openings], pooling)
    if rule is None or has_failed or not rule.settles(found):
        flows = [debate.flow(opening) for debate, opening in zip(debates, openings, strict=True)]
        return (yield from (_balanced(debates, flows, task, run) if len(flows) > 1 else flows[0]))
    return _unspoken(debates, openings, "settled")


def _unspoken(debates: Sequence[_Debate], openings: Sequence[Sequence[_Silent]], stop: StopReason) -> Evaluation:
    members = [debate.unspoken(opening, stop) for debate, opening in zip(debates, openings, strict=True)]
    return _joined(debates, members, debates[0].task, debates[0].run) if len(members) > 1 else members[0]


def silent_flow(settings: DebateSettings, task: Task, run: RunContext) -> Flow[Evaluation]:
    """A silent round on a task, in both candidate orders where there are two, and nothing else."""
    debates = _debates((settings, settings), task, run)
    return _unspoken(debates, (yield from _openings(debates)), "silent")


def _openings(debates: Sequence[_Debate]) -> Flow[Sequence[Sequence[_Silent]]]:
    """The silent round of each; one alone has the address that it has where `silent_readouts` asks for it."""
    if len(debates) == 1:
        return [(yield from debates[0].silent_round())]
    return (yield from gather([debate.silent_round() for debate in debates]))


def _balanced(
    debates: Sequence[_Debate], flows: Sequence[Flow[Evaluation]], task: Task, run: RunContext
) -> Flow[Evaluation]:
    """The debate in one candidate order and in its reverse."""
    return _joined(debates, (yield from gather(flows)), task, run)


def _joined(debates: Sequence[_Debate], members: Sequence[Evaluation], task: Task, run: RunContext) -> Evaluation:
    """One evaluation of both candidate orders, whose scores are the mean of the two."""
    scores = np.stack([member.scores for member in members]).mean(axis=0)  # (J,); NaN where either order has NaN
    return build_evaluation(
        debates[0].settings,
        task,
        run,
        scores=scores,
        p_best=_mean_p_best(members, scores),
        stop_reason=_unspoken_end(members),
        members=members,
        turns=[turn for member in members for turn in member.transcript],
        rounds_run=max(member.rounds_run for member in members),
        order_agreement=_agree(members),
    )


def _unspoken_end(members: Sequence[Evaluation]) -> StopReason | None:
    """Why nobody spoke in either order; None where somebody did."""
    return next((end for end in UNSPOKEN if all(member.stop_reason == end for member in members)), None)


def _mean_p_best(members: Sequence[Evaluation], scores: FloatArray) -> FloatArray | None:
    """The mean of the members' `p_best`, among the candidates that have a score; (J,)."""
    found = [member.p_best for member in members if member.p_best is not None]
    if not found:
        return None
    means = np.where(np.isnan(scores), 0.0, np.stack(found).mean(axis=0))  # (J,)
    return means / means.sum() if means.any() else means


def _agree(members: Sequence[Evaluation]) -> bool | None:
    best = [all_best(member.scores) for member in members]
    return None if () in best else len(set(best)) == 1
