"""RewardBench: the chosen response, always first in its files, is not first in ours."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.dataset.build import in_hidden_order
from debate.errors import TaskError
from debate.types import Candidate
from tests.dataset.files import Row, best, generators, lines, read, texts
from tests.required import required_module


def said(text: str, question: str = "q") -> list[dict[str, Any]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": text}]


def pair(n: int, **more: Any) -> Row:
    return {"prompt": f"p{n}", "chosen": "good", "rejected": "bad", "id": n, **more}


def test_the_place_does_not_tell_which_response_was_chosen(tmp_path: Path) -> None:
    rows = [pair(n, subset="chat", chosen_model="m") for n in range(60)]
    tasks = read(lines(tmp_path / "r.jsonl", *rows), "reward_bench")
    assert all(texts(task)[best(task)] == "good" for task in tasks)
    assert all(generators(task)[best(task)] == "m" for task in tasks)
    assert 15 <= sum(best(task) == 0 for task in tasks) <= 45
    assert (tasks[0].id, tasks[0].metadata["subset"]) == ("chat/0", "chat")


def test_the_order_is_the_same_in_every_process() -> None:
    candidates = [Candidate(text) for text in "abcd"]
    assert [in_hidden_order(candidates, f"chat/{n}")[1] for n in range(3)] == [[2, 0, 3, 1], [2, 0, 1, 3], [0, 2, 1, 3]]


@given(st.lists(st.text("abc"), min_size=1, max_size=6), st.text("xyz"))
def test_a_hidden_order_loses_nothing_and_says_where_each_comes_from(said: list[str], key: str) -> None:
    shown, order = in_hidden_order([Candidate(text) for text in said], key)
    assert sorted(order) == list(range(len(said)))
    assert [candidate.text for candidate in shown] == [said[n] for n in order]


def test_equal_numbers_in_two_subsets_are_two_ids(tmp_path: Path) -> None:
    tasks = read(lines(tmp_path / "r.jsonl", pair(1, subset="a"), pair(1, subset="b")), "reward_bench")
    assert [task.id for task in tasks] == ["a/1", "b/1"]


def test_version_two_has_lists_and_perhaps_several_that_are_right(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"prompt": "p", "chosen": ["good"], "rejected": ["b1", "b2", "b3"], "subset": "Math", "id": "b"},
        {"prompt": "p", "chosen": ["g1", "g2"], "rejected": ["b1"], "subset": "Ties", "id": "c", "num_correct": 2},
    ]
    four, ties = read(lines(tmp_path / "r.jsonl", *rows), "reward_bench")
    assert (len(four.candidates), texts(four)[best(four)]) == (4, "good")
    assert {texts(ties)[n] for n in ties.best} == {"g1", "g2"}
    assert (len(ties.best), ties.metadata["num_correct"]) == (2, 2)


def test_the_parquet_files_it_is_published_in_are_recognised(tmp_path: Path) -> None:
    arrow, parquet = required_module("pyarrow"), import_module("pyarrow.parquet")
    rows = [{**pair(n), "chosen": ["good"], "rejected": ["b1", "b2"], "subset": "Math"} for n in range(3)]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "r.parquet")
    tasks = read(tmp_path / "r.parquet", "reward_bench")
    assert [texts(task)[best(task)] for task in tasks] == ["good"] * 3


def test_of_conversations_the_last_messages_are_judged_and_what_goes_before_is_the_input(tmp_path: Path) -> None:
    longer = [{"role": "system", "content": "Be brief."}, *said("first"), {"role": "user", "content": "again"}]
    rows = [
        pair(0, chosen=said("good"), rejected=said("bad")),
        pair(1, chosen=[*longer, said("good")[1]], rejected=[*longer, said("bad")[1]]),
        pair(2, prompt=[{"role": "user", "content": "asked"}]),
    ]
    one, two, three = read(lines(tmp_path / "r.jsonl", *rows), "reward_bench")
    assert (one.x, texts(one)[best(one)]) == ("q", "good")
    assert two.x == "System:\nBe brief.\n\nUser:\nq\n\nAssistant:\nfirst\n\nUser:\nagain"
    assert (set(texts(two)), three.x) == ({"good", "bad"}, "asked")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (pair(0, chosen=said("good"), rejected=said("bad", "another")), "rejected: is another conversation"),
        (pair(0, rejected=[]), "rejected: is empty"),
        (pair(0, chosen=["good", 1]), r"chosen\.1: must be a string"),
        (pair(0, chosen=[{"content": None}]), r"chosen\.0\.content: is missing"),
        (pair(0, prompt=None), "prompt: is missing"),
    ],
)
def test_a_broken_record_is_told_with_its_field(tmp_path: Path, row: Row, message: str) -> None:
    with pytest.raises(TaskError, match=rf"r\.jsonl:2: {message}"):
        read(lines(tmp_path / "r.jsonl", pair(1), row), "reward_bench")
