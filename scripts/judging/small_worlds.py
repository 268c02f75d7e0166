"""The small worlds of `value`, `vote` and `step`, through `debate run` as a user would: one run for each of them.

Right and wrong are balanced: of two candidates that are valued one is right, half of the positions in the Game of 24
can be won, half of the last steps are wrong. A vote has two to six candidates.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from debate import Evaluation
from judging.arms import say
from judging.measuring import share
from judging.questions import game_of_24, make_step, reaches_24
from judging.world import Kind, Question, make_question

WORLDS: tuple[Kind, ...] = ("sort", "common", "count")
REPOSITORY = Path(__file__).resolve().parents[2]
_OPTIONS: dict[str, dict[str, Any]] = {
    "value": {"samples": 1},
    "vote": {"ballots": 1, "ballot": "ranking"},
    "step": {"split": "\\n\\n+"},
}


@dataclass(frozen=True)
class Judged:
    """A task for one of the evaluators."""

    kind: str
    x: str
    candidates: tuple[str, ...]
    truth: tuple[bool, ...]
    """By candidate whether it is right; of a solution, whether its last step is."""


def worlds(model: Path, seed: int, n: int) -> dict[str, Any]:
    """The share of right judgments of each evaluator by kind, and of the constant predictor, over n judgments each."""
    made = {"value": valued(seed, n), "vote": voted(seed, n), "step": stepped(seed, n)}
    return {name: _figures(name, items, _run(model, seed, name, items)) for name, items in made.items()}


def valued(seed: int, n: int) -> list[Judged]:
    """Of each kind as many right candidates as wrong ones, n in all; and positions in the Game of 24."""
    random = Random(f"held-out-value-{seed}")
    pairs = [_pair(random, kind) for kind in WORLDS for _ in range(n // 2)]
    return pairs + [_position(random, left, i % 2 == 0) for left in (2, 3) for i in range(n // 2 * 2)]


def voted(seed: int, n: int) -> list[Judged]:
    """Questions with two to six candidates of which one is best."""
    random = Random(f"held-out-vote-{seed}")
    return [_judged(make_question(random, kind, n=2 + i % 5)) for kind in WORLDS for i in range(n)]


def stepped(seed: int, n: int) -> list[Judged]:
    """Solutions of one to some steps, the last of which is wrong in half of them."""
    random = Random(f"held-out-step-{seed}")
    steps = [make_step(random, wrong=i % 2 == 1) for i in range(n // 2 * 2)]
    return [Judged("step", each.x, ("\n\n".join((*each.previous, each.text)),), (each.is_right,)) for each in steps]


def _judged(question: Question) -> Judged:
    texts = tuple(reply.text for reply in question.replies)
    return Judged(question.kind, question.x, texts, tuple(j == question.best for j in range(len(texts))))


def _pair(random: Random, kind: Kind) -> Judged:
    """A right and a wrong candidate, neither of them padded, hedged or about something else."""
    while True:
        question = make_question(random, kind, n=2)
        is_one_right = [reply.value for reply in question.replies].count(question.answer) == 1
        if is_one_right and all(reply.style == "plain" for reply in question.replies):
            return _judged(question)


def _position(random: Random, left: int, wanted: bool) -> Judged:
    """A move in the Game of 24 after which so many numbers are left, with which it can be won or not."""
    while True:
        x, move, numbers = game_of_24(random, left)
        if reaches_24(numbers) == wanted:
            return Judged(f"24 of {left}", x, (move,), (wanted,))


def _run(model: Path, seed: int, name: str, items: Sequence[Judged]) -> list[Evaluation]:
    with TemporaryDirectory() as folder:
        at = Path(folder)
        tasks = [{"id": f"{name}-{n}", "x": item.x, "candidates": item.candidates} for n, item in enumerate(items)]
        (at / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
        settings = {"options": _OPTIONS[name], "engine_args": {"max_num_seqs": 64}}
        (at / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        given = ["--model", str(model), "--evaluator", name, "--templates", "compact", "--seed", str(seed)]
        files = [str(at / "tasks.jsonl"), "--config", str(at / "settings.yaml"), "--out", str(at / "run")]
        done = subprocess.run(
            [sys.executable, "-m", "debate", "run", *files, *given],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        say(f"{name}: {len(items)} tasks, exit code {done.returncode}")
        found = _read(at / "run" / "results.jsonl")
        if len(found) != len(items):
            raise RuntimeError(f"debate run --evaluator {name} gave {len(found)} results:\n{done.stdout}{done.stderr}")
        return found


def _read(results: Path) -> list[Evaluation]:
    """The evaluations in the order of the tasks; none where there is no file."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    found = [Evaluation.from_dict(json.loads(line)) for line in lines]
    found.sort(key=lambda each: int(each.task_id.rpartition("-")[2]))
    return found


def _figures(name: str, items: Sequence[Judged], found: Sequence[Evaluation]) -> dict[str, Any]:
    """By kind, and of all kinds but the one that is only reported."""
    by_kind: defaultdict[str, list[tuple[Judged, Evaluation]]] = defaultdict(list)
    for item, evaluation in zip(items, found, strict=True):
        by_kind[item.kind].append((item, evaluation))
    counted = [pair for kind, pairs in by_kind.items() for pair in pairs if kind != "24 of 3"]
    return {kind: _figure(name, pairs) for kind, pairs in ({"all": counted} | by_kind).items()}


def _figure(name: str, pairs: Sequence[tuple[Judged, Evaluation]]) -> dict[str, Any]:
    judgments = [hit for item, evaluation in pairs for hit in right_judgments(name, item, evaluation)]
    failed = sum(evaluation.status != "ok" for _, evaluation in pairs)
    return share(judgments) | {"constant": constant(name, [item for item, _ in pairs]), "failed": failed}


def right_judgments(name: str, item: Judged, evaluation: Evaluation) -> list[bool]:
    """Whether each judgment of a task is right; what was not judged is not."""
    if name == "vote":
        return [evaluation.verdict([item.truth.index(True)]) == "right"]
    if name == "step":
        last = [steps[-1] for steps in evaluation.details.get("steps", [])] or [None]
        return [score is not None and (score > 0) == truth for score, truth in zip(last, item.truth, strict=True)]
    scores = evaluation.scores.tolist()
    return [not isnan(score) and (score > 5) == truth for score, truth in zip(scores, item.truth, strict=True)]


def constant(name: str, items: Sequence[Judged]) -> float:
    """The share that is right where the same is always said: the larger class; for a vote, the most frequent place."""
    said = (
        [item.truth.index(True) for item in items] if name == "vote" else [one for item in items for one in item.truth]
    )
    return round(max(Counter(said).values()) / len(said), 4)
