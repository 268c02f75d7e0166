"""What tests need besides the package's own libraries: a package, a server, a browser.

Where it is missing a test is skipped on a developer's machine, and fails where `CI=true`: there everything has to be
installed, and a skipped test would prove nothing in silence.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


def required(is_there: object, missing: str) -> None:
    """Go on where a part is there; otherwise skip or fail, saying what is missing."""
    if is_there:
        return
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(f"on CI nothing may be missing: {missing}", pytrace=False)
    pytest.skip(missing, allow_module_level=True)


def required_module(name: str) -> Any:
    """The module of an optional package."""
    required(find_spec(name), f"{name} is not installed")
    return import_module(name)


def required_framework(name: str) -> Any:
    """The module of a framework for which there is an adapter.

    It has to be there in the environments that `scripts/test --adapters` makes, which say so by the variable
    `DEBATE_TEST_ADAPTERS`; elsewhere its tests are skipped. Its own warnings while it is imported are not ours.
    """
    if not find_spec(name.partition(".")[0]):
        missing = f"{name} is not installed; scripts/test --adapters installs it"
        if os.environ.get("DEBATE_TEST_ADAPTERS"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing, allow_module_level=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(name)
