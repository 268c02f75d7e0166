"""The page of a served store in a real browser, also while the run goes on."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from debate import DebateEvaluator, Engine, Task
from debate.backends import Call, Scripted
from debate.dataset.evalset import EvalSet
from debate.errors import StoreError
from debate.jobs.run import Run
from debate.report.serving import ViewServer
from debate.store import Store
from debate.testing import SilentListener, reply_for
from tests.report.pages import HOSTILE, TEXTS, debated, doubtful, noted, searched, tasks
from tests.report.test_view import served
from tests.required import required_module

READY = "html[data-ready]"


@contextmanager
def opened(browser: Any, server: ViewServer, address: str = "", **settings: Any) -> Generator[Any]:
    """The page, which must ask nobody but its server and have nothing to complain about."""
    context = browser.new_context(**settings)
    page, asked, said = context.new_page(), list[str](), list[str]()
    page.on("request", noted(asked, "url"))
    page.on("console", noted(said, "text"))
    page.on("pageerror", noted(said, "message"))
    page.goto(server.url + address)
    page.wait_for_selector(READY)
    page.wait_for_selector("#rows [role=option]")
    yield page
    context.close()
    assert [url for url in asked if not url.startswith(server.url)] == []
    assert said == []


def until(page: Any, holds: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for something; the page's policy allows no expression of Playwright's own in it."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, page.locator("body").inner_text()
        page.wait_for_timeout(20)


def rows(page: Any) -> list[str]:
    """The ids of the tasks that are drawn."""
    return [text.strip() for text in page.locator("#rows [role=option] > span:first-child").all_inner_texts()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewServer]:
    run = debated(tmp_path_factory.mktemp("view") / "first", tasks(130), rounds=1)
    with served(run.directory.path / "run.sqlite") as found:
        yield found


def test_list_filter_and_debate_are_reached_by_keyboard_and_link(browser: Any, server: ViewServer) -> None:
    with opened(browser, server) as page:
        page.wait_for_selector("#facts dt")
        assert "130 of 130 tasks are evaluated" in page.locator("#live").inner_text()
        assert page.locator("h1").inner_text() == "first"
        page.get_by_label("Search ids").fill("T11")
        until(page, lambda: rows(page) == ["t11", *(f"t{n}" for n in range(110, 120))])
        page.get_by_label("wrong (", exact=False).check()
        until(page, lambda: 0 < len(rows(page)) < 11)
        assert set(page.locator("#rows [role=option] > span:nth-child(6)").all_inner_texts()) == {"wrong"}
        wrong = rows(page)
        page.locator("#rows").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#detail h2")
        assert page.locator("#detail h2").inner_text() == wrong[0]
        assert "people say" in page.locator("#detail").inner_text()
        address = page.url
        page.keyboard.press("Escape")
        page.wait_for_selector("#list:not([hidden])")
        assert page.evaluate("document.activeElement.id") == "rows"
        page.goto(address)
        page.reload()
        page.wait_for_selector("#detail h2")
        assert page.locator("#detail h2").inner_text() == wrong[0]


def test_the_task_of_an_id_that_is_searched_for_stands_first(browser: Any, server: ViewServer) -> None:
    with opened(browser, server) as page:
        page.get_by_label("Search ids").fill("t1")
        until(page, lambda: page.locator("#count").inner_text().startswith("41 of 130"))
        assert rows(page)[:3] == ["t1", "t10", "t11"]
        page.get_by_label("Search ids").fill("t12")
        until(page, lambda: rows(page) == ["t12", *(f"t{n}" for n in range(120, 130))])
        page.get_by_label("Search ids").fill("t129")
        until(page, lambda: rows(page) == ["t129"])
        until(page, lambda: page.locator("#count").inner_text() == "1 of 130 evaluated tasks")


def test_figures_are_worked_out_when_they_are_asked_for_and_lead_to_their_tasks(
    browser: Any, server: ViewServer
) -> None:
    axe = Path(required_module("axe_playwright_python").__file__).parent / "axe.min.js"
    with opened(browser, server, color_scheme="dark") as page:
        page.wait_for_selector("#facts dt")
        assert page.locator("#worth figure").count() == 0
        page.get_by_role("button", name="Work them out").click()
        page.locator("#worth figure").nth(2).wait_for()
        assert "130 labeled" in page.locator("#worth").inner_text()
        page.evaluate(axe.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        page.locator("#facts a", has_text="130 max_rounds").click()
        until(page, lambda: page.locator("#stop").input_value() == "=max_rounds")
        page.locator("#worth a[href*='r=1']").first.click()
        until(page, lambda: "r=1" in page.url and page.locator("#rounds").input_value() == "=1")


def test_a_search_is_drawn_as_a_tree_of_what_was_kept_and_pruned(browser: Any, tmp_path: Path) -> None:
    searched(tmp_path / "s.sqlite")
    axe = Path(required_module("axe_playwright_python").__file__).parent / "axe.min.js"
    with served(tmp_path / "s.sqlite") as server, opened(browser, server) as page:
        page.locator("#rows [role=option]").nth(1).click()
        page.locator(".tree li.kept").first.wait_for()
        tree = page.locator(".tree")
        assert "3 levels, 15 thoughts, 6 of them kept" in tree.inner_text()
        top = tree.locator("> ul > li")
        assert top.first.locator("> a").inner_text() == "b"
        assert top.first.locator("> span").all_inner_texts() == ["1.00", "kept, 1 of its level"]
        assert top.first.locator("> ul > li.kept > a").first.inner_text() == "b"
        assert top.last.locator("summary").first.inner_text() == "1 pruned"
        assert tree.locator("[aria-current=true]").count() == 6
        page.evaluate(axe.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        before = page.locator("#detail h2").inner_text()
        top.first.locator("> a").click()
        until(page, lambda: page.locator("#detail h2").inner_text() != before)


def test_what_is_doubtful_is_found_by_filters_and_by_rounds(browser: Any, tmp_path: Path) -> None:
    run = doubtful(tmp_path / "run")
    with served(run.directory.path / "run.sqlite") as server, opened(browser, server) as page:
        page.wait_for_selector("#facts dt")
        page.get_by_label("a candidate unscored (4)").check()
        until(page, lambda: rows(page) == ["t0", "t3", "t6", "t9"])
        page.get_by_label("a candidate unscored (4)").uncheck()
        page.get_by_label("orders disagree (", exact=False).check()
        until(page, lambda: 0 < len(rows(page)) < 12)
        page.locator("#rows [role=option]").first.click()
        page.wait_for_selector("#detail h2")
        assert "the two orders of the candidates do not agree" in page.locator("#detail").inner_text()


def test_what_was_sent_is_shown_for_a_turn_and_for_the_whole_task_when_it_is_asked_for(
    browser: Any, server: ViewServer
) -> None:
    with opened(browser, server) as page:
        page.goto(f"{server.url}#t=t7")
        page.wait_for_selector("#detail h2")
        turn = page.locator("section.turn").nth(1)
        assert turn.locator(".sent pre").count() == 0
        turn.get_by_role("button", name="Prompt").click()
        turn.locator(".sent pre").nth(1).wait_for()
        assert "Question 7?" in turn.locator(".sent pre").nth(1).inner_text()
        assert turn.locator(".sent pre").count() == 2
        assert turn.locator(".sent > p").first.inner_text().endswith("agent Supporter")
        turn.get_by_role("button", name="Prompt").click()
        assert turn.locator(".sent pre").count() == 0
        page.get_by_role("button", name="All prompts").click()
        page.locator("#detail > .prompt .sent pre").nth(5).wait_for()
        assert page.locator("#detail > .prompt .sent pre").count() == 6


def test_the_next_pages_come_as_the_list_is_gone_down(browser: Any, server: ViewServer) -> None:
    with opened(browser, server) as page:
        assert "the first 100" in page.locator("#count").inner_text()
        page.locator("#rows").focus()
        page.keyboard.press("End")
        until(page, lambda: page.locator("#count").inner_text() == "130 tasks")
        page.keyboard.press("End")
        until(page, lambda: rows(page)[-1:] == ["t129"])
        page.get_by_label("From task number").fill("121")
        page.keyboard.press("Enter")
        until(page, lambda: rows(page)[:1] == ["t120"])


@contextmanager
def held_up(folder: Path, first: int, last: int) -> Generator[threading.Event]:
    """A run whose tasks from `first` on have replies only once the event is set."""
    gate = threading.Event()
    folder.mkdir()
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks(last)))
    job = Run(evalset=EvalSet(folder / "tasks.jsonl"), folder=folder, evaluator=DebateEvaluator("general", rounds=1))

    async def reply(call: Call) -> str:
        asked = re.search(r"Question (\d+)\?", str(call))
        assert asked is not None
        while int(asked[1]) >= first and not gate.is_set():
            await asyncio.sleep(0.02)
        return reply_for(call)

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(job.execute, {"scripted": Scripted(reply)}, SilentListener())
        try:
            yield gate
        finally:
            gate.set()
            running.result()


def evaluated(store: Path) -> int:
    """How many evaluations a store holds, that may not be there yet."""
    try:
        with Store(store, read_only=True) as opened_store:
            return sum(each.evaluated for each in opened_store.listed())
    except StoreError:
        return 0


def test_a_run_under_way_is_followed_to_its_end(browser: Any, tmp_path: Path) -> None:
    store = tmp_path / "run" / "run.sqlite"
    with held_up(tmp_path / "run", 3, 6) as gate:
        end = time.monotonic() + 60
        while evaluated(store) < 3:
            assert time.monotonic() < end
            time.sleep(0.05)
        with served(store) as server, opened(browser, server) as page:
            assert rows(page) == ["t0", "t1", "t2"]
            until(
                page, lambda: "3 of 6 tasks are evaluated; 1 process works on it" in page.locator("#live").inner_text()
            )
            assert "alive" in page.locator("#processes").inner_text()
            gate.set()
            until(page, lambda: rows(page) == [f"t{n}" for n in range(6)])
            until(page, lambda: "6 of 6 tasks are evaluated" in page.locator("#live").inner_text())
            until(page, lambda: "ended" in page.locator("#processes").inner_text())


def test_the_runs_of_a_store_are_chosen_below_the_figures(browser: Any, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    for name, rounds in (("first", 1), ("second", 2)):
        evaluate_in(store, name, rounds)
    with served(store) as server, opened(browser, server) as page:
        assert page.locator("h1").inner_text() == "second"
        until(page, lambda: page.locator("#runs tbody tr").first.inner_text().split()[-2:] == ["2", "2"])
        page.get_by_role("link", name="first", exact=True).click()
        until(page, lambda: page.locator("h1").inner_text() == "first")
        until(page, lambda: rows(page) == ["t0", "t1"])
        page.locator("#row-0").click()
        page.wait_for_selector("#detail h2")
        assert "1 round;" in page.locator("#detail").inner_text()


def evaluate_in(store: Path, name: str, rounds: int) -> None:
    """Evaluate two tasks in a run of a store, from Python."""

    def evaluate() -> None:
        given = [Task(each["x"], each["candidates"], each["id"]) for each in tasks(2)]
        evaluator = DebateEvaluator("general", rounds=rounds, convergence=None)
        with Store(store) as opened_store, Engine(Scripted(reply_for), store=opened_store) as engine:
            engine.evaluate_batch(given, evaluator, run=name)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(evaluate).result()


def test_content_that_would_run_stays_text(browser: Any, tmp_path: Path) -> None:
    hostile = [
        {"id": HOSTILE + str(n), "x": text, "candidates": [text, HOSTILE], "metadata": {"group": HOSTILE, "best": 0}}
        for n, text in enumerate(TEXTS)
    ]
    run = debated(tmp_path / "<img src=x onerror=alert(1)>", hostile, rounds=1)
    with served(run.directory.path / "run.sqlite") as server, opened(browser, server) as page:
        for place in range(len(TEXTS)):
            page.locator("#rows [role=option]").nth(place).click()
            page.wait_for_selector("#detail h2")
            assert page.evaluate("document.scripts.length") == 1
            assert page.evaluate("document.images.length") == 0
            page.keyboard.press("Escape")
            page.wait_for_selector("#list:not([hidden])")
        assert "taken" not in page.title()


def test_axe_finds_nothing_serious(browser: Any, server: ViewServer) -> None:
    axe = Path(required_module("axe_playwright_python").__file__).parent / "axe.min.js"
    with opened(browser, server) as page:
        page.wait_for_selector("#facts dt")
        page.evaluate(axe.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
