"""`debate serve`: an evaluator over HTTP. Flags and checks; the application is in `debate.server`."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.console import say
from debate.cli.flags import settings_flags
from debate.errors import ConfigError

_MODEL = ("model", "backend", "base_url", "engine_args", "thinking", "thinking_tokens", "chat_template_kwargs")


@settings_flags("evaluator", "options", *_MODEL, "task_seconds", serves=True)
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
    **flags: Any,
) -> None:
    """Answer x1's `POST /forward` with an evaluator's scores, so that its search can use it as its value model.

    The evaluator is step, unless --evaluator or --config says otherwise.

    Example: debate serve --evaluator step --model meta-llama/Llama-3.1-8B-Instruct
    """
    if config is None:
        flags.setdefault("evaluator", "step")
    from debate.server.app import create_app, is_loopback, valued_by

    if not is_loopback(host) and not token:
        raise ConfigError(f"{host} can be reached from outside", field="--host", hint="give a --token with it")
    from debate.cli.execution import as_interrupt
    from debate.config.settings import ServeSettings
    from debate.engine import Engine

    settings = ServeSettings.read(config, flags)
    evaluator = settings.make_evaluator()
    backends = settings.open_backends(evaluator)
    signal.signal(signal.SIGTERM, as_interrupt)
    with Engine(
        backends, seed=settings.seed, max_concurrency=settings.max_concurrency, task_seconds=settings.task_seconds
    ) as engine:
        engine.check(evaluator)
        app = create_app(valued_by(engine, evaluator), token=token, host=host, limits=settings)
        import uvicorn

        say("loading the model", err=True)
        engine.start()
        say(f"{settings.evaluator} at http://{host}:{port}/forward; Ctrl-C ends it", err=True)
        with suppress(KeyboardInterrupt):  # of the signal that ended the server
            uvicorn.run(
                app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=settings.grace_seconds
            )
