"""Files appear whole or not at all; a lock is one process's; text that is written is valid Unicode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from debate.errors import StoreError
from debate.files import PRIVATE_FILE, FileInUseError, FileLock, atomic_write, is_locked, json_text, write_text


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


def test_a_shared_lock_keeps_exclusive_ones_out_and_one_that_was_exclusive_can_become_shared(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    assert not is_locked(path)
    first = FileLock(path)
    assert is_locked(path)
    with pytest.raises(FileInUseError):
        FileLock(path, shared=True)
    first.lock(shared=True)
    second = FileLock(path, shared=True)
    assert not is_locked(path), "a shared one does not count"
    with pytest.raises(FileInUseError):
        FileLock(path)
    first.release()
    second.lock(shared=False)
    assert is_locked(path)
    second.release(remove=True)
    assert not path.exists()


def test_a_lone_surrogate_is_written_as_its_escape() -> None:
    assert json_text({"ä": "\ud83d"}) == '{"ä":"\\ud83d"}'


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "run.json").symlink_to(tmp_path / "victim")
    write_text(tmp_path / "run.json", "{}")
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "run.json").read_text() == "{}"


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debate.files.token_hex", "0".__mul__)
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".run.json.0000.tmp").symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match=r"run\.json: cannot be written: File exists"):
        write_text(tmp_path / "run.json", "{}")
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_file_is_written_with_the_permissions_that_were_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "shared", "")
        write_text(tmp_path / "private", "", PRIVATE_FILE)
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("shared", "private")] == [0o644, 0o600]
