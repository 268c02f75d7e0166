"""Supervision of real processes: who is started again, how often, and when all end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from debate.fleet import local, worker
from debate.fleet.local import LocalLauncher
from debate.fleet.supervision import Supervision
from debate.fleet.worker import End

DONE, HOPELESS = (0, 3), (2, 6)
TOLD = "import os; open('told', 'a').write(f'{os.getpid()}\\n')\n"
"""First lines of a worker: it writes down that it was started."""
FIRST = "import os, sys, time, signal\nis_first = not os.path.exists('first') and not os.mkdir('first')\n"
"""First lines of a worker that does something else where it is the first one."""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(local.VISIBLE, raising=False)


def supervised(code: str, n_workers: int = 1, restarts: int = 0, gpus: int = 0) -> tuple[End, list[str]]:
    """The end of a fleet whose workers run some Python code, and what it told."""
    launcher = LocalLauncher([sys.executable, "-c", textwrap.dedent(code)], Path.cwd(), n_workers, gpus)
    told: list[str] = []
    end = Supervision(launcher, n_workers, restarts, DONE, HOPELESS, told.append, pause=0.01).run()
    return end, told


def started() -> list[int]:
    return [int(line) for line in Path("told").read_text().splitlines()]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def test_a_fleet_ends_when_its_workers_have_nothing_left() -> None:
    end, told = supervised(TOLD, n_workers=3)
    assert (end.code, len(set(started()))) == (0, 3)
    assert sum("started: " in each for each in told) == 3
    assert sum("ended: exit code 0" in each for each in told) == 3


def test_a_worker_that_is_killed_is_started_again_and_finishes() -> None:
    end, told = supervised(f"{TOLD}{FIRST}is_first and os.kill(os.getpid(), signal.SIGKILL)", restarts=1)
    assert (end.code, len(started())) == (0, 2)
    assert "worker 1 died, killed by SIGKILL" in told
    assert "worker 1 is started again in 0 s, restart 1 of 1" in told


@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), signal.SIGSEGV)", "sys.exit(4)", "sys.exit(5)", "1 / 0"])
def test_a_worker_that_always_dies_is_started_a_finite_number_of_times(ending: str) -> None:
    end, told = supervised(f"{TOLD}{FIRST}{ending}", restarts=2)
    assert len(started()) == 3
    assert end.code not in (*DONE, *HOPELESS)
    assert told[-1] == "worker 1 is not started again: it died 3 times"


def test_the_last_lines_of_a_worker_that_died_are_told() -> None:
    end, told = supervised("for n in range(100): print(n)\nraise SystemExit('the engine is gone')")
    assert "exit code 1:\n91\n" in told[1]
    assert end.said.endswith("99\nthe engine is gone")
    [log] = Path("workers").iterdir()
    assert log.read_text().startswith("0\n1\n")
    assert log.stat().st_mode & 0o077 == 0


def test_what_would_be_the_same_again_ends_all_workers() -> None:
    end, _ = supervised(f"{TOLD}{FIRST}if is_first: sys.exit('wrong')\ntime.sleep(600)".replace("'wrong'", "2"), 3, 5)
    assert end.code == 2
    assert not any(map(is_alive, started()))


def test_after_one_worker_is_done_the_others_are_waited_for_and_none_is_started_again() -> None:
    code = f"{TOLD}{FIRST}if is_first: sys.exit(3)\ntime.sleep(1)\nopen('late', 'w')\nos.kill(os.getpid(), 9)"
    end, told = supervised(code, n_workers=2, restarts=5)
    assert (end.code, len(started())) == (3, 2)
    assert Path("late").exists()
    assert not any("again" in each for each in told)


def test_workers_that_do_not_end_when_asked_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "GRACE_SECONDS", 0.3)
    code = f"{FIRST}{TOLD}if is_first:\n  while not os.path.exists('deaf'): time.sleep(0.01)\n  sys.exit(2)\n"
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('deaf', 'w')\ntime.sleep(600)"
    end, _ = supervised(code + deaf, n_workers=2)
    assert end.code == 2
    assert not any(map(is_alive, started()))


def test_each_worker_sees_gpus_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(local.VISIBLE, "GPU-a, 5,6,7,8")
    code = "import os; open(os.environ['CUDA_VISIBLE_DEVICES'], 'w')"
    _, told = supervised(code, n_workers=2, gpus=2)
    assert sorted(each.name for each in Path.cwd().iterdir() if "," in each.name) == ["6,7", "GPU-a,5"]
    assert told[0].endswith(", GPUs GPU-a,5")


def test_a_fleet_is_killed_and_its_workers_end_with_it(tmp_path: Path) -> None:
    code = """
    import sys
    from pathlib import Path
    from debate.fleet.local import LocalLauncher
    from debate.fleet.supervision import Supervision
    command = [sys.executable, "-c", sys.argv[1] + "import time; time.sleep(600)"]
    Supervision(LocalLauncher(command, Path.cwd(), 2), 2, 0, (0,), (2,), lambda text: None).run()
    """
    source = str(Path(worker.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": source}
    fleet = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), TOLD], env=environment)
    try:
        assert until(lambda: Path("told").exists() and len(started()) == 2)
        assert all(map(is_alive, started()))
    finally:
        fleet.send_signal(signal.SIGKILL)
        fleet.wait()
    assert until(lambda: not any(map(is_alive, started())))
