"""Cached replies: equal requests are asked once, for as long as a reply is good."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from debate import Engine
from debate.backends import Call, Scripted
from debate.backends.cached import Cached
from debate.errors import CallError
from debate.flow import Block, Completion, Prompt, Segment
from debate.store import Store
from debate.testing import Recorder, reply_for
from debate.types import LabelDistribution, Sampling, Usage
from tests.small_flows import debates, plain, tasks


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "s.sqlite") as opened:
        yield opened


def call(text: str = "x", seed: int = 1) -> Call:
    prompt = Prompt(system=(), user=(Block([Segment(text, is_content=True)]),))
    return Call(model="m", prompt=prompt, sampling=Sampling(), seed=seed, prompt_hash=text)


class Memory:
    """Replies in a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, Completion] = {}

    async def get(self, key: str) -> Completion | None:
        return self.kept.get(key)

    async def put(self, key: str, model: str, completion: Completion) -> None:
        await asyncio.sleep(0)
        self.kept[key] = completion


def test_a_hit_gives_the_same_evaluation_as_a_miss_and_asks_nothing(store: Store) -> None:
    script = Recorder()
    with Engine(Scripted(script), cache=store.cache()) as engine:
        first = [plain(each) for each in engine.evaluate_batch(tasks(3), debates())]
        asked = len(script.calls)
        second = [plain(each) for each in engine.evaluate_batch(tasks(3), debates())]
    assert second == first
    assert len(script.calls) == asked == 12
    with Engine(Scripted(reply_for)) as engine:
        assert [plain(each) for each in engine.evaluate_batch(tasks(3), debates())] == first


def test_another_seed_or_another_model_asks_anew(store: Store) -> None:
    script = Recorder()
    for seed, model in ((1, "a"), (2, "a"), (1, "b"), (1, "a")):
        with Engine(Scripted(script, model=model), cache=store.cache(), seed=seed) as engine:
            engine.evaluate_batch(tasks(1), debates(rounds=1))
    assert len(script.calls) == 3 * 2


def test_a_reply_is_good_until_its_time_is_over(store: Store) -> None:
    now = [1000.0]
    cache = store.cache(60)
    cache._clock = lambda: now[0]  # pyright: ignore[reportPrivateUsage]
    reply = Completion("hi\0\ud800", "stop", Usage(3, 1, 2, 1))

    async def lives() -> list[bool]:
        await cache.put("k", "m", reply)
        found: list[bool] = []
        for seconds in (0, 59.9, 60, 61):
            now[0] = 1000 + seconds
            found.append(await cache.get("k") is not None)
        await cache.put("k", "m", reply)
        found.append(await cache.get("k") is not None)
        return found

    assert asyncio.run(lives()) == [True, True, False, False, True]
    stats = cache.stats()
    assert (stats.replies, stats.hits, stats.tokens, stats.expired) == (1, 1, 5, 0)
    assert cache.clear() == 1
    assert cache.stats().replies == 0


def test_only_what_has_expired_is_cleared_on_request(store: Store) -> None:
    async def fill() -> None:
        await store.cache(-1).put("old", "m", Completion("1"))
        await store.cache(None).put("new", "m", Completion("2"))

    asyncio.run(fill())
    assert store.cache().clear(expired_only=True) == 1
    assert store.cache().stats().replies == 1


def test_equal_calls_under_way_share_one_request() -> None:
    asked: list[int] = []

    async def slow(call: Call) -> str:
        asked.append(call.seed)
        await asyncio.sleep(0.02)
        return "once"

    async def many() -> list[Completion]:
        backend = Cached(Scripted(slow), Memory())
        return list(await asyncio.gather(*(backend.generate(call(seed=n % 2)) for n in range(10))))

    completions = asyncio.run(many())
    assert sorted(asked) == [0, 1]
    assert [completion.text for completion in completions] == ["once"] * 10
    assert sum(not completion.cached for completion in completions) == 2


def test_when_the_first_asker_is_cancelled_another_asks() -> None:
    asked: list[int] = []

    async def slow(call: Call) -> str:
        asked.append(call.seed)
        await asyncio.sleep(0.02)
        return "done"

    async def cancelled() -> list[str]:
        backend = Cached(Scripted(slow), Memory())
        first, *others = [asyncio.ensure_future(backend.generate(call())) for _ in range(4)]
        await asyncio.sleep(0.005)
        first.cancel()
        found = [completion.text for completion in await asyncio.gather(*others)]
        assert first.cancelled()
        return found

    assert asyncio.run(cancelled()) == ["done"] * 3
    assert len(asked) == 2


def test_a_failure_is_told_to_all_who_asked_and_not_kept() -> None:
    tries: list[int] = []

    async def failing(call: Call) -> str:
        tries.append(1)
        await asyncio.sleep(0.005)
        if len(tries) == 1:
            raise CallError("busy", "no")
        return "now"

    async def both() -> tuple[list[object], str]:
        backend = Cached(Scripted(failing), Memory())
        first = await asyncio.gather(*(backend.generate(call()) for _ in range(3)), return_exceptions=True)
        return list(first), (await backend.generate(call())).text

    first, later = asyncio.run(both())
    assert all(isinstance(each, CallError) for each in first)
    assert (later, len(tries)) == ("now", 2)


def test_a_cached_reply_has_what_was_read_out_and_a_cache_reads_labels_where_its_backend_does() -> None:
    said = Completion("{}", distributions=(LabelDistribution({"7": 0.25, "8": 0.75}, 0.9),))

    async def twice() -> list[Completion]:
        backend = Cached(Scripted(lambda call: said), Memory())
        assert backend.reads_labels
        return [await backend.generate(call()) for _ in range(2)]

    assert [found.distributions for found in asyncio.run(twice())] == [said.distributions] * 2
