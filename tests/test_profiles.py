"""Profiles from files: what is taken, and that every refusal says where."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from debate.errors import ProfileError
from debate.profiles import DEFAULT_COMPONENTS, Component, MemorySettings, Persona, Profile, load_profile, profile_names
from debate.types import Sampling

PERSONA = "personas:\n- name: Critic\n  role: You look for faults.\n"
COMPONENTS = "components:\n- name: accuracy\n  description: How true it is.\n"

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str | bytes) -> Path:
        file = tmp_path / "mine.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return file

    return write_file


def refusal(path: str | Path) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    return caught.value


# The built-in profiles


@pytest.mark.parametrize(
    ("name", "personas"),
    [
        ("general", ["Critic", "Supporter", "Neutral Observer"]),
        ("prompt_tuning", ["Precision Analyst", "Goal Advocate", "Contextual Evaluator", "Style Conformist"]),
        ("chateval", ["General Public", "Critic", "News Author", "Psychologist", "Scientist"]),
    ],
)
def test_a_built_in_profile_has_its_personas_and_the_five_components(name: str, personas: list[str]) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert [persona.name for persona in profile.personas] == personas
    assert [component.name for component in profile.components] == [each.name for each in DEFAULT_COMPONENTS]


def test_every_built_in_profile_is_listed_and_loads() -> None:
    names = profile_names()
    assert {"chateval", "general", "prompt_tuning"} <= set(names)
    assert names == sorted(names)
    assert [load_profile(name).name for name in names] == names


# What is taken

EVERYTHING = """\
name: house style
description: Two who differ.
components:
- name: accuracy
  description: How true it is.
- {name: tone, description: How it sounds., weight: 0.25}
personas:
- name: Editor
  role: |
    You edit.
    Be brief.
  model: small
  sampling: {temperature: 0, top_p: 0.9, top_k: 40, min_p: 0.05, max_tokens: 256}
  agreement: 3
  memory: {collections: [style, house rules], k: 2, max_tokens: 300}
- name: Reader
  role: You read.
"""


def test_a_file_with_everything_set_is_taken_as_it_stands(write: Write) -> None:
    sampling = Sampling(temperature=0.0, top_p=0.9, top_k=40, min_p=0.05, max_tokens=256)
    memory = MemorySettings(collections=("style", "house rules"), k=2, max_tokens=300)
    editor = Persona("Editor", "You edit.\nBe brief.", model="small", sampling=sampling, agreement=3, memory=memory)
    assert load_profile(write(EVERYTHING)) == Profile(
        "house style",
        (editor, Persona("Reader", "You read.")),
        (Component("accuracy", "How true it is."), Component("tone", "How it sounds.", 0.25)),
        "Two who differ.",
    )


def test_without_components_the_five_of_the_article_apply_with_weight_one(write: Write) -> None:
    profile = load_profile(write(PERSONA))
    names = ["confidence", "relevance", "accuracy", "completeness", "timeliness"]
    assert [component.name for component in profile.components] == names
    assert profile.weights.tolist() == [1.0] * 5
    assert all(re.search(r"\b0\b.*\b10\b", component.description) for component in profile.components)


def test_a_profile_without_a_name_is_called_after_its_file(write: Write) -> None:
    assert load_profile(write(PERSONA)).name == "mine"


def test_a_path_as_a_string_is_a_file(write: Write) -> None:
    assert load_profile(str(write(PERSONA))) == load_profile(write(PERSONA))


def test_memory_left_empty_has_the_defaults_of_the_types(write: Write) -> None:
    (persona,) = load_profile(write(PERSONA + "  memory: {}\n")).personas
    assert persona.memory == MemorySettings()


def test_text_is_stripped_and_brought_to_one_unicode_form(write: Write) -> None:
    (persona,) = load_profile(write('personas:\n- {name: " Cafe\u0301 ", role: "  Rate. "}\n')).personas
    assert (persona.name, persona.role) == ("Caf\u00e9", "Rate.")


@pytest.mark.parametrize("text", ["\ufeff" + PERSONA, PERSONA.replace("\n", "\r\n")])
def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(write: Write, text: str) -> None:
    (persona,) = load_profile(write(text)).personas
    assert (persona.name, persona.role) == ("Critic", "You look for faults.")


# What is refused

BAD_FIELDS = {
    "unknown key": (PERSONA + "foo: 1\n", 4, "foo", "unknown key"),
    "misspelled key": ("personas:\n- name: A\n  rol: x\n", 3, "personas.0.rol", "unknown key (and 1 more)"),
    "duplicate key": (PERSONA + "name: a\nname: b\n", 5, "name", "duplicate key, first on line 4"),
    "weight of 2": (COMPONENTS + "  weight: 2\n" + PERSONA, 4, "components.0.weight", "must lie in [0, 1], got 2"),
    "negative weight": (
        COMPONENTS + "  weight: -1\n" + PERSONA,
        4,
        "components.0.weight",
        "must lie in [0, 1], got -1",
    ),
    "weight in words": (
        COMPONENTS + "  weight: high\n" + PERSONA,
        4,
        "components.0.weight",
        "must be a number, got 'high'",
    ),
    "weight nan": (
        COMPONENTS + "  weight: .nan\n" + PERSONA,
        4,
        "components.0.weight",
        "must be a number, got nan",
    ),
    "weight of true": (
        COMPONENTS + "  weight: yes\n" + PERSONA,
        4,
        "components.0.weight",
        "must be a number, got true",
    ),
    "weights of 0": (
        COMPONENTS + "  weight: 0\n" + PERSONA,
        1,
        "components",
        "have weights that sum to 0: at least one must count",
    ),
    "no personas": ("name: x\n", 1, "personas", "is missing"),
    "empty personas": ("name: x\npersonas: []\n", 2, "personas", "is empty: a profile needs at least one persona"),
    "personas left blank": ("name: x\npersonas:\n", 2, "personas", "must be a list, got nothing"),
    "no components": (
        PERSONA + "components: []\n",
        4,
        "components",
        "is empty: a profile needs at least one component",
    ),
    "missing role": ("name: x\npersonas:\n- name: A\n", 3, "personas.0.role", "is missing"),
    "blank role": ("personas:\n- name: A\n  role: '  '\n", 3, "personas.0.role", "is empty"),
    "name that is no text": ("personas:\n- name: no\n  role: x\n", 2, "personas.0.name", "must be text, got false"),
    "duplicate persona": (
        PERSONA + "- {name: CRITIC, role: x}\n",
        4,
        "personas.1.name",
        "duplicate name 'CRITIC'",
    ),
    "duplicate after NFC": (
        "personas:\n- {name: Café, role: x}\n- {name: cafe\u0301, role: x}\n",
        3,
        "personas.1.name",
        "duplicate name 'café'",
    ),
    "duplicate component": (
        COMPONENTS + COMPONENTS.removeprefix("components:\n") + PERSONA,
        4,
        "components.1.name",
        "duplicate name 'accuracy'",
    ),
    "control character": (
        'personas:\n- role: x\n  name: "a\\u0007"\n',
        3,
        "personas.0.name",
        "holds the control character '\\x07'",
    ),
    "agreement 11": (PERSONA + "  agreement: 11\n", 4, "personas.0.agreement", "must lie in [0, 10], got 11"),
    "agreement 2.5": (PERSONA + "  agreement: 2.5\n", 4, "personas.0.agreement", "must be a whole number, got 2.5"),
    "temperature below 0": (
        PERSONA + "  sampling:\n    temperature: -1\n",
        5,
        "personas.0.sampling.temperature",
        "must be at least 0, got -1",
    ),
    "k of 0": (PERSONA + "  memory:\n    k: 0\n", 5, "personas.0.memory.k", "must be at least 1, got 0"),
    "number in octal": (
        PERSONA + "  memory:\n    k: 010\n",
        5,
        "personas.0.memory.k",
        "must be a whole number, got '010'",
    ),
    "anchor": ("name: &a x\n" + PERSONA, 1, "name", "anchors and aliases (& and *) are not allowed"),
    "alias": (PERSONA + "name: *a\n", 4, "name", "anchors and aliases (& and *) are not allowed"),
    "tag": (PERSONA + "  model: !secret x\n", 4, "personas.0.model", "tags (!) are not allowed"),
    "unknown kind": (
        PERSONA + "  memory: {kinds: [x]}\n",
        4,
        "personas.0.memory.kinds.0",
        "input should be 'episodic', 'semantic' or 'reflection'",
    ),
    "unknown weight": (PERSONA + "  memory: {weights: {age: 1}}\n", 4, "personas.0.memory.weights.age", "unknown key"),
    "unquoted no as key": (PERSONA + "  no: 1\n", 4, "personas.0.no", "the key no is not text"),
    "number as key": (PERSONA + "1: x\n", 4, "1", "the key 1 is not text"),
}


@pytest.mark.parametrize(("text", "line", "field", "message"), BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_a_bad_field_is_refused_with_file_line_and_field(
    write: Write, text: str, line: int, field: str, message: str
) -> None:
    file = write(text)
    assert refusal(file).message == f"{file}:{line}: {field}: {message}"


BAD_FILES: dict[str, tuple[str | bytes, int, str]] = {
    "tab indentation": ("personas:\n\t- name: A\n", 2, "is not valid YAML"),
    "unclosed quote": ("name: x\ndescription: 'x\n", 2, "is not valid YAML"),
    "unclosed list": ("name: x\npersonas: [\n\n", 2, "is not valid YAML"),
    "colon in text": ("description: one: two\n", 1, "is not valid YAML"),
    "list as key": ("name: x\n? [a]\n: b\n", 2, "a key must be text"),
    "two documents": (PERSONA + "---\n" + PERSONA, 4, "holds more than one document"),
    "not UTF-8": (b"name: x\ndescription: caf\xe9\n", 2, "is not UTF-8"),
    "UTF-16": (PERSONA.encode("utf-16"), 1, "is not UTF-8"),
    "NUL": (b"name: x\ndescription: \x00\n", 2, "holds the control character '\\x00'"),
    "empty file": ("", 1, "must be a mapping of keys to values, got nothing"),
    "a list": ("- a\n", 1, "must be a mapping of keys to values, got a list"),
}


@pytest.mark.parametrize(("text", "line", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_is_bad_as_a_whole_is_refused_with_its_line(
    write: Write, text: str | bytes, line: int, message: str
) -> None:
    file = write(text)
    assert refusal(file).message.startswith(f"{file}:{line}: {message}")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("personas:\n- name: A\n  rol: x\n", "did you mean 'role'?"),
        ("personas:\n- name: A\n  role: x\n  sampling: {temprature: 1}\n", "did you mean 'temperature'?"),
        (PERSONA + "foo: 1\n", "known keys: name, personas, components, description"),
        ("personas:\n- name: no\n  role: x\n", "put it in quotes"),
        (PERSONA + "no: x\n", "put it in quotes: 'no'"),
        ("personas:\n\t- name: A\n", "indent with spaces, not with tabs"),
        ("description: one: two\n", "put text that holds ': ' in quotes"),
    ],
)
def test_a_refusal_says_what_to_do(write: Write, text: str, hint: str) -> None:
    assert refusal(write(text)).hint == hint


def test_an_alias_bomb_is_refused_at_its_first_anchor(write: Write) -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    error = refusal(write("\n".join(["name: x", "a0: &a0 [lol]", *levels])))
    assert (error.line, error.field) == (2, "a0")


def test_a_tag_that_would_run_a_program_runs_nothing(write: Write, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    error = refusal(write(f'{PERSONA}name: !!python/object/apply:os.system ["touch {witness}"]\n'))
    assert (error.line, error.field) == (4, "name")
    assert not witness.exists()


@pytest.mark.parametrize("opening", ["[", "{", "- ", "? ", "{a: "])
def test_nesting_without_end_is_refused_and_not_followed(write: Write, opening: str) -> None:
    assert refusal(write(opening * 100_000)).line == 1


def test_a_file_of_2_mb_is_refused_for_its_size(write: Write) -> None:
    file = write(PERSONA + "#" * 2_000_000)
    assert refusal(file).message == f"{file}: is larger than 1 MB"


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.yaml").message == f"{tmp_path / 'none.yaml'}: there is no such file"
    assert refusal(tmp_path).file == str(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..\\general",
        "..",
        "",
        " ",
        "a\0b",
        "a" * 300,
        "general\n",
        "gen*",
        "général",
    ],
)
def test_a_name_that_cannot_be_one_is_refused_before_any_file_is_touched(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def record(self: Path, *_: object) -> None:
        opened.append(self)

    monkeypatch.setattr(Path, "open", record)
    assert len(refusal(name).message) < 120
    assert opened == []


def test_a_path_with_a_nul_in_it_is_refused() -> None:
    assert "cannot be read" in refusal("a\0b.yaml").message


@pytest.mark.parametrize("name", ["genral", "General"])
def test_an_unknown_name_lists_the_built_in_ones_and_the_closest(name: str) -> None:
    hint = refusal(name).hint or ""
    assert hint.startswith("did you mean 'general'?")
    assert all(built_in in hint for built_in in profile_names())
