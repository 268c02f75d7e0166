"""`--help` in plain words: values are TEXT or PATH, defaults are told in one way, paragraphs fill their lines.

Typer names values by their types in Python, and puts braces around arguments that must be given.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand, TyperGroup

_PATHS = dict.fromkeys(("path", "Path", "file", "directory"), "PATH")
_VALUES = {"str": "TEXT", "int": "INTEGER", "float": "NUMBER", "bool": "", **_PATHS}


class PlainCommand(TyperCommand):
    """A command whose help is in plain words."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        _put_plainly(self)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What the line of usage names; only what may be left out is in brackets."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "").replace("......", "...") for piece in pieces]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with `--help` itself in the last box."""
        _name_values(self, ctx)
        super().format_help(ctx, formatter)


class PlainGroup(TyperGroup):
    """A group of commands whose help is in plain words."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        _put_plainly(self)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        _name_values(self, ctx)
        super().format_help(ctx, formatter)


def _put_plainly(command: Any) -> None:
    """Name the arguments, and tell each default at the end of its help."""
    from rich.markup import escape

    command.help = filled(command.help or "")
    for each in command.params:
        if each.param_type_name == "argument":
            each.metavar = each.metavar or each.name.upper()
        if told := _default(each):
            each.help = f"{each.help} Default: {escape(told)}."
        each.show_default = False


def _default(option: Any) -> str:
    """The default of an option in words; empty where there is none, or its help tells it."""
    value, told = getattr(option, "default", None), getattr(option, "show_default", False)
    if isinstance(told, str):
        return told
    if not told or value is False or value in (None, [], (), "") or callable(value) or "UNSET" in repr(value).upper():
        return ""
    if value is True:
        return option.opts[0]
    return f"{value:g}" if isinstance(value, float) else str(getattr(value, "value", value))


def filled(text: str) -> str:
    """A docstring with each paragraph on one line, for the terminal to wrap; examples keep their lines.

    Typer takes the indentation away from the second paragraph, so the examples are never that one.
    """
    paragraphs = cleandoc(text).split("\n\n")
    told = [each if each.startswith("Example:") else " ".join(each.split("\n")) for each in paragraphs]
    return "\n\n".join(told if len(told) != 2 else [told[0], "", told[1]])


def _name_values(command: Any, ctx: Any) -> None:
    """Say what each option takes; where there are boxes, put what is in none into that of the run, `--help` last."""
    params = command.get_params(ctx)
    for each in params:
        if each.param_type_name == "argument":
            each.display_type_rich = _nothing
        elif each.metavar is None and hasattr(each, "display_type"):
            each.metavar = _value(each.display_type(ctx))
    options = [each for each in command.params if each.param_type_name == "option" and hasattr(each, "rich_help_panel")]
    if any(each.rich_help_panel for each in options):
        for each in options:
            each.rich_help_panel = each.rich_help_panel or "Run"
        params[-1].rich_help_panel = options[-1].rich_help_panel


def _nothing(ctx: Any) -> None:
    """What an argument takes is not told: its name says it."""


def _value(kind: str) -> str:
    """`<list[int range]>` as `INTEGER`; choices stay as they are."""
    name = kind.strip("<>").removeprefix("list[").removesuffix("]").removesuffix(" range")
    return _VALUES.get(name, name)
