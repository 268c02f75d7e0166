"""Guided reasoning: a debate's transcript as the chain of thought of another prompt.

    python examples/guided_reasoning.py "QUESTION" --model NAME
    python examples/guided_reasoning.py                     # a question and a scripted model; seconds, anywhere

Three steps: the model drafts answers to the question; the agents debate the drafts; the transcript goes into a last
prompt, from which the model writes the final answer. That is the third use named in "TextEvolve Evaluate" (Yucha 2024).
Picking takes one draft; the last prompt may take what holds from each of them. The scripted model is written to do so,
which shows how the parts work together and nothing about a real one: `--no-debate` is the control, the same last prompt
without the transcript.

The answer goes to stdout, everything else to stderr. Exit code 3: the debate or the final call failed, and no answer is
given in its place; 2: bad input; 4: the engine failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from debate import Engine, Sampling, Task
from debate.backends import Call, Scripted
from debate.config.settings import RunSettings
from debate.errors import BackendError, ConfigError, DebateError
from debate.evaluators.base import Evaluator

QUESTION = "A shop sells 3 pens at 2.00 each and 4 notebooks at 3.50 each. How much is that in all?"
DRAFT = "Answer the question, step by step and briefly."
FINAL = (
    "Answer the question. You are given drafts, and what critics said of them in a debate. Either may be wrong: "
    "keep what holds, drop what does not, and check every step yourself. Give the answer alone, without the drafts."
)

SAMPLING = Sampling(temperature=0.7, max_tokens=1024)


def reason(
    engine: Engine,
    evaluator: Evaluator,
    question: str,
    *,
    n_drafts: int = 4,
    max_characters: int = 8000,
    with_debate: bool = True,
    sampling: Sampling = SAMPLING,
) -> str | None:
    """The final answer; None when nothing was drafted, nothing was scored, or the last call failed."""
    answers = ask(engine, [chat(DRAFT, question)] * n_drafts, sampling)
    drafts = list(dict.fromkeys(answer for answer in answers if answer))
    if not drafts:
        return None
    thought = ""
    if with_debate:
        evaluation = engine.evaluate(Task(question, drafts), evaluator)
        print(f"{len(drafts)} drafts, debate {evaluation.status}, scores {evaluation.scores}", file=sys.stderr)
        if evaluation.selected is None:
            print(f"nothing was scored: {evaluation.error}", file=sys.stderr)
            return None
        thought = evaluation.chain_of_thought(max_characters=max_characters)
    return ask(engine, [chat(FINAL, final_prompt(question, drafts, thought))], sampling)[0]


def final_prompt(question: str, drafts: Sequence[str], thought: str) -> str:
    """The last prompt. Drafts are numbered as the transcript numbers them: Candidate 1, Candidate 2, ..."""
    numbered = "\n\n".join(f"Candidate {j}: {draft}" for j, draft in enumerate(drafts, 1))
    debate = f"\n\n# Debate\n{thought}" if thought else ""
    return f"# Question\n{question}\n\n# Drafts\n{numbered}{debate}"


def chat(system: str, user: str) -> list[dict[str, str]]:
    """A prompt of two messages."""
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def ask(engine: Engine, prompts: Sequence[list[dict[str, str]]], sampling: Sampling) -> list[str | None]:
    """The model's answers without its thoughts (up to `</think>`); None where a call failed or said nothing."""
    completions = engine.generate(prompts, sampling=sampling)
    for failure in filter(None, (completion.failure for completion in completions)):
        print(f"a call failed: {failure.message}", file=sys.stderr)
    return [completion.text.rpartition("</think>")[2].strip() or None for completion in completions]


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--drafts", type=int, default=4, help="answers to draft; equal ones count once")
    parser.add_argument("--max-characters", type=int, default=8000, help="of the transcript, newest kept; 0: all")
    parser.add_argument("--no-debate", action="store_true", help="the control: leave the transcript out")
    for flag in ("--model", "--backend", "--base-url", "--seed"):
        parser.add_argument(flag, help="as for `debate run`")
    parser.add_argument("--config", type=Path, help="YAML of further settings, as for `debate run`")
    options = parser.parse_args(arguments)
    try:
        if options.drafts < 1 or options.max_characters < 0:
            raise ConfigError("--drafts must be at least 1 and --max-characters at least 0")
        given = {name: getattr(options, name) for name in ("model", "backend", "base_url", "seed")}
        settings = RunSettings.read(options.config, {name: value for name, value in given.items() if value is not None})
        if settings.model is None and options.question != QUESTION:
            raise ConfigError("the scripted model knows its own question only: give a --model", field="question")
        backend = Scripted(scripted) if settings.model is None else settings.open_backend()
        with Engine(backend, seed=settings.seed) as engine:
            answer = reason(
                engine,
                settings.make_evaluator(),
                options.question,
                n_drafts=options.drafts,
                max_characters=options.max_characters,
                with_debate=not options.no_debate,
                sampling=Sampling(temperature=settings.temperature, top_p=settings.top_p, max_tokens=1024),
            )
    except DebateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4 if isinstance(error, BackendError) else 2
    if answer is None:
        return 3
    print(answer)
    return 0


# The scripted model. A copy of this file for a real model does without it.

DRAFTS = ("Pens 6.00, notebooks 12.00: 18.00.", "Pens 5.00, notebooks 14.00: 19.00.")
PRICES = {"pens": "6.00", "notebooks": "14.00"}
AMOUNT = re.compile(r"(pens|notebooks) ([\d.]+\d)", re.IGNORECASE)
CANDIDATE = re.compile(r"\[candidate ([A-Z]+) (\w+)\]\n(.*?)\n\[/candidate \1 \2\]", re.DOTALL)


def scripted(call: Call) -> str:
    """A model that slips in every draft, checks others well, and in the end goes by what it has read."""
    system, user = (message["content"] for message in call.messages)
    if system == DRAFT:
        return DRAFTS[int(call.info["sample"]) % 2]
    return add_up(user) if system == FINAL else check_drafts(call, user)


def add_up(text: str) -> str:
    """The amounts that the debate calls right; without a debate, those of the first draft."""
    _, _, debate = text.partition("# Debate")
    agreed = re.findall(r"(pens|notebooks) ([\d.]+\d) is right", debate)
    amounts = dict(agreed or AMOUNT.findall(text)[:2])
    return f"{sum(float(amount) for amount in amounts.values()):.2f}"


def check_drafts(call: Call, text: str) -> str:
    """A judge's turn: each amount of each draft is right or wrong."""
    assert call.schema is not None
    one = next(iter(call.schema["properties"]["candidates"]["properties"].values()))
    components = one["properties"]["scores"]["properties"]
    candidates: dict[str, Any] = {}
    for label, _, draft in CANDIDATE.findall(text):
        found = {item.lower(): amount for item, amount in AMOUNT.findall(draft)}
        verdicts = {item: PRICES[item] == amount for item, amount in found.items()}
        comment = ", ".join(f"{item} {found[item]} is {'right' if ok else 'wrong'}" for item, ok in verdicts.items())
        candidates[label] = {"comment": comment, "scores": dict.fromkeys(components, 5.0 * sum(verdicts.values()))}
    return json.dumps({"overall": "Neither total holds.", "candidates": candidates})


if __name__ == "__main__":
    sys.exit(main())
