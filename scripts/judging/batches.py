"""Batches of token ids with the positions that are learnt: whole turns, and drills of single skills.

Drills are many short pieces in one sequence: questions with their working teach the arithmetic, and replies of which
only the verdicts are learnt teach to compare, at a fraction of a turn's tokens. Made in a process of its own, so that
training never waits. Knows nothing of models.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from queue import Full
from random import Random
from typing import Any, cast

import numpy as np

from judging.facts import Fact, draw_name, draw_number, look_alike, newest
from judging.forms import OTHERS, Text, silent, texts
from judging.questions import Asked, make_asked
from judging.samples import Sample, judge_profile, labels_of, make_debate, make_unheard, other_year
from judging.talk import PERSONAS, say
from judging.world import DEBATED, Question, Reply, make_question

Batch = tuple[Any, Any, Any, Any, Any]
"""Ids (B, T); how much each counts as a target (B, T), 0 where it is not learnt; the index of the one before (B, T);
which ones each attends to (B, T, T); how many stand before each on its way to the root (B, T).
"""
WIDTHS = (128, 224, 384, 640, 896, 1408)
"""Lengths of rows; few, as a step is compiled for each."""


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
        roles = {one.name: one.role for one in judge_profile(PERSONAS).personas}
        self._memory = self._encode("<|memory|>")
        self._agents = [self._encode(f"<|agent|>{name}: {roles[name]}") for name in PERSONAS]

    def _encode(self, text: str) -> list[int]:
        return cast("list[int]", self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens."""
        return cast("str", self.tokenizer.decode(list(ids)))

    def row(
        self, sample: Sample | Asked, forms: tuple[str, ...] = OTHERS, row: Row | None = None
    ) -> tuple[Row, dict[str, list[list[int]]]]:
        """The prompt and all that is to follow it, and where in it the learnt tokens of each text are, by form.

        forms: those that are wanted beside the named one.
        row: what they are added to; turns of a debate share the task and what was said.
        """
        row = Row() if row is None else row
        prompt = self._splice.encode(sample.prompt)
        return row, {form: self._add(row, prompt, asked) for form, asked in texts(sample, forms).items()}

    def silent(self, random: Random) -> Row:
        """An unheard agent's prompt, and every cell read out without a word."""
        sample, row = make_unheard(random), Row()
        self._add(row, self._splice.encode(sample.prompt), silent(sample))
        return row

    def _add(self, row: Row, prompt: list[int], asked: Sequence[Text]) -> list[list[int]]:
        """Add what follows a prompt: where the learnt tokens of each text stand."""
        places: list[list[int]] = []
        for text in asked:
            before = prompt + [token for part in text.before for token in self._encode(part)]
            learnt = [*self._encode(text.learnt), *([self._end] if text.ends else [])]
            places.append(row.add(before + learnt, [0.0] * len(before) + [text.weight] * len(learnt)))
        return places

    def n_working(self, sample: Sample) -> int:
        """How many tokens of the reply come before its candidates."""
        return len(self._encode(sample.reply[: sample.reply.index('","candidates"')]))

    def drill(self, random: Random, length: int) -> Row:
        """About `length` tokens of questions and their working."""
        ids: list[int] = []
        learnt: list[bool] = []
        while len(ids) < length:
            question = make_question(random, random.choice(("common", "count")) if random.random() < 0.3 else None)
            is_short = max(question.numbers, default=100) < 100
            if is_short and random.random() < 0.8:  # short ones are learnt soonest
                continue
            heard, held = ([fact for fact in _facts(question) if random.random() < share] for share in (0.4, 0.6))
            told = self._told(random, question, heard) if question.facts else []
            recalled = self._recalled(random, question, held)
            asked = [*self._question, *self._encode(question.x), *told, *recalled, *self._opening]
            done = self._encode(_working(question, [*heard, *held]))
            ids += asked + done
            learnt += [False] * len(asked) + [True] * len(done)
        return Row.of(ids, learnt)

    def _told(self, random: Random, question: Question, heard: Sequence[Fact]) -> list[int]:
        """What another agent has said of a question, as one who knows these facts; nothing, now and then."""
        if not heard and random.random() < 0.5:
            return []
        return self._encode(f"<|turn|>{random.choice(PERSONAS)} {random.randint(1, 3)}: {_working(question, heard)}")

    def _recalled(self, random: Random, question: Question, known: Sequence[Fact]) -> list[int]:
        """Memories that hold the facts of a question that are known, among others that look like all of them."""
        facts = list(known)
        others = [
            look_alike(random, fact.name) if random.random() < 0.8 else draw_name(random)
            for fact in question.facts
            for _ in range(random.choice((1, 1, 2)))
        ]
        names = {fact.name for fact in question.facts}
        facts += [
            Fact(name, draw_number(random, name, 2, 19, False), year=other_year(random, question))
            for name in others
            if name not in names
        ]
        return [
            token for fact in random.sample(facts, len(facts)) for token in (*self._memory, *self._encode(fact.text))
        ]

    def verdicts(self, random: Random, length: int) -> Row:
        """About `length` tokens of replies without their prompts, of which the verdicts are learnt."""
        ids: list[int] = []
        learnt: list[bool] = []
        while len(ids) < length:
            question, agent = _plain(make_question(random, random.choice(DEBATED))), random.randrange(4)
            belief = random.choice((question.answer, random.choice(question.replies).value))
            said = say(question, belief, agent, first=False)
            text = replace(said, overall=belief).reply(labels_of(question))
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
    asked: float
    """Share of samples that are questions to other evaluators' judges."""
    working: float
    """Share of batches that are drills of working."""
    verdicts: float
    """Share of batches that are drills of verdicts."""
    silent: float
    """Share of batches that are cells read out before anybody spoke."""


def mixture(progress: float) -> Mixture:
    """What is learnt at `progress` (0 to 1): first to compute and to judge alone, then to debate as well."""
    if progress < 0.22:
        return Mixture(alone=0.8, asked=0.2, working=0.2, verdicts=0.2, silent=0.0)
    if progress < 0.7:
        return Mixture(alone=0.45, asked=0.25, working=0.1, verdicts=0.02, silent=0.55)
    return Mixture(alone=0.4, asked=0.28, working=0.1, verdicts=0.03, silent=0.4)


_FORMS: tuple[tuple[tuple[str, ...], float], ...] = (((), 5), (("compact",), 1.5), (("cells",), 2), (("silent",), 0.7))
"""Forms that are learnt beside the named one, and how often; a row of all would be long."""


def batches(encoder: Encoder, random: Random, n_tokens: int, progress: Callable[[], float]) -> Iterator[Batch]:
    """Endless padded batches of about `n_tokens`."""
    choices, shares = [each for each, _ in _FORMS], [share for _, share in _FORMS]

    def drawn(mixed: Mixture) -> Row:
        while True:
            is_asked = random.random() < mixed.asked
            samples = [make_asked(random)] if is_asked else make_debate(random, alone=mixed.alone)
            row, chosen = Row(), random.randrange(len(samples))
            for n, sample in enumerate(samples):
                encoder.row(sample, random.choices(choices, shares)[0] if n == chosen else (), row)
            if len(row.ids) <= WIDTHS[-1]:
                return row

    while True:
        mixed = mixture(progress())
        made = list(_by_width((drawn(mixed) for _ in range(512)), n_tokens))
        n_all = len(made) / (1 - mixed.working - mixed.verdicts - mixed.silent)
        n_silent = round(n_all * mixed.silent) * n_tokens // 140  # about so many tokens each
        made += _by_width((encoder.silent(random) for _ in range(n_silent)), n_tokens)
        for drill, part in ((encoder.drill, mixed.working), (encoder.verdicts, mixed.verdicts)):
            for _ in range(round(n_all * part)):
                n = max(1, n_tokens // WIDTHS[0])
                rows = [drill(random, WIDTHS[0] - 50) for _ in range(n)]
                made.append(padded([row for row in rows if len(row.ids) <= WIDTHS[0]], WIDTHS[0], n))
        random.shuffle(made)
        yield from made


def _by_width(rows: Iterable[Row], n_tokens: int) -> Iterator[Batch]:
    """Whole batches of rows that are padded to one width; rows that fill none are left out."""
    by_width: dict[int, list[Row]] = {width: [] for width in WIDTHS}
    for row in rows:
        width = next(width for width in WIDTHS if len(row.ids) <= width)
        waiting = by_width[width]
        waiting.append(row)
        if len(waiting) >= n_tokens // width:
            yield padded(waiting, width)
            by_width[width] = []


def _facts(question: Question) -> tuple[Fact, ...]:
    """All facts of a question, those that hold no longer among them."""
    return *question.facts, *question.stale


def _working(question: Question, known: Sequence[Fact]) -> str:
    """The way to the answer of one who knows these facts, or what it lacks."""
    current = newest(known)
    return question.working(question.answer_knowing(current), current if question.terms else None)


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


def padded(rows: list[Row], width: int = 0, n: int = 0) -> Batch:
    """Rows as one batch, of at least some width and number of rows."""
    width, n = max([width, *(len(row.ids) for row in rows)]), max(n, len(rows))
    ids = np.zeros((n, width), dtype=np.int64)
    weights = np.zeros((n, width), dtype=np.float32)
    before = np.tile(np.arange(-1, width - 1), (n, 1))
    sees = np.tile(np.eye(width, dtype=np.bool_), (n, 1, 1))
    depth = np.zeros((n, width), dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = row.ids
        weights[i, : len(row.ids)] = row.weights
        before[i, : len(row.ids)] = row.before
        for t, at in enumerate(row.before):
            if at >= 0:
                sees[i, t] |= sees[i, at]
                depth[i, t] = depth[i, at] + 1
    return ids, weights, before, sees, depth


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
