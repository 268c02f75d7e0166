"""Compare the package with the original programs that it follows.

    scripts/conformance CASES.json

prints one line per case:

    pass      ID               the same result
    original  ID               the same result by the original's own rule, or by an option that asks for it
    differs   ID  WHY          the case records a fault (its tag ends in -bug), and ours does right
    FAIL      ID  WHY          anything else

and a closing count. Exit code 0 without a FAIL, 1 with one, 2 when the file cannot be read.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from conforming.answers import answer_to
from conforming.cases import Case, read_cases
from conforming.verdicts import Verdict, judge
from debate.cli.console import say
from debate.errors import InputError

KINDS = ("pass", "original", "differs", "FAIL")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, judge every case, and print; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="conformance",
        description=__doc__,
        epilog="example: scripts/conformance cases.json | grep -v ^pass",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", type=Path, metavar="CASES.json", help="cases recorded by running the originals")
    path: Path = parser.parse_args(arguments).cases
    try:
        cases = read_cases(path)
    except InputError as error:
        say(*f"error: {error}".split("\n"), err=True)
        return 2
    counts: Counter[str] = Counter()
    for case in cases:
        verdict = verdict_on(case)
        counts[verdict.kind] += 1
        say(f"{verdict.kind:8}  {case.id:20}  {verdict.detail}".rstrip())
    say(f"{len(cases)} cases: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS))
    return 1 if counts["FAIL"] else 0


def verdict_on(case: Case) -> Verdict:
    """The verdict on one case, also where nothing answers it."""
    if answer := answer_to(case):
        return judge(case, answer)
    return Verdict("FAIL", f"nothing answers {case.function!r}")
