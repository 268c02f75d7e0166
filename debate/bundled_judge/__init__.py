"""The judge in the box: a small trained model that runs anywhere, with no GPU, no account and no download.

    from debate import Engine, Task, bundled_judge

    with Engine(bundled_judge.backend()) as engine:
        evaluation = engine.evaluate(Task("17+25?", ["It is 41.", "42.", "Maybe 42?", "40"]), bundled_judge.evaluator())

It judges one narrow world (four candidates; sums, differences, the largest of some numbers, sorting, and sums with a
rule that its memory holds) and knows nothing of any other: see `model/MODEL_CARD.md` and `scripts/evaluate_judge`. It
is there to try the engine and to test what is built on it.

A model's folder says itself how it wants to be used: the settings in its `debate.yaml` are what `debate run --model`
starts from, and a file of settings and flags go before them. This module reads them; `debate.config.settings` obeys.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from debate.backends import VLLM
    from debate.evaluators.debate.evaluator import DebateEvaluator

__all__ = ["BUILT_IN", "backend", "evaluator", "model_folder", "model_path", "settings_of"]

BUILT_IN = "built-in"
"""The model's name, for `--model` and in a file of settings."""


def model_path() -> Path:
    """The folder of the bundled judge: a checkpoint in Hugging Face format."""
    return Path(__file__).parent / "model"


def model_folder(model: str | Path) -> str:
    """A model as a backend takes it: the bundled judge's folder for its name, everything else unchanged."""
    return str(model_path() if str(model) == BUILT_IN else model)


def settings_of(model: str | Path) -> dict[str, Any]:
    """The settings that a model's folder asks for; none where it has no `debate.yaml` or is no folder.

    Raises:
        ConfigError: for a file that holds anything else, with line and key.
    """
    from debate.bundled_judge.model_defaults import read_asked

    return read_asked(Path(model_folder(model)))


def backend(model: str | Path = BUILT_IN, **engine_args: Any) -> VLLM:
    """The judge on vLLM, with the engine arguments that its folder asks for and `engine_args` before them."""
    from debate.backends import VLLM

    return VLLM(model_folder(model), **{**settings_of(model).get("engine_args", {}), **engine_args})


def evaluator(model: str | Path = BUILT_IN, **settings: Any) -> DebateEvaluator:
    """A debate with the profile, templates, lengths and temperature that the judge is trained for.

    `settings` are parameters of `DebateEvaluator` and go before them.
    """
    from debate.evaluators.debate.evaluator import DebateEvaluator
    from debate.types import Sampling

    asked = settings_of(model)
    asked.pop("engine_args", None)
    if "temperature" in asked:
        asked["sampling"] = Sampling(temperature=asked.pop("temperature"))
    return DebateEvaluator(**{**asked, **settings})
