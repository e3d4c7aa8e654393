"""From a good run to something reusable: words become an input, a fork a revision, runs know each other."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
)
from tests.support.browser.chromium import take_screenshot
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node

GOAL = "Plan a weekend in Lisbon for Ann"
PLAN = planner_reply(
    reply_node("food", name="Food", description="Find food in Lisbon."),
    reply_node("days", name="Days", description="Put the days together, with {{ braces }}."),
    edges=[reply_edge("food", "days")],
    title="A weekend",
)


class Clicks:
    """Counts the clicks of a test."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, target: Locator, *, count: int = 1, **more: Any) -> None:
        self.count += 1
        await target.click(click_count=count, **more)


async def finished_run(page: Page, model: ScriptedModel) -> tuple[str, str]:
    """Plan the goal and run it to its end; return the ids of the plan and of the run."""
    model.plans = [PLAN]
    planned = await page.request.post("/api/plan", data={"prompt": GOAL})
    assert planned.ok, await planned.text()
    plan_id = (await planned.json())["plan_id"]
    made = await page.request.post("/api/execute", data={"plan_id": plan_id, "start": True})
    execution_id = (await made.json())["execution_id"]
    await page.goto(f"/runs/{execution_id}")
    await ended(page)
    return plan_id, execution_id


async def ended(page: Page) -> None:
    await expect(page.get_by_role("button", name="Run again")).to_be_visible()


async def fork(page: Page, execution_id: str, task: str) -> str:
    """Fork a run with another task of its first step, and open the fork."""
    body = {"changes": {"food": {"description": task}}, "start": True}
    made = await page.request.post(f"/api/executions/{execution_id}/fork", data=body)
    assert made.ok, await made.text()
    fork_id = str((await made.json())["execution_id"])
    await page.goto(f"/runs/{fork_id}")
    await ended(page)
    return fork_id


async def test_words_of_a_run_become_an_input_in_four_clicks_and_the_model_gets_the_value(
    page: Page, model: ScriptedModel
) -> None:
    await finished_run(page, model)
    assert "with {{ braces }}." in model.prompts[1]  # what a model wrote stays literal
    click = Clicks()
    inspector = page.get_by_role("complementary", name="The run")
    await click(inspector.get_by_role("tab", name="Goal"))
    await page.evaluate(
        """() => {
            const walker = document.createTreeWalker(
                document.querySelector('[role=tabpanel][data-state=active]'), NodeFilter.SHOW_TEXT);
            let node = walker.nextNode();
            while (node && !node.data.includes("Lisbon")) node = walker.nextNode();
            const at = node.data.indexOf("Lisbon");
            document.getSelection().setBaseAndExtent(node, at, node, at + 6);
        }"""
    )
    click.count += 1  # a double click selects the word
    await click(inspector.get_by_role("button", name="Make “Lisbon” an input"))
    dialog = page.get_by_role("dialog", name="Make it an input")
    await expect(dialog.get_by_label("Name of the input")).to_have_value("city")
    await expect(dialog.get_by_role("checkbox", name="Goal")).to_be_checked()
    await expect(dialog.get_by_role("checkbox", name="Food")).to_be_checked()
    await expect(dialog.get_by_role("checkbox", name="Days")).to_have_count(0)
    await assert_accessible(page)
    await take_screenshot(page, "make-input")
    await click(dialog.get_by_role("button", name="Make it an input of a flow"))
    await page.wait_for_url(re.compile("/flows/[0-9a-f-]+$"))
    assert click.count == 4

    form = page.get_by_role("form", name="Run the flow")
    city = form.get_by_label("City")
    await expect(city).to_have_attribute("placeholder", "Lisbon")
    await expect(page.get_by_role("list", name="Runs").get_by_role("link")).to_have_count(1)
    await expect(page.get_by_text("1 of 1 run succeeded")).to_be_visible()
    model.prompts.clear()
    await city.fill("Porto")
    await take_screenshot(page, "flow-inputs")
    await form.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/runs/*")
    await ended(page)
    assert "Plan a weekend in Porto for Ann" in model.prompts[0]
    assert "Find food in Porto." in model.prompts[0]
    assert not any("Lisbon" in prompt for prompt in model.prompts)
    header = page.get_by_role("banner").last.or_(page.locator("header")).filter(has_text="revision")
    await expect(header.first.get_by_role("link", name="A weekend")).to_be_visible()
    await expect(header.first.get_by_role("link", name="revision 2")).to_be_visible()


async def test_a_fork_is_kept_in_its_plan_after_its_change_was_shown(
    page: Page, model: ScriptedModel
) -> None:
    plan_id, execution_id = await finished_run(page, model)
    await fork(page, execution_id, "Find vegetarian food in Lisbon.")
    await page.get_by_role("button", name="Keep in the plan").click()
    dialog = page.get_by_role("dialog", name="Keep in the plan")
    changes = dialog.get_by_role("list", name="What changes in the plan").get_by_role("listitem")
    await expect(changes).to_have_count(1)
    await expect(changes).to_contain_text("Find vegetarian food in Lisbon.")
    await expect(dialog).to_contain_text("becomes revision 2 of the plan")
    await assert_accessible(page)
    await take_screenshot(page, "keep-in-plan")
    await dialog.get_by_role("button", name="Keep it").click()
    await expect(page.get_by_text("Kept as revision 2.", exact=True)).to_be_visible()
    plan = await (await page.request.get(f"/api/plans/{plan_id}")).json()
    assert plan["revision"] == 2
    assert plan["nodes"][0]["description"] == "Find vegetarian food in Lisbon."
    assert plan["nodes"][1]["description"].count("{{ braces }}") == 1


@every_width
async def test_a_run_shows_where_it_comes_from_and_leads_to_the_revision_that_ran(
    page: Page, model: ScriptedModel, width: str
) -> None:
    plan_id, execution_id = await finished_run(page, model)
    first = await fork(page, execution_id, "Find fish in Lisbon.")
    second = await fork(page, first, "Find soup in Lisbon.")
    strip = page.get_by_role("navigation", name="Where this run comes from")
    await expect(strip).to_contain_text(re.compile("Run of .*→.*Fork of .*→.*This fork"))
    links = strip.get_by_role("link")
    addresses = [await link.get_attribute("href") for link in await links.all()]
    assert addresses == [
        f"/runs/{execution_id}",
        f"/runs/compare?a={execution_id}&b={first}",
        f"/runs/{first}",
        f"/runs/compare?a={first}&b={second}",
    ]
    await assert_screen_is_usable(page, "lineage", width)
    await page.goto(f"/runs/{execution_id}")
    await ended(page)
    await expect(strip).to_have_count(0)
    title = {"op": "update_node", "id": "food", "set": {"description": "Find cake."}}
    plan = await (await page.request.get(f"/api/plans/{plan_id}")).json()
    changed = await page.request.patch(
        f"/api/plans/{plan_id}",
        headers={"If-Match": f'"{plan["hash"]}"'},
        data={"operations": [title]},
    )
    assert changed.ok, await changed.text()
    await page.goto(f"/plans/{plan_id}?ran=1")
    await expect(page.get_by_text("The run used revision 1; this is revision 2")).to_be_visible()
