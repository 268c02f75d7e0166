"""Writes the pages of the manual that are made from the code: settings, command line, formats.

    python docs/_tools/pages.py          writes them into docs/reference/, where git ignores them

`scripts/docs` calls it before each build. Each function returns the text of one page.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import jinja2
import typer.main
from jinja2.meta import find_undeclared_variables

from debate.cli import app
from debate.config.settings import PANELS, ServeSettings, SettingRow, settings_table
from debate.data_files import data_folder
from debate.registry import BACKENDS, EMBEDDERS, EVALUATORS, EXPORTS, FORMATS, INDEXES, Registry
from debate.settings import declarations

FOLDER = Path(__file__).resolve().parents[1] / "reference"
PROGRAM = "debate"


def settings_page() -> str:
    """Every setting of a run, and the parameters of every evaluator."""
    parts = [
        "# Settings",
        "A setting has one name: as a key of a `--config` file, as a flag of `debate run` (`--min-rounds` for "
        "`min_rounds`) and as a parameter in Python. Flags override the file, and the file overrides what the model's "
        "folder asks for in its `debate.yaml`. Those of the server go with `debate serve`. A setting with a check mark "
        "may change when a run is resumed.",
    ]
    head = ("setting", "type", "default", "may change", "what it does")
    for panel in PANELS:
        rows = [
            (code(row.name), takes(row), shown(row.default), "✓" * row.may_change, about(row))
            for row in settings_table(ServeSettings)
            if row.panel == panel
        ]
        parts += [f"## {panel}", table(head, rows)]
    parts += [
        "## Other evaluators",
        "Set on the command line with `--option KEY=VALUE`, in a `--config` file under `options`.",
    ]
    for name in ours(EVALUATORS):
        if name != "debate":
            cls = EVALUATORS.load(name)
            parts += [f"### {name}", first_sentence(cls), table(("option", "type", "default", "what it does"), of(cls))]
    return "\n\n".join(parts) + "\n"


def command_line_page() -> str:
    """Every command with its arguments and options."""
    parts = [
        "# Command line",
        f"`{PROGRAM}` and `debate-eval` are the same program. `{PROGRAM} COMMAND --help` says what this page says.",
    ]
    for path, command in commands():
        parts += [f"## {path}", usage(path, command), described(command.help or "")]
        rows = [option_row(option) for option in command.params if option.name != "help"]
        if rows and not hasattr(command, "commands"):
            parts.append(table(("option", "value", "what it does"), rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def formats_page() -> str:
    """Everything that goes by a name: what eval sets are read from and results are written as, and the rest."""
    read, written = ours(FORMATS), ours(EXPORTS)
    keys = {name: getattr(FORMATS.load(name), "keys", ()) for name in read}
    alternatives = {
        name: " or ".join(", ".join(map(code, each.split())) for each in sets) for name, sets in keys.items()
    }
    files = {name: EXPORTS.load(name).file for name in written}
    parts = [
        "# Formats and other names",
        "These names are built in. Packages add their own by entry points, and `MODULE:NAME` names anything else that "
        "Python can import; see [Extend](../extending.md).",
        "## Eval sets",
        "`debate run` recognizes a file by the keys of its first record; `--format NAME` decides otherwise.",
        table(
            ("name", "what it is", "recognized by the keys"),
            [(code(name), cell(text), alternatives[name]) for name, text in read.items()],
        ),
        "## Exports",
        "`debate export RUN --to NAME` writes them, into the run's folder unless `--out` says otherwise.",
        table(
            ("name", "file", "what it holds"),
            [(code(name), code(files[name]), cell(text)) for name, text in written.items()],
        ),
    ]
    others = {"Evaluators": EVALUATORS, "Backends": BACKENDS, "Embedders": EMBEDDERS, "Indexes": INDEXES}
    for title, registry in others.items():
        rows = [(code(name), cell(text)) for name, text in ours(registry).items()]
        parts += [f"## {title}", table(("name", "what it is"), rows)]
    rows = [(code(name), ", ".join(map(code, sorted(names)))) for name, names in template_variables().items()]
    parts += ["## Templates", "What each built-in template uses.", table(("template", "variables"), rows)]
    return "\n\n".join(parts) + "\n"


def template_variables() -> dict[str, set[str]]:
    """The variables of every built-in template that has some."""
    folder, parser = data_folder("templates"), jinja2.Environment()
    found = {
        path.relative_to(folder).as_posix(): find_undeclared_variables(parser.parse(path.read_text(encoding="utf-8")))
        for path in sorted(folder.rglob("*.j2"))
    }
    return {name: names for name, names in found.items() if names}


def ours(registry: Registry) -> dict[str, str]:
    """The built-in names of a registry, with their descriptions."""
    return {name: entry.description for name, entry in registry.entries.items() if entry.package is None}


def takes(row: SettingRow) -> str:
    """What a setting's values are, with their bounds."""
    words = kind(row.annotation)
    return f"{words} ({row.bounds.replace('<', '&lt;')})" if row.bounds else words


def about(row: SettingRow) -> str:
    """What a setting does, with a flag that has a name of its own and the variable that sets it."""
    flag = f" Flag: `{row.flag}`." if row.flag != f"--{row.name.replace('_', '-')}" else ""
    return cell(row.help) + flag + (f" Environment variable: `{row.env}`." if row.env else "")


def described(text: str) -> str:
    """A command's help in Markdown: its examples as code."""
    text = re.sub(r"\[/?\w+\]", "", text.replace("\b", ""))
    lines = [line for line in textwrap.dedent(text).strip().splitlines() if line.strip() != "Example:"]
    lines = [re.sub(r"^\s*(?:Example: )?(debate .*)", r"\n    \1\n", line) for line in lines]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


PAGES = {"settings.md": settings_page, "command-line.md": command_line_page, "formats.md": formats_page}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its full name; groups come before what they hold."""

    def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
        if path != PROGRAM:
            yield path, command
        for name, child in getattr(command, "commands", {}).items():
            yield from walk(f"{path} {name}", child)

    return walk(PROGRAM, typer.main.get_command(app))


def usage(path: str, command: Any) -> str:
    """The command's first line of help."""
    arguments = [name if is_required else f"[{name}]" for name, is_required in _arguments(command)]
    rest = "COMMAND" if hasattr(command, "commands") else " ".join(["[OPTIONS]", *arguments])
    return f"    {path} {rest}"


def option_row(option: Any) -> tuple[str, ...]:
    """One line of a command's table."""
    is_argument = option.param_type_name == "argument"
    name = _shown_as(option) if is_argument else ", ".join([*option.opts, *option.secondary_opts])
    text = help_of(option)
    if has_default(option) and "default" not in text.lower():
        text += f" Default: {shown(option.default)}."
    if getattr(option, "multiple", False) and "epeatable" not in text:
        text += " Repeatable."
    return code(cell(name)), "" if is_argument else cell(value_of(option)), text


def has_default(option: Any) -> bool:
    """Whether an option has a default that says something."""
    default = option.default
    is_empty = default in (None, False, [], ()) or "UNSET" in repr(default).upper()
    return not is_empty and not callable(default)


def value_of(option: Any) -> str:
    """What an option takes: text, integer, path; nothing for a flag."""
    if option.metavar:
        return str(option.metavar).lower()
    described = getattr(option, "type_descriptor", None)  # typer's own; click's options have a type
    name = inspect.formatannotation(described.annotation) if described else str(option.type.name)
    if name.startswith("list["):
        name = name.removeprefix("list[").removesuffix("]")
    if described is not None and name.startswith("Literal["):
        return "|".join(map(str, get_args(described.annotation)))
    name = re.sub(r"\b[a-z_]+\.", "", name)
    names = {"str": "text", "Path": "path", "int": "integer", "float": "number", "bool": "", "boolean": ""}
    return names.get(name, name)


def help_of(option: Any) -> str:
    """The help text of an option or argument, with the variable that sets it."""
    text = cell(getattr(option, "help", None) or "")
    variable = getattr(option, "envvar", None)
    return f"{text} Environment variable: `{variable}`." if variable else text


def _arguments(command: Any) -> list[tuple[str, bool]]:
    return [(_shown_as(option), option.required) for option in command.params if option.param_type_name == "argument"]


def _shown_as(argument: Any) -> str:
    """The name of an argument, as the help shows it."""
    return argument.metavar or argument.name.upper()


def of(cls: type[Any]) -> list[tuple[str, ...]]:
    """The parameters of a dataclass, one per row."""
    docs = attribute_docs(cls) | {each.name: cell(each.help) for each in declarations(cls)}
    types_of = get_type_hints(cls)
    assert is_dataclass(cls)
    return [
        (code(spec.name), kind(types_of[spec.name]), default_of(spec), docs.get(spec.name, ""))
        for spec in fields(cls)
        if spec.init
    ]


def attribute_docs(cls: type[Any]) -> dict[str, str]:
    """The strings under the fields of a class and of the classes it inherits from."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if not each.__module__.startswith("debate"):
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(body, ast.ClassDef)
        for node, after in zip(body.body, body.body[1:], strict=False):
            match node, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = cell(inspect.cleandoc(text))
                case _:
                    pass
    return found


def first_sentence(cls: type[Any]) -> str:
    """What a class is, from its docstring."""
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")


_WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", Path: "path", NoneType: "none"}


def kind(annotation: Any) -> str:
    """A type in words: `integer or none`, the values of a choice."""
    members = get_args(annotation)
    match get_origin(annotation):
        case typing.Union | types.UnionType:
            return " or ".join(map(kind, members))
        case typing.Literal:
            return " or ".join(map(str, members))
        case typing.Annotated:
            return "time" if members[0] is float else kind(members[0])
        case None:
            return _WORDS.get(annotation) or cell(str(getattr(annotation, "__name__", annotation)))
        case origin if issubclass(origin, Mapping):
            return "key=value"
        case origin if issubclass(origin, Sequence):
            return f"{kind(members[0])}, repeatable"
        case _:
            return "function"


def default_of(spec: Field[Any]) -> str:
    """The default of a field as a cell; required ones say so."""
    if spec.default is not MISSING:
        return shown(spec.default)
    return shown(spec.default_factory()) if spec.default_factory is not MISSING else "required"


def shown(value: Any) -> str:
    """A default as a cell."""
    if value is None or value in ((), {}):
        return ""
    if is_dataclass(value):
        return f"`{type(value).__name__}`"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    return f"`{cell(text)}`"


def code(text: str) -> str:
    """A text as code."""
    return f"`{text}`"


def cell(text: str) -> str:
    """A text that fits between two bars."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(folder: Path, pages: Mapping[str, Any] = PAGES) -> None:
    """Write the pages; one that has not changed keeps its time, so that a server does not build again."""
    for name, page in pages.items():
        path, text = folder / name, f"<!-- made by docs/_tools/pages.py -->\n\n{page()}"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parents[1]))
    write(FOLDER)
