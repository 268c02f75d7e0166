"""Templates rendered into blocks of segments, so that a backend can tell our words from everybody else's.

A template's literal text is ours. Whatever an expression prints (`{{ x }}`) is content: a candidate, a comment, a
persona. Content is marked while jinja2 renders and comes out as segments of its own; it is never rendered twice and
never becomes a control token. Numbers and `Trusted` text (labels, delimiters) count as ours.

Templates are sandboxed and get plain data only.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from traceback import walk_tb
from typing import Any, ClassVar, TypeVar

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from debate.data_files import data_folder
from debate.errors import TemplateError
from debate.flow import Block, Segment
from debate.hashing import digest
from debate.types import Task

T = TypeVar("T")

# Nobody outside the process can write these, so content cannot forge the end of its own segment. Digits and private-use
# characters, because filters such as upper and escape leave them alone.
_NONCE = str(secrets.randbits(128))
_MARK = f"\ue000{_NONCE}"
_OPEN, _CLOSE = f"{_MARK}\ue001", f"{_MARK}\ue002"
_DEPTH = {"\ue001": 1, "\ue002": -1}
MAX_CHARACTERS = 4_000_000


_OF_LOOPS = frozenset({"first", "index", "index0", "last", "length", "revindex"})


class Trusted(str):
    """Text that we made ourselves and that may stand among the template's own words."""

    __slots__ = ()


class _Sandbox(ImmutableSandboxedEnvironment):
    """The immutable sandbox, without the operations that build a gigabyte from a few characters."""

    intercepted_binops = frozenset(["*", "**", "%"])
    _limits: ClassVar[dict[str, float]] = {"*": 1e12, "**": 64, "%": 1e12}

    def getattr(self, obj: Any, attribute: str) -> Any:
        # What templates get is mostly dicts, and jinja2 looks there last, after an AttributeError that costs more.
        kind: object = type(obj)  # pyright: ignore[reportUnknownVariableType]
        if kind is dict and attribute in obj:
            return obj[attribute]
        if kind is LoopContext and attribute in _OF_LOOPS:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if not numbers or abs(left) > 1e12 or abs(right) > self._limits[operator]:
            raise SecurityError(f"the operator {operator} takes small numbers only")
        return super().call_binop(context, operator, left, right)


BUILT_IN_SETS = ("compact",)
_PRINT_NOTHING = {"whitespace", "comment_begin", "comment", "comment_end", "linecomment"}


def _folder(given: Path) -> Path:
    if given.is_dir():
        return given
    if str(given) in BUILT_IN_SETS:
        return data_folder("templates") / given
    sets = ", ".join(BUILT_IN_SETS)
    raise TemplateError("no such folder of templates", file=given, hint=f"built-in sets: {sets}")


def _finalize(value: Any) -> Any:
    if isinstance(value, (Trusted, int, float)):
        return value
    return f"{_OPEN}{value}{_CLOSE}"


class Templates:
    """The built-in templates, overridden by the files of the same name under `directory`.

    A user's folder mirrors ours: `debate/agent.j2` in it replaces the built-in `debate/agent.j2`. Where there is no
    such folder, the name of a built-in set will do: `compact`, with which the bundled judge is trained.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        folders = [data_folder("templates")]
        if directory is not None:
            directory = _folder(Path(directory))
            folders.insert(0, directory)
        self.directory = directory
        self._environment = _Sandbox(
            loader=jinja2.FileSystemLoader(folders),
            undefined=jinja2.StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        # center builds a gigabyte from a few characters; the others would say something else in every run.
        del (
            self._environment.filters["center"],
            self._environment.filters["random"],
            self._environment.globals["lipsum"],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy reads the files anew: what jinja2 makes of them can be neither copied nor pickled."""
        return type(self), (self.directory,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Templates) and self.directory == other.directory

    def __hash__(self) -> int:
        return hash(self.directory)

    def render(self, name: str, context: Mapping[str, Any]) -> Block:
        """Render one template into a block.

        Raises:
            TemplateError: with the file and the line, where the template does not parse, names what is not there, or
                does what the sandbox forbids.
        """
        template = self._guard(name, lambda: self._environment.get_template(name))
        text = self._guard(name, lambda: template.render(context))
        if len(text) > MAX_CHARACTERS:
            raise TemplateError(f"renders more than {MAX_CHARACTERS:,} characters", file=self.path(name))
        return self._guard(name, lambda: _segments(text))

    def check(self, name: str, sample: Mapping[str, Any]) -> None:
        """Refuse a template that uses a name which `sample` does not hold, or that fails on the sample."""
        self._guard(name, lambda: self._environment.get_template(name))  # finds what parsing alone does not
        tree = self._guard(name, lambda: self._environment.parse(self.source(name), name, str(self.path(name))))
        known = set(sample) | set(self._environment.globals)
        for unknown in sorted(find_undeclared_variables(tree) - known):
            line = min((node.lineno for node in tree.find_all(nodes.Name) if node.name == unknown), default=None)
            hint = f"this template may use: {', '.join(sorted(sample))}"
            raise TemplateError(f"{unknown!r} is undefined", file=self.path(name), line=line, hint=hint)
        self.render(name, sample)

    def path(self, name: str) -> Path:
        """The file that `name` is read from."""
        own = None if self.directory is None else self.directory / name
        return own if own is not None and own.is_file() else data_folder("templates") / name

    def source(self, name: str) -> str:
        """The template's source text."""
        loader = self._environment.loader
        assert loader is not None
        return self._guard(name, lambda: loader.get_source(self._environment, name))[0]

    def fingerprint(self, *names: str) -> str:
        """Digest of what some templates can print, by their names: what a run records to know whether prompts changed.

        Comments and the white space inside tags are left out; the order of `names` does not count.
        """
        return digest({name: self._tokens(name) for name in names})

    def _tokens(self, name: str) -> list[list[str]]:
        """The template's source as tokens: kinds and texts. Text on both sides of a comment is one token."""
        tokens: list[list[str]] = []
        for _, kind, text in self._guard(name, lambda: list(self._environment.lex(self.source(name)))):
            if kind == "data" and tokens and tokens[-1][0] == "data":
                tokens[-1][1] += text
            elif kind not in _PRINT_NOTHING:
                tokens.append([kind, text if kind == "data" else text.strip()])
        return tokens

    def _guard(self, name: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except jinja2.TemplateNotFound as error:
            raise TemplateError(f"no template {error.name!r}", file=self.path(name)) from None
        except jinja2.TemplateSyntaxError as error:
            file = error.filename or self.path(name)  # an included file's, where the fault is there
            raise TemplateError(error.message or "syntax error", file=file, line=error.lineno) from None
        except UnicodeDecodeError as error:
            raise TemplateError(f"is not UTF-8: {error.reason}", file=self.path(name)) from None
        except RecursionError:
            raise TemplateError("includes or calls itself without end", file=self.path(name)) from None
        except (jinja2.TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
            line = _line_in(error, self.path(name))
            raise TemplateError(str(error) or type(error).__name__, file=self.path(name), line=line) from None


def _segments(text: str) -> Block:
    """Split rendered text at the marks. Content inside content (a macro's output) stays content.

    Raises `ValueError` where a filter over a whole block has damaged the marks: content would pass for ours.
    """
    segments: list[Segment] = []
    depth = 0
    first, *marked = text.split(_MARK)  # much faster than a regular expression
    for step, part in [(0, first), *((_DEPTH.get(each[:1]), each[1:]) for each in marked)]:
        depth += step or 0
        is_content = depth != 0
        if step is None or (not is_content and "\ue000" in part):
            raise ValueError("a filter mangles what the template prints; apply it inside {{ }}")
        if not part:
            continue
        if segments and segments[-1].is_content == is_content and not is_content:
            part = segments.pop().text + part
        segments.append(Segment(part, is_content))
    if depth:
        raise ValueError("a filter cuts off what the template prints; apply it inside {{ }}")
    return tuple(segments)


def _line_in(error: BaseException, path: Path) -> int | None:
    """The template's line in a traceback that jinja2 has rewritten."""
    frames = walk_tb(error.__traceback__)
    return next((line for frame, line in reversed([*frames]) if frame.f_code.co_filename == str(path)), None)


def task_delimiter(task: Task) -> str:
    """A word that marks where untrusted text begins and ends; drawn so that it does not occur in that text."""
    return delimiter_of(task.x, *task.background, *(candidate.text for candidate in task.candidates))


def delimiter_of(*texts: str) -> str:
    """A delimiter for some texts, in none of which it occurs."""
    word = digest("fence", *texts)[:8]
    while any(word in text for text in texts):
        word = digest("fence", word)[:8]
    return word


def plain_number(value: float) -> int | float:
    """A number as a prompt shows it: 7 rather than 7.0."""
    return int(value) if float(value).is_integer() else value
