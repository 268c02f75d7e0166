from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.scripts_loader import REPOSITORY


def test_the_wheel_holds_one_package_with_the_data_inside(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"debate", f"debate_eval-{wheel.name.split('-')[1]}.dist-info"}
    for name in (
        "debate/py.typed",
        "debate/_data/personas/general.yaml",
        "debate/_data/templates/debate/system.j2",
        "debate/_data/memory/README.md",
        "debate/_data/templates/compact/debate/system.j2",
        "debate/bundled_judge/model/model.safetensors",
        "debate/meta_evaluation/label_form.html",
    ):
        assert name in names


def test_an_installed_wheel_finds_its_data(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "import debate, debate.data_files as r; from debate import DebateEvaluator as D; D('chateval').check();"
        "print(debate.__file__, r.data_folder('templates'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert str(tmp_path / "site" / "debate" / "_data" / "templates") in done.stdout
