"""What a run's results can be written as, for people and for other tools. One family of formats a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from debate.export import interop, preferences, tables
from debate.export.writer import ExportSummary, Results


@dataclass(frozen=True, slots=True)
class Export:
    """A format: its writer, its file's usual name, and what it is, for `--help`."""

    write: Callable[[Results, Path, str], ExportSummary]
    """From results, the path and the run's name."""
    file: str
    description: str


EXPORTS: Mapping[str, Export] = {
    "scores": Export(tables.write_scores, "scores.parquet", "every cell of S, one a row; .csv where the file says so"),
    "turns": Export(tables.write_turns, "turns.parquet", "every turn: comments, failures, memories"),
    "preferences": Export(preferences.write_preferences, "preferences.jsonl", "prompt, chosen, rejected, margin"),
    "inspect": Export(interop.write_inspect, "inspect.jsonl", "scores for inspect's precomputed_scores"),
    "alpaca_eval": Export(preferences.write_alpaca_eval, "annotations.json", "AlpacaEval annotations, of pairs"),
    "mt_bench": Export(interop.write_mt_bench, "judgments.jsonl", "MT-bench judgments, a score of 1 to 10 a model"),
    "mt_bench_pairs": Export(
        interop.write_mt_bench_pairs, "pair_judgments.jsonl", "MT-bench judgments, who wins of each two models"
    ),
}
"""By the names that `debate export --to` takes."""

__all__ = ["EXPORTS", "Export", "ExportSummary", "Results"]
