"""A run that waits is changed: what has begun is fixed, a new step runs, and the run tells what was changed."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page, expect

from tests.support.browser.accessibility import assert_accessible_in_both_themes, resize
from tests.support.browser.chromium import Pages
from tests.support.browser.steps import execute_graph, stored_events

GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "draft", "type": "text", "name": "Draft", "data": {"text": "A draft."}},
        {"id": "ask", "type": "approval", "name": "Ask", "data": {"prompt": "Publish this?"}},
        {"id": "sent", "type": "text", "name": "Send", "data": {"text": "Sent."}},
    ],
    "edges": [
        {"source": "draft", "target": "ask", "data": {"channel": "flow"}},
        {"source": "ask", "sourceHandle": "approve", "target": "sent", "data": {"channel": "flow"}},
    ],
}  # fmt: skip


async def opened(page: Page) -> str:
    """Start a run that waits, and open its change; return its id."""
    execution_id = await execute_graph(page, GRAPH)
    await expect(page.get_by_role("button", name="Ask, waiting").first).to_be_visible()
    await page.get_by_role("link", name="Change this run …").click()
    await page.wait_for_url(f"**/runs/{execution_id}/change")
    return execution_id


async def add_costs(page: Page) -> None:
    await page.get_by_role("button", name="Add step").click()
    await page.get_by_label("Find a type").fill("text")
    await page.get_by_label("Find a type").press("Enter")
    panel = page.get_by_role("complementary")
    await panel.get_by_label("Name").fill("Costs")
    await panel.get_by_label("Text", exact=True).fill("It costs 3 EUR.")


async def test_a_waiting_run_is_changed_and_ends_with_both_results(pages: Pages) -> None:
    page = await pages.open(None)
    execution_id = await opened(page)
    fixed = page.get_by_role("button", name="Ask, fixed: it is waiting")
    await fixed.click()
    panel = page.get_by_role("complementary", name="Settings of Ask")
    await expect(panel).to_contain_text("Fixed: it is waiting.")
    await expect(panel.get_by_label("Name")).to_be_disabled()
    await expect(panel.get_by_role("button", name="Remove", exact=True)).to_have_count(0)
    await page.keyboard.press("Escape")
    await add_costs(page)
    await page.get_by_label("Why").fill("also cover costs")
    await page.get_by_role("complementary").get_by_role("button", name="Close").click()
    for width in (1440, 390):
        await resize(page, (width, 900))
        await assert_accessible_in_both_themes(page, f"change-run-{width}")
    await resize(page, (1440, 900))
    await page.get_by_role("button", name="Change the run").click()
    await page.wait_for_url(f"**/runs/{execution_id}")
    await expect(page.get_by_role("button", name="Costs, completed").first).to_be_visible()
    await page.get_by_role("button", name="Plan changed 1 time").click()
    changes = page.get_by_role("dialog", name="Changes of the plan")
    await expect(changes).to_contain_text("also cover costs")
    await expect(changes).to_contain_text("Costs")
    for width in (1440, 390):
        await resize(page, (width, 900))
        await assert_accessible_in_both_themes(page, f"changes-of-run-{width}")
    await resize(page, (1440, 900))
    await changes.get_by_role("button", name="Close").click()
    await page.get_by_role("button", name="Ask, waiting").first.click()
    waiting = page.get_by_role("region", name="Waiting for you")
    await waiting.get_by_role("button", name="Approve").click()
    assert (await stored_events(page, execution_id))[-1] == "execution.completed"
    answer = await page.request.get(f"/api/executions/{execution_id}/result")
    results = (await answer.json())["node_results"]
    assert "Sent." in results.values()
    assert "It costs 3 EUR." in results.values()


async def test_a_refusal_is_said_at_its_step_and_a_change_of_another_is_put_below(
    pages: Pages,
) -> None:
    pages.errors.expect("422")
    page = await pages.open(None)
    execution_id = await opened(page)
    await add_costs(page)
    wired = {"source": "draft", "target": "sent", "data": {"channel": "flow"}}
    other = {**GRAPH, "edges": [*GRAPH["edges"], wired]}
    made = await page.request.post(
        f"/api/executions/{execution_id}/revise", data={"graph": other, "note": "another"}
    )
    assert made.ok, await made.text()
    await expect(page.get_by_role("alert")).to_contain_text("This run was changed meanwhile.")
    await page.get_by_role("button", name="Load it again").click()
    await expect(page.get_by_role("button", name="Change the run")).to_be_enabled()
    panel = page.get_by_role("complementary")
    await page.get_by_role("button", name="Ask, fixed: it is waiting").click()
    await panel.get_by_role("tab", name="Depends on").click()
    await panel.get_by_role("button", name="Remove the wire from draft to ask").click()
    await page.get_by_role("button", name="Change the run").click()
    problems = page.get_by_role("region", name="Problems")
    await expect(problems).to_contain_text("cannot be removed: it is waiting")
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("button", name="Change the run").click()
    await page.wait_for_url(f"**/runs/{execution_id}")
    await page.get_by_role("button", name="Plan changed 2 times").click()
    changes = page.get_by_role("dialog", name="Changes of the plan").get_by_role("listitem")
    await expect(changes).to_have_count(2)
    await expect(changes.first).to_contain_text("Costs")
    await expect(changes.last).to_contain_text("another")
