"""A run in the browser: live, over breaks of the connection and of the service, and afterwards."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

from playwright.async_api import Page, WebSocket, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
)
from tests.support.browser.chromium import Pages
from tests.support.browser.scripted_model import DEFAULT_PLAN, Gate, ScriptedModel
from tests.support.browser.steps import execute_graph, start_run, stored_events
from tests.support.browser.web_service import WebService
from tests.support.llm.fake_llm_server import ErrorReply, TextReply
from tests.support.paths import ROOT

ENDLESS_ANIMATIONS = """
() => document.getAnimations()
    .map((animation) => animation.effect.getComputedTiming())
    .filter(({ iterations, duration }) => iterations === Infinity && duration > 0).length
"""
LOST = "net::ERR_|WebSocket connection"
"""Errors on the console of a page that loses its service."""
APPROVAL = ROOT / "examples/flows/triage_with_approval.json"

NESTED: dict[str, Any] = {
    "nodes": [
        {"id": "pots", "type": "start", "name": "Pots", "data": {"initialInput": ["clay", "tin"]}},
        {
            "id": "each",
            "type": "loop",
            "name": "Each pot",
            "data": {
                "body": {
                    "nodes": [
                        {
                            "id": "note",
                            "type": "text",
                            "name": "Note",
                            "data": {"text": "A pot of {{ item }}"},
                        }
                    ],
                    "edges": [],
                }
            },
        },
        {"id": "plan", "type": "planner", "name": "Make a plan", "data": {"goal": "A garden"}},
        {"id": "ask", "type": "approval", "name": "Ask", "data": {"prompt": "Publish this?"}},
        {"id": "end", "type": "end", "name": "Publish"},
    ],
    "edges": [
        {"source": "pots", "target": "each", "data": {"channel": "flow"}},
        {"source": "pots", "target": "plan", "data": {"channel": "flow"}},
        {"source": "each", "target": "ask", "data": {"channel": "flow"}},
        {"source": "plan", "target": "ask", "data": {"channel": "flow"}},
        {
            "source": "ask",
            "sourceHandle": "approve",
            "target": "end",
            "data": {"channel": "flow"},
        },
    ],
}


def hold_second(model: ScriptedModel) -> Gate:
    """Let the model stop in the middle of the second step's reply, until the gate is open."""
    gate = Gate()
    model.replies = {
        "Do second": TextReply("The second thing is done.", chunks=5, gates={3: gate}),
        "Do last": "All of it is **done**.",
    }
    return gate


async def expect_completed(page: Page) -> None:
    """Expect the end of the run of ``hold_second``, with its result."""
    await expect(page.get_by_role("button", name="Second, completed").first).to_be_visible()
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("All of it is done.")
    await expect(page.get_by_text("Reconnecting")).to_have_count(0)


async def test_run_is_followed_to_its_result(page: Page, model: ScriptedModel) -> None:
    gate = hold_second(model)
    sockets: list[WebSocket] = []
    page.on("websocket", lambda opened: sockets.append(opened))
    await start_run(page)
    await expect(page.get_by_role("button", name="First, completed").first).to_be_visible()
    await expect(page.get_by_role("button", name="Second, running").first).to_be_visible()
    await expect(page.get_by_role("button", name="Last, pending").first).to_be_visible()
    await expect(page.get_by_role("application")).to_contain_text("The second")
    assert await page.evaluate(ENDLESS_ANIMATIONS) == 0, "this page prefers reduced motion"
    await page.emulate_media(reduced_motion="no-preference")
    assert await page.evaluate(ENDLESS_ANIMATIONS) > 0
    await page.emulate_media(reduced_motion="reduce")
    gate.set()
    await expect_completed(page)
    await expect(page.locator("[aria-live]")).to_have_text("The run is done.")
    assert len(model.prompts) == 3
    assert len(sockets) == 1, "a page has one connection"


async def test_reload_in_the_middle_shows_the_same_run(page: Page, model: ScriptedModel) -> None:
    gate = hold_second(model)
    await start_run(page)
    await expect(page.get_by_role("button", name="First, completed").first).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("button", name="First, completed").first).to_be_visible()
    await expect(page.get_by_role("button", name="Second, running").first).to_be_visible()
    gate.set()
    await expect_completed(page)


async def test_run_survives_a_crash_of_the_service_with_its_page_open(
    pages: Pages, service: WebService
) -> None:
    pages.errors.expect(LOST)
    gate = hold_second(service.model)
    page = await pages.open()
    execution_id = await start_run(page)
    await expect(page.get_by_role("button", name="First, completed").first).to_be_visible()
    await expect(page.get_by_role("application")).to_contain_text("The second")
    await service.stop(signal.SIGKILL)
    await expect(page.get_by_role("main").get_by_text("Reconnecting")).to_be_visible()
    await expect(page.get_by_role("button", name="First, completed").first).to_be_visible()
    gate.set()
    await service.start()
    await expect_completed(page)
    asked = [
        name
        for name in ("Do first", "Do second", "Do last")
        for prompt in service.model.prompts
        if name in prompt
    ]
    assert asked == ["Do first", "Do second", "Do second", "Do last"]
    assert (await stored_events(page, execution_id))[-1] == "execution.completed"


async def test_page_catches_up_after_its_connection_was_cut(
    pages: Pages, service: WebService
) -> None:
    pages.errors.expect(LOST)
    gate = hold_second(service.model)
    page = await pages.open()
    execution_id = await start_run(page)
    await expect(page.get_by_role("application")).to_contain_text("The second")
    service.proxy.cut()
    await expect(page.get_by_role("main").get_by_text("Reconnecting")).to_be_visible()
    gate.set()
    service.proxy.restore()
    await expect_completed(page)
    await page.get_by_role("radio", name="Log").check()
    results = (
        page.get_by_role("list", name="Log")
        .get_by_role("listitem")
        .filter(has=page.get_by_text("result", exact=True))
    )
    await expect(results).to_have_count(3)
    assert (await stored_events(page, execution_id)).count("node.completed") == 3


async def test_run_is_followed_without_websockets(pages: Pages, model: ScriptedModel) -> None:
    pages.errors.expect(LOST)
    gate = hold_second(model)
    # A page of its own: such a route stays.
    page = await pages.open(
        before_load=lambda opened: opened.route_web_socket(
            "**/ws/**", lambda socket: socket.close(code=1011)
        )
    )
    await start_run(page)
    await expect(page.get_by_role("application")).to_contain_text("The second")
    gate.set()
    await expect_completed(page)


async def test_step_has_an_address(pages: Pages, model: ScriptedModel) -> None:
    hold_second(model).set()
    page = await pages.open()
    execution_id = await start_run(page)
    await expect_completed(page)
    other = await pages.open(f"/runs/{execution_id}?step=second")
    panel = other.get_by_role("complementary")
    await expect(panel).to_contain_text("Second")
    await expect(panel).to_contain_text("The second thing is done.")
    await panel.get_by_role("tab", name="Prompt").click()
    await expect(panel).to_contain_text("Do second.")


async def test_question_is_answered_on_the_page(page: Page, model: ScriptedModel) -> None:
    model.replies = {
        "Answer with one word": "refund",
        "confirms the refund": "Your money comes in five days.",
    }
    graph: dict[str, Any] = json.loads(APPROVAL.read_text("utf-8"))
    execution_id = await execute_graph(page, graph)
    run = page.get_by_role("complementary", name="The run")
    await expect(run).to_contain_text("Check the reply waits for your answer.")
    await expect(page.get_by_role("button", name="Check the reply").first).to_be_in_viewport()
    await run.get_by_role("button", name="Answer").click()
    request = page.get_by_role("region", name="Waiting for you")
    await expect(request).to_contain_text("Send this reply?")
    await assert_accessible(page)
    await request.get_by_role("button", name="Send").click()
    await expect(run).to_be_focused()
    await expect(
        page.get_by_role("button", name="Check the reply, completed").first
    ).to_be_visible()
    events = await stored_events(page, execution_id)
    assert events[-1] == "execution.completed"


async def test_failed_step_is_run_again_from_the_page(page: Page, model: ScriptedModel) -> None:
    model.replies = {"Do second": ErrorReply(401, "invalid_request_error", "Incorrect API key")}
    execution_id = await start_run(page)
    await expect(page.get_by_role("button", name="Second, failed").first).to_be_visible()
    model.replies = {}
    model.prompts.clear()
    await page.get_by_role("button", name="Retry failed").click()
    await page.wait_for_url(lambda url: "/runs/" in url and execution_id not in url)
    await expect(page.get_by_role("button", name="Last, completed").first).to_be_visible()
    assert len(model.prompts) == 2, "what had completed does not run again"
    model.prompts.clear()
    retried = page.url
    gate = hold_second(model)
    await page.get_by_role("button", name="Run again").click()
    await page.wait_for_url(lambda url: "/runs/" in url and url != retried)
    steps = page.get_by_role("list", name="Steps by time")
    # as long as it took in the run before
    await expect(
        steps.get_by_role("button", name=re.compile("Last, pending, about"))
    ).to_be_visible()
    gate.set()
    await expect(page.get_by_role("button", name="Last, completed").first).to_be_visible()
    assert len(model.prompts) == 3, "everything runs again"


async def test_run_is_cancelled_from_the_page(page: Page, model: ScriptedModel) -> None:
    hold_second(model)
    execution_id = await start_run(page)
    await expect(page.get_by_role("button", name="Second, running").first).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("button", name="Second, cancelled").first).to_be_visible()
    assert (await stored_events(page, execution_id))[-1] == "execution.cancelled"
    model.replies = {}
    await page.get_by_role("button", name="Run the rest").click()
    await page.wait_for_url(lambda url: "/runs/" in url and execution_id not in url)
    await expect(page.get_by_role("button", name="Last, completed").first).to_be_visible()


async def test_what_is_inside_a_step_unfolds_and_its_card_takes_an_answer(
    page: Page, model: ScriptedModel
) -> None:
    """A loop and a plan that is written during the run; the view fits all their waves."""
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=20, gates={12: gate})]
    execution_id = await execute_graph(page, NESTED)
    plan = page.get_by_role("list", name="Inside Make a plan")
    await expect(plan.get_by_text("Second")).to_be_visible()
    await expect(plan.get_by_text("Last")).to_have_count(0)
    gate.set()
    await expect(plan.get_by_role("button", name="Last, completed")).to_be_visible()
    await expect(page.get_by_role("button", name="Publish, pending").first).to_be_in_viewport()
    await page.get_by_role("button", name="2 rounds inside Each pot").click()
    rounds = page.get_by_role("list", name="Inside Each pot")
    await rounds.get_by_role("button", name="Round 1").first.click()
    await expect(rounds.get_by_role("button", name="Note, completed")).to_have_count(2)
    await rounds.get_by_role("button", name="Note, completed").first.click()
    await expect(page.get_by_role("complementary")).to_contain_text("A pot of clay")
    again = page.get_by_role("button", name="Run from here")
    await expect(again).to_have_attribute("aria-disabled", "true")
    await expect(again).to_have_accessible_description(re.compile("inside Each pot"))
    await assert_accessible(page)
    card_action = page.get_by_role("button", name="Approve", exact=True)
    await page.get_by_role("button", name="Zoom out").click()  # too far for buttons of 24 px
    await expect(page.get_by_text("Open it to answer")).to_be_visible()
    await expect(card_action).to_have_count(0)
    await page.get_by_role("button", name="Zoom in").click()
    await card_action.click()
    await expect(page.get_by_role("button", name="Publish, completed").first).to_be_visible()
    assert (await stored_events(page, execution_id))[-1] == "execution.completed"


async def test_unknown_run_says_so(pages: Pages) -> None:
    pages.errors.expect("status of 404|WebSocket")
    page = await pages.open("/runs/01a209f5-e0a2-7000-9139-4a1cb34422c8")
    await expect(page.get_by_role("main")).to_contain_text("01a209f5-e0a2-7000-9139-4a1cb34422c8")
    await assert_accessible(page)


@every_width
async def test_run_is_usable_while_it_runs_and_afterwards(
    page: Page, model: ScriptedModel, width: str
) -> None:
    gate = hold_second(model)
    await start_run(page)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Two steps and a last one")
    await expect(page.get_by_role("tab", name="Result")).to_be_visible()
    await assert_screen_is_usable(page, "run-live", width)
    gate.set()
    result = page.get_by_role("tabpanel", name="Result")
    await expect(result.get_by_role("strong")).to_have_text("done")
    await assert_screen_is_usable(page, "run-done", width)
