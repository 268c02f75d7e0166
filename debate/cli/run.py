"""`debate run`: evaluate an eval set. Flags, progress and summary; the work is done by `debate.jobs.run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from debate.errors import ConfigError

_ENGINE = "Engine"
_DEBATE = "Debate"
_RUN = "Run"


def run(
    evalset: Annotated[Path, typer.Argument(help="Eval set: JSONL, CSV, parquet, or a format named below.")],
    evaluator: Annotated[
        str | None, typer.Option(help="debate, value, vote, panel, cross, callback or step.", rich_help_panel=_RUN)
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="KEY=VALUE for an evaluator that is no debate, VALUE read as YAML; repeatable.", rich_help_panel=_RUN
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Built-in profile, or a YAML file.", rich_help_panel=_DEBATE)
    ] = None,
    templates: Annotated[
        Path | None, typer.Option(help="Folder of templates that go before the built-in ones.", rich_help_panel=_DEBATE)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(envvar="DEBATE_MODEL", help="Model name, or the folder of one.", rich_help_panel=_ENGINE),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="vllm, openai, ollama; value_server, reward_model.", rich_help_panel=_ENGINE)
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Address of the server, for openai and ollama.", rich_help_panel=_ENGINE)
    ] = None,
    engine_arg: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE for the backend, VALUE read as YAML; repeatable.", rich_help_panel=_ENGINE),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Most rounds of a debate.", rich_help_panel=_DEBATE)] = None,
    convergence: Annotated[
        str | None,
        typer.Option(help="Stop once the agents' CV is at most this; `none` never stops.", rich_help_panel=_DEBATE),
    ] = None,
    over: Annotated[str | None, typer.Option(help="Which CV: agents, cells, pooled.", rich_help_panel=_DEBATE)] = None,
    candidate_order: Annotated[
        str | None, typer.Option(help="shuffle, fixed, rotate or balanced.", rich_help_panel=_DEBATE)
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="sequential, simultaneous or independent.", rich_help_panel=_DEBATE)
    ] = None,
    history: Annotated[
        int | None, typer.Option(help="Complete rounds an agent sees; all by default.", rich_help_panel=_DEBATE)
    ] = None,
    selection: Annotated[str | None, typer.Option(help="argmax or sample.", rich_help_panel=_DEBATE)] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Of what a persona does not set itself.", rich_help_panel=_DEBATE)
    ] = None,
    reply_tokens: Annotated[
        int | None, typer.Option(help="Longest reply; by default what the schema allows.", rich_help_panel=_DEBATE)
    ] = None,
    token_budget: Annotated[
        int | None, typer.Option(help="Tokens after which a debate stops.", rich_help_panel=_DEBATE)
    ] = None,
    task_seconds: Annotated[
        float | None, typer.Option(help="Seconds after which a debate stops.", rich_help_panel=_DEBATE)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings; flags go before it.", rich_help_panel=_RUN)
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Of the eval set, where its keys do not tell: own, table, mt_bench, alpaca_eval, reward_bench, "
            "judge_bench, llmbar, pandalm, chat_eval, bigbench_mistake, process_bench, openai_batch, lm_eval.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(help="A further file of candidates, one a model; repeatable.", rich_help_panel=_RUN),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Of a table: x=COLUMN, candidates=FIRST,SECOND; repeatable.", rich_help_panel=_RUN),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; by default runs/NAME-OF-EVALSET.", rich_help_panel=_RUN)
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many tasks.", rich_help_panel=_RUN)] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run.", rich_help_panel=_RUN)] = None,
    max_concurrency: Annotated[
        int | None, typer.Option(help="Debates open at once; by default what fits.", rich_help_panel=_RUN)
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where everything is recorded: a SQLite file or postgresql://USER@HOST/NAME; by default run.sqlite in "
            "the run's folder.",
            envvar="DEBATE_STORE",
            rich_help_panel=_RUN,
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory store that agents recall from (see `debate memory`), or `built-in` for the seed memories.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(help="Use replies of the store that are no older than this: 12h, 7d.", rich_help_panel=_RUN),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens that the whole run may use.", rich_help_panel=_RUN)
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Seconds that this session may take.", rich_help_panel=_RUN)
    ] = None,
    engine_restarts: Annotated[
        int | None, typer.Option(help="How often an engine that died is started again; 3.", rich_help_panel=_RUN)
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again for what failed, and only that.", rich_help_panel=_RUN)
    ] = False,
    fork: Annotated[
        bool,
        typer.Option(
            "--fork",
            help="Begin a new run beside --out, which keeps those of its answers whose prompts are the same.",
            rich_help_panel=_RUN,
        ),
    ] = False,
) -> None:
    """Evaluate every task of an eval set, all at once, and record every answer as it comes.

    The same command again goes on where it stopped, however it stopped: a recorded answer is never asked for again.
    Other weights, thresholds or rounds compute anew what is recorded, and ask only for what is missing. Settings that
    have no flag here go into --config, under the names of DebateEvaluator's parameters.

    Example: debate run tasks.jsonl --model meta-llama/Llama-3.1-8B-Instruct --rounds 2 --out runs/first
    """
    given = {
        "evaluator": evaluator, "profile": profile, "templates": templates, "model": model, "backend": backend,
        "base_url": base_url,
        "rounds": rounds, "over": over, "candidate_order": candidate_order, "mode": mode, "history": history,
        "selection": selection, "temperature": temperature, "reply_tokens": reply_tokens, "out": out, "limit": limit,
        "seed": seed, "max_concurrency": max_concurrency, "token_budget": token_budget, "task_seconds": task_seconds,
        "store": store, "memory": memory, "cache": cache, "max_tokens": max_tokens, "max_seconds": max_seconds,
        "engine_restarts": engine_restarts, "format": format_,
    }  # fmt: skip
    flags: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if convergence is not None:
        flags["convergence"] = _convergence(convergence)
    if answers:
        flags["answers"] = answers
    if column:
        flags["columns"] = dict(_column(text) for text in column)
    if engine_arg:
        flags["engine_args"] = dict(key_value(text, "--engine-arg") for text in engine_arg)
    if option:
        flags["options"] = dict(key_value(text, "--option") for text in option)
    from debate.cli.execution import execute
    from debate.config.settings import RunSettings
    from debate.dataset.evalset import EvalSet

    settings = RunSettings.read(config, flags)
    folder = settings.out or Path("runs") / evalset.stem
    tasks = EvalSet(evalset, settings.limit, settings.format, settings.answers, settings.columns)
    raise typer.Exit(execute(settings, folder, evalset=tasks, retry_failed=retry_failed, fork=fork))


def _convergence(text: str) -> float | None:
    if text.strip().lower() in ("none", "off"):
        return None
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"must be a number or `none`, got {text!r}", field="--convergence") from None


def _column(text: str) -> tuple[str, str]:
    ours, equals, theirs = text.partition("=")
    if not equals or ours not in ("x", "id", "best", "context", "candidates") or not theirs:
        hint = "x, id, best, context and candidates can be named"
        raise ConfigError(f"must be NAME=COLUMN, got {text!r}", field="--column", hint=hint)
    return ours, theirs


def key_value(text: str, flag: str) -> tuple[str, Any]:
    """KEY=VALUE, the value read as YAML."""
    import yaml

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"must be KEY=VALUE, got {text!r}", field=flag)
    try:
        return key.replace("-", "_"), yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"the value of {key} is not YAML: {value!r}", field=flag) from None
