"""Optimize a prompt: debates score its responses, and what they say of the weak ones rewrites it.

    python examples/optimize_prompt.py --prompt "Answer." --data train.jsonl --model NAME
    python examples/optimize_prompt.py                       # sums and a scripted model; seconds, anywhere

One step: every prompt of the pool answers the same few inputs; each input is one debate over the responses, so all
prompts are compared side by side; all debates go through one `evaluate_batch`. The `--beam` best prompts stay. Parents
are drawn from them by the softmax of their scores, and a rewriter gets a parent's weakest responses with
`Evaluation.feedback` as a textual gradient (arXiv 2305.03495) and proposes a new prompt for the next pool.

The data is JSONL, {"x": ..., "reference": ...} per line. With references, which the agents see as context, this is the
supervised prompt optimization of "TextEvolve Evaluate" (Yucha, 2024); without, its unsupervised upscaling. Scores are
comparable within a step, not across steps: each draws its own inputs. A prompt without a score for an input that was
scored is unscored, never 0, and leaves the pool. `--no-feedback` is the control: rewriting blindly.

The best prompt of the last step goes to stdout, the steps to stderr. Exit code 3: a step in which nothing was scored
ended the search; 2: bad input; 4: the engine failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from debate import Candidate, Engine, Evaluation, Sampling, Task
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.errors import BackendError, BackendUnavailableError, ConfigError, DebateError, TaskError
from debate.evaluators.base import Evaluator
from debate.hashing import derive
from debate.scoring.tensor import softmax
from debate.selection import keep_best, sample
from debate.types import FloatArray

REWRITE = (
    "You improve the prompts of a language model. You see a prompt, and responses it led to that judges found weak, "
    "with what they said. Write a better prompt for all inputs of this kind: cure what the judges name, keep what "
    "works, and give away no answer. Put the whole new prompt between <prompt> and </prompt>."
)
PROPOSAL = re.compile(r"<prompt>(.*?)</prompt>", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """An input, and the answer it should get, where that is known."""

    x: str
    reference: str | None = None

    def __post_init__(self) -> None:
        Task(self.x, ["-"], reference=self.reference)  # refuses what is no text

    def task(self, candidates: Sequence[Candidate]) -> Task:
        """The responses as a task; the agents see the reference answer."""
        return Task(self.x, candidates, reference=self.reference)


@dataclass(frozen=True)
class Step:
    """The pool of P prompts, and the debates over their responses to N inputs."""

    prompts: list[str]
    tasks: list[Task]
    """A candidate's id is the position of its prompt in the pool."""
    evaluations: list[Evaluation]
    kept: list[int]
    """Positions of the best prompts, best first; empty when nothing was scored."""
    scores: FloatArray
    """(P,), NaN = unscored."""


@dataclass(frozen=True)
class Optimizer:
    """The search: what it works with, and how wide it goes."""

    engine: Engine
    evaluator: Evaluator
    beam: int = 2
    inputs: int = 3
    seed: int = 0
    with_feedback: bool = True
    sampling: Sampling = Sampling(temperature=0.7, max_tokens=1024)

    def search(self, start: str, examples: Sequence[Example], steps: int) -> Iterator[Step]:
        """Score the start, then `steps` times rewrite and score. Ends early when nothing was scored."""
        pool = [start]
        for n in range(steps + 1):
            step = self.judge(pool, self.draw_inputs(examples, n))
            yield step
            if not step.kept:
                return
            if n < steps:
                stay = [step.prompts[p] for p in step.kept]
                pool = list(dict.fromkeys([*stay, *self.rewrite(step, n)]))

    def draw_inputs(self, examples: Sequence[Example], n: int) -> list[Example]:
        """The mini-batch of step n."""
        order = np.random.default_rng(derive(self.seed, "inputs", n)).permutation(len(examples))
        return [examples[i] for i in order[: self.inputs]]

    def judge(self, prompts: list[str], examples: Sequence[Example]) -> Step:
        """Answer every input under every prompt, and debate each input's responses."""
        answers = self.ask([(prompt, example.x) for example in examples for prompt in prompts])
        tasks: list[Task] = []
        for n, example in enumerate(examples):
            its_own = answers[n * len(prompts) : (n + 1) * len(prompts)]
            candidates = [Candidate(text, id=str(p)) for p, text in enumerate(its_own) if text is not None]
            if candidates:
                tasks.append(example.task(candidates))
        evaluations = self.engine.evaluate_batch(tasks, self.evaluator)
        for failure in (failure for evaluation in evaluations for failure in evaluation.failures):
            if failure.reason == "backend_dead":  # a batch gives back what it has; a search cannot go on from there
                raise BackendUnavailableError(failure.message)
        scores = prompt_scores(tasks, evaluations, len(prompts))
        return Step(prompts, tasks, evaluations, keep_best(scores, self.beam), scores)

    def rewrite(self, step: Step, n: int) -> list[str]:
        """One proposal per drawn parent; a reply without a prompt in it is no proposal."""
        probabilities = softmax(step.scores[step.kept])  # (at most beam,)
        draws = [sample(probabilities, derive(self.seed, "parent", n, m)) for m in range(self.beam)]
        parents = [step.kept[draw] for draw in draws]
        replies = self.ask([(REWRITE, self.gradient(step, p)) for p in parents])
        found = [PROPOSAL.findall(reply) for reply in replies if reply is not None]
        return [proposals[-1].strip() for proposals in found if proposals and proposals[-1].strip()]

    def gradient(self, step: Step, p: int, n_weak: int = 2) -> str:
        """Prompt p with its weakest responses and what the agents said of them: the rewriter's user message."""
        cases: list[tuple[float, str]] = []
        for task, evaluation in zip(step.tasks, step.evaluations, strict=True):
            for j, candidate in enumerate(task.candidates):
                if candidate.id == str(p) and not np.isnan(evaluation.scores[j]):
                    said = f"\n\n# What the judges said\n{evaluation.feedback(j)}" if self.with_feedback else ""
                    shown = f"# Input\n{task.x}\n\n# Response\n{candidate.text}{said}"
                    cases.append((float(evaluation.scores[j]), shown))
        weakest = sorted(cases, key=lambda case: case[0])[:n_weak]
        return "\n\n".join([f"# Prompt\n<prompt>{step.prompts[p]}</prompt>", *(shown for _, shown in weakest)])

    def ask(self, prompts: Sequence[tuple[str, str]]) -> list[str | None]:
        """The model's answers to pairs of system and user message, without thoughts; None where a call failed."""
        chats = [[{"role": "system", "content": system}, {"role": "user", "content": user}] for system, user in prompts]
        completions = self.engine.generate(chats, sampling=self.sampling)
        for failure in filter(None, (completion.failure for completion in completions)):
            print(f"a call failed: {failure.message}", file=sys.stderr)
        texts = [None if completion.failure else completion.text for completion in completions]
        return [None if text is None else text.rpartition("</think>")[2].strip() for text in texts]


def prompt_scores(tasks: Sequence[Task], evaluations: Sequence[Evaluation], n_prompts: int) -> FloatArray:
    """Mean score of each prompt over the inputs that were scored, (P,).

    NaN for a prompt that lacks one of them: its mean would be over other inputs than the rest's.
    """
    table = np.full((len(tasks), n_prompts), np.nan)  # (N, P)
    for n, (task, evaluation) in enumerate(zip(tasks, evaluations, strict=True)):
        table[n, [int(candidate.id or 0) for candidate in task.candidates]] = evaluation.scores
    table = table[~np.isnan(table).all(axis=1)]  # (scored inputs, P)
    return table.mean(axis=0) if len(table) else np.full(n_prompts, np.nan)


def read_examples(path: Path) -> list[Example]:
    """The training data; raises `TaskError` with file and line."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"cannot be read: {error}", file=path) from None
    examples: list[Example] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                examples.append(Example(**json.loads(line)))
            except (ValueError, TypeError, TaskError) as error:
                raise TaskError(f'is no {{"x": ..., "reference": ...}}: {error}', file=path, line=number) from None
    if not examples:
        raise TaskError("holds no inputs", file=path)
    return examples


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompt", default=START, help="the prompt to start from")
    parser.add_argument("--data", type=Path, help="JSONL of inputs, with references or without; sums by default")
    parser.add_argument("--steps", type=int, default=6, help="how often prompts are rewritten")
    parser.add_argument("--beam", type=int, default=2, help="prompts kept, and parents drawn, per step")
    parser.add_argument("--inputs", type=int, default=3, help="inputs answered per step")
    parser.add_argument("--no-feedback", action="store_true", help="the control: rewrite without the judges' words")
    for flag in ("--model", "--backend", "--base-url", "--seed"):
        parser.add_argument(flag, help="as for `debate run`")
    parser.add_argument("--config", type=Path, help="YAML of further settings, as for `debate run`")
    options = parser.parse_args(arguments)
    try:
        if min(options.steps, options.beam, options.inputs) < 1:
            raise ConfigError("--steps, --beam and --inputs must be at least 1")
        given = {name: getattr(options, name) for name in ("model", "backend", "base_url", "seed")}
        settings = RunSettings.read(options.config, {name: value for name, value in given.items() if value is not None})
        if settings.model is None and options.data is not None:
            raise ConfigError("the scripted model can do its own sums only: give a --model", field="data")
        backend = Scripted(scripted) if settings.model is None else settings.open_backend()
        examples = SUMS if options.data is None else read_examples(options.data)
        sampling = Sampling(temperature=settings.temperature, top_p=settings.top_p, max_tokens=1024)
        with Engine(backend, seed=settings.seed) as engine:
            optimizer = Optimizer(
                engine,
                settings.make_evaluator(),
                options.beam,
                options.inputs,
                settings.seed,
                not options.no_feedback,
                sampling,
            )
            best = report(optimizer.search(options.prompt, examples, options.steps))
    except DebateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4 if isinstance(error, BackendError) else 2
    if best is not None:
        print(best)
    return 3 if best is None else 0


def report(steps: Iterator[Step]) -> str | None:
    """Show each step on stderr; the last one's best prompt, or None when the search broke off."""
    best: str | None = None
    for n, step in enumerate(steps):
        unscored = int(np.isnan(step.scores).sum())
        print(f"step {n}: {len(step.prompts)} prompts, {unscored} of them unscored", file=sys.stderr)
        for p in step.kept:
            print(f"  {step.scores[p]:5.2f}  {step.prompts[p]}", file=sys.stderr)
        if not step.kept:
            reasons = {evaluation.error for evaluation in step.evaluations if evaluation.error}
            print(f"nothing was scored: {'; '.join(sorted(reasons)) or 'no responses'}", file=sys.stderr)
        best = step.prompts[step.kept[0]] if step.kept else None
    return best


# The scripted model. A copy of this file for a real model does without it.

SUMS = [
    Example("A box holds 6 apples. How many do 7 boxes hold?", "42 apples"),
    Example("A box holds 8 apples. How many do 9 boxes hold?", "72 apples"),
    Example("A train does 80 km an hour. How far is it in 3 hours?", "240 km"),
    Example("A train does 95 km an hour. How far is it in 4 hours?", "380 km"),
]
START = "Answer the question."
CURES = {
    "the working is missing": "Show the working.",
    "the unit is missing": "Give the unit.",
    "it rambles": "Answer in one line.",
}
CANDIDATE = re.compile(r"\[candidate ([A-Z]+) (\w+)\]\n(.*?)\n\[/candidate \1 \2\]", re.DOTALL)


def scripted(call: Call) -> str:
    """A model that does what its prompt says and no more, judges by three faults, and cures what it reads of."""
    system, user = (message["content"] for message in call.messages)
    if call.schema is not None:
        return judge_sums(call, user, strictness=0.5 if call.info["agent"] == "Critic" else 0.0)
    return cure_one(user, call.seed) if system == REWRITE else answer_sum(system, user)


def answer_sum(prompt: str, x: str) -> str:
    """Right always; with working, unit and brevity only where the prompt asks for them."""
    n, m = map(int, re.findall(r"\d+", x))
    unit = "apples" if "apples" in x else "km"
    working = f"{n} x {m} = " if "Show the working." in prompt else ""
    text = f"{working}{n * m}{' ' + unit if 'Give the unit.' in prompt else ''}"
    is_brief = "Answer in one line." in prompt and "Be friendly." not in prompt
    return text if is_brief else f"What a lovely question!\n{text}"


def judge_sums(call: Call, shown: str, strictness: float) -> str:
    """A judge's turn: three points off for each fault, which the comment names."""
    assert call.schema is not None
    one = next(iter(call.schema["properties"]["candidates"]["properties"].values()))
    components = one["properties"]["scores"]["properties"]
    candidates: dict[str, Any] = {}
    for label, _, text in CANDIDATE.findall(shown):
        present = ("=" in text, bool(re.search("apples|km", text)), "\n" not in text)
        faults = [fault for fault, is_fine in zip(CURES, present, strict=True) if not is_fine]
        score = 10.0 - 3.0 * len(faults) - strictness
        candidates[label] = {"comment": ", ".join(faults) or "fine", "scores": dict.fromkeys(components, score)}
    return json.dumps({"overall": "By working, unit and brevity.", "candidates": candidates})


def cure_one(shown: str, seed: int) -> str:
    """The prompt with an instruction against one of the faults that are named, or with a useless one."""
    told = PROPOSAL.findall(shown)[0]
    cures = [cure for fault, cure in CURES.items() if fault in shown and cure not in told]
    return f"<prompt>{told} {cures[seed % len(cures)] if cures else 'Be friendly.'}</prompt>"


if __name__ == "__main__":
    sys.exit(main())
