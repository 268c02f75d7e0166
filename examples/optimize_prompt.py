"""Optimize a prompt: debates score its responses, and what they say of the weak ones rewrites it.

    python examples/optimize_prompt.py --prompt "Answer." --data train.jsonl --model NAME
    python examples/optimize_prompt.py --backend scripted           # everything is scripted; seconds, anywhere
    python examples/optimize_prompt.py --model built-in             # the bundled judge's judgments, on vLLM
    python examples/optimize_prompt.py --model built-in --with gepa # the same with DSPy's GEPA

The plain loop (`--with loop`). One step: every prompt of the pool answers the same few inputs; each input is one debate
over the responses, so all prompts are compared side by side; all debates go through one `aevaluate_batch`. The `--beam`
best prompts stay. Parents are drawn from them by the softmax of their scores, and a rewriter gets a parent's weakest
responses with `Evaluation.feedback` as a textual gradient (arXiv 2305.03495) and proposes a new prompt for the next
pool. `--searches N` makes N searches side by side in one asyncio program: their small batches share the engine's.

With `--with gepa`, DSPy's GEPA optimizes the instruction of a program, with `debate.adapters.dspy.as_metric` as its
metric; it needs `pip install dspy`, which fits beside vLLM.

The data is JSONL, {"x": ..., "reference": ...} per line. With references, which the agents see as context, this is the
supervised prompt optimization of "TextEvolve Evaluate" (Yucha, 2024); without, its unsupervised upscaling. Scores are
comparable within a step, not across steps: each draws its own inputs. A prompt without a score for an input that was
scored is unscored, never 0, and leaves the pool. Two controls show what the judges' words are worth: `--feedback none`
rewrites blindly, `--feedback shuffled` gives each input what was said of another one.

Without `--data` the inputs are questions that the bundled judge was taught, and the program that answers them and the
rewriter are scripted, whoever judges: what they find shows how the parts work together, not what a model can do.

The best prompt goes to stdout, the steps to stderr. Exit code 3: a step in which nothing was scored ended the search;
2: bad input; 4: the engine failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

import numpy as np

from debate import Candidate, Engine, Evaluation, Judge, Sampling, Task
from debate.adapters.dspy import as_metric
from debate.backends import Backend, Call, Scripted
from debate.config.settings import RunSettings
from debate.errors import BackendError, BackendUnavailableError, ConfigError, DebateError, TaskError
from debate.evaluators.base import Evaluator
from debate.hashing import derive
from debate.scoring.tensor import softmax
from debate.selection import keep_best, sample
from debate.types import FloatArray

Feedback = Literal["judges", "none", "shuffled"]
"""What the rewriter is told: the judges' words, nothing (a control), or their words on another input (a control)."""
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
    inputs: int = 4
    seed: int = 0
    feedback: Feedback = "judges"
    sampling: Sampling = Sampling(temperature=0.7, max_tokens=1024)
    writer: str | None = None
    """The engine's model that responds and rewrites; None is the one that judges."""

    async def search(self, start: str, examples: Sequence[Example], steps: int) -> AsyncIterator[Step]:
        """Score the start, then `steps` times rewrite and score. Ends early when nothing was scored."""
        pool = [start]
        for n in range(steps + 1):
            step = await self.judge(pool, self.draw_inputs(examples, n))
            yield step
            if not step.kept:
                return
            if n < steps:
                stay = [step.prompts[p] for p in step.kept]
                pool = list(dict.fromkeys([*stay, *await self.rewrite(step, n)]))

    def draw_inputs(self, examples: Sequence[Example], n: int) -> list[Example]:
        """The mini-batch of step n."""
        order = np.random.default_rng(derive(self.seed, "inputs", n)).permutation(len(examples))
        return [examples[i] for i in order[: self.inputs]]

    async def judge(self, prompts: list[str], examples: Sequence[Example]) -> Step:
        """Answer every input under every prompt, and debate each input's responses."""
        answers = await self.ask([(prompt, example.x) for example in examples for prompt in prompts])
        tasks: list[Task] = []
        for n, example in enumerate(examples):
            its_own = answers[n * len(prompts) : (n + 1) * len(prompts)]
            candidates = [Candidate(text, id=str(p)) for p, text in enumerate(its_own) if text is not None]
            if candidates:
                tasks.append(example.task(candidates))
        evaluations = await self.engine.aevaluate_batch(tasks, self.evaluator)
        for failure in (failure for evaluation in evaluations for failure in evaluation.failures):
            if failure.reason == "backend_dead":  # a batch gives back what it has; a search cannot go on from there
                raise BackendUnavailableError(failure.message)
        scores = prompt_scores(tasks, evaluations, len(prompts))
        return Step(prompts, tasks, evaluations, keep_best(scores, self.beam), scores)

    async def rewrite(self, step: Step, n: int) -> list[str]:
        """One proposal per drawn parent; a reply without a prompt in it is no proposal."""
        probabilities = softmax(step.scores[step.kept])  # (at most beam,)
        draws = [sample(probabilities, derive(self.seed, "parent", n, m)) for m in range(self.beam)]
        parents = [step.kept[draw] for draw in draws]
        replies = await self.ask([(REWRITE, self.gradient(step, p)) for p in parents])
        found = [PROPOSAL.findall(reply) for reply in replies if reply is not None]
        return [proposals[-1].strip() for proposals in found if proposals and proposals[-1].strip()]

    def gradient(self, step: Step, p: int, n_weak: int = 2) -> str:
        """Prompt p with its weakest responses and what the agents said of them: the rewriter's user message."""
        cases: list[Case] = []
        for task, evaluation in zip(step.tasks, step.evaluations, strict=True):
            for j, candidate in enumerate(task.candidates):
                if candidate.id == str(p) and not np.isnan(evaluation.scores[j]):
                    cases.append(Case(task.x, candidate.text, evaluation.feedback(j), float(evaluation.scores[j])))
        weakest = sorted(as_told(cases, self.feedback), key=lambda case: case.score)[:n_weak]
        return case_text(step.prompts[p], weakest)

    async def ask(self, prompts: Sequence[tuple[str, str]]) -> list[str | None]:
        """The model's answers to pairs of system and user message, without thoughts; None where a call failed."""
        chats = [[{"role": "system", "content": system}, {"role": "user", "content": user}] for system, user in prompts]
        completions = await self.engine.agenerate(chats, sampling=self.sampling, model=self.writer)
        for failure in filter(None, (completion.failure for completion in completions)):
            print(f"a call failed: {failure.message}", file=sys.stderr)
        texts = [None if completion.failure else completion.text for completion in completions]
        return [None if text is None else text.rpartition("</think>")[2].strip() for text in texts]


@dataclass(frozen=True)
class Case:
    """A response, and what was said of it."""

    x: str
    response: str
    said: str
    score: float = 0.0


def as_told(cases: Sequence[Case], feedback: Feedback) -> list[Case]:
    """The cases with the words that the rewriter gets: their own, none, or those on the next case."""
    if feedback == "judges":
        return list(cases)
    said = [case.said for case in cases] if feedback == "shuffled" else [""] * len(cases)
    return [replace(case, said=other) for case, other in zip(cases, [*said[1:], *said[:1]], strict=True)]


def case_text(prompt: str, cases: Sequence[Case]) -> str:
    """A prompt and some responses, as the rewriter reads them."""
    shown = [f"# Prompt\n<prompt>{prompt}</prompt>"]
    for case in cases:
        said = f"\n\n# What the judges said\n{case.said}" if case.said else ""
        shown.append(f"# Input\n{case.x}\n\n# Response\n{case.response}{said}")
    return "\n\n".join(shown)


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


async def search_all(
    optimizers: Sequence[Optimizer], start: str, examples: Sequence[Example], steps: int
) -> list[list[Step]]:
    """Make all searches side by side: their small batches share the engine's."""

    async def one(optimizer: Optimizer) -> list[Step]:
        return [step async for step in optimizer.search(start, examples, steps)]

    return await asyncio.gather(*map(one, optimizers))


async def best_of(optimizer: Optimizer, searches: Sequence[list[Step]], examples: Sequence[Example]) -> str | None:
    """The best of what the searches ended with, judged side by side where there are several; None without any."""
    found = [steps[-1].prompts[steps[-1].kept[0]] for steps in searches if steps[-1].kept]
    different = list(dict.fromkeys(found))
    if len(different) < 2:
        return different[0] if different else None
    last = await optimizer.judge(different, examples)
    return different[last.kept[0]] if last.kept else None


# The same with DSPy. Your own program and its model go in the place of `student`, and GEPA's `reflection_lm` in the
# place of the scripted `propose`.


def with_gepa(
    judge: Judge, start: str, examples: Sequence[Example], *, seed: int = 0, feedback: Feedback = "judges",
    budget: int = 150, num_threads: int = 8,
) -> str:  # fmt: skip
    """The instruction that GEPA ends with, after `budget` calls of the metric; the student is scripted."""
    dspy: Any = import_module("dspy")
    rows = [_row(dspy, example) for example in examples]
    optimizer = dspy.GEPA(
        metric=metric_as_told(as_metric(judge), feedback, [example.x for example in examples]),
        instruction_proposer=proposer(Random(f"gepa-{seed}")),
        max_metric_calls=budget,
        num_threads=num_threads,
        seed=seed,
    )
    with dspy.context(lm=dspy.utils.DummyLM([])):  # it is never asked: the student's answers are scripted
        return optimizer.compile(student(dspy, start), trainset=rows, valset=rows).predict.signature.instructions


def _row(dspy: Any, example: Example) -> Any:
    labels = {} if example.reference is None else {"answer": example.reference}
    return dspy.Example(question=example.x, **labels).with_inputs("question")


def student(dspy: Any, instruction: str) -> Any:
    """A DSPy program of one predictor, whose answers are what `respond` makes of its instruction."""

    class Student(dspy.Module):
        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.predict = dspy.Predict(dspy.Signature("question -> answer", instruction))

        def forward(self, question: str) -> Any:
            text = respond(self.predict.signature.instructions, question)
            with dspy.context(lm=dspy.utils.DummyLM([{"answer": text}])):
                return self.predict(question=question)

    return Student()


def proposer(random: Random) -> Callable[..., dict[str, str]]:
    """An `instruction_proposer` for GEPA that is scripted, and reads the feedback."""

    def propose(
        candidate: Mapping[str, str], reflective_dataset: Mapping[str, Any], components_to_update: Sequence[str]
    ) -> dict[str, str]:
        proposed: dict[str, str] = {}
        for name in components_to_update:
            cases = [
                Case(str(each["Inputs"]), str(each["Generated Outputs"]), str(each["Feedback"]))
                for each in reflective_dataset[name]
            ]
            proposed[name] = cure_one(case_text(candidate[name], cases), random)
        return proposed

    return propose


def metric_as_told(metric: Callable[..., Any], feedback: Feedback, inputs: Sequence[str]) -> Callable[..., Any]:
    """The metric with the words that the rewriter gets; shuffled, each input has those last said of the next one."""
    if feedback == "judges":
        return metric
    following = dict(zip(inputs, [*inputs[1:], *inputs[:1]], strict=True))
    last: dict[str, str] = {}

    def told(
        gold: Any, pred: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
    ) -> Any:  # fmt: skip
        found = metric(gold, pred, trace, pred_name, pred_trace)
        if not hasattr(found, "feedback"):
            return found
        last[gold.question] = found.feedback
        found["feedback"] = last.get(following[gold.question], "-") if feedback == "shuffled" else "-"
        return found

    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with", choices=("loop", "gepa"), default="loop", dest="how", help="the optimizer")
    parser.add_argument("--prompt", default=START, help="the prompt to start from")
    parser.add_argument("--data", type=Path, help="JSONL of inputs, with references or without; sums by default")
    parser.add_argument("--steps", type=int, default=8, help="of the loop: how often prompts are rewritten")
    parser.add_argument("--beam", type=int, default=2, help="of the loop: prompts kept, and parents drawn, per step")
    parser.add_argument("--inputs", type=int, default=4, help="of the loop: inputs answered per step")
    parser.add_argument(
        "--searches", type=int, default=1, help="of the loop: made side by side, with seeds of their own"
    )
    parser.add_argument("--budget", type=int, default=150, help="of GEPA: most calls of the metric")
    parser.add_argument("--feedback", choices=("judges", "none", "shuffled"), default="judges", help="or a control")
    for flag in ("--model", "--backend", "--base-url", "--seed"):
        parser.add_argument(flag, help="as for `debate run`")
    parser.add_argument("--config", type=Path, help="YAML of further settings, as for `debate run`")
    options = parser.parse_args(arguments)
    try:
        best = run(options)
    except DebateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4 if isinstance(error, BackendError) else 2
    if best is not None:
        print(best)
    return 3 if best is None else 0


def run(options: argparse.Namespace) -> str | None:
    """The best prompt; None when nothing could be scored."""
    if min(options.steps, options.beam, options.inputs, options.searches, options.budget) < 1:
        raise ConfigError("--steps, --beam, --inputs, --searches and --budget must be at least 1")
    given = {name: getattr(options, name) for name in ("model", "backend", "base_url", "seed")}
    settings = RunSettings.read(options.config, {name: value for name, value in given.items() if value is not None})
    if settings.backend == "scripted" or settings.model is None:
        settings = settings.model_copy(update={"model": None})
    if settings.model is None and options.data is not None:
        raise ConfigError("the scripted model can do its own sums only: give a --model", field="data")
    if options.how == "gepa" and options.data is not None:
        raise ConfigError("with GEPA this example has a scripted student alone, for its own sums", field="data")
    examples = questions(settings.seed) if options.data is None else read_examples(options.data)
    backends = opened(settings, is_scripted=options.data is None)
    with Engine(backends, seed=settings.seed) as engine:
        if options.how == "gepa":
            judge = Judge(engine, settings.make_evaluator(), on_unscored="fallback")
            print_start(judge, options.prompt, examples)
            best = with_gepa(
                judge, options.prompt, examples, seed=settings.seed, feedback=options.feedback, budget=options.budget
            )
            print_start(judge, best, examples)
            return best
        sampling = Sampling(temperature=settings.temperature, top_p=settings.top_p, max_tokens=1024)
        optimizers = [
            Optimizer(
                engine, settings.make_evaluator(), options.beam, options.inputs, settings.seed + n, options.feedback,
                sampling, WRITER if options.data is None else None,
            )
            for n in range(options.searches)
        ]  # fmt: skip
        return asyncio.run(_searched(optimizers, options.prompt, examples, options.steps))


async def _searched(optimizers: Sequence[Optimizer], start: str, examples: Sequence[Example], steps: int) -> str | None:
    searches = await search_all(optimizers, start, examples, steps)
    for n, found in enumerate(searches):
        report(found, f"search {n}, " if len(searches) > 1 else "")
    return await best_of(optimizers[0], searches, examples)


def opened(settings: RunSettings, *, is_scripted: bool) -> dict[str, Backend]:
    """The judge's backend first, and the scripted one that responds and rewrites where it is one."""
    judge = Scripted(judge_answers, model="judge") if settings.model is None else settings.open_backend()
    if not is_scripted:
        return {judge.model: judge}
    who = "scripted, too" if settings.model is None else f"those of {settings.model}"
    print(f"the program and its rewriter are scripted; the judgments are {who}", file=sys.stderr)
    return {judge.model: judge, WRITER: Scripted(write, model=WRITER)}


def print_start(judge: Judge, prompt: str, examples: Sequence[Example]) -> None:
    """Show a prompt's mean score on stderr."""
    print(f"  {mean_score(judge, prompt, examples):5.2f}  {prompt}", file=sys.stderr)


def mean_score(judge: Judge, prompt: str, examples: Sequence[Example]) -> float:
    """What the scripted program reaches with a prompt, over all inputs, on the judge's scale."""
    tasks = [example.task([Candidate(respond(prompt, example.x))]) for example in examples]
    return float(np.mean([judged.score() for judged in judge.many(tasks)]))


def report(steps: Sequence[Step], which: str = "") -> None:
    """Show each step on stderr."""
    for n, step in enumerate(steps):
        unscored = int(np.isnan(step.scores).sum())
        print(f"{which}step {n}: {len(step.prompts)} prompts, {unscored} of them unscored", file=sys.stderr)
        for p in step.kept:
            print(f"  {step.scores[p]:5.2f}  {step.prompts[p]}", file=sys.stderr)
        if not step.kept:
            reasons = {evaluation.error for evaluation in step.evaluations if evaluation.error}
            print(f"nothing was scored: {'; '.join(sorted(reasons)) or 'no responses'}", file=sys.stderr)


# The scripted program and rewriter, and a scripted judge. A copy of this file for a real model does without them. The
# questions are some of those that the bundled judge was taught, and the scripted judge says what it says.

START = "Answer the question."
WRITER = "writer"
"""The scripted program and rewriter, among the engine's models."""
FORMS = {
    "sums": re.compile(r"(\d+)\+(\d+)\?"),
    "differences": re.compile(r"(\d+)-(\d+)\?"),
    "the largest": re.compile(r"Largest of ([\d ]+)\?"),
    "sorting": re.compile(r"Sort ([\d ]+)\."),
}
HABITS = {"sums": "wrong", "differences": "unsure", "the largest": "padded", "sorting": "wrong"}
"""What the program does in each kind of question unless its prompt says otherwise."""
ADVICE = {
    "wrong": "check every digit",
    "unsure": "commit yourself",
    "padded": "give the answer alone",
    "": "be friendly",
    " ": "think of the reader",
    "  ": "vary your words",
}
"""What a prompt can say against a fault; and what helps against none."""
FAULTS = {
    "wrong": re.compile(r"\b(?:misses|is false|is wrong|tries|comes near|is near|lacks some)\b"),
    "unsure": re.compile(r"\bunsure\b"),
    "padded": re.compile(r"\bpadded\b"),
}
"""The words in which judges name a fault."""
CASE = re.compile(
    r"# Input\n(.*?)\n\n# Response\n.*?(?=# What the judges said|# Input|\Z)(.*?)(?=# Input|\Z)", re.DOTALL
)
CANDIDATE = re.compile(r"\[candidate ([A-Z]+) (\w+)\]\n(.*?)\n\[/candidate \1 \2\]", re.DOTALL)


def questions(seed: int, each: int = 3) -> list[Example]:
    """Some questions of each kind, one kind after the other and again."""
    random = Random(f"questions-{seed}")
    found: dict[str, None] = {}
    while len(found) < each * len(FORMS):
        a, b = random.randint(10, 99), random.randint(10, 99)
        row = " ".join(map(str, random.sample(range(10), 4)))
        more = " ".join(map(str, random.sample(range(10, 100), 3)))
        found.update(dict.fromkeys([f"{a}+{b}?", f"{max(a, b)}-{min(a, b)}?", f"Largest of {more}?", f"Sort {row}."]))
    return [Example(x) for x in found]


def cure(kind: str, fault: str) -> str:
    """The sentence of a prompt that helps against a fault in one kind of question."""
    return f"For {kind}, {ADVICE[fault]}."


CURES = {kind: cure(kind, fault) for kind, fault in HABITS.items()}


def kind_of(text: str) -> tuple[str, list[int]]:
    """The kind of the first question in a text, and its numbers."""
    for kind, form in FORMS.items():
        if found := form.search(text):
            return kind, [int(number) for group in found.groups() for number in group.split()]
    raise ValueError(f"no question that can be answered: {text:.80}")


def right_and_wrong(x: str) -> tuple[str, str]:
    """The answer to a question, and one that is nearly right."""
    kind, numbers = kind_of(x)
    match kind:
        case "sums":
            return str(sum(numbers)), str(sum(numbers) + 10)
        case "differences":
            return str(numbers[0] - numbers[1]), str(abs(numbers[0] - numbers[1] - 1))
        case "the largest":
            return str(max(numbers)), str(min(numbers))
        case _:
            row = sorted(numbers)
            return " ".join(map(str, row)), " ".join(map(str, [row[1], row[0], *row[2:]]))


def respond(prompt: str, x: str) -> str:
    """What the scripted program answers: it has its habit unless the prompt says what to do about it."""
    kind, _ = kind_of(x)
    habit = "" if CURES[kind] in prompt else HABITS[kind]
    right, wrong = right_and_wrong(x)
    value = wrong if habit == "wrong" else right
    forms = {"unsure": f"Maybe {value}?", "padded": f"What a lovely question! I like it. {value}, have fun!"}
    return forms.get(habit, f"{value}.")


def cure_one(shown: str, random: Random) -> str:
    """The prompt with one more sentence: against a fault that is named in one of the cases, else any."""
    told = PROPOSAL.findall(shown)[0]
    cases = [(kind_of(x)[0], said) for x, said in CASE.findall(shown)]
    named = [cure(kind, fault) for kind, said in cases for fault, words in FAULTS.items() if words.search(said)]
    blind = [cure(kind, fault) for kind, _ in cases for fault in ADVICE]
    new = [sentence for sentence in named if sentence not in told] or [each for each in blind if each not in told]
    return f"{told} {random.choice(new)}" if new else told


def write(call: Call) -> str:
    """The scripted program, and the rewriter."""
    system, user = (message["content"] for message in call.messages)
    return f"<prompt>{cure_one(user, Random(call.seed))}</prompt>" if system == REWRITE else respond(system, user)


def judge_answers(call: Call) -> str:
    """A scripted judge's turn: points off for each fault, which the comment names."""
    shown = call.messages[-1]["content"]
    right, _ = right_and_wrong(shown)
    schema = cast("Any", call.schema)["properties"]["candidates"]
    one = next(iter(next(iter(schema.get("anyOf", [schema])))["properties"].values()))
    components = one["properties"]["scores"]["properties"]
    candidates: dict[str, Any] = {}
    for label, _, text in CANDIDATE.findall(shown):
        is_right = re.search(rf"(?<![\d ]){right}(?! ?\d)|(?<=[a-z.] ){right}(?! ?\d)", text) is not None
        faults = [", padded"] * ("lovely" in text) + [", unsure"] * ("Maybe" in text)
        score = (9 if is_right else 3) - 2 * len(faults) - (call.info["agent"] == "Critic")
        comment = f"it {'holds' if is_right else 'misses'}{''.join(faults)}"
        candidates[label] = {"comment": comment, "scores": dict.fromkeys(components, score)}
    return json.dumps({"overall": right, "candidates": candidates})


if __name__ == "__main__":
    sys.exit(main())
