"""A script that vLLM's processes would run again is refused before vLLM is imported, and no other one is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import debate
from debate import bundled_judge

HINT = 'hint: put the code that runs under `if __name__ == "__main__":`'
CHECK = "from debate.backends.vllm.script_guard import check_script\n"
PRINTS = "print('imported', flush=True)\n"


def run(folder: Path, script: str, *arguments: str, seconds: float = 60.0) -> tuple[int, list[str], list[str]]:
    """Run a script that is called `it.py`; returns its exit code, what it printed, and the lines of its errors."""
    (folder / "it.py").write_text(script, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(debate.__file__).parents[1])}
    command = [sys.executable, *(arguments or ("it.py",))]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


UNGUARDED = {
    "at the top": "check_script()",
    "in a function": "def main():\n    check_script()\nmain()",
    "in a thread": "import threading\nthread = threading.Thread(target=check_script)\nthread.start()\nthread.join()",
    "in an event loop": "import asyncio\nasync def main():\n    check_script()\nasyncio.run(main())",
    "in the other branch": "if __name__ == 'it':\n    pass\nelse:\n    check_script()",
    "under another condition": "import sys\nif len(sys.argv) == 1:\n    check_script()",
}


@pytest.mark.parametrize("code", UNGUARDED.values(), ids=UNGUARDED)
def test_a_script_that_starts_an_engine_when_it_is_imported_is_refused_once(tmp_path: Path, code: str) -> None:
    status, out, errors = run(tmp_path, f"{CHECK}{PRINTS}{code}\n")
    assert out == ["imported"]
    assert errors[-1].strip() == HINT
    assert status == 1 or "Thread" in code


FINE = {
    "its if": 'if __name__ == "__main__":\n    check_script()\n    print("done")',
    "its if, in a function": (
        'def main():\n    check_script()\n    print("done")\n\nif "__main__" == __name__:\n    main()'
    ),
    "an if of another kind": (
        "from multiprocessing import current_process\n"
        'if current_process().name == "MainProcess":\n    check_script()\n    print("done")'
    ),
    "an argument that a spawned process sees too, and a name": (
        'import sys\nif len(sys.argv) == 1 and __name__ == "__main__":\n    check_script()\n    print("done")'
    ),
}


@pytest.mark.parametrize("code", FINE.values(), ids=FINE)
def test_a_script_that_starts_none_when_it_is_imported_goes_on(tmp_path: Path, code: str) -> None:
    assert run(tmp_path, f"{CHECK}{PRINTS}{code}\n") == (0, ["imported", "done"], [])


def test_an_if_of_another_kind_is_found_out_by_a_process_that_nobody_hears(tmp_path: Path) -> None:
    loud = "import os, sys\nprint('loud', file=sys.stderr)\n"
    code = f"{loud}if 'DEBATE_TRIES_SCRIPT' not in os.environ:\n    check_script()\n"
    assert run(tmp_path, f"{CHECK}{PRINTS}{code}") == (0, ["imported"], ["loud"])


def test_what_no_process_imports_again_is_not_looked_at(tmp_path: Path) -> None:
    assert run(tmp_path, "", "-c", f"{CHECK}check_script()") == (0, [], [])


def test_a_module_is_refused_as_a_script_is_and_a_packages_main_is_not(tmp_path: Path) -> None:
    assert run(tmp_path, f"{CHECK}check_script()", "-m", "it")[0] == 1
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(f"{CHECK}check_script()\nprint('done')", encoding="utf-8")
    assert run(tmp_path, "", "-m", "app") == (0, ["done"], [])


BACKENDS = {
    "VLLM": "Engine('built-in')",
    "RewardModel": f"Engine(RewardModel({str(bundled_judge.model_path())!r}))",
}


@pytest.mark.parametrize("made", BACKENDS.values(), ids=BACKENDS)
def test_a_script_without_its_if_ends_in_seconds_with_the_hint_as_its_last_line(tmp_path: Path, made: str) -> None:
    imports = "from debate import Engine, Task\nfrom debate.backends import RewardModel\n"
    script = f"{imports}{made}.evaluate(Task('1+1?', ['2']))\n"
    began = time.monotonic()
    status, out, errors = run(tmp_path, script)
    assert (status, out) == (1, [])
    assert errors[-1].strip() == HINT
    assert time.monotonic() - began < 20  # 3 where nothing else runs


@pytest.mark.vllm
def test_a_script_with_an_if_of_another_kind_debates_on_vllm(tmp_path: Path) -> None:
    script = (
        "from multiprocessing import current_process\n"
        "from debate import Engine, Task\n"
        "if current_process().name == 'MainProcess':\n"
        "    with Engine('built-in') as engine:\n"
        "        print(engine.evaluate(Task('17+25?', ['It is 41.', '42.', 'Maybe 42?', 'I like tea.'])).selected)\n"
    )
    status, out, _ = run(tmp_path, script, seconds=600)
    assert (status, out[-1:]) == (0, ["1"])
