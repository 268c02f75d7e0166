"""Backends: what a call is sent to. Each imports its library when it starts, not before.

A backend is a class with the members of `Backend`; `Scripted` makes one of a function.
"""

from debate.backends.base import Backend, Call, Capacity
from debate.backends.http.ollama import Ollama
from debate.backends.http.openai import OpenAICompatible
from debate.backends.http.value_server import ValueServer
from debate.backends.scripted import Scripted
from debate.backends.vllm.backend import VLLM
from debate.backends.vllm.reward_model import RewardModel
from debate.flow import Completion
from debate.net.retry import RetryPolicy

__all__ = [
    "VLLM",
    "Backend",
    "Call",
    "Capacity",
    "Completion",
    "Ollama",
    "OpenAICompatible",
    "RetryPolicy",
    "RewardModel",
    "Scripted",
    "ValueServer",
]
