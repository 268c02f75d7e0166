"""What vLLM's scheduler reports at every step: how many requests run and how many wait.

vLLM calls this interface of its own not stable; what is read of it is two counts.
"""

from __future__ import annotations

from typing import Any


class EngineStats:
    """What the engine's scheduler reports, step by step: how full it was."""

    def __init__(self) -> None:
        self.running: list[int] = []
        """Requests under way, one entry an engine step."""
        self.waiting: list[int] = []

    def logger(self, vllm_config: Any, engine_index: int = 0) -> Any:
        """A stat logger for vLLM that reports here."""
        from vllm.v1.metrics.loggers import StatLoggerBase

        stats = self

        class Logger(StatLoggerBase):
            def __init__(self, vllm_config: Any, engine_index: int = 0) -> None: ...

            def record(self, scheduler_stats: Any, *_: Any, **__: Any) -> None:
                if scheduler_stats is not None:
                    stats.running.append(scheduler_stats.num_running_reqs)
                    stats.waiting.append(scheduler_stats.num_waiting_reqs)

            def log_engine_initialized(self) -> None: ...

        return Logger(vllm_config, engine_index)
