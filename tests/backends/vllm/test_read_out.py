"""Distributions that vLLM reads, beside those that transformers computes with the same weights."""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from judging.samples import Sample, make_sample
from judging.talk import COMPONENTS

from debate import Engine, Sampling, bundled_judge
from debate.backends import VLLM
from debate.backends.vllm.label_tokens import LEAST_SHARED
from debate.errors import CallError
from debate.flow import Block, Call, CallFunction, Completion, Flow, Prompt, ReadOut, Segment
from debate.parsing.debate_reply import ReplyForm
from debate.parsing.places import value_spans
from debate.scoring.distributions import distribution_of, moments
from debate.types import LabelDistribution
from tests.required import required_module

Ids = tuple[int, ...]
SCORES = tuple(map(str, range(11)))
TWO_DIGITS = tuple(map(str, range(100)))


class Reference:
    """What transformers computes with a model's weights in float32."""

    def __init__(self, folder: Path) -> None:
        transformers, self._torch = required_module("transformers"), required_module("torch")
        load: Any = transformers.AutoModelForCausalLM.from_pretrained
        self._model = load(folder, dtype=self._torch.float32).eval()
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)

    def spelled(self, labels: Iterable[str], blank: str = "") -> dict[Ids, str]:
        """The tokens of the labels after a colon."""

        def encode(text: str) -> list[int]:
            return self.tokenizer.encode(text, add_special_tokens=False)

        return {tuple(encode(f'":{blank}{label}')[len(encode('":')) :]): label for label in labels}

    def distributions(self, all_ids: Sequence[list[int]], paths: dict[Ids, str]) -> list[LabelDistribution]:
        """After each of some ids, a softmax over the whole vocabulary at each token of each label, multiplied; from a
        label that begins others, what goes on to them is taken away.
        """
        heads = {path[:-1] for path in paths}
        heads = [head for head in heads if not any(len(o) > len(head) and o[: len(head)] == head for o in heads)]
        sequences = [[*ids, *head] for ids in all_ids for head in heads]
        shares = self._shares(sequences, max(map(len, heads)) + 1)
        found: list[LabelDistribution] = []
        for n in range(len(all_ids)):
            products: dict[Ids, float] = {}
            for m, head in enumerate(heads):
                rows = shares[n * len(heads) + m]
                for path in paths:
                    for length in range(1, len(path) + 1):
                        if path[: length - 1] == head[: length - 1]:
                            row = [float(rows[len(head) - i, path[i]]) for i in range(length)]
                            products[path[:length]] = math.prod(row)
            found.append(distribution_of(_ending(products, paths)))
        return found

    def _shares(self, sequences: Sequence[list[int]], n: int) -> list[Any]:
        """The softmax over each sequence's last `n` next tokens, (n, V), the last one first.

        Shorter sequences are filled up at their end, which what goes before does not see.
        """
        found: list[Any] = []
        for at in range(0, len(sequences), 25):
            batch = sequences[at : at + 25]
            longest = max(map(len, batch))
            with self._torch.no_grad():
                filled = self._torch.tensor([[*each, *[0] * (longest - len(each))] for each in batch])
                logits = self._model(filled).logits
            for row, each in zip(logits, batch, strict=True):
                found.append(row[len(each) - n : len(each)].double().softmax(-1).flip(0))
        return found


def _ending(products: dict[Ids, float], paths: dict[Ids, str]) -> dict[str, float]:
    found = dict.fromkeys(paths.values(), 0.0)
    for path, label in paths.items():
        onward = {other[: len(path) + 1] for other in paths if len(other) > len(path) and other[: len(path)] == path}
        found[label] += products[path] - sum(products[longer] for longer in onward)
    return found


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


def assert_close(
    found: Sequence[LabelDistribution], known: Sequence[LabelDistribution], *, top: int, n_shared: int
) -> None:
    """Compare means, variances, masses and probabilities, read in float32.

    A logit of about 20 has an error of some 1e-5 in float32, and a probability relatively the same: on a scale up to
    `top`, that moves a mean by up to 1e-5 of it, and shares rounded to 7 digits by less. Each of the `n_shared`
    beginnings of longer labels may hold up to `LEAST_SHARED` that was not divided.
    """
    share = 1e-5 + n_shared * LEAST_SHARED
    assert len(found) == len(known)
    for one, other in zip(found, known, strict=True):
        assert other.mass > 0.5
        (mean, spread), (known_mean, known_spread) = moments(one), moments(other)
        assert mean == pytest.approx(known_mean, abs=share * top)
        assert spread**2 == pytest.approx(known_spread**2, abs=share * top**2)
        assert one.mass == pytest.approx(other.mass, abs=share)
        for label in one.probabilities.keys() | other.probabilities.keys():
            assert one.probabilities.get(label, 0) == pytest.approx(other.probabilities.get(label, 0), abs=share)


# ---- the bundled judge, in float32


NAMED = tuple(f'"{name}":' for name in COMPONENTS)


@cache
def samples() -> list[Sample]:
    """A hundred turns of simulated debates in which nobody abstains."""
    rng = random.Random(15)
    scored = (sample for sample in iter(lambda: make_sample(rng), None) if sample.said.comments)
    return list(islice(scored, 100))


@pytest.fixture(scope="module")
def judge() -> Reference:
    return Reference(bundled_judge.model_path())


def test_scores_of_a_hundred_prompts_are_those_of_a_softmax_by_transformers(
    judge_engine: Engine, judge_backend: VLLM, judge: Reference
) -> None:
    paths = judge.spelled(SCORES)
    assert [len(path) for path in paths] == [*[1] * 10, 2]
    rng = random.Random(2)
    cuts = [rng.choice([m.end() for m in re.finditer(r'":(?=[0-9])', each.reply)]) for each in samples()]
    texts = [each.reply[:cut] for each, cut in zip(samples(), cuts, strict=True)]
    calls = [read(each.prompt, SCORES, text) for each, text in zip(samples(), texts, strict=True)]
    found = [
        distribution for answer in ask(judge_engine, judge_backend, calls) for distribution in answer.distributions
    ]
    ids = [ids_after(judge_backend, each.prompt, text) for each, text in zip(samples(), texts, strict=True)]
    assert_close(found, judge.distributions(ids, paths), top=10, n_shared=1)


def test_scores_in_a_hundred_replies_are_those_of_a_softmax_by_transformers(
    judge_engine: Engine, judge_backend: VLLM, judge: Reference
) -> None:
    calls = [read(each.prompt, SCORES) for each in samples()]
    rng = random.Random(3)
    found, ids = list[LabelDistribution](), list[list[int]]()
    for call, answer in zip(calls, ask(judge_engine, judge_backend, calls), strict=True):
        # No grammar says in which form to reply, so that the scores of some replies stand in lists.
        starts = [start for start, _ in value_spans(answer.text)]
        assert len(answer.distributions) == len(starts)
        named = [n for n, start in enumerate(starts) if answer.text[:start].endswith(NAMED)]
        if named:
            n = rng.choice(named)
            found.append(answer.distributions[n])
            ids.append(ids_after(judge_backend, call.prompt, answer.text[: starts[n]]))
    assert len(found) > 80, len(found)
    assert_close(found, judge.distributions(ids, judge.spelled(SCORES)), top=10, n_shared=1)


def test_numbers_of_two_tokens_are_those_of_a_softmax_by_transformers(
    judge_engine: Engine, judge_backend: VLLM, judge: Reference
) -> None:
    paths = judge.spelled(TWO_DIGITS)
    cut = [(each, m.start()) for each in samples() if (m := re.search(r"(?<![0-9])[0-9]{2}", each.reply))][:10]
    calls = [read(each.prompt, TWO_DIGITS, each.reply[:at]) for each, at in cut]
    found = [answer.distributions[0] for answer in ask(judge_engine, judge_backend, calls)]
    known = judge.distributions([ids_after(judge_backend, each.prompt, each.reply[:at]) for each, at in cut], paths)
    likeliest = [int(max(each.probabilities, key=each.probabilities.__getitem__)) for each in known]
    assert sum(label > 9 for label in likeliest) > 5
    assert_close(found, known, top=99, n_shared=9)


# ---- the tiny model

SHORT = ReplyForm(("A", "B"), ("relevance", "accuracy"), scores="label", comment_chars=9, overall_chars=9)
WORDS = Prompt.from_messages("word " * 200)


def test_labels_of_several_tokens_and_with_a_blank_before_them_are_those_by_transformers(
    vllm_engine: Engine, vllm_backend: VLLM, tiny_model: Path
) -> None:
    labels = ("7", "10", "null", "-100", "-1")
    tiny = Reference(tiny_model)
    paths = {**tiny.spelled(labels), **tiny.spelled(labels, " ")}
    assert {len(path) for path in paths} >= {1, 2}
    assert len(paths) > len(labels)
    texts = ['{"a":', '{"overall":"fine","candidates":{"A":', "I say \u2013"]
    [answer] = ask(vllm_engine, vllm_backend, [read(WORDS, labels, *texts)])
    known = tiny.distributions([ids_after(vllm_backend, WORDS, text) for text in texts], paths)
    for one, other in zip(answer.distributions, known, strict=True):
        assert one.mass == pytest.approx(other.mass, rel=0.05)  # the engine runs in bfloat16
        for label in labels:
            assert one.probabilities[label] == pytest.approx(other.probabilities[label], abs=0.02)


def test_a_reply_is_the_same_whether_its_labels_are_read_or_not(vllm_engine: Engine, vllm_backend: VLLM) -> None:
    sampling = Sampling(temperature=1.0, max_tokens=200)
    for seed in range(3):
        call = read(WORDS, SHORT.score_labels, seed=seed, schema=SHORT.schema, sampling=sampling)
        plain = replace(call, read_out=None)
        ask(vllm_engine, vllm_backend, [plain])  # the prompt is cached for the others alike
        [without], [with_labels] = (ask(vllm_engine, vllm_backend, [each]) for each in (plain, call))
        assert with_labels.text == without.text
        assert with_labels.finish_reason == without.finish_reason
        assert len(with_labels.distributions) == len(value_spans(without.text))
        assert all(each.mass > 0.5 for each in with_labels.distributions)  # among what the grammar allows
        assert without.distributions == ()


def test_continuations_count_as_one_call_and_what_they_share_once(vllm_engine: Engine, vllm_backend: VLLM) -> None:
    prompt = Prompt.from_messages("stone " * 2000)
    texts = [
        f'{{"overall":"","candidates":{{"A":{{"comment":"","scores":{{"{name}":' for name in ("one", "two", "three")
    ]
    call = read(prompt, ("7", "8"), *texts)
    (first,), (again,) = (ask(vllm_engine, vllm_backend, [call]) for _ in range(2))
    whole = {tuple(ids_after(vllm_backend, prompt, text)) for text in texts}
    distinct = {ids[: n + 1] for ids in whole for n in range(len(ids))}
    for answer in (first, again):
        assert (answer.usage.calls, answer.usage.completion_tokens) == (1, 3)
        assert answer.usage.prompt_tokens == len(distinct)
    assert again.usage.cached_tokens > 0.7 * len(distinct)
    assert again.distributions == first.distributions


def test_calls_in_the_same_batch_are_answered_as_ever(vllm_engine: Engine, vllm_backend: VLLM) -> None:
    plain = replace(read(WORDS, ("7",), schema=SHORT.schema), read_out=None)
    calls = [plain, read(WORDS, SCORES, '{"a":'), read(WORDS, SCORES, schema=SHORT.schema), plain]
    for call, answer in zip(calls, ask(vllm_engine, vllm_backend, calls), strict=True):
        assert bool(answer.distributions) == (call.read_out is not None)
        assert bool(answer.text) == (call.schema is not None)


def test_cancelling_a_call_aborts_all_of_its_requests(vllm_engine: Engine, vllm_backend: VLLM) -> None:
    call = read(Prompt.from_messages("light " * 4000), SCORES, *(f'{{"{n}":' for n in range(60)))
    unfinished: list[int] = []

    async def cancel() -> None:
        task = asyncio.create_task(vllm_backend.generate(call))
        while not vllm_backend.engine.get_num_unfinished_requests():
            await asyncio.sleep(0)
        unfinished.append(vllm_backend.engine.get_num_unfinished_requests())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        unfinished.append(vllm_backend.engine.get_num_unfinished_requests())

    def flow() -> Flow[None]:
        answer = yield CallFunction(cancel)
        assert answer is None

    vllm_engine.drive(flow())
    assert unfinished[0] > 0
    assert unfinished[1] == 0


def test_a_continuation_beyond_the_context_fails_its_call_by_name(vllm_engine: Engine, vllm_backend: VLLM) -> None:
    with pytest.raises(CallError, match="the model takes 16384"):
        asyncio.run(vllm_backend.generate(read(WORDS, SCORES, '{"a":', "word " * 20000)))
