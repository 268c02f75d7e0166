"""Backends: what a call is sent to. One adapter a file; each imports its library when it starts, not before."""

from debate.backends.base import Backend, Call, Capacity
from debate.backends.ollama import Ollama
from debate.backends.openai import OpenAICompatible
from debate.backends.reward_model import RewardModel
from debate.backends.scripted import Scripted
from debate.backends.value_server import ValueServer
from debate.backends.vllm import VLLM
from debate.net.retry import RetryPolicy

__all__ = [
    "VLLM",
    "Backend",
    "Call",
    "Capacity",
    "Ollama",
    "OpenAICompatible",
    "Patience",
    "RewardModel",
    "Scripted",
    "ValueServer",
]
