"""The results file: nothing complete is lost, nothing incomplete is kept, and faults are found at their line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from debate.errors import InputError, StoreError
from debate.evaluation import Evaluation
from debate.jobs.results import ResultsFile
from debate.types import Failure, Transcript, Turn


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out" / "results.jsonl"


def evaluation(task_id: str, said: str = "Both are fine.") -> Evaluation:
    turn = Turn(
        round=0,
        agent="Critic",
        labels={"A": 1, "B": 0},
        scores=np.array([[7.0], [np.nan]]),  # (J, K)
        overall=said,
        comments=("good", "bad"),
    )
    return Evaluation(
        task_id=task_id,
        evaluator="debate",
        status="partial",
        scores=np.array([7.0, np.nan]),
        probabilities=np.array([1.0, 0.0]),
        selected=0,
        tensor=np.array([[[[7.0], [np.nan]]]]),
        cv=(float("nan"),),
        failures=(Failure("unreadable_reply", "no JSON"),),
        transcript=Transcript((turn,)),
    )


def write(path: Path, *task_ids: str) -> None:
    with ResultsFile(path) as results:
        for task_id in task_ids:
            results.append(evaluation(task_id))


def ids(path: Path) -> list[str]:
    return [each.task_id for each in ResultsFile(path).read()]


def test_what_is_appended_is_read_back(path: Path) -> None:
    original = evaluation("sky", said="Two\nlines,\u2028one separator, and caf\u00e9.")
    with ResultsFile(path) as results:
        results.append(original)
    [again] = ResultsFile(path).read()
    assert again.to_json() == original.to_json()
    assert again.transcript.turns[0].overall == original.transcript.turns[0].overall


def test_opening_an_existing_file_keeps_what_is_in_it(path: Path) -> None:
    write(path, "a", "b")
    write(path, "c")
    assert ids(path) == ["a", "b", "c"]
    assert ResultsFile(path).finished() == {"a", "b", "c"}


def test_each_line_can_be_read_by_others_at_once(path: Path) -> None:
    with ResultsFile(path) as results:
        results.append(evaluation("a"))
        assert ids(path) == ["a"]
        assert results.finished() == {"a"}


def test_without_a_file_nothing_is_finished_and_there_is_nothing_to_read(path: Path) -> None:
    assert ResultsFile(path).finished() == set()
    with pytest.raises(InputError, match="there is no such file"):
        list(ResultsFile(path).read())


def test_a_line_cut_off_anywhere_is_dropped_and_written_again_whole(path: Path) -> None:
    write(path, "a", "b")
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    for cut in range(start, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert ResultsFile(path).finished() == {"a"}
        with ResultsFile(path) as results:
            assert results.dropped_bytes == cut - start
            results.append(evaluation("b"))
        assert path.read_bytes() == whole


def test_a_last_line_that_lacks_only_its_line_feed_is_complete(path: Path) -> None:
    write(path, "a", "b")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert ResultsFile(path).finished() == {"a", "b"}
    with ResultsFile(path) as results:
        assert results.dropped_bytes == 0
        results.append(evaluation("c"))
    assert path.read_bytes().startswith(whole)
    assert ids(path) == ["a", "b", "c"]


def test_zero_bytes_left_by_a_power_cut_are_dropped(path: Path) -> None:
    write(path, "a")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"task_id":"b"' + b"\0" * 100)
    write(path, "b")
    assert ids(path) == ["a", "b"]


def test_only_the_file_as_it_was_opened_is_told_to_be_cut_off(path: Path) -> None:
    write(path, "a")
    with ResultsFile(path) as results:
        assert results.dropped_bytes == 0


@pytest.mark.parametrize("broken", ["{", "not json", '{"task_id": "a"', "\0\0"])
def test_a_broken_line_before_the_last_is_told_with_its_line(path: Path, broken: str) -> None:
    write(path, "a", "b")
    first, second = path.read_text(encoding="utf-8").splitlines()
    path.write_text(f"{first}\n{broken}\n{second}\n", encoding="utf-8")
    for use in (lambda: ResultsFile(path).finished(), lambda: ids(path), lambda: write(path, "c")):
        with pytest.raises(InputError, match=r"results\.jsonl:2: is not valid JSON"):
            use()
    assert path.read_text(encoding="utf-8").splitlines()[0] == first, "a file with a fault is left as it is"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", "lacks a task_id"),
        ("[]", "lacks a task_id"),
        ('{"task_id": 3}', "lacks a task_id"),
        ('{"task_id": "a"}', "evaluator: field required"),
        ('{"task_id": "a", "scale": 3}', "is not an evaluation"),
    ],
)
def test_json_that_is_no_evaluation_is_told_with_its_line(path: Path, line: str, message: str) -> None:
    write(path, "a")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    with pytest.raises(InputError, match=r"results\.jsonl:2: is not an evaluation") as caught:
        ids(path)
    assert message in str(caught.value)


def test_a_key_of_a_later_version_is_told_and_not_ignored(path: Path) -> None:
    write(path, "a")
    path.write_text(path.read_text(encoding="utf-8").replace('{"task_id"', '{"mood":1,"task_id"', 1), encoding="utf-8")
    with pytest.raises(InputError, match="mood"):
        ids(path)


def test_two_runs_cannot_append_to_one_file(path: Path) -> None:
    with ResultsFile(path), pytest.raises(InputError, match="another run"), ResultsFile(path):
        pass
    write(path, "a")
    assert ids(path) == ["a"]


def test_a_write_that_fails_half_way_leaves_no_half_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ResultsFile(path) as results:
        results.append(evaluation("a"))
        opened = results._file  # pyright: ignore[reportPrivateUsage]
        assert opened is not None
        written: list[int] = []

        class FullDisk:
            """Takes ten bytes, and no more."""

            def __getattr__(self, name: str) -> object:
                return getattr(opened, name)

            def write(self, data: bytes) -> int:
                if written:
                    raise OSError(28, "No space left on device")
                written.append(opened.write(data[:10]))
                return written[-1]

        monkeypatch.setattr(results, "_file", FullDisk())
        with pytest.raises(StoreError, match="No space left"):
            results.append(evaluation("b"))
        assert written == [10]
        monkeypatch.setattr(results, "_file", opened)
        results.append(evaluation("c"))
    assert ids(path) == ["a", "c"]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    for path in (tmp_path, tmp_path / "taken" / "results.jsonl"):
        with pytest.raises(InputError, match="cannot be written"), ResultsFile(path):
            pass
