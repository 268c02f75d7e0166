"""Measure the memory: recalls together and one by one, Chroma beside exact search, whether the right thing is found.

    scripts/bench memory [speed] [recall] [facts] [--collections 300] [--each 2000] [--requests 500]

speed    500 recalls over 300 collections of 2,000 memories, vectors cached: in one batch, one at a time, and the bare
         numpy products that the batch cannot do without, in one run; a part of them through Chroma beside it.
         The batch is to be at least 10 times as fast as one at a time, and at most 3 times the bare products.
recall   recall@10 of Chroma beside exact search, on 10,000 and 100,000 vectors in 64 clusters, of 384 dimensions, with
         the settings that are shipped; to be at least 0.99.
facts    1,000 planted facts, asked in other words, a part of them updated later: how often the fact is among the first
         five, and how often the newer of two versions comes first when recency counts; MiniLM and the hashing embedder
         side by side. MiniLM is to reach 0.9 and 0.95.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from debate.memory import Embedder, HashingEmbedder, MemoryStore, MiniLM, RecallRequest

DIMENSION = 384
DAY = 86_400.0
NOW = 1_800_000_000.0


class Random:
    """Vectors that a hash of the text decides: nothing to compute, nothing alike. With clusters, near one of them."""

    dimension = DIMENSION
    is_reproducible = True

    def __init__(self, clusters: int = 0) -> None:
        self.id = f"random-{clusters}"
        self._centres = np.random.default_rng(0).standard_normal((clusters, DIMENSION)) if clusters else None

    def embed(self, texts: Sequence[str]) -> Any:
        """One unit row a text, (N, D)."""
        rows = np.stack([self._row(text) for text in texts]) if texts else np.zeros((0, DIMENSION))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)  # (N, D)

    def pieces(self, text: str) -> list[str]:
        """The text as it is."""
        return [text]

    def _row(self, text: str) -> Any:
        draw = np.random.default_rng(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()))
        row = draw.standard_normal(DIMENSION)  # (D,)
        return row if self._centres is None else self._centres[draw.integers(len(self._centres))] + 0.5 * row


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    """The quickest of some."""
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def speed(options: argparse.Namespace, folder: Path) -> None:
    """The batch, one at a time, the bare products."""
    names = [f"agent/{n}" for n in range(options.collections)]
    embedder: Embedder = Random()
    with MemoryStore(folder / "speed.sqlite", embedder, "exact") as store:
        for name in names:
            store.add(name, [f"{name} memory {n}" for n in range(options.each)], created_at=NOW - DAY)
        draw = random.Random(1)
        requests = [
            RecallRequest(draw.choice(names), [f"query {n}.{q}" for q in range(3)], k=8, now=NOW)
            for n in range(options.requests)
        ]
        store.recall_many(requests)  # vectors and matrices are held from here on
        batch = seconds(lambda: store.recall_many(requests))
        few = requests[:: max(len(requests) // 100, 1)]
        single = seconds(lambda: [store.recall_many([each]) for each in few], 1) * len(requests) / len(few)
        bare = bare_products(requests, options.each)
        print(
            f"{options.requests} recalls of 3 queries, {options.collections} collections of {options.each:,} memories"
        )
        print(f"  together            {batch:8.3f} s")
        print(f"  one at a time       {single:8.3f} s   {single / batch:6.1f} times as long")
        print(f"  bare numpy products {bare:8.3f} s   the batch takes {batch / bare:.2f} times as long")
        if options.without_chroma:
            return
        few_names = names[:10]
        asked = [RecallRequest(few_names[n % 10], each.queries, k=8, now=NOW) for n, each in enumerate(requests)]
        exact = seconds(lambda: store.recall_many(asked))
    with MemoryStore(folder / "chroma.sqlite", embedder, "chroma") as store:
        for name in few_names:
            store.add(name, [f"{name} memory {n}" for n in range(options.each)], created_at=NOW - DAY)
        store.recall_many(asked)
        print(f"  10 collections: exact {exact:.3f} s, Chroma {seconds(lambda: store.recall_many(asked)):.3f} s")


def bare_products(requests: Sequence[RecallRequest], each: int) -> float:
    """One product a collection of all queries that are put to it, with matrices at hand."""
    counts: dict[str, int] = {}
    for request in requests:
        counts[request.collections[0]] = counts.get(request.collections[0], 0) + len(request.queries)
    draw = np.random.default_rng(0)
    matrices = {name: draw.standard_normal((each, DIMENSION)).astype(np.float32) for name in counts}
    queries = {name: draw.standard_normal((n, DIMENSION)).astype(np.float32) for name, n in counts.items()}
    return seconds(lambda: [matrices[name] @ queries[name].T for name in counts])


def recall(options: argparse.Namespace, folder: Path) -> None:
    """recall@10 of Chroma beside the exact index."""
    embedder: Embedder = Random(clusters=64)
    for size in options.sizes:
        texts = [f"memory {n}" for n in range(size)]
        requests = [RecallRequest("c", f"query {n}", k=10, now=NOW, near_duplicate=None) for n in range(200)]
        found: dict[str, list[set[str]]] = {}
        for index in ("exact", "chroma"):
            with MemoryStore(folder / f"{index}{size}.sqlite", embedder, index) as store:  # pyright: ignore[reportArgumentType]
                for begin in range(0, size, 5000):
                    store.add("c", texts[begin : begin + 5000], created_at=NOW - DAY)
                began = time.perf_counter()
                found[index] = [{each.id for each in answer} for answer in store.recall_many(requests)]
                took = time.perf_counter() - began
            print(f"  {size:,} vectors, {index}: first batch of 200 in {took:.2f} s", flush=True)
        hits = sum(len(a & b) for a, b in zip(found["exact"], found["chroma"], strict=True))
        print(f"  {size:,} vectors: recall@10 of Chroma {hits / sum(map(len, found['exact'])):.4f}", flush=True)


PLACES = (
    "harbour",
    "mill",
    "library",
    "observatory",
    "bakery",
    "lighthouse",
    "chapel",
    "workshop",
    "garden",
    "archive",
)
OWNERS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Hazel", "Juniper", "Larch", "Maple")
TOPICS = (
    ("opens at {v} o'clock in the morning", "When in the morning do the doors of {n} open?", 12),
    ("keeps {v} chairs for visitors", "How many seats are there for guests in {n}?", 90),
    ("was painted in the year 18{v:02}", "In which year did {n} get its paint?", 99),
    ("lies {v} kilometres from the station", "How far is it to {n} if you come by train?", 60),
    ("charges {v} crowns for a ticket", "What does it cost to enter {n}?", 80),
    ("employs {v} people", "How large is the staff of {n}?", 70),
    ("owns {v} clocks", "What number of timepieces belongs to {n}?", 40),
    ("has {v} windows to the south", "On its southern side, how many panes has {n}?", 50),
    ("closes for {v} days in winter", "For how long is {n} shut in the cold season?", 45),
    ("uses {v} barrels of oil a year", "How much oil does {n} burn in twelve months?", 65),
)


def planted(n: int, seed: int = 0) -> list[tuple[str, str, str | None]]:
    """(fact, question in other words, a later version of the fact or None)."""
    draw = random.Random(seed)
    found: list[tuple[str, str, str | None]] = []
    for number in range(n):
        owner, place = OWNERS[number // 100 % 10], PLACES[number // 10 % 10]
        statement, question, high = TOPICS[number % 10]
        name = f"the {place} of {owner}" if n <= 1000 else f"the {place} of {owner} {number // 1000}"
        first, second = draw.sample(range(1, high), 2)
        sentence = f"{name[0].upper()}{name[1:]} {statement}."
        later = sentence.format(v=second) if number % 3 == 0 else None
        found.append((sentence.format(v=first), question.format(n=name), later))
    return found


def facts(options: argparse.Namespace, folder: Path) -> None:
    """Planted facts, asked in other words."""
    known = planted(options.facts)
    for embedder in (MiniLM(), HashingEmbedder()):
        with MemoryStore(folder / f"facts-{embedder.id.replace('/', '-')}.sqlite", embedder, "exact") as store:
            store.add("facts", [fact for fact, _, _ in known], created_at=NOW - 60 * DAY)
            store.add("facts", [later for _, _, later in known if later], created_at=NOW - DAY)
            weights = {"relevance": 1.0, "recency": 0.1, "importance": 0.0}
            asked = [
                RecallRequest("facts", question, k=5, now=NOW, weights=weights, near_duplicate=None, decay=0.999)
                for _, question, _ in known
            ]
            answers = [[each.text for each in answer] for answer in store.recall_many(asked)]
        hits = newest = updated = 0
        for (fact, _, later), answer in zip(known, answers, strict=True):
            hits += (later or fact) in answer
            if later:
                updated += 1
                newest += later in answer and (fact not in answer or answer.index(later) < answer.index(fact))
        print(f"  {embedder.id:18} recall@5 {hits / len(known):.3f}   newest wins {newest / updated:.3f}", flush=True)


def main() -> int:
    """Parse the command line and run what it names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=[], metavar="PART", help="speed, recall, facts; all by default")
    parser.add_argument("--collections", type=int, default=300)
    parser.add_argument("--each", type=int, default=2000)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--facts", type=int, default=1000)
    parser.add_argument("--without-chroma", action="store_true")
    options = parser.parse_args()
    parts: dict[str, Callable[[argparse.Namespace, Path], None]] = {"speed": speed, "recall": recall, "facts": facts}
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    for name, part in parts.items():
        if name in (options.parts or parts):
            print(name, flush=True)
            with tempfile.TemporaryDirectory() as folder:
                part(options, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
