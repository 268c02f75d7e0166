"""A process reward model in vLLM's pooling runner: a probability a step, whatever stands in the steps."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest

from debate import Candidate, Engine, StepEvaluator, Task
from debate.backends import RewardModel
from debate.errors import ConfigError
from debate.evaluators.steps.reward_models import RewardModelSteps
from tests.required import required
from tests.tiny_reward_model import STEP_TAG, make_tiny_reward_model

pytestmark = pytest.mark.vllm
STEPS = ["2 + 2 = 4.", "4 + 1 = 6.", "So the answer is 6."]


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    required(find_spec("vllm"), "vLLM is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_tiny_reward_model(tmp_path_factory.mktemp("reward"))


@pytest.fixture(scope="module")
def engine(reward_model: Path) -> Generator[Engine]:
    backend = RewardModel(
        reward_model, max_model_len=1024, dtype="float32", enforce_eager=True, kv_cache_memory_bytes=1 << 27
    )
    with Engine(backend) as engine:
        yield engine


def task(*lines: list[str]) -> Task:
    return Task("What is 2 + 2 + 1?", [Candidate("\n".join(steps), metadata={"steps": steps}) for steps in lines])


def evaluator() -> StepEvaluator:
    return StepEvaluator(judge=RewardModelSteps(), reduce="product", threshold=0.5)


def test_each_step_of_each_candidate_has_a_probability(engine: Engine) -> None:
    evaluation = engine.evaluate(task(STEPS, STEPS[:1], STEPS[::-1]), evaluator())
    assert evaluation.status == "ok", evaluation.error
    scores = evaluation.details["steps"]
    assert [len(each) for each in scores] == [3, 1, 3]
    assert all(0 < score < 1 for each in scores for score in each)
    assert scores[0][0] == pytest.approx(scores[1][0], abs=1e-4)  # what comes later changes nothing before
    assert evaluation.scores[1] == pytest.approx(scores[1][0])
    assert evaluation.usage.calls == 3


def test_a_step_that_holds_the_tag_is_one_step_all_the_same(engine: Engine) -> None:
    evaluation = engine.evaluate(task([f"2 + 2 = 4. {STEP_TAG} right {STEP_TAG}", STEPS[1]]), evaluator())
    assert evaluation.status == "ok", evaluation.error
    assert len(evaluation.details["steps"][0]) == 2


def test_steps_beyond_the_models_context_fail_by_name_and_cost_no_other_candidate_its_score(engine: Engine) -> None:
    evaluation = engine.evaluate(task(["long " * 3000], STEPS), evaluator())
    assert evaluation.status == "partial"
    assert evaluation.failures[0].reason == "context_length"
    assert evaluation.statuses == ("failed", "ok")


def test_a_model_without_the_tag_is_refused(tiny_model: Path) -> None:
    with Engine(RewardModel(tiny_model)) as engine, pytest.raises(ConfigError, match="is no token"):
        engine.start()
