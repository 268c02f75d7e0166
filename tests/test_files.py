"""Files appear whole or not at all; a lock is one process's; text that is written is valid Unicode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from debate.errors import StoreError
from debate.files import FileInUseError, FileLock, atomic_write, json_text, write_text


def test_a_file_takes_its_name_once_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("all of it")
        assert not path.exists()
    assert path.read_text() == "all of it"
    assert list(path.parent.iterdir()) == [path]


def test_after_an_error_the_file_of_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "before")
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as temporary:
        temporary.write_text("half of")
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_written_is_named_with_the_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "x.txt"
    with pytest.raises(StoreError, match=r"x\.txt: cannot be written") as caught, atomic_write(path, "free some space"):
        pass
    assert caught.value.hint == "free some space"


def test_a_lock_is_held_once_and_names_its_holder(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "x.lock")
    with pytest.raises(FileInUseError, match=f"process {os.getpid()} on "):
        FileLock(tmp_path / "x.lock")
    lock.release()
    lock.release()
    FileLock(tmp_path / "x.lock").release()


def test_a_lone_surrogate_is_written_as_its_escape() -> None:
    assert json_text({"ä": "\ud83d"}) == '{"ä":"\\ud83d"}'
