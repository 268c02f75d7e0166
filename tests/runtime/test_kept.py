"""Models stay loaded from one engine to the next, and one that died is loaded anew."""

from __future__ import annotations

import pytest

from debate import Engine
from debate.backends import Call
from debate.errors import BackendError, BackendUnavailableError
from debate.runtime.kept import kept_loaded
from debate.testing import reply_for
from tests.small_flows import Startable, debates, plain, tasks


def test_engines_one_after_the_other_start_a_backend_once_and_give_what_each_alone_gives() -> None:
    backend = Startable()
    with kept_loaded({"scripted": backend}) as kept:
        with Engine(kept) as engine:
            engine.evaluate_batch(tasks(1), debates())
        with Engine(kept) as engine:
            found = engine.evaluate_batch(tasks(3), debates())
        assert backend.events == ["start"]
    assert backend.events == ["start", "aclose"]
    with Engine(Startable()) as engine:
        assert [*map(plain, found)] == [*map(plain, engine.evaluate_batch(tasks(3), debates()))]


def test_what_was_never_started_is_not_closed() -> None:
    backend = Startable()
    with kept_loaded({"scripted": backend}):
        pass
    assert backend.events == []


def test_a_backend_that_died_is_closed_with_its_engine_and_started_anew() -> None:
    dies = [True]

    def script(call: Call) -> str:
        if dies.pop() if dies else False:
            raise BackendUnavailableError("gone", restartable=True)
        return reply_for(call)

    backend = Startable(script)
    with kept_loaded({"scripted": backend}) as kept:
        with Engine(kept) as engine, pytest.raises(BackendUnavailableError):
            list(engine.iter_evaluate(tasks(1), debates()))
        assert backend.events == ["start", "aclose"]
        with Engine(kept) as engine:
            assert engine.evaluate(tasks(1)[0], debates()).status == "ok"
        assert backend.events == ["start", "aclose", "start"]


def test_one_that_does_not_start_may_start_the_next_time() -> None:
    backend = Startable(faults=1)
    with kept_loaded({"scripted": backend}) as kept:
        with Engine(kept) as engine, pytest.raises(BackendError, match="out of memory"):
            engine.start()
        with Engine(kept) as engine:
            assert engine.evaluate(tasks(1)[0], debates()).status == "ok"


def test_what_else_a_backend_has_is_there() -> None:
    with kept_loaded({"scripted": Startable()}) as kept:
        assert getattr(kept["scripted"], "reads_labels", False)
        assert not hasattr(kept["scripted"], "count_tokens")
        assert kept["scripted"].capacity.slots == 64
