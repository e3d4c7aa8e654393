"""Flows in the browser: a plan is kept under a name, run with inputs, changed, brought back, moved as a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
)
from tests.support.browser.chromium import Pages
from tests.support.browser.plan_editor import patch_plan
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.browser.steps import make_plan, stored_events

GREETING: dict[str, Any] = {
    "nodes": [
        {"id": "start", "type": "start", "name": "Whom", "data": {"initialInput": "all"}},
        {"id": "hello", "type": "text", "name": "Hello", "data": {"text": "Dear {{ input }}"}},
    ],
    "edges": [{"source": "start", "target": "hello", "data": {"channel": "flow"}}],
}


async def save_flow(page: Page, name: str) -> str:
    """Save the greeting as a flow over HTTP; return its id."""
    body = {"name": name, "description": "Greets somebody", "graph": GREETING}
    answer = await page.request.post("/api/flows", data=body)
    assert answer.ok, await answer.text()
    return str((await answer.json())["plan_id"])


async def flow(page: Page, plan_id: str) -> dict[str, Any]:
    """Return a flow as the service has it."""
    return dict(await (await page.request.get(f"/api/flows/{plan_id}")).json())


@pytest.mark.slow
async def test_plan_becomes_a_flow_that_is_run(page: Page, model: ScriptedModel) -> None:
    model.replies = {"Do last": "All of it is done."}
    await make_plan(page)
    await page.goto("/flows")
    await (
        page.get_by_role("button", name="New flow")
        .or_(page.get_by_role("button", name="Save a plan as a flow"))
        .click()
    )
    dialog = page.get_by_role("dialog", name="New flow")
    await dialog.get_by_label("Begin with").select_option("Plan: Two steps and a last one")
    await expect(dialog.get_by_label("Name")).to_have_value("Two steps and a last one")
    await dialog.get_by_label("Name").fill("Three things")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Save the flow").click()
    await expect(page.get_by_role("heading", name="Three things", level=1)).to_be_visible()
    await expect(page.get_by_role("region", name="Plan as waves")).to_contain_text("Second")
    await page.get_by_role("button", name="Run").click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("All of it is done.")


async def test_flow_of_the_list_is_run_with_an_input_by_keyboard(empty_page: Page) -> None:
    page = empty_page
    await save_flow(page, "Greet by keys")
    await page.goto("/settings")
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("f")
    await page.wait_for_url("**/flows")
    link = page.get_by_role("link", name="Run Greet by keys")
    await link.focus()
    await page.keyboard.press("Enter")
    field = page.get_by_label("Whom")
    await expect(field).to_have_attribute("placeholder", "all")
    await field.focus()
    await page.keyboard.type("water")
    await page.keyboard.press("Control+Enter")
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("Dear water")


@pytest.mark.slow
async def test_plan_without_a_name_is_found_edited_named_and_deleted(
    page: Page, model: ScriptedModel
) -> None:
    await make_plan(page)
    plan_id = parse_qs(urlsplit(page.url).query)["plan"][0]
    renamed = {"op": "set_title", "title": "A plan to be named"}
    await patch_plan(page, plan_id, renamed)
    await page.goto("/flows")
    await page.get_by_role("radio", name="Without a name").click()
    await page.get_by_role("searchbox", name="Name, title, purpose or goal").fill("to be named")
    rows = page.get_by_role("table", name="Plans").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(page).to_have_url(re.compile(r"/flows\?named=false&q=to\+be\+named$"))
    await expect(rows).to_contain_text("Not run yet")
    await page.reload()
    await expect(rows).to_have_count(1)
    await page.keyboard.press("j")
    await expect(page.get_by_role("link", name="A plan to be named", exact=True)).to_be_focused()
    more = page.get_by_role("button", name="More for A plan to be named")
    await more.click()
    await page.get_by_role("menuitem", name="Edit").click()
    await page.wait_for_url(f"**/plans/{plan_id}")
    await expect(page.get_by_role("list", name="Revisions")).to_be_visible()
    await page.go_back()
    await more.click()
    await page.get_by_role("menuitem", name="Save as flow").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Named at last")
    await dialog.get_by_role("button", name="Save the flow").click()
    await expect(page.get_by_role("heading", name="No plan fits.")).to_be_visible()
    await page.get_by_role("button", name="Search all plans").click()
    await expect(rows).to_contain_text("Named at last")
    assert (await flow(page, plan_id))["name"] == "Named at last"
    await page.get_by_role("button", name="More for Named at last").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await dialog.get_by_role("button", name="Delete the flow").click()
    await expect(page.get_by_role("button", name="Clear filter")).to_be_visible()
    assert (await page.request.get(f"/api/plans/{plan_id}")).status == 404


@pytest.mark.slow
async def test_flow_is_edited_and_an_old_revision_restored(empty_page: Page) -> None:
    page = empty_page
    plan_id = await save_flow(page, "Edit me")
    await page.goto(f"/flows/{plan_id}")
    await page.get_by_role("link", name="Edit", exact=True).click()
    await page.get_by_role("radio", name="Table").check()
    await page.get_by_role("button", name="Hello", exact=True).click()
    panel = page.get_by_role("complementary")
    await panel.get_by_label("Text", exact=True).fill("Hi {{ input }}")
    revisions = page.get_by_role("list", name="Revisions").get_by_role("button")
    await expect(revisions).to_have_count(2)
    await panel.get_by_label("Id", exact=True).fill("greeting")
    await page.keyboard.press("Enter")
    await expect(revisions).to_have_count(3)
    await page.get_by_role("link", name="Flow Edit me").click()
    await expect(page.get_by_text("revision 3,")).to_be_visible()
    await expect(revisions).to_have_count(3)
    graph = (await flow(page, plan_id))["graph"]
    assert graph["nodes"][1]["id"] == graph["edges"][0]["target"] == "greeting"
    assert graph["nodes"][1]["data"] == {"text": "Hi {{ input }}"}
    await page.get_by_role("button", name="Revision 1").click()
    await page.get_by_role("button", name="Restore it").click()
    await expect(page.get_by_text("revision 4,")).to_be_visible()
    assert (await flow(page, plan_id))["graph"]["nodes"][1]["data"] == {"text": "Dear {{ input }}"}


@pytest.mark.slow
async def test_draft_of_a_flow_is_marked_and_the_live_revision_runs(empty_page: Page) -> None:
    page = empty_page
    plan_id = await save_flow(page, "Half changed")
    await patch_plan(page, plan_id, {"op": "add_node", "node": {"id": "new", "type": "gone"}})
    await page.goto(f"/flows/{plan_id}/edit")
    await expect(page.get_by_text("Whoever calls the flow starts revision 1")).to_be_visible()
    await page.get_by_role("link", name="Flow Half changed").click()
    revisions = page.get_by_role("list", name="Revisions").get_by_role("button")
    await expect(revisions.first).to_contain_text("draft")
    await expect(revisions.last).to_contain_text("present")
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("Dear all")


@pytest.mark.slow
async def test_changes_of_two_people_are_both_kept(pages: Pages) -> None:
    pages.errors.expect("412")
    page = await pages.open(None)
    plan_id = await save_flow(page, "Two people")
    await page.goto(f"/flows/{plan_id}/edit")
    await page.get_by_role("radio", name="Table").check()
    await page.get_by_role("button", name="Hello", exact=True).click()
    theirs = json.loads(json.dumps(GREETING))
    theirs["nodes"][0]["data"]["initialInput"] = "theirs"
    assert (await page.request.put(f"/api/flows/{plan_id}", data={"graph": theirs})).ok
    await page.get_by_role("complementary").get_by_label("Text", exact=True).fill("Mine")
    revisions = page.get_by_role("list", name="Revisions").get_by_role("button")
    await expect(revisions).to_have_count(3)
    nodes = (await flow(page, plan_id))["graph"]["nodes"]
    assert [node["data"] for node in nodes] == [{"initialInput": "theirs"}, {"text": "Mine"}]


@pytest.mark.slow
async def test_flow_in_use_is_renamed_or_deleted_with_what_leads_to_it(pages: Pages) -> None:
    pages.errors.expect("409")
    page = await pages.open(None)
    plan_id = await save_flow(page, "In use")

    async def publish() -> None:
        answer = await page.request.put(f"/api/flows/{plan_id}/publication", data={"tool": True})
        assert answer.ok, await answer.text()

    await publish()
    await page.goto(f"/flows/{plan_id}")
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Name and purpose").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Used no more")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_text("it is published as a tool")).to_be_visible()
    assert (await flow(page, plan_id))["published"] == ["tool"]
    await dialog.get_by_role("button", name="Rename it, and remove these").click()
    await expect(page.get_by_role("heading", name="Used no more", level=1)).to_be_visible()
    assert (await flow(page, plan_id))["published"] == []
    await publish()
    await page.goto("/flows")
    await page.get_by_role("button", name="More for Used no more").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await dialog.get_by_role("button", name="Delete the flow").click()
    await expect(dialog.get_by_text("it is published as a tool")).to_be_visible()
    await dialog.get_by_role("button", name="Delete it with these").click()
    await expect(dialog).to_have_count(0)  # while it is open, nothing else has a role
    await expect(page.get_by_role("link", name="Used no more")).to_have_count(0)
    assert (await page.request.get(f"/api/flows/{plan_id}")).status == 404


@pytest.mark.slow
async def test_flow_is_renamed_exported_deleted_and_imported(
    empty_page: Page, tmp_path: Path
) -> None:
    page = empty_page
    plan_id = await save_flow(page, "Old name")
    await page.goto(f"/flows/{plan_id}")
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Name and purpose").click()
    await page.get_by_role("dialog").get_by_label("Name").fill("Moved flow")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Moved flow", level=1)).to_be_visible()
    await page.get_by_role("button", name="More").click()
    async with page.expect_download() as started:
        await page.get_by_role("menuitem", name="Export as a file").click()
    file = tmp_path / (await started.value).suggested_filename
    await (await started.value).save_as(file)
    await page.goto("/flows")
    await page.get_by_role("button", name="More for Moved flow").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete the flow").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.get_by_role("link", name="Moved flow")).to_have_count(0)
    await page.get_by_role("button", name="Import a file").click()
    await page.get_by_label("File to import").set_input_files(file)
    await expect(page.get_by_role("heading", name="Moved flow", level=1)).to_be_visible()
    await expect(page.get_by_text("Greets somebody")).to_be_visible()


@every_width
async def test_flows_are_usable(empty_page: Page, width: str) -> None:
    page = empty_page
    plan_id = await save_flow(page, f"Look at it, {width}")
    await page.request.put(f"/api/flows/{plan_id}/publication", data={"tool": True})
    await patch_plan(page, plan_id, {"op": "add_node", "node": {"id": "new", "type": "gone"}})
    await page.goto("/flows")
    row = page.get_by_role("row", name=f"Look at it, {width}")
    await expect(row).to_contain_text("Revision 2 has errors")
    await expect(row).to_contain_text("Published as tool")
    await assert_screen_is_usable(page, "flows", width)
    await page.goto("/flows?named=all")
    await expect(page.get_by_role("table", name="Plans")).to_be_visible()
    await assert_screen_is_usable(page, "plans", width)
    await page.goto(f"/flows/{plan_id}")
    await expect(page.get_by_label("Whom")).to_be_visible()
    for whom in ("Ada", "Grace and everybody who has ever written a compiler by hand"):
        body = {"flow": plan_id, "inputs": {"start": {"output": whom}}, "start": True}
        answer = await page.request.post("/api/execute", data=body)
        await stored_events(page, (await answer.json())["execution_id"])
    await page.reload()
    runs = page.get_by_role("list", name="Runs").get_by_role("listitem")
    await expect(runs.nth(0)).to_contain_text("Grace and everybody")
    await expect(runs.nth(1)).to_contain_text("Ada")
    await assert_screen_is_usable(page, "flow", width)
    await page.goto(f"/flows/{plan_id}/edit")
    await expect(page.get_by_role("link", name=f"Flow Look at it, {width}")).to_be_visible()
    await assert_screen_is_usable(page, "flow-edit", width)
