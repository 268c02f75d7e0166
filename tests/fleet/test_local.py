"""GPUs of this machine, dealt out to workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from debate.errors import ConfigError
from debate.fleet.local import VISIBLE, gpu_groups, visible_gpus

LISTED = """GPU 0: NVIDIA H200 (UUID: GPU-1)
  MIG 1g.18gb     Device  0: (UUID: MIG-1)
GPU 1: NVIDIA H200 (UUID: GPU-2)"""


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that lists two GPUs."""
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<END\n{LISTED}\nEND\n")
    (tmp_path / "nvidia-smi").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(VISIBLE, raising=False)


@pytest.mark.usefixtures("nvidia_smi")
def test_without_a_choice_the_gpus_are_those_that_the_driver_lists() -> None:
    assert visible_gpus() == ["0", "1"]
    assert gpu_groups(2, 1) == ["0", "1"]
    assert gpu_groups(1, 2) == ["0,1"]


@pytest.mark.usefixtures("nvidia_smi")
def test_a_choice_in_the_environment_counts_also_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "")
    assert visible_gpus() == []
    monkeypatch.setenv(VISIBLE, "3,1,2")
    assert gpu_groups(3, 1) == ["3", "1", "2"]


def test_too_few_gpus_are_refused_with_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "4,5,6")
    with pytest.raises(ConfigError, match="2 workers with 2 each need 4 GPUs; CUDA_VISIBLE_DEVICES names 3: 4, 5, 6"):
        gpu_groups(2, 2)


def test_a_machine_without_a_driver_has_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus() == []
    with pytest.raises(ConfigError, match="nvidia-smi lists 0: none"):
        gpu_groups(1, 1)
