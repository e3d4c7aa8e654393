"""Runs that are told apart, found, stopped and deleted in the list, and what they cost, in the browser."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import assert_screen_is_usable, every_width
from tests.support.browser.clicks import clicks_on, count_clicks
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.browser.steps import stored_events
from tests.support.llm.planner_replies import planner_reply, reply_node

GOAL = "Name one way to store time series data"
PLAN = planner_reply(reply_node("advice", name="Recommendation"), title="One way")


def graph(text: str, kind: str = "text", **data: Any) -> dict[str, Any]:
    """Return a graph without a title: its runs are all called alike."""
    node = {"id": "note", "type": kind, "name": "Note", "data": {"text": text, **data}}
    return {"nodes": [node], "edges": []}


async def ran(page: Page, text: str) -> str:
    """Run a graph to its end; return the id of the execution."""
    body = {"graph": graph(text), "start": True}
    answer = await page.request.post("/api/execute", data=body)
    execution_id = (await answer.json())["execution_id"]
    await stored_events(page, execution_id)
    return execution_id


async def waits(page: Page) -> str:
    node = {"id": "check", "type": "approval", "name": "Check", "data": {"prompt": "Send it?"}}
    body = {"graph": {"nodes": [node], "edges": []}, "start": True}
    answer = await page.request.post("/api/execute", data=body)
    return (await answer.json())["execution_id"]


def row(page: Page, execution_id: str) -> Locator:
    return page.get_by_role("row").filter(has=page.locator(f'a[href="/runs/{execution_id}"]'))


async def test_a_run_is_found_by_words_of_its_result_and_by_its_id(page: Page) -> None:
    lisbon, rome = await ran(page, "Go to Alfama by tram."), await ran(page, "See the Forum.")
    for words, found, other in (("ALFAMA tram", lisbon, rome), (rome, rome, lisbon)):
        await page.goto("/runs")
        await count_clicks(page)
        await page.get_by_label("Words, name, tag or id").click()
        await page.keyboard.type(words)
        await expect(row(page, other)).to_have_count(0)
        await row(page, found).get_by_role("link").first.click()
        await page.wait_for_url(f"**/runs/{found}")
        assert await clicks_on(page) <= 2


async def test_a_run_is_named_in_its_header_and_called_so_everywhere(page: Page) -> None:
    own = await ran(page, "One.")
    await page.goto(f"/runs/{own}")
    await page.get_by_role("button", name="Star this run").click()
    await expect(page.get_by_role("button", name="Take the star away")).to_be_visible()
    await page.get_by_role("button", name="Name, tags and note").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Lisbon, second try")
    await dialog.get_by_label("Tags").fill("trip, may")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Lisbon, second try")).to_be_visible()
    await page.goto("/")
    await expect(page.get_by_role("link", name="Lisbon, second try")).to_be_visible()
    await page.get_by_label("Search runs and plans").fill("second try")
    await expect(page.get_by_role("option").first).to_contain_text("Lisbon, second try")
    await page.goto("/runs?starred=yes&tag=trip")
    await expect(row(page, own)).to_contain_text("Lisbon, second try")
    await assert_screen_is_usable(page, "runs-starred", "desktop")


async def test_a_run_is_stopped_from_the_list_in_one_click(page: Page) -> None:
    own = await waits(page)
    await page.goto("/runs")
    await count_clicks(page)
    await row(page, own).get_by_role("button", name="Stop").click()
    await expect(row(page, own)).to_contain_text("Cancelled")
    assert await clicks_on(page) == 1


async def test_several_runs_are_stopped_and_deleted_at_once(page: Page) -> None:
    done, held = await ran(page, "One."), await waits(page)
    await page.goto("/runs")
    await page.get_by_role("button", name="Select").click()
    for each in (done, held):
        await row(page, each).get_by_role("checkbox").check()
    bar = page.get_by_role("region", name="Selected runs")
    await expect(bar).to_contain_text("1 not ended: cancel first")
    await bar.get_by_role("button", name="Cancel 1").click()
    await expect(row(page, held)).to_contain_text("Cancelled")
    for each in (done, held):
        await row(page, each).get_by_role("checkbox").check()
    await bar.get_by_role("button", name="Delete 2").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    for each in (done, held):
        await expect(row(page, each)).to_have_count(0)


async def test_the_list_is_sorted_and_limited_to_days(page: Page) -> None:
    names = {}
    for name in ("B run", "A run"):
        own = await ran(page, name)
        names[name] = own
        await page.request.patch(f"/api/executions/{own}", data={"name": name, "tags": ["sorted"]})
    await page.goto("/runs?tag=sorted")
    links = page.locator("tbody a[href^='/runs/0']")
    await expect(links).to_have_text(["A run", "B run"])
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(links).to_have_text(["B run", "A run"])
    await page.goto("/runs?tag=sorted&time=range&from=2020-01-01&to=2020-12-31")
    await expect(page.get_by_role("heading", name="No run fits.")).to_be_visible()
    await page.get_by_label("To", exact=True).fill("2999-12-31")
    await expect(links).to_have_count(2)


async def test_planning_is_in_the_cost_of_a_run_and_on_the_page_of_spend(
    page: Page, model: ScriptedModel
) -> None:
    model.plans = [PLAN]
    planned = await page.request.post("/api/plan", data={"prompt": GOAL})
    plan_id = (await planned.json())["plan_id"]
    body = {"plan_id": plan_id, "start": True}
    own = (await (await page.request.post("/api/execute", data=body)).json())["execution_id"]
    await stored_events(page, own)
    await page.goto(f"/runs/{own}")
    await page.get_by_role("tab", name="Cost").click()
    await expect(page.get_by_text("paid once for all runs of the plan")).to_be_visible()
    await page.goto("/spend?by=model")
    await expect(page.get_by_role("table", name="Spend by model")).to_be_visible()
    await assert_screen_is_usable(page, "spend-model", "desktop")


@every_width
async def test_labelled_runs_and_spend_fit_every_width(page: Page, width: str) -> None:
    own = await ran(page, "One.")
    labels = {"name": "A long name " * 12, "tags": ["one", "another tag"], "starred": True}
    await page.request.patch(f"/api/executions/{own}", data=labels)
    for name, path in {"runs": "/runs", "run": f"/runs/{own}", "spend": "/spend"}.items():
        await page.goto(path)
        await expect(page.get_by_role("heading", level=1).first).to_be_visible()
        await assert_screen_is_usable(page, f"labelled-{name}", width)
