"""The code blocks of the README and the manual, each with its place."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
NOT_RUN = re.compile(r"<!-- not run: .+ -->")
_FENCE = re.compile(r"(?:(<!--[^\n]*-->)\n)?^( *)```(\w+)[^\n]*\n(.*?)^\2```$", re.MULTILINE | re.DOTALL)
_INCLUDED = re.compile(r'\s*--8<-- "([^":]+)(?::[\w-]+)?"\s*')


@dataclass(frozen=True)
class Block:
    file: Path
    line: int
    language: str
    code: str
    is_run: bool

    def __str__(self) -> str:
        return f"{self.file.relative_to(REPOSITORY)}:{self.line}"


def pages() -> list[Path]:
    """Everything written by hand."""
    made = {"settings.md", "command-line.md", "formats.md"}
    written = [path for path in (REPOSITORY / "docs").rglob("*.md") if path.name not in made]
    named = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "personas/README.md", "memory/README.md")
    return sorted([*written, *(REPOSITORY / name for name in named)])


def blocks(*languages: str) -> list[Block]:
    """All blocks in some languages, in order."""
    return [block for page in pages() for block in _of(page) if block.language in languages]


def _of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start(3)) + 1
        code, is_run = textwrap.dedent(found[4]), not NOT_RUN.match(found[1] or "")
        if included := _INCLUDED.fullmatch(code):
            code, is_run = (REPOSITORY / included[1]).read_text(encoding="utf-8"), False  # it has a test of its own
        yield Block(page, line, found[3], code, is_run)
