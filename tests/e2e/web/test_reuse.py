"""From a good run to something reusable: words become an input, a fork a revision, runs know each other."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import Page, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
    resize,
)
from tests.support.browser.chromium import take_screenshot
from tests.support.browser.clicks import clicks_on, count_clicks
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node

GOAL = "Plan a weekend in Lisbon for Ann"
PLAN = planner_reply(
    reply_node("food", name="Food", description="Find food in Lisbon."),
    reply_node("days", name="Days", description="Put the days together, with {{ braces }}."),
    edges=[reply_edge("food", "days")],
    title="A weekend",
)


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
    await count_clicks(page)
    inspector = page.get_by_role("complementary", name="The run")
    await inspector.get_by_role("tab", name="Goal").click()
    await page.mouse.dblclick(*await middle_of_word(page, "Lisbon"))
    await inspector.get_by_role("button", name="Make “Lisbon” an input").click()
    dialog = page.get_by_role("dialog", name="Make it an input")
    await expect(dialog.get_by_label("Name of the input")).to_have_value("city")
    await expect(dialog.get_by_role("checkbox", name="Goal")).to_be_checked()
    await expect(dialog.get_by_role("checkbox", name="Food")).to_be_checked()
    await expect(dialog.get_by_role("checkbox", name="Days")).to_have_count(0)
    await assert_accessible(page)
    await take_screenshot(page, "make-input")
    await dialog.get_by_role("button", name="Make it an input of a flow").click()
    await page.wait_for_url(re.compile("/flows/[0-9a-f-]+$"))

    form = page.get_by_role("form", name="Run the flow")
    city = form.get_by_label("City")
    await expect(city).to_have_attribute("placeholder", "Lisbon")
    await expect(page.get_by_role("list", name="Runs").get_by_role("link")).to_have_count(1)
    await expect(page.get_by_text("1 of 1 run succeeded")).to_be_visible()
    model.prompts.clear()
    await city.fill("Porto")
    await take_screenshot(page, "flow-inputs")
    await page.keyboard.press("Control+Enter")
    await page.wait_for_url("**/runs/*")
    await ended(page)
    assert await clicks_on(page) <= 4
    assert "Plan a weekend in Porto for Ann" in model.prompts[0]
    assert "Find food in Porto." in model.prompts[0]
    assert not any("Lisbon" in prompt for prompt in model.prompts)
    header = page.get_by_role("banner").last.or_(page.locator("header")).filter(has_text="revision")
    await expect(header.first.get_by_role("link", name="A weekend")).to_be_visible()
    await expect(header.first.get_by_role("link", name="revision 2")).to_be_visible()


async def test_the_editor_runs_only_what_changed_and_says_before_what_that_is(
    page: Page, model: ScriptedModel
) -> None:
    plan_id, execution_id = await finished_run(page, model)
    asked = len(model.prompts)
    await page.goto(f"/plans/{plan_id}")
    button = page.get_by_role("button", name="Run only what changed")
    await page.locator("button[data-step]").filter(has_text="Days").click()
    panel = page.get_by_role("complementary", name="Settings of Days")
    await expect(button).to_have_count(0)
    await panel.get_by_label("Task", exact=True).fill("Put the days in another order.")
    note = page.get_by_text("1 result of the run of")
    await expect(note).to_contain_text(
        re.compile(r"is reused; “Days” runs\. It took \d+ tokens, under \$0\.0001 then\.")
    )
    await take_screenshot(page, "editor-run-changed")
    await assert_accessible(page)
    await button.click()
    await page.wait_for_url(lambda url: "/runs/" in url and execution_id not in url)
    await ended(page)
    assert len(model.prompts) == asked + 1
    assert "Put the days in another order." in model.prompts[-1]
    query = f"/api/executions?plan_id={plan_id}"
    newest = (await (await page.request.get(query)).json())["executions"][0]["execution_id"]
    answer = await page.request.get(f"/api/executions/{newest}/document")
    document = await answer.json()
    assert document["parent"]["execution_id"] == execution_id
    assert (document["plan_id"], document["revision"]) == (plan_id, 2)
    nodes = {node["id"]: node for node in document["nodes"]}
    assert nodes["food"]["reused"]["execution_id"] == execution_id
    assert nodes["days"]["reused"] is None


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


async def middle_of_word(page: Page, word: str) -> tuple[float, float]:
    """Return where a word of the panel that is shown stands."""
    x, y = await page.evaluate(
        """(word) => {
            const walker = document.createTreeWalker(
                document.querySelector('[role=tabpanel][data-state=active]'), NodeFilter.SHOW_TEXT);
            let node = walker.nextNode();
            while (!node.data.includes(word)) node = walker.nextNode();
            const range = document.createRange();
            range.setStart(node, node.data.indexOf(word));
            range.setEnd(node, node.data.indexOf(word) + word.length);
            const { x, y, width, height } = range.getBoundingClientRect();
            return [x + width / 2, y + height / 2];
        }""",
        word,
    )
    return x, y


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


_INSIDE = """
(header) => [header, ...header.querySelectorAll(":scope > div, button, a")]
  .map((part) => [part.className + part.textContent, part.getBoundingClientRect()])
  .filter(([, box]) => box.left < 0 || box.right > innerWidth + 0.5)
  .map(([words]) => words)
"""


async def test_the_actions_of_a_run_are_in_sight_at_each_width(
    page: Page, model: ScriptedModel
) -> None:
    _, execution_id = await finished_run(page, model)
    own = await fork(page, execution_id, "Find food for Ann and Bob.")
    labels = {"name": "A long name " * 12, "tags": ["one", "another tag", "a third tag of a trip"]}
    await page.request.patch(f"/api/executions/{own}", data=labels)
    await page.goto(f"/runs/{own}")
    header = page.locator("header").filter(has=page.get_by_role("button", name="Run again"))
    await expect(header).to_contain_text("another tag")
    for width in (390, 480, 600, 720, 721, 768, 900, 1024, 1100, 1101, 1280):
        await resize(page, (width, 800))
        assert await header.evaluate(_INSIDE) == [], width
        await expect(header.get_by_role("link", name="Edit the plan")).to_have_count(
            int(width > 1100)
        )
    await resize(page, (768, 1024))
    await header.get_by_role("button", name="More").click()
    items = page.get_by_role("menuitem")
    await expect(items).to_have_text(
        ["Edit the plan", "Compare", "Fork", "Keep in the plan", "Change this run …", *MORE],
        use_inner_text=True,
    )
    await assert_accessible(page)
    await take_screenshot(page, "run-menu")
    await items.filter(has_text="Keep in the plan").click()
    await page.get_by_role("dialog", name="Keep in the plan").get_by_role("button").first.click()
    await header.get_by_role("button", name="More").click()
    await items.filter(has_text="Compare").click()
    await page.wait_for_url(f"**/runs/compare?a={own}**")


MORE = ("Share …", "Stored JSON", "Copy the run's id")
TRIP: dict[str, Any] = {
    "nodes": [
        {
            "id": "s",
            "type": "start",
            "name": "Trip",
            "data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string", "title": "City"},
                        "days": {"type": "integer", "title": "Days"},
                    },
                    "required": ["city"],
                }
            },
        },
        {"id": "t", "type": "text", "name": "Words", "data": {"text": "{{ city }}, {{ days }}"}},
    ],
    "edges": [],
}


async def test_inputs_of_a_flow_are_saved_chosen_renamed_and_deleted(page: Page) -> None:
    body = {"name": "Trips", "graph": TRIP}
    made = await (await page.request.post("/api/flows", data=body)).json()
    address = f"/api/flows/{made['plan_id']}"
    await page.goto(f"/flows/{made['plan_id']}")
    form = page.get_by_role("form", name="Run the flow")
    city, days = form.get_by_label("City"), form.get_by_label("Days")
    saved = form.get_by_label("Saved inputs", exact=True)
    more = form.get_by_role("button", name="Save or change saved inputs")
    await city.fill("Porto")
    await days.fill("2")
    await more.click()
    await page.get_by_role("menuitem", name="Save as …").click()
    dialog = page.get_by_role("dialog", name="Save these inputs")
    await dialog.get_by_label("Name").fill("Weekend")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await expect(saved).to_have_value("Weekend")
    await page.reload()
    await expect(city).to_have_value("")
    await saved.select_option("Weekend")
    await expect(city).to_have_value("Porto")
    await expect(days).to_have_value("2")
    await take_screenshot(page, "saved-inputs")
    await days.fill("3")
    await more.click()
    await page.get_by_role("menuitem", name="Save as “Weekend”").click()
    await expect(page.get_by_role("menu")).to_have_count(0)
    await more.click()
    await page.get_by_role("menuitem", name="Rename").click()
    dialog = page.get_by_role("dialog", name="Rename the saved inputs")
    await dialog.get_by_label("Name").fill("Long weekend")
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await expect(saved).to_have_value("Long weekend")
    sets = (await (await page.request.get(f"{address}/input-sets")).json())["input_sets"]
    assert [(each["name"], each["inputs"]) for each in sets] == [
        ("Long weekend", {"city": "Porto", "days": 3})
    ]
    start = TRIP["nodes"][0]
    fields = {**start["data"]["schema"]["properties"], "days": {"type": "string", "title": "Days"}}
    data = {"schema": {**start["data"]["schema"], "properties": fields}}
    changed = {**TRIP, "nodes": [{**start, "data": data}, TRIP["nodes"][1]]}
    assert (await page.request.put(address, data={"graph": changed})).ok
    await page.reload()
    await saved.select_option("Long weekend")
    await expect(form.get_by_text("does not fit the flow any more")).to_contain_text("'days'")
    await assert_accessible(page)
    await take_screenshot(page, "saved-inputs-outdated")
    await more.click()
    await page.get_by_role("menuitem", name="Delete").click()
    await expect(saved.get_by_role("option")).to_have_text(["None yet"])


@every_width
async def test_the_form_of_a_flow_with_saved_inputs_fits_every_width(
    page: Page, width: str
) -> None:
    name = "A name of saved inputs that is " + "very " * 12 + "long"
    made = await (
        await page.request.post("/api/flows", data={"name": f"Wide, {width}", "graph": TRIP})
    ).json()
    path = f"/api/flows/{made['plan_id']}/input-sets/{name}"
    assert (await page.request.put(path, data={"inputs": {"city": "Porto"}})).ok
    await page.goto(f"/flows/{made['plan_id']}")
    await page.get_by_label("Saved inputs", exact=True).select_option(name)
    await assert_screen_is_usable(page, "saved-inputs", width)
