"""The memory as the runner asks it: batches beside the event loop, faults only for those they concern."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from debate.errors import ConfigError, StoreError
from debate.flow import Recall
from debate.memory import MemoryStore
from debate.memory.embedders import Vectors
from debate.memory.recall.search import BatchingRetriever
from debate.types import Memory
from tests.memory.oracle import HOUR, NOW, Directions


def asked(n: int, **more: object) -> Recall:
    return Recall(collections=(f"c{n % 3}",), queries=(f"topic{n % 4} {n}",), **more)  # pyright: ignore[reportArgumentType]


def filled(embedder: Directions | None = None) -> MemoryStore:
    store = MemoryStore("sqlite://", embedder or Directions())
    for n in range(3):
        store.add(f"c{n}", [f"topic{i % 4} {i}" for i in range(30)], created_at=NOW - HOUR)
    return store


async def all_of(recaller: BatchingRetriever, requests: Sequence[Recall]) -> list[Sequence[Memory] | BaseException]:
    return await asyncio.gather(*map(recaller.recall, requests), return_exceptions=True)


def test_recalls_of_one_moment_are_answered_as_one_batch() -> None:
    embedder = Directions()
    with filled(embedder) as store:
        embedder.batches.clear()
        requests = [asked(n) for n in range(100)]
        answers = asyncio.run(all_of(store.retriever(now=NOW), requests))
        assert embedder.batches == [70]  # the other 30 queries are texts that were added
        assert answers == [store.recall(each.collections, each.queries, k=each.k, now=NOW) for each in requests]


def test_what_is_asked_meanwhile_makes_the_next_batch() -> None:
    sizes: list[int] = []
    may_answer = threading.Event()
    may_answer.set()

    class Slow(Directions):
        def embed(self, texts: Sequence[str]) -> Vectors:
            sizes.append(len(texts))
            assert may_answer.wait(30)
            return super().embed(texts)

    async def scene(recaller: BatchingRetriever) -> None:
        first = asyncio.ensure_future(recaller.recall(asked(1000)))
        while not sizes:
            await asyncio.sleep(0.001)
        later: list[asyncio.Future[Sequence[Memory]]] = []
        for n in range(5):
            later.append(asyncio.ensure_future(recaller.recall(asked(2000 + n))))
            await asyncio.sleep(0.002)
        may_answer.set()
        await asyncio.gather(first, *later)

    with filled(Slow()) as store:
        sizes.clear()
        may_answer.clear()
        asyncio.run(scene(store.retriever(now=NOW)))
    assert sizes == [1, 5]


def test_the_event_loop_is_never_held_up() -> None:
    threads: set[int] = set()

    class Slow(Directions):
        def embed(self, texts: Sequence[str]) -> Vectors:
            threads.add(threading.get_ident())
            time.sleep(0.2)
            return super().embed(texts)

    async def scene(recaller: BatchingRetriever) -> int:
        recalling = asyncio.ensure_future(recaller.recall(asked(5000)))
        ticks = 0
        while not recalling.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return ticks

    with filled(Slow()) as store:
        threads.clear()
        assert asyncio.run(scene(store.retriever(now=NOW))) > 10
    assert threading.get_ident() not in threads


def test_now_is_fixed_when_the_recaller_is_made() -> None:
    moments = iter(range(1000))
    store = MemoryStore("sqlite://", Directions(), clock=lambda: NOW + HOUR * next(moments))
    with store:
        store.add("c0", "topic0 0", created_at=NOW - 2 * HOUR)
        recaller = store.retriever()
        said = [asyncio.run(recaller.recall(asked(0)))[0].recency for _ in range(3)]
        assert said[0] == said[1] == said[2] < 0.995


def test_settings_hold_for_every_recall_and_the_recalls_own_go_first() -> None:
    with filled() as store:
        recaller = store.retriever(
            now=NOW, weights=(1, 0, 0), count_tokens=lambda text: 10, kinds="semantic", near_duplicate=None
        )

        def ask(**own: object) -> Sequence[Memory]:
            return asyncio.run(recaller.recall(asked(0, **own)))

        assert ask()[0].score == ask()[0].relevance
        assert ask(weights=(0.0, 1.0, 0.0))[0].score == pytest.approx(0.995)
        assert len(ask(k=7, max_tokens=45)) == 4
        assert ask(kinds=("episodic",)) == []


def test_a_request_that_cannot_be_answered_fails_alone() -> None:
    with filled() as store:
        requests = [asked(0), Recall(collections=("",), queries=("a collection needs a name",)), asked(2)]
        first, second, third = asyncio.run(all_of(store.retriever(now=NOW), requests))
    assert isinstance(second, ConfigError)
    assert first and third and not isinstance(first, BaseException) and not isinstance(third, BaseException)


def test_a_text_that_cannot_be_embedded_fails_its_own_recall_alone() -> None:
    class Choosy(Directions):
        def embed(self, texts: Sequence[str]) -> Vectors:
            if any("poison" in text for text in texts):
                raise ConfigError("not this one", field="embedder")
            return super().embed(texts)

    with filled(Choosy()) as store:
        bad = Recall(collections=("c0",), queries=("poison",))
        first, second, third = asyncio.run(all_of(store.retriever(now=NOW), [asked(900), bad, asked(901)]))
    assert isinstance(second, ConfigError)
    assert not isinstance(first, BaseException) and not isinstance(third, BaseException)


def test_a_store_that_is_gone_fails_all_that_ask(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "m.sqlite", Directions())
    store.add("c0", "topic0 0")
    recaller = store.retriever(now=NOW)
    store._database.close()  # pyright: ignore[reportPrivateUsage] - its connections would still see the old file
    (tmp_path / "m.sqlite").write_bytes(b"garbage" * 1000)
    answers = asyncio.run(all_of(recaller, [asked(0), asked(1)]))
    assert all(isinstance(answer, StoreError) for answer in answers)
    store.close()


def test_one_who_no_longer_waits_does_not_hold_up_the_others() -> None:
    async def scene(recaller: BatchingRetriever) -> Sequence[Memory]:
        leaving, staying = (asyncio.ensure_future(recaller.recall(asked(n))) for n in (700, 701))
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    with filled() as store:
        recaller = store.retriever(now=NOW)
        assert asyncio.run(scene(recaller))
        assert asyncio.run(recaller.recall(asked(702)))  # in another loop, and after the first


def test_several_loops_at_once_are_served() -> None:
    with filled() as store:
        recaller = store.retriever(now=NOW)
        said: list[int] = []

        def loop(offset: int) -> None:
            said.append(sum(len(a) for a in asyncio.run(all_of(recaller, [asked(offset + n) for n in range(20)]))))  # pyright: ignore[reportArgumentType]

        threads = [threading.Thread(target=loop, args=(1000 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert said == [100] * 4
