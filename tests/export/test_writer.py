"""Exports, of any format: whole files or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from debate.errors import StoreError
from debate.evaluation import Evaluation
from debate.export import export_named
from debate.registry import EXPORTS
from debate.types import Task
from tests.export.evaluated import scored, task
from tests.required import required_module

required_module("pyarrow")


@pytest.mark.parametrize("name", [name for name, entry in EXPORTS.entries.items() if entry.package is None])
def test_an_export_that_fails_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    def breaking() -> Iterator[tuple[Task, Evaluation]]:
        yield task(2), scored(1, 2)
        raise RuntimeError("the store is gone")

    path = tmp_path / export_named(name).file
    path.write_text("before")
    with pytest.raises(RuntimeError):
        export_named(name).write(breaking(), path, "run")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/p\.jsonl"):
        export_named("preferences").write([], tmp_path / "file" / "p.jsonl", "run")


def test_a_killed_export_leaves_no_half_file_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "i.jsonl"
    program = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from debate.export import export_named
from debate.registry import EXPORTS
from tests.export.evaluated import scored, task
def slow():
    while True:
        yield task(1), scored(7)
        time.sleep(0.001)
export_named("inspect").write(slow(), Path({str(path)!r}), "run")
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not any(entry.stat().st_size for entry in tmp_path.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not path.exists()
