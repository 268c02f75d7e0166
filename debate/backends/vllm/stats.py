"""What vLLM's scheduler reports at every step: how many requests run and how many wait.

vLLM calls this interface of its own not stable; what is read of it is two counts.
"""

from __future__ import annotations

from typing import Any


class EngineStats:
    """Running totals over engine steps."""

    def __init__(self) -> None:
        self.steps = 0
        self.running = 0
        """Requests under way, summed over the steps."""
        self.saturated_steps = 0
        """Steps in which further requests waited for a slot."""
        self.saturated_running = 0
        """Requests under way, summed over those."""

    def logger(self, vllm_config: Any, engine_index: int = 0) -> Any:
        """A stat logger for vLLM that reports here."""
        from vllm.v1.metrics.loggers import StatLoggerBase

        stats = self

        class Logger(StatLoggerBase):
            def __init__(self, vllm_config: Any, engine_index: int = 0) -> None: ...

            def record(self, scheduler_stats: Any, *_: Any, **__: Any) -> None:
                if scheduler_stats is not None:
                    # A request whose grammar was being compiled counts as skipped until it runs.
                    skipped = getattr(scheduler_stats, "num_skipped_waiting_reqs", 0)
                    stats.count(scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs + skipped)

            def log_engine_initialized(self) -> None: ...

        return Logger(vllm_config, engine_index)

    def count(self, running: int, waiting: int) -> None:
        """Count one step."""
        self.steps += 1
        self.running += running
        if waiting:
            self.saturated_steps += 1
            self.saturated_running += running
