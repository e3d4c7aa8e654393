"""The list of runs in the browser: filters, pages, keys, deletion; and the comparison of two runs."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import assert_screen_is_usable, every_width, resize
from tests.support.browser.chromium import PHONE
from tests.support.browser.plan_editor import patch_plan
from tests.support.browser.scripted_model import Gate, ScriptedModel
from tests.support.browser.steps import stored_events
from tests.support.llm.fake_llm_server import ErrorReply, TextReply
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node

STORES = planner_reply(
    reply_node("ways", name="Name the ways"),
    reply_node("speed", name="Assess the speed"),
    reply_node("types", name="Assess the types"),
    reply_node("advice", name="Recommendation"),
    edges=[
        reply_edge("ways", "speed"),
        reply_edge("ways", "types"),
        reply_edge("speed", "advice"),
        reply_edge("types", "advice"),
    ],
    title="Which way to store time series data",
)
FIRST = "CSV files are simple, but they keep no types. Take Parquet."
SECOND = "CSV files are simple, but they must be read whole. Take Parquet files by day."


def text_graph(title: str) -> dict[str, Any]:
    """Return a graph that needs no model."""
    node = {"id": "note", "type": "text", "name": "Note", "data": {"text": "A note."}}
    return {"title": title, "nodes": [node], "edges": []}


def approval_graph(title: str) -> dict[str, Any]:
    """Return a graph that asks a person."""
    node = {"id": "check", "type": "approval", "name": "Check", "data": {"prompt": "Send it?"}}
    return {"title": title, "nodes": [node], "edges": []}


async def execute(page: Page, body: dict[str, Any]) -> str:
    """Start an execution over HTTP and wait until it is over; return its id."""
    execution_id = await start(page, body)
    await stored_events(page, execution_id)
    return execution_id


async def start(page: Page, body: dict[str, Any]) -> str:
    answer = await page.request.post("/api/execute", data={**body, "start": True})
    assert answer.status in (200, 202), await answer.text()
    return (await answer.json())["execution_id"]


async def two_runs(page: Page, model: ScriptedModel, goal: str) -> tuple[str, str]:
    """Run one plan twice; the recommendations differ."""
    model.plans = [STORES]
    model.replies = {"Do advice": FIRST}
    planned = await page.request.post("/api/plan", data={"prompt": goal})
    assert planned.ok, await planned.text()
    plan_id = (await planned.json())["plan_id"]
    first = await execute(page, {"plan_id": plan_id})
    model.replies = {"Do advice": SECOND, "Do types": "Types are lost."}
    return first, await execute(page, {"plan_id": plan_id})


async def runs_of_a_changed_plan(page: Page, model: ScriptedModel, goal: str) -> tuple[str, str]:
    """Run a plan, then again with one step changed, one removed and one added."""
    model.plans = [STORES]
    model.replies = {"Do speed": "Slow.", "Measure the speed": "Fast."}
    planned = await page.request.post("/api/plan", data={"prompt": goal})
    plan_id = (await planned.json())["plan_id"]
    first = await execute(page, {"plan_id": plan_id})
    prompt = {"userPrompt": "Assess the price"}
    price = {"id": "price", "type": "agent", "name": "Assess the price", "data": prompt}
    edge = {"sourceHandle": "output", "targetHandle": "input", "data": {"channel": "flow"}}
    await patch_plan(
        page,
        plan_id,
        {"op": "remove_node", "id": "types"},
        {"op": "update_node", "id": "speed", "set": {"data": {"userPrompt": "Measure the speed"}}},
        {"op": "add_node", "node": price},
        {"op": "add_edge", "edge": {**edge, "source": "ways", "target": "price"}},
        {"op": "add_edge", "edge": {**edge, "source": "price", "target": "advice"}},
    )
    return first, await execute(page, {"plan_id": plan_id})


def rows(page: Page) -> Locator:
    """Return the rows of the list, without its head."""
    return page.get_by_role("table", name="Runs").locator("tbody tr")


async def open_runs(page: Page, text: str) -> None:
    """Open the list of the runs with a text in their title."""
    await page.goto(f"/runs?q={text}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Runs")


@pytest.mark.slow
async def test_runs_are_filtered_by_status_time_and_text_and_deleted(empty_page: Page) -> None:
    page = empty_page
    for title in ("Basil one", "Basil two", "Other"):
        await execute(page, {"graph": text_graph(title)})
    waiting = await start(page, {"graph": approval_graph("Basil asks")})
    await page.goto(f"/runs/{waiting}")
    await expect(page.get_by_text("Waiting for you").first).to_be_visible()

    await page.get_by_role("link", name="Runs").first.click()
    await page.get_by_role("searchbox", name="Words, name, tag or id").fill("basil")
    await expect(rows(page)).to_have_count(3)
    await expect(rows(page).first).to_contain_text("Waiting for you")
    await expect(page.get_by_role("main")).to_contain_text("3 runs")
    await expect(page.get_by_role("radio", name="Completed")).to_have_text("Completed2")
    assert "q=basil" in page.url

    await page.get_by_role("radio", name="Waiting for you").click()
    await expect(rows(page)).to_have_count(1)
    await page.get_by_role("radio", name="Completed").click()
    await expect(rows(page)).to_have_count(2)
    await page.get_by_role("button", name="Any time").click()
    await page.get_by_role("menuitemradio", name="Today").click()
    await page.wait_for_url("**/runs?q=basil&status=completed&time=today")
    await page.reload()
    await expect(rows(page)).to_have_count(2)

    await page.get_by_role("radio", name="Failed").click()
    await expect(page.get_by_role("heading", name="No run fits.")).to_be_visible()
    await page.get_by_role("button", name="Clear filter").click()
    await expect(rows(page).filter(has_text="Other").first).to_be_visible()
    await expect(page.get_by_role("searchbox", name="Words, name, tag or id")).to_have_value("")
    assert page.url.endswith("/runs")

    await page.get_by_role("searchbox", name="Words, name, tag or id").fill("basil one")
    await expect(rows(page)).to_have_count(1)
    await page.get_by_role("button", name="More for Basil one").click()
    await page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete this run")
    await dialog.get_by_role("button", name="Keep it").click()
    await page.get_by_role("button", name="More for Basil one").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="No run fits.")).to_be_visible()


@pytest.mark.slow
async def test_list_follows_a_run(empty_page: Page, model: ScriptedModel) -> None:
    page = empty_page
    gate = Gate()
    model.replies = {"Do second": TextReply("Done.", chunks=2, gates={1: gate})}
    planned = await page.request.post("/api/plan", data={"prompt": "Dill is followed"})
    await start(page, {"plan_id": (await planned.json())["plan_id"]})
    await open_runs(page, "dill")
    await expect(rows(page)).to_contain_text("Running")
    gate.set()
    await expect(rows(page)).to_contain_text("Completed")


@pytest.mark.slow
async def test_menu_of_a_run_leads_to_its_plan_its_file_and_a_retry(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    model.replies = {"Do second": ErrorReply(401, "invalid_request_error", "Incorrect API key")}
    planned = await page.request.post("/api/plan", data={"prompt": "Garlic is retried"})
    plan_id = (await planned.json())["plan_id"]
    execution_id = await execute(page, {"plan_id": plan_id})
    await open_runs(page, "garlic")
    more = page.get_by_role("button", name="More for")
    await more.click()
    async with page.expect_download() as download:
        await page.get_by_role("menuitem", name="Stored JSON").click()
    assert (await download.value).suggested_filename == "Two-steps-and-a-last-one.json"
    await more.click()
    await page.get_by_role("menuitem", name="Load the plan into the editor").click()
    await page.wait_for_url(f"**/plans/{plan_id}")
    await page.go_back()
    model.replies = {}
    await more.click()
    await page.get_by_role("menuitem", name="Retry failed").click()
    await page.wait_for_url(lambda url: "/runs/" in url and execution_id not in url)
    await expect(page.get_by_role("button", name="Last, completed").first).to_be_visible()


@every_width
async def test_two_runs_are_compared_in_the_dock_and_on_a_page(
    empty_page: Page, model: ScriptedModel, width: str
) -> None:
    page = empty_page
    first, second = await two_runs(page, model, "Leek stores")
    await open_runs(page, "leek")
    await rows(page).nth(1).get_by_role("checkbox").check()
    await expect(page.get_by_role("region", name="Compare")).to_contain_text("Tick two runs.")
    await assert_screen_is_usable(page, "runs", width)
    await rows(page).nth(0).get_by_role("checkbox").check()

    dock = page.get_by_role("region", name="Compare two runs")
    await expect(dock).to_contain_text("Same plan, same goal")
    await expect(dock).to_contain_text("Both completed")
    await expect(dock.get_by_role("row", name="Changed")).to_contain_text("2 of 4")
    output = dock.get_by_role("region", name="Recommendation, output")
    await expect(output.locator("del")).to_have_text(["keep no types. ", "Parquet."])
    await expect(output.locator("ins")).to_have_text(
        ["must be read whole. ", "Parquet files by day."]
    )
    await dock.get_by_role("button", name="Assess the types").click()
    types = dock.get_by_role("region", name="Assess the types, output")
    await expect(types.locator("ins")).to_have_text("Types are lost.")
    await assert_screen_is_usable(page, "runs-dock", width)

    await dock.get_by_role("button", name="Open side by side").click()
    await page.wait_for_url(f"**/runs/compare?a={first}&b={second}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    await page.get_by_role("button", name="Swap").click()
    await page.wait_for_url(f"**/runs/compare?a={second}&b={first}")
    output = page.get_by_role("region", name="Recommendation, output")
    await expect(output.locator("ins").first).to_have_text("keep no types. ")
    await assert_screen_is_usable(page, "runs-compare", width)


@pytest.mark.slow
@every_width
async def test_graphs_of_two_runs_are_laid_over_each_other(
    empty_page: Page, model: ScriptedModel, width: str
) -> None:
    page = empty_page
    first, second = await runs_of_a_changed_plan(page, model, "Parsley")
    await page.goto(f"/runs/compare?a={first}&b={second}")
    graph = page.get_by_role("region", name="Graph of both runs")
    for card in (
        "Name the ways, same, A completed, B completed",
        "Assess the speed, changed, A completed, B completed",
        "Assess the types, only in A, A completed",
        "Assess the price, only in B, B completed",
    ):
        await expect(graph.get_by_role("button", name=card, exact=True)).to_be_visible()
    await expect(graph).to_contain_text("in bothonly in Aonly in B")
    await graph.get_by_role("button", name="Assess the speed").click()
    speed = page.get_by_role("region", name="Assess the speed, output")
    await expect(speed).to_contain_text("Differs in settings (userPrompt), output.")
    await expect(speed.locator("ins")).to_have_text("Fast.")
    await page.keyboard.press("ArrowRight")
    await expect(graph.get_by_role("button", name="Recommendation")).to_be_focused()
    await expect(page.get_by_role("region", name="Recommendation, output")).to_be_visible()
    await assert_screen_is_usable(page, "compare-graph", width)
    await resize(page, PHONE)
    await expect(page.get_by_role("region", name="Wave 2")).to_contain_text("3 of 3 changed")


@pytest.mark.slow
@every_width
async def test_other_run_of_a_comparison_is_picked(
    empty_page: Page, model: ScriptedModel, width: str
) -> None:
    page = empty_page
    first, second = await two_runs(page, model, "Mint stores")
    await page.goto(f"/runs/compare?a={second}")
    same = page.get_by_role("region", name="Runs of the same plan")
    await expect(same.get_by_role("button")).to_have_count(1)
    await assert_screen_is_usable(page, "compare-pick", width)
    await same.get_by_role("button").click()
    await page.wait_for_url(f"**/runs/compare?a={first}&b={second}")
    await expect(page.get_by_role("table", name="Steps")).to_contain_text("Recommendation")
