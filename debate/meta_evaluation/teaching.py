"""What labels teach agents: labeled cases as episodic memories, and rules that a model distills from disagreements.

A case is a task with what people found best, in the words of the template `align/case.j2`. Rules are what a model
concludes from the cases in which the panel chose otherwise than people. Every memory says which run, tasks and people
taught it, and which tasks it came of, so that no task recalls its own label. Knows nothing of how much was learned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from debate.dataset.labels import Labels
from debate.errors import ConfigError
from debate.evaluation import Evaluation
from debate.evaluators.base import Evaluator, Footprint, PromptingEvaluator, RunContext
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.evaluators.result import build_evaluation
from debate.flow import Flow
from debate.hashing import digest
from debate.memory.embedders.base import slices
from debate.memory.records import CAME_OF, EVIDENCE, origins_of
from debate.memory.reflection import debates_of, reflection, shortened
from debate.memory.store import MemoryStore
from debate.settings import describe_settings
from debate.templates import Templates
from debate.types import Memory, Scale, Task, Verdict

ALIGN = "align"
"""Key of a memory's metadata: the run whose labels taught it."""
CASE, REFLECT = "align/case.j2", "memory/reflect.j2"
_READ_AT_ONCE = 20
"""Cases that the model reads for one call."""
_RULES = 5
"""Rules that it states in one reply, at most."""
_IMPORTANCE = 8.0
"""Of a case: people said so."""


@dataclass(frozen=True, slots=True)
class Case:
    """A task that people labeled, as agents are to remember it.

    Attributes:
        task: what was asked.
        best: indices of the candidates that people found best.
        by: who labeled it, as far as they are named.
        verdict: how the panel's choice in the run stands to theirs.
        texts: the memory of each collection.
    """

    task: Task
    best: tuple[int, ...]
    by: tuple[str, ...]
    verdict: Verdict
    texts: Mapping[str, str]

    @property
    def group(self) -> str:
        """The `group` in the task's metadata; "" where it names none."""
        return str(self.task.metadata.get("group", ""))

    @property
    def input(self) -> str:
        """See `input_of`."""
        return input_of(self.task)

    @property
    def is_disagreement(self) -> bool:
        """Whether the panel chose otherwise than people; it did not where it chose nothing."""
        return self.verdict in ("wrong", "tied")


def input_of(task: Task) -> str:
    """What tasks have in common that ask the same."""
    return digest(task.x, task.context)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a model concluded from some cases.

    Attributes:
        text: in a sentence or two.
        importance: in 0..10.
        tasks: ids of the tasks whose cases it says that it rests on.
        read: the cases that the model had read when it said so.
    """

    text: str
    importance: float
    tasks: tuple[str, ...]
    read: tuple[Case, ...] = field(repr=False)


def recalled_from(evaluator: Evaluator) -> list[str]:
    """The collections that an evaluator's agents recall from."""
    asked = (each for debate in _debates_in(evaluator) for each in debate.recalls if each is not None)
    return sorted({name for each in asked for name in each["collections"]})


def pupils(evaluator: Evaluator) -> dict[str, Templates]:
    """The collections that an evaluator's agents recall from and learn into, each with the templates of its debate.

    An agent's own is `PROFILE/AGENT`, or the first of those that its memory settings name instead.

    Raises:
        ConfigError: when no agent recalls anything.
    """
    found: dict[str, Templates] = {}
    for debate in _debates_in(evaluator):
        for persona, asked in zip(debate.personas, debate.recalls, strict=True):
            if asked is not None:
                own, named = f"{debate.profile_name}/{persona.name}", asked["collections"]
                found.setdefault(own if own in named else named[0], debate.prompt_templates)
    if not found:
        hint = "give the profile's personas a `memory`, such as {k: 3}, and run it again"
        raise ConfigError("no agent of this run recalls memories, so none can learn", field="memory", hint=hint)
    return found


def _debates_in(evaluator: Evaluator) -> Iterator[DebateEvaluator]:
    if isinstance(evaluator, DebateEvaluator):
        yield evaluator
    for each in getattr(evaluator, "evaluators", ()):
        yield from _debates_in(each)


def usable(labels: Labels, n_candidates: int) -> str | None:
    """Why nothing can be learned from some labels; None where it can."""
    choice = labels.together.choice
    if not labels:
        return "no label"
    if len(choice) == n_candidates:
        return "people found all candidates equally good"
    return None if choice else "people do not agree on a best candidate"


def make_case(
    task: Task, labels: Labels, evaluation: Evaluation, described: Mapping[str, Any], templates: Mapping[str, Templates]
) -> Case:
    """The case of a labeled task, in the words of each agent: what it had said stands in its memory alone.

    described: what the run's evaluator says in `describe()`.

    Raises:
        TemplateError: for a template that cannot be rendered.
    """
    best, verdict = labels.together.choice, evaluation.verdict(labels.together.choice)
    assert verdict is not None
    said: dict[str, tuple[str, ...]] = {}
    for debate, collections in debates_of(evaluation, described):
        for turn in {turn.agent: turn for turn in debate.transcript if turn.comments}.values():
            said.setdefault(collections[turn.agent], turn.comments)
    texts = {
        name: own.render(CASE, _context(task, best, evaluation.choice, said.get(name, ()))).text.strip()
        for name, own in templates.items()
    }
    by = tuple(each.by for each in labels.votes) or (labels.together.by,)
    return Case(task, best, tuple(filter(None, by)), verdict, texts)


def _context(task: Task, best: Sequence[int], choice: Sequence[int], said: Sequence[str]) -> dict[str, Any]:
    texts = [shortened(candidate.text) for candidate in task.candidates]
    comments = [shortened(each) for each in said] or [""] * len(texts)
    return {
        "x": shortened(task.x),
        "context": [shortened(text) for text in task.context],
        "candidates": [
            {"text": text, "said": comments[j], "is_best": j in best, "is_chosen": j in choice}
            for j, text in enumerate(texts)
        ],
        "best": [texts[j] for j in best],
        "is_right": set(choice) <= set(best) and bool(choice),
    }


# ---- rules


@dataclass(frozen=True, kw_only=True)
class Distill(PromptingEvaluator):
    """Rules from labeled cases, as an evaluator, so that a run records them and asks for none twice.

    A task's input is the collection, its candidates are the cases; a case's score is the number of rules that rest on
    it. `details` has the `rules`: each with `text`, `importance` and, as `evidence`, the indices of cases.
    """

    name: str = field(default="distill", init=False)

    @property
    def scale(self) -> Scale:
        """From 0 to the number of rules of a reply."""
        return Scale(0.0, float(_RULES))

    def footprint(self, task: Task) -> Footprint:
        """Upper bound of its one prompt."""
        characters = 2000 + sum(len(candidate.text) for candidate in task.candidates)
        return Footprint(characters, 1, 200 + 300 * _RULES)

    def describe(self) -> dict[str, Any]:
        """The settings and the template's digest."""
        return describe_settings(self, evaluator=self.name, templates=self.prompt_templates.fingerprint(REFLECT))

    def flow(self, task: Task, run: RunContext) -> Flow[Evaluation]:
        """Ask for the rules; an unreadable reply is asked again, and then a failure."""
        memories = [Memory(candidate.text, str(j)) for j, candidate in enumerate(task.candidates)]
        asked = reflection(task.x, memories, n=_RULES, retries=self.retries, templates=self.prompt_templates)
        parsed = yield from asked
        insights = parsed.value or []
        rests = Counter(j for each in insights for j in map(int, each.evidence))
        scores = np.array([rests[j] if parsed.failure is None else np.nan for j in range(len(memories))], np.float64)
        rules = [
            {"text": each.text, "importance": each.importance, "evidence": [int(j) for j in each.evidence]}
            for each in insights
        ]
        failures = () if parsed.failure is None else (parsed.failure,)
        return build_evaluation(self, task, run, scores=scores, failures=failures, details={"rules": rules})


Reading = Mapping[str, tuple[Case, ...]]
"""What is read for each task of `Distill`, by its id."""


def to_distill(cases: Iterable[Case], collection: str, place: str) -> tuple[list[Task], Reading]:
    """The disagreements among some cases as tasks of `Distill`, whose ids begin with `place`."""
    wrong = [case for case in cases if case.is_disagreement]
    reading = {f"{place} {n}": tuple(part) for n, part in enumerate(slices(wrong, _READ_AT_ONCE), 1)}
    texts = {name: [case.texts[collection] for case in part] for name, part in reading.items()}
    return [Task(collection, each, id=name) for name, each in texts.items()], reading


def rules_in(evaluation: Evaluation, read: tuple[Case, ...]) -> list[Rule]:
    """The rules of an evaluation of `Distill`; none where it failed."""
    return [
        Rule(each["text"], each["importance"], tuple(read[int(j)].task.id for j in each["evidence"]), read)
        for each in evaluation.details.get("rules", ())
    ]


# ---- into a memory and out again


def teach(store: MemoryStore, collection: str, of: str, cases: Sequence[Case], rules: Iterable[Rule], run: str) -> int:
    """Write cases and rules into a collection, with what taught them; returns how many memories these are.

    of: the collection in whose words the cases are.
    """
    kept = store.add_many({"collection": collection, **_of_case(case, of, run)} for case in cases)
    ids = {case.task.id: each for case, each in zip(cases, kept, strict=True)}
    return len(kept) + len(
        store.add_many({"collection": collection, **_of_rule(rule, ids, run)} for rule in _merged(rules))
    )


def _of_case(case: Case, of: str, run: str) -> dict[str, Any]:
    """A case as `MemoryStore.add_many` takes it."""
    about = {ALIGN: run, "tasks": [case.task.id], "by": list(case.by), CAME_OF: origins_of(case.task)[:2]}
    source = f"align {run[-230:]}: {case.task.id[:230]}"
    return {
        "text": case.texts[of],
        "source": source,
        "kind": "episodic",
        "importance": _IMPORTANCE,
        "metadata": about,
    }


def _of_rule(rule: Rule, ids: Mapping[str, str], run: str) -> dict[str, Any]:
    """The same of a rule; `ids` are those of the cases' memories, by task."""
    about = {
        ALIGN: run,
        "tasks": list(rule.tasks),
        "by": sorted({name for case in rule.read for name in case.by if case.task.id in rule.tasks}),
        # Of all that the model had read: what a rule says that it rests on is no proof.
        CAME_OF: sorted({origin for case in rule.read for origin in origins_of(case.task)[:2]}),
        EVIDENCE: [ids[task] for task in rule.tasks if task in ids],
    }
    return {
        "text": rule.text,
        "source": f"align {run[-230:]}: a rule",
        "kind": "reflection",
        "importance": rule.importance,
        "metadata": about,
    }


def _merged(rules: Iterable[Rule]) -> list[Rule]:
    """The rules with those of the same text as one, which came of all that either came of."""
    found: dict[str, Rule] = {}
    for rule in rules:
        same = found.get(rule.text, rule)
        tasks = tuple(dict.fromkeys((*same.tasks, *rule.tasks)))
        read = tuple({case.task.id: case for case in (*same.read, *rule.read)}.values())
        found[rule.text] = replace(same, tasks=tasks, read=read)
    return list(found.values())


def forget(store: MemoryStore, run: str) -> int:
    """Erase what the labels of a run taught; returns how many memories that were."""
    return len(store.forget(metadata={ALIGN: run}))
