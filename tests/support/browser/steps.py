"""Steps that several browser tests take."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page, expect

GOAL = "Do two things and a last one"


async def rendered(page: Page) -> None:
    """Wait until the page has been painted with all that was changed so far."""
    await page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


async def enter_goal(page: Page, goal: str = GOAL) -> None:
    """Type a goal and send it with the keyboard."""
    await page.get_by_role("textbox", name="Goal").fill(goal)
    await page.keyboard.press("Control+Enter")


async def make_plan(page: Page) -> None:
    """Enter a goal and wait until its plan is written."""
    await enter_goal(page)
    await page.wait_for_url("**/?plan=*")
    await expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


async def start_run(page: Page) -> str:
    """Make a plan and run it over HTTP, and open the page of the run; return the execution's id."""
    planned = await page.request.post("/api/plan", data={"prompt": GOAL})
    assert planned.ok, await planned.text()
    return await _execute(page, {"plan_id": (await planned.json())["plan_id"]})


async def execute_graph(
    page: Page, graph: dict[str, Any], options: dict[str, Any] | None = None
) -> str:
    """Run a graph over HTTP and open the page of its run; return the execution's id."""
    return await _execute(page, {"graph": graph, "options": options or {}})


async def _execute(page: Page, body: dict[str, Any]) -> str:
    answer = await page.request.post("/api/execute", data={**body, "start": True})
    assert answer.status in (200, 202), await answer.text()
    execution_id: str = (await answer.json())["execution_id"]
    await page.goto(f"/runs/{execution_id}")
    return execution_id


async def stored_events(page: Page, execution_id: str) -> list[str]:
    """Return the types of all events of an execution, in order; wait until it is over."""
    answer = await page.request.get(f"/api/executions/{execution_id}/events")
    lines = (await answer.text()).splitlines()
    return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
