"""Writes the pages of the manual that are made from the code: settings, command line, formats.

    python docs/_build/pages.py          writes them into docs/reference/, where git ignores them

`scripts/docs` calls it before each build. Each function returns the text of one page.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import typer.main

from debate.cli import app
from debate.config.settings import PANELS, settings_table
from debate.registry import BACKENDS, EMBEDDERS, EVALUATORS, EXPORTS, FORMATS, INDEXES, Registry
from debate.settings import declarations

FOLDER = Path(__file__).resolve().parents[1] / "reference"
PROGRAM = "debate"


def settings_page() -> str:
    """Every setting of a run, and the parameters of every evaluator."""
    parts = [
        "# Settings",
        "A setting has one name: as a key of a `--config` file, as a flag of `debate run` (with `-` for `_`) and as a "
        "parameter in Python. Flags override the file, and the file overrides what the model's folder asks for in its "
        "`debate.yaml`. A setting with a check mark may change when a run is resumed.",
    ]
    head = ("setting", "flag", "type", "default", "may change", "what it does")
    for panel in reversed(PANELS):
        rows = [
            (code(row.name), code(row.flag), kind(row.annotation), shown(row.default), "✓" * row.may_change, about(row))
            for row in settings_table()
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
            parts.append(table(("option", "value", "default", "what it does"), rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def formats_page() -> str:
    """Everything that goes by a name: what eval sets are read from and results are written as, and the rest."""
    read, written = ours(FORMATS), ours(EXPORTS)
    keys = {name: getattr(FORMATS.load(name), "keys", ()) for name in read}
    alternatives = {
        name: " or ".join(", ".join(map(code, sorted(each))) for each in sets) for name, sets in keys.items()
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
    return "\n\n".join(parts) + "\n"


def ours(registry: Registry) -> dict[str, str]:
    """The built-in names of a registry, with their descriptions."""
    return {name: entry.description for name, entry in registry.entries.items() if entry.package is None}


def about(row: Any) -> str:
    """What a setting does, with the variable that sets it."""
    return cell(row.help) + (f" Environment variable: `{row.env}`." if row.env else "")


def described(text: str) -> str:
    """A command's help in Markdown: its examples as code."""
    text = re.sub(r"\[/?\w+\]", "", text.replace("\b", ""))
    lines = textwrap.dedent(text).strip().splitlines()
    shown_lines = [
        f"\n    {line.strip().removeprefix('Example:').strip()}\n" if re.match(r"\s*(Example: )?debate ", line) else line
        for line in lines
        if line.strip() != "Example:"
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(shown_lines)).strip()


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
    arguments = [name.upper() if is_required else f"[{name.upper()}]" for name, is_required in _arguments(command)]
    rest = "COMMAND" if hasattr(command, "commands") else " ".join(["[OPTIONS]", *arguments])
    return f"    {path} {rest}"


def option_row(option: Any) -> tuple[str, ...]:
    """One line of a command's table."""
    is_argument = option.param_type_name == "argument"
    name = option.name.upper() if is_argument else ", ".join(option.opts)
    value = "" if is_argument else value_of(option)
    many = "repeatable" if getattr(option, "multiple", False) else ""
    default = option.default
    has_default = (
        default not in (None, False, [], ()) and not callable(default) and "UNSET" not in repr(default).upper()
    )
    return (
        f"`{name}`",
        cell(", ".join(filter(None, (value, many)))),
        shown(default) if has_default else "",
        help_of(option),
    )


def value_of(option: Any) -> str:
    """What an option takes: text, int, path; nothing for a flag."""
    described = getattr(option, "type_descriptor", None)  # typer's own; click's options have a type
    name = inspect.formatannotation(described.annotation) if described else str(option.type.name)
    names = {"str": "text", "Path": "path", "pathlib.Path": "path", "bool": "", "boolean": ""}
    name = name.removeprefix("list[").removesuffix("]")
    return names.get(name, name)


def help_of(option: Any) -> str:
    """The help text of an option or argument, with the variable that sets it."""
    text = cell(getattr(option, "help", None) or "")
    variable = getattr(option, "envvar", None)
    return f"{text} Environment variable: `{variable}`." if variable else text


def _arguments(command: Any) -> list[tuple[str, bool]]:
    return [(option.name, option.required) for option in command.params if option.param_type_name == "argument"]


def of(cls: type[Any]) -> list[tuple[str, ...]]:
    """The parameters of a dataclass, one per row."""
    docs = attribute_docs(cls) | {each.name: cell(each.help) for each in declarations(cls)}
    assert is_dataclass(cls)
    return [
        (code(spec.name), kind(spec.type), default_of(spec), docs.get(spec.name, ""))
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


def kind(annotation: Any) -> str:
    """A type in words: `int or none`, the values of a choice."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:[a-z_]+\.)+", "", text)
    text = re.sub(r"Literal\[([^]]*)\]", lambda found: found[1].replace("'", "").replace(", ", " | "), text)
    text = re.sub(r"Annotated\[(\w+).*\]", r"\1", text).replace("str", "text").replace("None", "none")
    return cell(text.replace("Path", "path")).replace("\\|", "or").replace("<", "&lt;")


def default_of(spec: Field[Any]) -> str:
    """The default of a field as a cell; required ones say so."""
    if spec.default is not MISSING:
        return shown(spec.default)
    return shown(spec.default_factory()) if spec.default_factory is not MISSING else "required"


def shown(value: Any) -> str:
    """A default as a cell."""
    if value is None or value == ():
        return "none"
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
        path, text = folder / name, f"<!-- made by docs/_build/pages.py -->\n\n{page()}"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parents[1]))
    write(FOLDER)
