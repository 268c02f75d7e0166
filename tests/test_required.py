"""A part that is missing skips a test on a developer's machine, and fails it on CI."""

from __future__ import annotations

import pytest

from tests.required import required, required_module


def test_a_missing_part_skips_here_and_fails_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no server"):
        required(None, "no server")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="on CI nothing may be missing: no_such_package is not installed"):
        required_module("no_such_package")


def test_what_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    required("postgresql://", "no server")
    assert required_module("json").loads("1") == 1
