"""Take a node from a Ray cluster and add another while a fleet works there, and count what was lost and paid twice.

    scripts/bench fleet_ray --store URL [--repetitions 3] [--debates 120] [--workers 4] [--seed 0]

The model is that of `bench crashes`: a server that answers after 20 to 100 ms and counts requests. Ray's own local
cluster has two nodes with room for half of the workers each. `debate fleet --launcher ray` works on a run on
PostgreSQL; when a random share of the requests has been seen (20 to 60 %), the second node is killed, a second later
another is added, and the fleet starts the lost workers again there. Then:

    finished    the fleet ended with exit code 0
    turns       each (task, round, agent) is in the store exactly once
    same        results.jsonl is equal, by task, to that of one process that nobody killed (seconds apart)
    paid twice  requests beyond the turns are at most one for each debate that was open on the lost node

Prints one line a fault and the figures of each repetition; exit code 1 when anything of this does not hold.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from benchmarks.crashes import AGENTS, AT_ONCE, ROUNDS, Model, model, results, start, write_tasks
from debate.sql.connect import normalize_url

LATENCY = 0.02, 0.1


@dataclass(frozen=True)
class Outcome:
    """What one repetition came to."""

    faults: list[str]
    seconds: float
    extra: int
    lost: int
    """Workers that ended with their node."""
    most: int
    """Debates that may have been open on it."""

    def __str__(self) -> str:
        what = "; ".join(self.faults) or "finished, complete, same results"
        paid = f"{self.extra} calls paid twice, of at most {self.most} open at the loss of {self.lost} workers"
        return f"{what}; {paid}; {self.seconds:.0f} s"


@contextmanager
def cluster(workers: int) -> Generator[Any]:
    """Ray's own cluster on this machine, with one node so far."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    node = {"num_cpus": workers // 2, "object_store_memory": 100 << 20, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=node)
    try:
        yield made
    finally:
        made.shutdown()


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a command that must succeed."""
    _, said = process.communicate()
    assert process.returncode == 0, said.decode()


def repeat(ray: Any, evalset: Path, out: Path, judge: Model, expected: Any, arguments: Any, share: float) -> Outcome:
    """One run through the cluster, which loses a node at a share of the requests and is given another."""
    turns = len(expected) * AGENTS * ROUNDS
    half = arguments.workers - arguments.workers // 2
    node: dict[str, Any] = {"num_cpus": half, "object_store_memory": 100 << 20}
    preparing = start(evalset, out, judge.url, arguments.store, "--prepare")
    second = ray.add_node(**node)
    finish(preparing)
    before, began = judge.requests(), time.monotonic()
    fleet = subprocess.Popen(
        [
            *(sys.executable, "-m", "debate", "fleet", str(out), "--workers", str(arguments.workers)),
            *("--launcher", "ray", "--address", ray.address),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while judge.requests() - before < share * turns and fleet.poll() is None:
            time.sleep(0.05)
        ray.remove_node(second, allow_graceful=False)
        time.sleep(1)
        third = ray.add_node(**node)
        _, told = fleet.communicate(timeout=600)
    finally:
        fleet.kill()
    ray.remove_node(third)
    lost = len(re.findall(r"worker \d+ died, lost", told))
    extra = judge.requests() - before - turns
    faults = list(faults_of(out, expected, turns, arguments.store))
    if fleet.returncode != 0:
        faults.append(f"exit code {fleet.returncode}: {told[-2000:]}")
    if not lost:
        faults.append(f"no worker was lost: {told[-2000:]}")
    if extra > lost * AT_ONCE:
        faults.append("more calls were paid twice than were open")
    return Outcome(faults, time.monotonic() - began, extra, lost, lost * AT_ONCE)


def faults_of(out: Path, expected: dict[str, Any], turns: int, store: str) -> Iterator[str]:
    """What is wrong with a run that says it is done."""
    if results(out) != expected:
        yield "results differ from those of a run that nobody killed"
    engine = create_engine(normalize_url(store))
    with engine.connect() as connection:
        run = connection.execute(text("SELECT id FROM runs WHERE name = :name"), {"name": str(out)}).scalar_one()
        query = text("SELECT position, round, agent FROM turns WHERE run_id = :run")
        places = Counter(tuple(row) for row in connection.execute(query, {"run": run}))
        query = text("SELECT count(*) FROM calls WHERE run_id = :run")
        calls = connection.execute(query, {"run": run}).scalar_one()
    engine.dispose()
    if len(places) != turns or set(places.values()) != {1}:
        yield f"{len(places)} turns instead of {turns}, or one of them twice"
    if calls != turns:
        yield f"{calls} calls in the store instead of {turns}"


def main() -> int:
    """Parse, run, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="address of a PostgreSQL database that may be written")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--debates", type=int, default=120)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    fine = True
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary).resolve()
        evalset = home / "tasks.jsonl"
        write_tasks(evalset, arguments.debates)
        with model(home, *LATENCY) as judge:
            alone = start(evalset, home / "alone", judge.url, None)
            with cluster(arguments.workers) as ray:
                finish(alone)
                expected = results(home / "alone")
                for n in range(arguments.repetitions):
                    share = chance.uniform(0.2, 0.6)
                    outcome = repeat(ray, evalset, home / f"run{n}", judge, expected, arguments, share)
                    fine = fine and not outcome.faults
                    print(f"repetition {n + 1}, node lost at {share:.0%}: {outcome}", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
