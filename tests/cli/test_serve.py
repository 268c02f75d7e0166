"""`debate serve` refuses what would let anybody in."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from debate.cli import app
from debate.cli.serve import _is_loopback  # pyright: ignore[reportPrivateUsage]
from debate.errors import ConfigError


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::", "example.org"])
def test_an_address_that_others_can_reach_needs_a_token(host: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--host", host, "--model", "m"])
    assert isinstance(result.exception, ConfigError)
    assert "can be reached from outside" in str(result.exception)
    assert not _is_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert _is_loopback(host)


def test_help_shows_an_example() -> None:
    assert "Example: debate serve" in CliRunner().invoke(app, ["serve", "--help"]).output
