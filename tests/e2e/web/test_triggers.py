"""Triggers in the browser: added, tried out, switched off and deleted; messages that nobody accepted."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from playwright.async_api import Page, expect

from tests.support.browser.accessibility import assert_screen_is_usable, every_width
from tests.support.browser.chromium import Pages

NIGHTLY: dict[str, Any] = {
    "nodes": [
        {"id": "night", "type": "schedule", "data": {"cron": "30 2 * * *"}},
        {"id": "report", "type": "text", "data": {"text": "Written at {{ input.slot }}"}},
    ],
    "edges": [{"source": "night", "target": "report", "data": {"channel": "flow"}}],
}
REFUSED = "https://127.0.0.1/hook"


async def posted(page: Page, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await page.request.post(path, data=body)
    assert answer.ok, await answer.text()
    return dict(await answer.json())


async def save_flow(page: Page) -> tuple[str, str]:
    """Save the nightly flow under a name of its own; return that, and its id."""
    name = f"Nightly {uuid4()}"
    saved = await posted(page, "/api/flows", {"name": name, "graph": NIGHTLY})
    return name, saved["plan_id"]


@pytest.mark.slow
async def test_trigger_is_added_tried_out_switched_off_and_deleted(page: Page) -> None:
    name, _ = await save_flow(page)
    await page.goto("/flows")
    await page.get_by_role("link", name="Triggers").click()
    await page.wait_for_url("**/triggers")
    await page.get_by_role("button", name="Listen for a flow").click()
    dialog = page.get_by_role("dialog", name="Listen for a flow")
    await dialog.get_by_label("Flow", exact=True).select_option(label=name)
    await dialog.get_by_role("button", name="Listen").click()
    card = page.get_by_role("list", name="Triggers").get_by_role("listitem").filter(has_text=name)
    times = card.get_by_role("definition")
    await expect(times).to_contain_text(":30")
    assert (await times.inner_text()).count("·") == 4, "the next five times"
    await card.get_by_role("button", name="Send a test delivery").click()
    fire = page.get_by_role("dialog", name="Send a test delivery")
    await fire.get_by_role("button", name="Start the run").click()
    await expect(fire.get_by_role("link", name="Show the run")).to_be_visible()
    await page.keyboard.press("Escape")
    await card.get_by_text("1 delivery").click()
    await expect(card.get_by_text("a test delivery")).to_be_visible()
    switch = card.get_by_role("switch")
    await switch.click()
    await expect(switch).not_to_be_checked()
    await card.get_by_role("link", name="Show the run").click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_role("tabpanel", name="Result")).to_contain_text("Written at")
    await page.go_back()
    await card.get_by_role("button", name="Delete the schedule").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete the trigger").click()
    await expect(card).to_have_count(0)


@every_width
async def test_triggers_are_usable(pages: Pages, width: str) -> None:
    page = await pages.open("/triggers")
    name, plan_id = await save_flow(page)
    made = await posted(page, "/api/triggers", {"plan_id": plan_id})
    await posted(page, f"/api/triggers/{made['trigger_id']}/fire", {})
    target = {"plan_id": plan_id, "url": REFUSED, "secrets": ["web"]}
    await posted(page, "/api/notification-targets", target)
    await posted(page, "/api/execute", {"flow": name, "start": True})
    await page.reload()
    dead = page.get_by_role("list", name="Messages that nobody accepted")
    letter = dead.get_by_role("listitem").filter(has_text=REFUSED).first
    await expect(letter).to_contain_text("127.0.0.1")
    card = page.get_by_role("list", name="Triggers").get_by_role("listitem").filter(has_text=name)
    await card.get_by_text("1 delivery").click()
    await assert_screen_is_usable(page, "triggers", width)
    async with page.expect_response("**/resend") as resent:
        await letter.get_by_role("button", name="again").click()
    assert (await resent.value).status == 202
