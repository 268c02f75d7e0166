"""Guided reasoning: a debate's transcript as the chain of thought of another prompt.

    python scripts/guided_reasoning.py "QUESTION" --model NAME
    python scripts/guided_reasoning.py                      # a question and a scripted model; seconds, anywhere

Three steps: the model drafts answers to the question; the agents debate the drafts; the transcript goes into a last
prompt, from which the model writes the final answer. That is the third use named in "TextEvolve Evaluate" (Yucha,
2024). It is more than picking a draft: where each draft is right in one place, the debate says which, and the final
answer can be better than all of them, as it is with the scripted model here. `--no-debate` is the control: the same
last prompt without the transcript.

The answer goes to stdout, everything else to stderr. Exit code 3: the debate or the final call came to nothing, and no
answer is given in its place; 2: bad input; 4: the engine failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from asking import Asked, add_model_flags, open_model, prompt_of, settings_of

from debate import DebateEvaluator, Engine, Task
from debate.backends import Call
from debate.cli.console import escape_controls, visible_lines
from debate.errors import BackendError, ConfigError, DebateError
from debate.flow import Prompt

QUESTION = "A shop sells 3 pens at 2.00 each and 4 notebooks at 3.50 each. What does it take?"
DRAFT = "Answer the question, step by step and briefly."
FINAL = (
    "Answer the question. You are given drafts, and what critics said of them in a debate. Either may be wrong: "
    "keep what holds, drop what does not, and check every step yourself. Give the answer alone, without the drafts."
)


def final_prompt(question: str, drafts: Sequence[str], thought: str) -> Prompt:
    """The last prompt. Drafts are numbered as the transcript numbers them: Candidate 1, Candidate 2, ..."""
    numbered = "\n\n".join(f"Candidate {j}: {draft}" for j, draft in enumerate(drafts, 1))
    debate = f"\n\n# Debate\n{thought}" if thought else ""
    return prompt_of(FINAL, f"# Question\n{question}\n\n# Drafts\n{numbered}{debate}")


def reason(
    engine: Engine,
    model: Asked,
    evaluator: DebateEvaluator,
    question: str,
    *,
    n_drafts: int = 4,
    max_characters: int = 8000,
    seed: int = 0,
    with_debate: bool = True,
) -> str | None:
    """The final answer; None when nothing was drafted, nothing was scored, or the last call failed."""
    engine.start()
    answers = model.complete([prompt_of(DRAFT, question)] * n_drafts, "drafter", seed)
    drafts = list(dict.fromkeys(answer for answer in answers if answer))
    if not drafts:
        return None
    thought = ""
    if with_debate:
        evaluation = engine.evaluate(Task(question, drafts), evaluator)
        print(f"{len(drafts)} drafts, debate {evaluation.status}, scores {evaluation.scores}", file=sys.stderr)
        if evaluation.selected is None:
            print(f"nothing was scored: {escape_controls(evaluation.error or '')}", file=sys.stderr)
            return None
        thought = evaluation.chain_of_thought(max_characters=max_characters)
    return model.complete([final_prompt(question, drafts, thought)], "answerer", seed)[0] or None


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--drafts", type=int, default=4, help="answers to draft; equal ones count once")
    parser.add_argument("--max-characters", type=int, default=8000, help="of the transcript, newest kept; 0: all")
    parser.add_argument("--no-debate", action="store_true", help="the control: leave the transcript out")
    add_model_flags(parser)
    options = parser.parse_args(arguments)
    try:
        if options.drafts < 1 or options.max_characters < 0:
            raise ConfigError("--drafts must be at least 1 and --max-characters at least 0")
        settings = settings_of(options)
        if settings.model is None and options.question != QUESTION:
            raise ConfigError("the scripted model knows its own question only: give a --model", field="question")
        model = open_model(settings, scripted)
        with Engine(model, seed=settings.seed) as engine:
            answer = reason(
                engine,
                model,
                settings.make_evaluator(),
                options.question,
                n_drafts=options.drafts,
                max_characters=options.max_characters,
                seed=settings.seed,
                with_debate=not options.no_debate,
            )
    except DebateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4 if isinstance(error, BackendError) else 2
    if answer is None:
        return 3
    print(visible_lines(answer))
    return 0


# The scripted model. A copy of this file for a real model does without it.

DRAFTS = ("Pens 6.00, notebooks 12.00: 18.00.", "Pens 5.00, notebooks 14.00: 19.00.")
PRICES = {"pens": "6.00", "notebooks": "14.00"}
AMOUNT = re.compile(r"(pens|notebooks) ([\d.]+\d)", re.IGNORECASE)
CANDIDATE = re.compile(r"\[candidate ([A-Z]+) (\w+)\]\n(.*?)\n\[/candidate \1 \2\]", re.DOTALL)


def scripted(call: Call) -> str:
    """A model that slips in every draft, checks others well, and in the end goes by what it has read."""
    text = call.messages[-1]["content"]
    match call.info["agent"]:
        case "drafter":
            return DRAFTS[int(call.info["sample"]) % 2]
        case "answerer":
            return add_up(text)
        case _:
            return check_drafts(call, text)


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
