"""From a goal to a plan in the browser: written step by step, repaired, refused, run."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
)
from tests.support.browser.chromium import (
    Pages,
)
from tests.support.browser.scripted_model import DEFAULT_PLAN, Gate, ScriptedModel
from tests.support.browser.steps import GOAL, enter_goal, make_plan, start_run
from tests.support.browser.web_service import WebService
from tests.support.llm.fake_llm_server import ErrorReply, TextReply
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node

CYCLE = planner_reply(
    reply_node("first"),
    reply_node("second"),
    edges=[reply_edge("first", "second"), reply_edge("second", "first")],
)


async def test_steps_appear_while_model_writes_them(page: Page, model: ScriptedModel) -> None:
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=20, gates={12: gate})]
    await enter_goal(page)
    plan = page.get_by_role("region", name="The plan")
    await expect(plan.get_by_text("Writing the plan")).to_be_visible()
    await expect(plan.get_by_role("listitem")).to_have_count(2)
    await expect(plan.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    gate.set()
    await expect(plan.get_by_text("Written", exact=True)).to_be_visible()
    await expect(plan.get_by_role("listitem")).to_have_count(3)
    last = plan.get_by_role("region", name="Wave 2").get_by_role("listitem")
    await expect(last).to_contain_text("Do last.")


async def test_written_plan_has_an_address_of_its_own(pages: Pages) -> None:
    page = await pages.open()
    await make_plan(page)
    other = await pages.open(page.url.removeprefix(page.url.split("/?")[0]))
    await expect(other.get_by_role("heading", level=1)).to_have_text(GOAL)
    await expect(
        other.get_by_role("region", name="The plan").get_by_role("listitem")
    ).to_have_count(3)


async def test_plan_may_run_as_soon_as_it_is_written(page: Page, model: ScriptedModel) -> None:
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=10, gates={5: gate})]
    await enter_goal(page)
    await page.get_by_role("switch", name="Run when it is written").check()
    gate.set()
    await page.wait_for_url("**/runs/*")


async def test_plan_with_errors_is_repaired_before_the_eyes_of_its_reader(
    page: Page, model: ScriptedModel
) -> None:
    gate = Gate()
    model.plans = [CYCLE, TextReply(DEFAULT_PLAN, hold_until=gate)]
    await enter_goal(page)
    await expect(page.get_by_text("Repairing the plan")).to_be_visible()
    await expect(page.get_by_text("nodes wait for each other")).to_be_visible()
    gate.set()
    await page.wait_for_url("**/?plan=*")
    await expect(page.get_by_text("Written", exact=True)).to_be_visible()


async def test_plan_that_cannot_run_says_why_and_goal_stays(
    page: Page, model: ScriptedModel
) -> None:
    model.plans = [CYCLE]
    await enter_goal(page)
    await expect(page.get_by_text("Not a plan that can run")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_have_text(GOAL)
    model.plans = [DEFAULT_PLAN]
    await page.get_by_role("button", name="Try again").click()
    await page.wait_for_url("**/?plan=*")


async def test_refusal_of_provider_is_shown_with_a_way_out(
    pages: Pages, model: ScriptedModel
) -> None:
    pages.errors.expect("status of 502")
    page = await pages.open()
    model.plans = [ErrorReply(401, "invalid_request_error", "Incorrect API key provided")]
    await enter_goal(page)
    await expect(page.get_by_role("button", name="Try again")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("refused the credentials")
    await expect(page.get_by_role("alert")).to_contain_text("Check the API key")


async def test_plan_waits_for_approval_before_its_first_step(
    page: Page, service: WebService, model: ScriptedModel
) -> None:
    await page.get_by_role("switch", name="Approve first").check()
    execution_id = await start_run(page)
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    answer = await page.request.get(f"{service.url}/api/executions/{execution_id}/requests")
    (request,) = (await answer.json())["requests"]
    assert request["request"]["kind"] == "plan-approval"
    assert model.prompts == []


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


async def test_writing_goes_on_while_another_page_is_shown(
    page: Page, model: ScriptedModel
) -> None:
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=10, gates={5: gate})]
    await enter_goal(page)
    await expect(page.get_by_text("Writing the plan", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Settings").click()
    await expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    gate.set()
    await page.get_by_role("button", name="Show it").click()
    await expect(page.get_by_text("Written", exact=True)).to_be_visible()


async def test_model_is_chosen_and_example_fills_the_prompt(page: Page) -> None:
    await page.get_by_role("button", name="Model: ").click()
    await expect(page.get_by_text("ANTHROPIC_API_KEY is not set")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="gpt-4o-mini").click()
    await page.get_by_role("button", name="Draft release notes").click()
    await page.get_by_role("button", name="Make a plan").click()
    await page.wait_for_url("**/?plan=*")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Draft release notes")
    await expect(page.get_by_text("gpt-4o-mini")).to_be_visible()


@every_width
async def test_screens_are_usable(page: Page, model: ScriptedModel, width: str) -> None:
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=20, gates={12: gate})]
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await expect(page.get_by_role("button", name="Model: ")).to_be_visible()
    await assert_screen_is_usable(page, "goal", width)
    await enter_goal(page)
    await expect(page.get_by_text("Do second.")).to_be_visible()
    await assert_screen_is_usable(page, "goal-writing", width)
    gate.set()
    await expect(page.get_by_text("Written", exact=True)).to_be_visible()
    await assert_screen_is_usable(page, "goal-written", width)
