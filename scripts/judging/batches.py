"""Batches of token ids with the positions that are learnt: whole turns, and drills of single skills.

Drills are many short pieces in one sequence: questions with their working teach the arithmetic, and replies of which
only the verdicts are learnt teach to compare, at a fraction of a turn's tokens. Made in a process of its own, so that
training never waits. Knows nothing of models.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from queue import Full
from random import Random
from typing import Any, cast

import numpy as np

from judging.forms import texts
from judging.samples import LABELS, Sample, judge_profile, make_sample
from judging.talk import PERSONAS, say
from judging.world import Question, Reply, make_question

Batch = tuple[Any, Any, Any]
"""Ids (B, T); how much each counts as a target (B, T), 0 where it is not learnt; the index of the one before (B, T)."""


@dataclass
class Row:
    """Token ids as a tree: texts with a common beginning share it, and each attends to its own past alone.

    A row of one text is a tree without branches.
    """

    ids: list[int] = field(default_factory=list[int])
    weights: list[float] = field(default_factory=list[float])
    """How much a token counts as a target; 0 where it is not learnt."""
    before: list[int] = field(default_factory=list[int])
    """Index of the token before each; -1 for the first."""

    def add(self, ids: Sequence[int], weights: Sequence[float]) -> list[int]:
        """Add one text, from its beginning: where its learnt tokens stand. Of tokens that are shared, the larger weight
        counts.
        """
        at, learnt = -1, list[int]()
        for token, weight in zip(ids, weights, strict=True):
            found = self._next.get((at, token))
            if found is None:
                found = self._next[at, token] = len(self.ids)
                self.ids.append(token)
                self.weights.append(weight)
                self.before.append(at)
            self.weights[found] = max(self.weights[found], weight)
            at = found
            learnt += [found] if weight else []
        return learnt

    def others(self, place: int) -> list[int]:
        """Tokens that stand at the same place in other texts."""
        return [self.ids[n] for n in self._after[self.before[place]] if n != place]

    @cached_property
    def _after(self) -> dict[int, list[int]]:
        """The places after each."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for place, before in enumerate(self.before):
            found[before].append(place)
        return found

    @cached_property
    def _next(self) -> dict[tuple[int, int], int]:
        return {}

    @classmethod
    def of(cls, ids: list[int], is_learnt: Sequence[bool]) -> Row:
        """A row of one text."""
        return cls(ids, [float(each) for each in is_learnt], list(range(-1, len(ids) - 1)))


class Encoder:
    """Samples as rows for one tokenizer, spliced exactly as the vLLM backend does it."""

    def __init__(self, tokenizer: Any) -> None:
        from debate.backends.vllm.prompt_tokens import PromptTokenizer

        self._splice = PromptTokenizer(tokenizer)
        self.tokenizer = tokenizer
        self._end = tokenizer.eos_token_id
        self._question = self._encode("<|input|>")
        self._opening = self._encode('{"overall":"')
        roles = {one.name: one.role for one in judge_profile().personas}
        self._agents = [self._encode(f"<|agent|>{name}: {roles[name]}") for name in PERSONAS]

    def _encode(self, text: str) -> list[int]:
        return cast("list[int]", self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens."""
        return cast("str", self.tokenizer.decode(list(ids)))

    def row(self, sample: Sample) -> tuple[Row, dict[str, list[list[int]]]]:
        """The prompt and all that is to follow it, and where in it the learnt tokens of each text are, by form."""
        prompt, row, places = self._splice.encode(sample.prompt), Row(), defaultdict[str, list[list[int]]](list)
        for form, asked in texts(sample).items():
            for text in asked:
                before = prompt + [token for part in text.before for token in self._encode(part)]
                learnt = [*self._encode(text.learnt), *([self._end] if text.ends else [])]
                places[form].append(row.add(before + learnt, [0.0] * len(before) + [text.weight] * len(learnt)))
        return row, places

    def n_working(self, sample: Sample) -> int:
        """How many tokens of the reply come before its candidates."""
        return len(self._encode(sample.reply[: sample.reply.index('","candidates"')]))

    def drill(self, random: Random, length: int) -> Row:
        """About `length` tokens of questions and their working."""
        ids: list[int] = []
        learnt: list[bool] = []
        while len(ids) < length:
            question = make_question(random)
            is_short = max(question.numbers) < 100
            if question.kind == "rule" or (is_short and random.random() < 0.8):  # short ones are learnt soonest
                continue
            asked = [*self._question, *self._encode(question.x), *self._opening]
            done = self._encode(question.working(question.answer))
            ids += asked + done
            learnt += [False] * len(asked) + [True] * len(done)
        return Row.of(ids, learnt)

    def verdicts(self, random: Random, length: int) -> Row:
        """About `length` tokens of replies without their prompts, of which the verdicts are learnt."""
        ids: list[int] = []
        learnt: list[bool] = []
        while len(ids) < length:
            question, agent = _plain(make_question(random)), random.randrange(3)
            belief = random.choice((question.answer, random.choice(question.replies).value))
            said = say(question, belief, agent, first=False)
            text = replace(said, overall=belief).reply(LABELS)
            encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            starts = _ends_of_values(text, [reply.value for reply in question.replies])
            ids += [*self._agents[agent], *encoded["input_ids"]]
            learnt += [False] * len(self._agents[agent])
            learnt += [at in starts for at, _ in encoded["offset_mapping"]]
        return Row.of(ids, learnt)


@dataclass(frozen=True)
class Mixture:
    """What batches are made of."""

    alone: float
    """Probability of a turn that hears nobody."""
    working: float
    """Share of batches that are drills of working."""
    verdicts: float
    """Share of batches that are drills of verdicts."""


def mixture(progress: float) -> Mixture:
    """What is learnt at `progress` (0 to 1): first to compute and to judge alone, then to debate as well."""
    if progress < 0.22:
        return Mixture(alone=1.0, working=0.2, verdicts=0.2)
    if progress < 0.7:
        return Mixture(alone=0.5, working=0.06, verdicts=0.34)
    return Mixture(alone=0.4, working=0.12, verdicts=0.08)


def batches(encoder: Encoder, random: Random, n_tokens: int, progress: Callable[[], float]) -> Iterator[Batch]:
    """Endless padded batches of about `n_tokens`."""
    while True:
        mixed = mixture(progress())
        rows = [encoder.row(make_sample(random, alone=mixed.alone))[0] for _ in range(192)]
        rows.sort(key=lambda row: len(row.ids))
        made: list[Batch] = []
        while rows:
            batch = [rows.pop()]
            while rows and (len(batch) + 1) * len(batch[0].ids) <= n_tokens:
                batch.append(rows.pop())
            made.append(padded(batch))
        n_all = len(made) / (1 - mixed.working - mixed.verdicts)
        for drill, part in ((encoder.drill, mixed.working), (encoder.verdicts, mixed.verdicts)):
            for _ in range(round(n_all * part)):
                made.append(padded([drill(random, 120) for _ in range(max(1, n_tokens // 140))]))
        random.shuffle(made)
        yield from made


def _ends_of_values(text: str, values: Sequence[str]) -> set[int]:
    """Where in a reply's text the candidates' values end, which is where their verdicts begin."""
    ends: set[int] = set()
    at = 0
    for value in values:
        at = text.index(f'"comment":"{value}', at) + len(f'"comment":"{value}')
        ends.add(at)
    return ends


def _plain(question: Question) -> Question:
    """The same question, every candidate put plainly and to the point."""
    values = [reply.value or question.answer for reply in question.replies]
    return replace(question, replies=tuple(Reply(value, value, "plain") for value in values))


def padded(rows: list[Row]) -> Batch:
    """Rows as one batch."""
    width = max(len(row.ids) for row in rows)
    ids = np.zeros((len(rows), width), dtype=np.int64)
    weights = np.zeros((len(rows), width), dtype=np.float32)
    before = np.tile(np.arange(-1, width - 1), (len(rows), 1))
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = row.ids
        weights[i, : len(row.ids)] = row.weights
        before[i, : len(row.ids)] = row.before
    return ids, weights, before


def in_background(folder: str, seed: str, n_tokens: int) -> tuple[Any, Any]:
    """A queue that a process of its own keeps full, and the shared progress that it follows."""
    context = multiprocessing.get_context("spawn")
    queue, progress = context.Queue(maxsize=40), context.Value("d", 0.0)
    context.Process(target=_fill, args=(queue, progress, folder, seed, n_tokens), daemon=True).start()
    return queue, progress


def _fill(queue: Any, progress: Any, folder: str, seed: str, n_tokens: int) -> None:
    import transformers

    os.nice(3)
    parent = os.getppid()
    models: Any = transformers
    encoder = Encoder(models.AutoTokenizer.from_pretrained(folder))
    for batch in batches(encoder, Random(seed), n_tokens, lambda: float(progress.value)):
        while True:
            try:
                queue.put(batch, timeout=5)
                break
            except Full:
                if os.getppid() != parent:  # whoever asked was killed
                    return
