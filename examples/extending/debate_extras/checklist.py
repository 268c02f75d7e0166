"""An evaluator: yes/no questions about every candidate; its score is the share that is met."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from debate import Evaluation, Sampling, Scale, Task
from debate.errors import ReplyError
from debate.evaluators import (
    BaseEvaluator,
    Flow,
    Footprint,
    RunContext,
    build_evaluation,
    documented,
    gather,
    generate_parsed,
    judgment,
    result_setting,
    setting,
)
from debate.flow import Completion, Generate, Parsed, Prompt

SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string", "maxLength": 100}, "met": {"type": "boolean"}},
    "required": ["reason", "met"],
    "additionalProperties": False,
}


@documented
@dataclass(frozen=True, kw_only=True)
class Checklist(BaseEvaluator):
    """The share of some questions that are answered with yes for a candidate.

    >>> Checklist(questions="Is it correct?; Does it name its source?")
    """

    questions: str = setting("Is it correct?; Is it complete?", "Yes/no questions, separated by semicolons.")
    retries: int = result_setting(1, "How often a question is asked again after an unreadable reply.", ge=0)
    name: str = field(default="checklist", init=False)

    @property
    def scale(self) -> Scale:
        """The scale of the scores."""
        return Scale(0, 1)

    @property
    def _questions(self) -> list[str]:
        return [question.strip() for question in self.questions.split(";")]

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Ask every question about every candidate, all at once."""
        shape = len(task.candidates), len(self._questions)  # (J, Q)
        answers = yield from gather([self._ask(task, j, q) for j, q in np.ndindex(shape)])
        met = np.array([np.nan if answer.value is None else answer.value for answer in answers])
        judgments = [
            judgment(answer, candidates=(j,), value=answer.value)
            for (j, _), answer in zip(np.ndindex(shape), answers, strict=True)
        ]
        # A question without an answer leaves its candidate unscored: the mean of NaN is NaN.
        return build_evaluation(self, task, run, scores=met.reshape(shape).mean(axis=1), judgments=judgments)

    def footprint(self, task: Task) -> Footprint:
        """An upper bound of what the longest prompt holds."""
        longest = max(len(candidate.text) for candidate in task.candidates)
        return Footprint(len(task.x) + longest + len(self.questions) + 500, 1, 200)

    def _ask(self, task: Task, j: int, q: int) -> Flow[Parsed[float]]:
        def call(attempt: int, error: ReplyError | None) -> Generate:
            again = f"\n\nYour last reply could not be read: {error.message}" if error else ""
            text = f"# Question\n{task.x}\n\n# Answer\n{task.candidates[j].text}\n\n{self._questions[q]}{again}"
            return Generate(
                prompt=Prompt.from_messages(
                    [
                        {"role": "system", "content": 'Reply with JSON: {"reason": "...", "met": true or false}'},
                        {"role": "user", "content": text},
                    ]
                ),
                sampling=Sampling(temperature=0.0, max_tokens=200),
                schema=SCHEMA,
                sample_key=(j, q),
                attempt=attempt,
                info={"task_id": task.id, "candidate": j, "attempt": attempt},
            )

        return generate_parsed(call, read_met, self.retries)


def read_met(said: Completion) -> float:
    """1 for yes, 0 for no.

    Raises:
        ReplyError: with what was wrong; it is shown to the model when it is asked again.
    """
    try:
        return float(bool(json.loads(said.text)["met"]))
    except (ValueError, KeyError, TypeError):
        raise ReplyError("no_answer", 'the reply must be JSON with the key "met"') from None
