"""`debate memory`: manages the store that agents recall from."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate.cli.console import say
from debate.cli.help_pages import PlainGroup
from debate.errors import CallError, ConfigError, StoreError
from debate.registry import BACKENDS, EMBEDDERS, SERVERS

if TYPE_CHECKING:
    from debate.memory import MemoryStore

_HELP = "Manage what agents remember: add, search, export, forget, verify."
memory = typer.Typer(help=_HELP, no_args_is_help=True, cls=PlainGroup, add_completion=False)

_Store = Annotated[
    str | None,
    typer.Option(
        "--memory",
        envvar="DEBATE_MEMORY",
        help="Memory store: a SQLite file or postgresql://USER@HOST/NAME. Default: a file in your data folder.",
    ),
]
_Embedder = Annotated[
    str | None, typer.Option(help=f"Embedder: {EMBEDDERS.names()}. Default: the store's own; minilm for a new store.")
]
_Index = Annotated[
    str, typer.Option(help="Vector index: auto, exact or chroma. auto takes chroma for 200,000 memories and more.")
]
_Collection = Annotated[
    str, typer.Argument(help="Collection. An agent's own is PROFILE/AGENT, such as general/Critic.")
]


@memory.command()
def add(
    collection: _Collection,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts, each kept as one memory.")] = None,
    file: Annotated[
        list[Path] | None, typer.Option(help="Markdown or text file, split into one memory per passage. Repeatable.")
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind: semantic, episodic or reflection.")] = "semantic",
    importance: Annotated[float, typer.Option(help="Importance, from 0 to 10.")] = 5.0,
    source: Annotated[str | None, typer.Option(help="Where it comes from, such as a file or a task's id.")] = None,
    store: _Store = None,
    embedder: _Embedder = None,
    index: _Index = "auto",
) -> None:
    """Add texts or files to a collection. Adding the same again changes nothing.

    Example: debate memory add general/Critic "Check the units first." --importance 7
    Example: debate memory add general/Critic --file handbook.md
    """
    from debate.memory.chunking import read_document

    if not texts and not file:
        raise ConfigError("nothing to add", hint="give texts, or --file")
    if not all(text.strip() for text in texts or ()):
        raise ConfigError("is empty", field="texts")
    pieces = [piece for path in file or () for piece in read_document(path)]
    with _opened(store, embedder, index) as opened:
        ids = opened.add(collection, texts or [], source, kind, importance)
        for piece in pieces:
            place = {"line": piece.line, "headings": list(piece.headings)}
            ids += opened.add(collection, piece.text, source or piece.source, kind, importance, metadata=place)
        say(f"{_memories(len(ids))} in {collection}")


@memory.command(name="import")
def import_(
    files: Annotated[list[Path] | None, typer.Argument(help="JSONL files, one memory per line.")] = None,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="Import the memories that come with the built-in profiles.")
    ] = False,
    store: _Store = None,
    embedder: _Embedder = None,
    index: _Index = "auto",
) -> None:
    """Import memories from JSONL files with the keys of an export; only `collection` and `text` are required.

    Example: debate memory import --built-in
    """
    from debate.data_files import data_folder

    paths = [*(files or ()), *(sorted(data_folder("memory").glob("*.jsonl")) if built_in else ())]
    if not paths:
        raise ConfigError("nothing to import", hint="give files, or --built-in")
    with _opened(store, embedder, index) as opened:
        for path in paths:
            say(f"{path}: {_memories(opened.import_(path))} added")


@memory.command()
def export(
    file: Annotated[Path, typer.Argument(help="JSONL file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    store: _Store = None,
) -> None:
    """Write all memories to a JSONL file, one per line.

    Example: debate memory export memories.jsonl
    """
    with _opened(existing_store(store)) as opened:
        if file.exists() and not force:
            raise ConfigError("exists already", file=file, hint="--force replaces it")
        say(f"{file}: {_memories(opened.export(file))}")


@memory.command()
def search(
    collection: _Collection,
    query: Annotated[list[str], typer.Argument(help="One or more queries; a memory counts by its best match.")],
    k: Annotated[int, typer.Option("-k", help="How many memories at most.")] = 8,
    store: _Store = None,
) -> None:
    """Show what an agent would recall, with the parts of each score.

    Example: debate memory search general/Critic "What is 7 % of 240?"
    """
    from debate.cli.console import excerpt, name, open_console, table

    if not any(each.strip() for each in query):
        raise ConfigError("is empty", field="query")
    with _opened(existing_store(store)) as opened:
        _check_holds_memories(opened, collection)
        made = table("score", "relevance", "recency", "importance", "memory", "source")
        for found in opened.recall(collection, query, k=k):
            numbers = (found.score, found.relevance, found.recency, found.importance)
            made.add_row(*(f"{each:.3f}" for each in numbers), excerpt(found.text), name(found.source or "-"))
        open_console().print(made)


@memory.command()
def forget(
    collection: Annotated[str | None, typer.Option(help="Only memories of this collection.")] = None,
    source: Annotated[str | None, typer.Option(help="Only memories from this source.")] = None,
    ids: Annotated[list[str] | None, typer.Option("--id", help="Only the memory with this id. Repeatable.")] = None,
    store: _Store = None,
) -> None:
    """Erase memories that match all options, with their vectors, from the store and the index.

    Example: debate memory forget --source handbook.md
    """
    if collection is None and source is None and not ids:
        raise ConfigError("nothing selected to forget", hint="give --collection, --source or --id")
    with _opened(existing_store(store)) as opened:
        gone = opened.forget(collection, ids=ids or None, source=source)
        say(f"{_memories(len(gone))} forgotten")


@memory.command()
def stats(store: _Store = None) -> None:
    """List the collections and the number of memories in each.

    Example: debate memory stats
    """
    from debate.cli.console import line, open_console, table

    with _opened(existing_store(store)) as opened:
        made = table("collection", "memories", right=(1,))
        for collection, count in opened.collections().items():
            made.add_row(line(collection), f"{count:,}")
        if made.rows:
            open_console().print(made)
        else:
            say(f"{opened.place}: holds no memories")


@memory.command()
def verify(store: _Store = None, index: _Index = "auto") -> None:
    """Check texts, vectors and index for consistency; exit code 5 when something is wrong.

    Example: debate memory verify
    """
    with _opened(existing_store(store), index=index) as opened:
        report = opened.verify()
        say(f"{report.memories} memories, {report.collections} collections, {report.vectors} vectors")
        for problem in report.problems:
            say(f"- {problem}")
        if not report.is_ok:
            hint = "`debate memory rebuild` repairs vectors and index"
            raise StoreError("the memory store is inconsistent", hint=hint)


@memory.command()
def rebuild(
    store: _Store = None,
    embedder: Annotated[
        str | None, typer.Option(help=f"Embed everything again with another embedder: {EMBEDDERS.names()}.")
    ] = None,
    index: _Index = "auto",
) -> None:
    """Rebuild vectors and index from the memories' texts.

    Example: debate memory rebuild --embedder hashing
    """
    with _opened(existing_store(store), embedder, index) as opened:
        say(f"{opened.rebuild()} vectors made")


@memory.command()
def remember(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished or interrupted run.")],
    store: _Store = None,
    embedder: _Embedder = None,
) -> None:
    """Remember what each agent of a run concluded, as episodic memories in its own collection.

    Example: debate memory remember runs/first
    """
    from debate.jobs.run_directory import RunDirectory
    from debate.memory.reflection import remember as write_down

    run = RunDirectory.existing(folder)
    with run.open_store() as kept, _opened(store, embedder) as opened:
        record = kept.read(run.name)
        count = write_down(opened, record.results(), record.identity["evaluator"], run.name)
        say(f"{count} conclusions remembered")
        if not count:
            say("only a debate's agents remember, and none of them finished a turn in this run")


@memory.command()
def reflect(
    collection: _Collection,
    model: Annotated[str, typer.Option(envvar="DEBATE_MODEL", help="Model to ask, by the name the backend knows.")],
    backend: Annotated[str, typer.Option(help=f"Backend: {BACKENDS.names()}.")] = "vllm",
    base_url: Annotated[str | None, typer.Option(help=f"Address of the model's server, for {SERVERS}.")] = None,
    last: Annotated[int, typer.Option(help="How many of the newest memories the model reads.", min=1)] = 30,
    n: Annotated[int, typer.Option("-n", help="How many insights at most.", min=1)] = 3,
    store: _Store = None,
) -> None:
    """Let a model derive insights from an agent's newest memories, linked to their evidence (Park et al. 2023).

    Example: debate memory reflect general/Critic --model Qwen/Qwen3-8B
    """
    from debate import Engine
    from debate.config.settings import RunSettings
    from debate.memory.reflection import reflection, write_insights

    given = {"model": model, "backend": backend, **({"base_url": base_url} if base_url else {})}
    with _opened(existing_store(store)) as opened:
        _check_holds_memories(opened, collection)
        memories = opened.newest(collection, last)
        with Engine(RunSettings.read(None, given).open_backend()) as engine:
            parsed = engine.drive(reflection(collection, memories, n=n))
        if parsed.failure is not None:
            raise CallError(parsed.failure.reason, f"the model gave no insights: {parsed.failure.message}")
        write_insights(opened, collection, parsed.value or [])
        for insight in parsed.value or []:
            say(f"- {insight.text} (from {_memories(len(insight.evidence))})")


def _memories(n: int) -> str:
    return "1 memory" if n == 1 else f"{n:,} memories"


def _check_holds_memories(opened: MemoryStore, collection: str) -> None:
    there = opened.collections()
    if collection not in there:
        close = get_close_matches(collection, there, n=3, cutoff=0.4) or list(there)[:3]
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "`debate memory add` adds some"
        raise ConfigError(f"{collection!r} holds no memories", field="collection", hint=hint)


def existing_store(store: str | None) -> str:
    """The store, where it is there: to look into one that is not must not make it.

    Raises:
        ConfigError: when there is none.
    """
    from debate.memory.store import default_store
    from debate.sql.connect import normalize_url, sqlite_file

    url = store or default_store()
    file = sqlite_file(normalize_url(url, "memory"))
    if file is not None and not file.is_file():
        hint = "--memory names another; `debate memory add` and `debate memory import` make one"
        raise ConfigError("there is no memory store", file=file, hint=hint)
    if file is not None and not _holds_memories(file):
        hint = "--memory names a store of memories, which is not the store of a run"
        raise ConfigError("is no memory store", file=file, hint=hint)
    return url


def _holds_memories(file: Path) -> bool:
    """Whether a file may be a store of memories; a database that cannot be read is left to whoever opens it."""
    from contextlib import closing

    from debate.sql.connect import FAULTS, read_only

    try:
        with closing(read_only(file)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except FAULTS:
        return True
    return not tables or "memories" in tables


@contextmanager
def _opened(store: str | None, embedder: str | None = None, index: str = "auto") -> Generator[MemoryStore]:
    from debate.memory.store import default_store, open_memory

    with open_memory(store or default_store(), embedder, index) as opened:
        yield opened
