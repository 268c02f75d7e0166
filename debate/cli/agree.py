"""`debate agree`: what a run's judge is worth by what people say, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_LABELS = "Labels by `task_id`, in place of those in the tasks' metadata."
_BY = "Also for each value of this key of the metadata; without it of `group`, where tasks have one."
_EPS = "What a person costs more than the judge: 0.2 experts, 0.15 trained people, 0.1 a crowd."


def agree(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    labels: Annotated[Path | None, typer.Option(help=_LABELS)] = None,
    by: Annotated[
        str | None, typer.Option(help="Also for each value of this key of the metadata; or of group.")
    ] = None,
    eps: Annotated[float, typer.Option(help=_EPS, min=0, max=1)] = 0.15,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compare a run's judge with people: agreement, habits, rounds, agents, and the worst disagreements.

    Example:
        debate agree runs/first
        debate agree runs/first --labels labels.jsonl --by language
    """
    import json as json_format

    from debate.cli.console import open_console, say
    from debate.cli.render_agreement import page
    from debate.evaluation import plain
    from debate.meta_evaluation.judged import read_run
    from debate.meta_evaluation.trust import agree as figures_of

    found = figures_of(read_run(run, labels), by, eps)
    if json:
        say(json_format.dumps(plain(found), allow_nan=False))
        return
    console = open_console()
    for part in page(found):
        console.print(part)
