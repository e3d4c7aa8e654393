"""Layout between the widths of a desk and of a phone: what is read first stays whole and in sight."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import assert_accessible_in_both_themes, resize
from tests.support.browser.chromium import DESKTOP, PHONE, TABLET
from tests.support.browser.nasty_text import LONG_TEXT
from tests.support.browser.steps import execute_graph, stored_events

JSON_TEXT = '{"order":3544790567247868102,"price":1.0,"lines":[{"sku":"pot-12","count":3}]}'
TABLE = (
    "Steps first:\n\n- one\n- two\n\n> Not on Mondays.\n\n| Day | What | Costs |\n|---|---|---:|\n"
    + ("| 2026-11-28 | Grilled sardines and a long walk along the river | 1,234.50 € |\n" * 2)
)

_CUT = """
(row) => {
  const end = row.getBoundingClientRect();
  return [...row.children]
    .map((each) => [each.textContent, each.getBoundingClientRect()])
    .filter(([, box]) => box.top < end.bottom - 1 && box.bottom > end.top + 1)
    .filter(([, box]) => box.right > end.right + 0.5)
    .map(([words]) => words);
}
"""
"""The children of a row that are seen in part."""
_LINES = """
(cells) => cells.map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
})
"""


def text(words: str, title: str = "A page") -> dict[str, Any]:
    """Return a graph of one step that gives a text."""
    node = {"id": "page", "type": "text", "name": "Page", "data": {"text": words}}
    return {"title": title, "nodes": [node], "edges": []}


async def ran(page: Page, graph: dict[str, Any]) -> str:
    """Run a graph to its end, and stay on its page; return the id of the execution."""
    execution_id = await execute_graph(page, graph)
    await stored_events(page, execution_id)
    await expect(page.get_by_role("tabpanel", name="Result")).to_be_visible()
    return execution_id


def result(page: Page) -> Locator:
    return page.get_by_role("tabpanel", name="Result")


async def test_json_is_read_line_by_line_and_no_button_lies_on_it(empty_page: Page) -> None:
    page = empty_page
    await ran(page, text(JSON_TEXT))
    code = result(page).locator("pre")
    await expect(code).to_have_text(re.compile(r'"order": 3544790567247868102,\s+"price": 1\.0,'))
    assert (await code.inner_text()).count("\n") >= 8
    copy = await result(page).get_by_role("button", name="Copy the code").bounding_box()
    box = await code.bounding_box()
    assert copy is not None
    assert box is not None
    assert copy["x"] >= box["x"] + box["width"]


async def test_figures_of_a_table_stay_on_one_line(empty_page: Page) -> None:
    page = empty_page
    execution_id = await ran(page, text(TABLE))
    await expect(result(page).get_by_role("cell", name="2026-11-28").first).to_be_visible()
    for size in (DESKTOP, TABLET):
        await resize(page, size)
        lines = await result(page).locator("tbody tr").first.locator("td").evaluate_all(_LINES)
        assert (lines[0], lines[2]) == (1, 1), size
    gap = await result(page).evaluate(
        """(panel) => panel.querySelector("blockquote").getBoundingClientRect().top
            - panel.querySelector("ul").getBoundingClientRect().bottom"""
    )
    assert gap >= 8, "a quote touches the list above it"
    link = await page.request.post(f"/api/executions/{execution_id}/links")
    await page.goto((await link.json())["url"])
    await resize(page, PHONE)
    lines = await page.locator("tbody tr").first.locator("td").evaluate_all(_LINES)
    assert lines[2] == 1, "a figure is broken on the page of a link"


@pytest.mark.parametrize("width", [1440, 1024, 768])
async def test_no_fact_of_a_run_ends_in_the_middle(empty_page: Page, width: int) -> None:
    page = empty_page
    execution_id = await ran(page, text("Three days.", "Three days in Lisbon in May"))
    labels = {"tags": ["trip", "may", "with Ada", "by public transport"]}
    await page.request.patch(f"/api/executions/{execution_id}", data=labels)
    await page.reload()
    header = page.locator("header").filter(has=page.get_by_role("button", name="Run again"))
    await expect(header).to_contain_text("trip")
    await resize(page, (width, 800))
    facts = header.locator("div").filter(has_text=re.compile("^1 completed")).last
    assert await facts.evaluate(_CUT) == []
    name = header.get_by_role("heading")
    assert await name.evaluate("(each) => each.scrollWidth <= each.clientWidth"), "the name is cut"


async def test_the_result_has_its_place_at_half_a_screen(empty_page: Page) -> None:
    page = empty_page
    await ran(page, text(TABLE))
    await resize(page, (1024, 768))
    await expect(result(page).get_by_text("Steps first:")).to_be_in_viewport(ratio=1)
    canvas = await page.locator(".react-flow").bounding_box()
    assert canvas is not None
    assert canvas["height"] >= 240


async def test_contents_fold_where_they_would_push_the_text_away(empty_page: Page) -> None:
    page = empty_page
    await ran(page, text(LONG_TEXT))
    await page.get_by_role("button", name="Read", exact=True).click()
    article = page.get_by_role("article", name="Result")
    contents = page.get_by_role("navigation", name="Contents")
    for size in (PHONE, TABLET):
        await resize(page, size)
        await expect(article.get_by_role("heading").first).to_be_in_viewport()
        buttons = page.get_by_role("button", name=re.compile("^(Back to the run|Share)$"))
        tops = [await each.evaluate("(it) => it.offsetTop") for each in await buttons.all()]
        assert len(set(tops)) == 1, "the buttons need more than a row"
    await contents.get_by_text("Contents").click()
    await contents.get_by_role("button", name="Section 42").click()
    await expect(article.get_by_role("heading", name="Section 42")).to_be_in_viewport()


async def test_runs_keep_their_names_between_a_desk_and_a_phone(empty_page: Page) -> None:
    page = empty_page
    own = await ran(page, text("One.", "Weekly incident review"))
    labels = {"tags": ["incidents", "payments", "week 48"], "starred": True}
    await page.request.patch(f"/api/executions/{own}", data=labels)
    await page.goto("/runs?tag=incidents")
    name = page.locator(f'tbody a[href="/runs/{own}"]')
    for width in (1440, 1024, 900, 768, 721, 390):
        await resize(page, (width, 800))
        whole = await name.evaluate("(each) => each.scrollWidth <= each.clientWidth + 1")
        assert whole, f"the name is cut at {width}"


async def test_what_is_done_with_selected_runs_stays_in_sight_on_a_phone(empty_page: Page) -> None:
    page = empty_page
    for number in range(6):
        await ran(page, text("One.", f"Selected {number}"))
    node = {"id": "ask", "type": "approval", "name": "Ask", "data": {"prompt": "Send it?"}}
    held = await execute_graph(page, {"title": "Selected, held", "nodes": [node], "edges": []})
    await resize(page, (PHONE[0], 480))
    await page.goto("/runs")
    await page.get_by_role("button", name="Select", exact=True).click()
    bar = page.get_by_role("region", name="Selected runs")
    await page.get_by_role("checkbox", name="Select Selected, held").check()
    await expect(bar.get_by_role("button", name="Cancel 1")).to_be_in_viewport(ratio=1)
    row = page.get_by_role("row").filter(has=page.locator(f'a[href="/runs/{held}"]'))
    for button in await row.get_by_role("button").all():
        box = await button.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= PHONE[0]
    tops = await bar.evaluate(
        "(each) => [...each.querySelectorAll('p, button')].map((part) => part.getBoundingClientRect())"
        ".map(({ top, height }) => Math.round(top + height / 2))"
    )
    assert len(set(tops)) == 2, "what is selected, and below it what can be done"
    for button in await bar.get_by_role("button").all():
        box = await button.bounding_box()
        assert box is not None
        assert box["height"] >= 32, "a thumb has to hit it"
    # Elsewhere the bar may cover half of a row, as whatever stays in sight does.
    await bar.evaluate("(each) => each.scrollIntoView({ block: 'end', behavior: 'instant' })")
    await page.mouse.wheel(0, 4_000)
    await assert_accessible_in_both_themes(page, "selected-phone")


async def test_the_bar_says_where_screens_belong_that_it_does_not_name(page: Page) -> None:
    bar = page.get_by_role("banner").get_by_role("navigation", name="Main")
    for path, label in {"/spend": "Runs", "/triggers": "Flows", "/runs": "Runs"}.items():
        await page.goto(path)
        await expect(bar.get_by_role("link", name=label)).to_have_attribute("aria-current", "page")
        await expect(bar.locator("[aria-current]")).to_have_count(1)


async def test_the_table_of_steps_keeps_their_names_at_each_width(empty_page: Page) -> None:
    page = empty_page
    node = {"id": "page", "type": "text", "name": "Compare three", "data": {"text": "One."}}
    await ran(page, {"title": "A table", "nodes": [node], "edges": []})
    name = page.get_by_role("table", name="Steps").get_by_role("button", name="Compare three")
    for width in (1440, 1024, 768, 721, 390, 320):
        await resize(page, (width, 800))
        if not await name.is_visible():
            await page.get_by_role("radio", name="Table").click()
        await expect(name).to_be_visible()
        whole = await name.evaluate(
            "(each) => each.scrollWidth <= each.clientWidth && each.getBoundingClientRect().width > 60"
        )
        assert whole, f"the name is cut at {width}"
