"""vLLM in this process. Importing this loads no library; starting a backend does."""

from debate.backends.vllm.backend import VLLM
from debate.backends.vllm.reward_model import RewardModel

__all__ = ["VLLM", "RewardModel"]
