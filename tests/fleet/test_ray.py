"""Workers on a real Ray cluster that loses a node; what is refused before anything starts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest

from debate.errors import ConfigError
from debate.fleet import ray as launcher
from debate.fleet.ray import RayLauncher
from debate.fleet.worker import End
from debate.store import Store
from debate.testing import FakeServer
from tests.postgres import postgres_database
from tests.required import required_module
from tests.scripts_loader import REPOSITORY


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'debate-eval\[ray\]'"):
        RayLauncher([], tmp_path)


def test_rays_client_is_refused_with_what_works_instead(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ray job submit"):
        RayLauncher([], tmp_path, address="ray://head:10001")


def test_a_store_that_is_a_file_is_refused_on_several_machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cluster is a stand-in: of several machines there is only one here."""
    nodes = [{"Alive": True, "NodeManagerAddress": "10.0.0.1"}, {"Alive": True, "NodeManagerAddress": "10.0.0.2"}]
    util = SimpleNamespace(get_node_ip_address=lambda: "10.0.0.1")
    cluster = SimpleNamespace(nodes=lambda: nodes, util=util, shutdown=lambda: None)

    def connected(address: str) -> Any:
        return cluster

    monkeypatch.setattr(launcher, "connected", connected)
    with pytest.raises(ConfigError, match=r"10\.0\.0\.2 cannot share.*\n.*postgresql"):
        RayLauncher([], tmp_path, needs_one_machine=True)


def test_a_node_without_the_folder_works_by_the_record_that_is_sent_along(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "t", "x": "Question?", "candidates": ["a", "b"]}')
    out = tmp_path / "run"
    with FakeServer() as server, postgres_database() as url:
        where = ("--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge", "--store", url)
        command = [sys.executable, "-m", "debate", "run", str(tmp_path / "tasks.jsonl"), "--out", str(out), *where]
        subprocess.run([*command, "--rounds", "1", "--prepare"], capture_output=True, timeout=120, check=True)
        record = (out / "run.json").read_text()
        shutil.rmtree(out)
        events = list(launcher.work(1, [], str(out), record, str(tmp_path)))
        with Store(url) as store:
            assert store.read(str(out)).evaluated() == ["t"]
    assert events[1:] == [End(0, ANY)]
    assert not out.exists()


def test_a_node_is_lost_and_another_joins_and_nothing_is_lost_or_done_twice() -> None:
    """A short form of what has its figures in the benchmark."""
    required_module("ray")
    with postgres_database() as url:
        options = ("--store", url, "--repetitions", "1", "--debates", "20", "--workers", "2")
        command = [sys.executable, str(REPOSITORY / "scripts" / "bench"), "fleet_ray", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "finished, complete, same results" in done.stdout
