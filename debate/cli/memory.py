"""`debate memory`: what agents remember, kept in a store of its own. Thin over `debate.memory`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate.errors import CallError, ConfigError, StoreError

if TYPE_CHECKING:
    from debate.memory import MemoryStore

memory = typer.Typer(help="What agents remember: add, search, forget, check.", no_args_is_help=True)

_Store = Annotated[
    str | None,
    typer.Option(
        "--memory",
        envvar="DEBATE_MEMORY",
        help="The store: a SQLite file or postgresql://USER@HOST/NAME; by default in your data folder.",
    ),
]
_Embedder = Annotated[str | None, typer.Option(help="minilm or hashing; by default the store's own, else minilm.")]
_Index = Annotated[str, typer.Option(help="auto, exact or chroma.")]
_Collection = Annotated[str, typer.Argument(help="Collection; an agent's own is PROFILE/AGENT.")]


@memory.command()
def add(
    collection: _Collection,
    texts: Annotated[list[str] | None, typer.Argument(help="One memory each.")] = None,
    file: Annotated[
        list[Path] | None, typer.Option(help="A Markdown or text file, cut into pieces; repeatable.")
    ] = None,
    kind: Annotated[str, typer.Option(help="semantic, episodic or reflection.")] = "semantic",
    importance: Annotated[float, typer.Option(help="0 to 10.")] = 5.0,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    store: _Store = None,
    embedder: _Embedder = None,
    index: _Index = "auto",
) -> None:
    """Add memories. Adding the same again changes nothing.

    Example: debate memory add general/Critic "Check the units first." --importance 7
    Example: debate memory add general/Critic --file handbook.md
    """
    from debate.memory.chunking import read_document

    if not texts and not file:
        raise ConfigError("nothing to add", hint="give texts, or --file")
    pieces = [piece for path in file or () for piece in read_document(path)]
    with _opened(store, embedder, index) as opened:
        ids = opened.add(collection, texts or [], source=source, kind=kind, importance=importance) if texts else []
        for piece in pieces:
            place = {"line": piece.line, "headings": list(piece.headings)}
            ids += opened.add(
                collection, piece.text, source=source or piece.source, kind=kind, importance=importance, metadata=place
            )
        typer.echo(f"{len(ids)} memories in {collection}")


@memory.command(name="import")
def import_(
    files: Annotated[list[Path] | None, typer.Argument(help="JSONL, one memory a line.")] = None,
    built_in: Annotated[bool, typer.Option("--built-in", help="The seed memories of the built-in profiles.")] = False,
    store: _Store = None,
    embedder: _Embedder = None,
    index: _Index = "auto",
) -> None:
    """Add the memories of JSONL files: `collection` and `text`, and what else an export has.

    Example: debate memory import --built-in
    """
    from debate.data_files import data_folder

    paths = [*(files or ()), *(sorted(data_folder("memory").glob("*.jsonl")) if built_in else ())]
    if not paths:
        raise ConfigError("nothing to import", hint="give files, or --built-in")
    with _opened(store, embedder, index) as opened:
        for path in paths:
            typer.echo(f"{path}: {opened.import_(path)} memories added")


@memory.command()
def export(
    file: Annotated[Path, typer.Argument(help="JSONL to write.")],
    store: _Store = None,
) -> None:
    """Write all memories to a file, whole or not at all.

    Example: debate memory export memories.jsonl
    """
    with _opened(store) as opened:
        typer.echo(f"{file}: {opened.export(file)} memories")


@memory.command()
def search(
    collection: _Collection,
    query: Annotated[list[str], typer.Argument(help="What to search by; the best match among several counts.")],
    k: Annotated[int, typer.Option("-k", help="Most memories.")] = 8,
    store: _Store = None,
) -> None:
    """Show what an agent would recall, with the parts of each score.

    Example: debate memory search general/Critic "What is 7 % of 240?"
    """
    from debate.cli.console import line, open_console, table

    with _opened(store) as opened:
        made = table("score", "relevance", "recency", "importance", "memory", "source")
        for found in opened.recall(collection, query, k=k):
            numbers = (found.score, found.relevance, found.recency, found.importance)
            cells = [*(f"{number:.3f}" for number in numbers), found.text, found.source or "-"]
            made.add_row(*map(line, cells))
        open_console().print(made)


@memory.command()
def forget(
    collection: Annotated[str | None, typer.Option(help="All of this collection, or of it what else is named.")] = None,
    source: Annotated[str | None, typer.Option(help="All from this source.")] = None,
    ids: Annotated[list[str] | None, typer.Option("--id", help="This one; repeatable.")] = None,
    store: _Store = None,
) -> None:
    """Forget memories: from the store, the index and the cache of vectors.

    Example: debate memory forget --source handbook.md
    """
    if collection is None and source is None and not ids:
        raise ConfigError("what is to be forgotten?", hint="--collection, --source or --id")
    with _opened(store) as opened:
        gone = opened.forget(collection, ids=ids or None, source=source)
        typer.echo(f"{len(gone)} memories forgotten")


@memory.command()
def stats(store: _Store = None) -> None:
    """Show the collections and how many memories each holds.

    Example: debate memory stats
    """
    from debate.cli.console import line, open_console, table

    with _opened(store) as opened:
        made = table("collection", "memories")
        for name, count in opened.collections().items():
            made.add_row(line(name), str(count))
        open_console().print(made)


@memory.command()
def verify(store: _Store = None, index: _Index = "auto") -> None:
    """Compare vectors and index with the memories; exit code 5 when they differ.

    Example: debate memory verify
    """
    with _opened(store, index=index) as opened:
        report = opened.verify()
        typer.echo(f"{report.memories} memories, {report.collections} collections, {report.vectors} vectors")
        for problem in report.problems:
            typer.echo(f"- {problem}")
        if not report.is_ok:
            raise StoreError("the store is not as it should be", hint="debate memory rebuild mends vectors and index")


@memory.command()
def rebuild(
    store: _Store = None,
    embedder: Annotated[str | None, typer.Option(help="Embed all anew with this one: minilm or hashing.")] = None,
    index: _Index = "auto",
) -> None:
    """Make vectors and index anew from the memories.

    Example: debate memory rebuild --embedder hashing
    """
    with _opened(store, embedder, index) as opened:
        typer.echo(f"{opened.rebuild()} vectors made anew")


@memory.command()
def remember(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    store: _Store = None,
    embedder: _Embedder = None,
) -> None:
    """Write down what each agent of a run concluded, as episodic memories of its own.

    Example: debate memory remember runs/first
    """
    from debate.jobs.run_directory import RunDirectory
    from debate.memory.reflection import remember as write_down
    from debate.store import Store

    run = RunDirectory.existing(folder)
    profile = str((run.settings or {}).get("profile", "general"))
    with Store(run.store_url) as kept, _opened(store, embedder) as opened:
        typer.echo(f"{write_down(opened, kept.read(run.name).results(), profile, run.name)} conclusions remembered")


@memory.command()
def reflect(
    collection: _Collection,
    model: Annotated[str, typer.Option(envvar="DEBATE_MODEL", help="Model that reflects.")],
    backend: Annotated[str, typer.Option(help="vllm, openai or ollama.")] = "vllm",
    base_url: Annotated[str | None, typer.Option(help="Address of the server.")] = None,
    last: Annotated[int, typer.Option(help="How many of the newest memories are read.", min=1)] = 30,
    n: Annotated[int, typer.Option("-n", help="Most insights.", min=1)] = 3,
    store: _Store = None,
) -> None:
    """Let a model distil insights from an agent's newest memories, with links to their evidence.

    Example: debate memory reflect general/Critic --model Qwen/Qwen3-8B
    """
    from debate import Engine
    from debate.config.settings import RunSettings
    from debate.memory.reflection import reflection, write_insights

    given = {"model": model, "backend": backend, **({"base_url": base_url} if base_url else {})}
    with _opened(store) as opened:
        memories = opened.newest(collection, last)
        if not memories:
            raise ConfigError(f"holds no memories: {collection}", field="collection")
        with Engine(RunSettings.read(None, given).open_backend()) as engine:
            parsed = engine.drive(reflection(collection, memories, n=n))
        if parsed.failure is not None:
            raise CallError(parsed.failure.reason, f"the model gave no insights: {parsed.failure.message}")
        write_insights(opened, collection, parsed.value or [])
        for insight in parsed.value or []:
            typer.echo(f"- {insight.text} (from {len(insight.evidence)} memories)")


@contextmanager
def _opened(store: str | None, embedder: str | None = None, index: str = "auto") -> Generator[MemoryStore]:
    from debate.memory.store import default_store, open_memory

    with open_memory(store or default_store(), embedder, index) as opened:
        yield opened
