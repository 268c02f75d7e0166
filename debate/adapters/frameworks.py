"""Imports a framework when an adapter is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from debate.errors import ConfigError


def framework(module: str, package: str = "") -> Any:
    """A module of another framework.

    Raises:
        ConfigError: where it is not installed, with the package to install.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        name = package or error.name
        raise ConfigError(f"{name} is not installed", hint=f"pip install {name}") from None
