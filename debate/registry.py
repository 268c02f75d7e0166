"""Everything that goes by a name: evaluators, backends, exports, formats of eval sets, embedders, indexes.

Ours are declared here, each in one line: name, `module:attribute`, description. A package adds its own by entry points
of the groups `debate.evaluators`, `debate.backends`, `debate.exports` and `debate.formats`; `MODULE:NAME` names
anything else that Python can import. Help texts, hints and errors are made from these tables.

A module is imported when its name is used, never to list the names; before one that is not ours, a line is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module, metadata
from typing import Any

from debate.errors import ConfigError

_log = logging.getLogger(__name__)


_before_import: ContextVar[Callable[[str], object]] = ContextVar("before_import", default=lambda target: None)


@contextmanager
def asking(ask: Callable[[str], object]) -> Generator[None]:
    """Within the block, call `ask` with each MODULE:NAME before it is imported; what it raises is raised.

    Names that are ours or that an installed package offers are not asked about.
    """
    token = _before_import.set(ask)
    try:
        yield
    finally:
        _before_import.reset(token)


@dataclass(frozen=True, slots=True)
class Entry:
    """A name and what it stands for."""

    name: str
    target: str
    """`module:attribute`."""
    description: str = ""
    package: str | None = None
    """Distribution that offers it; None for ours."""


@dataclass(frozen=True)
class Registry:
    """The names of one kind of thing.

    Args:
        kind: what is named, for messages: `evaluator`.
        group: of entry points, by which other packages add names; None takes ours alone.
        own: `name | module:attribute | description`, a line for each.
    """

    kind: str
    group: str | None
    own: str

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Every name that is known: ours, then those of installed packages, which cannot replace ours."""
        lines = [[part.strip() for part in line.split("|")] for line in self.own.strip().splitlines()]
        ours = {name: Entry(name, target, description) for name, target, description in lines}
        offers: dict[str, dict[str, Entry]] = {}
        for entry in map(_offered, metadata.entry_points(group=self.group) if self.group else ()):
            offers.setdefault(entry.name, {})[entry.target] = entry
        return ours | {name: _only(list(offers[name].values())) for name in sorted(offers) if name not in ours}

    @cached_property
    def _loaded(self) -> dict[str, Any]:
        return {}

    def load(self, name: str, field: str | None = None) -> Any:
        """What `name` stands for: one of `entries`, or MODULE:NAME.

        Raises:
            ConfigError: for a name that is not known, or a module that cannot be imported; names `field`.
        """
        if name not in self._loaded:
            entry = self.entries.get(name, Entry(name, name))
            if not entry.target:
                problem = f"{entry.package} offer the {self.kind} {name!r}"
                raise ConfigError(problem, field=field or self.kind, hint="name one as MODULE:NAME")
            if ":" not in entry.target:
                raise ConfigError(f"there is no {self.kind} {name!r}", field=field or self.kind, hint=self._hint(name))
            if name not in self.entries:
                _before_import.get()(entry.target)
            module = entry.target.partition(":")[0]
            if not module.startswith("debate."):
                package = f" (package {entry.package})" if entry.package else ""
                _log.info("the %s %r is imported from %s%s", self.kind, name, module, package)
            self._loaded[name] = _imported(entry, field or self.kind)
        return self._loaded[name]

    def names(self) -> str:
        """Every name, for a sentence: `debate, value, elo (from debate-elo), or MODULE:NAME`."""
        known = self.entries.values()
        labels = [each.name if each.package is None else f"{each.name} ({each.description})" for each in known]
        return ", ".join([*labels, "or MODULE:NAME"])

    def describe(self) -> str:
        """A paragraph for each name with its description, for `--help`."""
        return "\n\n".join(f"{entry.name}: {entry.description}" for entry in self.entries.values())

    def _hint(self, name: str) -> str:
        close = get_close_matches(name, self.entries, n=1)
        return (f"did you mean {close[0]!r}? " if close else "") + f"known: {self.names()}"


def version_of(distribution: str) -> str | None:
    """Version of an installed distribution; None when it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _offered(point: metadata.EntryPoint) -> Entry:
    package = point.dist.name if point.dist else point.module
    return Entry(point.name, point.value, f"from {package}", package)


def _only(entries: list[Entry]) -> Entry:
    """The entry of a name, or one without a target where several packages offer it."""
    packages = " and ".join(str(entry.package) for entry in entries)
    return entries[0] if len(entries) == 1 else Entry(entries[0].name, "", f"from {packages}", packages)


def _imported(entry: Entry, field: str) -> Any:
    module, _, attribute = entry.target.partition(":")
    try:
        value: Any = import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
        return value
    except Exception as error:  # whatever the module does when it is imported
        problem = f"{entry.target} cannot be imported: {type(error).__name__}: {error}"
        raise ConfigError(problem, field=field, hint="is it installed, or its folder on PYTHONPATH?") from None


EVALUATORS = Registry(
    "evaluator",
    "debate.evaluators",
    """
    debate   | debate.evaluators.debate.evaluator:DebateEvaluator | agents discuss and score the candidates in rounds
    value    | debate.evaluators.value:ValueEvaluator | one judge scores every candidate by itself
    vote     | debate.evaluators.vote:VoteEvaluator | judges compare the candidates and vote
    panel    | debate.evaluators.panel:PanelEvaluator | several evaluators, their results combined
    cross    | debate.evaluators.cross:CrossEvaluator | models judge one another's candidates, never their own
    callback | debate.evaluators.callback:CallbackEvaluator | a Python function scores; no model is asked
    step     | debate.evaluators.steps.evaluator:StepEvaluator | every step of a line of reasoning is scored
    """,
)
BACKENDS = Registry(
    "backend",
    "debate.backends",
    """
    vllm         | debate.backends.vllm.backend:VLLM | vLLM in this process
    openai       | debate.backends.http.openai:OpenAICompatible | any server that speaks OpenAI's API
    ollama       | debate.backends.http.ollama:Ollama | an Ollama server
    value_server | debate.backends.http.value_server:ValueServer | a server that answers x1's POST /forward
    reward_model | debate.backends.vllm.reward_model:RewardModel | a reward model on vLLM in this process
    scripted     | debate.backends.scripted:Scripted | a Python function answers: --engine-arg fn=MODULE:NAME
    """,
)
SERVERS = ", ".join(name for name, each in BACKENDS.entries.items() if each.target.startswith("debate.backends.http."))
"""Our backends that take a base URL, for help texts."""
EXPORTS = Registry(
    "format",
    "debate.exports",
    """
    tasks          | debate.export.tables:TASKS | a row per task: best, selected, right, scores
    scores         | debate.export.tables:SCORES | every cell of the scoring tensor, one per row
    turns          | debate.export.tables:TURNS | every turn: comments, failures, memories
    preferences    | debate.export.preferences:PREFERENCES | prompt, chosen, rejected, margin
    inspect        | debate.export.interop:INSPECT | right or wrong by the label, for inspect's precomputed_scores
    inspect_scores | debate.export.interop:INSPECT_SCORES | every candidate's score, for precomputed_scores with metrics
    alpaca_eval    | debate.export.preferences:ALPACA_EVAL | AlpacaEval annotations of pairs
    mt_bench       | debate.export.interop:MT_BENCH | MT-bench judgments, a score of 1 to 10 per candidate
    mt_bench_pairs | debate.export.interop:MT_BENCH_PAIRS | MT-bench judgments, who wins of each two candidates
    """,
)
FORMATS = Registry(
    "format",
    "debate.formats",
    """
    own              | debate.dataset.native_jsonl:OWN | JSON lines with x and candidates, one task per line
    table            | debate.dataset.table:TABLE | CSV or parquet with x and candidates in columns
    pandalm          | debate.dataset.pairwise:PANDALM | PandaLM test set
    llmbar           | debate.dataset.pairwise:LLMBAR | LLMBar
    judge_bench      | debate.dataset.pairwise:JUDGE_BENCH | JudgeBench
    reward_bench     | debate.dataset.reward_bench:REWARD_BENCH | RewardBench, versions 1 and 2
    bigbench_mistake | debate.dataset.process_steps:BIGBENCH_MISTAKE | BIG-Bench Mistake: steps and the first wrong one
    process_bench    | debate.dataset.process_steps:PROCESS_BENCH | ProcessBench
    chat_eval        | debate.dataset.pairwise:CHAT_EVAL | FairEval and ChatEval
    openai_batch     | debate.dataset.openai_batch:OPENAI_BATCH | OpenAI batch output, with its input by --answers
    lm_eval          | debate.dataset.lm_eval:LM_EVAL | lm-eval samples, one file per model
    inspect_log      | debate.dataset.inspect_log:INSPECT_LOG | inspect logs, .eval or .json, one file per model
    mt_bench         | debate.dataset.mt_bench:MT_BENCH | MT-bench questions, with answer files
    alpaca_eval      | debate.dataset.alpaca_eval:ALPACA_EVAL | AlpacaEval outputs, one file per model, or annotations
    """,
)
"""The order matters: a file has the first format whose keys its first record has."""
EMBEDDERS = Registry(
    "embedder",
    None,
    """
    minilm    | debate.memory.embedders.minilm:MiniLM | all-MiniLM-L6-v2 on numpy
    hashing   | debate.memory.embedders.hashing:HashingEmbedder | hashed words; needs no model
    hashing-1 | debate.memory.embedders.hashing:HashingEmbedder.first | the same, as version 0.1.0 hashed them
    """,
)
INDEXES = Registry(
    "index",
    None,
    """
    exact  | debate.memory.indexes.base:ExactIndex | compares with every memory
    chroma | debate.memory.indexes.chroma_index:ChromaIndex | Chroma, for collections of 200,000 memories and more
    """,
)
