"""The bundled judge: a small trained model that runs anywhere, with no GPU, no account and no download.

    from debate import Engine, Task

    with Engine("built-in") as engine:
        evaluation = engine.evaluate(Task("17+25?", ["It is 41.", "42.", "Maybe 42?", "40"]))

It judges one narrow world (two to six candidates; sums, differences, the largest of some numbers, sorting, and sums of
names whose numbers its agents' memories hold) and abstains outside of it: see `model/MODEL_CARD.md`. It is there to try
the engine and to test what is built on it.

A model's folder can say how it is to be used: `debate run --model` starts from the settings in its `debate.yaml`; a
file of settings and flags take precedence. It may ask for these alone: a downloaded folder must not decide where a run
is written, or which code is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from debate.backends.vllm.backend import BUILT_IN
from debate.errors import ConfigError
from debate.yaml_files import FileModel, as_input_error, read_yaml

if TYPE_CHECKING:
    from debate.backends import VLLM
    from debate.evaluators.debate.evaluator import DebateEvaluator

__all__ = [
    "BUILT_IN",
    "backend",
    "demo_tasks",
    "evaluator",
    "model_folder",
    "model_path",
    "settings_of",
    "with_model_defaults",
]

FILE = "debate.yaml"
"""In a model's folder: how debates with it are prompted, and how vLLM loads it."""


class _EngineArgs(FileModel):
    dtype: str = "auto"
    max_model_len: int = Field(default=1, ge=1)
    enforce_eager: bool = False
    kv_cache_memory_bytes: int = Field(default=1, ge=1)
    block_size: int = Field(default=1, ge=1)


class _Asked(FileModel):
    profile: str = ""
    templates: str = ""
    comment_chars: int = Field(default=1, ge=1)
    overall_chars: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.0, ge=0)
    abstain: bool = False
    engine_args: _EngineArgs = _EngineArgs()


_OF_ALL = ("templates", "temperature")
"""Settings that every evaluator takes over from the model's folder, beside the engine's arguments."""


def model_path() -> Path:
    """The folder of the bundled judge: a checkpoint in Hugging Face format."""
    return Path(__file__).parent / "model"


def demo_tasks() -> Path:
    """The eval set of `debate demo`: questions of the judge's world, some of which no agent can answer alone."""
    return Path(__file__).parent / "demo_tasks.jsonl"


def model_folder(model: str | Path) -> str:
    """A model as a backend takes it: the bundled judge's folder for its name, everything else unchanged."""
    return str(model_path() if str(model) == BUILT_IN else model)


def settings_of(model: str | Path) -> dict[str, Any]:
    """The settings that a model's folder asks for; none where it has no `debate.yaml` or is no folder.

    Raises:
        ConfigError: for a file that holds anything else, with line and key.
    """
    file = Path(model_folder(model)) / FILE
    if not file.is_file():
        return {}
    located = read_yaml(file, ConfigError)
    try:
        return _Asked.model_validate(located.data).model_dump(exclude_unset=True)
    except ValidationError as found:
        raise as_input_error(found, located, _Asked, ConfigError) from None


def with_model_defaults(model: str | Path, given: Mapping[str, Any], *, is_debate: bool = True) -> dict[str, Any]:
    """The given settings, completed by those that the model's folder asks for; engine arguments one by one.

    is_debate: whether the settings that shape a debate alone are wanted, too.

    Raises:
        ConfigError: as `settings_of`.
    """
    asked = settings_of(model)
    engine_args = {**asked.pop("engine_args", {}), **given.get("engine_args", {})}
    wanted = asked if is_debate else {name: asked[name] for name in _OF_ALL if name in asked}
    return {**wanted, **given, **({"engine_args": engine_args} if engine_args else {})}


def backend(model: str | Path = BUILT_IN, **engine_args: Any) -> VLLM:
    """The judge, or another model, on vLLM, with `engine_args` and those that its folder asks for."""
    from debate.backends import VLLM

    return VLLM(model_folder(model), **with_model_defaults(model, {"engine_args": engine_args}).get("engine_args", {}))


def evaluator(model: str | Path = BUILT_IN, **settings: Any) -> DebateEvaluator:
    """A debate with the profile, templates, lengths and temperature that the judge is trained for.

    `settings` are parameters of `DebateEvaluator` and take precedence.
    """
    from debate.evaluators.debate.evaluator import DebateEvaluator
    from debate.types import Sampling

    asked = with_model_defaults(model, {})
    asked.pop("engine_args", None)
    if "temperature" in asked:
        asked["sampling"] = Sampling(temperature=asked.pop("temperature"))
    return DebateEvaluator(**{**asked, **settings})
