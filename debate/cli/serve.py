"""`debate serve`: an evaluator over HTTP. Flags and checks; the application is in `debate.server`."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.run import key_value
from debate.errors import ConfigError


def serve(
    evaluator: Annotated[
        str | None, typer.Option(help="debate, value, vote, panel, cross, callback or step; step by default.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for the evaluator, VALUE read as YAML; repeatable.")
    ] = None,
    model: Annotated[str | None, typer.Option(envvar="DEBATE_MODEL", help="Model name, or the folder of one.")] = None,
    backend: Annotated[str | None, typer.Option(help="vllm, openai, ollama; value_server, reward_model.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Address of the model's server.")] = None,
    engine_arg: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for the backend, VALUE read as YAML; repeatable.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file of settings; flags go before it.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 12555,
    token: Annotated[
        str | None,
        typer.Option(envvar="DEBATE_TOKEN", help="Must come with every request; needed for other than loopback."),
    ] = None,
) -> None:
    """Answer x1's `POST /forward` with an evaluator's scores, so that its search can use it as its value model.

    Example: debate serve --evaluator step --model meta-llama/Llama-3.1-8B-Instruct
    """
    given = {"evaluator": evaluator, "model": model, "backend": backend, "base_url": base_url}
    flags: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name, texts in (("options", option), ("engine_args", engine_arg)):
        if texts:
            flags[name] = dict(key_value(text, f"--{name.removesuffix('s').replace('_', '-')}") for text in texts)
    if config is None:
        flags.setdefault("evaluator", "step")
    if not _is_loopback(host) and not token:
        raise ConfigError(f"{host} can be reached from outside", field="--host", hint="give a --token with it")
    _serve(config, flags, host, port, token)


def _serve(config: Path | None, flags: dict[str, Any], host: str, port: int, token: str | None) -> None:
    from debate.config.settings import RunSettings
    from debate.engine import Engine
    from debate.server.app import create_app, valued_by

    settings = RunSettings.read(config, flags)
    evaluator = settings.make_evaluator()
    with Engine(settings.open_backends(), seed=settings.seed, max_concurrency=settings.max_concurrency) as engine:
        app = create_app(valued_by(engine, evaluator), token=token)
        import uvicorn

        typer.echo("loading the model", err=True)
        engine.start()
        typer.echo(f"{settings.evaluator} at http://{host}:{port}/forward; Ctrl-C ends it", err=True)
        uvicorn.run(app, host=host, port=port, log_level="warning")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
