"""A run in the browser: live, over breaks of the connection and of the service, and afterwards."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest
from playwright.async_api import Locator, Page, WebSocket, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_fits_everywhere,
    assert_screen_is_usable,
    every_width,
    resize,
)
from tests.support.browser.chromium import PHONE, Pages, take_screenshot
from tests.support.browser.nasty_text import LONG_WORD
from tests.support.browser.scripted_model import DEFAULT_PLAN, Gate, ScriptedModel
from tests.support.browser.steps import execute_graph, start_run, stored_events
from tests.support.browser.web_service import WebService
from tests.support.llm.fake_llm_server import ErrorReply, TextReply

ENDLESS_ANIMATIONS = """
() => document.getAnimations()
    .map((animation) => animation.effect.getComputedTiming())
    .filter(({ iterations, duration }) => iterations === Infinity && duration > 0).length
"""
MOVED = """
() => document.getAnimations()
    .filter(({ effect }) => effect.getComputedTiming().iterations === Infinity)
    .flatMap(({ effect }) => effect.getKeyframes().flatMap((keyframe) => Object.keys(keyframe)
        .filter((key) => !["offset", "computedOffset", "easing", "composite"].includes(key))
        .map((key) => effect.target.ownerSVGElement ? `${key} of a part of a picture` : key)))
"""
"""The properties that change as long as a step runs."""
CHEAP = {"transform", "opacity"}
"""Those that the browser changes without laying out or painting anything in each frame."""
ON_AN_EDGE = {f"{key} of a part of a picture" for key in ("offsetDistance", "opacity")}
"""Those of the value on its way; a canvas of many steps shows none."""
LOST = "net::ERR_|WebSocket connection"
"""Errors on the console of a page that loses its service."""

ORDER = 3544790567247868102

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


async def expect_second_running(page: Page) -> None:
    """Expect the run of ``hold_second`` in the middle, with what the second step has said so far."""
    await expect(page.get_by_role("button", name="First, completed").first).to_be_visible()
    await expect(page.get_by_role("button", name="Second, running").first).to_be_visible()
    await expect(page.get_by_role("button", name="Last, pending").first).to_be_visible()
    await expect(page.get_by_role("main")).to_contain_text("The second")


@every_width
async def test_run_is_followed_over_a_reload_to_its_result(
    empty_page: Page, model: ScriptedModel, width: str
) -> None:
    page = empty_page
    gate = hold_second(model)
    sockets: list[WebSocket] = []
    page.on("websocket", lambda opened: sockets.append(opened))
    execution_id = await start_run(page)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Two steps and a last one")
    await expect_second_running(page)
    own = [socket for socket in sockets if execution_id in socket.url]
    assert len(own) == 1, "a page has one connection"
    assert await page.evaluate(ENDLESS_ANIMATIONS) == 0, "this page prefers reduced motion"
    await page.emulate_media(reduced_motion="no-preference")
    assert await page.evaluate(ENDLESS_ANIMATIONS) > 0
    assert set(await page.evaluate(MOVED)) - ON_AN_EDGE == CHEAP
    await page.emulate_media(reduced_motion="reduce")
    await assert_screen_is_usable(page, "run-live", width)
    await page.reload()
    await expect_second_running(page)
    gate.set()
    await expect_completed(page)
    await expect(page.locator("[aria-live]")).to_have_text("The run is done.")
    await expect(page.get_by_role("strong")).to_have_text("done")
    assert len(model.prompts) == 3
    await assert_screen_is_usable(page, "run-done", width)
    await page.goto(f"/runs/{execution_id}?step=second")
    panel = page.get_by_role("complementary")
    await expect(panel).to_contain_text("The second thing is done.")
    await panel.get_by_role("tab", name="Prompt").click()
    await expect(panel).to_contain_text("Do second.")


async def test_run_survives_a_crash_of_the_service_with_its_page_open(
    pages: Pages, service: WebService
) -> None:
    pages.errors.expect(LOST)
    gate = hold_second(service.model)
    page = await pages.open(None)
    execution_id = await start_run(page)
    await expect(page.get_by_role("button", name="First, completed").first).to_be_visible()
    await expect(page.get_by_role("application")).to_contain_text("The second")
    await service.stop(signal.SIGKILL)
    await expect(page.get_by_role("main").get_by_text("Reconnecting")).to_be_visible()
    await expect(page.get_by_role("banner").get_by_text("Live")).to_have_count(0, timeout=6_000)
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
    page = await pages.open(None)
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


@pytest.mark.slow
async def test_run_is_followed_without_websockets(pages: Pages, model: ScriptedModel) -> None:
    pages.errors.expect(LOST)
    gate = hold_second(model)
    # A page of its own: such a route stays.
    page = await pages.open(
        None,
        before_load=lambda opened: opened.route_web_socket(
            "**/ws/**", lambda socket: socket.close(code=1011)
        ),
    )
    await start_run(page)
    await expect(page.get_by_role("application")).to_contain_text("The second")
    gate.set()
    await expect_completed(page)


async def test_what_a_stopped_step_had_written_stays_and_has_no_known_price(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    hold_second(model)
    await start_run(page)
    await expect_second_running(page)
    header = page.locator("header").filter(has=page.get_by_role("heading", level=1))
    await page.get_by_role("button", name="Pause").click()
    await expect(header).to_contain_text("Pausing, 1 step to end first")
    await page.get_by_role("button", name="Cancel").click()
    second = page.get_by_role("button", name="Second, cancelled").first
    await expect(second).to_be_visible()
    await page.get_by_role("tab", name="Cost").click()
    await second.click()
    panel = page.get_by_role("complementary", name="Step Second")
    written = panel.get_by_role("region", name="What it had written")
    await expect(written).to_contain_text("The second")
    await page.get_by_role("radio", name="Log").check()
    lines = page.get_by_role("list", name="Log").get_by_role("listitem")
    await page.get_by_role("searchbox", name="Words of the log").fill("SECOND started")
    await expect(lines).to_have_count(1)
    await expect(lines).to_have_text(re.compile("Second.*started.*agent$"))
    await page.get_by_role("searchbox", name="Words of the log").fill("nobody said this")
    await expect(page.get_by_text("No line has these words.")).to_be_visible()
    await page.get_by_role("searchbox", name="Words of the log").fill("second")
    await panel.get_by_role("button", name="Close").click()
    await resize(page, PHONE)
    await page.get_by_role("radio", name="Log").click()
    await expect(lines.first).to_be_visible()
    await assert_fits_everywhere(page)


async def test_a_result_says_its_tokens_as_everything_does_and_is_at_hand_on_a_phone(
    empty_page: Page, model: ScriptedModel
) -> None:
    """Of a step with a name that has no end, which gave JSON."""
    page = empty_page
    model.replies = {"Count.": '{"found": [1, 2], "in": "Lisbon"}'}
    node = {"id": "a", "type": "agent", "name": LONG_WORD, "description": "Count.", "data": {}}
    await execute_graph(page, {"title": "Counted", "nodes": [node], "edges": []})
    result = page.get_by_role("tabpanel", name="Result")
    await expect(result.locator(".hljs-attr")).to_have_text(['"found"', '"in"'])
    assert await result.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
    header = page.locator("header").filter(has=page.get_by_role("heading", level=1))
    tokens = re.compile(r"\b[\d,]+ tokens")
    card = page.locator(".react-flow__node")
    shown = [await place.inner_text() for place in (result, header, card)]
    await page.get_by_role("tab", name="Cost").click()
    shown.append(await page.get_by_role("list", name="Cost by step").inner_text())
    found = [tokens.findall(text)[:1] for text in shown]
    assert found == [found[0]] * 4
    await page.get_by_role("tab", name="Result").click()
    await resize(page, PHONE)
    await page.get_by_role("radio", name="Result").click()
    await expect(result.locator(".hljs-attr").first).to_be_in_viewport(ratio=1)


async def test_a_step_for_which_the_budget_has_no_room_yet_asks_nobody(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    gate = Gate()
    held = TextReply("Done.", chunks=2, gates={1: gate})
    model.replies = {"Do a.": held, "Do b.": held}
    nodes = [
        {"id": each, "type": "agent", "name": f"Step {each}", "description": f"Do {each}."}
        for each in "ab"
    ]
    graph = {"title": "Little room", "nodes": nodes, "edges": []}
    body = {"graph": graph, "start": True, "options": {"budget": {"tokens": 6_000}}}
    made = await page.request.post("/api/execute", data=body)
    await page.goto(f"/runs/{(await made.json())['execution_id']}")
    words = "Waits until the budget has room, and goes on by itself."
    waiting = page.locator(".react-flow__node").filter(has_text=words)
    await expect(waiting).to_have_count(1)
    await waiting.get_by_role("button").first.click()
    await expect(page.get_by_role("complementary")).to_contain_text(words)
    await expect(page.get_by_text("for an answer")).to_have_count(0)
    gate.set()
    await expect(page.get_by_role("button", name="Run again")).to_be_visible()


@pytest.mark.slow
async def test_run_is_retried_repeated_cancelled_and_finished(
    empty_page: Page, model: ScriptedModel
) -> None:
    page = empty_page
    model.replies = {"Do second": ErrorReply(401, "invalid_request_error", "Incorrect API key")}
    failed = await start_run(page)
    await expect(page.get_by_role("button", name="Second, failed").first).to_be_visible()
    result = page.get_by_role("tabpanel", name="Result")
    await expect(result).to_contain_text("refused the credentials")
    await expect(result).to_contain_text(re.compile("step second.*provider-auth"))
    await expect(result.get_by_role("button", name="Copy error")).to_be_visible()
    model.replies = {}
    model.prompts.clear()
    await page.get_by_role("button", name="Retry failed").click()
    retried = await next_run(page, failed)
    await expect(page.get_by_role("button", name="Last, completed").first).to_be_visible()
    assert len(model.prompts) == 2, "what had completed does not run again"

    hold_second(model)
    await page.get_by_role("button", name="Run again").click()
    repeated = await next_run(page, retried)
    await expect(page.get_by_role("button", name="Second, running").first).to_be_visible()
    steps = page.get_by_role("list", name="Steps by time")
    # as long as it took in the run before
    await expect(
        steps.get_by_role("button", name=re.compile("Last, pending, about"))
    ).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("button", name="Second, cancelled").first).to_be_visible()
    assert (await stored_events(page, repeated))[-1] == "execution.cancelled"
    await page.get_by_role("button", name="Second, cancelled").first.click()
    await page.reload()  # what it had written is stored, not only known to the page
    written = page.get_by_role("region", name="What it had written")
    await expect(written).to_contain_text("cancelled while writing")
    await expect(written).to_contain_text("The second")
    await expect(written).to_contain_text("What that cost is not known.")
    await take_screenshot(page, "run-cut-off")
    model.replies = {}
    await page.get_by_role("button", name="Run the rest").click()
    await next_run(page, repeated)
    await expect(page.get_by_role("button", name="Last, completed").first).to_be_visible()


async def next_run(page: Page, execution_id: str) -> str:
    """Wait for the page of the run that follows a run; return its execution's id."""
    await page.wait_for_url(lambda url: "/runs/" in url and execution_id not in url)
    return page.url.partition("/runs/")[2].partition("?")[0]


@pytest.mark.slow
async def test_what_is_inside_a_step_unfolds_and_its_card_takes_an_answer(
    empty_page: Page, model: ScriptedModel
) -> None:
    """A loop and a plan that is written during the run; the view fits all their waves."""
    page = empty_page
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=20, gates={15: gate})]
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


@pytest.mark.slow
async def test_answers_stay_in_view_below_a_long_question(empty_page: Page) -> None:
    page = empty_page
    text = "\n\n".join(f"Paragraph {number} of a long text." for number in range(40))
    graph = {
        "nodes": [
            {"id": "draft", "type": "text", "data": {"text": text}},
            {"id": "ask", "type": "approval", "name": "Ask", "data": {"prompt": "Send this?"}},
        ],
        "edges": [{"source": "draft", "target": "ask", "data": {"channel": "flow"}}],
    }
    await execute_graph(page, graph)
    await page.get_by_role("button", name="Ask, waiting").first.click()
    request = page.get_by_role("region", name="Waiting for you")
    await expect(request.get_by_text("Paragraph 0 of")).to_be_in_viewport()
    await expect(request.get_by_role("button", name="Approve")).to_be_in_viewport(ratio=1)
    await request.get_by_label("Note").focus()
    await expect(request.get_by_label("Note")).to_be_in_viewport(ratio=1)
    await expect(request.get_by_text("Kept with the answer.")).to_be_in_viewport()
    await assert_accessible(page)


async def test_an_edit_of_one_field_changes_no_number_wherever_it_is_approved(
    pages: Pages,
) -> None:
    value = {"order": ORDER, "price": 1.0, "__typename": "2**10", "note": "before"}
    graph = {
        "nodes": [
            {"id": "j", "type": "json", "name": "Order", "data": {"value": value}},
            {"id": "ask", "type": "approval", "name": "Ask", "data": {"prompt": "Send it?"}},
            {"id": "end", "type": "end", "name": "End"},
        ],
        "edges": [
            {"source": "j", "target": "ask", "data": {"channel": "flow"}},
            {
                "source": "ask",
                "sourceHandle": "approve",
                "target": "end",
                "data": {"channel": "flow"},
            },
        ],
    }
    page = await pages.open()
    for button in (0, -1):  # on the card of the step, and beside the value
        execution_id = await execute_graph(page, graph)
        shown = page.get_by_role("main")
        await expect(shown.get_by_text(f'{{"order":{ORDER},"price":1.0,').first).to_be_visible()
        await expect(shown.get_by_text('"__typename":"2**10"').first).to_be_visible()
        await page.get_by_role("button", name=re.compile("^Answer")).first.click()
        await page.get_by_role("button", name="Edit first").first.click()
        area = page.get_by_role("textbox", name="What is passed on, edited")
        await area.fill((await area.input_value()).replace("before", "after"))
        await page.get_by_role("button", name=re.compile("^Approve")).nth(button).click()
        await stored_events(page, execution_id)
        answer = await page.request.get(f"/api/executions/{execution_id}/nodes/end")
        sent = (await answer.text()).replace(" ", "")
        assert f'"order":{ORDER},"price":1.0,"__typename":"2**10","note":"after"' in sent


# -- many rows --------------------------------------------------------------------------------------

ROUNDS = 200
LOOP: dict[str, Any] = {
    "nodes": [
        {"id": "items", "type": "start", "data": {"initialInput": list(range(ROUNDS))}},
        {
            "id": "each",
            "type": "loop",
            "name": "Each",
            "data": {
                "body": {
                    "nodes": [
                        {"id": step, "type": "text", "name": step.title(), "data": {"text": "x"}}
                        for step in ("one", "two", "three")
                    ],
                    "edges": [],
                },
                "maxItems": ROUNDS,
            },
        },
    ],
    "edges": [{"source": "items", "target": "each", "data": {"channel": "flow"}}],
}


async def test_thousands_of_rows_are_drawn_where_they_are_seen(pages: Pages) -> None:
    page = await pages.open(None)
    await stored_events(page, await execute_graph(page, LOOP))
    await page.reload()
    count = 3 * ROUNDS + 2
    panel = page.get_by_role("region", name="What ran when")
    await page.get_by_role("radio", name="Timeline").check()
    steps = panel.get_by_role("listitem")
    await expect(steps.first).to_have_attribute("aria-setsize", str(count))
    await expect_windowed_rows(page, steps, "aria-posinset", count)
    await page.get_by_role("radio", name="Table").check()
    table = panel.get_by_role("table", name="Steps")
    await expect(table).to_have_attribute("aria-rowcount", str(count + 1))
    await expect_windowed_rows(page, table.locator("tbody [data-row]"), "aria-rowindex", count + 1)
    await assert_accessible(page)


async def expect_windowed_rows(page: Page, rows: Locator, position: str, last: int) -> None:
    """Go down a long list by wheel and by key, and expect few rows, each with its place among all."""
    first = rows.first
    await expect(first).to_be_visible()
    assert await rows.count() < 150
    name = await first.get_by_role("button").last.text_content()
    await first.get_by_role("button").last.focus()
    await first.hover()
    await page.mouse.wheel(0, 100_000)
    await expect(rows.last).to_have_attribute(position, str(last))
    await expect(rows.last).to_be_in_viewport()
    assert await rows.count() < 150
    assert await page.evaluate("document.activeElement.textContent") == name, "the focus is lost"
    await rows.last.get_by_role("button").last.focus()
    for _ in range(3):
        await page.keyboard.press("Shift+Tab")
    focused = page.locator(f"[{position}]:has(:focus)")
    await expect(focused).to_have_attribute(position, str(last - 3))
    await expect(focused).to_be_in_viewport(ratio=1)
