"""Engines that are forgotten end, and engines that are made again find their models loaded."""

from __future__ import annotations

import asyncio
import gc
import logging
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from debate import Engine
from debate.backends import Scripted
from debate.testing import reply_for
from tests.processes import watched
from tests.small_flows import Loadable, Stalling, Startable, asks, debates, late, plain, tasks


def engine_threads() -> int:
    return [thread.name for thread in threading.enumerate()].count("debate-engine")


def soon(is_so: Callable[[], bool]) -> bool:
    """Whether it is so within seconds."""
    until = time.monotonic() + 10
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)
    return is_so()


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    gc.collect()
    assert soon(lambda: engine_threads() == 0)
    yield
    gc.collect()
    assert soon(lambda: engine_threads() == 0)


# ---- forgotten engines


@pytest.mark.parametrize("how", ["one", "batch", "streamed", "awaited", "asked"])
def test_an_engine_whose_last_reference_is_gone_closes_its_backends_and_ends_its_thread(how: str) -> None:
    backend = Startable(late(reply_for, 1))
    engine = Engine(backend)
    gc.disable()  # counting references is enough
    try:
        match how:
            case "one":
                engine.evaluate(tasks(1)[0], debates())
            case "batch":
                engine.evaluate_batch(tasks(3), debates())
            case "streamed":
                assert len(list(engine.iter_evaluate(tasks(3), debates()))) == 3
            case "awaited":
                asyncio.run(engine.aevaluate_batch(tasks(3), debates()))
            case _:
                engine.generate(["Why?"])
        assert backend.events == ["start"]
        del engine
        assert soon(lambda: backend.events == ["start", "aclose"])
        assert soon(lambda: engine_threads() == 0)
    finally:
        gc.enable()


def test_an_engine_that_was_never_used_is_forgotten_without_a_word() -> None:
    backend = Startable()
    engine = Engine(backend)
    del engine
    assert backend.events == []


def test_a_stream_that_is_left_open_keeps_its_engine_until_it_is_gone() -> None:
    backend = Startable(late(reply_for, 1))
    stream = Engine(backend).iter_evaluate(tasks(9), debates())
    next(stream)
    gc.collect()
    assert backend.events == ["start"]
    next(stream)
    del stream
    assert soon(lambda: backend.events == ["start", "aclose"])


def test_a_backend_that_fails_to_close_is_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(Startable):
        async def aclose(self) -> None:
            raise RuntimeError("stuck")

    engine = Engine(Stuck())
    engine.start()
    with caplog.at_level(logging.ERROR, "debate"):
        del engine
        assert soon(lambda: "could not be closed" in caplog.text)


def test_a_forgotten_engine_lets_go_of_its_runs_before_the_next_one_opens_them(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/runs.sqlite"

    def once() -> list[Any]:
        return Engine(Scripted(reply_for), store=address).evaluate_batch(tasks(2), debates(), run="again")

    first, second = once(), once()  # the first held the run
    assert [each.to_json() for each in first] == [each.to_json() for each in second]


def test_a_program_that_forgets_its_engine_ends_at_once_and_without_a_word() -> None:
    scene = """
        from debate import Engine
        from debate.backends import Scripted
        from debate.testing import reply_for
        from tests.small_flows import Startable, debates, tasks

        class Slow(Startable):
            async def aclose(self):
                import asyncio
                await asyncio.sleep(0.3)
                print("closed", flush=True)

        engine = Engine(Slow())
        print(len(engine.evaluate_batch(tasks(2), debates())), flush=True)
        {end}
    """
    forgotten = watched(textwrap.dedent(scene).format(end="del engine"), seconds=120)
    assert (forgotten.code, forgotten.err, forgotten.out.split()) == (0, "", ["2", "closed"])
    kept = watched(textwrap.dedent(scene).format(end=""), seconds=120)
    assert (kept.code, kept.err, kept.out.split()) == (0, "", ["2"])


# ---- engines made again


def test_an_engine_made_again_takes_over_what_is_loaded_and_gives_what_it_would_give() -> None:
    first, second = Loadable(), Loadable()
    engine = Engine(first)
    engine.evaluate_batch(tasks(2), debates())
    engine = Engine(second, seed=7)
    found = engine.evaluate_batch(tasks(2), debates())
    assert (first.events, second.events) == (["start"], [])
    assert engine_threads() == 1
    engine.close()
    assert second.events == ["aclose"]
    assert not first.is_loaded
    with Engine(Loadable(), seed=7) as alone:
        assert [*map(plain, alone.evaluate_batch(tasks(2), debates()))] == [*map(plain, found)]


def test_engines_of_one_model_pass_it_to_and_fro() -> None:
    backends = [Loadable(), Loadable()]
    first, second = map(Engine, backends)
    for engine in (first, second, first, first, second):
        assert engine.evaluate(tasks(1)[0], debates()).status == "ok"
    assert [each.events for each in backends] == [["start"], []]
    first.close()
    assert backends[1].is_loaded
    second.close()
    assert backends[1].events == ["aclose"]


def test_one_backend_that_is_given_to_two_engines_is_loaded_once() -> None:
    backend = Loadable()
    engine = Engine(backend)
    engine.start()
    engine = Engine(backend)
    assert engine.evaluate(tasks(1)[0], debates()).status == "ok"
    assert backend.events == ["start"]
    engine.close()
    assert backend.events == ["start", "aclose"]


@pytest.mark.parametrize("other", [{"model": "other"}, {"size": 2}])
def test_what_is_not_the_same_is_loaded_beside_it(other: dict[str, Any]) -> None:
    first, second = Loadable(), Loadable(**other)
    with Engine(first) as one, Engine(second) as two:
        one.start()
        two.start()
        assert (first.events, second.events) == (["start"], ["start"])


def test_an_engine_that_is_at_work_is_left_alone() -> None:
    script = Stalling()
    first, second = Loadable(script.answer), Loadable()

    async def scene() -> None:
        working = asyncio.ensure_future(one.aevaluate(tasks(1)[0], asks(1)))
        assert await asyncio.to_thread(script.asked.wait, 5)
        with Engine(second) as two:
            assert (await two.aevaluate(tasks(1)[0], debates())).status == "ok"
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    with Engine(first) as one:
        asyncio.run(scene())
    assert (first.events, second.events) == (["start", "aclose"], ["start", "aclose"])


def test_an_engine_with_an_open_stream_is_left_alone() -> None:
    first, second = Loadable(late(reply_for, 1)), Loadable()
    with Engine(first) as one:
        stream = one.iter_evaluate(tasks(5), debates())
        next(stream)
        with Engine(second) as two:
            two.start()
        assert len(list(stream)) == 4
    assert (first.events, second.events) == (["start", "aclose"], ["start", "aclose"])


def test_an_engine_over_several_models_is_taken_over_as_a_whole_or_not_at_all() -> None:
    def pair(size: int) -> dict[str, Loadable]:
        return {"a": Loadable(model="a"), "b": Loadable(model="b", size=size)}

    first, same, other = pair(1), pair(1), pair(2)
    with Engine(first) as one:
        one.start()
        with Engine(other) as two:
            two.start()
        with Engine(same) as three:
            three.start()
    assert [each.events for each in first.values()] == [["start"]] * 2
    assert [each.events for each in same.values()] == [["aclose"]] * 2
    assert [each.events for each in other.values()] == [["start", "aclose"]] * 2
