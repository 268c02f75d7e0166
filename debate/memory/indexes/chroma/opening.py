"""From what the user named to Chroma: a server's address, or a folder for the embedded one."""

from __future__ import annotations

from debate.errors import ConfigError
from debate.memory.database import Database
from debate.memory.indexes.chroma.base import Chroma
from debate.memory.indexes.chroma.embedded import EmbeddedChroma
from debate.memory.indexes.chroma.folder import ChromaFolder
from debate.memory.indexes.chroma.server import ServedChroma


def prefix_of(store: str) -> str:
    """What the names of a store's collections begin with; a server may have those of several."""
    return f"debate-{store[:16]}-"


def open_chroma(where: str | None, database: Database, store: str) -> Chroma:
    """Chroma for a store: `where` is an address, a folder, or None for a folder beside the SQLite file.

    Raises:
        ConfigError: when there is no place for a folder, or what is there is not ours.
        StoreError: when another process holds the folder.
    """
    from pathlib import Path

    if where is not None and "://" in where:
        return ServedChroma(where, prefix_of(store))
    if where is None and database.file is None:
        raise ConfigError(
            "there is no file that an embedded Chroma could stand beside",
            field="chroma",
            hint="name a folder, or a Chroma server as http://HOST:PORT",
        )
    folder = Path(where).expanduser() if where else Path(f"{database.file}.chroma")
    return EmbeddedChroma(ChromaFolder(folder, store))
