"""The page of a report in a real browser: nothing foreign runs, everything is reached by keyboard, all is readable."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest

from debate import CrossEvaluator, DebateEvaluator, PanelEvaluator, StepEvaluator, ValueEvaluator, VoteEvaluator
from debate.evaluators import Evaluator
from debate.report import write_report
from tests.report.pages import HOSTILE, TEXTS, debated, evaluated, tasks
from tests.required import required_module

READY = "html[data-ready]"


@contextmanager
def opened(browser: Any, file: Path, **settings: Any) -> Generator[Any]:
    """The page, which must ask for nothing but itself and have nothing to complain about."""
    context = browser.new_context(offline=True, **settings)
    page, asked, said = context.new_page(), list[str](), list[str]()

    def note_request(request: Any) -> None:
        asked.append(request.url)

    def note_message(message: Any) -> None:
        said.append(str(message.text))

    def note_error(error: Any) -> None:
        said.append(str(error))

    for event, note in (("request", note_request), ("console", note_message), ("pageerror", note_error)):
        page.on(event, note)
    page.goto(file.as_uri())
    page.wait_for_selector(READY)
    yield page
    context.close()
    assert set(asked) == {file.as_uri()}
    assert said == []


def rows(page: Any) -> list[str]:
    """The ids of the tasks that are drawn."""
    return [text.strip() for text in page.locator("#rows [role=option] > span:first-child").all_inner_texts()]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(debated(folder / "run"), folder / "run.html")
    return folder / "run.html"


def test_filters_search_and_order_narrow_the_table_and_stand_in_the_address(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        assert rows(page) == [f"t{n}" for n in range(12)]
        page.get_by_label("wrong (", exact=False).check()
        wrong = rows(page)
        assert 0 < len(wrong) < 12
        assert page.locator("#count").inner_text() == f"{len(wrong)} of 12 tasks"
        page.get_by_label("wrong (", exact=False).uncheck()
        page.get_by_label("Search").fill("question 1")
        assert rows(page) == ["t1", "t10", "t11"]
        page.get_by_label("Group").select_option(label="even")
        assert rows(page) == ["t10"]
        address = page.url
    with opened(browser, report) as page:
        page.goto(address)
        page.reload()
        page.wait_for_selector(READY)
        assert rows(page) == ["t10"]


def test_prompts_stand_in_the_file_where_it_was_made_with_them(browser: Any, report: Path, tmp_path: Path) -> None:
    with opened(browser, report) as page:
        page.goto(f"{report.as_uri()}#t=t3")
        page.wait_for_selector("#detail h2")
        assert page.get_by_role("button", name="Prompt").count() == 0
    file, hostile = tmp_path / "prompts.html", [{**task, "x": f"{HOSTILE} {n}"} for n, task in enumerate(tasks(105))]
    write_report(debated(tmp_path / "run", hostile, candidate_order="balanced"), file, prompts=True)
    with opened(browser, file) as page:
        page.goto(f"{file.as_uri()}#t=t103")
        page.reload()
        page.wait_for_selector("#detail h2")
        page.get_by_text("candidates shown in the order", exact=False).last.click()
        turn = page.locator("details[open] section.turn").first
        turn.get_by_role("button", name="Prompt").click()
        turn.locator(".sent pre").nth(1).wait_for()
        assert f"{HOSTILE} 103" in turn.locator(".sent pre").nth(1).inner_text()
        assert turn.locator(".sent > p").first.inner_text().startswith("call 0.1.")
        assert page.title() != "taken"


def test_each_turn_has_its_own_prompt_where_a_silent_round_came_before(browser: Any, tmp_path: Path) -> None:
    run = debated(tmp_path / "run", tasks(1), candidate_order="balanced", settle="agreement=0.9")
    write_report(run, tmp_path / "r.html", prompts=True)
    with opened(browser, tmp_path / "r.html") as page:
        page.goto(f"{(tmp_path / 'r.html').as_uri()}#t=t0")
        page.wait_for_selector("#detail h2")
        for each in page.get_by_text("candidates shown in the order", exact=False).all()[-2:]:
            each.click()
        members = page.locator("#detail > details:has(section.turn)").all()
        assert len(members) == 2
        for n, member in enumerate(members):
            turn = member.locator("section.turn").nth(1)
            turn.get_by_role("button", name="Prompt").click()
            turn.locator(".sent p").first.wait_for()
            said = turn.locator(".sent > p").all_inner_texts()
            calls = [text for text in said if text.startswith("call ")]
            assert [text[: text.index(" to ")].rpartition(".")[0] for text in calls] == [f"call 1.{n}"]
            assert f"agent {turn.locator('h5').inner_text()}" in calls[0]
            assert "moment" not in calls[0]


def test_the_keyboard_alone_reaches_list_filter_and_debate(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.get_by_label("Search").focus()
        page.keyboard.type("question")
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "rows":
                break
        assert page.evaluate("document.activeElement.id") == "rows"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector("#detail h2")
        assert page.locator("#detail h2").inner_text() == "t2"
        assert "#" in page.url
        assert "t=t2" in page.url
        page.keyboard.press("Escape")
        page.wait_for_selector("#list:not([hidden])")
        assert page.evaluate("document.activeElement.id") == "rows"
        assert page.locator("[aria-selected=true] > span").first.inner_text() == "t2"


def test_a_debate_is_shown_with_scores_changes_and_labels(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.goto(report.as_uri() + "#t=t1")
        page.wait_for_selector("#detail h2")
        text = page.locator("#detail").inner_text()
        assert "people say 2" in text
        assert "Round 1" in text
        assert "Round 2" in text
        assert page.locator("#detail .up, #detail .down").count() > 0
        assert all(mark[:2] in ("(+", "(−") for mark in page.locator("#detail .up, #detail .down").all_inner_texts())
        assert page.locator("#detail td.heat").count() > 0


def test_cells_have_the_colors_of_their_own_scale_whatever_the_scores_are_on(browser: Any, tmp_path: Path) -> None:
    evaluator = DebateEvaluator("general", rounds=1, method="mk1")
    assert evaluator.scale.high > 15
    write_report(evaluated(tmp_path / "run", evaluator, tasks(1)), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        page.goto(f"{(tmp_path / 'r.html').as_uri()}#t=t0")
        page.wait_for_selector("#detail h2")
        for cell in page.locator("#detail td.heat").all():
            name = cell.get_attribute("class").split()[1]
            assert name in (f"h{floor(float(cell.inner_text()))}", f"h{ceil(float(cell.inner_text()))}")


def test_bars_and_counts_lead_to_the_tasks_that_they_count(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        bar = page.locator('#overview svg a[href="#r=2"]')
        assert bar.get_attribute("aria-label") == "round 2: 12"
        page.locator('#overview .facts a[href="#e=max_rounds"]').click()
        assert page.url.endswith("#e=max_rounds")
        assert len(rows(page)) == 12
        page.goto(report.as_uri() + "#r=1")
        assert rows(page) == []
        assert page.locator("#count").inner_text() == "0 of 12 tasks"


def test_the_members_of_a_balanced_debate_stand_side_by_side(browser: Any, tmp_path: Path) -> None:
    write_report(debated(tmp_path / "run", tasks(2), candidate_order="balanced"), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        page.goto((tmp_path / "r.html").as_uri() + "#t=t1")
        page.wait_for_selector("#detail h2")
        names = page.locator("#detail [aria-label=members] tbody th").all_inner_texts()
        assert len(names) == 2
        assert all(name.startswith("debate, candidates shown in the order ") for name in names)
        assert names[0] != names[1]


def test_a_text_of_a_million_letters_is_cut_until_it_is_asked_for(browser: Any, tmp_path: Path) -> None:
    long = [{"id": "long", "x": "x" * 1_000_000, "candidates": ["one", "two"]}]
    write_report(debated(tmp_path / "run", long), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        page.goto((tmp_path / "r.html").as_uri() + "#t=long")
        page.wait_for_selector("#detail h2")
        shown = page.locator("#detail pre").first
        assert len(shown.inner_text()) < 30_000
        page.get_by_role("button", name="show all 1,000,000 characters").click()
        assert len(shown.inner_text()) == 1_000_000


def test_a_link_to_a_task_alone_can_be_copied(browser: Any, report: Path) -> None:
    with opened(browser, report, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(report.as_uri() + "#q=question&t=t2")
        page.get_by_role("button", name="Copy link").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == report.as_uri() + "#t=t2"


def test_content_that_would_run_stays_text(browser: Any, tmp_path: Path) -> None:
    hostile = [
        {"id": HOSTILE + str(n), "x": text, "candidates": [text, HOSTILE], "metadata": {"group": HOSTILE, "best": 0}}
        for n, text in enumerate(TEXTS)
    ]
    write_report(debated(tmp_path / "run", hostile), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        scripts = page.evaluate("document.scripts.length")
        for place in range(len(rows(page))):
            page.locator("#rows [role=option]").nth(place).click()
            page.wait_for_selector("#detail h2")
            assert page.evaluate("document.scripts.length") == scripts
            assert page.evaluate("document.images.length") == 0
            page.keyboard.press("Escape")
            page.wait_for_selector("#list:not([hidden])")
        assert "taken" not in page.title()
        page.locator("#rows [role=option]").nth(2).click()
        page.wait_for_selector("#detail pre")
        assert page.locator("#detail pre").first.inner_text() == "a\\u202eb\\u200bc\\u0000d\\u001b[31me"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, report: Path, scheme: str) -> None:
    axe = Path(required_module("axe_playwright_python").__file__).parent / "axe.min.js"
    with opened(browser, report, color_scheme=scheme) as page:
        for address in ("", "#t=t1"):
            page.goto(report.as_uri() + address)
            page.wait_for_selector("#detail h2" if address else "#rows [role=option]")
            page.evaluate(axe.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")["violations"]
            serious = [
                (each["id"], [node["html"] for node in each["nodes"]][:3])
                for each in found
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == []


@pytest.mark.parametrize(
    ("evaluator", "says"),
    [(ValueEvaluator(samples=2), "value"), (VoteEvaluator(ballots=2), "ranks"), (StepEvaluator(), "step")],
    ids=["value", "vote", "step"],
)
def test_other_evaluators_are_shown_in_their_own_terms(
    browser: Any, tmp_path: Path, evaluator: Evaluator, says: str
) -> None:
    write_report(evaluated(tmp_path / "run", evaluator), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        page.locator("#rows [role=option]").first.click()
        page.wait_for_selector("#detail h2")
        text = page.locator("#detail").inner_text()
        assert says in text
        assert "Round" not in text
        assert "Debate" not in text


def panel() -> PanelEvaluator:
    """A debate, ballots and a judge of values."""
    members = {"debate": DebateEvaluator("general", rounds=1), "ballots": VoteEvaluator(ballots=2)}
    return PanelEvaluator(members={**members, "worth": ValueEvaluator(samples=1)})


def test_a_panel_shows_its_members_by_name_and_what_each_of_them_said(browser: Any, tmp_path: Path) -> None:
    write_report(evaluated(tmp_path / "run", panel()), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        page.locator("#rows [role=option]").first.click()
        page.wait_for_selector("#detail h2")
        table = page.get_by_role("region", name="members")
        assert table.locator("tbody th").all_inner_texts() == ["ballots (vote)", "debate (debate)", "worth (value)"]
        assert "all rounds were taken" in table.inner_text()
        assert "; ok;" not in page.locator("#detail").inner_text()
        page.locator("summary", has_text="debate (debate)").click()
        assert "Round 1" in page.locator("#detail").inner_text()


def test_the_judges_of_a_cross_evaluation_are_named_with_what_each_was_sent(browser: Any, tmp_path: Path) -> None:
    judges = {name: ValueEvaluator(samples=n) for n, name in enumerate(("alpha", "beta"), 1)}
    texts = [{"text": f"text of {name}", "generator": name} for name in judges]
    given = [{**task, "candidates": texts, "metadata": {"best": 0}} for task in tasks(2)]
    write_report(evaluated(tmp_path / "run", CrossEvaluator(judges=judges), given), tmp_path / "r.html", prompts=True)
    with opened(browser, tmp_path / "r.html") as page:
        page.locator("#rows [role=option]").first.click()
        page.wait_for_selector("#detail h2")
        table = page.get_by_role("region", name="members")
        assert table.locator("tbody th").all_inner_texts() == ["alpha (value)", "beta (value)"]
        for judge, shown in (("alpha", "beta"), ("beta", "alpha")):
            page.locator("summary", has_text=f"{judge} (value)").click()
            part = page.locator("details", has=page.locator("summary", has_text=f"{judge} (value)"))
            part.get_by_role("button", name="Prompt").first.click()
            part.locator(".sent pre").nth(1).wait_for()
            assert f"text of {shown}" in part.locator(".sent pre").nth(1).inner_text()


def test_a_step_that_is_wrong_is_named_and_none_where_all_are_right(browser: Any, tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", StepEvaluator())
    write_report(run, tmp_path / "r.html")
    with run.directory.open_store(read_only=True) as store:
        found = {e.task_id: e.details["first_error"] for _, e in store.read(run.directory.name).results()}
    assert {-1, 0} <= {step for steps in found.values() for step in steps}
    with opened(browser, tmp_path / "r.html") as page:
        for task, steps in found.items():
            page.goto(f"{(tmp_path / 'r.html').as_uri()}#t={task}")
            page.locator("#detail h2", has_text=task).wait_for()
            told = page.locator("#detail > ul > li").all_inner_texts()
            said = {-1: "no wrong step found", 0: "step 1 is the first wrong one"}
            assert told == [f"Candidate {j + 1}: {said[step]}" for j, step in enumerate(steps)]


def test_what_the_head_names_leads_to_its_tasks_and_the_cost_stands_in_it(browser: Any, tmp_path: Path) -> None:
    write_report(debated(tmp_path / "run"), tmp_path / "r.html", cost="0.42")
    with opened(browser, tmp_path / "r.html") as page:
        assert "0.42" in page.locator("dl.facts").inner_text()
        wrong = page.locator("ul.links a.wrong")
        count = int(wrong.locator("strong").inner_text())
        wrong.click()
        assert page.locator("#count").inner_text() == f"{count} of 12 tasks"
        assert set(page.locator("#rows [role=option] > span:nth-child(6)").all_inner_texts()) == {"wrong"}
        page.locator("dl.facts dd a").first.click()
        assert "#e=" in page.url


def test_a_search_in_the_file_is_drawn_as_a_tree(browser: Any, tmp_path: Path) -> None:
    levels = [("level/1", ["a", "b"], [None, None]), ("level/2", ["ba", HOSTILE], [["level/1", 1], ["level/1", 1]])]
    given = [
        {"id": name, "x": "Go on.", "candidates": texts,
         "metadata": {"group": "search/1", "search": {"parents": parents, "width": 1, "threshold": None}}}
        for name, texts, parents in levels
    ]  # fmt: skip
    write_report(evaluated(tmp_path / "run", ValueEvaluator(samples=1), given), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as page:
        page.goto((tmp_path / "r.html").as_uri() + "#t=level/2")
        page.locator(".tree li.kept").first.wait_for()
        assert "2 levels, 4 thoughts, 2 of them kept" in page.locator(".tree").inner_text()
        assert HOSTILE in page.locator(".tree").text_content()
        assert page.evaluate("document.images.length") == 0


def test_two_runs_stand_side_by_side_with_lost_tasks_first(browser: Any, tmp_path: Path) -> None:
    first, second = debated(tmp_path / "first"), debated(tmp_path / "second", rounds=1)
    write_report(first, tmp_path / "both.html", other=second)
    with opened(browser, tmp_path / "both.html") as page:
        changes = page.locator("#rows [role=option] > span:nth-child(9)").all_inner_texts()
        place = {"lost": 0, "won": 1, "": 2}
        assert changes == sorted(changes, key=place.__getitem__)
        page.locator("#rows [role=option]").first.click()
        page.wait_for_selector("#detail .sides")
        assert page.locator("#detail .sides > section > h3:first-child").all_inner_texts() == ["first", "second"]


def test_the_head_stands_in_print_and_without_a_script(browser: Any, report: Path) -> None:
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "12 of 12 evaluated" in page.locator("#overview").inner_text()
    assert page.locator("#noscript").is_visible()
    page.emulate_media(media="print")
    assert page.locator("#overview").is_visible()
    assert not page.locator("#list").is_visible()
    context.close()


def test_thousands_of_debates_are_drawn_as_they_come_into_view(browser: Any, tmp_path: Path) -> None:
    write_report(debated(tmp_path / "run", tasks(600), rounds=1), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html", viewport={"width": 1280, "height": 900}) as page:
        assert page.locator("#rows [role=option]").count() < 80
        page.locator("#rows").focus()
        page.keyboard.press("End")
        page.wait_for_selector("#row-599")
        assert page.locator("#row-599").get_attribute("aria-posinset") == "600"
        page.keyboard.press("Enter")
        page.wait_for_selector("#detail h2")
        assert page.locator("#detail h2").inner_text() == "t599"
