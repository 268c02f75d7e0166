"""The formats that eval sets come in, and how each is recognised. Knows nothing of how they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from debate.dataset.alpaca_eval import alpaca_eval
from debate.dataset.build import LocatedTask
from debate.dataset.lm_eval import lm_eval
from debate.dataset.mt_bench import mt_bench
from debate.dataset.openai_batch import openai_batch
from debate.dataset.pairwise import chat_eval, judge_bench, llmbar, pandalm
from debate.dataset.process_steps import bigbench_mistake, process_bench
from debate.dataset.readers import records
from debate.dataset.records import Record
from debate.dataset.reward_bench import reward_bench
from debate.errors import TaskError

Alone = Callable[[Iterator[Record]], Iterator[LocatedTask]]
Joined = Callable[[Iterator[Record], Sequence[Path]], Iterator[LocatedTask]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the keys by which its first record is recognised, and how its records become tasks."""

    description: str
    keys: tuple[frozenset[str], ...] = ()
    """Any of these sets, as a whole."""
    alone: Alone | None = None
    """From the records of one file."""
    joined: Joined | None = None
    """From the records of one file, and further files."""
    in_tables: bool = False
    """Whether it is also found in CSV and parquet."""


def _keys(*alternatives: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(each.split()) for each in alternatives)


FORMATS: Mapping[str, Format] = {
    "own": Format("our JSONL: x and candidates, one task a line", _keys("x candidates")),
    "table": Format("CSV or parquet: x and candidates in columns"),
    "pandalm": Format("PandaLM test set", _keys("instruction response1 response2"), pandalm, in_tables=True),
    "llmbar": Format("LLMBar", _keys("input output_1 output_2"), llmbar, in_tables=True),
    "judge_bench": Format("JudgeBench", _keys("pair_id question response_A response_B"), judge_bench, in_tables=True),
    "reward_bench": Format(
        "RewardBench, versions 1 and 2", _keys("prompt chosen rejected"), reward_bench, in_tables=True
    ),
    "bigbench_mistake": Format(
        "BIG-Bench Mistake: steps and the first wrong one", _keys("input steps mistake_index"), bigbench_mistake
    ),
    "process_bench": Format("ProcessBench", _keys("problem steps label"), process_bench),
    "chat_eval": Format("FairEval and ChatEval", _keys("question response"), chat_eval),
    "openai_batch": Format(
        "OpenAI batch output, with its input by --answers", _keys("custom_id response"), joined=openai_batch
    ),
    "lm_eval": Format("lm-eval samples, one file a model", _keys("doc_id arguments resps"), joined=lm_eval),
    "mt_bench": Format(
        "MT-bench questions, with answer files", _keys("question_id turns", "question_id text"), joined=mt_bench
    ),
    "alpaca_eval": Format(
        "AlpacaEval outputs, one file a model, or annotations",
        _keys("instruction output", "instruction output_1 output_2"),
        joined=alpaca_eval,
    ),
}
"""By the names that `--format` takes. The first whose keys a record has is its format."""

_TABLES = {".csv", ".tsv", ".parquet"}
_OURS = {"x", "candidates"}


def recognised(file: Path) -> str:
    """The name of the format of a file, by its ending and the keys of its first record.

    Raises:
        TaskError: when the keys are those of no format.
        ConfigError: for a parquet file, when there is no library to read it.
    """
    is_table = file.suffix.lower() in _TABLES
    try:
        first = next(records(file), None)
    except TaskError:
        return "table" if is_table else "own"  # whose reader says best what is wrong
    keys = set(first.data) if first else set[str]()
    if is_table and (keys & _OURS or first is None):
        return "table"
    for name, known in FORMATS.items():
        if any(needed <= keys for needed in known.keys) and (known.in_tables or not is_table):
            return name
    if is_table:
        return "table"
    if first is None or keys & _OURS or (file.suffix == ".jsonl" and len(keys) < 3):  # ours, however misspelt
        return "own"
    raise TaskError(
        f"is in no format that is known, by its keys {', '.join(sorted(keys)[:8])}",
        file=file,
        hint=f"--format takes {', '.join(FORMATS)}",
    )
