"""Flags made from the declared settings, and their texts read back into plain data."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from rich.markup import escape

from debate.config.construct import types_in
from debate.config.settings import RunSettings, SettingRow, settings_table
from debate.errors import ConfigError

Command = Callable[..., None]


def settings_flags(*names: str, of: type[RunSettings] = RunSettings) -> Callable[[Command], Command]:
    """Decorate a command: instead of its `**flags` it has a flag per setting, and is called with those that were given.

    names: of the settings; all without any.
    of: the settings; those of the panel `Server` always have a flag.
    """
    rows = [row for row in settings_table(of) if row.panel == "Server" or not names or row.name in names]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_flags(**arguments: Any) -> None:
            given = [(row, arguments.pop(row.name)) for row in rows]
            command(**arguments, **{row.name: _read(row, texts) for row, texts in given if texts})

        own = inspect.signature(command, eval_str=True).parameters.values()
        flags = [inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=None) for row in rows]
        annotated = [flag.replace(annotation=_option(row)) for flag, row in zip(flags, rows, strict=True)]
        parameters = [*(each for each in own if each.kind is not each.VAR_KEYWORD), *annotated]
        with_flags.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
        with_flags.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_flags

    return decorate


def _option(row: SettingRow) -> Any:
    kind = types_in(row.annotation)[0]
    origin = get_origin(kind)
    choices = [str(each) for each in get_args(kind)] if origin is Literal else []
    default = str(row.default).lower() if isinstance(row.default, bool) else str(row.default)
    more = [
        f"One of {', '.join(choices)}." if any(each not in row.help for each in choices) else "",
        "Repeatable." if origin in (dict, tuple) else "",
        f"Default: {default}." if row.default not in (None, {}, ()) else "",
    ]
    option = typer.Option(
        row.flag,
        help=escape(" ".join([row.help.replace("None", "none"), *filter(None, more)])),
        metavar=_METAVARS.get(get_args(kind)[0] if origin is tuple else origin or kind, "NAME"),
        envvar=row.env,
        rich_help_panel=row.panel,
    )
    return Annotated[(list[str] if origin in (dict, tuple) else str) | None, option]


_METAVARS: dict[Any, str] = {
    bool: "TRUE|FALSE",
    int: "INTEGER",
    float: "NUMBER",
    str: "TEXT",
    Path: "PATH",
    dict: "KEY=VALUE",
}


def _read(row: SettingRow, given: Any) -> Any:
    """What was given, as plain data; pydantic turns the texts into numbers, paths and truth values."""
    kind = types_in(row.annotation)[0]
    if get_origin(kind) is dict:
        return dict(key_value(text, row.flag, keeps_text=get_args(kind)[1] is str) for text in given)
    return None if kind in (int, float) and given.strip().lower() in ("none", "off") else given


def key_value(text: str, flag: str, *, keeps_text: bool = False) -> tuple[str, Any]:
    """KEY=VALUE, the value read as YAML unless `keeps_text`.

    Raises:
        ConfigError: naming the flag.
    """
    import yaml

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"must be KEY=VALUE, got {text!r}", field=flag)
    try:
        return key, value if keeps_text else yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"the value of {key} is not YAML: {value!r}", field=flag) from None
