"""The eval sets that a command names: one file, several as one, or standard input, which is kept with its run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from debate.config.settings import RunSettings
    from debate.dataset.evalset import EvalSet
    from debate.dataset.piped import Piped
    from debate.dataset.several import EvalSets

EVALSETS = (
    "Eval sets: JSON lines, a JSON array, CSV, parquet, or another of --format. Several are read one after the other; "
    "- is standard input."
)
RUNS = Path("runs")
"""Where runs have their folders by default."""


def named_evalset(paths: Sequence[Path], settings: RunSettings) -> tuple[EvalSet | EvalSets, Path]:
    """The eval set of some files, and the folder of its run.

    Standard input is read to its end, and kept in that folder.

    Raises:
        InputError: for files and settings that do not go together, and for standard input without tasks.
        StoreError: when standard input cannot be kept.
    """
    from debate.dataset.piped import STDIN
    from debate.dataset.several import joined_name

    piped = None if STDIN not in paths else read_stdin(paths)
    named = [Path(piped.name) if piped is not None and path == STDIN else path for path in paths]
    folder = settings.out or RUNS / joined_name(named)
    kept = paths if piped is None else [piped.keep(folder) if path == STDIN else path for path in paths]
    return evalset_under(settings, kept), folder


def evalset_under(settings: RunSettings, paths: Sequence[Path]) -> EvalSet | EvalSets:
    """The eval set of some files, read as the settings say."""
    from debate.dataset.several import evalset_of

    how = (settings.limit, settings.format, settings.answers, settings.columns)
    return evalset_of(paths, *how, prefix_ids=settings.prefix_ids)


def read_stdin(paths: Sequence[Path]) -> Piped:
    """What comes in by standard input, which the paths may name once."""
    from debate.cli.console import say
    from debate.dataset.piped import STDIN, Piped
    from debate.errors import ConfigError

    if [*paths].count(STDIN) > 1:
        raise ConfigError("standard input can be read only once", field="EVALSET", hint="give - one time")
    if sys.stdin.isatty():
        say("reading tasks from standard input, one JSON object per line; Ctrl-D ends it", err=True)
    return Piped.read(sys.stdin.buffer)
