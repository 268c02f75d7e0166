"""`debate export`: the results of a run in other formats. What each holds is in `debate.export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    to: Annotated[
        list[str] | None,
        typer.Option(
            help="scores, turns, preferences, inspect, alpaca_eval, mt_bench or mt_bench_pairs; repeatable.",
            show_default="scores",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File, or folder; by default the run's folder.")] = None,
    min_margin: Annotated[
        float, typer.Option(help="Of preference pairs: least distance of the two scores.", min=0)
    ] = 0.0,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write the results of a run, finished or not, for other tools. A file is written whole or not at all.

    Example: debate export runs/first --to scores --to preferences --min-margin 0.5
    """
    from functools import partial

    from debate.errors import ConfigError
    from debate.export import EXPORTS
    from debate.export.preferences import write_preferences
    from debate.jobs.run_directory import RunDirectory
    from debate.store import Store

    names = to or ["scores"]
    for name in names:
        if name not in EXPORTS:
            raise ConfigError(f"there is no format {name!r}", field="--to", hint=", ".join(EXPORTS))
    if min_margin and "preferences" not in names:
        raise ConfigError("is of preference pairs", field="--min-margin", hint="add --to preferences")
    run = RunDirectory.existing(folder)
    is_file = out is not None and out.suffix != "" and not out.is_dir()
    if is_file and len(names) > 1:
        raise ConfigError("several formats need a folder", field="--out")
    paths = {name: out if out and is_file else (out or folder) / EXPORTS[name].file for name in names}
    for path in paths.values():
        if path.exists() and not force:
            raise ConfigError("is there already", file=path, hint="--force replaces it")
    with Store(run.store_url) as store:
        record = store.read(run.name)
        for name, path in paths.items():
            pairs = name == "preferences"
            write = partial(write_preferences, min_margin=min_margin) if pairs else EXPORTS[name].write
            written = write(record.results(), path, folder.resolve().name)
            typer.echo(f"{path}: {written.rows:,} rows")
            for reason, count in written.skipped.items():
                typer.echo(f"  left out {count:,}: {reason}")
