"""`debate mcp`: a tool for agents, over stdio. Flags; the server is in `debate.adapters.mcp`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.console import say
from debate.cli.flags import settings_flags
from debate.cli.otel import OTEL, exporting
from debate.cli.serve import OF_RUNS


@settings_flags(without=OF_RUNS)
def mcp(
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings; flags override it.", rich_help_panel="Run")
    ] = None,
    otel: Annotated[bool, typer.Option("--otel", help=OTEL, rich_help_panel="Run")] = False,
    **flags: Any,
) -> None:
    """Give agents the tool `judge_candidates`, by the Model Context Protocol over stdin and stdout.

    A client that knows the protocol starts this command itself: name it in the client's settings. Stdout carries the
    protocol alone; everything else goes to stderr. Nothing is recorded.

    Example:
        debate mcp --model built-in
        debate mcp --profile general --rounds 2 --backend openai --base-url URL --model M
    """
    from debate.adapters.mcp import own_streams

    with own_streams() as streams, suppress(KeyboardInterrupt):
        _serve(config, flags, streams, is_traced=otel)


def _serve(config: Path | None, flags: dict[str, Any], streams: tuple[Any, Any], *, is_traced: bool) -> None:
    """Answer until stdin ends. Raises KeyboardInterrupt for a signal that ends it."""
    from debate.adapters.judge import Judge
    from debate.adapters.mcp import Rounds, serve_stdio
    from debate.cli.execution import as_interrupt
    from debate.config.settings import RunSettings
    from debate.jobs.unrecorded import unrecorded_engine, unrecorded_settings

    settings, rounds = unrecorded_settings(config, flags, RunSettings), Rounds()
    evaluator = settings.make_evaluator()
    signal.signal(signal.SIGTERM, as_interrupt)
    backends = settings.open_backends(evaluator)
    about = (settings, backends, partial(say, err=True))
    with exporting(is_traced), unrecorded_engine(*about, on_turn=rounds.tell, is_traced=is_traced) as engine:
        # Without a memo: an agent that asks again after a failure is judged anew.
        asyncio.run(_until_told(serve_stdio(Judge(engine, evaluator, memo=0), streams, rounds)))


async def _until_told(work: Coroutine[Any, Any, None]) -> None:
    """Do the work until a signal ends it, which cancels it: an exception out of a signal could rise anywhere in it."""
    working = asyncio.ensure_future(work)
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, working.cancel)
    with suppress(asyncio.CancelledError):
        await working
