"""The card of an evaluation in a real browser, as a notebook shows it."""

from __future__ import annotations

from typing import Any

import pytest

from debate.notebook.cards import html_of
from tests.report.pages import HOSTILE, debated, noted, tasks

COLORS = {"light": ("white", "black"), "dark": ("#111", "#eee")}
"""Background and letters of a notebook's themes."""

BROKEN = """() => {
  const word = document.createRange();
  const isBroken = (cell) => [...cell.textContent.matchAll(/\\S+/g)].some((found) => {
    word.setStart(cell.firstChild, found.index);
    word.setEnd(cell.firstChild, found.index + found[0].length);
    return word.getClientRects().length > 1;
  });
  return [...document.querySelectorAll("th, td.n, .heat td:first-child")]
    .filter((cell) => cell.offsetParent && cell.childNodes.length === 1 && cell.firstChild.nodeType === Node.TEXT_NODE)
    .filter((cell) => isBroken(cell) || cell.scrollWidth > cell.clientWidth + 1)
    .map((cell) => cell.textContent);
}"""
"""The texts of the visible cells in which a word goes over several lines, or sticks out."""


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> str:
    hostile = [{**task, "x": f"{HOSTILE} {n}"} for n, task in enumerate(tasks(2))]
    run = debated(tmp_path_factory.mktemp("cards") / "run", hostile)
    with run.directory.open_store(read_only=True) as store:
        _, evaluation = next(store.read(run.directory.name).results("t0"))
    found = html_of(evaluation)
    assert found is not None
    return found


@pytest.mark.parametrize("theme", COLORS)
@pytest.mark.parametrize("width", [420, 1100])
def test_headers_and_numbers_stay_whole_in_both_themes(browser: Any, card: str, theme: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=theme, offline=True)
    asked, said = list[str](), list[str]()
    page.on("request", noted(asked, "url"))
    page.on("console", noted(said, "text"))
    background, letters = COLORS[theme]
    page.set_content(f"<body style='background:{background};color:{letters}'>{card}")
    assert "completeness" in page.locator(".heat").first.inner_text()
    broken = page.evaluate(BROKEN)
    colors = page.evaluate("getComputedStyle(document.querySelector('.heat td')).color")
    page.close()
    assert broken == []
    assert colors == {"light": "rgb(0, 0, 0)", "dark": "rgb(238, 238, 238)"}[theme]
    assert (asked, said) == ([], [])
