"""Standard input as an eval set: read once, and kept as a file under a name that its content gives it.

The same text piped in again has the same name, so that a run of it goes on where it stopped, and another has its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from debate.errors import TaskError
from debate.files import PRIVATE_FILE, PRIVATE_FOLDER, atomic_write

STDIN = Path("-")
"""Stands for standard input where a file is named."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Piped:
    """What came in, whole."""

    data: bytes

    @classmethod
    def read(cls, stream: IO[bytes]) -> Piped:
        """Read a stream to its end.

        Raises:
            TaskError: when it holds nothing, or cannot be read.
        """
        try:
            data = stream.read()
        except OSError as error:
            raise TaskError(f"cannot be read: {error.strerror}", file=STDIN) from None
        if not data.strip():
            hint = "pipe tasks into it, one JSON object per line: debate run - < tasks.jsonl"
            raise TaskError("standard input holds no tasks", file=STDIN, hint=hint)
        return cls(data)

    @property
    def name(self) -> str:
        """A file name that says by its ending what it holds, and tells one content from another."""
        return f"stdin-{hashlib.sha256(self.data).hexdigest()[:8]}{self._ending()}"

    def _ending(self) -> str:
        text = self.data.removeprefix(_BOM).lstrip()
        if text[:4] == b"PAR1":
            return ".parquet"
        first = text.split(b"\n", 1)[0]
        if text[:1] in (b"{", b"[") or not {*b",\t"} & {*first}:
            return ".json" if text[:1] == b"[" else ".jsonl"
        return ".tsv" if b"\t" in first else ".csv"

    def keep(self, folder: Path) -> Path:
        """Write it into a folder, which is made where there is none; its owner alone can read both.

        Raises:
            StoreError: when it cannot be written.
        """
        path = folder / self.name
        with atomic_write(path, mode=PRIVATE_FILE, folder_mode=PRIVATE_FOLDER) as temporary:
            temporary.write_bytes(self.data)
        return path
