"""Opens what a user named, or says why it cannot be."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from debate.errors import TaskError


@contextmanager
def opened(file: Path) -> Generator[BinaryIO]:
    """The file in bytes: lines then end at line feeds alone, and not at the exotic breaks a text may hold."""
    try:
        if file.is_dir():
            raise TaskError("is a folder, not an eval set", file=file, hint="name the JSONL file in it")
        stream = file.open("rb")
    except FileNotFoundError:
        raise TaskError("there is no such file", file=file) from None
    except (OSError, ValueError) as error:
        raise TaskError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=file) from None
    with stream:
        yield stream
