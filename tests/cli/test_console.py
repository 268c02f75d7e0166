"""Everything printed goes through the console, which spells out characters that are not visible, whoever wrote them."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.text import Text

import debate
from debate.cli.console import LogLines, block, escape_controls, line, name, open_console, say, table, visible_lines
from tests.scripts_loader import REPOSITORY

PACKAGE = Path(debate.__file__).parent
EVIL = "\x1b[31mRED\x07\x1b]0;pwn\x07\x9b1m\r\u202eevil\u200b"
SPELLED = r"\x1b[31mRED\x07\x1b]0;pwn\x07\x9b1m\x0d\u202eevil\u200b"


@pytest.mark.parametrize(
    ("hidden", "spelled"),
    [
        ("a\u200bb", r"a\u200bb"),
        ("a\u00adb", r"a\xadb"),
        ("\ufeffa", r"\ufeffa"),
        ("a\u2060b\u2063", r"a\u2060b\u2063"),
        ("a\u3164", r"a\u3164"),
        ("a\U000e0041", r"a\U000e0041"),
        ("general/Critic\u200d", r"general/Critic\u200d"),
        ("caf\u00e9\u200c", "caf\u00e9\\u200c"),
        ("a\ufe0f", r"a\ufe0f"),
        ("a\ud800b", r"a\ud800b"),
    ],
)
def test_invisible_characters_are_spelled_out(hidden: str, spelled: str) -> None:
    assert escape_controls(hidden) == visible_lines(hidden) == spelled


@pytest.mark.parametrize("text", ["می\u200cخواهم", "क्\u200dष", "👩\u200d🔬", "🏳\ufe0f\u200d🌈", "e\u0301", "日本語"])
def test_characters_that_shape_a_script_or_an_emoji_stay(text: str) -> None:
    assert escape_controls(text) == visible_lines(text) == text


def test_whatever_is_printed_is_spelled_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    made = table("text")
    made.add_row(EVIL)
    console = open_console()
    for each in (EVIL, Text(EVIL), line(EVIL), block(EVIL), name(EVIL), made):
        console.print(each)
    say(EVIL)
    open_console(stderr=True).print(EVIL)
    captured = capsys.readouterr()
    for control in ("\x1b[31m", "\x1b]", "\x07", "\x9b", "\r", "\u202e", "\u200b"):
        assert control not in captured.out + captured.err
    assert captured.out.count(r"\u202eevil") == 7
    assert captured.err == SPELLED + "\n"


def test_one_line_stays_one_line_however_long(capsys: pytest.CaptureFixture[str]) -> None:
    say("x" * 500, "one\nerror: forged")
    assert capsys.readouterr().out == "x" * 500 + "\none\\nerror: forged\n"


def test_a_record_of_the_log_is_spelled_out(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("elsewhere")
    log.addHandler(handler := LogLines())
    log.warning("the server said %s\nand more", EVIL)
    log.removeHandler(handler)
    assert capsys.readouterr().err == f"the server said {SPELLED}\nand more\n"


def test_what_is_too_long_for_a_table_is_cut_with_its_length() -> None:
    assert name("n" * 10_000).plain == "n" * 120 + "... (10,000 characters)"
    assert len(line("n" * 4_000_000).plain) < 1_100
    assert len(visible_lines("n" * 200)) == 200


def test_a_list_with_a_long_id_and_a_huge_text_is_short_and_quick(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    made = table("task", "text")
    made.columns[0].overflow = "fold"
    made.add_row(name("i" * 10_000), line("word " * 800_000))
    open_console().print(made)
    assert len(capsys.readouterr().out.splitlines()) < 40


# ---- nobody goes around

STREAMS = {"sys.stdout.write", "sys.stderr.write", "logging.StreamHandler"}
AROUND = {"print", "echo", "secho", "pprint", "rprint", "Console", "Progress"}


def programs() -> list[Path]:
    """Files whose output may hold what a model or a user wrote."""
    return sorted([*PACKAGE.rglob("*.py"), *(REPOSITORY / "scripts" / "conforming").glob("*.py")])


def ways_around(source: str) -> Iterator[str]:
    """The calls in a program that write to the terminal by themselves."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in AROUND or called.endswith((".echo", ".secho", ".Console")):
                yield called
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in STREAMS:
            yield ast.unparse(node)


@pytest.mark.parametrize("path", programs(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_everything_reaches_the_terminal_through_the_console(path: Path) -> None:
    allowed = {  # a progress of ours, which is given a console; a line of counts and of names that the caller gave
        "execution.py": {"Progress"},
        "align.py": {"Progress"},
        "live_line.py": {"Console", "print"},
    }.get(path.name, set[str]())
    assert set(ways_around(path.read_text(encoding="utf-8"))) <= allowed


@pytest.mark.parametrize(
    "source",
    [
        "import typer\ntyper.echo(x)",
        "print(x)",
        "sys.stderr.write(x)",
        "from rich.console import Console\nConsole().print(x)",
        "log.handlers = [logging.StreamHandler()]",
    ],
)
def test_a_way_around_is_seen(source: str) -> None:
    assert list(ways_around(source))


def test_json_for_other_programs_is_json_still(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"text": EVIL, "more": ["é", 1]}
    say(*json.dumps(value, indent=2).splitlines())
    assert json.loads(capsys.readouterr().out) == value
