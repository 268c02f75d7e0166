"""Standard input is read once and kept under a name that its content gives it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.dataset.piped import Piped
from debate.errors import TaskError
from tests.dataset.files import Row, count

TASK: Row = {"x": "q", "candidates": ["a", "b"]}


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        (json.dumps(TASK), ".jsonl"),
        (json.dumps([TASK], indent=2), ".json"),
        ("\ufeff\n" + json.dumps([TASK]), ".json"),
        ("x,candidate_1\nq,a\n", ".csv"),
        ("x\tcandidate_1\nq\ta\n", ".tsv"),
    ],
)
def test_what_comes_in_is_kept_as_a_file_that_can_be_read(tmp_path: Path, text: str, ending: str) -> None:
    path = Piped(text.encode()).keep(tmp_path / "run")
    assert path.suffix == ending
    assert count(path) == 1
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_parquet_is_known_by_its_first_bytes_and_plain_words_are_no_table() -> None:
    assert Piped(b"PAR1...").name.endswith(".parquet")
    assert Piped(b"hello").name.endswith(".jsonl")


@given(st.binary(min_size=1), st.binary(min_size=1))
def test_the_same_content_has_the_same_name_and_another_has_another(one: bytes, other: bytes) -> None:
    assert (Piped(one).name == Piped(other).name) == (one == other)


@pytest.mark.parametrize("empty", [b"", b" \n"])
def test_nothing_is_refused(empty: bytes) -> None:
    with pytest.raises(TaskError, match="standard input holds no tasks"):
        Piped.read(io.BytesIO(empty))
