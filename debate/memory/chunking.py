"""Documents as memories: Markdown and plain text, cut where their authors cut them, each piece with its place.

A piece is a run of paragraphs under one heading, about as long as an embedder reads at once; the headings above it
go with it, so that a piece says by itself what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from debate.errors import ConfigError

LONGEST = 900
"""Characters of a piece without its headings; about 220 tokens, what MiniLM reads at once."""
_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SUFFIXES = {".md", ".markdown", ".txt", ".text", ".rst"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document."""

    text: str
    """With the headings above it, as `A > B: ...`."""
    source: str
    """The file's name."""
    line: int
    """Where it begins, from 1."""
    headings: tuple[str, ...] = ()


def read_document(path: Path, longest: int = LONGEST) -> list[Chunk]:
    """The pieces of a Markdown or text file, in order.

    Raises:
        ConfigError: when it cannot be read, is no UTF-8 text, or holds nothing.
    """
    if path.suffix.lower() not in _SUFFIXES:
        known = ", ".join(sorted(_SUFFIXES))
        raise ConfigError(
            "is neither Markdown nor text by its ending", file=path, hint=f"endings that are read: {known}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8, at byte {error.start + 1}", file=path, hint="save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=path) from None
    pieces = list(split_chunks(text, path.name, longest))
    if not pieces:
        raise ConfigError("holds no text", file=path)
    return pieces


def split_chunks(text: str, source: str, longest: int = LONGEST) -> Iterator[Chunk]:
    """Cut a text into pieces: between headings always, between paragraphs where it grows too long."""
    headings: list[tuple[int, str]] = []
    gathered: list[tuple[int, str]] = []
    for line, paragraph in _paragraphs(text):
        found = _HEADING.fullmatch(paragraph)
        size = sum(len(each) for _, each in gathered)
        if found or size + len(paragraph) > longest:
            yield from _pieces(gathered, headings, source, longest)
            gathered = []
        if found:
            level = len(found[1])
            headings = [(n, title) for n, title in headings if n < level] + [(level, found[2])]
        else:
            gathered.append((line, paragraph))
    yield from _pieces(gathered, headings, source, longest)


def _pieces(
    gathered: list[tuple[int, str]], headings: list[tuple[int, str]], source: str, longest: int
) -> Iterator[Chunk]:
    if not gathered:
        return
    titles = tuple(title for _, title in headings)
    prefix = " > ".join(titles) + ": " if titles else ""
    text = "\n\n".join(paragraph for _, paragraph in gathered)
    for part in [text] if len(text) <= longest else _parts(text, longest):
        yield Chunk(prefix + part, source, gathered[0][0], titles)


def _parts(text: str, longest: int) -> Iterator[str]:
    """A paragraph that is too long, cut between sentences, or between words where a sentence is too long."""
    part = ""
    for sentence in _SENTENCE.split(text):
        if part and len(part) + 1 + len(sentence) > longest:
            yield part
            part = ""
        while len(sentence) > longest:
            end = sentence.rfind(" ", 0, longest)
            end = end if end > 0 else longest
            yield sentence[:end]
            sentence = sentence[end:].lstrip()
        part = f"{part} {sentence}".strip()
    if part:
        yield part


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs with the line they begin on, from 1; a heading is one of its own, fenced code is not cut."""
    begin, lines, fence = 1, list[str](), ""
    for number, line in enumerate(text.splitlines(), 1):
        opening = _FENCE.match(line)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        is_heading = not fence and _HEADING.fullmatch(line.strip()) is not None
        if lines and (is_heading or (not fence and not line.strip())):
            yield begin, "\n".join(lines)
            lines = []
        if is_heading:
            yield number, line.strip()
        elif line.strip() or (fence and lines):
            begin = begin if lines else number
            lines.append(line.rstrip())
    if lines:
        yield begin, "\n".join(lines)
