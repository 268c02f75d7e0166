"""A small world in which names stand for numbers, and a judge that knows only what its prompt says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from debate import Component, DebateEvaluator, Persona, Profile, Task
from debate.backends import Call, Scripted
from debate.dataset.evalset import EvalSet
from debate.flow import MemorySettings
from debate.jobs.run import Run
from debate.testing import SilentListener, reply_for

NUMBERS = {"blorp": 4, "kelor": 7, "fendle": 12, "quax": 9}
PAIR = Profile(
    "pair",
    (
        Persona("Critic", "You look for faults.", memory=MemorySettings(k=6)),
        Persona("Reader", "You read for pleasure.", memory=MemorySettings(k=6)),
    ),
    (Component("truth", "Is it true?"),),
)
_CASE = re.compile(r'Asked "(\w+)\+(\d+)\?", people found "(\d+)"')
_RULE = re.compile(r"(\w+) is (\d+)")


def evaluator(**settings: Any) -> DebateEvaluator:
    told: dict[str, Any] = {"profile": PAIR, "rounds": 1, "convergence": None, **settings}
    return DebateEvaluator(**told)


def questions(n: int, seed: int = 0, names: Sequence[str] = tuple(NUMBERS)) -> list[dict[str, Any]]:
    """n labeled tasks as an eval set has them: a sum of a name and a number, with four candidates."""
    random = Random(seed)
    found: list[dict[str, Any]] = []
    for i in range(n):
        name, added = names[i % len(names)], 2 + i + 40 * seed
        right = NUMBERS.get(name, 5) + added
        order = random.sample(range(4), 4)
        texts = [f"{right + each}" for each in order]
        metadata = {"group": "even" if i % 2 == 0 else "odd"}
        found.append(
            {
                "id": f"s{seed}-{i}",
                "x": f"{name}+{added}?",
                "candidates": texts,
                "best": order.index(0),
                "metadata": metadata,
            }
        )
    return found


def as_tasks(rows: Sequence[dict[str, Any]]) -> list[Task]:
    return [Task(row["x"], row["candidates"], id=row["id"]) for row in rows]


def judge(call: Call) -> str:
    """Right where the prompt has a fitting case or rule, and otherwise the same wrong guess for everybody."""
    prompt = "\n".join(message["content"] for message in call.messages)
    if "What can be learnt from them" in prompt:
        return _rules(prompt)
    text = json.loads(reply_for(call))
    known = {name: int(number) for name, number in _RULE.findall(prompt) if name in NUMBERS}
    known |= {name: int(best) - int(added) for name, added, best in _CASE.findall(prompt)}
    asked = re.findall(r"^(\w+)\+(\d+)\?", prompt, re.MULTILINE)
    assert len(asked) == 1, prompt
    [(name, added)] = asked
    shown = [int(each) for each in re.findall(r"^(\d+)$", prompt, re.MULTILINE)]
    wanted = known[name] + int(added) if name in known else max(shown)
    for label, reply in text["candidates"].items():
        j = list(call.info["labels"]).index(label)
        reply["scores"] = {"truth": 9 if shown[j] == wanted else 2}
        reply["comment"] = "fits" if shown[j] == wanted else "does not fit"
    return json.dumps(text)


def _rules(prompt: str) -> str:
    cases = _CASE.findall(prompt)
    rules = [
        {"text": f"{name} is {int(best) - int(added)}", "evidence": [n], "importance": 9}
        for n, (name, added, best) in enumerate(cases, 1)
    ]
    return json.dumps({"insights": list({each["text"]: each for each in rules}.values())[:5]})


class Counting:
    """The judge, with what it was asked; it is interrupted at one call, once."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.asked: list[str] = []
        self.interrupt_at = interrupt_at

    def __call__(self, call: Call) -> str:
        if len(self.asked) == self.interrupt_at:
            self.interrupt_at = None
            raise KeyboardInterrupt
        self.asked.append(f"{call.prompt_hash} {call.seed}")
        return judge(call)


def make_run(
    folder: Path, rows: Sequence[dict[str, Any]], how: DebateEvaluator | None = None, script: Any = judge
) -> Path:
    """The run of a judge that nobody has taught anything."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = Run(evalset=EvalSet(folder / "tasks.jsonl"), folder=folder / "run", evaluator=how or evaluator())
    job.execute({"scripted": Scripted(script)}, SilentListener())
    return folder / "run"
