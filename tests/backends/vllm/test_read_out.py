"""Distributions that vLLM reads, beside those that transformers computes with the same weights."""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from judging.samples import Sample, make_sample

from debate import Engine, Sampling, bundled_judge
from debate.backends import VLLM
from debate.flow import Block, Call, CallFunction, Completion, Flow, Prompt, ReadOut, Segment
from debate.parsing.debate_reply import ReplyForm
from debate.scoring.distributions import distribution_of, moments
from debate.types import LabelDistribution
from tests.required import required_module

SCORES = (*map(str, range(11)), "null")
TWO_DIGITS = tuple(map(str, range(100)))
FORM = ReplyForm(("A", "B", "C", "D"), ("accuracy", "relevance", "completeness"), scores="label", abstain=True)


class Reference:
    """What transformers computes with a model's weights in float32."""

    def __init__(self, folder: Path) -> None:
        transformers, self._torch = required_module("transformers"), required_module("torch")
        load: Any = transformers.AutoModelForCausalLM.from_pretrained
        self._model = load(folder, dtype=self._torch.float32).eval()
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)

    def logits(self, sequences: Sequence[Sequence[int]]) -> Any:
        """Of every next token, for sequences of one length."""
        with self._torch.no_grad():
            return self._model(self._torch.tensor(sequences)).logits.double()

    def spelled(self, labels: Iterable[str], blank: str = "") -> dict[tuple[int, ...], str]:
        """The tokens of the labels after a colon."""

        def encode(text: str) -> list[int]:
            return self.tokenizer.encode(text, add_special_tokens=False)

        return {tuple(encode(f'":{blank}{label}')[len(encode('":')) :]): label for label in labels}

    def distribution(self, ids: list[int], paths: dict[tuple[int, ...], str]) -> LabelDistribution:
        """A softmax over the whole vocabulary at each token of each label, multiplied; from a label that begins others,
        what goes on to them is taken away.
        """
        found = dict.fromkeys(paths.values(), 0.0)
        raw = {path: p for length in {*map(len, paths)} for path, p in self._products(ids, paths, length).items()}
        for path, label in paths.items():
            onward = {
                other[: len(path) + 1] for other in paths if len(other) > len(path) and other[: len(path)] == path
            }
            found[label] += raw[path] - sum(raw[longer] for longer in onward)
        return distribution_of(found)

    def _products(self, ids: list[int], paths: Iterable[tuple[int, ...]], length: int) -> dict[tuple[int, ...], float]:
        """Probabilities of the paths of a length, and of the beginnings of longer ones that have it."""
        wanted = sorted({path[:length] for path in paths if len(path) >= length})
        heads = sorted({path[:-1] for path in wanted})
        shares = self.logits([[*ids, *head] for head in heads])[:, len(ids) - 1 :].softmax(-1)
        return {
            path: math.prod(float(shares[heads.index(path[:-1]), n, token]) for n, token in enumerate(path))
            for path in wanted
        }


def ask(engine: Engine, backend: VLLM, calls: Sequence[Call]) -> list[Completion]:
    """The calls' answers, all asked at once on the engine's own loop."""

    async def ask_all() -> list[Completion]:
        return list(await asyncio.gather(*map(backend.generate, calls)))

    def flow() -> Flow[list[Completion]]:
        return (yield CallFunction(ask_all))  # type: ignore[return-value]

    return engine.drive(flow())


def read(prompt: Prompt, labels: Sequence[str], *texts: str, **given: Any) -> Call:
    """A call that reads the labels after each text, or in the reply itself."""
    continuations = tuple((Block([Segment(text, is_content=True)]),) for text in texts)
    usual: dict[str, Any] = {"model": "m", "sampling": Sampling(temperature=0, max_tokens=300), "seed": 1}
    return Call(**{**usual, **given}, prompt=prompt, read_out=ReadOut(tuple(labels), continuations))


def ids_after(backend: VLLM, prompt: Prompt, text: str) -> list[int]:
    """The ids of a prompt and of what its reply has said."""
    splice: Any = backend._splice  # pyright: ignore[reportPrivateUsage]
    return [*backend.token_ids(prompt), *splice.encode_text(text)]


def largest_difference(found: Sequence[LabelDistribution], known: Sequence[LabelDistribution]) -> float:
    """Of means, standard deviations and masses."""
    pairs = [(*moments(each), each.mass) for each in found], [(*moments(each), each.mass) for each in known]
    assert not any(map(math.isnan, sum(pairs[1], ())))
    return max(abs(a - b) for one, other in zip(*pairs, strict=True) for a, b in zip(one, other, strict=True))


# ---- the bundled judge, in float32


@cache
def samples() -> list[Sample]:
    """A hundred turns of simulated debates."""
    rng = random.Random(15)
    return [make_sample(rng) for _ in range(100)]


@pytest.fixture(scope="module")
def judge() -> Reference:
    return Reference(bundled_judge.model_path())


CLOSE = 2e-4
"""How far means, on the scale from 0 to 10, may lie apart. TO BE STATED."""


def test_scores_of_a_hundred_prompts_are_those_of_a_softmax_by_transformers(
    judge_engine: Engine, judge_backend: VLLM, judge: Reference
) -> None:
    paths = judge.spelled(SCORES)
    assert sum(len(path) > 1 for path in paths) == 2  # 10 and null
    found, known = list[LabelDistribution](), list[LabelDistribution]()
    cut = [
        each.reply[: each.reply.index(':{"relevance"') if 0 else each.reply.rindex('"relevance":') + 12]
        for each in samples()
    ]
    calls = [read(each.prompt, SCORES, text) for each, text in zip(samples(), cut, strict=True)]
    for call, text, answer in zip(calls, cut, ask(judge_engine, judge_backend, calls), strict=True):
        found += answer.distributions
        known.append(judge.distribution(ids_after(judge_backend, call.prompt, text), paths))
    print(largest_difference(found, known))
    assert largest_difference(found, known) < CLOSE


def test_numbers_of_two_tokens_are_those_of_a_softmax_by_transformers(
    judge_engine: Engine, judge_backend: VLLM, judge: Reference
) -> None:
    paths = judge.spelled(TWO_DIGITS)
    found, known = list[LabelDistribution](), list[LabelDistribution]()
    asked = [
        (each, each.reply[: m.start()]) for each in samples() if (m := re.search(r"(?<![0-9])[0-9]{2}", each.reply))
    ]
    calls = [read(each.prompt, TWO_DIGITS, text) for each, text in asked[:25]]
    for call, (_, text), answer in zip(calls, asked, ask(judge_engine, judge_backend, calls), strict=False):
        found += answer.distributions
        known.append(judge.distribution(ids_after(judge_backend, call.prompt, text), paths))
    print(largest_difference(found, known))
    assert sum(float(max(each.probabilities, key=each.probabilities.__getitem__)) > 9 for each in known) > 15
    assert largest_difference(found, known) < 10 * CLOSE


def test_scores_in_replies_are_those_of_a_softmax_by_transformers(
    judge_engine: Engine, judge_backend: VLLM, judge: Reference
) -> None:
    paths = judge.spelled(SCORES)
    rng = random.Random(1)
    found, known = list[LabelDistribution](), list[LabelDistribution]()
    calls = [read(each.prompt, SCORES) for each in samples()]
    for call, answer in zip(calls, ask(judge_engine, judge_backend, calls), strict=True):
        assert len(answer.distributions) == 12
        n = rng.randrange(12)
        start = [m.end() for m in re.finditer(r'":(?=[0-9])', answer.text)][n]
        found.append(answer.distributions[n])
        known.append(judge.distribution(ids_after(judge_backend, call.prompt, answer.text[:start]), paths))
    print(largest_difference(found, known))
    assert largest_difference(found, known) < CLOSE
