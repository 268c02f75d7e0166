"""Flags made from the declared settings, and their texts read back into plain data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from rich.markup import escape

from debate.errors import ConfigError

if TYPE_CHECKING:
    from debate.config.settings import SettingRow

Command = Callable[..., None]


class WithFlags:
    """A command that has a flag per setting instead of its `**flags`, and is called with those that were given.

    The flags are made when the command's signature is asked for: the settings load slowly.
    """

    def __init__(
        self, command: Command, names: Collection[str], without: Collection[str] = (), *, serves: bool = False
    ) -> None:
        self.__name__, self.__doc__ = command.__name__, command.__doc__
        self._command = command
        self._names = names
        self._without = without
        self._serves = serves

    def __call__(self, **arguments: Any) -> None:
        """Call the command with the flags that were given."""
        given = [(row, arguments.pop(row.name)) for row in self._rows]
        self._command(**arguments, **{row.name: _read(row, texts) for row, texts in given if texts not in (None, [])})

    @cached_property
    def _rows(self) -> list[SettingRow]:
        from debate.config.settings import RunSettings, ServeSettings, settings_table

        rows = settings_table(ServeSettings if self._serves else RunSettings)
        wanted = [row for row in rows if row.panel == "Server" or not self._names or row.name in self._names]
        return [row for row in wanted if row.name not in self._without]

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The engine's flags first, which every run needs; then the command's own, and the others."""
        from debate.config.settings import PANELS

        own = inspect.signature(self._command, eval_str=True).parameters.values()
        own = [each.replace(kind=each.KEYWORD_ONLY) for each in own if each.kind is not each.VAR_KEYWORD]
        flags = [
            inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(row))
            for row in self._rows
        ]
        n_first = sum(row.panel == PANELS[0] for row in self._rows)
        return inspect.Signature([*flags[:n_first], *own, *flags[n_first:]])

    @property
    def __annotations__(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {each.name: each.annotation for each in self.__signature__.parameters.values()}


def settings_flags(*names: str, without: Collection[str] = (), serves: bool = False) -> Callable[[Command], WithFlags]:
    """Decorate a command: see `WithFlags`.

    names: of the settings; all without any.
    without: names of settings that the command has no use for.
    serves: whether the settings of a server have flags too.
    """
    return lambda command: WithFlags(command, names, without, serves=serves)


def _option(row: SettingRow) -> Any:
    from debate.config.construct import types_in

    kind = types_in(row.annotation)[0]
    origin = get_origin(kind)
    choices = [str(each) for each in get_args(kind)] if origin is Literal else []
    default = str(row.default).lower() if isinstance(row.default, bool) else str(row.default).removesuffix(".0")
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
    from debate.config.construct import types_in

    if given == "":
        raise ConfigError("must not be empty", field=row.flag, hint="leave it out; or is a variable not set?")
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
