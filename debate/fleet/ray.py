"""Workers on a Ray cluster: a task of Ray per worker, in which the worker runs as a process of its own.

Ray places the workers and reserves their GPUs, nothing else: no call of a debate passes through it. Its own retries are
off, so that a death is counted once, by `Supervision`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from debate.errors import ConfigError
from debate.fleet.worker import GRACE_SECONDS, End, WorkerProcess
from debate.jobs.run_directory import RECORD_FILE

_AUTHENTICATION = (
    "all of the cluster's nodes and this process need one version of Ray and of Python, and one RAY_AUTH_MODE with one "
    "token (RAY_AUTH_TOKEN, or the file of RAY_AUTH_TOKEN_PATH)"
)


class RayLauncher:
    """Starts workers on a Ray cluster, each as soon as a node has room for it.

    Args:
        arguments: of `debate resume`, beside the folder.
        folder: of the run.
        address: of the cluster, as `ray.init` takes it; without one that of RAY_ADDRESS, else a cluster is begun on
            this machine, for this fleet.
        gpus, cpus: of each worker; they are on one node.
        needs_one_machine: whether other machines cannot reach the run's store.

    Raises:
        ConfigError: when Ray is not installed or refuses, or the cluster does not fit.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        *,
        address: str | None = None,
        gpus: int = 0,
        cpus: float = 1,
        needs_one_machine: bool = False,
    ) -> None:
        self._ray = connected(address or os.environ.get("RAY_ADDRESS") or "local")
        if needs_one_machine:
            _check_machines(self._ray)
        options = {"num_gpus": gpus, "num_cpus": cpus, "max_retries": 0, "num_returns": "streaming"}
        self._work = self._ray.remote(**options)(work)
        self._arguments, self._folder = list(arguments), str(folder.resolve())
        self._record = (folder / RECORD_FILE).read_text(encoding="utf-8")
        self._numbers: dict[Any, int] = {}
        """The workers by what Ray gives for them, a generator of what `work` yields."""

    def start(self, number: int) -> None:
        """Have a worker started as soon as there is room."""
        task = self._work.remote(number, self._arguments, self._folder, self._record, str(Path.cwd()))
        self._numbers[task] = number

    def events(self, seconds: float) -> list[tuple[int, str | End]]:
        """Where workers run now, and how others ended or were lost."""
        if not self._numbers:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(self._numbers), num_returns=len(self._numbers), timeout=seconds)
        found = [(self._numbers[task], self._event(task)) for task in ready]
        for task, (_, event) in zip(ready, found, strict=True):
            if isinstance(event, End):
                del self._numbers[task]
        return found

    def _event(self, task: Any) -> str | End:
        try:
            return self._ray.get(next(task))
        except (self._ray.exceptions.RayError, StopIteration) as error:
            return End(None, f"{type(error).__name__}: {str(error).strip()}")

    def close(self) -> None:
        """End all workers in order, and leave the cluster."""
        try:
            for task in self._numbers:
                self._ray.cancel(task)
            until = time.monotonic() + GRACE_SECONDS + 5
            while self._numbers and time.monotonic() < until:
                self.events(1)
        finally:
            self._ray.shutdown()


def connected(address: str) -> Any:
    """The module `ray`, connected to a cluster, or to one that is begun where `address` is `local`.

    Raises:
        ConfigError: when Ray is not installed or refuses.
    """
    if address.startswith("ray://"):
        hint = "run `debate fleet` on a node of the cluster with --address auto, or through `ray job submit`"
        raise ConfigError("Ray's client (ray://) cannot start workers", field="--address", hint=hint)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray = import_module("ray")
    except ModuleNotFoundError:
        hint = "pip install 'debate-eval[ray]', here and on every node"
        raise ConfigError("Ray is not installed", field="--launcher", hint=hint) from None
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        settings |= {"include_dashboard": False, "object_store_memory": 100 << 20}
    try:
        ray.init(address, **settings)
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError) as error:
        problem = f"the Ray cluster {address!r} cannot be used: {error}"
        raise ConfigError(problem, field="--address", hint=_AUTHENTICATION) from None
    return ray


def _check_machines(ray: Any) -> None:
    """Refuse a cluster with other machines.

    Raises:
        ConfigError: where there are any.
    """
    here = ray.util.get_node_ip_address()
    others = sorted({node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]} - {here})
    if others:
        ray.shutdown()
        problem = f"the run's store is a file, which {', '.join(others)} cannot share with this machine"
        raise ConfigError(problem, field="--address", hint="begin the run with --store postgresql://USER@HOST/NAME")


# ---- on a node


def work(number: int, arguments: list[str], folder: str, record: str, directory: str) -> Generator[str | End]:
    """Run a worker on the node where this is called; yields where it runs, and how it ended.

    record: the run's `run.json`, for a node that does not have the folder.
    directory: where the fleet was started; the worker runs there too, where it exists.
    """
    with _at_hand(Path(folder), record) as here:
        command = [sys.executable, "-m", "debate", "resume", str(here), *arguments]
        where = Path(directory) if Path(directory).is_dir() else None
        with WorkerProcess(command, here, number, directory=where) as process:
            yield process.place
            yield process.wait()


@contextmanager
def _at_hand(folder: Path, record: str) -> Generator[Path]:
    """The run's folder; where this machine does not have it, one that says the same for as long as it is needed."""
    if (folder / RECORD_FILE).exists():
        yield folder
        return
    with TemporaryDirectory(prefix="debate-worker-", ignore_cleanup_errors=True) as temporary:
        (Path(temporary) / RECORD_FILE).write_text(record, encoding="utf-8")
        yield Path(temporary)
