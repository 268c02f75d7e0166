"""What `debate ask` puts on the screen, word for word. `SNAPSHOTS=write` writes the expected screens anew."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from debate.backends import Call
from tests.command_line import debate

Scores = tuple[int, int]
SCREENS = Path(__file__).parents[1] / "data" / "screens"
QUESTION = "Which planet has the shortest year?"
ANSWERS = (
    "Mercury: 88 days.",
    "Venus, which is nearest to the Earth and shines so brightly that people have called it the evening star.",
)
FOUR = (*ANSWERS, "Mercury.", "Naïvely one would say the Earth 🌍: it takes one year.")
OPINIONS: dict[str, dict[str, tuple[str, Scores]]] = {
    "Mercury: 88": {
        "Critic": ("True, and it says how long.", (9, 9)),
        "Supporter": ("Right, with the figure.", (9, 9)),
    },
    "Mercury.": {
        "Critic": ("True, but bare.", (7, 8)),
        "Supporter": ("It names the planet that was asked for.", (8, 8)),
    },
    "Venus": {
        "Critic": ("False: its year is 225 days.", (1, 1)),
        "Supporter": ("It is at least about a planet.", (4, 2)),
    },
    "Naïvely": {
        "Critic": ("False.", (0, 0)),
        "Supporter": ("A joke – “one year”, indeed.", (2, 1)),
    },
}
"""By the beginning of a candidate, what agents say of it in two rounds."""
NEUTRAL: tuple[str, Scores] = ("I keep to the days.", (5, 5))


def speak(call: Call) -> str:
    """A Critic is strict; a Supporter finds something good everywhere, and hears the Critic."""
    r: int = call.info["round"]
    opinions = _opinions(call)
    assert call.schema is not None
    components: list[str] = _components(call.schema)
    candidates = {
        label: {"comment": comment, "scores": dict.fromkeys(components, scores[r])}
        for label, (comment, scores) in opinions.items()
    }
    overall = {"Critic": "A year is one way around the Sun.", "Supporter": "Mercury it is, as the Critic says."}
    return json.dumps({"overall": overall.get(call.info["agent"], "I count days."), "candidates": candidates})


def _opinions(call: Call) -> dict[str, tuple[str, Scores]]:
    """By label, a comment and a score for each of two rounds."""
    texts = call.messages[-1]["content"]
    found = {
        label: next(name for name in OPINIONS if re.search(rf"\[candidate {label} \w+\]\n{name}", texts))
        for label in call.info["labels"]
    }
    return {label: OPINIONS[name].get(call.info["agent"], NEUTRAL) for label, name in found.items()}


def _components(schema: Any) -> list[str]:
    one = next(iter(schema["properties"]["candidates"]["properties"].values()))
    return list(one["properties"]["scores"]["properties"])


def screen(monkeypatch: pytest.MonkeyPatch, columns: int, encoding: str, *arguments: str) -> str:
    """What a console of so many columns shows, without what differs each time."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "DEBATE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert debate(monkeypatch, "ask", *arguments, "--backend", f"{__name__}:speak", "--rounds", "2") == 0
    stdout.flush()
    assert isinstance(stdout.buffer, io.BytesIO)
    text = stdout.buffer.getvalue().decode(encoding)
    text = re.sub(r"\d+\.\d s$", "0.0 s", text, flags=re.MULTILINE)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("name", "columns", "encoding", "answers"),
    [
        ("ask.80", 80, "utf-8", ANSWERS),
        ("ask.120", 120, "utf-8", ANSWERS),
        ("ask.ascii", 80, "ascii", ANSWERS),
        ("ask-four.80", 80, "utf-8", FOUR),
        ("ask-four.ascii", 80, "ascii", FOUR),
    ],
)
def test_the_screen_is_the_one_that_was_looked_at(
    name: str, columns: int, encoding: str, answers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = screen(monkeypatch, columns, encoding, QUESTION, *answers, "--best", "1")
    file = SCREENS / f"{name}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        SCREENS.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")
    assert max(map(len, found.splitlines())) <= columns
    assert "\x1b" not in found
