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
from debate.config.evaluators import KINDS
from debate.config.settings import RunSettings
from debate.dataset.registry import FORMATS
from debate.evaluators.debate.evaluator import DebateEvaluator
from debate.export import EXPORTS

FOLDER = Path(__file__).resolve().parents[1] / "reference"
PROGRAM = "debate"


def settings_page() -> str:
    """Every setting of a run, and the parameters of every evaluator."""
    flags = {name: option for name, option in _run_options()}
    of_debates = {spec.name: spec for spec in fields(DebateEvaluator) if spec.init}
    docs = attribute_docs(DebateEvaluator) | {name: help_of(option) for name, option in flags.items()}
    rows: dict[bool, list[tuple[str, ...]]] = {True: [], False: []}
    for name, spec in RunSettings.model_fields.items():
        flag = f"`{flags[name].opts[0]}`" if name in flags else ""
        default = shown(spec.get_default(call_default_factory=True))
        rows[name in of_debates].append((f"`{name}`", flag, kind(spec.annotation), default, docs.get(name, "")))
    head = ("setting", "flag", "type", "default", "what it does")
    parts = [
        "# Settings",
        "One name for one thing: a key of a `--config` file, a flag of `debate run` (with `-` for `_`) and a parameter in "
        "Python are called the same. A setting without a flag goes into the file. Flags override the file, and the file "
        "overrides what the model's folder asks for in its `debate.yaml`.",
        "## Of a debate",
        "Also the parameters of `DebateEvaluator`.",
        table(head, rows[True]),
        "## Of a run",
        table(head, rows[False]),
        "## Of the other evaluators",
        "Set on the command line with `--option KEY=VALUE`, in a `--config` file under `options`.",
    ]
    for name, cls in KINDS.items():
        if cls is not DebateEvaluator:
            parts += [f"### {name}", first_sentence(cls), table(("option", "type", "default", "what it does"), of(cls))]
    return "\n\n".join(parts) + "\n"


def command_line_page() -> str:
    """Every command with its arguments and options."""
    parts = [
        "# Command line",
        f"`{PROGRAM}` and `debate-eval` are the same program. `{PROGRAM} COMMAND --help` says what this page says.",
    ]
    for path, command in commands():
        parts += [f"## {path}", usage(path, command), textwrap.dedent(command.help or "").strip()]
        rows = [option_row(option) for option in command.params if option.name != "help"]
        if rows and not hasattr(command, "commands"):
            parts.append(table(("option", "value", "default", "what it does"), rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def formats_page() -> str:
    """What eval sets are read from, and what results are written as."""
    read = [
        (f"`{name}`", cell(known.description), " or ".join(", ".join(f"`{key}`" for key in sorted(keys)) for keys in known.keys))
        for name, known in FORMATS.items()
    ]
    written = [(f"`{name}`", f"`{each.file}`", cell(each.description)) for name, each in EXPORTS.items()]
    return "\n\n".join([
        "# Formats",
        "## Eval sets",
        "`debate run` recognizes a file by the keys of its first record; `--format NAME` decides where they do not tell.",
        table(("name", "what it is", "recognized by the keys"), read),
        "## Exports",
        "`debate export RUN --to NAME` writes them, into the run's folder unless `--out` says otherwise.",
        table(("name", "file", "what it holds"), written),
    ]) + "\n"  # fmt: skip


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
    arguments = [option.name.upper() if option.required else f"[{option.name.upper()}]" for option in _arguments(command)]
    rest = "COMMAND" if hasattr(command, "commands") else " ".join(["[OPTIONS]", *arguments])
    return f"    {path} {rest}"


def option_row(option: Any) -> tuple[str, ...]:
    """One line of a command's table."""
    is_argument = option.param_type_name == "argument"
    name = option.name.upper() if is_argument else ", ".join(option.opts)
    value = "" if is_argument else value_of(option)
    many = "repeatable" if getattr(option, "multiple", False) else ""
    default = option.default
    has_default = default not in (None, False, [], ()) and not callable(default) and "UNSET" not in repr(default).upper()
    return f"`{name}`", cell(", ".join(filter(None, (value, many)))), shown(default) if has_default else "", help_of(option)


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


def _arguments(command: Any) -> list[Any]:
    return [option for option in command.params if option.param_type_name == "argument"]


def _run_options() -> Iterator[tuple[str, Any]]:
    command = dict(commands())[f"{PROGRAM} run"]
    singular = {"option": "options", "engine_arg": "engine_args", "column": "columns", "model_name": "model"}
    for option in command.params:
        if option.param_type_name == "option" and option.opts:
            name = option.opts[0].removeprefix("--").replace("-", "_")
            yield singular.get(name, name), option


def of(cls: type[Any]) -> list[tuple[str, ...]]:
    """The parameters of a dataclass, one per row."""
    docs = attribute_docs(cls)
    assert is_dataclass(cls)
    return [
        (f"`{spec.name}`", kind(spec.type), default_of(spec), cell(docs.get(spec.name, "")))
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
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(after, ast.Expr):
                if isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
                    found[node.target.id] = cell(inspect.cleandoc(after.value.value))
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
