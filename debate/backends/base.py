"""The protocol of a backend, and starting and closing several together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from debate.errors import CallError, ConfigError
from debate.flow import Call, Completion, Messages, Prompt

ROLES_HINT = "a value model is asked with --backend value_server, a reward model with --backend reward_model"
THINKING_HINT = "take readout='expected' or 'reply' and in a debate silent_readouts=False, or thinking=off"
READOUT_HINT = "take readout='reply', and in a debate silent_readouts=False"


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a started backend can hold at once."""

    slots: int
    """Requests it works on side by side."""
    cache_tokens: int | None = None
    """Tokens its KV cache holds; None when unknown."""
    context_length: int | None = None
    """Most tokens one request may have, prompt and reply together."""
    thinking_tokens: int = 0
    """Tokens that a reply may have for thinking, besides those that a call allows."""


class Backend(Protocol):
    """A model that can be asked.

    `generate` raises `CallError` when this call failed for good and `BackendUnavailableError` when nothing more can be
    asked; cancelling it frees whatever it holds. One that sends a chat's messages alone says so by `is_chat = True`;
    one that answers `Call.read_out` with distributions, by `reads_labels = True`; one that is set to think before each
    reply, by `thinks = True`. Settings of a backend that shape its replies stand in `reply_settings`, as plain data:
    they are a part of every call's hash and of a run's identity, and empty where everything is as it is by default.
    """

    @property
    def model(self) -> str:
        """The model's name in seeds and records."""
        ...

    @property
    def capacity(self) -> Capacity:
        """Known once started."""
        ...

    async def start(self) -> None:
        """Load what there is to load. Called once, before the first call."""
        ...

    async def generate(self, call: Call) -> Completion:
        """Answer one call. Any number may be under way at once."""
        ...

    async def aclose(self) -> None:
        """Let go of everything. Safe to call twice, and before `start`."""
        ...


@runtime_checkable
class Transferable(Protocol):
    """A backend that is costly to start, and that may take over what another of its kind has loaded.

    A cell of a notebook that is run again makes its engine again; the model then stays loaded, once.
    """

    def is_equal(self, other: object) -> bool:
        """Whether the other would load exactly the same."""
        ...

    def take_over(self, other: Any) -> None:
        """Have what an equal backend has loaded, which then has nothing loaded. Nothing of it may be under way."""
        ...


def check_is_chat(prompt: Prompt, model: str) -> None:
    """Refuse messages with roles of their own, which a chat model does not know.

    Raises:
        CallError: not_a_chat.
    """
    if isinstance(prompt, Messages):
        problem = f"{model} is a chat model, and knows no role {prompt.roles[-1]!r}"
        raise CallError("not_a_chat", problem, hint=ROLES_HINT)


def reply_settings(backend: Backend) -> Mapping[str, Any]:
    """The settings of a backend that shape its replies; empty for one that has none."""
    return getattr(backend, "reply_settings", {})


def provider_of(backend: Backend) -> str:
    """What traces call a backend: its `provider`, or its class in lower case."""
    return getattr(backend, "provider", type(backend).__name__.lower())


def models_identity(backends: Mapping[str, Backend]) -> dict[str, Any]:
    """What makes models the same, for a run's identity: their names, and settings that shape their replies."""
    settings = {name: dict(found) for name, backend in backends.items() if (found := reply_settings(backend))}
    models = {name: backend.model for name, backend in backends.items()}
    return {"models": models, **({"model_settings": settings} if settings else {})}


def backends_by_name(given: Backend | Mapping[str, Backend]) -> dict[str, Backend]:
    """A backend under its model's name, or several under theirs.

    Raises:
        ConfigError: where there is none, and for what is no backend.
    """
    for each in (found := list(cast("Mapping[str, Any]", given).values()) if isinstance(given, Mapping) else [given]):
        if isinstance(each, type) or not all(hasattr(each, name) for name in ("model", "start", "generate", "aclose")):
            what = repr(each) if isinstance(each, str | type) else type(each).__name__
            hint = "give a model's name or folder, or 'built-in'; or make one: debate.backends has several"
            raise ConfigError(f"must be a backend, got {what}", field="backend", hint=hint)
    if not found:
        raise ConfigError("needs at least one backend", field="backend")
    return dict(given) if isinstance(given, Mapping) else {given.model: given}


async def start_all(backends: Collection[Backend]) -> None:
    """Start all or none: where one fails, those started before it are closed, so that a later call starts each anew."""
    try:
        for backend in backends:
            await backend.start()
    except BaseException:
        await close_all(backends)
        raise


async def close_all(backends: Collection[Backend]) -> None:
    """Close all of them, also where one raises; the first that is raised is raised again at the end."""
    errors: list[Exception] = []
    for backend in backends:
        try:
            await backend.aclose()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
