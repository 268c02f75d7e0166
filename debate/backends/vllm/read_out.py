"""Reads labels from vLLM's outputs: those of a reply, and those of requests for a token or two.

vLLM gives the model's own log-probabilities, before temperature and top-p, of the tokens that a request names. Under a
grammar they are those among the tokens that it allows.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from debate.backends.vllm.label_tokens import LabelTokens, Path, Read
from debate.concurrency.side_by_side import side_by_side
from debate.types import LabelDistribution, Usage

Send = Callable[[list[int], int | None], Awaitable[Any]]
"""Sends a request for one token after some others, or for this one and the next: see `one_token`."""


def reading(labels: LabelTokens) -> dict[str, Any]:
    """Arguments of vLLM's by which the labels' tokens are read; the text is decoded by whoever asks."""
    return {"logprob_token_ids": labels.tokens, "flat_logprobs": True, "detokenize": False}


def one_token(shared: int | None) -> dict[str, Any]:
    """Arguments for one token; or for `shared` and the one after it, where longer labels begin with it.

    The bias does not touch what is read.
    """
    greedy = {"max_tokens": 1, "temperature": 0.0}
    return greedy if shared is None else {**greedy, "max_tokens": 2, "logit_bias": {shared: 100.0}}


class Reader:
    """Reads the distributions of one call, with as many requests as it takes.

    send: see `Send`; the prompt goes before the tokens that it is given.
    """

    def __init__(self, labels: LabelTokens, send: Send) -> None:
        self._labels = labels
        self._send = send
        self._finals: list[Any] = []
        self._n_further = 0

    def in_reply(self, final: Any, at: int | None) -> Read:
        """What a reply tells by itself of the label at its token `at`; None where no token begins it."""
        tokens = final.outputs[0].token_ids
        return (
            self._labels.nothing() if at is None else self._labels.along((), tokens[at:], partial(self._row, final, at))
        )

    async def read_all(self, tails: list[list[int]], reads: list[Read]) -> list[LabelDistribution]:
        """The distributions at places after some tokens each, of which `reads` is known."""
        return await side_by_side(self._read(tail, read) for tail, read in zip(tails, reads, strict=True))

    async def _read(self, tail: list[int], read: Read) -> LabelDistribution:
        while due := self._labels.due(read):
            for found in await side_by_side(self._ask(tail, path) for path in due):
                read.update(found)
        return self._labels.distribution(read)

    async def _ask(self, tail: list[int], path: Path) -> Read:
        final = await self._send([*tail, *path], self._labels.shared(path))
        self._finals.append(final)
        self._n_further += bool(path)
        return self._labels.along(path, final.outputs[0].token_ids, partial(self._row, final, 0))

    def _row(self, final: Any, at: int, n: int) -> Mapping[int, float]:
        """Probabilities of the labels' tokens at a token of an output, its `at + n`-th; before theirs goes its own."""
        begin = (at + n) * (len(self._labels.tokens) + 1) + 1
        logprobs = final.outputs[0].logprobs.logprobs[begin : begin + len(self._labels.tokens)]
        return dict(zip(self._labels.tokens, map(math.exp, logprobs), strict=True))

    def usage(self, n_prompt: int, *before: Any) -> Usage:
        """Of everything that was asked, which counts as one call.

        n_prompt: tokens of the prompt and of the places, those that they share counted once; a request that reads
        further from a place adds the one that it goes on from.
        before: vLLM's outputs of requests that were sent beside this.
        """
        finals = [*before, *self._finals]
        n_prompt += self._n_further
        computed = sum(len(final.prompt_token_ids) - (final.num_cached_tokens or 0) for final in finals)
        decoded = sum(len(final.outputs[0].token_ids) for final in finals)
        return Usage(n_prompt, max(0, n_prompt - computed), decoded, 1)
