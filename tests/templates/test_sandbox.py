"""The sandbox: what would build a gigabyte or work for hours is refused, in a process that could neither.

The attacks run in a process of their own, with a limit on its memory and a watchdog.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from debate.errors import TemplateError
from debate.flow import join
from debate.templates import Templates

TWICE = "{% set ns = namespace(s=START) %}{% for i in range(40) %}{% set ns.s = AGAIN %}{% endfor %}"
ONCE = "{% set s = range(99999) | join %}{% for i in range(99999) %}{% set x = AGAIN %}{% endfor %}"


def twice(again: str, start: str = "'a'", then: str = "") -> str:
    """A template that doubles something 40 times."""
    return TWICE.replace("START", start).replace("AGAIN", again) + then


def often(what: str) -> str:
    """A template that does something with half a million characters 100,000 times."""
    return ONCE.replace("AGAIN", what)


ATTACKS = {
    "zfill": "{{ 'a'.zfill(1000000000) }}",
    "rjust": "{{ 'a'.rjust(1000000000) }}",
    "ljust": "{{ 'a'.ljust(1000000000) }}",
    "center": "{{ 'a'.center(1000000000) }}",
    "center of bytes": "{{ 'a'.encode().center(1000000000) }}",
    "the filter center": "{{ 'a' | center(1000000000) }}",
    "expandtabs": "{{ '\\t'.expandtabs(1000000000) }}",
    "to_bytes": "{{ (1).to_bytes(1000000000, 'big') }}",
    "indent": "{{ 'a' | indent(1000000000, true) }}",
    "indent with a text": "{{ ('a\\n' | indent(99999, true, true)) | indent(99999, true, true) }}",
    "a percent format": "{{ '%1000000000d' | format(1) }}",
    "a percent format with a star": "{{ '%*d' | format(1000000000, 1) }}",
    "format": "{{ '{:1000000000d}'.format(1) }}",
    "format_map": "{{ '{a:1000000000d}'.format_map({'a': 1}) }}",
    "format by map": "{{ ['{:1000000000d}'] | map('format', 1) | list }}",
    "doubling by ~": twice("ns.s ~ ns.s", then="{{ ns.s }}"),
    "doubling by +": twice("ns.s + ns.s"),
    "doubling of lists": twice("ns.s + ns.s", "[1]"),
    "nested lists": twice("[ns.s, ns.s]", "[1]", "{{ ns.s }}"),
    "nested lists in a filter": twice("[ns.s, ns.s]", "[1]", "{{ ns.s | upper }}"),
    "nested lists compared": twice("[ns.s, ns.s]", "[1]", "{{ ns.s == 1 }}"),
    "doubling by replace": twice("ns.s | replace('a', 'aa')"),
    "doubling by the method replace": twice("ns.s.replace('a', 'aa')"),
    "doubling by join": twice("[ns.s, ns.s] | join"),
    "doubling by the method join": twice("''.join([ns.s, ns.s])"),
    "doubling by a block": "{% macro m(s) %}{{ s }}{{ s }}{% endmacro %}" + twice("m(ns.s)"),
    "slice": "{{ [1] | slice(1000000000) | list }}",
    "slice in a loop": "{% for i in [1] | slice(1000000000) %}{% endfor %}",
    "batch": "{{ [1] | batch(1000000000, 0) | list }}",
    "wordwrap": "{{ ('a ' | indent(99999, true)) | wordwrap(1, wrapstring=('a' | indent(99999, true))) }}",
    "sum of lists": "{{ (range(99999) | map('string') | map('list') | list) | sum(start=[]) }}",
    "nested ranges": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "nested lists of numbers": (
        "{% set l = range(99999) | list %}{% for i in l %}{% for j in l %}{% endfor %}{% endfor %}"
    ),
    "literals in literals": "{% for a in [1, 2, 3, 4, 5, 6, 7, 8, 9, 0] %}" * 12 + "{% endfor %}" * 12,
    "iterators": (
        "{% for i in range(99999) | map('string') %}{% for j in range(99999) | map('string') %}{% endfor %}{% endfor %}"
    ),
    "lists in a loop": often("range(99999) | list"),
    "filters in a loop": often("s | upper"),
    "methods in a loop": often("s.split('1')"),
    "slices in a loop": often("s[1:]"),
    "comparing in a loop": often("'no' in s"),
    "printing in a loop": "{% for i in range(99999) %}{{ x }}{% endfor %}",
    "a macro that calls itself twice": (
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}"
    ),
    "recursive loops": "{% for a in [1, 2, 3, 4] recursive %}{{ loop([1, 2, 3, 4]) if loop.depth < 60 }}{% endfor %}",
}

_ATTACKED = """
import json, resource, sys, time
from pathlib import Path
from debate.errors import TemplateError
from debate.templates import Templates
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
folder = Path(sys.argv[1])
for name, source in json.load(sys.stdin).items():
    print(json.dumps(["begins", name, 0]), flush=True)
    (folder / "t.j2").write_text(source, encoding="utf-8")
    began = time.process_time()
    try:
        Templates(folder).render("t.j2", {"x": "x" * 1000})
        came = "rendered"
    except TemplateError as error:
        came = str(error)
    print(json.dumps([came, name, time.process_time() - began]), flush=True)
"""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, float]]:
    """What came of each attack, and the seconds of work until it was refused; only those that came to an end."""
    command = [sys.executable, "-c", _ATTACKED, str(tmp_path_factory.mktemp("attacks"))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        out, _ = process.communicate(json.dumps(ATTACKS), timeout=150)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    found: list[tuple[str, str, float]] = [json.loads(line) for line in out.splitlines()]
    return {name: (came, seconds) for came, name, seconds in found if came != "begins"}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_builds_a_gigabyte_or_works_for_hours_is_soon_refused(
    attacked: dict[str, tuple[str, float]], name: str
) -> None:
    assert name in attacked, "it did not end"
    came, seconds = attacked[name]
    assert "t.j2" in came, came
    assert "more memory" not in came
    assert seconds < 15


@pytest.fixture
def rendered(tmp_path: Path) -> Callable[..., str]:
    """What a template's source comes to."""

    def render(source: str, **about: Any) -> str:
        (tmp_path / "t.j2").write_text(source, encoding="utf-8")
        return join([Templates(tmp_path).render("t.j2", about)])

    return render


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ 3 * 4 }} {{ 7 % 4 }} {{ 2 ** 5 }} {{ 1 + 2.5 }}", "12 3 32 3.5"),
        ("{{ 'a' ~ 1 ~ x }}{{ 'b' + x }}{{ [1] + [2] }}", "a1xbx[1, 2]"),
        ("{{ x | indent(2, true) }}|{{ 'a-b' | replace('-', '+') }}|{{ [1, 2] | join(', ') }}", "  x|a+b|1, 2"),
        ("{{ ', '.join(['a', 'b']) }} {{ 'a-b'.replace('-', '+') }} {{ 'abc'[1:] }} {{ 'abc'[-1] }}", "a, b a+b bc c"),
        ("{{ [3, 1, 2] | sort | join }} {{ [{'n': 1}, {'n': 2}] | sum(attribute='n') }} {{ [1, 2] | sum }}", "123 3 3"),
        ("{% for a in [1, 2, 3] if a != 2 %}{{ loop.index }}/{{ loop.length }} {% endfor %}", "1/2 2/2 "),
        ("{% for a, b in {'x': 1}.items() %}{{ a }}{{ b }}{% else %}no{% endfor %}", "x1"),
        ("{% for a in [] %}yes{% else %}no{% endfor %}", "no"),
        ("{% for a in [1, [2]] recursive %}{{ loop(a) if a is iterable else a }}{% endfor %}", "12"),
        ("{% for row in [1, 2, 3] | batch(2, '-') %}{{ row | join }} {% endfor %}", "12 3- "),
        ("{{ 'x' in 'xyz' and 1 < 2 < 3 and x == 'x' }}", "True"),
        ("{{ {'format': 1, 'center': 2}.format }}", "1"),
        ("{{ range(3) | map('string') | list }}", "['0', '1', '2']"),
        ("{{ ('word ' * 1 if false else 'word word') | wordwrap(4) }}", "word\nword"),
    ],
)
def test_what_templates_need_is_there(rendered: Callable[..., str], source: str, text: str) -> None:
    assert rendered(source, x="x") == text


def test_long_texts_are_worked_on(rendered: Callable[..., str]) -> None:
    text = "a line of words\n" * 60_000
    assert (
        rendered("{{ x | trim | indent(4) | replace('words', 'letters') | upper }}", x=text).count("LETTERS") == 60_000
    )


def test_memory_that_runs_out_is_an_error_of_the_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.j2").write_text("{{ x | upper }}", encoding="utf-8")
    templates = Templates(tmp_path)

    def upper(text: str) -> str:
        raise MemoryError

    monkeypatch.setitem(templates._environment.filters, "upper", upper)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(TemplateError, match="more memory than there is"):
        templates.render("t.j2", {"x": "x"})
