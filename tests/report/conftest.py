"""A real browser for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.required import required, required_module


@pytest.fixture(scope="module")  # its event loop runs in this thread, where other tests need theirs
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    required(program, "Chromium is not installed: scripts/chromium installs it")
    playwright = required_module("playwright.sync_api")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()
