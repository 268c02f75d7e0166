"""Backends: what a call is sent to. One adapter a file; each imports its library when it starts, not before."""

from debate.backends.base import Backend, Call, Capacity
from debate.backends.http.ollama import Ollama
from debate.backends.http.openai import OpenAICompatible
from debate.backends.http.value_server import ValueServer
from debate.backends.scripted import Scripted
from debate.backends.vllm.backend import VLLM
from debate.backends.vllm.reward_model import RewardModel
from debate.net.retry import RetryPolicy

__all__ = [
    "VLLM",
    "Backend",
    "Call",
    "Capacity",
    "Ollama",
    "OpenAICompatible",
    "RetryPolicy",
    "RewardModel",
    "Scripted",
    "ValueServer",
]
