"""The main job in the browser: from a goal to a result that is kept, opened and compared."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.support.browser.accessibility import assert_accessible
from tests.support.browser.plan_editor import PlanEditor
from tests.support.browser.scripted_model import DEFAULT_PLAN, Gate, ScriptedModel
from tests.support.browser.steps import enter_goal
from tests.support.llm.fake_llm_server import TextReply


async def test_goal_becomes_a_result_that_is_kept_and_compared(
    page: Page, model: ScriptedModel
) -> None:
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await write_plan(page, model)
    await page.get_by_role("link", name="Edit first").click()
    await page.wait_for_url("**/plans/*")
    await edit_plan(PlanEditor(page, page.url.rpartition("/")[2]))
    execution_id = await run_plan(page, model)
    result = page.get_by_role("tabpanel", name="Result")
    await expect(result).to_contain_text("Plant it in clay.")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Stored JSON").click()
    await expect(page.get_by_role("tabpanel", name="JSON")).to_contain_text(execution_id)
    await fork_with_result(page, "Plant it in stone.")
    await page.wait_for_url(lambda url: "/runs/" in url and execution_id not in url)
    await approve(page)
    await expect(result).to_contain_text("Plant it in stone.")
    await compare_in_history(page)
    output = page.get_by_role("region", name="Last, output")
    await expect(output.locator("ins")).to_have_text("stone.")


async def write_plan(page: Page, model: ScriptedModel) -> None:
    """Enter the goal and see its steps appear while they are written."""
    gate = Gate()
    model.plans = [TextReply(DEFAULT_PLAN, chunks=20, gates={15: gate})]
    await enter_goal(page, "Plant a rosemary")
    steps = page.get_by_role("region", name="The plan").get_by_role("listitem")
    await expect(steps).to_have_count(2)
    gate.set()
    await expect(steps).to_have_count(3)
    last = page.get_by_role("region", name="Wave 2").get_by_role("listitem")
    await expect(last).to_contain_text("Do last.")


async def edit_plan(editor: PlanEditor) -> None:
    """Change the task of a step, and add one that asks a person at the end."""
    first = await editor.select("First")
    await first.get_by_role("textbox", name="Task", exact=True).fill("Choose a pot.")
    await editor.page.keyboard.press("Escape")
    await editor.add_step("approval")
    panel = editor.panel
    await expect(panel).to_have_attribute("aria-label", "Settings of approval")
    await panel.get_by_role("textbox", name="Prompt").fill("Shall it be planted?")
    await panel.get_by_role("tab", name="Depends on").click()
    form = panel.get_by_role("region", name="Add a dependency")
    await form.get_by_label("Step", exact=True).select_option(label="Last")
    await form.get_by_role("button", name="Add dependency").click()
    await editor.saved()


async def run_plan(page: Page, model: ScriptedModel) -> str:
    """Run the plan of the editor, watch its waves and approve; return the execution's id."""
    gate = Gate()
    model.replies = {
        "Choose a pot": TextReply("A pot of clay.", chunks=4, gates={2: gate}),
        "Do last": "Plant it in **clay**.",
    }
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("button", name="Second, completed").first).to_be_visible()
    await expect(page.get_by_role("button", name="Last, pending").first).to_be_visible()
    await expect(page.get_by_text("wave 1 of 3")).to_be_visible()
    gate.set()
    await approve(page)
    return page.url.partition("/runs/")[2].partition("?")[0]


async def approve(page: Page) -> None:
    """Answer the step that waits; then the panel shows the run again."""
    await page.get_by_role("button", name="approval, waiting").first.click()
    request = page.get_by_role("region", name="Waiting for you")
    await assert_accessible(page)
    await request.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("button", name="approval, completed").first).to_be_visible()
    await expect(page.get_by_role("complementary", name="The run")).to_be_focused()


async def fork_with_result(page: Page, result: str) -> None:
    """Start a fork in which the last step before the approval has another result."""
    await page.get_by_role("button", name="Fork", exact=True).click()
    fork = page.get_by_role("dialog", name="Fork this run")
    await fork.get_by_label("Step").select_option(label="Last")
    await fork.get_by_role("radio", name="Give its result").check()
    await fork.get_by_role("textbox", name="Result").fill(result)
    await fork.get_by_role("button", name="Fork and run").click()


async def compare_in_history(page: Page) -> None:
    """Find both runs by their goal, tick them, and look at the step that differs."""
    await page.get_by_role("link", name="Runs").first.click()
    await page.get_by_role("searchbox", name="Words, name, tag or id").fill("rosemary")
    rows = page.get_by_role("table", name="Runs").locator("tbody tr")
    await expect(rows).to_have_count(2)
    for row in (rows.nth(1), rows.nth(0)):
        await row.get_by_role("checkbox").check()
    dock = page.get_by_role("region", name="Compare two runs")
    await dock.get_by_role("button", name="Last").click()
