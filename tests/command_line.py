"""The command line in this process: what a test runs as a user would."""

from __future__ import annotations

import signal
import sys

import pytest

from debate.cli import main


def debate(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of `debate ARGUMENTS`; the handler of SIGTERM stays what it was."""
    monkeypatch.setattr(sys, "argv", ["debate", *map(str, arguments)])
    before = signal.getsignal(signal.SIGTERM)
    try:
        main()
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
