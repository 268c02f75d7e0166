"""Several eval sets as one: in order, each in its own format, with ids that tell files apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.dataset.evalset import EvalSet
from debate.dataset.readers import RecordFile
from debate.dataset.several import EvalSets, evalset_of, joined_name, names_of
from debate.errors import ConfigError, TaskError
from tests.dataset.files import array, lines

OWN = {"id": "1", "x": "q", "candidates": ["a", "b"]}
BAR = {"input": "i", "output_1": "a", "output_2": "b", "label": 1}


def ids(*paths: Path, **how: Any) -> list[str]:
    return [task.id for task, _, _ in evalset_of(paths, **how).tasks()]


def test_one_file_is_the_eval_set_that_it_always_was(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", OWN)
    assert evalset_of([file], 3) == EvalSet(file, 3)


def test_files_of_different_formats_are_read_one_after_the_other(tmp_path: Path) -> None:
    files = [array(tmp_path / "a.json", OWN, {**OWN, "id": "2"}), lines(tmp_path / "b.jsonl", BAR)]
    found = list(evalset_of(files).tasks())
    assert [task.x for task, _, _ in found] == ["q", "q", "i"]
    assert [(Path(file).name, line is not None) for _, file, line in found] == [
        ("a.json", True),
        ("a.json", True),
        ("b.jsonl", True),
    ]


def test_a_limit_is_of_all_files_together_and_opens_no_further_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [lines(tmp_path / f"{name}.jsonl", {**OWN, "id": name}) for name in "abc"]
    assert ids(*files, limit=2) == ["a", "b"]
    files[2].write_text("no tasks")
    assert ids(*files, limit=2) == ["a", "b"]
    with pytest.raises(TaskError, match=r"c\.jsonl:1"):
        ids(*files)


def test_ids_that_files_give_have_the_names_of_the_files_before_them_where_that_is_asked_for(tmp_path: Path) -> None:
    files = [lines(tmp_path / f"{name}.jsonl", OWN, {"x": name, "candidates": ["a"]}) for name in "ab"]
    plain, named = ids(*files), ids(*files, prefix_ids=True)
    assert [plain[0], plain[2]] == ["1", "1"]
    assert named == ["a/1", plain[1], "b/1", plain[3]]
    assert ids(files[0], prefix_ids=True)[0] == "a/1"


def test_what_the_tasks_depend_on_is_in_the_digest(tmp_path: Path) -> None:
    files = [lines(tmp_path / f"{name}.jsonl", {**OWN, "id": name}) for name in "ab"]
    found = {
        evalset_of(files).digest(),
        evalset_of(files[::-1]).digest(),
        evalset_of(files, 1).digest(),
        evalset_of(files, format="own").digest(),
        evalset_of(files, prefix_ids=True).digest(),
        evalset_of(files[:1]).digest(),
    }
    assert len(found) == 6
    reading = evalset_of(files).read()
    list(reading)
    assert reading.digest() == evalset_of(files).digest()
    files[1].write_text(files[1].read_text() + "\n")
    assert evalset_of(files).digest() != reading.digest()


def test_a_pass_reads_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    first = RecordFile.__init__

    def counted(self: RecordFile, path: Path) -> None:
        opened.append(path)
        first(self, path)

    monkeypatch.setattr(RecordFile, "__init__", counted)
    files = [lines(tmp_path / f"{name}.jsonl", {**OWN, "id": name}) for name in "ab"]
    reading = evalset_of(files).read()
    list(reading)
    reading.digest()
    assert opened == files


def test_what_cannot_be_of_several_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="answers: go with one eval set"):
        evalset_of([tmp_path / "a", tmp_path / "b"], answers=(tmp_path / "c",))
    with pytest.raises(ConfigError, match="limit"):
        evalset_of([tmp_path / "a", tmp_path / "b"], 0)
    with pytest.raises(ConfigError, match="at least one file"):
        EvalSets(())


def test_a_runs_folder_is_told_all_files() -> None:
    assert evalset_of([Path("a.jsonl"), Path("b.csv")]).recorded == {"path": "a.jsonl", "more": ["b.csv"]}


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c.jsonl", "c.csv"]), min_size=1, max_size=4), min_size=1))
def test_names_of_files_tell_them_apart_and_end_with_their_own(given_: list[list[str]]) -> None:
    paths = [Path(*parts) for parts in given_]
    names = names_of(paths)
    assert all(name.endswith(path.stem) for name, path in zip(names, paths, strict=True))
    assert len(set(names)) == len(names)


def test_as_many_folders_are_named_as_it_takes() -> None:
    assert names_of([Path("x/a.jsonl"), Path("x/b.jsonl")]) == ("a", "b")
    assert names_of([Path("x/a.jsonl"), Path("y/a.jsonl")]) == ("x/a", "y/a")
    assert names_of([Path("a.jsonl"), Path("a.csv")]) == ("1/a", "2/a")


def test_a_run_is_named_for_its_files() -> None:
    assert joined_name([Path("a.jsonl")]) == "a"
    assert joined_name([Path("x/a.jsonl"), Path("b.csv")]) == "a+b"
    assert joined_name([Path(f"{n:040}.jsonl") for n in range(5)]) == f"{0:040}+4"
