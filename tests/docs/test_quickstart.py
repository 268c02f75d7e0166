"""The first commands of the README, carried out: an eval set, a run on a server, its debate."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from debate.testing import FakeServer
from tests.docs.blocks import REPOSITORY, blocks


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_first_commands_lead_to_a_debate(page: str, tmp_path: Path) -> None:
    [block] = [
        block for block in blocks("bash") if block.file == REPOSITORY / page and "--backend openai" in block.code
    ]
    with FakeServer() as server:
        lines = [line for line in block.code.splitlines() if not line.startswith(("pip ", "export "))]
        commands = "\n".join(lines).replace("http://localhost:8000/v1", f"{server.url}/v1")
        commands = re.sub(r"(?m)^debate ", f"{sys.executable} -m debate ", commands)
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OPENAI_API_KEY": ""}
        done = subprocess.run(
            ["bash", "-euc", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    assert "What is the capital of Australia?" in done.stdout
    assert "Round 1" in done.stdout
    assert len(server.requests) >= 3
