"""An export: one Markdown section per task, for reading."""

from __future__ import annotations

from pathlib import Path

from debate.export import Export, ExportSummary, Results
from debate.files import atomic_write


def write_markdown(results: Results, path: Path, run: str, feedback: bool = True) -> ExportSummary:
    """Write each task with its candidates, scores and feedback.

    Further parameters with a default, such as `feedback`, are options of the export.
    """
    summary = ExportSummary()
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(f"# {run}\n")
        for task, evaluation in results:
            if evaluation.selected is None:
                summary.skipped["no candidate has a score"] += 1
                continue
            file.write(f"\n## {task.id}\n\n{task.x}\n\n")
            for j, candidate in enumerate(task.candidates):
                mark = " (selected)" if j == evaluation.selected else ""
                file.write(f"- {evaluation.scores[j]:.2f}{mark}: {candidate.text}\n")
            if feedback:
                file.write(f"\n{evaluation.feedback(evaluation.selected)}\n")
            summary.rows += 1
    return summary


MARKDOWN = Export(write_markdown, "results.md")
