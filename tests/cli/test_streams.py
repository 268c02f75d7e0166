"""Output that nobody reads, or that has no room, ends in an exit code and a sentence, never in a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from debate.testing.fake_server import HANG, FakeServer, every

PROGRAM = [sys.executable, "-m", "debate"]
FULL = Path("/dev/full")


def shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A shell script in which `debate` is the program."""
    define = f'debate() {{ "{sys.executable}" -m debate "$@"; }}\n'
    env = {**os.environ, **environment}
    return subprocess.run(["bash", "-c", define + script], capture_output=True, text=True, timeout=120, env=env)


@pytest.mark.parametrize("command", ["--version", "--help", "profiles"])
def test_a_reader_that_leaves_early_is_no_fault(command: str) -> None:
    # The reader is gone before the program has said anything.
    done = shell(f"debate {command} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_command_that_finds_a_fault_keeps_its_exit_code_without_a_reader() -> None:
    done = shell("debate profiles nowhere 2>&1 | true; echo ${PIPESTATUS[0]}")
    assert done.stdout == "2\n"


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["--version", "--help", "profiles", "doctor --json"])
def test_a_full_disk_under_stdout_is_one_sentence(command: str) -> None:
    done = shell(f"debate {command} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "error: stdout cannot be written: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_disk_under_stderr_changes_no_exit_code() -> None:
    done = shell("debate profiles nowhere 2> /dev/full; echo $?; debate profiles general 2> /dev/full | tail -1")
    assert done.stdout.startswith("2\n")
    assert len(done.stdout.splitlines()) == 2


def test_a_closed_stdout_is_no_fault() -> None:
    assert shell("debate profiles >&-").returncode == 0


@pytest.mark.parametrize("command", ["profiles", "--help"])
def test_a_width_of_zero_is_no_width(command: str) -> None:
    said = shell(f"debate {command}", COLUMNS="0").stdout.splitlines()
    assert len(said) > 10
    assert 60 < max(map(len, said)) <= 80


def run(folder: Path, server: FakeServer, task_id: str = "t") -> list[str]:
    """The command of a run of one task on a server."""
    task = {"id": task_id, "x": "What is 2 + 2?", "candidates": ["4", "5"]}
    (folder / "tasks.jsonl").write_text(json.dumps(task))
    where = ["--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge", "--rounds", "1"]
    return ["run", str(folder / "tasks.jsonl"), *where, "--out", str(folder / "out")]


def test_a_run_whose_output_nobody_reads_is_finished_and_recorded(tmp_path: Path) -> None:
    with FakeServer() as server:
        command = " ".join(run(tmp_path, server))
        assert shell(f"debate {command} 2>&1 | true; echo ${{PIPESTATUS[0]}}").stdout == "0\n"
        assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 1
    shown = shell(f"debate show {tmp_path / 'out'} | head -1; echo ${{PIPESTATUS[0]}}")
    assert (shown.stdout, shown.stderr) == ("t\n0\n", "")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_run_on_a_full_disk_under_stdout_is_recorded(tmp_path: Path) -> None:
    with FakeServer() as server:
        done = shell(f"debate {' '.join(run(tmp_path, server))} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: stdout cannot be written: No space left on device"
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 1


def test_a_long_id_takes_a_few_lines_of_a_summary_and_a_list(tmp_path: Path) -> None:
    with FakeServer() as server:
        summary = shell(f"debate {' '.join(run(tmp_path, server, 'i' * 10_000))}")
    listed = shell(f"debate show {tmp_path / 'out'} --list")
    for said in (summary.stdout, listed.stdout):
        assert "(10,000" in said
        assert len(said.splitlines()) < 30


def heed_hangups() -> None:
    """Undo a `nohup` that the tests run under."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM"])
def test_a_run_whose_terminal_is_closed_says_how_it_goes_on(tmp_path: Path, name: str) -> None:
    with FakeServer(every(1, HANG)) as server:
        process = subprocess.Popen(
            [*PROGRAM, *run(tmp_path, server)], stderr=subprocess.PIPE, text=True, preexec_fn=heed_hangups
        )
        deadline = time.monotonic() + 60
        while not server.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(getattr(signal, name))
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "debate resume" in said
