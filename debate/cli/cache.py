"""`debate cache stats | clear`: the replies that a store keeps for later runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from debate.cli.console import say
from debate.cli.help_pages import PlainGroup

cache = typer.Typer(
    help="The cached replies of a store.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    cls=PlainGroup,
)
_Where = Annotated[
    str, typer.Argument(metavar="STORE", help="A run's folder, a SQLite file, or postgresql://USER@HOST/NAME.")
]


@cache.command()
def stats(store: _Where) -> None:
    """Say how many replies there are, and what they saved.

    Example: debate cache stats runs/first
    """
    from debate.cli.console import open_console, table

    with _opened(store) as opened:
        found = opened.cache().stats()
        made = table("replies", "expired", "hits", "tokens saved", "oldest")
        oldest = "-" if found.oldest is None else f"{datetime.fromtimestamp(found.oldest).astimezone():%Y-%m-%d %H:%M}"
        made.add_row(str(found.replies), str(found.expired), str(found.hits), f"{found.tokens:,}", oldest)
        open_console().print(made)


@cache.command()
def clear(
    store: _Where, expired: Annotated[bool, typer.Option("--expired", help="Only those that have expired.")] = False
) -> None:
    """Forget cached replies. What runs have recorded stays.

    Example: debate cache clear runs/first --expired
    """
    with _opened(store) as opened:
        say(f"{opened.cache().clear(expired_only=expired)} replies forgotten")


def _opened(store: str):
    from pathlib import Path

    from debate.errors import ConfigError
    from debate.jobs.run_directory import RunDirectory
    from debate.store import Store

    folder = RunDirectory.read(Path(store)) if "://" not in store else None
    url = store if folder is None else folder.store_url
    if "://" not in url and not Path(url).is_file():
        raise ConfigError("is neither a run's folder nor a store", file=url)
    return Store(url)
