"""Run a hundred thousand debates and a million tasks through four workers on one PostgreSQL database.

    scripts/bench million FOLDER [--debates 100000] [--tasks 1000000] [--workers 4] [--server URL] [--detach]

Two runs, one after the other, each in a database of its own on the server of `--server` or DEBATE_TEST_POSTGRES
(`scripts/postgres start`): debates of 9 turns, then tasks of one turn. The model is scripted and answers at once with
about 1,500 characters. When half of a run is done all its workers are killed, and as many are started again.

FOLDER/figures.json is written every few seconds. The same command goes on where it stopped; what is done stays done.
`--detach` runs it in the background with its output in FOLDER/log, and says how to stop it.

    turns_per_second   from the first result on, without the time in which nobody worked
    cpu_ms_per_turn    of the workers, their start included
    peak_mib           of every worker, in the order in which they were started
    first_result_s     from the start to the first result: of the first session the eval set is read meanwhile; of the
                       one after the kill this is what resuming takes
    again              seconds until the same command, and `debate resume`, say that the run is finished; their peak MiB
    bytes_per_turn     of the whole database, indexes included, after the run; and of each table
    fsync              of the server: with `off`, commits cost less than on a real one
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from benchmarks.fleet import Fleet, Worker, administer, fleet_of
from benchmarks.store import write_evalset
from debate.data_files import data_folder
from debate.files import write_text
from debate.hashing import digest
from debate.sql.connect import connect, normalize_url

SAMPLE_SECONDS = 5.0
TURNS = {"debates": 9, "tasks": 1}
"""Of each task of a run."""


def settings_of(kind: str, folder: Path) -> tuple[str, ...]:
    """Flags of a run: of a debate of 3 agents and 3 rounds, or of one agent and one round."""
    if kind == "debates":
        return ("--rounds", "3")
    profile = yaml.safe_load((data_folder("personas") / "general.yaml").read_text(encoding="utf-8"))
    file = folder / "one.yaml"
    file.write_text(yaml.safe_dump({**profile, "name": "one", "personas": profile["personas"][:1]}), encoding="utf-8")
    return ("--rounds", "1", "--profile", str(file))


def spent(worker: Worker) -> dict[str, float]:
    """Peak memory and CPU seconds of a worker that has not ended; empty for one that has."""
    try:
        status = Path(f"/proc/{worker.process.pid}/status").read_text()
        times = Path(f"/proc/{worker.process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return {}
    peak = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
    return (
        {"peak_mib": peak / 1024, "cpu": (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")} if peak else {}
    )


@dataclass
class Figures:
    """What is known so far, in a file that is written anew at every change."""

    file: Path
    data: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.file.exists():
            self.data = json.loads(self.file.read_text(encoding="utf-8"))

    def write(self) -> None:
        """Bring the file up to date, whole or not at all."""
        write_text(self.file, json.dumps(self.data, indent=1) + "\n")


@dataclass
class LargeRun:
    """One of the two runs, and what is known of it."""

    kind: str
    n: int
    """Tasks."""
    folder: Path
    server: str
    workers: int
    figures: Figures

    @property
    def known(self) -> dict[str, Any]:
        """Its part of the figures."""
        return self.figures.data.setdefault(self.kind, {"tasks": self.n, "turns": self.n * TURNS[self.kind]})

    @property
    def database(self) -> str:
        """A name that this folder's runs alone have."""
        return f"debate_million_{self.kind}_{digest(str(self.folder.resolve()))[:8]}"

    @property
    def store(self) -> str:
        """The address of its store."""
        return f"{self.server.rpartition('/')[0]}/{self.database}"

    @property
    def evalset(self) -> Path:
        """Its tasks."""
        return self.folder / f"{self.kind}.jsonl"

    @cached_property
    def engine(self) -> Engine:
        """To its database."""
        return connect(normalize_url(self.store))

    def ask(self, statement: str) -> list[Any]:
        """The rows of a query."""
        with self.engine.connect() as connection:
            return list(connection.execute(text(statement)).all())

    def count(self, table: str) -> int:
        """Rows of a table; 0 where there is none yet."""
        try:
            return self.ask(f"SELECT count(*) FROM {table}")[0][0]
        except SQLAlchemyError:
            return 0

    def inserted(self) -> int:
        """Evaluations that were written, by the server's own count, which costs it nothing."""
        counted = "SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables WHERE relname = 'evaluations'"
        return int(self.ask(counted)[0][0])

    def measure(self) -> None:
        """Bring the run to its end, from wherever it is."""
        if self.known.get("is_done"):
            return
        if not self.known.get("is_prepared"):
            self.prepare()
        while (done := self.count("evaluations")) < self.n:
            self.session(done)
        self.known["again"] = [self.again("run"), self.again("resume")]
        self.known.update(self.sizes(), is_done=True)
        work = sum(each["seconds"] for each in self.known["sessions"])
        turns = sum(each["results"] for each in self.known["sessions"]) * TURNS[self.kind]
        cpu = sum(worker["cpu"] for each in self.known["sessions"] for worker in each["workers"])
        self.known.update(turns_per_second=turns / work, cpu_ms_per_turn=1000 * cpu / self.known["turns"])
        self.figures.write()
        self.engine.dispose()
        administer(self.server, f"DROP DATABASE {self.database} WITH (FORCE)")
        shutil.rmtree(self.folder / self.kind)
        self.evalset.unlink()

    def prepare(self) -> None:
        """Write the tasks, and make an empty database."""
        write_evalset(self.evalset, self.n)
        administer(self.server, f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")
        administer(self.server, f"CREATE DATABASE {self.database}")
        (self.folder / self.kind).mkdir(exist_ok=True)
        self.known["is_prepared"] = True
        self.known["fsync"] = administer(self.server, "SHOW fsync")
        self.figures.write()

    def fleet(self) -> Fleet:
        """Its workers, none of them started."""
        more = settings_of(self.kind, self.folder)
        return Fleet(self.folder / self.kind, self.evalset, self.store, more=more, is_logged=False)

    def session(self, before: int) -> None:
        """Work until all is done, or until half of it is, where nobody was killed yet."""
        until = self.n if self.known.get("killed_at") else self.n // 2
        session: dict[str, Any] = {"before": before, "results": 0, "seconds": 0.0, "workers": [], "samples": []}
        self.known.setdefault("sessions", []).append(session)
        with fleet_of(self.fleet()) as fleet:
            began, base = time.monotonic(), self.inserted()
            for _ in range(self.workers):
                fleet.start()
            session["workers"] = [{} for _ in fleet.workers]
            first = 0.0
            while fleet.alive() and (done := before + self.inserted() - base) < until:
                if done > before and not first:
                    first = time.monotonic()
                    session["first_result_s"] = first - began
                self.sample(session, fleet, done - before, time.monotonic() - first if first else 0.0)
                time.sleep(0.25)
            if until < self.n:
                for worker in fleet.alive():
                    worker.process.kill()
                    worker.process.wait()
                    worker.killed = time.monotonic()
                self.known["killed_at"] = {"results": self.count("evaluations"), "calls": self.count("calls")}
            else:
                while fleet.alive():
                    self.sample(session, fleet, session["results"], session["seconds"])
                    time.sleep(0.1)
            session["results"] = self.count("evaluations") - before
            session["seconds"] = time.monotonic() - (first or began)
            self.figures.write()
            for fault in fleet.end():
                raise SystemExit(fault)

    def sample(self, session: dict[str, Any], fleet: Fleet, results: int, seconds: float) -> None:
        """Note how far it is, and what the workers have used."""
        for at, worker in enumerate(fleet.workers):
            session["workers"][at] |= spent(worker)
        session["results"], session["seconds"] = results, seconds
        last = session["samples"][-1]["seconds"] if session["samples"] else -SAMPLE_SECONDS
        if seconds >= last + SAMPLE_SECONDS:
            peaks = [round(each.get("peak_mib", 0)) for each in session["workers"]]
            session["samples"].append({"seconds": round(seconds, 1), "results": results, "peak_mib": peaks})
            self.figures.write()
            print(f"{self.kind}: {session['before'] + results:,} of {self.n:,}, peak MiB {peaks}", flush=True)

    def again(self, command: str) -> dict[str, Any]:
        """Start the finished run once more."""
        with fleet_of(self.fleet()) as fleet:
            worker = fleet.start(resume=command == "resume")
            _, status, usage = os.wait4(worker.process.pid, 0)
            worker.process.returncode = os.waitstatus_to_exitcode(status)
            for fault in fleet.end():
                raise SystemExit(fault)
            return {
                "command": command,
                "seconds": time.monotonic() - worker.started,
                "peak_mib": usage.ru_maxrss / 1024,
            }

    def sizes(self) -> dict[str, Any]:
        """Bytes of the database, and of its tables with their indexes, for each turn; and what is in them."""
        tables = self.ask("SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables")
        by_table = {name: round(size / self.known["turns"]) for name, size in tables}
        ((whole,),) = self.ask("SELECT pg_database_size(current_database())")
        lines = (self.fleet().out() / "results.jsonl").open("rb")
        with lines:
            n_lines = sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b""))
        counted = {"calls": self.count("calls"), "evaluations": self.count("evaluations"), "result_lines": n_lines}
        if (counted["calls"], counted["evaluations"], n_lines) != (self.known["turns"], self.n, self.n):
            raise SystemExit(f"{self.kind}: {counted} instead of {self.known['turns']} calls and {self.n} results")
        return {**counted, "bytes_per_turn": whole / self.known["turns"], "bytes_per_turn_by_table": by_table}


def told(kind: str, known: dict[str, Any]) -> str:
    """The figures of a run in a few lines."""
    sessions = known["sessions"]
    peaks = [round(worker.get("peak_mib", 0)) for session in sessions for worker in session["workers"]]
    again = [f"{each['command']} {each['seconds']:.1f} s {each['peak_mib']:.0f} MiB" for each in known["again"]]
    first = [f"{session.get('first_result_s', 0):.1f}" for session in sessions]
    tables = sorted(known["bytes_per_turn_by_table"].items(), key=lambda item: -item[1])
    return f"""{kind}: {known["tasks"]:,} tasks, {known["turns"]:,} turns, all in the store once; fsync {known["fsync"]}
    {known["turns_per_second"]:,.0f} turns/s; {known["cpu_ms_per_turn"]:.2f} ms of the workers' CPU per turn
    peak MiB of the workers {peaks}
    all killed at {known["killed_at"]}; seconds to the first result of each session: {", ".join(first)}
    finished already: {", ".join(again)}
    {known["bytes_per_turn"]:,.0f} bytes per turn: {", ".join(f"{name} {size:,}" for name, size in tables if size)}"""


def detach(folder: Path) -> None:
    """Start the same command in a session of its own."""
    log = folder / "log"
    command = [sys.executable, __file__, *(word for word in sys.argv[1:] if word != "--detach")]
    with log.open("ab") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
    print(f"runs as process {process.pid}, output in {log}; stop it: kill -INT -- -{process.pid}")


def main() -> int:
    """Parse the command line, run both, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--debates", type=int, default=100_000, help="of 9 turns; 0 leaves them out")
    parser.add_argument("--tasks", type=int, default=1_000_000, help="of one turn; 0 leaves them out")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--server", default=os.environ.get("DEBATE_TEST_POSTGRES"), help="PostgreSQL's address")
    parser.add_argument("--detach", action="store_true", help="run in the background")
    options = parser.parse_args()
    if options.server is None:
        parser.error('name a server by --server, or start one: eval "$(scripts/postgres start)"')
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.detach:
        detach(options.folder)
        return 0
    figures = Figures(options.folder / "figures.json")
    for kind, n in (("debates", options.debates), ("tasks", options.tasks)):
        if n:
            LargeRun(kind, n, options.folder, options.server, options.workers, figures).measure()
            print(told(kind, figures.data[kind]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
