"""Drawing a sample, showing it blind, and the file that labels go to."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Scale
from debate.dataset.labels import Drawn, read_labels
from debate.errors import ConfigError, InputError, TaskError
from debate.meta_evaluation.judged import JudgedRun, read_run
from debate.meta_evaluation.labeling import (
    Item,
    LabelFile,
    Rating,
    best_of,
    blind_items,
    draw,
    draw_sample,
    html_form,
    rating_of,
    scores_of,
)
from debate.types import Names
from tests.meta_evaluation.small_runs import scripted_run
from tests.required import required
from tests.small_flows import debates

quick = settings(deadline=None, max_examples=50)
HOSTILE = "</script><script>alert(1)</script><!-- <script> \u2028 \x00"
ITEM = Item("q", Drawn(3, 5, 9), "Why?", ("before",), None, ("second", "first", "third"), (1, 0, 2))


def tasks(n: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"t{i}",
            "x": f"What is {i}?",
            "candidates": [{"text": f"text {j} of {i}", "generator": f"model-{j}"} for j in range(3)],
            "metadata": {"group": "rare" if i % 4 == 0 else "common"},
        }
        for i in range(n)
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    return scripted_run(tmp_path_factory.mktemp("label"), tasks(12), debates(rounds=1))


# ---- the sample


@quick
@given(st.sets(st.text(max_size=4), min_size=1), st.integers(0, 2**40), st.randoms())
def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_the_tasks(
    names: set[str], seed: int, random: Any
) -> None:
    shuffled = sorted(names)
    random.shuffle(shuffled)
    assert draw(dict.fromkeys(names, ""), seed) == draw(dict.fromkeys(shuffled, ""), seed)
    assert set(draw(dict.fromkeys(names, ""), seed)) == names


def test_every_task_is_drawn_as_often_as_every_other() -> None:
    names = dict.fromkeys("abcdefgh", "")
    counts = Counter(name for seed in range(4000) for name in draw(names, seed)[:2])
    assert all(abs(counts[name] - 1000) < 5 * 27 for name in names)  # the standard deviation is 27


@quick
@given(st.integers(2, 12), st.integers(0, 99))
def test_every_stratum_gives_as_many_tasks_as_long_as_it_has_any(size: int, seed: int) -> None:
    strata = {f"t{n}": "rare" if n < 4 else "common" for n in range(40)}
    counts = Counter(strata[name] for name in draw(strata, seed)[:size])
    assert abs(min(counts["rare"], 4) - min(counts["common"], 4)) <= 1


def test_a_larger_sample_holds_a_smaller_one(run: JudgedRun) -> None:
    small, large = draw_sample(run, 4, seed=7), draw_sample(run, 9, seed=7)
    assert [*small] == [*large][:4]
    assert [*small] != [*draw_sample(run, 4, seed=8)]


def test_a_sample_says_how_it_was_drawn(run: JudgedRun) -> None:
    sample = draw_sample(run, 50, 7, "group")
    assert len(sample) == 12
    assert sample["t0"] == Drawn(7, 12, 12, "group", "rare")


def test_a_key_that_no_task_has_is_refused_with_those_that_they_have(run: JudgedRun) -> None:
    with pytest.raises(ConfigError, match=r"(?s)no task has 'grop'.*they have: group"):
        draw_sample(run, 4, stratify="grop")


def test_tasks_of_one_candidate_can_be_scored_alone(tmp_path: Path) -> None:
    alone = scripted_run(tmp_path, [{"id": "a", "x": "?", "candidates": ["b"]}], debates(rounds=1))
    with pytest.raises(ConfigError, match="--scores"):
        draw_sample(alone, 1)
    assert [*draw_sample(alone, 1, is_scored=True)] == ["a"]


# ---- blind


def test_texts_are_shown_in_an_order_of_their_own_for_each_task_and_person(run: JudgedRun) -> None:
    sample = draw_sample(run, 12)
    items = {by: blind_items(run, sample, by) for by in ("anna", "ben")}
    assert items["anna"] == blind_items(run, sample, "anna")
    assert len({item.order for item in items["anna"]}) > 2
    assert [item.order for item in items["anna"]] != [item.order for item in items["ben"]]
    for item in items["ben"]:
        assert item.candidates == tuple(f"text {j} of {item.task_id[1:]}" for j in item.order)


def test_neither_scores_nor_choice_nor_generators_are_in_the_form(run: JudgedRun) -> None:
    items = blind_items(run, draw_sample(run, 12), "anna")
    page = html_form(items, "anna")
    assert "model-" not in page
    assert set(embedded(page)["items"][0]) == set(Item.__dataclass_fields__)
    assert '"selected"' not in page


# ---- what a person says


def test_a_choice_is_told_by_the_candidates_own_indices() -> None:
    assert best_of(ITEM, [0]) == {"best": 1}
    assert best_of(ITEM, [0, 1]) == {"best": [0, 1]}
    assert best_of(ITEM, [0, 1, 2]) == {"ranking": [1, 1, 1]}


def test_scores_are_told_in_the_candidates_own_order() -> None:
    assert scores_of(ITEM, {"clarity": [5, None, 1]}) == {"scores": {"clarity": [None, 5, 1]}}


def test_a_score_off_the_scale_is_refused() -> None:
    rating = Rating(("clarity",), 1, 5)
    assert rating.checked("4.5") == 4.5
    for text in ("0", "6", "nan", "inf", "good"):
        with pytest.raises(ValueError, match="1 to 5"):
            rating.checked(text)
    assert Rating(("clarity",), 0, None).checked("1e9") == 1e9
    with pytest.raises(ValueError, match="0 or more"):
        Rating(("clarity",), 0, None).checked("inf")


def test_people_score_the_judges_components_on_its_scale(run: JudgedRun) -> None:
    assert rating_of(run) == Rating(run.tasks[0].components, 0, 10)


def test_people_score_components_as_agents_do_whatever_the_scale_of_the_whole(run: JudgedRun) -> None:
    scaled = replace(run, tasks=[replace(task, scale=Scale(0, 35)) for task in run.tasks])
    assert rating_of(scaled) == Rating(run.tasks[0].components, 0, 10)
    whole = replace(run, tasks=[replace(task, scale=Scale(1, 7), components=()) for task in run.tasks])
    assert rating_of(whole) == Rating(("score",), 1, 7)


# ---- the file


@pytest.fixture
def file(tmp_path: Path) -> LabelFile:
    return LabelFile(tmp_path / "new" / "labels.jsonl")


def lines(file: LabelFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.path.read_text(encoding="utf-8").splitlines()]


def test_a_label_says_who_when_and_how_the_task_was_drawn(file: LabelFile) -> None:
    file.add(ITEM, {"best": 1}, "anna")
    (line,) = lines(file)
    assert (line["task_id"], line["best"], line["by"]) == ("q", 1, "anna")
    assert line["at"].endswith("+00:00")
    assert line["drawn"] == {"seed": 3, "size": 5, "of": 9}


def test_written_labels_are_read_as_votes_with_their_draw(run: JudgedRun, tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "labels.jsonl")
    sample = draw_sample(run, 2, 7, "group")
    for by in ("anna", "ben"):
        for item in blind_items(run, sample, by):
            file.add(item, best_of(item, [item.order.index(2)]), by)
    read = {task.task_id: task.labels for task in read_run(run.directory.path, file.path).tasks}
    for task_id, drawn in sample.items():
        assert read[task_id].together.best == (2,)
        assert [(vote.by, vote.drawn) for vote in read[task_id].votes] == [("anna", drawn), ("ben", drawn)]


def test_a_file_that_was_cut_at_any_byte_loses_only_the_label_that_was_cut(file: LabelFile) -> None:
    file.add(ITEM, {"best": 1}, "änna")
    first = len(file.path.read_bytes())
    file.add(ITEM, {"best": 2}, "ben")
    whole = file.path.read_bytes()
    for cut in range(len(whole) + 1):
        file.path.write_bytes(whole[:cut])
        file.repair()
        kept = [line["best"] for line in lines(file)]
        assert kept == [1, 2][: (cut >= first - 1) + (cut >= len(whole) - 1)]
        file.append([{"task_id": "r", "best": 0}])
        assert [line["best"] for line in lines(file)] == [*kept, 0]


def test_people_who_append_at_the_same_time_do_not_tear_each_others_lines(file: LabelFile) -> None:
    other = LabelFile(file.path)
    for n in range(5):
        file.add(ITEM, {"best": n % 3}, "anna")
        other.add(ITEM, {"best": n % 3}, "ben")
    assert len(lines(file)) == 10
    assert file.of("ben")["q"]["best"] == 1


def test_scores_that_come_after_a_choice_do_not_take_it_back(file: LabelFile) -> None:
    file.add(ITEM, {"best": 1}, "anna")
    file.add(ITEM, {"scores": {"clarity": [1, 2, 3]}}, "anna")
    last = file.of("anna")["q"]
    assert (last["best"], last["scores"]) == (1, {"clarity": [1, 2, 3]})
    file.add(ITEM, {"ranking": [1, 1, 1]}, "anna")
    last = file.of("anna")["q"]
    assert "best" not in last
    assert last["scores"] == {"clarity": [1, 2, 3]}


def test_a_broken_line_inside_is_named_and_left_as_it_is(file: LabelFile) -> None:
    file.append([{"task_id": "a", "by": "anna"}])
    file.path.write_text(file.path.read_text() + "{oops\n" + '{"task_id": "b"}\n')
    file.repair()
    with pytest.raises(TaskError) as error:
        file.of("anna")
    assert error.value.line == 2


LABEL = '{"task_id": "q", "best": 0}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hello notes\nmy last line of notes", "does not begin with {"),
        (f"[{LABEL},\n{LABEL}]", "does not begin with {"),
        (f"[{LABEL}]", "does not begin with {"),
        (f"\ufeff \n[{LABEL}]", "does not begin with {"),
        (f"{LABEL}\nmy last line of notes", "labels.jsonl:2: is no label"),
        ("{notes}\n{more notes", "labels.jsonl:1: is not valid JSON"),
        ('{"id": "q", "x": "Why?"}\n{"id": "r", "x"', "labels.jsonl:1: holds no label"),
    ],
)
def test_nothing_is_removed_from_a_file_that_is_not_one_of_labels(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(text, encoding="utf-8")
    for write in (LabelFile(path).repair, lambda: LabelFile(path).append([{"task_id": "q"}])):
        with pytest.raises(InputError, match=re.escape(told)):
            write()
        assert path.read_text(encoding="utf-8") == text


def test_a_file_that_begins_with_a_mark_of_its_bytes_is_one_of_labels(tmp_path: Path) -> None:
    file = LabelFile(tmp_path / "labels.jsonl")
    file.path.write_text(f'\ufeff{LABEL}\n{{"task_id": "r", "be', encoding="utf-8")
    file.append([{"task_id": "s", "best": 1}])
    assert list(file.of("")) == ["q", "s"]


@pytest.mark.parametrize("name", ["labels.csv", "labels.json", "labels.PARQUET"])
def test_labels_are_written_into_no_other_format(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="JSON lines"):
        LabelFile(tmp_path / name)


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="taken"):
        LabelFile(tmp_path / "taken" / "labels.jsonl").append([])


def told(by: str, at: str, best: int) -> dict[str, Any]:
    return {"task_id": "q", "best": best, "by": by, "at": at}


def test_joining_keeps_what_is_newer(file: LabelFile, tmp_path: Path) -> None:
    file.append([told("anna", "2026-01-02T10:00:00+00:00", 1), told("ben", "2026-01-01T10:00:00+00:00", 1)])
    others = LabelFile(tmp_path / "others.jsonl")
    others.append([told(by, "2026-01-02T09:00:00.000Z", 2) for by in ("anna", "ben", "cleo")])
    assert file.join(others.path) == (2, 1)
    assert [file.of(by)["q"]["best"] for by in ("anna", "ben", "cleo")] == [1, 2, 2]
    assert file.join(others.path) == (0, 3)


NAMES: dict[str, Names] = {"q": [("c0", None), ("c1", None), ("c2", None)], "r": [("c0", None), ("c1", None)]}


def test_labels_of_a_table_are_joined_as_they_are_read(file: LabelFile, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    drawn = '"{""seed"": 0, ""size"": 2, ""of"": 9}"'
    table.write_text(
        "task_id,best,ranking,scores,by,drawn\n"
        f"q,0,,,anna,{drawn}\n"
        'q,,"[2, 1, 1]","{""clarity"": [1, null, 3]}",ben,\n'
        "r,B,,,,\n"
        "r,,,,cleo,\n"
    )
    assert file.join(table) == (4, 0)
    assert lines(file) == [
        {"task_id": "q", "best": 0, "by": "anna", "drawn": {"seed": 0, "size": 2, "of": 9}},
        {"task_id": "q", "ranking": [2, 1, 1], "scores": {"clarity": [1, None, 3]}, "by": "ben"},
        {"task_id": "r", "best": "B"},
        {"task_id": "r", "best": None, "ranking": None, "scores": None, "by": "cleo"},
    ]
    assert str(read_labels(file.path, NAMES)) == str(read_labels(table, NAMES))
    assert file.join(table) == (0, 4)


@pytest.mark.parametrize("by", ["", None, 7, True])
def test_the_same_labels_are_joined_once_whoever_gave_them(by: Any, file: LabelFile, tmp_path: Path) -> None:
    others = LabelFile(tmp_path / "others.jsonl")
    others.append([{**told("", "2026-01-01", 1), "by": by}, {"task_id": "r", "best": 0}])
    assert file.join(others.path) == (2, 0)
    before = file.path.read_bytes()
    assert file.join(others.path) == (0, 2)
    assert file.path.read_bytes() == before
    assert set(read_labels(file.path, NAMES).labels) == {"q", "r"}


@pytest.mark.parametrize("by", ["", None])
def test_a_newer_label_of_nobody_is_refused_before_anything_is_written(
    by: Any, file: LabelFile, tmp_path: Path
) -> None:
    file.append([told("anna", "2026-01-01", 0), {**told("", "2026-01-01", 1), "by": by}])
    before = file.path.read_bytes()
    others = LabelFile(tmp_path / "others.jsonl")
    others.append([told("ben", "2026-01-02", 0), {"task_id": "q", "best": 2, "at": "2026-01-02"}])
    with pytest.raises(TaskError, match=r"others\.jsonl:2: task_id: is newer than .*labels\.jsonl:2") as error:
        file.join(others.path)
    assert "`by`" in str(error.value.hint)
    assert file.path.read_bytes() == before


def test_of_several_lines_of_a_person_the_last_is_joined(file: LabelFile, tmp_path: Path) -> None:
    others = LabelFile(tmp_path / "others.jsonl")
    others.append([told("anna", "2026-01-01", 0), told("anna", "2026-01-02", 2)])
    assert file.join(others.path) == (1, 0)
    assert [line["best"] for line in lines(file)] == [2]


def some_line(task_id: str, best: Any, by: Any, at: Any) -> dict[str, Any]:
    return {"task_id": task_id, "best": best, "by": by, "at": at}


def whose(line: dict[str, Any]) -> tuple[str, str]:
    return line["task_id"], str(line["by"] or "")


a_line: st.SearchStrategy[dict[str, Any]] = st.builds(
    some_line,
    st.sampled_from(["q", "r"]),
    st.sampled_from([None, 0, "B", [0, 1]]),
    st.sampled_from([None, "", "anna", 7, "7"]),
    st.sampled_from([None, "2026-01-01", "2026-01-02", 5]),
)
some_lines = st.lists(a_line, min_size=1, unique_by=whose)


@quick
@given(some_lines, some_lines)
def test_no_join_makes_a_file_that_cannot_be_read(held: list[dict[str, Any]], told: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, others = LabelFile(Path(folder, "labels.jsonl")), LabelFile(Path(folder, "others.jsonl"))
        file.append(held)
        others.append(told)
        with suppress(TaskError):
            file.join(others.path)
        read_labels(file.path, NAMES)
        file_of_both = file.path.read_bytes()
        with suppress(TaskError):
            assert file.join(others.path) == (0, len(told))
        assert file.path.read_bytes() == file_of_both


# ---- the form


def embedded(page: str) -> dict[str, Any]:
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


class Elements(HTMLParser):
    """The elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_no_text_breaks_out_of_the_form() -> None:
    item = Item("q", ITEM.drawn, HOSTILE, (HOSTILE,), HOSTILE, (HOSTILE, "@@script@@"), (1, 0))
    plain = Item("q", ITEM.drawn, "", ("",), "", ("", ""), (1, 0))
    names = [name for name, _ in Elements(html_form([item], "<script>@@data@@")).found]
    assert names == [name for name, _ in Elements(html_form([plain], "anna")).found]
    (told,) = embedded(html_form([item], "anna"))["items"]
    assert (told["x"], told["candidates"]) == (HOSTILE, [HOSTILE, "@@script@@"])


def test_the_form_loads_nothing_and_runs_only_its_own_script() -> None:
    page = html_form([ITEM], "anna", Rating(("clarity",), 0, None))
    elements = Elements(page)
    assert not [each for _, each in elements.found if each.keys() & {"src", "href", "style", "onclick"}]
    policy = next(each["content"] or "" for _, each in elements.found if "content" in each and "http-equiv" in each)
    assert "default-src 'none'" in policy
    for tag in ("script", "style"):
        held = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in held]
        assert re.findall(f"{tag}-src 'sha256-(.*?)'", policy) == hashes


def test_every_field_of_the_form_has_a_name_that_is_read_out() -> None:
    elements = Elements(html_form([ITEM], "anna"))
    assert ("html", {"lang": "en"}) in elements.found
    assert any(each.get("role") == "status" for _, each in elements.found)
    assert [each["type"] for name, each in elements.found if name == "button"] == ["button"] * 4


def test_forms_of_other_people_and_tasks_keep_their_progress_apart() -> None:
    keys = {embedded(html_form([ITEM], by, rating))["key"] for by in "ab" for rating in (None, Rating(("c",), 0, 1))}
    assert len(keys) == 4


def pressed(page: str, script: str, folder: Path) -> list[dict[str, Any]]:
    """The lines that the form saves in a browser, once a script has used it."""
    browser = shutil.which("chromium")
    required(browser, "chromium is not installed")
    assert browser is not None
    used = re.sub("<meta http-equiv.*?>", "", page).replace(
        "</body>", f"<script>{script}; document.body.replaceChildren(lines());</script></body>"
    )
    (folder / "form.html").write_text(used, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}", "--dump-dom"]
    url = (folder / "form.html").as_uri()
    done = subprocess.run([browser, *flags, url], capture_output=True, text=True, check=True, timeout=60)
    body = html.unescape(done.stdout.partition("<body>")[2].partition("</body>")[0])
    return [json.loads(line) for line in body.splitlines() if line]


PRESS = "for (const key of KEYS) document.dispatchEvent(new KeyboardEvent('keydown', {key}))"


def test_the_form_saves_what_is_pressed_as_a_file_of_labels(tmp_path: Path) -> None:
    items = [Item(f"q{n}", ITEM.drawn, HOSTILE, (), None, (HOSTILE, "b", "c"), ITEM.order) for n in range(4)]
    told = pressed(html_form(items, "anna"), PRESS.replace("KEYS", "['2', 'b', '3', '=', 's', '1']"), tmp_path)
    said = [{key: line[key] for key in line.keys() & {"task_id", "best", "ranking"}} for line in told]
    assert said == [{"task_id": "q0", "best": 2}, {"task_id": "q1", "ranking": [1, 1, 1]}, {"task_id": "q3", "best": 1}]
    assert all((line["by"], line["drawn"]) == ("anna", {"seed": 3, "size": 5, "of": 9}) for line in told)
    labels = LabelFile(tmp_path / "labels.jsonl")
    labels.append(told)
    assert LabelFile(tmp_path / "joined.jsonl").join(labels.path) == (3, 0)


def test_the_form_saves_scores_in_the_candidates_own_order(tmp_path: Path) -> None:
    script = """
        document.querySelectorAll("input[type=number]").forEach((input, n) => {
            input.value = n === 1 ? "99" : String(n + 1);
            input.dispatchEvent(new Event("input"));
        })"""
    (line,) = pressed(html_form([ITEM], "ben", Rating(("clarity",), 0, 5)), script, tmp_path)
    assert line["scores"] == {"clarity": [None, 1, 3]}  # shown second, first, third; 99 is off the scale
