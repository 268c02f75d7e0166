"""The tasks of a run as a list: what is picked, in which order, and what is said of how many there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.cli.listing import MOST_ROWS, Listing, Sort
from debate.errors import InputError
from debate.store import Store
from debate.store.standings import OUTCOMES, Standing
from tests.cli.test_summary import ROWS, execute, line_of, row
from tests.command_line import debate

NAN = float("nan")


def standing(task_id: str, **known: Any) -> Standing:
    fields: dict[str, Any] = {
        "group": None, "verdict": None, "is_failed": False, "is_tied": False, "margin": 1.0, "cv": 0.1
    }  # fmt: skip
    return Standing(task_id, **(fields | known))


STANDINGS = [
    standing("hit", verdict="right", group="odd", cv=0.4, margin=3.0),
    standing("tie", verdict="tied", group="even", is_tied=True, cv=NAN, margin=0.0),
    standing("miss", verdict="wrong", group="odd", cv=0.2, margin=0.5),
    standing("within", verdict="right", group="even", is_tied=True, cv=0.3, margin=0.0),
    standing("none", verdict="unscored", group="odd", is_failed=True, cv=NAN, margin=NAN),
    standing("open", group="even", cv=0.0, margin=2.0),
]


def ids(listing: Listing, standings: Sequence[Standing] = STANDINGS) -> str:
    listed = listing.of(standings)
    return " ".join(each.task_id for each in listing.arranged(listed, (each.group for each in standings)))


@pytest.mark.parametrize(
    ("listing", "listed"),
    [
        (Listing(), "miss none hit tie open within"),
        (Listing(("wrong",)), "miss"),
        (Listing(("tied",)), "tie within"),
        (Listing(("unscored",)), "none"),
        (Listing(("wrong", "unscored")), "miss none"),
        (Listing(groups=("even",)), "tie open within"),
        (Listing(("wrong", "tied"), ("odd",)), "miss"),
        (Listing(sort="cv"), "hit within miss open none tie"),
        (Listing(sort="margin"), "tie within miss open hit none"),
        (Listing(("tied",), sort="cv"), "within tie"),
    ],
)
def test_kinds_add_up_groups_narrow_down_and_a_sort_is_over_all_groups(listing: Listing, listed: str) -> None:
    assert ids(listing) == listed


@pytest.mark.parametrize(
    ("listing", "told"),
    [
        (Listing(), "6 tasks: 2 right, 1 wrong, 1 tied, 1 unscored, 1 unlabeled; 40 % [12, 77] right"),
        (Listing(("wrong",)), "1 of 6 tasks: 1 wrong"),
        (Listing(("tied",), sort="cv"), "2 of 6 tasks: 1 right, 1 tied; highest CV first"),
        (
            Listing(groups=("odd",), sort="margin"),
            "3 of 6 tasks: 1 right, 1 wrong, 1 unscored; 33 % [6, 79] right; group odd; smallest margin first",
        ),
        (Listing(("wrong",), ("even",)), "0 of 6 tasks; none is wrong; group even"),
    ],
)
def test_it_is_told_how_many_there_are_of_how_many(listing: Listing, told: str) -> None:
    assert listing.told(listing.of(STANDINGS), STANDINGS) == told


def test_what_a_run_cannot_be_asked_is_refused_with_what_to_do() -> None:
    unlabeled = [standing("a", group="short"), standing("b", cv=NAN)]
    with pytest.raises(InputError, match="--wrong: no task of the run has a label") as wrong:
        Listing(("wrong",)).of(unlabeled)
    assert "without asking a model" in str(wrong.value.hint)
    with pytest.raises(InputError, match="--group: no task of the run is of the group 'shirt'") as group:
        Listing(groups=("shirt",)).of(unlabeled)
    assert group.value.hint == "there is short"
    with pytest.raises(InputError, match="--sort: no task of the run has a cv"):
        Listing(sort="cv").of(unlabeled[1:])


numbers = st.just(NAN) | st.floats(0, 10)
any_standing = st.builds(
    Standing,
    task_id=st.text(max_size=3),
    group=st.sampled_from([None, "a", "b"]),
    verdict=st.sampled_from([None, "right", "wrong", "tied", "unscored"]),
    is_failed=st.booleans(),
    is_tied=st.booleans(),
    margin=numbers,
    cv=numbers,
)


@given(st.lists(any_standing, max_size=8), st.sampled_from([None, "cv", "margin"]))
def test_a_list_without_a_filter_has_every_task_once_and_in_order(standings: list[Standing], sort: Sort | None) -> None:
    if sort is not None and all(getattr(each, sort) != getattr(each, sort) for each in standings):
        return
    listing = Listing(sort=sort)
    listed = listing.of(standings)
    assert sorted(map(id, listed)) == sorted(map(id, standings))
    if sort is None:
        places = [OUTCOMES.index(each.outcome) for each in listed]
        assert places == sorted(places)
    arranged = listing.arranged(listed)
    assert sorted(map(id, arranged)) == sorted(map(id, standings))


# ---- of a run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    execute(tmp_path / "out", ROWS)
    return tmp_path / "out"


def listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, *flags: str, width: int = 80
) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    assert debate(monkeypatch, "show", run, *flags) == 0
    return capsys.readouterr().out


def test_a_run_of_several_tasks_is_listed_with_its_verdicts(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = listed(monkeypatch, capsys, run)
    assert text.splitlines()[0].startswith("6 tasks: 2 right, 1 wrong, 2 tied, 1 unscored; 40 %")
    assert line_of(text, "miss").split() == ["miss", "2", "3", "wrong", "2.0", "7.0", "1.0"]
    assert line_of(text, "open").split() == ["open", "1=2", "6.0", "6.0", "1.0"]


@pytest.mark.parametrize("flags", [("--wrong",), ("--ties", "--group", "even"), ("--unscored",), ("--sort", "margin")])
def test_a_results_file_without_its_store_lists_the_same_with_its_eval_set(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    known = listed(monkeypatch, capsys, run, *flags)
    (run.parent / "alone").mkdir()
    alone = run.parent / "alone" / "results.jsonl"
    alone.write_bytes((run / "results.jsonl").read_bytes())
    assert listed(monkeypatch, capsys, alone, "--evalset", str(run / "tasks.jsonl"), *flags) == known


def test_a_key_that_no_task_has_is_refused() -> None:
    nameless = [replace(each, group=None) for each in STANDINGS]
    with pytest.raises(InputError, match="no task of the run has 'subject' in its metadata"):
        Listing(key="subject").of(nameless)
    Listing().of(nameless)


def test_groups_may_go_by_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(f"t{n}", "1 2", 0, language=("de", "en")[n % 2], group="g") for n in range(4)]
    execute(tmp_path / "out", rows)
    text = listed(monkeypatch, capsys, tmp_path / "out", "--by", "language", "--group", "en")
    assert text.startswith("2 of 4 tasks: 2 wrong; 0 % [0, 66] right; language en")
    assert [line.split()[0] for line in text.splitlines() if line.startswith(("-", "t"))] == ["task", "-", "t1", "t3"]


def test_at_most_twenty_rows_are_shown_the_wrong_ones_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(f"task-{n:02}", "1 2", int(n != 40)) for n in range(45)]
    execute(tmp_path / "out", rows)
    text = listed(monkeypatch, capsys, tmp_path / "out")
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("task-")]
    assert shown == ["task-40", *(f"task-{n:02}" for n in range(MOST_ROWS - 1))]
    assert "... and 25 more: --all lists them" in text
    every = listed(monkeypatch, capsys, tmp_path / "out", "--all")
    assert sum(line.startswith("task-") for line in every.splitlines()) == 45
    assert "more" not in every


def test_the_worst_of_a_store_are_those_of_the_list(run: Path) -> None:
    with Store(run / "run.sqlite") as store:
        record = store.read()
        every = record.standings()
        ranked = [each.task_id for each in Listing().of(every)]
        for n in range(1, 7):
            assert [each.task_id for each in record.standings(worst=n)] == ranked[:n]
    assert [each.task_id for each in every] == [each["id"] for each in ROWS]
    assert ranked == ["miss", "none", "tie", "open", "hit", "within"]


def test_many_candidates_are_told_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(tmp_path / "out", [row("many", " ".join(map(str, range(10)))), row("two", "1 2")])
    text = listed(monkeypatch, capsys, tmp_path / "out")
    assert line_of(text, "many").split() == ["many", "10", "9.0,", "best", "of", "10"]
    lines = map(json.loads, (tmp_path / "out" / "results.jsonl").read_text().splitlines())  # in the order of their ends
    assert {line["task_id"]: line["selected"] for line in lines}["many"] == 9
