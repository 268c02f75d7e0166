"""An error about what the user gave says where and what, together and apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from debate.errors import ConfigError, InputError, ProfileError, TaskError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ConfigError("is empty"), "is empty"),
        (TaskError("is empty", field="x"), "x: is empty"),
        (ProfileError("is empty", file="a.yaml", field="name"), "a.yaml: name: is empty"),
        (InputError("is empty", file=Path("a.yaml"), line=3), "a.yaml:3: is empty"),
        (InputError("is empty", file="a.yaml", line=3, field="name"), "a.yaml:3: name: is empty"),
    ],
)
def test_the_message_names_the_place_and_the_problem_stands_alone(error: InputError, message: str) -> None:
    assert (error.message, error.problem) == (message, "is empty")
