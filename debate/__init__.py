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
    from debate.adapters.judge import Judge
    from debate.engine import Engine
    from debate.errors import DebateError
    from debate.evaluation import Evaluation, Evaluations
    from debate.evaluators.callback import CallbackEvaluator
    from debate.evaluators.cross import CrossEvaluator
    from debate.evaluators.debate.evaluator import DebateEvaluator
    from debate.evaluators.panel import PanelEvaluator
    from debate.evaluators.steps.evaluator import StepEvaluator
    from debate.evaluators.value import ValueEvaluator
    from debate.evaluators.vote import VoteEvaluator
    from debate.loaded import load
    from debate.profiles import Component, Persona, Profile, load_profile
    from debate.runtime.limits import Budget
    from debate.types import Candidate, Failure, Judgment, Price, Sampling, Scale, Task, Transcript, Turn, Usage

__version__ = "0.1.0"

_MODULES = {
    "adapters.judge": "Judge",
    "engine": "Engine",
    "errors": "DebateError",
    "evaluation": "Evaluation Evaluations",
    "evaluators.callback": "CallbackEvaluator",
    "evaluators.cross": "CrossEvaluator",
    "evaluators.debate.evaluator": "DebateEvaluator",
    "evaluators.panel": "PanelEvaluator",
    "evaluators.steps.evaluator": "StepEvaluator",
    "evaluators.value": "ValueEvaluator",
    "evaluators.vote": "VoteEvaluator",
    "loaded": "load",
    "profiles": "Component Persona Profile load_profile",
    "runtime.limits": "Budget",
    "types": "Candidate Failure Judgment Price Sampling Scale Task Transcript Turn Usage",
}
_HOME = {name: f"debate.{module}" for module, names in _MODULES.items() for name in names.split()}
__all__ = [
    "Budget",
    "CallbackEvaluator",
    "Candidate",
    "Component",
    "CrossEvaluator",
    "DebateError",
    "DebateEvaluator",
    "Engine",
    "Evaluation",
    "Evaluations",
    "Failure",
    "Judge",
    "Judgment",
    "PanelEvaluator",
    "Persona",
    "Price",
    "Profile",
    "Sampling",
    "Scale",
    "StepEvaluator",
    "Task",
    "Transcript",
    "Turn",
    "Usage",
    "ValueEvaluator",
    "VoteEvaluator",
    "load",
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
