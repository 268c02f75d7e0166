"""Multi-agent debate evaluation of language-model outputs.

    from debate import DebateEvaluator, Engine, Task
    from debate.backends import VLLM

    with Engine(VLLM("path/to/model")) as engine:
        evaluation = engine.evaluate(Task("What is 2 + 2?", ["4", "5"]), DebateEvaluator("general"))

Names are imported when they are first used, so that `import debate` stays quick; no model library is imported
before a backend starts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from debate.engine import Engine as Engine
    from debate.evaluation import Evaluation as Evaluation
    from debate.evaluators.callback import CallbackEvaluator as CallbackEvaluator
    from debate.evaluators.cross import CrossEvaluator as CrossEvaluator
    from debate.evaluators.debate.evaluator import DebateEvaluator as DebateEvaluator
    from debate.evaluators.panel import PanelEvaluator as PanelEvaluator
    from debate.evaluators.steps.evaluator import StepEvaluator as StepEvaluator
    from debate.evaluators.value import ValueEvaluator as ValueEvaluator
    from debate.evaluators.vote import VoteEvaluator as VoteEvaluator
    from debate.profiles import Component as Component
    from debate.profiles import Persona as Persona
    from debate.profiles import Profile as Profile
    from debate.profiles import load_profile as load_profile
    from debate.types import Candidate as Candidate
    from debate.types import Sampling as Sampling
    from debate.types import Scale as Scale
    from debate.types import Task as Task

__version__ = "0.1.0"

_HOME = {
    "VoteEvaluator": "debate.evaluators.vote",
    "ValueEvaluator": "debate.evaluators.value",
    "StepEvaluator": "debate.evaluators.steps.evaluator",
    "PanelEvaluator": "debate.evaluators.panel",
    "CrossEvaluator": "debate.evaluators.cross",
    "CallbackEvaluator": "debate.evaluators.callback",
    "Candidate": "debate.types",
    "Component": "debate.profiles",
    "DebateEvaluator": "debate.evaluators.debate.evaluator",
    "Engine": "debate.engine",
    "Evaluation": "debate.evaluation",
    "Persona": "debate.profiles",
    "Profile": "debate.profiles",
    "Sampling": "debate.types",
    "Scale": "debate.types",
    "Task": "debate.types",
    "load_profile": "debate.profiles",
}

__all__ = [
    "CallbackEvaluator",
    "Candidate",
    "Component",
    "CrossEvaluator",
    "DebateEvaluator",
    "Engine",
    "Evaluation",
    "PanelEvaluator",
    "Persona",
    "Profile",
    "Sampling",
    "Scale",
    "StepEvaluator",
    "Task",
    "ValueEvaluator",
    "VoteEvaluator",
    "load_profile",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'debate' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
