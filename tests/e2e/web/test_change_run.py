"""A run that waits is changed by hand and in words, and shows each moment of its plan with what a change made of it."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.async_api import Locator, Page, Route, expect

from tests.support.browser.accessibility import assert_accessible_in_both_themes, resize
from tests.support.browser.chromium import TABLET, Pages
from tests.support.browser.scripted_model import Gate, ScriptedModel
from tests.support.browser.steps import execute_graph, stored_events
from tests.support.llm.fake_llm_server import ErrorReply, TextReply

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
COSTS: dict[str, Any] = {"id": "costs", "type": "text", "name": "Costs", "data": {"text": "3 EUR."}}
WITH_COSTS: dict[str, Any] = {
    "nodes": [*GRAPH["nodes"][:2], COSTS],
    "edges": [
        GRAPH["edges"][0],
        {"source": "draft", "target": "costs", "data": {"channel": "flow"}},
    ],
}
"""The plan without what follows the question, and with a step that runs beside it."""
WORDS = "also cover costs"
PROPOSED = json.dumps(
    {
        "answer": "Adds the costs, and sends nothing.",
        "operations": [
            {"op": "remove_node", "id": "sent"},
            {"op": "add_node", "node": {"id": "costs", "name": "Costs", "type": "agent", "description": "Add the costs."}},
            {"op": "add_edge", "edge": {"source": "draft", "target": "costs"}},
        ],
    }
)  # fmt: skip
FAILING: dict[str, Any] = {
    "nodes": [
        {"id": "old", "type": "agent", "name": "Old", "description": "Ask the old source", "data": {}},
        {"id": "end", "type": "agent", "name": "End", "description": "Write the report", "data": {}},
    ],
    "edges": [{"source": "old", "target": "end", "data": {"channel": "flow"}}],
}  # fmt: skip
ANOTHER_MODEL = json.dumps(
    {
        "answer": "Asks another model.",
        "operations": [
            {"op": "remove_node", "id": "old"},
            {"op": "add_node", "node": {
                "id": "new", "name": "New", "type": "agent", "description": "Ask the new source",
                "data": {"provider": "openai", "model": "gpt-4o"},
            }},
            {"op": "add_edge", "edge": {"source": "new", "target": "end"}},
        ],
    }
)  # fmt: skip
WIDTHS = (1440, 390)


async def assert_accessible_at_widths(page: Page, picture: str) -> None:
    """Check the page as it is now at the widths of a desk and of a phone, in both themes."""
    for width in WIDTHS:
        await resize(page, (width, 900))
        await assert_accessible_in_both_themes(page, f"{picture}-{width}")
    await resize(page, (1440, 900))


async def started(page: Page) -> str:
    """Start a run and wait until it waits; return its id."""
    execution_id = await execute_graph(page, GRAPH)
    await expect(page.get_by_role("button", name="Ask, waiting").first).to_be_visible()
    return execution_id


async def revise(page: Page, execution_id: str, graph: dict[str, Any], note: str) -> None:
    """Change a run as somebody else does."""
    address = f"/api/executions/{execution_id}/revise"
    made = await page.request.post(address, data={"graph": graph, "note": note})
    assert made.ok, await made.text()


async def end(page: Page, execution_id: str) -> None:
    """Cancel a run, so that nothing of it is asked of anybody, and wait until the page says so."""
    await page.request.post(f"/api/executions/{execution_id}/cancel", data={})
    await page.goto(f"/runs/{execution_id}")
    await expect(page.get_by_role("button", name="Run the rest")).to_be_visible()


async def opened(page: Page) -> str:
    """Start a run that waits, and open its change; return its id."""
    execution_id = await started(page)
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
    await assert_accessible_at_widths(page, "change-run")
    await page.get_by_role("button", name="Change the run").click()
    await page.wait_for_url(f"**/runs/{execution_id}")
    await expect(page.get_by_role("button", name="Costs, completed").first).to_be_visible()
    await page.get_by_role("button", name="Plan changed 1 time").click()
    changes = page.get_by_role("dialog", name="Changes of the plan")
    await expect(changes).to_contain_text("also cover costs")
    await expect(changes).to_contain_text("Costs")
    await assert_accessible_at_widths(page, "changes-of-run")
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
    await revise(page, execution_id, other, "another")
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
    await end(page, execution_id)


async def test_a_change_in_words_is_drawn_over_the_plan_and_outlives_one_that_comes_first(
    pages: Pages, model: ScriptedModel
) -> None:
    pages.errors.expect("412")
    page = await pages.open(None)
    execution_id = await opened(page)
    gate = Gate()
    model.replies = {WORDS: TextReply(PROPOSED, hold_until=gate)}
    await page.get_by_role("radio", name="In words").click()
    words = page.get_by_label("What is to be different")
    await words.fill(WORDS)
    await page.get_by_role("button", name="Only propose it").click()
    await expect(page.get_by_role("main")).to_contain_text("A change is being written")
    await expect(page.get_by_role("button", name="Ask, waiting")).to_be_visible()
    await assert_accessible_at_widths(page, "change-written")
    await page.get_by_role("button", name="Cancel").click()
    model.replies = {WORDS: PROPOSED}
    gate.set()
    await expect(words).to_have_value(WORDS)
    await page.get_by_role("button", name="Only propose it").click()
    proposal = page.get_by_role("complementary", name="The proposal")
    await expect(proposal).to_contain_text("Adds the costs, and sends nothing.")
    await expect(page.get_by_role("button", name="Costs, new")).to_be_visible()
    await expect(page.get_by_role("button", name="Send, dropped")).to_be_visible()
    await assert_accessible_at_widths(page, "change-proposed")

    async def overtake(route: Route) -> None:
        ask = {**GRAPH["nodes"][2], "data": {"text": "Sent again."}}
        await revise(page, execution_id, {**GRAPH, "nodes": [*GRAPH["nodes"][:2], ask]}, "first")
        await route.continue_()

    await page.route("**/revise", overtake, times=1)
    await page.get_by_role("button", name="Change the run").click()
    await expect(page.get_by_role("alert")).to_contain_text("Another change of this run came first")
    await page.get_by_role("button", name="Read the run again, with your words").click()
    await expect(words).to_have_value(WORDS)
    await page.get_by_role("button", name="Only propose it").click()
    await expect(proposal).to_be_visible()
    await page.get_by_role("button", name="Change the run").click()
    await page.wait_for_url(f"**/runs/{execution_id}")
    await expect(page.get_by_role("button", name="Costs, completed").first).to_be_visible()
    await page.get_by_role("button", name="Plan changed 2 times").click()
    changes = page.get_by_role("dialog", name="Changes of the plan").get_by_role("listitem")
    await expect(changes.first).to_contain_text(f"in words: {WORDS}")
    await expect(changes.last).to_contain_text("first")
    await end(page, execution_id)


async def test_words_hold_the_run_while_they_become_a_change_and_it_goes_on_with_that(
    pages: Pages, model: ScriptedModel
) -> None:
    gate = Gate()
    text = {"id": "costs", "name": "Costs", "type": "text", "data": {"text": "3 EUR."}}
    adds = {"op": "add_node", "node": text}
    wires = {"op": "add_edge", "edge": {"source": "draft", "target": "costs"}}
    reply = json.dumps({"answer": "Adds the costs.", "operations": [adds, wires]})
    model.replies = {WORDS: TextReply(reply, chunks=8, gates={8: gate})}
    page = await pages.open(None)
    execution_id = await opened(page)
    await page.get_by_role("radio", name="In words").click()
    await page.get_by_label("What is to be different").fill(WORDS)
    await assert_accessible_at_widths(page, "change-words")
    await page.get_by_role("button", name="Change the run").click()
    await page.wait_for_url(re.compile(rf"/runs/{execution_id}$"))
    run = page.get_by_role("main")
    await expect(run).to_contain_text(
        "A model writes a change of the plan, as a person asks for it"
    )
    await expect(page.get_by_role("button", name="Costs, new")).to_be_visible()
    await assert_accessible_at_widths(page, "change-asked-for")
    gate.set()
    await expect(page.get_by_role("button", name="Costs, completed").first).to_be_visible()
    await page.get_by_role("button", name="Plan changed 1 time").click()
    changes = page.get_by_role("dialog", name="Changes of the plan").get_by_role("listitem")
    await expect(changes.first).to_contain_text("Adds the costs.")
    await end(page, execution_id)
    types = await stored_events(page, execution_id)
    assert types.index("plan.requested") < types.index("plan.revised")


async def test_the_plan_of_each_moment_is_shown_with_what_a_change_made_of_it(
    pages: Pages,
) -> None:
    page = await pages.open(None)
    execution_id = await started(page)
    await expect(page.get_by_role("slider", name="Plan", exact=True)).to_have_count(0)
    await revise(page, execution_id, WITH_COSTS, WORDS)
    other = {**COSTS, "id": "later", "name": "Later"}
    wired = {"source": "ask", "sourceHandle": "approve", "target": "later", "data": {"channel": "flow"}}  # fmt: skip
    more = {"nodes": [*WITH_COSTS["nodes"], other], "edges": [*WITH_COSTS["edges"], wired]}
    await revise(page, execution_id, more, "")
    slider = page.get_by_role("slider", name="Plan", exact=True)
    await expect(slider).to_have_attribute("aria-valuetext", "now")
    marks = page.get_by_role("group", name="Changes of the plan")
    await marks.get_by_role("button", name=f"by a local user: {WORDS}").click()
    await expect(page.get_by_role("button", name="Costs, new, completed")).to_be_visible()
    await expect(page.get_by_role("button", name="Send, dropped")).to_be_visible()
    await expect(page.get_by_role("button", name="Draft, completed").first).to_be_visible()
    await assert_accessible_at_widths(page, "run-moment")
    await slider.press("ArrowRight")
    await expect(page.get_by_role("button", name="Later, new, pending")).to_be_visible()
    await slider.press("Home")
    await expect(slider).to_have_attribute("aria-valuetext", "as made")
    await expect(page.get_by_role("button", name="Costs, new")).to_have_count(0)
    await slider.press("ArrowRight")
    await press(page.get_by_role("button", name="Send, dropped"))
    dropped = page.get_by_role("dialog", name="Changes of the plan")
    await expect(dropped.get_by_role("listitem").last).to_contain_text("Taken out")
    await expect(dropped.get_by_role("listitem").last).to_contain_text("Send")
    await press(dropped.get_by_role("button", name="Close"))
    await slider.press("End")
    await expect(page.get_by_role("button", name="Later, pending").first).to_be_visible()
    await end(page, execution_id)


async def test_a_changed_run_is_kept_in_its_plan_while_it_goes_on_and_after_its_end(
    pages: Pages,
) -> None:
    page = await pages.open(None)
    flow = {"name": "Kept while it runs", "graph": GRAPH}
    made = await page.request.post("/api/flows", data=flow)
    plan_id = (await made.json())["plan_id"]
    made = await page.request.post("/api/execute", data={"plan_id": plan_id, "start": True})
    execution_id = (await made.json())["execution_id"]
    await page.goto(f"/runs/{execution_id}")
    await expect(page.get_by_role("button", name="Ask, waiting").first).to_be_visible()
    keep = page.get_by_role("button", name="Keep in the plan")
    await expect(keep).to_have_count(0)
    await revise(page, execution_id, WITH_COSTS, WORDS)
    await keep.click()
    dialog = page.get_by_role("dialog", name="Keep in the plan")
    await expect(dialog).to_contain_text("becomes revision 2 of the plan")
    await expect(dialog).to_contain_text("Costs is new.")
    await expect(dialog).to_contain_text("Send is taken out.")
    await dialog.get_by_role("button", name="Keep it").click()
    await expect(page.get_by_text("Kept as revision 2.", exact=True)).to_be_visible()
    plan = await (await page.request.get(f"/api/plans/{plan_id}")).json()
    assert {node["id"] for node in plan["nodes"]} == {"draft", "ask", "costs"}
    await end(page, execution_id)
    await keep.click()
    await expect(dialog).to_contain_text("The plan is the same already.")
    await dialog.get_by_role("button", name="Close").click()


async def test_words_for_a_run_that_has_ended_become_a_fork_of_it(
    pages: Pages, model: ScriptedModel
) -> None:
    model.replies = {WORDS: PROPOSED}
    page = await pages.open(None)
    execution_id = await started(page)
    await end(page, execution_id)
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Change this run …").click()
    await page.wait_for_url(f"**/runs/{execution_id}/change")
    await expect(page.get_by_role("main")).to_contain_text("This run has ended")
    await expect(page.get_by_role("radio", name="By hand")).to_have_count(0)
    await page.get_by_label("What is to be different").fill(WORDS)
    await page.get_by_role("button", name="Write the change").click()
    proposal = page.get_by_role("complementary", name="The proposal")
    await expect(proposal).to_contain_text("Adds the costs, and sends nothing.")
    await expect(proposal.get_by_role("button", name="Edit it first")).to_have_count(0)
    await assert_accessible_at_widths(page, "change-ended")
    await page.get_by_role("button", name="Fork and run").click()
    await page.wait_for_url(re.compile(rf"/runs/(?!{execution_id})[^/]+$"))
    await expect(page.get_by_role("button", name="Costs, completed").first).to_be_visible()
    await expect(page.get_by_role("button", name="Ask, waiting").first).to_be_visible()
    fork_id = page.url.rpartition("/runs/")[2]
    answer = await page.request.get(f"/api/executions/{fork_id}/document")
    document = await answer.json()
    assert document["parent"]["execution_id"] == execution_id
    nodes = {node["id"]: node for node in document["nodes"]}
    assert nodes["draft"]["reused"]["execution_id"] == execution_id
    await end(page, fork_id)


async def test_a_change_that_a_model_writes_after_a_failure_is_decided_on_the_page_of_the_run(
    pages: Pages, model: ScriptedModel
) -> None:
    gate = Gate()
    model.replies = {
        "There is a plan already.": TextReply(ANOTHER_MODEL, hold_until=gate),
        "Ask the old source": ErrorReply(400),
    }
    page = await pages.open(None)
    execution_id = await execute_graph(page, FAILING, {"replan": {"on_failure": True}})
    run = page.get_by_role("main")
    await expect(run).to_contain_text("A model writes a change of the plan, as Old failed")
    await assert_accessible_at_widths(page, "change-requested")
    gate.set()
    asked = page.get_by_role("region", name="Waiting for you")
    await expect(asked).to_contain_text("Change the plan of this run?")
    await expect(run).to_contain_text("Asks another model.")
    await expect(run).to_contain_text("It would do or reach what the plan does not yet:")
    await expect(run).not_to_contain_text("A model writes")
    await assert_accessible_at_widths(page, "change-asked")
    await asked.get_by_role("button", name="Approve").click()
    assert (await stored_events(page, execution_id))[-1] == "execution.completed"
    await expect(page.get_by_role("button", name="New, completed").first).to_be_visible()


async def test_the_steps_of_a_change_appear_as_they_are_written_and_are_gone_when_it_is_refused(
    pages: Pages, model: ScriptedModel
) -> None:
    gate = Gate()
    held = TextReply(ANOTHER_MODEL, chunks=8, gates={8: gate})
    model.replies = {"There is a plan already.": held, "Ask the old source": ErrorReply(400)}
    page = await pages.open(None)
    execution_id = await execute_graph(page, FAILING, {"replan": {"on_failure": True}})
    run, new = page.get_by_role("main"), page.get_by_role("button", name="New, new")
    await expect(new).to_be_visible()
    await expect(page.get_by_role("button", name="Old, dropped, failed")).to_be_visible()
    await expect(page.get_by_role("button", name="End, pending").first).to_be_visible()
    await expect(run).to_contain_text("A model writes a change of the plan, as Old failed")
    await assert_accessible_at_widths(page, "change-growing")
    await page.reload()
    await expect(new).to_be_visible()
    gate.set()
    asked = page.get_by_role("region", name="Waiting for you")
    await expect(asked).to_be_visible()
    await expect(new).to_be_visible()
    await resize(page, TABLET)
    tabs = await page.get_by_role("tablist").bounding_box()
    foot = await page.get_by_text("Choose a step to see its input").bounding_box()
    assert tabs is not None
    assert foot is not None
    assert tabs["y"] + tabs["height"] <= foot["y"], "they lie over each other"
    await asked.get_by_role("button", name="Reject").click()
    assert (await stored_events(page, execution_id))[-1] == "execution.failed"
    await expect(page.get_by_role("button", name="Old, failed").first).to_be_visible()
    await expect(new).to_have_count(0)
    await resize(page, (1440, 900))
    marks = page.get_by_role("group", name="Changes of the plan")
    mark = marks.get_by_role("button", name=re.compile("^Not changed, .*: the change was rejected"))
    await expect(mark).to_be_visible()
    await assert_accessible_at_widths(page, "change-refused")
    await press(mark)
    told = page.get_by_role("dialog", name="Changes of the plan")
    await expect(told).to_contain_text("the change was rejected")
    await press(told.get_by_role("button", name="Close"))


async def press(button: Locator) -> None:
    """Press a button with the keyboard."""
    await button.focus()
    await button.press("Enter")
