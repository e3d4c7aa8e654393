"""The result of a run: Markdown of any kind, the reading view, and files of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import assert_screen_is_usable, every_width, resize
from tests.support.browser.chromium import DESKTOP, PHONE, Pages
from tests.support.browser.nasty_text import LONG_TEXT, NASTY_TEXT
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.browser.steps import execute_graph

ONE_STEP: dict[str, Any] = {
    "title": "A report: everything",
    "nodes": [
        {"id": "report", "name": "Report", "type": "agent", "description": "Report.", "data": {}}
    ],
    "edges": [],
}


async def reported(page: Page, model: ScriptedModel, text: str = NASTY_TEXT) -> Locator:
    """Run a step that says a text, and open it in the reading view."""
    model.replies = {"Report.": text}
    await execute_graph(page, ONE_STEP)
    await page.get_by_role("button", name="Read", exact=True).click()
    article = page.get_by_role("article", name="Result")
    await expect(article).to_be_visible()
    return article


@every_width
async def test_the_reading_view_shows_markdown_of_any_kind(
    empty_page: Page, model: ScriptedModel, width: str
) -> None:
    page = empty_page
    article = await reported(page, model)
    await expect(article.locator("math")).to_have_count(2)
    await expect(article.get_by_text("From $5 to $10 the share is")).to_be_visible()
    await expect(article.get_by_role("img", name="Diagram")).to_be_visible()
    await expect(article.get_by_role("img", name="A dot")).to_be_visible()
    await expect(article.get_by_role("link", name="Picture: From elsewhere")).to_be_visible()
    await expect(article.locator(".hljs-comment")).to_have_text("// What is longest")
    await expect(article.get_by_role("button", name="Copy the code").first).to_be_visible()
    await assert_screen_is_usable(page, "result", width)


async def test_tables_scroll_words_stay_whole_and_text_is_read_in_its_direction(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    article = await reported(page, model)
    table = article.get_by_role("region", name="Table")
    for size in (DESKTOP, (768, 1024), PHONE):
        await resize(page, size)
        heights = await table.locator("td").evaluate_all(
            """(cells) => cells.map((cell) => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                const words = cell.textContent.split(/[ -]/).length;
                return range.getClientRects().length <= words;
            })"""
        )
        assert all(heights), f"a word is broken at {size}"
    assert await table.evaluate("(each) => each.scrollWidth > each.clientWidth")
    arabic = article.get_by_text("السعر هو")
    assert await arabic.evaluate("(each) => getComputedStyle(each).direction") == "rtl"
    sizes = [
        await article.get_by_role("heading", name=name).evaluate(
            "(each) => parseFloat(getComputedStyle(each).fontSize)"
        )
        for name in ("A report with everything", "Scripts", "Third level", "Fourth level")
    ]
    assert sizes == sorted(set(sizes), reverse=True), "headings look alike"


async def test_a_diagram_runs_nothing(pages: Pages, model: ScriptedModel) -> None:
    pages.errors.expect("script-src-attr|inline event handler")  # in the frame that draws it
    page = await pages.open(None)
    text = '```mermaid\nflowchart LR\n  a["<img src=x onerror=alert(1)>"] --> b\n  click a href "javascript:alert(1)"\n```\n\n```mermaid\nno diagram at all\n```'
    article = await reported(page, model, text)
    await expect(article.get_by_role("img", name="Diagram")).to_have_count(1)
    await expect(article.get_by_text("no diagram at all")).to_be_visible()
    source = await article.get_by_role("img", name="Diagram").get_attribute("src") or ""
    assert "onerror" not in source
    assert "javascript" not in source
    assert "foreignObject" not in source


async def test_a_result_is_downloaded_in_each_form(
    empty_page: Page, model: ScriptedModel, tmp_path: Path
) -> None:
    page = empty_page
    article = await reported(page, model)
    await expect(article.get_by_role("img", name="Diagram")).to_be_visible()
    assert await downloaded(page, "Markdown", tmp_path / "a.md") == (
        "A-report-everything.md",
        NASTY_TEXT,
    )
    name, html = await downloaded(page, "HTML", tmp_path / "a.html")
    assert name == "A-report-everything.html"
    assert "<button" not in html
    assert "data:image/svg+xml" in html
    await page.goto((tmp_path / "a.html").as_uri())
    await expect(page).to_have_title("A report: everything")
    await expect(page.get_by_role("heading", name="Mathematics")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def downloaded(page: Page, form: str, to: Path) -> tuple[str, str]:
    """Return the name and the text of a result as a file."""
    await page.get_by_role("button", name="Download").click()
    async with page.expect_download() as waiting:
        await page.get_by_role("menuitem", name=form).click()
    download = await waiting.value
    await download.save_as(to)
    return download.suggested_filename, await asyncio.to_thread(to.read_text, "utf-8")


async def test_the_contents_lead_through_a_long_result(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    article = await reported(page, model, LONG_TEXT)
    contents = page.get_by_role("navigation", name="Contents")
    await contents.get_by_role("button", name="Section 42").click()
    heading = article.get_by_role("heading", name="Section 42")
    await expect(heading).to_be_in_viewport()
    await expect(heading).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("tabpanel", name="Result")).to_be_visible()


@pytest.mark.parametrize("size", [(1024, 768), (768, 1024), (820, 1180), (1101, 800)])
async def test_the_canvas_keeps_its_height_at_every_width(
    empty_page: Page, model: ScriptedModel, size: tuple[int, int]
) -> None:
    page = empty_page
    model.replies = {"Report.": NASTY_TEXT}
    await execute_graph(page, ONE_STEP)
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("everything")
    await resize(page, size)
    box = await page.locator(".react-flow").bounding_box()
    assert box is not None
    assert box["height"] >= 240
    await expect(page.get_by_role("button", name="Read", exact=True)).to_be_in_viewport(ratio=0)
