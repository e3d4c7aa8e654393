"""The editor in the browser: what is changed, how it is saved, and that nothing is lost."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
)
from tests.support.browser.chromium import Pages, take_screenshot
from tests.support.browser.plan_editor import EDGE_DATA, GRAPH, PlanEditor, patch_plan
from tests.support.browser.scripted_model import ScriptedModel
from tests.support.browser.steps import GOAL, rendered, stored_events
from tests.support.browser.web_service import WebService

LOST = "net::ERR_|WebSocket connection"
"""Errors on the console of a page that loses its service."""
CHANGED = "status of 412"
"""The error on the console of a page whose plan somebody else has changed."""
RUN_KEYS = "Control+Enter"
ESCAPED = "Find {% raw %}{{ braces }}{% endraw %}."
ARABIC = "السعر هو 25 دولارا لكل شخص، ويشمل الإفطار. " * 3 + "نعم"


def ids(plan: dict[str, Any]) -> list[str]:
    return [node["id"] for node in plan["nodes"]]


# -- changes ----------------------------------------------------------------------------------------


async def test_change_is_a_revision_and_keeps_data_that_the_editor_does_not_know(
    pages: Pages,
) -> None:
    graph = {**GRAPH, "nodes": [*GRAPH["nodes"]]}
    graph["nodes"][1] = {**graph["nodes"][1], "data": {"own": {"list": [1, "two"]}}}
    editor = await PlanEditor.open(pages, graph)
    before = await editor.saved()
    assert EDGE_DATA.items() <= before["edges"][0]["data"].items()
    panel = await editor.select("Draft")
    provider = panel.get_by_label("Provider", exact=True)
    await provider.and_(panel.locator("select")).select_option("openai")  # once these are known
    await panel.get_by_label("Model", exact=True).select_option("gpt-4o-mini")
    await expect(editor.page.get_by_role("status").get_by_text("Saved")).to_be_visible()
    after = await editor.stored()
    assert after["edges"] == before["edges"]
    chosen = {"provider": "openai", "model": "gpt-4o-mini"}
    assert after["nodes"][1]["data"] == {**before["nodes"][1]["data"], **chosen}
    assert [after["nodes"][0], after["nodes"][2]] == [before["nodes"][0], before["nodes"][2]]
    assert await editor.authors() == [(3, "person"), (2, "api"), (1, "planner")]


@pytest.mark.slow
async def test_step_that_is_moved_makes_no_revision(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    before = await editor.saved()
    await editor.drag(editor.card("Facts"), (-20, -60))
    after = await editor.saved()
    assert after["nodes"][0].pop("ui")["position"]
    assert (after["nodes"], after["hash"]) == (before["nodes"], before["hash"])
    assert [number for number, _ in await editor.authors()] == [2, 1]
    await editor.page.reload()
    await editor.card("Facts").click()
    await editor.page.keyboard.press("Shift+ArrowRight")
    moved = await editor.stored_node("facts")
    await editor.page.get_by_role("button", name="Tidy up").click()
    assert moved["ui"]["position"]
    assert "position" not in ((await editor.stored_node("facts")).get("ui") or {})


@pytest.mark.slow
async def test_steps_are_connected_with_the_mouse(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    before = await editor.saved()
    await expect(editor.socket("draft", "link:model")).to_be_visible()
    await editor.drag(editor.socket("other", "flow:output"), editor.socket("draft", "link:model"))
    await expect(editor.page.get_by_text("is a flow port").first).to_be_visible()
    await editor.drag(editor.socket("draft", "flow:output"), editor.socket("draft", "flow:input"))
    await expect(
        editor.page.get_by_text("A step cannot depend on itself.", exact=True)
    ).to_be_visible()
    assert (await editor.saved())["edges"] == before["edges"]
    await editor.drag(editor.socket("other", "flow:output"), editor.socket("draft", "flow:input"))
    plan = await editor.saved()
    (edge,) = (edge for edge in plan["edges"] if edge["source"] == "other")
    assert (edge["sourceHandle"], edge["target"], edge["targetHandle"]) == (
        "output", "draft", "input",
    )  # fmt: skip
    assert set(edge["data"]) == {"channel", "sourceType", "targetType"}
    assert edge["data"]["channel"] == "flow"


async def test_steps_are_found_connected_and_added_by_keyboard(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    page, panel = editor.page, editor.panel
    await page.get_by_role("button", name="Find a step").click()
    await expect(page.get_by_label("Name, id or task of a step")).to_be_focused()
    await page.keyboard.type("do draft")
    await page.keyboard.press("Enter")
    await expect(panel).to_have_attribute("aria-label", "Settings of Draft")
    await panel.get_by_role("tab", name="Settings").focus()
    await page.keyboard.press("ArrowRight")
    form = panel.get_by_role("region", name="Add a dependency")
    step = form.get_by_label("Step", exact=True)
    await step.focus()
    await choose_by_letter(page, step, "other")
    await form.get_by_role("button", name="Add dependency").focus()
    await page.keyboard.press("Enter")
    depends = panel.get_by_role("region", name="Depends on", exact=True)
    await expect(depends.get_by_role("listitem")).to_have_count(2)
    await expect(depends.get_by_role("listitem").last).to_contain_text("Data → Data")
    plan = await editor.saved()
    assert [edge["source"] for edge in plan["edges"]] == ["facts", "other"]
    await depends.get_by_role("button", name="Remove the wire from facts").focus()
    await page.keyboard.press("Enter")
    await press_at_once(page, "Escape", "n")
    await expect(page.get_by_role("textbox", name="Find a type")).to_be_focused()
    await page.keyboard.type("conditional")
    await page.keyboard.press("Enter")
    await expect(panel).to_have_attribute("aria-label", "Settings of conditional")
    await expect(panel).to_contain_text("it does not change what the step does")
    await expect(panel).not_to_contain_text("become the prompt")
    plan = await editor.saved()
    assert [edge["source"] for edge in plan["edges"]] == ["other"]
    assert ids(plan) == ["facts", "draft", "other", "conditional"]
    assert plan["nodes"][-1]["type"] == "conditional"


async def choose_by_letter(page: Page, field: Locator, value: str) -> None:
    """Choose in a list by the first letter, again where the list was drawn anew under the key."""
    for _ in range(10):
        await page.keyboard.press(value[0].upper())
        if await field.input_value() == value:
            return
        await page.wait_for_timeout(1_100)  # lists forget the letters before after a second
    raise AssertionError(f"{value!r} is not chosen: {await field.input_value()!r}")


async def press_at_once(page: Page, *keys: str) -> None:
    """Press keys with no moment between them, as somebody who types fast."""
    await page.evaluate(
        """(keys) => {
          for (const key of keys) {
            const at = document.activeElement;
            at.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
          }
        }""",
        keys,
    )
    await rendered(page)


async def test_cards_say_the_task_and_forms_offer_what_the_service_knows(pages: Pages) -> None:
    graph = {
        "nodes": [
            {"id": "a", "type": "agent", "name": "Food", "description": ESCAPED, "data": {}},
            {"id": "b", "type": "agent", "name": "Arabic", "description": ARABIC, "data": {}},
            {"id": "c", "type": "fetch", "name": "Page", "data": {"url": "https://example.org"}},
        ],
        "edges": [],
    }
    editor = await PlanEditor.open(pages, graph)
    page = editor.page
    await expect(page.get_by_title("Find {{ braces }}.", exact=True)).to_be_visible()
    arabic = page.get_by_title(ARABIC, exact=True)
    direction = "(text) => getComputedStyle(text).direction"
    assert await arabic.evaluate(direction) == "rtl"
    box = await arabic.bounding_box()
    assert box is not None
    assert box["height"] <= 40  # two lines of it
    panel = await editor.select("Food")
    await panel.get_by_label("Provider", exact=True).select_option("openai")
    models = panel.get_by_label("Model", exact=True).get_by_role("option")
    await expect(models.get_by_text("gpt-4o-mini").first).to_be_attached()
    await expect(panel.get_by_label("Temperature")).to_be_hidden()
    await panel.get_by_text("More settings").click()
    await panel.get_by_role("button", name="Add to fallback").click()
    await panel.get_by_label("Provider", exact=True).last.select_option("local")
    await assert_accessible(page)
    panel = await editor.select("Page")
    await panel.get_by_role("button", name="Add to headers").click()
    await panel.get_by_label("Name 1").fill("Accept")
    await panel.get_by_label("Value 1").fill("text/html")
    await assert_accessible(page)
    await take_screenshot(page, "editor-forms")
    food, _, fetch = (await editor.saved())["nodes"]
    assert food["data"] == {"provider": "openai", "fallback": [{"provider": "local"}]}
    assert fetch["data"] == {"url": "https://example.org", "headers": {"Accept": "text/html"}}


async def test_new_step_is_connected_in_view_and_says_once_what_it_needs(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    page = editor.page
    await editor.select("Draft")
    await editor.add_step("approval")
    await expect(editor.panel).to_have_attribute("aria-label", "Settings of approval")
    edges = (await editor.saved())["edges"]
    assert [(edge["source"], edge["target"]) for edge in edges[1:]] == [("draft", "approval")]
    await expect(editor.card("approval")).to_be_in_viewport(ratio=1)
    assert await editor.is_uncovered("approval")
    missing = page.get_by_text("“Prompt” is required", exact=False)
    await expect(editor.panel.locator(missing)).to_have_count(1)
    await expect(page.get_by_role("region", name="Problems").locator(missing)).to_have_count(1)
    await expect(missing).to_have_count(2)
    await expect(page.get_by_text("data.prompt")).to_have_count(0)
    await page.keyboard.press("Escape")
    await page.keyboard.press("f")
    start = editor.socket("other", "flow:output")
    await editor.drag(start, (120, 90))
    await expect(page.get_by_role("textbox", name="Find a type")).to_be_focused()
    await expect(page.get_by_role("button", name="chat_start")).to_have_count(0)
    await page.keyboard.type("agent")
    await page.keyboard.press("Enter")
    edges = (await editor.saved())["edges"]
    assert [(edge["source"], edge["target"]) for edge in edges[2:]] == [("other", "agent")]
    await editor.drag(editor.socket("other", "flow:output"), (120, 90))
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("textbox", name="Find a type")).to_have_count(0)
    assert len((await editor.saved())["edges"]) == 3


async def test_a_type_is_found_by_its_name_and_braces_in_a_task_are_refused_before_the_run(
    pages: Pages, model: ScriptedModel
) -> None:
    """`start` was `chat_start`, the first of the alphabet; the model got ``{{ input }}`` as it was written."""
    editor = await PlanEditor.open(pages)
    page = editor.page
    await expect(editor.card("Draft")).to_be_visible()
    await page.keyboard.press("n")
    types = page.get_by_role("textbox", name="Find a type")
    found = page.locator("form").filter(has=types).get_by_role("listitem")
    for name in ("start", "text", "tool"):
        await types.fill(name)
        await expect(found.first.locator("b")).to_have_text(name)
    await page.keyboard.press("Escape")
    panel = await editor.select("Draft")
    await panel.get_by_label("Task", exact=True).fill("Get from Zurich to {{ input }}.")
    problems = page.get_by_role("region", name="Problems")
    await expect(problems).to_contain_text("input")
    await expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    assert model.prompts == []


@pytest.mark.slow
async def test_step_that_gets_another_wave_stays_in_view(pages: Pages) -> None:
    edges = [
        {"source": source, "target": target, "data": {"channel": "flow"}}
        for source, target in pairwise("abcd")
    ]
    nodes = [{"id": each, "type": "text", "name": each.upper() * 3} for each in "abcde"]
    editor = await PlanEditor.open(pages, {"nodes": nodes, "edges": edges})
    panel = await editor.select("EEE")
    await panel.get_by_role("tab", name="Depends on").click()
    form = panel.get_by_role("region", name="Add a dependency")
    await form.get_by_label("Step", exact=True).select_option(label="DDD")
    await form.get_by_role("button", name="Add dependency").click()
    await expect(editor.page.get_by_text("Wave 5")).to_be_visible()
    await expect(editor.card("EEE")).to_be_in_viewport(ratio=1)


@pytest.mark.slow
async def test_steps_are_removed_undone_duplicated_and_pasted(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    keyboard = editor.page.keyboard
    await editor.select("Facts")
    await keyboard.press("Delete")
    plan = await editor.saved()
    assert (ids(plan), plan["edges"]) == (["draft", "other"], [])
    await keyboard.press("Control+z")
    plan = await editor.saved()
    assert sorted(ids(plan)) == ["draft", "facts", "other"]
    assert [edge["data"] for edge in plan["edges"]] == [EDGE_DATA]
    await keyboard.press("Control+Shift+z")
    assert ids(await editor.saved()) == ["draft", "other"]
    await editor.select("Other")
    await keyboard.press("Control+d")
    plan = await editor.saved()
    assert ids(plan) == ["draft", "other", "other_2"]
    assert plan["nodes"][2]["data"] == plan["nodes"][1]["data"]
    await keyboard.press("Control+c")
    await keyboard.press("Control+v")
    assert ids(await editor.saved()) == ["draft", "other", "other_2", "other_3"]


@pytest.mark.slow
async def test_new_id_of_a_step_is_followed_by_edges_and_expressions(pages: Pages) -> None:
    graph = {**GRAPH, "nodes": [*GRAPH["nodes"]]}
    graph["nodes"][2] = {**graph["nodes"][2], "data": {"text": "{{ nodes['facts'] }}"}}
    editor = await PlanEditor.open(pages, graph)
    panel = await editor.select("Facts")
    await panel.get_by_role("textbox", name="Id", exact=True).fill("known_facts")
    async with editor.page.expect_response(lambda response: response.request.method == "PATCH"):
        await editor.page.keyboard.press("Enter")
    await expect(panel.get_by_role("textbox", name="Id", exact=True)).to_have_value("known_facts")
    plan = await editor.saved()
    assert ids(plan) == ["known_facts", "draft", "other"]
    assert plan["edges"][0]["source"] == "known_facts"
    assert "known_facts" in plan["nodes"][2]["data"]["text"]
    assert [number for number, _ in await editor.authors()] == [3, 2, 1]


# -- problems, JSON, files --------------------------------------------------------------------------


async def test_problems_stand_at_their_steps_and_prevent_a_run(pages: Pages) -> None:
    asked = {
        "id": "asked",
        "type": "approval",
        "name": "Asked",
        "data": {"prompt": "Well?", "timeoutS": -1},
    }
    misspelt = {"id": "late", "type": "txet", "data": {"text": "Steam."}}
    nodes = [GRAPH["nodes"][0], asked, misspelt]
    editor = await PlanEditor.open(pages, {"nodes": nodes, "edges": []})
    page = editor.page
    problems = page.get_by_role("region", name="Problems")
    await expect(problems.get_by_text("2 errors")).to_be_visible()
    await expect(problems.get_by_text("1 wave")).to_have_count(0)
    await problems.get_by_role("button", name="Use type text").click()
    await expect(problems.get_by_text("1 error")).to_be_visible()
    await expect(page.get_by_text("Fix 1 error to run")).to_be_visible()
    await expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    await page.keyboard.press(RUN_KEYS)
    await expect(page.get_by_text("Fix 1 error to run.", exact=True)).to_be_visible()
    assert editor.plan_id in page.url
    await expect(page.get_by_title("It has an error")).to_be_visible()
    await problems.get_by_role("button", name="Show").first.click()
    await expect(editor.panel).to_have_attribute("aria-label", "Settings of Asked")
    await expect(editor.panel.locator("[aria-invalid=true]")).to_have_count(1)
    await page.keyboard.press("Delete")
    await expect(problems.get_by_text("1 wave")).to_be_visible()
    assert [node["type"] for node in (await editor.saved())["nodes"]] == ["text", "text"]


@pytest.mark.slow
async def test_plan_is_the_same_as_canvas_as_json_and_as_a_file(
    pages: Pages, tmp_path: Path
) -> None:
    editor = await PlanEditor.open(pages)
    views = editor.page.get_by_role("radiogroup", name="Show the plan as")
    text = editor.page.get_by_role("textbox", name="The plan as JSON")
    await views.get_by_text("JSON").click()
    await expect(text).to_contain_text("Water boils.")
    graph = {"nodes": [{**GRAPH["nodes"][0], "name": "Renamed"}], "edges": []}
    await text.focus()
    await editor.page.keyboard.press("Control+a")
    await editor.page.keyboard.insert_text(json.dumps(graph))
    await views.get_by_text("Canvas").click()
    panel = await editor.select("Renamed")
    assert ids(await editor.saved()) == ["facts"]
    await panel.get_by_role("textbox", name="Name", exact=True).fill("Renamed again")
    await views.get_by_text("JSON").click()
    await expect(text).to_contain_text("Renamed again")
    await text.focus()
    await editor.page.keyboard.press("Control+a")
    await editor.page.keyboard.insert_text('{"nodes": [{}], "edges": []}')
    await expect(editor.page.get_by_text("Not taken yet: nodes[0]")).to_be_visible()
    assert ids(await editor.saved()) == ["facts"]
    await move_as_a_file(editor, tmp_path)
    await expect(editor.page.get_by_role("heading", level=1)).to_have_text("From a file")
    assert ids(await editor.saved()) == ["facts", "added"]


async def move_as_a_file(editor: PlanEditor, directory: Path) -> None:
    """Export the plan, change the file, and import it."""
    page, file = editor.page, directory / "plan.json"
    await page.get_by_role("button", name="More").click()
    async with page.expect_download() as download:
        await page.get_by_role("menuitem", name="Export as a JSON file").click()
    await (await download.value).save_as(file)
    exported = json.loads(file.read_text("utf-8"))
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Copy as Mermaid").click()
    await expect(page.get_by_text("Copied as Mermaid", exact=True)).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert "flowchart TD\n  facts(" in copied
    stored = await editor.saved()
    assert {name: stored[name] for name in ("title", "nodes", "edges")} == exported
    nodes = [*exported["nodes"], {"id": "added", "type": "text", "data": {"text": "Ice."}}]
    file.write_text(json.dumps({**exported, "title": "From a file", "nodes": nodes}), "utf-8")
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Import a file").click()
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Choose a file").click()
    await (await chooser.value).set_files(file)


# -- saving -----------------------------------------------------------------------------------------


async def test_two_editors_of_one_plan_lose_nothing(pages: Pages) -> None:
    pages.errors.expect(CHANGED)
    one = await PlanEditor.open(pages)
    two = await PlanEditor(await pages.open(None), one.plan_id).visit()
    first, second = await one.select("Facts"), await two.select("Other")
    await first.get_by_role("textbox", name="Name", exact=True).fill("Facts of one")
    await second.get_by_role("textbox", name="Name", exact=True).fill("Other of two")
    await one.saved()
    plan = await two.saved()
    assert [node["name"] for node in plan["nodes"]] == ["Facts of one", "Draft", "Other of two"]
    assert await one.authors() == [(4, "person"), (3, "person"), (2, "api"), (1, "planner")]
    for editor in (one, two):
        await editor.page.keyboard.press("Escape")
        await editor.add_step("conditional")
    await one.saved()
    assert ids(await two.saved())[3:] == ["conditional", "conditional_2"]
    assert (await two.authors())[0] == (6, "person")


@pytest.mark.slow
async def test_change_of_a_step_that_somebody_else_has_removed_is_named(pages: Pages) -> None:
    pages.errors.expect(CHANGED)
    editor = await PlanEditor.open(pages)
    panel = await editor.select("Facts")
    await patch_plan(editor.page, editor.plan_id, {"op": "remove_node", "id": "facts"})
    await panel.get_by_role("textbox", name="Name", exact=True).fill("Known facts")
    await expect(editor.page.get_by_role("alert")).to_contain_text("the change of Known facts")
    await expect(editor.card("Known facts")).to_have_count(0)
    assert ids(await editor.saved()) == ["draft", "other"]
    await editor.page.get_by_role("button", name="Understood").click()
    await expect(editor.page.get_by_role("alert")).to_have_count(0)


@pytest.mark.slow
async def test_earlier_revision_is_restored_and_that_is_undone(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    page = editor.page
    await editor.select("Facts")
    await page.keyboard.press("Delete")
    await editor.saved()
    await page.get_by_role("button", name="Compare").click()
    differences = page.get_by_role("region", name="Revision 2 to 3")
    await expect(differences.get_by_text("Facts", exact=True)).to_be_visible()
    await expect(differences.get_by_text("Facts → Draft")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(differences).to_have_count(0)
    await expect(page.get_by_role("button", name="Compare")).to_be_focused()
    await page.get_by_role("button", name="Restore 2").click()
    await expect(editor.card("Facts")).to_be_visible()
    plan = await editor.saved()
    assert (ids(plan), plan["edges"][0]["data"]) == (ids(dict(GRAPH)), EDGE_DATA)
    assert (await editor.authors())[0] == (4, "person")
    await page.keyboard.press("Control+z")
    await expect(editor.card("Facts")).to_have_count(0)
    assert ids(await editor.saved()) == ["draft", "other"]


@pytest.mark.slow
async def test_every_revision_can_be_chosen(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    for number in range(6):
        change = {"op": "update_node", "id": "facts", "set": {"name": f"Facts {number}"}}
        await patch_plan(editor.page, editor.plan_id, change)
    await editor.visit()
    bar = editor.page.get_by_role("list", name="Revisions").get_by_role("button")
    await expect(bar).to_have_count(
        3
    )  # what a program did in one go is one of them, beside what is compared
    await editor.page.get_by_role("button", name="Earlier revisions").click()
    await editor.page.get_by_role("menuitem", name="Revision 2, by a program").click()
    await editor.page.set_viewport_size({"width": 1280, "height": 800})
    restore = editor.page.get_by_role("button", name="Restore 2")
    await expect(restore).to_be_in_viewport(ratio=1)


@pytest.mark.slow
async def test_changes_are_saved_when_the_tab_is_closed(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    other = await PlanEditor(await pages.open(None), editor.plan_id).visit()
    panel = await editor.select("Facts")
    await panel.get_by_role("textbox", name="Name", exact=True).fill("Known facts")
    editor.page.once("dialog", lambda dialog: dialog.accept())
    await editor.page.close(run_before_unload=True)
    await expect(other.card("Facts")).to_be_visible()
    await other.page.reload()
    await expect(other.card("Known facts")).to_be_visible()


@pytest.mark.slow
async def test_changes_are_kept_while_the_service_is_down(
    pages: Pages, service: WebService
) -> None:
    pages.errors.expect(LOST)
    editor = await PlanEditor.open(pages, before_load=lambda opened: opened.clock.install())
    panel = await editor.select("Facts")
    await editor.saved()
    service.proxy.cut()
    await panel.get_by_role("textbox", name="Name", exact=True).fill("Known facts")
    await expect(editor.page.get_by_text("Not saved")).to_be_visible()
    service.proxy.restore()
    await editor.page.clock.fast_forward(5_000)
    plan = await editor.saved()
    assert plan["nodes"][0]["name"] == "Known facts"
    assert [number for number, _ in await editor.authors()] == [3, 2, 1]


# -- flows and runs ---------------------------------------------------------------------------------


async def test_plan_is_saved_as_a_flow_that_is_run(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    page = editor.page
    await page.get_by_role("button", name="Save as flow").click()
    dialog = page.get_by_role("dialog", name="Save as flow")
    await dialog.get_by_label("Name").fill("Water")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Save the flow").click()
    await expect(page.get_by_text("Saved as the flow “Water”.", exact=True)).to_be_visible()
    flows = (await (await page.request.get("/api/flows")).json())["flows"]
    assert "Water" in [flow["name"] for flow in flows]
    await expect(page.get_by_role("link", name="Flow Water")).to_be_visible()
    assert (await editor.stored())["name"] == "Water"
    await page.get_by_role("button", name="Open it").click()
    await page.wait_for_url(f"**/flows/{editor.plan_id}")
    await expect(page.get_by_role("heading", name="Water", level=1)).to_be_visible()
    await page.get_by_role("button", name="Run").click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("button", name="Draft, completed").first).to_be_visible()


async def test_plan_is_approved_or_changed_before_its_run_starts(
    pages: Pages, model: ScriptedModel
) -> None:
    editor = await PlanEditor.open(pages)
    page = editor.page
    await page.get_by_role("switch", name="Approve first").check()
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("button", name="Approve").first).to_be_visible()
    assert model.prompts == []
    before = page.url
    await page.get_by_role("link", name="Edit the plan").click()
    panel = await editor.select("Facts")
    await panel.get_by_role("textbox", name="Text", exact=True).fill("Water freezes.")
    waiting = page.get_by_text("A run waits for the approval of this plan")
    await waiting.get_by_role("button", name="Take revision 3 instead").wait_for()
    await waiting.get_by_role("link", name="Open the run").click()
    await page.wait_for_url(before)
    await page.get_by_role("button", name="Take revision 3 instead").click()
    await page.wait_for_url(lambda url: "/runs/" in url and url != before)
    await page.get_by_role("button", name="Approve").first.click()
    await expect(page.get_by_text("Water freezes.").first).to_be_visible()
    await expect(page.get_by_role("button", name="Draft, completed").first).to_be_visible()
    assert len(model.prompts) == 1


async def press_until_focused(page: Page, key: str, name: str) -> None:
    """Press a key until an element whose name begins so has the focus."""
    for _ in range(60):
        await page.keyboard.press(key)
        focused = page.locator(":focus")
        if await focused.count():
            label = await focused.get_attribute("aria-label") or await focused.inner_text()
            if label.strip().startswith(name):
                return
    pytest.fail(f"no {key} leads to {name!r}")


async def test_plan_is_changed_and_run_by_keyboard_alone(
    pages: Pages, model: ScriptedModel
) -> None:
    editor = await PlanEditor.open(pages)
    page = editor.page
    await expect(editor.card("Facts")).to_be_visible()
    await press_until_focused(page, "Tab", "Facts")
    await page.keyboard.press("ArrowRight")
    await expect(editor.card("Draft")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(editor.panel).to_be_focused()
    await press_until_focused(page, "Tab", "Settings")
    for _ in range(2):
        await page.keyboard.press("Tab")
    await expect(editor.panel.get_by_role("textbox", name="Name", exact=True)).to_be_focused()
    await page.keyboard.press("Control+a")
    await page.keyboard.type("By keyboard")
    await page.keyboard.press("Escape")
    await expect(editor.card("By keyboard")).to_be_focused()
    await page.keyboard.press(RUN_KEYS)
    await page.wait_for_url("**/runs/*")
    assert (await editor.stored())["nodes"][1]["name"] == "By keyboard"


async def statuses_in(page: Page, execution_id: str) -> list[str]:
    """Return how the steps of the plan of ``PlanEditor`` stand in an execution."""
    path = f"/api/executions/{execution_id}/nodes"
    steps = [await page.request.get(f"{path}/{name}") for name in ("facts", "draft", "other")]
    return [(await step.json())["status"] for step in steps]


async def test_step_runs_with_what_it_needs_then_alone_with_what_it_got(
    pages: Pages, model: ScriptedModel
) -> None:
    model.replies = {"Do draft.": "First draft.", "Do better.": "Better draft."}
    editor = await PlanEditor.open(pages)
    page = editor.page
    panel = await editor.select("Draft")
    await panel.get_by_role("tab", name="Last run").click()
    await expect(panel.get_by_text("This step has not run yet.")).to_be_visible()
    await panel.get_by_role("button", name="Run up to here").click()
    await page.wait_for_url("**/runs/*")
    first = page.url.rpartition("/")[2]
    await stored_events(page, first)
    assert await statuses_in(page, first) == ["completed", "completed", "not_reached"]
    await editor.visit()
    panel = await editor.select("Draft")
    await panel.get_by_role("tab", name="Settings").click()
    await panel.get_by_label("Task", exact=True).fill("Do better.")
    await panel.get_by_role("tab", name="Last run").click()
    await expect(panel.get_by_text("First draft.")).to_be_visible()
    await expect(panel.get_by_text("Water boils.")).to_be_visible()
    await assert_accessible(page)
    await take_screenshot(page, "editor-last-run")
    await panel.get_by_role("button", name="Run this step with what it got").click()
    await expect(panel.get_by_text("Better draft.")).to_be_visible()
    await expect(panel.get_by_text("Water boils.")).to_be_visible()
    assert len(model.prompts) == 2
    query = f"/api/executions?plan_id={editor.plan_id}"
    newest = (await (await page.request.get(query)).json())["executions"][0]["execution_id"]
    assert (await statuses_in(page, newest))[1:] == ["completed", "not_reached"]


async def test_words_of_a_task_become_an_input_in_the_editor(pages: Pages) -> None:
    editor = await PlanEditor.open(pages)
    page = editor.page
    panel = await editor.select("Draft")
    task = panel.get_by_label("Task", exact=True)
    await task.fill("Find food in Lisbon")
    await page.keyboard.press("Control+Shift+ArrowLeft")
    await panel.get_by_role("button", name="Make “Lisbon” an input").click()
    dialog = page.get_by_role("dialog", name="Make it an input")
    await expect(dialog.get_by_label("Name of the input")).to_have_value("city")
    await expect(dialog.get_by_role("checkbox", name="Draft")).to_be_checked()
    await dialog.get_by_role("button", name="Make it an input of a flow").click()
    await expect(
        page.get_by_text("“city” is an input of the flow now.", exact=True)
    ).to_be_visible()
    await expect(task).to_have_value("Find food in {{ city }}")
    await expect(page.get_by_role("link", name="Flow Two steps")).to_be_visible()
    nodes = {node["id"]: node for node in (await editor.saved())["nodes"]}
    fields = nodes["inputs"]["data"]["schema"]["properties"]
    assert fields == {"city": {"type": "string", "default": "Lisbon"}}
    assert nodes["draft"]["description"] == "Find food in {{ city }}"


async def test_words_of_the_goal_become_an_input_in_the_editor(pages: Pages) -> None:
    pages.errors.expect("status of 409")
    editor = await PlanEditor.open(pages)
    page = editor.page
    await page.locator("summary").filter(has_text=GOAL).click()
    await page.get_by_text(GOAL).last.evaluate(
        """(node) => {
            const text = node.firstChild;
            const at = text.data.lastIndexOf(" ");
            getSelection().setBaseAndExtent(text, at + 1, text, text.data.length);
        }"""
    )
    words = GOAL.rpartition(" ")[2]
    await page.get_by_role("button", name=f"Make “{words}” an input").click()
    dialog = page.get_by_role("dialog", name="Make it an input")
    await dialog.get_by_label("Name of the input").fill("subject")
    await expect(dialog.get_by_role("checkbox", name="Goal")).to_be_checked()
    other = {"name": "A name that is taken", "graph": GRAPH}
    assert (await page.request.post("/api/flows", data=other)).ok
    make = dialog.get_by_role("button", name="Make it an input of a flow")
    await dialog.get_by_label("Name of the flow").fill("A name that is taken")
    await make.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Another flow has the name")
    await dialog.get_by_label("Name of the flow").fill("A goal with an input")
    await make.click()
    await expect(
        page.get_by_text("“subject” is an input of the flow now.", exact=True)
    ).to_be_visible()
    goal = GOAL.removesuffix(words) + "{{ subject }}"
    await expect(page.locator("summary").filter(has_text=goal)).to_have_count(1)
    assert (await editor.saved())["description"] == goal


@every_width
async def test_editor_is_usable(pages: Pages, width: str) -> None:
    editor = await PlanEditor.open(pages)
    await expect(editor.card("Draft")).to_be_visible()
    await expect(editor.page.get_by_text("2 waves")).to_have_count(1)
    await assert_screen_is_usable(editor.page, "editor", width)
    panel = await editor.select("Draft")
    await assert_screen_is_usable(editor.page, "editor-step", width)
    for tab in ("Depends on", "Policy", "JSON"):
        await panel.get_by_role("tab", name=tab).click()
        await assert_accessible(editor.page)
    for shape in ("Table", "JSON"):
        await editor.page.get_by_role("radio", name=shape).check()
        await assert_screen_is_usable(editor.page, f"editor-{shape.lower()}", width)
