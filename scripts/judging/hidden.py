"""Debates over hidden profiles: with own memories, with everybody's, with none that fits, and without comments.

One agent alone has as many turns as the debate has rounds at most, for a name may lead to another one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from debate import DebateEvaluator, Evaluation
from debate.data_files import data_folder
from debate.evaluation import share_right
from debate.profiles import Profile
from judging.arms import Arms, hits, remembering
from judging.measuring import mean_of, paired, share
from judging.profiles import Case, collection, hidden_cases, memories, misled_cases, shuffled
from judging.samples import judge_profile
from judging.talk import PERSONAS, say
from judging.world import Question

_TURN = (
    "<|turn|>{{ agent }} {{ round }}:{% for candidate in candidates %}<|of|>{{ candidate.label }}"
    "{% for score in candidate.scores %} {{ score.value }}{% endfor %}{% endfor %}\n"
)
"""What is heard of a turn where its words are kept from the others."""


def hidden_profile(arms: Arms, n: int) -> dict[str, Any]:
    """All arms over tasks of which no agent knows enough."""
    cases = hidden_cases(arms.seed, n)
    _remember(arms, "hidden", cases)
    _remember(arms, "shuffled", others := shuffled(cases))
    tasks = arms.tasks("hidden", [case.question for case in cases])
    own = [_profile("hidden", case, case.agents) for case in cases]
    found = {"debate": arms.ask("hidden profiles", tasks, [_debate(arms, each) for each in own])}
    found["silent"] = arms.silent("hidden profiles, silent", tasks, found["debate"], own)
    alone = {
        "single": [_profile("hidden", case, case.agents[:1]) for case in cases],
        "single_all": [_profile("hidden", case, case.agents[:1], everything=True) for case in cases],
    }
    for name, profiles in alone.items():
        found[name] = arms.ask(
            f"hidden profiles, {name}", tasks, [arms.evaluator(profile=p, convergence=None) for p in profiles]
        )
    strange = [_debate(arms, _profile("shuffled", case, case.agents)) for case in others]
    found["shuffled"] = arms.ask("hidden profiles, memories shuffled", tasks, strange)
    with TemporaryDirectory() as folder:
        mute = [_debate(arms, each, templates=mute_templates(Path(folder))) for each in own]
        found["without_comments"] = arms.ask("hidden profiles, comments unheard", tasks, mute)
    return _figures(cases, found)


def misled(arms: Arms, n: int) -> dict[str, Any]:
    """Debate and silent judges where one of three agents holds a stale fact, and another one what holds now."""
    cases = misled_cases(arms.seed, n)
    _remember(arms, "misled", cases)
    questions = [case.question for case in cases]
    tasks, own = arms.tasks("misled", questions), [_profile("misled", case, case.agents) for case in cases]
    debates = arms.ask("misled", tasks, [_debate(arms, each) for each in own])
    silent = arms.silent("misled, silent", tasks, debates, own)
    right, silently = hits(debates, questions), hits(silent, questions)
    return {
        "tasks": n,
        "debate": share(right),
        "silent": share(silently),
        "debate_minus_silent": paired(right, silently),
        "recalled": share(_recalled(cases, debates)),
        "failed": sum(each.status != "ok" for each in (*debates, *silent)),
    }


def _debate(arms: Arms, profile: Profile, **settings: Any) -> DebateEvaluator:
    """A debate of all rounds: before all is told, all may agree that too little is known."""
    return arms.evaluator(profile=profile, convergence=None, **settings)


def _remember(arms: Arms, part: str, cases: Sequence[Case]) -> None:
    for name, texts in memories(part, cases).items():
        arms.memory.add(name, texts)


def _profile(part: str, case: Case, agents: tuple[str, ...], *, everything: bool = False) -> Profile:
    """These agents, each with its own memory of the case's group, or with everybody's."""

    def collections(agent: str) -> tuple[str, ...]:
        return tuple(collection(part, case, one) for one in (PERSONAS if everything else (agent,)))

    return remembering(judge_profile(agents), collections)


def mute_templates(folder: Path) -> Path:
    """The compact templates, where a turn is shown with its scores alone."""
    copy = folder / "templates"
    if not copy.exists():
        shutil.copytree(data_folder("templates") / "compact", copy)
        (copy / "debate" / "turn.j2").write_text(_TURN, encoding="utf-8")
    return copy


def _figures(cases: Sequence[Case], found: dict[str, list[Evaluation]]) -> dict[str, Any]:
    questions = [case.question for case in cases]
    right = {arm: hits(each, questions) for arm, each in found.items()}
    ties = {
        arm: [share_right(evaluation.choice, (q.best,)) for evaluation, q in zip(each, questions, strict=True)]
        for arm, each in found.items()
    }
    against = ("silent", "single", "single_all")
    return {
        "tasks": len(cases),
        "chance": round(sum(1 / len(q.replies) for q in questions) / max(len(cases), 1), 4),
        "unknowing": mean_of([unknowing(q) for q in questions]),
        **{arm: share(right[arm]) | {"ties_shared": mean_of(ties[arm])} for arm in found},
        **{f"debate_minus_{arm}": paired(right["debate"], right[arm]) for arm in against},
        "by_shape": _by(cases, right, lambda case: case.shape),
        "by_agents": _by(cases, right, lambda case: str(len(case.agents))),
        "recalled": share(_recalled(cases, found["debate"])),
        "failed": sum(each.status != "ok" for evaluations in found.values() for each in evaluations),
    }


def unknowing(question: Question) -> float:
    """What an ideal judge that knows no fact is worth: style alone tells it candidates apart, and ties are shared."""
    totals = [accuracy + (relevance + completeness) / 2 for accuracy, relevance, completeness in _open_scores(question)]
    return share_right([j for j, total in enumerate(totals) if total == max(totals)], (question.best,))


def _open_scores(question: Question) -> tuple[tuple[int, ...], ...]:
    return say(question, None, 2, first=False, known={}).scores


def _by(cases: Sequence[Case], right: dict[str, list[bool]], key: Callable[[Case], str]) -> dict[str, dict[str, Any]]:
    """The shares of all arms by a property of the cases."""
    groups: dict[str, list[int]] = {}
    for n, case in enumerate(cases):
        groups.setdefault(key(case), []).append(n)
    return {
        name: {arm: share([each[n] for n in places]) for arm, each in right.items()}
        for name, places in sorted(groups.items())
    }


def _recalled(cases: Sequence[Case], debates: Sequence[Evaluation]) -> list[bool]:
    """Whether every fact of the question came into an agent's prompt at some time."""
    seen = [{memory.text for turn in each.transcript for memory in turn.memories} for each in debates]
    return [{fact.text for fact in case.question.facts} <= texts for case, texts in zip(cases, seen, strict=True)]
