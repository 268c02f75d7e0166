"""Refuses a script that vLLM's processes would run again, before vLLM is imported.

vLLM starts its processes as `spawn` does: each imports the script that is running, so what stands in it outside of
`if __name__ == "__main__":` runs in each of them, too. Where that starts an engine, none of them comes up.
"""

from __future__ import annotations

import ast
import base64
import linecache
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from multiprocessing import spawn
from types import FrameType
from typing import Any

from debate.errors import ConfigError

_TRIED = "DEBATE_TRIES_SCRIPT"
"""Set in a process that only finds out whether a script starts an engine when it is imported."""
_STARTS_ENGINE = 83
"""Exit code of such a process where the script does."""
_SECONDS = 60.0
"""After which it is not waited for any longer."""
_AS_SPAWNED = (
    "import base64, multiprocessing, pickle, sys\n"
    "from multiprocessing import spawn\n"
    "multiprocessing.current_process()._inheriting = True\n"
    "spawn.prepare(pickle.loads(base64.b64decode(sys.stdin.read())))\n"
)


def check_script() -> None:
    """Refuse to start processes where they would import a script that starts an engine itself.

    Only a script that may do so is tried, in a process that imports it: nearly all have their `if`, or are none.

    Raises:
        ConfigError: with the line that the script lacks.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # this process imports its parent's script
        if _TRIED in os.environ:
            os._exit(_STARTS_ENGINE)
        raise _fault()
    if (frame := _line_of_script()) is not None and not _is_guarded(frame) and _starts_engine_when_imported():
        raise _fault()


def _fault() -> ConfigError:
    hint = 'put the code that runs under `if __name__ == "__main__":`'
    return ConfigError("vLLM's processes import your script, and importing it starts an engine", hint=hint)


def _line_of_script() -> FrameType | None:
    """Where the script is that a spawned process would import; None where there is none, or its end is reached."""
    imported = spawn.get_preparation_data("")
    if "init_main_from_path" not in imported and imported.get("init_main_from_name", "__main__").endswith("__main__"):
        return None  # a prompt, a notebook, or a package's `__main__`, which is not imported again
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # pyright: ignore[reportPrivateUsage]
    script = vars(sys.modules["__main__"])
    while frame is not None and not (frame.f_globals is script and frame.f_code.co_name == "<module>"):
        frame = frame.f_back
    return frame


def _is_guarded(frame: FrameType) -> bool:
    """Whether the line that is running stands in an `if` that asks for `__name__`."""
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except SyntaxError:
        return False
    asked = [each for each in ast.walk(tree) if isinstance(each, ast.If) and _asks_name(each.test)]
    bodies = [(each.body[0].lineno, each.body[-1].end_lineno or 0) for each in asked]
    return any(first <= frame.f_lineno <= last for first, last in bodies)


def _asks_name(test: ast.expr) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(test))


def _starts_engine_when_imported() -> bool:
    """Whether a process that imports the script as a spawned one comes to start an engine; it is seen by no one."""
    data: dict[str, Any] = {name: each for name, each in spawn.get_preparation_data("").items() if name != "authkey"}
    command = [sys.executable, "-c", _AS_SPAWNED]
    try:
        tried = subprocess.run(
            command,
            input=base64.b64encode(pickle.dumps(data)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, _TRIED: "1"},
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return tried.returncode == _STARTS_ENGINE
