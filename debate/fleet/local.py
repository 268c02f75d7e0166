"""Workers on this machine, each with GPUs of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from debate.errors import ConfigError
from debate.fleet.worker import GRACE_SECONDS, End, WorkerProcess

VISIBLE = "CUDA_VISIBLE_DEVICES"
_POLL_SECONDS = 0.05


class LocalLauncher:
    """Starts workers as processes of this machine.

    Args:
        command: what a worker runs.
        folder: of the run.
        n_workers: how many there will be.
        gpus: of each worker; 0 leaves the environment as it is.

    Raises:
        ConfigError: when there are fewer GPUs than that needs.
    """

    def __init__(self, command: Sequence[str], folder: Path, n_workers: int, gpus: int = 0) -> None:
        self._command, self._folder = command, folder
        self._groups = gpu_groups(n_workers, gpus) if gpus else []
        self._processes: dict[int, WorkerProcess] = {}
        self._started: list[int] = []

    def start(self, number: int) -> None:
        """Start a worker."""
        environment = {VISIBLE: self._groups[number - 1]} if self._groups else None
        self._processes[number] = WorkerProcess(self._command, self._folder, number, environment)
        self._started.append(number)

    def events(self, seconds: float) -> list[tuple[int, str | End]]:
        """Where workers run now, and how others ended."""
        found: list[tuple[int, str | End]] = [(number, self._place(number)) for number in self._started]
        self._started.clear()
        until = time.monotonic() + seconds
        while not found and time.monotonic() < until:
            found = [(number, end) for number, each in self._processes.items() if (end := each.poll()) is not None]
            time.sleep(0 if found else _POLL_SECONDS)
        for number, event in found:
            if isinstance(event, End):
                self._processes.pop(number).end()  # also what it left behind
        return found

    def _place(self, number: int) -> str:
        gpus = f", GPUs {self._groups[number - 1]}" if self._groups else ""
        return f"{self._processes[number].place}{gpus}"

    def close(self) -> None:
        """End all workers: each is asked, then all are waited for, then killed."""
        until = time.monotonic() + GRACE_SECONDS
        try:
            for process in self._processes.values():
                process.ask_to_end()
            while any(each.poll() is None for each in self._processes.values()) and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)
        finally:  # a second Ctrl-C does not wait
            while self._processes:
                self._processes.popitem()[1].end(grace=0)


def gpu_groups(n_workers: int, gpus: int) -> list[str]:
    """A value of CUDA_VISIBLE_DEVICES for each worker.

    Raises:
        ConfigError: when there are too few GPUs.
    """
    there = visible_gpus()
    if len(there) < n_workers * gpus:
        names = ", ".join(there) or "none"
        source = f"{VISIBLE} names" if VISIBLE in os.environ else "nvidia-smi lists"
        needed = f"{n_workers} workers with {gpus} each need {n_workers * gpus} GPUs"
        hint = "fewer --workers, or fewer --gpus-per-worker"
        raise ConfigError(f"{needed}; {source} {len(there)}: {names}", field="--gpus-per-worker", hint=hint)
    return [",".join(there[n * gpus : (n + 1) * gpus]) for n in range(n_workers)]


def visible_gpus() -> list[str]:
    """The GPUs that this process may use: those of CUDA_VISIBLE_DEVICES where that is set, else all."""
    if (given := os.environ.get(VISIBLE)) is not None:
        return [name.strip() for name in given.split(",") if name.strip()]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(n) for n in range(sum(line.startswith("GPU ") for line in listed.splitlines()))]
