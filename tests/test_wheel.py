from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.scripts_loader import REPOSITORY


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def site(wheel: Path) -> Path:
    """The wheel as pip would install it."""
    folder = wheel.parent / "site"
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run_installed(site: Path, folder: Path, *arguments: str) -> str:
    """What `python ARGUMENTS` prints where the wheel is installed, and no checkout is at hand."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={"PYTHONPATH": str(site)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_one_package_with_the_data_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"debate", f"debate_eval-{wheel.name.split('-')[1]}.dist-info"}
    for name in (
        "debate/py.typed",
        "debate/_data/personas/general.yaml",
        "debate/_data/templates/debate/system.j2",
        "debate/_data/memory/README.md",
        "debate/_data/templates/compact/debate/system.j2",
        "debate/bundled_judge/demo_tasks.jsonl",
        "debate/bundled_judge/model/model.safetensors",
        "debate/meta_evaluation/label_form.html",
    ):
        assert name in names


def test_an_installed_wheel_finds_its_data(site: Path, tmp_path: Path) -> None:
    code = (
        "import debate, debate.data_files as r; from debate import DebateEvaluator as D; D('chateval').check();"
        "print(debate.__file__, r.data_folder('templates'))"
    )
    assert str(site / "debate" / "_data" / "templates") in run_installed(site, tmp_path, "-c", code)


def test_an_installed_wheel_runs_the_whole_demo(site: Path, tmp_path: Path) -> None:
    assert "--model" in run_installed(site, tmp_path, "-m", "debate", "demo", "--help")
    backend = ("--backend", "debate.testing:reply_for", "--rounds", "1")
    shown = run_installed(site, tmp_path, "-m", "debate", "demo", *backend)
    assert all(f"\n{task} ─" in shown for task in ("sum-1", "corrected-1", "hidden-1"))
    assert "Debate, silent panel and one judge" in shown
    assert (tmp_path / "runs" / "demo" / "results.jsonl").read_text().count("\n") == 46
