"""The data folders are found in a wheel and in a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from debate import data_files as resources
from debate.data_files import data_folder
from debate.errors import ConfigError


def test_the_wheels_own_data_come_before_a_folder_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "debate"
    monkeypatch.setattr(resources, "_PACKAGE", package)
    (tmp_path / "memory").mkdir()
    assert data_folder("memory") == tmp_path / "memory"
    (package / "_data" / "memory").mkdir(parents=True)
    assert data_folder("memory") == package / "_data" / "memory"


def test_a_data_folder_in_neither_place_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "debate")
    with pytest.raises(ConfigError, match="templates folder is missing"):
        data_folder("templates")
