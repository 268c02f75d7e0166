"""Ask the model that an engine debates with for plain texts too: drafts, answers, rewritten prompts.

A model is loaded once and belongs to the event loop that its engine started it on, which is not the caller's. `Parsed`
goes between the engine and a backend, remembers that loop, and puts questions to the backend there, beside whatever
debates are under way. The flags that name the model are here too. `optimise_prompt.py` and `guided_reasoning.py` use
this file; a copy of one of them needs it beside it. Knows nothing of what is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from debate import Sampling
from debate.backends import Backend, Call, Capacity, Scripted
from debate.backends.scripted import Script
from debate.config.settings import RunSettings
from debate.errors import CallError
from debate.flow import Completion, Prompt, Segment
from debate.hashing import derive


class Asked:
    """A backend that can also be asked from outside its engine.

    >>> model = Parsed(VLLM("path/to/model"), Sampling(temperature=0.7, max_tokens=1024))
    >>> with Engine(model) as engine:
    ...     engine.start()
    ...     answers = model.complete([prompt_of("Be brief.", "Why is the sky blue?")], "answerer", seed=0)
    """

    def __init__(self, backend: Backend, sampling: Sampling) -> None:
        self._backend = backend
        self._sampling = sampling
        self._loop: asyncio.AbstractEventLoop | None = None
        self.model = backend.model

    @property
    def capacity(self) -> Capacity:
        """The backend's."""
        return self._backend.capacity

    async def start(self) -> None:
        """Load the backend, and remember the loop."""
        self._loop = asyncio.get_running_loop()
        await self._backend.start()

    async def generate(self, call: Call) -> Completion:
        """A debate's own call."""
        return await self._backend.generate(call)

    async def aclose(self) -> None:
        """Let go of the backend."""
        await self._backend.aclose()

    def complete(self, prompts: Sequence[Prompt], role: str, seed: int) -> list[str | None]:
        """The model's texts, asked for side by side and in the order of the prompts; None where a call failed.

        As in a debate, a call's seed is a hash of what is asked; equal prompts are told apart by their ordinals. A
        model's thoughts, up to `</think>`, are left out.

        Raises:
            BackendUnavailableError: when nothing more can be asked.
        """
        assert self._loop is not None, "start the engine first"
        return asyncio.run_coroutine_threadsafe(self._together(prompts, role, seed), self._loop).result()

    async def _together(self, prompts: Sequence[Prompt], role: str, seed: int) -> list[str | None]:
        seen: Counter[Prompt] = Counter()
        calls: list[Call] = []
        for prompt in prompts:
            calls.append(self._call(prompt, role, seed, seen[prompt]))
            seen[prompt] += 1
        return await asyncio.gather(*map(self._one, calls))

    def _call(self, prompt: Prompt, role: str, seed: int, ordinal: int) -> Call:
        own_seed = derive(seed, self.model, role, prompt.messages(), self._sampling.to_dict(), ordinal)
        info = {"task_id": role, "agent": role, "attempt": 0, "sample": ordinal}
        return Call(model=self.model, prompt=prompt, sampling=self._sampling, seed=own_seed, info=info)

    async def _one(self, call: Call) -> str | None:
        try:
            text = (await self._backend.generate(call)).text
        except CallError as error:
            print(f"{call.info['agent']}: a call failed: {error}", file=sys.stderr)
            return None
        # Half a surrogate pair, which a server may send, is no text that a task could hold.
        return text.rpartition("</think>")[2].strip().encode("utf-8", "replace").decode("utf-8")


def prompt_of(system: str, user: str) -> Prompt:
    """A system and a user message, all of it content: nothing in it can act as a control token."""
    return Prompt(((Segment(system, is_content=True),),), ((Segment(user, is_content=True),),))


def add_model_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that `settings_of` and `open_model` read."""
    parser.add_argument("--model", help="model name, or the folder of one")
    parser.add_argument("--backend", help="vllm (default), openai or ollama")
    parser.add_argument("--base-url", help="address of the server, for openai and ollama")
    parser.add_argument("--config", type=Path, help="YAML of further settings, as for `debate run`")
    parser.add_argument("--seed", type=int, help="of the run")
    parser.add_argument("--scripted", action="store_true", help="no model, a script; the default without a model")


def settings_of(options: argparse.Namespace) -> RunSettings:
    """The settings of --config, with the flags that were given before it. No model is left in them if `--scripted`.

    Raises:
        ConfigError: with the file, the line and the key, or the flag.
    """
    names = ("model", "backend", "base_url", "seed")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    settings = RunSettings.read(options.config, given)
    return settings.model_copy(update={"model": None}) if options.scripted else settings


def open_model(settings: RunSettings, script: Script, max_tokens: int = 1024) -> Asked:
    """The model of the settings, not yet loaded, or the script in its place where they name none."""
    backend = Scripted(script) if settings.model is None else settings.open_backend()
    return Asked(backend, Sampling(temperature=settings.temperature, top_p=settings.top_p, max_tokens=max_tokens))
