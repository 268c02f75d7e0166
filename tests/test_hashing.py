"""Seeds and digests: the same everywhere, different for different parts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import debate
from debate.hashing import derive, digest

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


def in_another_process(expression: str, hash_seed: str) -> str:
    code = f"from debate.hashing import derive, digest; print({expression})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=Path(debate.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_seed_is_the_same_in_a_process_that_hashes_differently() -> None:
    here = f"{derive(1, 'order', 't')} {digest({'b': 1, 'a': [2.5, None]})}"
    expression = "derive(1, 'order', 't'), digest({'a': [2.5, None], 'b': 1})"
    assert in_another_process(expression, "7") == here


def test_a_seed_does_not_change_between_versions() -> None:
    # b2sum -l 128 of [0,"select","t1"] and of ["x"]
    assert (derive(0, "select", "t1"), digest("x")) == (738364773, "43b690e215391cb7ff226b763e796946")


@settings(deadline=None)
@given(st.lists(plain, max_size=4))
def test_every_seed_fits_a_server_that_takes_31_bits(parts: list[object]) -> None:
    assert 0 <= derive(*parts) < 2**31


@settings(deadline=None)
@given(plain, plain)
def test_different_parts_have_different_digests(first: object, second: object) -> None:
    # Python's == takes True for 1; repr and JSON do not.
    assert (digest(first) == digest(second)) == (repr(first) == repr(second))


def test_where_one_part_ends_and_the_next_begins_matters() -> None:
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest(["ab", "c"])}) == 4


def test_half_a_surrogate_pair_has_a_digest_too() -> None:
    assert digest("\ud800") != digest("\ud801")
