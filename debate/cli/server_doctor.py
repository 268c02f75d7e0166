"""What `debate doctor` says of a model behind a server, which it asks."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from debate.errors import BackendError, ConfigError

if TYPE_CHECKING:
    from debate.backends import Backend
    from debate.backends.examine import Examined

_ATTEMPTS = 2
_FORMS = {
    "json_schema": "whole, as response_format json_schema",
    "json_schema_plain": "as response_format json_schema, without bounds on texts and numbers",
    "json_object": "not taken; response_format json_object is, so replies are JSON of any form",
    "none": "not taken, in no form; the prompt alone asks for JSON",
    None: "in the backend's own way",
}
"""What becomes of a schema, by the form in `debate.backends.http.response_format.FORMS`."""
_SEEDS = {
    "kept": "work: the same seed gives the same reply, and another seed another",
    "alike": "cannot be seen to work: three replies with two seeds were all the same",
    "ignored": "do not work: the same seed gave two replies",
    None: "not known: a question without a schema was not answered",
}


def ask_server(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Ask the model that settings name, print what it can do, and return the exit code; 1 where it cannot be asked.

    Raises:
        ConfigError: for settings that name no model that can be asked.
    """
    from debate.cli.console import say

    backend = _opened(given)
    try:
        found, fault = asyncio.run(_examine(backend)), None
    except BackendError as error:
        found, fault = None, error
    to_do = [] if fault is None else [_plainly(backend, fault)]
    if as_json:
        told = {
            "ready": not to_do,
            "server": None if found is None else asdict(found),
            "to_do": to_do,
            "notes": [] if found is None else _notes(found),
        }
        say(*json.dumps(told, indent=2).splitlines())
    else:
        _print(found, to_do)
    return 1 if to_do else 0


async def _examine(backend: Backend) -> Examined:
    from debate.backends.examine import examine

    return await examine(backend)


def _opened(given: Mapping[str, Any]) -> Backend:
    """The backend of the settings, which gives up after fewer attempts than a run's would."""
    from debate.config.settings import RunSettings
    from debate.registry import BACKENDS, SERVERS

    settings = RunSettings.read(None, given)
    if settings.backend in ("vllm", "reward_model"):
        hint = f"--backend {SERVERS.split(', ')[0]} for a server; leave --backend out to examine this machine"
        raise ConfigError("is loaded, not asked", field="backend", hint=hint)
    found = BACKENDS.load(settings.backend)
    if getattr(found, "is_chat", False) and "retry_policy" in inspect.signature(found).parameters:
        engine_args = {"attempts": _ATTEMPTS, **settings.engine_args}
        settings = settings.model_copy(update={"engine_args": engine_args})
    return settings.open_backend()


def _plainly(backend: Backend, error: BackendError) -> str:
    """What is wrong and what to do, in one sentence or two."""
    said, address = error.message, getattr(backend, "base_url", None)
    hint = error.hint
    if "no connection" in said:
        hint = f"is the server running, and is {address} its address, with /v1 at its end where it has one?"
    elif "HTTP 404" in said and address is not None:
        hint = _models_hint(backend.model, str(address), getattr(backend, "api_key_env", None))
    elif "HTTP 401" in said or "HTTP 403" in said:
        hint = f"set {getattr(backend, 'api_key_env', None) or 'its key'} in the environment"
    elif "no answer within" in said:
        hint = "the server is slow or hangs; --engine-arg timeout=SECONDS waits longer"
    return f"{said}; {hint}" if hint else said


def _models_hint(model: str, address: str, api_key_env: str | None) -> str:
    """The models that a server says it has."""
    from debate.net.http import JsonClient
    from debate.net.retry import RetryPolicy

    client = JsonClient(address, api_key_env, RetryPolicy(attempts=1, timeout=10.0))
    try:
        listed: Any = client.ask("GET", "/models")
        names = [str(each["id"]) for each in listed["data"]]
    except (BackendError, KeyError, TypeError):
        names = []
    finally:
        client.close()
    if not names:
        return "is the address right, with /v1 at its end where the server has one, and is the model's name?"
    close = get_close_matches(model, names, n=1, cutoff=0.4)
    return f"the server has {', '.join(names[:8])}" + (f"; did you mean --model {close[0]}?" if close else "")


def _print(found: Examined | None, to_do: list[str]) -> None:
    from debate.cli.console import heading, key_value_grid, line, open_console

    console = open_console()
    if found is not None:
        console.print(heading("Server"))
        grid = key_value_grid()
        for name, value in _rows(found):
            grid.add_row(line(name), line(value))
        console.print(grid)
        console.print()
        for note in _notes(found):
            console.print(line(note, "yellow"), soft_wrap=True)
    for step in to_do:
        console.print(line(f"To do: {step}", "bold red"), soft_wrap=True)
    if not to_do:
        console.print(line("Ready: a debate can run with this model.", "bold green"))


def _rows(found: Examined) -> Iterator[tuple[str, str]]:
    if found.address is not None:
        yield "address", found.address
    yield "model", f"{found.model}, which answered in {found.seconds:.2g} s"
    used = found.usage
    counted = f"{used.prompt_tokens:,} in, {used.completion_tokens:,} out in the first reply"
    yield "tokens", counted if _counts(found) else "not counted: the server states no usage"
    held = "the reply follows it" if found.follows_schema else "the reply does not follow it"
    yield "schema", f"{_FORMS[found.schema_form]}; {held}"
    yield "seeds", _SEEDS[found.seeds]
    works = [f"--readout {name}" for name, is_read in found.reads.items() if is_read]
    yield "read-outs", ", ".join(works) if works else f"none: {found.read_fault}"


def _notes(found: Examined) -> list[str]:
    """What is worth knowing, and keeps no debate from running."""
    notes = {
        "Replies are not held to a schema: a small model will have to be asked again now and then.": (
            not found.follows_schema
        ),
        "Without seeds that work, the same run from the start gives other replies; what is recorded stays.": (
            found.seeds == "ignored"
        ),
        "Without counted tokens, --max-tokens and totals cannot be kept.": not _counts(found),
    }
    return [note for note, applies in notes.items() if applies]


def _counts(found: Examined) -> bool:
    return found.usage.prompt_tokens > 0
