"""What people come to do, with the clicks that it takes.

Three more are with their screens: words become an input of a flow (``test_reuse.py``), and a run is found, and
stopped, in the list (``test_run_library.py``).
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from playwright.async_api import Page, expect

from tests.e2e.web.test_approvals import ask, results
from tests.support.browser.clicks import clicks_on, count_clicks
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.browser.steps import execute_graph, stored_events
from tests.support.llm.fake_llm_server import ErrorReply

DOLLARS = r"(?:under )?\$[\d.]+"


async def test_a_goal_becomes_a_result_which_is_kept_as_a_file_and_has_its_price(
    page: Page, model: ScriptedModel, tmp_path: Path
) -> None:
    model.replies = {"Do last": "Plant it in **clay**."}
    await count_clicks(page)
    await expect(page.get_by_role("textbox", name="Goal")).to_be_focused()
    await page.keyboard.type("Plant a basil")
    await page.get_by_role("button", name="Make a plan").click()
    await page.get_by_role("button", name="Run", exact=True).click()
    result = page.get_by_role("tabpanel", name="Result")
    await expect(result).to_contain_text("Plant it in clay.")
    assert await clicks_on(page) <= 2

    await count_clicks(page)
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="Download").click()
    assert await clicks_on(page) <= 1
    download = await waiting.value
    assert download.suggested_filename == "Two-steps-and-a-last-one.md", "named by an id"
    await download.save_as(tmp_path / "result.md")
    text = await asyncio.to_thread((tmp_path / "result.md").read_text, "utf-8")
    assert text == "Plant it in **clay**."

    await count_clicks(page)
    header = page.locator("header").filter(has=page.get_by_role("heading", level=1))
    planning = f"{DOLLARS}(, of which {DOLLARS} planning| with planning)"
    await expect(header).to_contain_text(re.compile(planning))
    await page.get_by_role("tab", name="Cost").click()
    cost = page.get_by_role("tabpanel", name="Cost")
    await expect(cost).to_contain_text(re.compile(f"Planning.*{DOLLARS}.*In all.*{DOLLARS}"))
    assert await clicks_on(page) <= 1


async def test_other_words_of_a_step_cost_what_they_change_and_both_runs_are_compared(
    page: Page, model: ScriptedModel
) -> None:
    """Only the changed step and the one after it are asked again; the older run is on side A."""
    model.replies = {"Do last": "Take the clay."}
    planned = await page.request.post("/api/plan", data={"prompt": "Sage twice"})
    body = {"plan_id": (await planned.json())["plan_id"], "start": True}
    older = (await (await page.request.post("/api/execute", data=body)).json())["execution_id"]
    await page.goto(f"/runs/{older}")
    await expect(page.get_by_role("button", name="Run again")).to_be_visible()
    model.replies = {"Do it better": "Stone is better.", "Do last": "Take the stone."}
    model.prompts.clear()
    await count_clicks(page)
    await page.get_by_role("button", name="First, completed").first.click()
    await page.get_by_role("button", name="Fork with a change").click()
    dialog = page.get_by_role("dialog", name="Fork this run")
    await dialog.get_by_label("Task").fill("Do it better.")
    await dialog.get_by_role("button", name="Fork and run").click()
    await page.wait_for_url(lambda url: "/runs/" in url and older not in url)
    newer = page.url.partition("/runs/")[2].partition("?")[0]
    await stored_events(page, newer)
    assert await clicks_on(page) <= 3
    assert len(model.prompts) == 2
    assert "Do it better." in model.prompts[0]
    assert "Do last." in model.prompts[1]

    await page.goto("/runs?q=sage+twice")
    rows = page.get_by_role("table", name="Runs").locator("tbody tr")
    await expect(rows).to_have_count(2)
    await count_clicks(page)
    for index in (0, 1):  # the newer one first
        await rows.nth(index).get_by_role("checkbox").click()
    await page.wait_for_url(f"**a={older}&b={newer}**")
    dock = page.get_by_role("region", name="Compare two runs")
    await dock.get_by_role("button", name="Last").press("Enter")
    output = dock.get_by_role("region", name="Last, output")
    await expect(output.locator("del")).to_have_text("clay.")
    await expect(output.locator("ins")).to_have_text("stone.")
    assert await clicks_on(page) <= 2


async def test_why_a_step_failed_stands_on_the_page_with_its_name(
    page: Page, model: ScriptedModel
) -> None:
    model.replies = {"Find it": ErrorReply(401, "invalid_request_error", "Incorrect API key")}
    nodes = [
        {"id": "b", "type": "agent", "name": "Find food", "description": "Find it.", "data": {}},
        {"id": "c", "type": "end", "name": "Last"},
    ]
    edge = {"source": "b", "target": "c", "data": {"channel": "flow"}}
    graph = {"title": "Thyme fails", "nodes": nodes, "edges": [edge]}
    execution_id = await execute_graph(page, graph)
    await stored_events(page, execution_id)
    await page.goto("/runs?q=thyme+fails")
    await count_clicks(page)
    await page.get_by_role("table", name="Runs").get_by_role("link", name="Thyme fails").click()
    result = page.get_by_role("tabpanel", name="Result")
    await expect(result).to_contain_text("refused the credentials")
    await expect(result.get_by_role("button", name="Show Find food")).to_be_visible()
    assert await clicks_on(page) <= 1
    await expect(page.get_by_role("main").get_by_text("'b'")).to_have_count(0)  # an id
    await expect(page.get_by_role("application")).to_contain_text("Find food failed")


async def test_a_request_is_approved_with_another_value_in_three_clicks(page: Page) -> None:
    execution_id = await ask(page, "Three clicks")
    await page.goto("/approvals")
    row = page.get_by_role("navigation", name="Requests").get_by_role("link", name="Three clicks")
    await expect(row).to_be_visible()
    await count_clicks(page)
    await row.click()
    detail = page.get_by_role("region", name="Request")
    await expect(detail.get_by_role("heading", name="Three clicks")).to_be_visible()
    await detail.get_by_role("button", name="Edit first").click()
    await detail.get_by_label("What is passed on, edited").fill("Dear team")
    await detail.get_by_role("button", name="Approve").click()
    await expect(row).to_have_count(0)
    assert await clicks_on(page) <= 3
    assert (await results(page, execution_id))["sent"] == "Sent: Dear team"
