"""One tiny model and one vLLM engine for the whole session."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from benchmarks.debates import EngineStats

from debate import Engine, bundled_judge
from debate.backends import VLLM
from debate.memory.store import built_in
from tests.held_date import hold_date_still
from tests.required import required, required_module
from tests.scripts_loader import REPOSITORY, load_script

# What a small machine's two cores do in a reasonable time: short prompts, a small cache.
ENGINE_ARGS: dict[str, Any] = {
    "dtype": "bfloat16",
    "enforce_eager": True,
    "max_model_len": 16384,
    "max_num_seqs": 32,
    "kv_cache_memory_bytes": 1 << 29,
    "scheduling_policy": "priority",
}


def pytest_configure() -> None:
    """Hold the date still, and let Ctrl-C through.

    Tests of Ctrl-C need an interrupt that is not ignored, as it is where a shell runs tests in the background.
    """
    hold_date_still()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


NEED_VLLM = {"tiny_model", "tiny_thinking_model", "vllm_engine", "judge_backend", "judge_engine"}
"""Fixtures that need vLLM, or torch to write a model's weights: a test with one of them is marked `vllm`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on vLLM run last, and alone let its warnings pass."""
    for item in items:
        if isinstance(item, pytest.Function) and NEED_VLLM & set(item.fixturenames):
            item.add_marker(pytest.mark.vllm)
        if item.get_closest_marker("vllm"):
            item.add_marker(pytest.mark.filterwarnings("ignore"))
    items.sort(key=lambda item: item.get_closest_marker("vllm") is not None)


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """A Llama with random weights, made once a checkout."""
    required_module("torch")
    script = load_script("make_tiny_model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return script.make_tiny_model(REPOSITORY / ".cache" / "tiny-model")


@pytest.fixture(scope="session")
def tiny_thinking_model() -> Path:
    """The same with a think block in its chat template."""
    required_module("torch")
    script = load_script("make_tiny_model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return script.make_tiny_model(REPOSITORY / ".cache" / "tiny-thinking-model", thinks=True)


@pytest.fixture(scope="session")
def engine_stats() -> EngineStats:
    """What `vllm_backend` counts of its engine's steps."""
    return EngineStats()


@pytest.fixture(scope="session")
def vllm_backend(tiny_model: Path, engine_stats: EngineStats) -> Iterator[VLLM]:
    """The backend of `vllm_engine`."""
    required(find_spec("vllm"), "vLLM is not installed")
    yield VLLM(tiny_model, stat_loggers=[engine_stats.logger], **ENGINE_ARGS)


@pytest.fixture(scope="session")
def vllm_engine(vllm_backend: VLLM) -> Iterator[Engine]:
    """A started engine on real vLLM, shared by all tests that need one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Engine(vllm_backend, seed=1) as engine:
            engine.start()
            yield engine


@pytest.fixture(scope="session")
def judge_backend() -> VLLM:
    """The backend of `judge_engine`."""
    required(find_spec("vllm"), "vLLM is not installed")
    return bundled_judge.backend(max_num_seqs=32)


@pytest.fixture(scope="session")
def judge_engine(judge_backend: VLLM) -> Iterator[Engine]:
    """The bundled judge on real vLLM with its memory, shared by all tests that need one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with built_in() as memory, Engine(judge_backend, memory=memory) as engine:
            engine.start()
            yield engine
