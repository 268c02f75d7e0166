"""Labels in a task's metadata and in files: what they say, alone and together, and where a fault in them is."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Candidate, Task
from debate.dataset.evalset import EvalSet
from debate.dataset.labels import LABELS, Drawn, Labels, labels_of, read_labels
from debate.errors import TaskError
from debate.types import Names

quick = settings(deadline=None, max_examples=40)

PAIR: Names = [("c0", "small"), ("c1", "large")]
THREE: Names = [("c0", "small"), ("c1", "large"), ("c2", "small")]
VOTES: tuple[dict[str, Any], ...] = ({"best": 0}, {"best": "large"}, {"ranking": [1, 1]}, {"ranking": [2, 1]})
CHOSEN = ((0,), (1,), (0, 1), (1,))


def of(metadata: dict[str, Any], names: Names = PAIR) -> Labels:
    return labels_of(metadata, names)


def joined(tmp_path: Path, *rows: dict[str, Any], names: Names = PAIR) -> Labels:
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps({"task_id": "q", **row}) + "\n" for row in rows))
    return read_labels(file, {"q": names}).labels["q"]


# ---- what labels say


@pytest.mark.parametrize("label", [1, 1.0, "B", "c1", "large", [1], ["c1", "B"]])
def test_a_label_names_a_candidate_as_a_task_does(label: Any, tmp_path: Path) -> None:
    task = Task("x", [Candidate(text, *each) for text, each in zip("abc", THREE, strict=True)], best=label)
    assert task.best == of({"best": label}, THREE).together.best == (1,)
    assert of({"votes": [{"best": label}]}, THREE).votes[0].best == (1,)
    assert joined(tmp_path, {"best": label}, names=THREE).together.best == (1,)


def test_what_is_preferred_is_the_ranking_else_the_best_else_the_mean_score() -> None:
    ranked = of({"ranking": [2, 1, 1]}, THREE).together
    assert (ranked.preference, ranked.choice) == (pytest.approx([-2, -1, -1]), (1, 2))
    named = of({"best": [0, 2], "scores": {"clarity": [1, 5, 1]}}, THREE).together
    assert (named.preference, named.choice) == (pytest.approx([1, 0, 1]), (0, 2))
    scored = of({"scores": {"clarity": [1, 5, 3], "depth": [1, 2, 4]}}, THREE).together
    assert (scored.preference, scored.choice) == (pytest.approx([1, 3.5, 3.5]), (1, 2))


def test_equal_means_tie_whatever_their_rounding() -> None:
    scored = of({"scores": {"clarity": [0.1, 0.3], "depth": [0.2, 0.2], "style": [0.3, 0.1]}}).together
    assert scored.choice == (0, 1)
    assert scored.preference is not None
    assert scored.preference[0] == scored.preference[1]


def test_a_candidate_without_a_score_leaves_the_choice_open() -> None:
    opinion = of({"scores": {"clarity": [1, None, 3]}}, THREE).together
    assert opinion.preference == pytest.approx([1, math.nan, 3], nan_ok=True)
    assert opinion.choice == ()


def test_a_task_without_labels_has_none() -> None:
    found = of({"group": "a", "best": None, "votes": []})
    assert (bool(found), found.together.preference, found.together.choice) == (False, None, ())


@quick
@given(st.lists(st.sampled_from(range(len(VOTES))), max_size=7), st.randoms())
def test_votes_in_any_order_say_together_what_more_than_half_chose(votes: list[int], random: Any) -> None:
    shuffled = random.sample(votes, len(votes))
    found, again = (of({"votes": [VOTES[n] for n in order]}) for order in (votes, shuffled))
    assert found.together.choice == again.together.choice
    counts = Counter(CHOSEN[n] for n in votes)
    expected = [choice for choice, count in counts.items() if 2 * count > len(votes)]
    assert found.together.choice == (expected[0] if expected else ())
    assert [vote.by for vote in found.votes] == [f"person {n}" for n in range(1, len(votes) + 1)]


scores = st.lists(st.one_of(st.none(), st.integers(1, 5)), min_size=2, max_size=2)


@quick
@given(st.lists(scores, min_size=1, max_size=4))
def test_scores_of_several_people_are_averaged_over_those_who_gave_one(given: list[list[int | None]]) -> None:
    found = of({"votes": [{"scores": {"clarity": each}} for each in given]})
    for j in range(2):
        known = [score for each in given if (score := each[j]) is not None]
        mean = sum(known) / len(known) if known else math.nan
        assert found.together.scores["clarity"][j] == pytest.approx(mean, nan_ok=True)
    assert found.together.best == ()


def test_components_that_one_person_left_out_are_those_of_the_others() -> None:
    found = of({"votes": [{"scores": {"clarity": [1, 2]}}, {"scores": {"clarity": [3, 2], "depth": [5, 1]}}]})
    assert {name: each.tolist() for name, each in found.together.scores.items()} == {
        "clarity": [2.0, 2.0],
        "depth": [5.0, 1.0],
    }


def test_what_is_said_beside_the_votes_stands() -> None:
    found = of({"best": 0, "votes": [{"best": 1}, {"best": 1}]})
    assert (found.together.best, [vote.best for vote in found.votes]) == ((0,), [(1,), (1,)])


def test_the_only_candidate_can_be_the_best_and_is_then_no_tie() -> None:
    assert of({"votes": [{"best": 0}]}, [(None, None)]).together.best == (0,)


# ---- files


def test_lines_of_several_people_are_votes_and_a_later_line_replaces_an_earlier_one(tmp_path: Path) -> None:
    anna, ben = {"by": "anna", "at": "2026-01-31", "best": 0}, {"by": 0, "best": "B"}
    found = joined(tmp_path, anna, ben, {"by": "cleo", "best": 1}, {**anna, "best": 1})
    assert [(vote.by, vote.at, vote.best) for vote in found.votes] == [
        ("anna", "2026-01-31", (1,)),
        ("0", "", (1,)),
        ("cleo", "", (1,)),
    ]
    assert found.together.best == (1,)


def test_a_later_line_without_a_label_takes_it_back(tmp_path: Path) -> None:
    found = joined(tmp_path, {"by": "anna", "best": 0}, {"by": "ben", "best": 1}, {"by": "anna", "best": None})
    assert ([vote.by for vote in found.votes], found.together.best) == (["ben"], (1,))


def test_votes_in_one_line_and_lines_of_people_count_together(tmp_path: Path) -> None:
    found = joined(tmp_path, {"votes": [{"by": "anna", "best": 0}]}, *({"by": name, "best": 1} for name in ("b", "c")))
    assert ([vote.by for vote in found.votes], found.together.best) == (["anna", "b", "c"], (1,))


def test_ids_that_the_run_does_not_have_are_counted_once(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(f'{{"task_id": "{name}", "best": 0}}\n' for name in "zqyz"))
    found = read_labels(file, {"q": PAIR, "r": PAIR})
    assert (list(found.labels), found.unknown) == (["q"], ("z", "y"))


def test_a_file_of_which_nothing_joins_is_refused_with_the_ids_of_both(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"(?s)labels\.jsonl: no task of the run has one of these ids: q.*'t0'"):
        file = tmp_path / "labels.jsonl"
        file.write_text('{"task_id": "q", "best": 0}\n')
        read_labels(file, {"t0": PAIR})


def test_a_table_of_labels_has_numbers_lists_and_objects_in_its_cells(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(
        "task_id,by,best,ranking,scores\n"
        "0,anna,1,,\n"
        "0,ben,B,,\n"
        '1,,,"[1, 1.0]",\n'
        '2,,"[0, ""large""]",,"{""clarity"": [3, null]}"\n'
        "3,,,,\n"
    )
    found = read_labels(file, {str(n): PAIR for n in range(4)}).labels
    assert found["0"].together.best == (1,)
    assert found["1"].together.choice == found["2"].together.choice == (0, 1)
    assert found["2"].together.scores["clarity"].tolist() == pytest.approx([3, math.nan], nan_ok=True)
    assert not found["3"]


NUMBERED: list[tuple[Names, str]] = [
    ([("1", None), ("2", None)], "id of candidate 0"),
    ([("c0", "1"), ("c1", "2")], "generator of candidate 0"),
]


@pytest.mark.parametrize(("names", "told"), NUMBERED)
@pytest.mark.parametrize("cell", ["1", "1.0"])
def test_a_number_that_is_an_index_and_the_name_of_another_candidate_is_refused(
    cell: str, names: Names, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(f"task_id,best\nq,{cell}\n")
    with pytest.raises(
        TaskError, match=rf"labels\.csv:2: best: `{cell}` is both an index from 0 and the {told}"
    ) as error:
        read_labels(file, {"q": names})
    assert "the letter" in str(error.value.hint)


def test_a_number_that_is_the_index_of_the_candidate_of_that_name_is_read(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("task_id,best\nq,1\nr,B\n")
    found = read_labels(file, {"q": [("0", None), ("1", None)], "r": [("1", None), ("2", None)]}).labels
    assert found["q"].together.best == found["r"].together.best == (1,)
    assert joined(tmp_path, {"best": "1"}, names=[("1", None), ("2", None)]).together.best == (0,)


def test_a_parquet_file_of_labels_is_read(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"task_id": "q", "votes": [{"by": "anna", "best": 1}, {"by": "ben", "scores": {"clarity": [1.0, None]}}]}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "labels.parquet")
    anna, ben = read_labels(tmp_path / "labels.parquet", {"q": PAIR}).labels["q"].votes
    assert (anna.best, dict(anna.scores), ben.best, [*ben.scores]) == ((1,), {}, (), ["clarity"])


def test_how_a_task_was_drawn_is_read_beside_a_label_and_elsewhere_is_other_metadata(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text('task_id,by,best,drawn\nq,anna,1,"{""seed"": 1, ""size"": 2, ""of"": 9}"\n')
    (vote,) = read_labels(file, {"q": PAIR}).labels["q"].votes
    assert vote.drawn == Drawn(seed=1, size=2, of=9)
    assert not of({"drawn": "by hand"})


# ---- faults

FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"best": 2}, "best", "index of one of 2 candidates, got 2"),
    ({"best": "1"}, "best", "'1' names no candidate"),
    ({"best": ["A", "Z"]}, "best.1", "'Z' names no candidate"),
    ({"best": []}, "best", "empty list"),
    ({"best": 0, "ranking": [2, 1]}, "best", "contradicts the ranking [2, 1]"),
    ({"ranking": 1}, "ranking", "must be a list, got int"),
    ({"ranking": [1]}, "ranking", "a number for each of 2 candidates, got 1"),
    ({"ranking": [1, None]}, "ranking", "must rank every candidate"),
    ({"ranking": [1, "2"]}, "ranking.1", "must be a number, or null where there is none, got '2'"),
    ({"scores": [1, 2]}, "scores", "must be an object, got list"),
    ({"scores": {"clarity": [1, True]}}, "scores.clarity.1", "must be a number"),
    ({"scores": {"clarity": [10**400, 1]}}, "scores.clarity.0", "must be a number"),
    ({"votes": 12}, "votes", "must be a list, got int"),
    ({"votes": [{"best": 0}, {"by": "b", "choice": 1}]}, "votes.1", "holds no label, by its keys by, choice"),
    ({"votes": [{"by": "b", "best": 3}]}, "votes.0.best", "index of one of 2 candidates"),
    ({"votes": [{"by": "b", "best": 0}, {"by": "b", "best": 0}]}, "votes.1.by", "is a second vote of 'b'"),
    ({"votes": [{"votes": [{"best": 0}]}]}, "votes.0.votes", "is inside the vote of one person"),
]


@pytest.mark.parametrize(("said", "field", "says"), FAULTS)
def test_a_fault_is_told_with_its_place(said: dict[str, Any], field: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError) as caught:
        joined(tmp_path, {"best": 0, "by": "anna"}, said)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "labels.jsonl"), 2)
    assert (caught.value.field, says in caught.value.problem) == (field, True)
    with pytest.raises(TaskError) as caught:
        labels_of(said, PAIR, "q")
    assert (caught.value.field, caught.value.problem[:10]) == (f"metadata.{field}", "task 'q': ")


@pytest.mark.parametrize(
    ("row", "field", "says"),
    [
        ({"bst": 0}, None, "holds no label, by its keys task_id, bst"),
        ({"by": "b", "votes": [{"best": 0}]}, "votes", "is inside the vote of one person"),
        ({"task_id": None, "best": 0}, "task_id", "is missing"),
    ],
)
def test_a_line_that_is_no_label_is_told_with_its_number(
    row: dict[str, Any], field: str | None, says: str, tmp_path: Path
) -> None:
    with pytest.raises(TaskError) as caught:
        joined(tmp_path, {"best": 0, "by": "anna"}, row)
    assert (caught.value.line, caught.value.field, says in caught.value.problem) == (2, field, True)


def test_two_labels_of_a_task_that_nobody_signed_are_refused_at_the_second(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r":3: task_id: is a second label of this task, beside that of line 1"):
        joined(tmp_path, {"best": 0}, {"by": "anna", "best": 1}, {"best": 1})


def test_a_fault_in_a_cell_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text('task_id,ranking\nq,"[1, 2]"\nr,"[1, "\n')
    with pytest.raises(TaskError, match=r"labels\.csv:3: ranking: must be a JSON list or object"):
        read_labels(file, {"q": PAIR, "r": PAIR})


plain = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), st.floats(), st.sampled_from(["", "A", "c1", "[1]"]))
anything = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["by", "best", "scores", "at", "x"]), inner)
    ),
    max_leaves=6,
)


@quick
@given(st.dictionaries(st.sampled_from(sorted(LABELS)), anything))
def test_whatever_stands_there_is_a_label_or_refused(said: dict[str, Any]) -> None:
    try:
        found = of(said)
    except TaskError as error:
        assert str(error.field).startswith("metadata.")
    else:
        assert set(found.together.choice) <= {0, 1}
        assert all(vote.by for vote in found.votes)


# ---- in eval sets


@pytest.mark.parametrize(("said", "field", "says"), FAULTS)
def test_a_fault_in_an_eval_set_is_told_before_anything_is_judged(
    said: dict[str, Any], field: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps({"x": "?", "candidates": ["a", "b"], "metadata": said}) + "\n")
    with pytest.raises(TaskError) as caught:
        list(EvalSet(file).tasks())
    assert (caught.value.file, caught.value.line) == (str(file), 1)
    assert (caught.value.field, says in caught.value.problem) == (f"metadata.{field}", True)


def test_columns_of_a_table_hold_labels_too(tmp_path: Path) -> None:
    file = tmp_path / "tasks.csv"
    file.write_text('x,candidate_1,candidate_2,ranking,votes\n?,a,b,"[1, 1]","[{""by"": ""anna"", ""best"": ""B""}]"\n')
    ((task, _, _),) = EvalSet(file).tasks()
    found = of(dict(task.metadata))
    assert (found.together.choice, found.votes[0].best) == ((0, 1), (1,))
    file.write_text("x,candidate_1,candidate_2,votes\n?,a,b,12\n")
    with pytest.raises(TaskError, match=r"tasks\.csv:2: votes: must be a list, got int"):
        list(EvalSet(file).tasks())
