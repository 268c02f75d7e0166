"""What is set up before vLLM is imported: its environment, and that the script can be imported again."""

from __future__ import annotations

import functools
import logging
import os
import tempfile
from pathlib import Path

from debate.backends.vllm.script_guard import check_script
from debate.concurrency.daemon_thread import in_daemon_thread

_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "PYTHONWARNINGS": "ignore",  # read by the engine's processes only
    "TOKENIZERS_PARALLELISM": "false",
    # The engine lives beside an event loop in a thread of its own, and a fork would copy half of that.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}


async def prepare_processes(model: str) -> None:
    """Set the environment that vLLM reads, where the user has not.

    model: its name or folder.

    Raises:
        ConfigError: where vLLM's processes would run a script again that starts an engine.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("VLLM_RPC_BASE_PATH", _socket_folder().name)
    if Path(model).exists():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"])
    if os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn":
        await in_daemon_thread(check_script, "vllm-script")


@functools.cache
def _socket_folder() -> tempfile.TemporaryDirectory[str]:
    """Where vLLM puts its sockets, which it leaves behind; removed when the interpreter ends."""
    return tempfile.TemporaryDirectory(prefix="debate-vllm-")
