"""Templates rendered into blocks of segments, so that a backend can tell our words from everybody else's.

A template's literal text is ours. Whatever an expression prints (`{{ x }}`) is content: a candidate, a comment, a
persona. Content is marked while jinja2 renders and comes out as segments of its own; it is never rendered twice, never
becomes a control token, and what looks like a delimiter in it is broken. Numbers and `Trusted` text (labels, the word
of the delimiters) count as ours.

Templates are sandboxed and get plain data only.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import Any, Literal, TypeVar, cast

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.loaders import split_template_path
from jinja2.meta import find_referenced_templates, find_undeclared_variables

from debate.data_files import data_folder
from debate.errors import TemplateError
from debate.flow import Block, Segment
from debate.hashing import digest
from debate.templates.delimiters import PRINTED, Delimiters, delimiter_of, task_delimiter
from debate.templates.sandbox import Sandbox, bounded, check_plain

__all__ = ["Templates", "Trusted", "delimiter_of", "joined", "plain_number", "task_delimiter"]

T = TypeVar("T")

# Nobody outside the process can write these, so content cannot forge the end of its own segment. Digits and private-use
# characters, because filters such as upper and escape leave them alone.
_NONCE = str(secrets.randbits(128))
_MARK = f"\ue000{_NONCE}"
_OPEN, _CLOSE = f"{_MARK}\ue001", f"{_MARK}\ue002"
MAX_CHARACTERS = 4_000_000
_TOO_LONG = f"renders more than {MAX_CHARACTERS:,} characters"
_Content = tuple[str, Literal[True]]
"""What an expression has printed, which becomes a segment as it is."""
_segment: Callable[[tuple[str, bool]], Segment] = partial(cast("Any", tuple).__new__, Segment)  # the quickest way


class Trusted(str):
    """Text that we made ourselves and that may stand among the template's own words."""

    __slots__ = ()


class _Rendered(str):
    """What a part of a template has rendered, such as a macro: its words and its marked content."""

    __slots__ = ()


BUILT_IN_SETS = ("compact",)
_PRINT_NOTHING = {"whitespace", "comment_begin", "comment", "comment_end", "linecomment"}


def _folder(given: Path) -> Path:
    if given.is_dir():
        return given
    if str(given) in BUILT_IN_SETS:
        return data_folder("templates") / given
    sets = ", ".join(BUILT_IN_SETS)
    raise TemplateError("no such folder of templates", file=given, hint=f"built-in sets: {sets}")


def _is_built_in(folder: Path) -> bool:
    return folder.is_relative_to(data_folder("templates"))


def _files(folder: Path) -> Iterator[str]:
    """The names of the files in a folder and in the folders of it, but for hidden ones."""
    found = (file.relative_to(folder) for pattern in ("*", "*/*") for file in folder.glob(pattern) if not file.is_dir())
    return (file.as_posix() for file in found if not any(part.startswith(".") for part in file.parts))


def _is_template(name: str, known: Iterable[str]) -> bool:
    """Whether a file is meant for a template: by its suffix, or as one of the known ones with a wrong suffix."""
    stems = {each.removesuffix(".j2") for each in known}
    return Path(name).suffix in (".j2", ".jinja", ".jinja2") or str(Path(name).with_suffix("")) in stems


def _finalize(value: Any) -> str | _Content:
    """What an expression prints: our own words, or content."""
    if type(value) is str:  # as most are
        return value, True
    if isinstance(value, (Trusted, _Rendered)):
        return value
    if isinstance(value, (int, float)):
        return str(value)
    check_plain(value)
    return str(value), True


def _concat(pieces: Iterable[str | _Content]) -> _Rendered:
    """The pieces of a part, put together with the content marked."""
    texts = [each if isinstance(each, str) else _marked(each[0]) for each in pieces]
    if sum(map(len, texts)) > MAX_CHARACTERS:
        raise SecurityError(_TOO_LONG)
    return _Rendered("".join(texts))


def joined(parts: Iterable[tuple[str, bool]]) -> str:
    """One variable of several parts, each with whether it is content; the others stay our words."""
    return _concat((text, True) if is_content else text for text, is_content in parts)


def _marked(content: str) -> str:
    return f"{_OPEN}{content}{_CLOSE}"


class _Loader(jinja2.FileSystemLoader):
    """Reads templates from the user's folder and from ours; in the user's, no link leads out of it."""

    def __init__(self, own: Path | None) -> None:
        super().__init__([folder for folder in (own, data_folder("templates")) if folder is not None])
        self._own = own

    def get_source(self, environment: jinja2.Environment, template: str) -> Any:
        if self._own is not None:
            file = self._own.joinpath(*split_template_path(template))
            # The built-in sets are ours, and an installer may make links of them.
            if (
                file.is_file()
                and not _is_built_in(self._own)
                and not file.resolve().is_relative_to(self._own.resolve())
            ):
                hint = "put a copy of the file into the folder"
                raise TemplateError("is a link that leads out of the folder of templates", file=file, hint=hint)
        return super().get_source(environment, template)


class Templates:
    """The built-in templates, overridden by the files of the same name under `directory`.

    A user's folder mirrors ours: `debate/agent.j2` in it replaces the built-in `debate/agent.j2`. Where there is no
    such folder, the name of a built-in set will do: `compact`, with which the bundled judge is trained.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        self.directory = None if directory is None else _folder(Path(directory))
        self._environment = Sandbox(
            loader=_Loader(self.directory),
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._environment.concat = cast("Any", _concat)
        self._delimiters: dict[tuple[str, ...], Delimiters] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy reads the files anew: what jinja2 makes of them can be neither copied nor pickled."""
        return type(self), (self.directory,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Templates) and self.directory == other.directory

    def __hash__(self) -> int:
        return hash(self.directory)

    def render(self, name: str, context: Mapping[str, Any], among: Sequence[str] = ()) -> Block:
        """Render one template into a block in which no content looks like a delimiter.

        Args:
            name: the template's.
            context: its variables. `delimiter` is the word in its delimiters.
            among: names of the templates that the prompt is made of. Content is kept from forging the delimiters of
                all of them; of this one alone where there are none.

        Raises:
            TemplateError: with the file and the line, where the template does not parse, names what is not there, or
                does what the sandbox forbids.
        """
        block = self._guard(name, lambda: self._environment.rendered(name, context, _block))
        return self._delimiters_of(tuple(among) or (name,)).broken(block, str(context.get("delimiter", "")))

    def _delimiters_of(self, names: tuple[str, ...]) -> Delimiters:
        if names not in self._delimiters:
            every = dict.fromkeys(reached for name in names for reached in self._reached(name))
            self._delimiters[names] = Delimiters.of(map(self._words, every))
        return self._delimiters[names]

    def _reached(self, name: str) -> Iterator[str]:
        """A template and those that it includes, imports or extends, theirs too; without names that are computed."""
        seen, left = set[str](), [name]
        while left:
            each = left.pop()
            if each not in seen:
                seen.add(each)
                yield each
                with suppress(TemplateError):  # rendering says what is wrong, and it may be allowed to be missing
                    tree = self._guard(each, partial(self._environment.parse, self.source(each)))
                    left += filter(None, find_referenced_templates(tree))

    def _words(self, name: str) -> str:
        """The template's own words, with `PRINTED` for what its expressions print; none where it cannot be read."""
        said = {"variable_begin": PRINTED}
        with suppress(TemplateError):
            tokens = self._guard(name, lambda: list(self._environment.lex(self.source(name))))
            return "".join(text if kind == "data" else said.get(kind, "") for _, kind, text in tokens)
        return ""

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

    def check_files(self) -> None:
        """Refuse a file in the user's folder that no template is read from: its name is misspelled.

        Read are the files of the built-in templates' names, folders with a `system.j2` and an `ask.j2` (see
        `JudgeSettings.template`), and what these include. What looks like no template is let be.
        """
        if self.directory is None or _is_built_in(self.directory):
            return
        ours = data_folder("templates")
        known = sorted(path.relative_to(ours).as_posix() for path in ours.glob("*/*.j2"))
        files = {name for name in _files(self.directory) if _is_template(name, known)}
        judges = {name for name in files if {f"{Path(name).parent}/{each}.j2" for each in ("system", "ask")} <= files}
        read = {reached for name in files & judges.union(known) for reached in self._reached(name)}
        for name in sorted(files - read):
            near = [f"debate/{name}"] if f"debate/{name}" in known else get_close_matches(name.lower(), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise TemplateError("no template of this name is read", file=self.directory / name, hint=hint)
        for name in sorted(files):
            if not (self.directory / name).is_file():  # the built-in one would be read in its place
                raise TemplateError("is no file that can be read", file=self.directory / name)

    def suits(self, name: str) -> bool:
        """Whether their model can be asked with a template: a built-in set's was trained on the set alone."""
        return self.directory is None or not _is_built_in(self.directory) or (self.directory / name).is_file()

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
            return bounded(action)
        except MemoryError:
            raise TemplateError("needs more memory than there is", file=self.path(name)) from None
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


def _block(pieces: Iterable[str | _Content]) -> Block:
    """The block of a rendering's pieces: contents as they are, and the words between them in one segment."""
    segments: list[tuple[str, bool]] = []
    words, length = "", 0
    for piece in pieces:
        text = piece if isinstance(piece, str) else piece[0]
        length += len(text)
        if length > MAX_CHARACTERS:  # asked as they come, so that a rendering without end is found before it is whole
            raise SecurityError(_TOO_LONG)
        if text is piece:
            words += text
        elif "\ue000" in text:  # perhaps made of a part that was put together
            words += _marked(text)
        elif text:
            if words:
                segments += _split(words)
                words = ""
            segments.append((text, True))
    return Block(map(_segment, [*segments, *_split(words)]))


def _split(words: str) -> list[tuple[str, bool]]:
    """Words of ours, split at the marks of the content in them. Content inside content (a macro's) stays content.

    Raises `ValueError` where a filter over a whole block has damaged the marks: content would pass for ours.
    """
    if "\ue000" not in words:
        return [(words, False)] if words else []
    segments: list[tuple[str, bool]] = []
    words, *marked = words.split(_MARK)  # much faster than a regular expression
    depth = 0
    for each in marked:
        part = each[1:]
        if each.startswith("\ue001"):
            depth += 1
        elif each.startswith("\ue002"):
            depth -= 1
        else:
            raise ValueError("a filter mangles what the template prints; apply it inside {{ }}")
        if depth == 0:
            words += part
        elif part:
            if words:
                segments.append(_own(words))
                words = ""
            segments.append((part, True))
    if depth:
        raise ValueError("a filter cuts off what the template prints; apply it inside {{ }}")
    return [*segments, _own(words)] if words else segments


def _own(words: str) -> tuple[str, bool]:
    """A piece of the template's own words."""
    if "\ue000" in words:
        raise ValueError("a filter mangles what the template prints; apply it inside {{ }}")
    return words, False


def _line_in(error: BaseException, path: Path) -> int | None:
    """The template's line in a traceback that jinja2 has rewritten."""
    frames = walk_tb(error.__traceback__)
    return next((line for frame, line in reversed([*frames]) if frame.f_code.co_filename == str(path)), None)


def plain_number(value: float) -> int | float:
    """A number as a prompt shows it: 7 rather than 7.0."""
    return int(value) if float(value).is_integer() else value
