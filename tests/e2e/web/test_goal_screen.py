"""From a goal to a plan in the browser: written step by step, repaired, refused, run."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
)
from tests.support.browser.chromium import Pages
from tests.support.browser.scripted_model import DEFAULT_PLAN, Gate, ScriptedModel
from tests.support.browser.steps import GOAL, enter_goal
from tests.support.browser.web_service import WebService
from tests.support.llm.fake_llm_server import ErrorReply, TextReply
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node

MARKET = {
    "question": "Which <b>market</b> is meant, and " + "how wide " * 12 + "is it?",
    "assumed": "<i>Germany</i>",
    "options": [
        "<i>Germany</i>",
        "Austria",
        "a region with a long name of which much is to be said " * 3,
    ],
}
READER = {"question": "Who reads it?", "assumed": "the board"}


def with_questions(plan: str) -> str:
    """Return the reply with a plan that also asks."""
    return json.dumps({"questions": [MARKET, READER], **json.loads(plan)})


CYCLE = planner_reply(
    reply_node("first"),
    reply_node("second"),
    edges=[reply_edge("first", "second"), reply_edge("second", "first")],
    title="Round and round",
)


@pytest.mark.slow
async def test_writing_survives_a_refusal_and_errors_which_are_repaired(
    pages: Pages, model: ScriptedModel
) -> None:
    pages.errors.expect("status of 502")
    page = await pages.open()
    model.plans = [ErrorReply(401, "invalid_request_error", "Incorrect API key provided")]
    await enter_goal(page)
    await expect(page.get_by_role("alert")).to_contain_text("refused the credentials")
    await expect(page.get_by_role("alert")).to_contain_text("Check the API key")
    await expect(page.get_by_role("heading", level=1)).to_have_text(GOAL)
    gate = Gate()
    model.plans = [CYCLE, TextReply(DEFAULT_PLAN, hold_until=gate)]
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("Repairing the plan")).to_be_visible()
    await expect(page.get_by_text("nodes wait for each other")).to_be_visible()
    gate.set()
    await page.wait_for_url("**/?plan=*")
    await expect(page.get_by_text("Written", exact=True)).to_be_visible()


async def test_stopped_writing_leaves_no_plan(
    page: Page, service: WebService, model: ScriptedModel
) -> None:
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=10, gates={5: gate})]
    await enter_goal(page, "A goal that is stopped")
    await page.get_by_role("button", name="Stop writing").click()
    await expect(page.get_by_role("textbox", name="Goal")).to_have_value("A goal that is stopped")
    gate.set()
    answer = await page.request.get(f"{service.url}/api/plans?q=goal+that+is+stopped")
    assert (await answer.json())["plans"] == []


async def test_plan_that_cannot_run_says_why_and_is_mended_by_hand(
    page: Page, model: ScriptedModel
) -> None:
    model.plans = [CYCLE]
    await enter_goal(page)
    await expect(page.get_by_text("Not a plan that can run")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_have_text(GOAL)
    await page.get_by_role("button", name="Edit by hand").click()
    await page.wait_for_url("**/flows/*/edit")
    problems = page.get_by_role("region", name="Problems")
    await expect(problems).to_contain_text("wait for each other")
    await expect(page.locator("button[data-step]")).to_have_count(2)
    bar = page.locator("summary").filter(has_text="Goal")
    await expect(bar).to_contain_text(GOAL)
    await page.get_by_role("link", name="New").first.click()
    await expect(page.get_by_role("textbox", name="Goal")).to_be_visible()


async def test_writing_is_left_for_the_editor_with_what_there_is(
    page: Page, model: ScriptedModel
) -> None:
    gate = Gate()
    plan = planner_reply(reply_node("first"), reply_node("second"), title="Left early")
    model.plans = [TextReply(plan, chunks=10, gates={8: gate})]
    await enter_goal(page, "A goal that is edited early")
    await page.get_by_role("button", name="Edit by hand").click()
    await page.wait_for_url("**/flows/*/edit")
    gate.set()
    steps = page.locator("button[data-step]")
    await expect(steps.first).to_be_visible()
    assert await steps.count() == 1, "what is not written yet is not there"
    await expect(page.get_by_text("A goal that is edited early").first).to_be_visible()


async def test_what_a_goal_leaves_open_is_asked_before_the_plan_is_shown(
    page: Page, service: WebService, model: ScriptedModel
) -> None:
    model.plans = [with_questions(DEFAULT_PLAN), with_questions(DEFAULT_PLAN)]
    await enter_goal(page, "A goal that leaves something open")
    form = page.get_by_role("form", name="What the goal leaves open")
    market = form.get_by_role("textbox", name=MARKET["question"])
    await expect(market).to_have_value("<i>Germany</i>")
    run = page.get_by_role("button", name="Run", exact=True)
    await expect(run).to_have_count(0)
    await form.get_by_role("button", name="Austria").click()
    await expect(market).to_have_value("Austria")
    async with page.expect_response(lambda response: response.request.method == "DELETE"):
        await page.get_by_role("button", name="Plan with these answers").click()
    await expect(page.get_by_text("your answer")).to_have_count(2)
    await expect(run).to_be_enabled()
    answer = await page.request.get(f"{service.url}/api/plans?q=leaves+something+open")
    (newest,) = (await answer.json())["plans"]  # nobody has seen the first one, so it is gone
    plan = await (await page.request.get(f"{service.url}/api/plans/{newest['plan_id']}")).json()
    assert [each["answer"] for each in plan["questions"]] == ["Austria", "the board"]
    assert not any(each["assumed"] for each in plan["questions"])


@every_width
async def test_questions_are_usable(page: Page, model: ScriptedModel, width: str) -> None:
    """The form with what a goal leaves open, and the answers above the plan."""
    model.plans = [with_questions(DEFAULT_PLAN)]
    await enter_goal(page)
    take = page.get_by_role("button", name="Take these answers")
    await expect(take).to_be_visible()
    await assert_screen_is_usable(page, "goal-questions", width)
    await take.click()
    await expect(page.get_by_text("assumed", exact=True)).to_have_count(2)
    await expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    await assert_screen_is_usable(page, "goal-answers", width)
    await page.get_by_role("button", name="Change an answer").click()
    await expect(take).to_be_visible()


@every_width
async def test_screens_are_usable(page: Page, model: ScriptedModel, width: str) -> None:
    """A model is chosen, an example becomes the goal, and its plan, while and after it is written."""
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=20, gates={15: gate})]
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await page.get_by_role("button", name="Model: ").click()
    await expect(page.get_by_text("ANTHROPIC_API_KEY is not set")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="gpt-4o-mini").click()
    await assert_screen_is_usable(page, "goal", width)
    await page.get_by_role("button", name="Draft release notes").click()
    await page.get_by_role("button", name="Make a plan").click()
    await expect(page.get_by_text("Do second.")).to_be_visible()
    run = page.get_by_role("button", name="Run", exact=True)
    await expect(run).to_be_disabled()
    await assert_screen_is_usable(page, "goal-writing", width)
    gate.set()
    await expect(page.get_by_text("Written", exact=True)).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Draft release notes")
    await expect(page.get_by_text("gpt-4o-mini")).to_be_visible()
    await expect(run).to_be_enabled()
    await assert_screen_is_usable(page, "goal-written", width)
