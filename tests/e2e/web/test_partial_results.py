"""A run that failed and delivered results, in the browser: what is there first, then what is missing and why."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page, expect

from tests.support.browser.accessibility import (
    assert_accessible_in_both_themes,
    assert_screen_is_usable,
    every_width,
    resize,
)
from tests.support.browser.chromium import PHONE
from tests.support.browser.steps import execute_graph, stored_events

FLOW = {"channel": "flow"}
HALF: dict[str, Any] = {
    "title": "A weekend in Lisbon",
    "nodes": [
        {"id": "sights", "type": "text", "name": "Name the sights", "data": {"text": "The tower."}},
        {"id": "prices", "type": "text", "name": "Find the prices", "data": {"text": "{{ 1 / 0 }}"}},
        {"id": "budget", "type": "text", "name": "Sum up the budget", "data": {"text": "{{ input }}"}},
        {"id": "advice", "type": "text", "name": "Advise on hotels", "data": {"text": "{{ 2 / 0 }}"}},
    ],
    "edges": [{"source": "prices", "target": "budget", "data": FLOW}],
}  # fmt: skip


@every_width
async def test_a_run_that_failed_in_part_shows_its_results_then_what_is_missing(
    empty_page: Page, width: str
) -> None:
    page = empty_page
    execution_id = await execute_graph(page, HALF)
    await stored_events(page, execution_id)
    await expect(page.get_by_text("Failed in part")).to_be_visible()
    panel = page.get_by_role("complementary", name="The run")
    await expect(panel.get_by_text("The tower.")).to_be_visible()
    rows = panel.get_by_role("region", name="Missing").get_by_role("listitem")
    await expect(rows).to_have_text(
        ["Sum up the budget, because Find the prices failed", "Advise on hotels failed"]
    )
    words = await panel.inner_text()
    places = [words.index(each) for each in ("The tower.", "Missing", "division by zero")]
    assert places == sorted(places)
    await assert_screen_is_usable(page, "run-partial", width)
    if width == "phone":
        await resize(page, PHONE)
        await page.get_by_text("Result", exact=True).last.click()
        await expect(rows).to_have_count(2)
        await assert_accessible_in_both_themes(page, "run-partial-result-phone")
    await rows.first.get_by_role("button", name="Find the prices").click()
    await expect(page.get_by_role("heading", name="Find the prices")).to_be_visible()
    await page.goto(f"/runs?q={execution_id}")
    row = page.get_by_role("row").filter(has_text="A weekend in Lisbon")
    await expect(row.get_by_text("Failed in part")).to_be_visible()
    await assert_screen_is_usable(page, "runs-partial", width)
    await page.goto("/")
    # What runs are kept is of no concern to other tests.
    assert (await page.request.delete(f"/api/executions/{execution_id}")).ok


async def test_the_reading_view_says_what_is_missing(empty_page: Page) -> None:
    page = empty_page
    execution_id = await execute_graph(page, HALF)
    await page.get_by_role("button", name="Read", exact=True).click()
    article = page.get_by_role("article", name="Result")
    await expect(article).to_contain_text("The tower.")
    await expect(article).to_contain_text("Missing: Sum up the budget, Advise on hotels.")
    await page.goto("/")
    assert (await page.request.delete(f"/api/executions/{execution_id}")).ok
