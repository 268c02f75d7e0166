"""`debate export`: the results of a run in other formats. What each holds is in `debate.export`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from debate.cli.console import say
from debate.registry import EXPORTS

_TO = f"What is written: scores by default. Repeatable.\n\n{EXPORTS.describe()}\n\nMODULE:NAME: a function of yours"
_OUT = (
    "File, or a folder where there are several; by default the run's folder. The name of a file with tasks, scores or "
    "turns says its format: CSV where it ends in .csv, else parquet; the others are JSON."
)
_ENDINGS = ("csv", "parquet")


def export(
    folder: Annotated[Path, typer.Argument(help="Folder of the run.")],
    to: Annotated[
        list[str] | None,
        typer.Option(help=_TO, metavar="NAME"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help=_OUT)] = None,
    min_margin: Annotated[
        float, typer.Option(help="For preference pairs: smallest difference of the two scores.", min=0)
    ] = 0.0,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Write the results of a run, finished or not, for other tools. A file is written whole or not at all.

    Example: debate export runs/first --to scores --to preferences --min-margin 0.5
    """
    from debate.errors import ConfigError
    from debate.export import export_named
    from debate.jobs.run_directory import RunDirectory

    for ending in _ENDINGS:
        if ending in (to or ()):
            hint = f"--to tasks --out tasks.{ending}: the name of the file says it; --to names what is written"
            raise ConfigError(f"{ending} is the format of a file", field="--to", hint=hint)
    exports = {name: export_named(name) for name in to or ["scores"]}
    options = {name: {"min_margin": min_margin} for name, each in exports.items() if _takes(each.write, "min_margin")}
    if min_margin and not options:
        raise ConfigError("is for preference pairs", field="--min-margin", hint="add --to preferences")
    run = RunDirectory.existing(folder)
    is_file = out is not None and out.suffix != "" and not out.is_dir()
    if is_file and len(exports) > 1:
        raise ConfigError("several formats need a folder", field="--out")
    paths = {name: out if out and is_file else (out or folder) / each.file for name, each in exports.items()}
    if len({*paths.values()}) < len(paths):
        raise ConfigError(
            "two of the formats write the same file", field="--to", hint="export them one by one, with --out"
        )
    for path in paths.values():
        if path.exists() and not force:
            raise ConfigError("exists already", file=path, hint="--force replaces it")
    with run.open_store() as store:
        record = store.read(run.name)
        for name, path in paths.items():
            write = exports[name].write
            written = write(record.results(), path, folder.resolve().name, **options.get(name, {}))
            say(f"{path}: {written.rows:,} rows")
            for reason, count in written.skipped.items():
                say(f"  left out {count:,}: {reason}")


def _takes(write: object, name: str) -> bool:
    return name in inspect.signature(write).parameters  # pyright: ignore[reportArgumentType]
