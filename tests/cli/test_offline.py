"""A whole run, model, memory and all, opens no connection that leaves the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts_loader import REPOSITORY

pytestmark = pytest.mark.vllm

WATCH = '''
"""Loaded by every Python process of the run: writes down where sockets connect to."""
import os, socket
_connect = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex")}
def _noting(name):
    def connect(self, address, *rest):
        # Connecting a datagram socket sends nothing: so vLLM asks the kernel for the machine's own address.
        if self.type & socket.SOCK_STREAM:
            with open(os.environ["CONNECTIONS"], "a") as file:
                file.write(repr(address) + "\\n")
        return _connect[name](self, address, *rest)
    return connect
for _name in _connect:
    setattr(socket.socket, _name, _noting(_name))
'''


def is_outward(address: str) -> bool:
    """Whether an address, as it was written down, is neither of this machine nor a file."""
    host = address.split(",")[0].strip("('\\" + '")')
    return "(" in address and not (host.startswith("127.") or host in ("::1", "localhost", "0.0.0.0", ""))


def test_a_full_run_connects_to_nothing_outside(tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"x": "What is 2 + 2?", "candidates": ["4", "5"]}) + "\n")
    connections = tmp_path / "connections"
    connections.touch()
    command = [
        sys.executable, "-m", "debate", "run", tmp_path / "tasks.jsonl", "--model", tiny_model, "--memory", "built-in",
        "--out", tmp_path / "out", "--config", REPOSITORY / "tests" / "tiny_model.yaml", "--rounds", "1",
        "--engine-arg", "max_model_len=16384", "--engine-arg", "kv_cache_memory_bytes=268435456",
        "--engine-arg", "enforce_eager=true",
    ]  # fmt: skip
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "CONNECTIONS": str(connections)}
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env=environment, timeout=900, cwd=REPOSITORY
    )
    assert done.returncode == 0, done.stderr
    recalled = json.loads((tmp_path / "out" / "results.jsonl").read_text())["transcript"][0]["memories"]
    assert recalled  # the embedder was used
    noted = connections.read_text().splitlines()
    assert [address for address in noted if is_outward(address)] == []


def test_what_leaves_the_machine_is_told_from_what_does_not() -> None:
    inward = ["('127.0.0.1', 80)", "('localhost', 1)", "'/tmp/socket'", "('::1', 5, 0, 0)", "b'\\x00abstract'"]
    assert not any(map(is_outward, inward))
    assert all(map(is_outward, ["('10.0.0.1', 443)", "('huggingface.co', 443)", "('2001:db8::1', 443, 0, 0)"]))
