"""`debate serve`: evaluators over HTTP. Flags and checks; the application is in `debate.server`."""

from __future__ import annotations

import signal
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.console import say
from debate.cli.flags import settings_flags
from debate.cli.otel import OTEL, exporting
from debate.errors import ConfigError

OF_RUNS = (
    *("limit", "format", "answers", "columns", "prefix_ids"),
    *("out", "store", "run", "cache", "engine_restarts", "price", "max_tokens", "max_cost", "max_seconds"),
)
"""Settings of eval sets and of what is recorded, which a server has no use for."""


@settings_flags(without=OF_RUNS, serves=True)
def serve(
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings; flags override it.", rich_help_panel="Run")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.", rich_help_panel="Server")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", rich_help_panel="Server")] = 12555,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="DEBATE_TOKEN",
            help="Must come with every request; required unless --host is a loopback address.",
            rich_help_panel="Server",
        ),
    ] = None,
    otel: Annotated[bool, typer.Option("--otel", help=OTEL, rich_help_panel="Server")] = False,
    **flags: Any,
) -> None:
    """Evaluate tasks that come as JSON over HTTP, all of them in the batch of one engine.

    `POST /evaluate` takes a task and answers with its evaluation, `POST /evaluate/batch` takes several; /docs and
    /openapi.json of the server describe them. `POST /forward` is x1's, so that its search can use an evaluator as its
    value model: the evaluator step, unless --evaluator, --option or --config names the one for all addresses.

    Example:
        debate serve --model built-in
        debate serve --profile general --rounds 2 --model meta-llama/Llama-3.1-8B-Instruct
        debate serve --evaluator step --backend openai --base-url URL --model M
        curl -d '{"x": "8+6?", "candidates": ["14.", "27."]}' http://127.0.0.1:12555/evaluate
    """
    from debate.server.access import is_loopback
    from debate.server.app import create_app
    from debate.server.evaluations import Served
    from debate.server.forward import valued_by

    if not is_loopback(host) and not token:
        raise ConfigError(f"{host} can be reached from outside", field="--host", hint="give a --token with it")
    from debate.cli.execution import as_interrupt
    from debate.config.construct import make_evaluator
    from debate.config.settings import ServeSettings
    from debate.jobs.unrecorded import unrecorded_engine, unrecorded_settings

    if config is None and "options" in flags:
        flags.setdefault("evaluator", "step")
    settings = unrecorded_settings(config, flags, ServeSettings)
    evaluator = settings.make_evaluator()
    steps = evaluator if config is not None or "evaluator" in flags else make_evaluator("step", {})
    signal.signal(signal.SIGTERM, as_interrupt)
    about = (settings, settings.open_backends(evaluator), partial(say, err=True))
    with exporting(otel), unrecorded_engine(*about, is_traced=otel) as engine:
        engine.check(evaluator, steps)
        valued, served = valued_by(engine, steps), Served(engine, evaluator)
        app = create_app(valued, served, token=token, host=host, limits=settings, is_traced=otel)
        import uvicorn

        say("loading the model", err=True)
        engine.start()
        say(f"{settings.evaluator} at http://{host}:{port}/evaluate, described at /docs; Ctrl-C ends it", err=True)
        with suppress(KeyboardInterrupt):  # of the signal that ended the server
            uvicorn.run(
                app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=settings.grace_seconds
            )
