"""What a run's folder may make the program do, since somebody else may have made it: what its user allows.

Asked about are modules that would be imported, servers that would be sent a key or tasks, and settings that are not
those that the run's store has. The user says so with `--trust`, or by typing yes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer

from debate.backends import Backend
from debate.cli.console import escape_controls, say
from debate.config.settings import ModelSettings, RunSettings
from debate.errors import ConfigError
from debate.jobs.run_directory import PASSWORD
from debate.registry import asking

_IN_PROCESS = ("vllm", "reward_model")
_PLAIN = (bool, int, float, type(None))


@dataclass(frozen=True, slots=True)
class Trust:
    """Asks before what a folder names is used.

    Attributes:
        folder: of the run.
        is_given: the user has said in the command that everything may be used.
    """

    folder: Path
    is_given: bool

    def ask(self, what: str) -> None:
        """Go on when the user has said so, or says so now.

        Raises:
            ConfigError: otherwise.
        """
        if self.is_given:
            return
        what = escape_controls(f"{self.folder / 'run.json'} {what}")
        if sys.stdin.isatty() and sys.stderr.isatty():
            say(what, err=True)
            if typer.prompt("Type yes if that is right", default="no", err=True) == "yes":
                return
        raise ConfigError(what, hint=f"if that is right, say so: debate resume {self.folder} --trust")

    @contextmanager
    def of(self, settings: RunSettings) -> Generator[None]:
        """Ask about the settings' engine arguments, and within the block about every module before it is imported."""
        for each in (settings, *settings.models.values()):
            for name, value in each.engine_args.items() if each.backend in _IN_PROCESS else ():
                if _can_name_code(name, value):
                    self.ask(f"sets the engine argument {name}={value}, which can load code")
        with asking(lambda target: self.ask(f"names {target}, which would be imported")):
            yield

    def check_servers(self, settings: RunSettings, backends: Mapping[str, Backend]) -> None:
        """Ask about every address that the settings name, before anything is sent there."""
        if "://" in (memory := settings.memory or "") and os.environ.get(PASSWORD):
            self.ask(f"names the memory {memory}, which would be sent the password in {PASSWORD}")
        for each, backend in zip((settings, *settings.models.values()), backends.values(), strict=False):
            address, variable = getattr(backend, "base_url", None), getattr(backend, "api_key_env", None)
            if address is None or not _is_named(each):
                continue
            if variable is not None and os.environ.get(variable):
                self.ask(f"names the server {address}, which would be sent the key in {variable}")
            elif not _is_loopback(str(urlsplit(str(address)).hostname)):
                self.ask(f"names the server {address}, which would be sent the tasks")


def _is_named(settings: ModelSettings) -> bool:
    return settings.base_url is not None or not {"base_url", "host", "api_key_env"}.isdisjoint(settings.engine_args)


def _can_name_code(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return any(mark in value for mark in ".:/")
    return bool(value) and (name == "trust_remote_code" or not isinstance(value, _PLAIN))


def _is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
