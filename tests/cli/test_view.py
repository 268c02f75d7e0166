"""`debate view` as a command: it prints an address that works, and ends when it is told to."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.command_line import debate
from tests.report.pages import debated, tasks

_COMMAND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from debate.cli import main; main()"
)
"""The command as of a terminal: a process that a shell began in the background does not hear Ctrl-C."""


@pytest.mark.parametrize(("place", "by"), [("run", signal.SIGINT), ("run/run.sqlite", signal.SIGTERM)])
def test_the_address_that_is_printed_opens_the_page_until_it_is_ended(
    tmp_path: Path, place: str, by: signal.Signals
) -> None:
    debated(tmp_path / "run", tasks(2), rounds=1)
    command = [sys.executable, "-u", "-c", _COMMAND, "view", str(tmp_path / place), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as viewing:
        try:
            assert viewing.stdout is not None
            url = viewing.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(url, timeout=20) as answer:
                assert b"<h1" in answer.read()
            viewing.send_signal(by)
            _, errors = viewing.communicate(timeout=30)
        finally:
            viewing.kill()
    assert errors == ""
    assert viewing.returncode == 0


def test_a_place_without_a_run_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert debate(monkeypatch, "view", tmp_path, "--no-browser") == 2
    assert "holds no run" in capsys.readouterr().err
    (tmp_path / "text.sqlite").write_text("no database", encoding="utf-8")
    assert debate(monkeypatch, "view", tmp_path / "text.sqlite", "--no-browser") != 0
    assert "is not a database" in capsys.readouterr().err
