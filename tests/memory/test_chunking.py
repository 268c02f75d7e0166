"""Documents cut into pieces that say where they come from and lose nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.errors import ConfigError
from debate.memory.chunking import read_document, split_chunks

GUIDE = """# Units

All lengths are in metres.

## Speed

Speed is in metres a second.
It is never negative.

```python
# not a heading

x = 1
```

# Dates

ISO dates only.
"""


def test_a_piece_says_by_itself_what_it_is_about() -> None:
    pieces = list(split_chunks(GUIDE, "guide.md"))
    assert [piece.text.splitlines()[0] for piece in pieces] == [
        "Units: All lengths are in metres.",
        "Units > Speed: Speed is in metres a second.",
        "Dates: ISO dates only.",
    ]
    assert [piece.line for piece in pieces] == [3, 7, 18]
    assert pieces[1].headings == ("Units", "Speed")
    assert "# not a heading\n\nx = 1" in pieces[1].text


def test_long_paragraphs_are_cut_between_sentences_and_endless_words_anyway() -> None:
    text = "One sentence here. " * 20 + "w" * 120
    pieces = [piece.text for piece in split_chunks(text, "t.txt", longest=50)]
    assert all(len(piece) <= 50 for piece in pieces)
    assert pieces[0] == "One sentence here. One sentence here."
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


@given(st.text(st.sampled_from("ab .\n#`"), max_size=300), st.integers(5, 80))
def test_every_word_of_a_text_is_in_a_piece(text: str, longest: int) -> None:
    pieces = list(split_chunks(text, "t.txt", longest))
    found = "".join("".join(piece.headings) + piece.text for piece in pieces)
    bare = [line for line in text.splitlines() if not line.strip().startswith("#")]
    for character in "ab":
        assert found.count(character) >= sum(line.count(character) for line in bare)
    assert [piece.line for piece in pieces] == sorted(piece.line for piece in pieces)


def test_what_cannot_be_read_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    (tmp_path / "b.md").write_bytes(b"\xff\xfe")
    (tmp_path / "c.txt").write_text(" \n\n")
    for name, problem in (("a.pdf", "neither Markdown nor text"), ("b.md", "not UTF-8"), ("c.txt", "holds no text")):
        with pytest.raises(ConfigError, match=problem):
            read_document(tmp_path / name)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(tmp_path / "none.md")
