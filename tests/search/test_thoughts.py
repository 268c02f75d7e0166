"""Searches over thoughts: what is kept, what is reported, and that a recorded search asks for nothing twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from debate import CallbackEvaluator, Engine, Scale
from debate.backends import Call, Scripted
from debate.errors import ConfigError
from debate.flow import gather
from debate.search import beam, beam_flow, depth_first, kept_of
from debate.store import Store
from examples import game24

SOLVABLE = ["4 9 10 13", "1 1 4 6", "3 3 8 8", "1 5 5 5"]


def no_model(call: Call) -> str:
    raise AssertionError("no model is to be asked")


def letters(x: str, text: str) -> list[str]:
    """Every thought goes on with a, b or c."""
    return [text + letter for letter in "abc"]


def b_count(x: str, text: str) -> int:
    return text.count("b")


COUNTING = CallbackEvaluator(b_count, scale=Scale(0, 10))


def test_a_beam_keeps_the_best_of_each_level_and_among_equals_the_first_proposed() -> None:
    with Engine(Scripted(no_model)) as engine:
        result = beam(engine, "x", letters, COUNTING, width=2, depth=3)
    assert [thought.text for thought in result.best] == ["bbb", "bba"]
    assert [thought.text for thought in result.best[0].path] == ["b", "bb", "bbb"]
    assert [len(level.thoughts) for level in result.levels] == [3, 6, 6]
    assert not result.is_solved


def test_a_tie_at_the_cut_is_reported() -> None:
    with Engine(Scripted(no_model)) as engine:
        result = beam(engine, "x", letters, COUNTING, width=2, depth=1)
    (level,) = result.levels
    assert level.kept == (1, 0)
    assert level.tied_at_cut == (0, 2)


def test_lower_scores_are_kept_where_the_scale_says_that_lower_is_better() -> None:
    errors = CallbackEvaluator(b_count, scale=Scale(0, 10, higher_is_better=False))
    with Engine(Scripted(no_model)) as engine:
        result = beam(engine, "x", letters, errors, width=1, depth=2)
    assert result.best[0].text == "aa"


def test_a_text_that_two_thoughts_propose_is_valued_once() -> None:
    with Engine(Scripted(no_model)) as engine:
        result = beam(engine, "x", lambda x, text: [text[:-1] + "a", "b"], COUNTING, width=2, depth=2)
    assert [[thought.text for thought in level.thoughts] for level in result.levels] == [["a", "b"], ["a", "b"]]


def test_a_thought_that_cannot_be_scored_is_not_gone_on_with() -> None:
    def fails_on_c(x: str, text: str) -> float:
        if "c" in text:
            raise ValueError("c")
        return 1.0

    with Engine(Scripted(no_model)) as engine:
        result = beam(engine, "x", letters, CallbackEvaluator(fails_on_c, scale=Scale()), width=9, depth=2)
    assert all("c" not in thought.text for thought in result.best)
    assert sum(thought.score is None for thought in result.levels[0].thoughts) == 1


def test_a_level_without_any_score_leaves_the_one_before_it_as_the_best() -> None:
    def fails_below(x: str, text: str) -> float:
        if len(text) > 1:
            raise ValueError("too long")
        return float("b" in text)

    with Engine(Scripted(no_model)) as engine:
        result = beam(engine, "x", letters, CallbackEvaluator(fails_below, scale=Scale()), width=1, depth=3)
    assert [thought.text for thought in result.best] == ["b"]
    assert [level.kept for level in result.levels] == [(1,), ()]


def test_depth_first_reports_ties_at_the_cut_among_those_that_are_good_enough() -> None:
    def level(threshold: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
        with Engine(Scripted(no_model)) as engine:
            found = depth_first(
                engine, "x", letters, COUNTING, lambda x, text: False, width=2, depth=1, threshold=threshold
            )
        return found.levels[0].kept, found.levels[0].tied_at_cut

    assert level(0.0) == ((1, 0), (0, 2))
    assert level(0.05) == ((1,), ())


def test_a_recorded_level_says_what_each_thought_goes_on_from(tmp_path: Path) -> None:
    with Engine(Scripted(no_model), store=tmp_path / "s.sqlite") as engine:
        beam(engine, "x", letters, COUNTING, width=2, depth=2, run="broad")
        depth_first(engine, "y", letters, COUNTING, lambda x, text: False, width=1, depth=2, threshold=0.1, run="deep")
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        first, second = (task for task, _ in store.read("broad").results())
        above, below = (task for task, _ in store.read("deep").results())
    assert first.metadata["search"] == {"parents": [None] * 3, "width": 2, "threshold": None}
    assert second.metadata["search"]["parents"] == [[first.id, 1]] * 3 + [[first.id, 0]] * 3  # b was kept before a
    assert first.metadata["group"] == second.metadata["group"] == first.id.replace("thoughts", "search")
    assert below.metadata["search"] == {"parents": [[above.id, 1]] * 3, "width": 1, "threshold": 0.1}
    assert above.metadata["group"] == below.metadata["group"] != first.metadata["group"]


def test_what_is_kept_has_a_score_and_reaches_the_threshold() -> None:
    assert kept_of([1.0, None, 9.0, 5.0, 5.0], 3, Scale()) == [2, 3, 4]
    assert kept_of([1.0, None, 9.0, 5.0], 3, Scale(), 0.5) == [2, 3]
    assert kept_of([1.0, None, 9.0, 5.0], 2, Scale(higher_is_better=False), 0.5) == [0, 3]


@pytest.mark.parametrize("x", SOLVABLE)
def test_the_game_of_24_is_solved_by_both_searches(x: str) -> None:
    with Engine(Scripted(no_model)) as engine:
        broad = beam(engine, x, game24.propose, game24.by_search(), width=5, depth=3, is_solved=game24.is_solved)
        deep = depth_first(engine, x, game24.propose, game24.by_search(), game24.is_solved, threshold=0.5)
    for result in (broad, deep):
        assert result.is_solved
        assert game24.numbers_left(x, result.best[0].text) == (24,)


def test_what_cannot_be_solved_is_said_to_be_so() -> None:
    with Engine(Scripted(no_model)) as engine:
        x = "1 1 1 1"
        assert not beam(engine, x, game24.propose, game24.by_search(), is_solved=game24.is_solved).is_solved
        deep = depth_first(engine, x, game24.propose, game24.by_search(), game24.is_solved, threshold=0.5)
        assert not deep.is_solved
        assert [len(level.kept) for level in deep.levels] == [0]


def test_depth_first_looks_into_no_more_thoughts_than_it_may() -> None:
    with Engine(Scripted(no_model)) as engine:
        result = depth_first(engine, "x", letters, COUNTING, lambda x, text: False, depth=9, max_visits=4)
    assert len(result.levels) <= 4
    assert result.best[0].text == "bbb"


def judged(call: Call) -> str:
    """A judge to whom small positions are sure."""
    return "sure" if len(call.messages[-1]["content"]) % 3 else "impossible"


def test_a_recorded_search_comes_back_the_same_without_a_call(tmp_path: Path) -> None:
    calls: list[Call] = []

    def counted(call: Call) -> str:
        calls.append(call)
        return judged(call)

    def search() -> str:
        with Engine(Scripted(counted), store=tmp_path / "search.sqlite") as engine:
            result = beam(engine, "4 9 10 13", game24.propose, game24.by_model(), width=3, depth=2, run="one")
            return json.dumps([[thought.text, thought.score] for thought in result.best])

    first = search()
    asked = len(calls)
    assert asked > 100
    assert search() == first
    assert len(calls) == asked


def test_a_search_that_was_cut_off_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    calls: list[Call] = []

    def counted(call: Call) -> str:
        calls.append(call)
        return judged(call)

    def search(depth: int) -> None:
        with Engine(Scripted(counted), store=tmp_path / "search.sqlite") as engine:
            beam(engine, "4 9 10 13", game24.propose, game24.by_model(samples=1), width=3, depth=depth, run="one")

    search(1)
    first = len(calls)
    search(2)
    with Engine(Scripted(counted)) as engine:
        before = len(calls)
        beam(engine, "4 9 10 13", game24.propose, game24.by_model(samples=1), width=3, depth=2)
    assert before == len(calls) - before  # both levels asked in full: as many as the two halves together
    assert first < before


def test_proposers_may_be_async_and_searches_run_side_by_side() -> None:
    async def slow(x: str, text: str) -> list[str]:
        await asyncio.sleep(0)
        return letters(x, text)

    async def both() -> list[str]:
        with Engine(Scripted(no_model)) as engine:
            flows = [beam_flow(engine, x, slow, COUNTING, width=1, depth=2) for x in "xy"]
            results = await engine.adrive(gather(flows))
        return [result.best[0].text for result in results]

    assert asyncio.run(both()) == ["bb", "bb"]


def test_what_goes_wrong_in_a_search_is_raised() -> None:
    def fails(x: str, text: str) -> list[str]:
        raise ValueError("no idea")

    with Engine(Scripted(no_model)) as engine:
        with pytest.raises(ConfigError, match="propose: proposer raised ValueError: no idea"):
            beam(engine, "x", fails, COUNTING)
        with pytest.raises(ConfigError, match="needs a store"):
            beam(engine, "x", letters, COUNTING, run="one")


@pytest.mark.parametrize("setting", ["width", "depth"])
def test_a_search_of_no_width_or_depth_is_refused(setting: str) -> None:
    with Engine(Scripted(no_model)) as engine, pytest.raises(ConfigError, match="at least 1"):
        beam(engine, "x", letters, COUNTING, width=int(setting != "width"), depth=int(setting != "depth"))
