"""The files that start workers on Slurm and Kubernetes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer.main
import yaml

from debate.cli import BAD_INPUT, DONE_WITH_FAILURES, RUN_IN_USE, app
from debate.testing import FakeServer
from tests.scripts_loader import REPOSITORY

FOLDER = REPOSITORY / "examples" / "fleet"
SRUN = """#!/bin/bash
# Starts the program once per node, with what Slurm sets for each, and waits for all.
while [[ $1 == --* ]]; do shift; done
for node in 0 1; do
    SLURM_PROCID=$node SLURM_NODEID=$node SLURM_LOCALID=0 CUDA_VISIBLE_DEVICES=$((2 * node)),$((2 * node + 1)) \\
        "$@" >> "node$node" 2>&1 &
    started+=($!)
done
for each in "${started[@]}"; do wait "$each" || code=$?; done
exit "${code:-0}"
"""


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o700)


def test_the_job_script_of_slurm_has_a_run_done_by_a_worker_per_gpu(tmp_path: Path) -> None:
    """With a stand-in for `srun`, which starts the script's command as Slurm does on two nodes."""
    tasks = [{"id": f"t{n}", "x": f"Question {n}?", "candidates": ["a", "b"]} for n in range(8)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    program(tmp_path / "srun", SRUN)
    program(tmp_path / "debate", f'#!/bin/sh\nexec {sys.executable} -m debate "$@"\n')
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY), "SLURM_GPUS_ON_NODE": "2"}

    def run(*command: str) -> None:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        said = [each.read_text() for each in sorted(tmp_path.glob("node*"))]
        assert done.returncode == 0, (done.stderr, said)

    with FakeServer() as server:
        model = ("--backend", "openai", "--base-url", f"{server.url}/v1", "--model", "judge", "--rounds", "1")
        run("debate", "run", "tasks.jsonl", *model, "--convergence", "none", "--out", "run", "--prepare")
        run("bash", str(FOLDER / "slurm.sh"), "run")
    done = [json.loads(line)["task_id"] for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert sorted(done) == [task["id"] for task in tasks]
    assert len(server.requests) == 8 * 3
    said = [(tmp_path / f"node{n}").read_text() for n in range(2)]
    assert [f", GPUs {gpu}\n" in said[gpu // 2] for gpu in range(4)] == [True] * 4


def test_the_manifest_of_kubernetes_starts_a_command_that_the_program_knows() -> None:
    manifest: Any = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    name, *words = [*container["command"], *container["args"]]
    assert name == "debate"
    command: Any = typer.main.get_command(app)
    context = command.commands[words[0]].make_context(words[0], words[1:])
    assert context.params["run"] == "first"
    mounted = [each["mountPath"] for each in container["volumeMounts"]]
    files = [*context.params["evalsets"], context.params["out"]]
    assert all(any(str(file).startswith(path) for path in mounted) for file in files)


def test_the_manifest_of_kubernetes_knows_the_exit_codes() -> None:
    manifest: Any = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
    rules = manifest["spec"]["podFailurePolicy"]["rules"]
    codes = {rule["action"]: rule["onExitCodes"]["values"] for rule in rules if "onExitCodes" in rule}
    assert codes == {"FailJob": [BAD_INPUT, RUN_IN_USE], "FailIndex": [DONE_WITH_FAILURES]}


def test_the_manifest_of_kubernetes_mounts_what_it_declares() -> None:
    manifest: Any = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
    pod = manifest["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert {each["name"] for each in pod["volumes"]} == {each["name"] for each in container["volumeMounts"]}
    assert {rule["onExitCodes"]["containerName"] for rule in manifest["spec"]["podFailurePolicy"]["rules"][:2]} == {
        container["name"]
    }
