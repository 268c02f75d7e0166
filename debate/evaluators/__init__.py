'''Evaluators, and what the author of a new one needs.

An evaluator scores the candidates of a task. It is a frozen dataclass whose fields are its settings, with a method
`flow`: a generator that yields calls of models, is sent their replies, and returns an `Evaluation`. It does no input or
output, reads no clock, and takes its seed from `run`, so that a run can be resumed by sending it the recorded replies.

    @documented
    @dataclass(frozen=True, kw_only=True)
    class Brevity(BaseEvaluator):
        """Scores candidates by their length: 10 for an empty text, 0 from `limit` characters on."""

        limit: int = result_setting(1000, "Length in characters that scores 0.", ge=1)
        name: str = field(default="brevity", init=False)

        @property
        def scale(self) -> Scale:
            return Scale(0, 10)

        def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
            yield from ()  # asks no model
            lengths = np.array([len(candidate.text) for candidate in task.candidates], dtype=float)  # (J,)
            return build_evaluation(self, task, run, scores=10 * np.clip(1 - lengths / self.limit, 0, 1))

`BaseEvaluator` checks and describes the settings; those declared with `setting` shape prompts and belong to a run's
identity, those with `result_setting` may change when a run is resumed. Subclass `JudgeSettings` to ask one model short
questions with templates of your own, `ValueJudge` where the answer is one value, which can then be read out, and
`EnsembleEvaluator` to combine other evaluators. The files here are examples: `vote.py`, `value.py` and `cross.py`.
'''

from debate.evaluators.base import BaseEvaluator, ChecksTasks, Evaluator, Footprint, PromptingEvaluator
from debate.evaluators.ensemble import EnsembleEvaluator, isolate_failures, rescale, scatter_candidates
from debate.evaluators.judge import JudgePrompts, JudgeSettings, ValueJudge, judgment, reading
from debate.evaluators.result import build_evaluation
from debate.flow import Flow, RunContext, call_function, gather, generate, generate_parsed, recall
from debate.settings import REQUIRED, documented, result_setting, setting

__all__ = [
    "REQUIRED",
    "BaseEvaluator",
    "ChecksTasks",
    "EnsembleEvaluator",
    "Evaluator",
    "Flow",
    "Footprint",
    "JudgePrompts",
    "JudgeSettings",
    "PromptingEvaluator",
    "RunContext",
    "ValueJudge",
    "build_evaluation",
    "call_function",
    "documented",
    "gather",
    "generate",
    "generate_parsed",
    "isolate_failures",
    "judgment",
    "reading",
    "recall",
    "rescale",
    "result_setting",
    "scatter_candidates",
    "setting",
]
