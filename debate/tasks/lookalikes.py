"""Texts as a reader sees them, so that what looks like a delimiter or a heading is found however it is spelled."""

from __future__ import annotations

import unicodedata

DOT = "·"
"""What stands after the first character of something that was broken."""
_ALIKE = {
    ord(char): plain
    for plain, others in {
        "a": "аαɑ", "b": "вβ", "c": "с", "d": "ԁ", "e": "еε", "g": "ɡ", "h": "һн", "i": "ιіı", "j": "ј", "k": "кκ",
        "l": "ӏ", "m": "мμ", "n": "пոην", "o": "оοօσ", "p": "рρ", "q": "ԛ", "s": "ѕ", "t": "тτ", "u": "υս", "w": "ԝ",
        "x": "хχ", "y": "уү", "[": "⟦⁅❲", "]": "⟧⁆❳", "/": "⁄∕⧸╱", "|": "∣ǀ", "<": "‹⟨", ">": "›⟩", "*": "∗⁎",
    }.items()
    for char in others
}  # fmt: skip
"""Letters and marks of other scripts that look like those of a delimiter, all in lower case."""
_NEW_LINES = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_UNSEEN = "\u115f\u1160\u3164\uffa0"


class _Fold(dict[int, str]):
    """Code points as a reader sees them: in lower case, without marks, look-alikes as one; nothing for the unseen."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded(chr(code))
        return folded


def _folded(char: str) -> str:
    if char in _NEW_LINES:
        return "\n"
    if char in "\t\u2800" or unicodedata.category(char) == "Zs":
        return " "
    plain = unicodedata.normalize("NFKD", char.casefold())
    seen = [
        each for each in plain if unicodedata.category(each) not in ("Cc", "Cf", "Mn", "Me") and each not in _UNSEEN
    ]
    return "".join(seen).translate(_ALIKE)


FOLD = _Fold()
"""Translates a text to what a reader sees: `text.translate(FOLD)`."""


def places_of(text: str) -> list[int]:
    """For each character of the folded text the place in `text` that it comes from."""
    return [place for place, char in enumerate(text) for _ in char.translate(FOLD)]
