"""The inbox of approvals: requests of all runs, answered once, in time, with the keyboard too."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import FloatRect, Locator, Page, expect

from tests.support.browser.accessibility import assert_screen_is_usable, every_width, resize
from tests.support.browser.chromium import PHONE, Pages, take_screenshot
from tests.support.browser.steps import stored_events

FORM = {
    "type": "object",
    "required": ["audience"],
    "properties": {"audience": {"enum": ["The team", "Everybody"]}},
}


async def ask(page: Page, name: str, **data: Any) -> str:
    """Start a run that asks whether a text may be sent; return its id once it waits."""
    graph = {
        "nodes": [
            {"id": "draft", "type": "text", "data": {"text": "# Dear all\n\nWater is wet."}},
            {
                "id": "check",
                "type": "approval",
                "name": name,
                "data": {"prompt": "Send **this**?", **data},
            },
            {"id": "sent", "type": "text", "name": "Send", "data": {"text": "Sent: {{ input }}"}},
        ],
        "edges": [
            {"source": "draft", "target": "check", "data": {"channel": "flow"}},
            {
                "source": "check",
                "sourceHandle": "approve",
                "target": "sent",
                "data": {"channel": "flow"},
            },
        ],
    }
    answer = await page.request.post("/api/execute", data={"graph": graph, "start": True})
    assert answer.ok, await answer.text()
    return str((await answer.json())["execution_id"])


async def open_request(page: Page, name: str) -> Locator:
    """Choose a request of the list; return its panel."""
    await page.get_by_role("navigation", name="Requests").get_by_role("link", name=name).click()
    detail = page.get_by_role("region", name="Request")
    await expect(detail.get_by_role("heading", name=name)).to_be_visible()
    return detail


async def results(page: Page, execution_id: str) -> dict[str, Any]:
    """Return the results of a run once it is over."""
    await stored_events(page, execution_id)
    answer = await page.request.get(f"/api/executions/{execution_id}/result")
    return dict((await answer.json())["node_results"])


async def test_second_answer_shows_the_first_one(pages: Pages) -> None:
    pages.errors.expect("409")
    one = await pages.open(None)
    execution_id = await ask(one, "Two answer")
    await one.goto("/approvals")
    two = await pages.open("/approvals")
    first = await open_request(one, "Two answer")
    second = await open_request(two, "Two answer")
    # The second page does not learn of the answer before its own.
    open_requests = await (await two.request.get("/api/requests")).json()
    await two.route("**/api/requests*", lambda route: route.fulfill(json=open_requests))
    await first.get_by_label("Note").fill("numbers first")
    await first.get_by_role("button", name="Reject").click()
    await expect(one.get_by_role("link", name="Two answer")).to_have_count(0)
    await second.get_by_role("button", name="Approve").click()
    await expect(second.get_by_role("alert")).to_contain_text(
        "Somebody was faster: “Reject” was given"
    )
    await expect(second.get_by_role("alert")).to_contain_text("numbers first")
    await expect(second.get_by_role("button", name="Approve")).to_have_count(0)
    await second.get_by_role("link", name="Open the run").click()
    await two.wait_for_url(f"**/runs/{execution_id}")


async def test_a_missing_field_is_told_at_it_and_what_is_said_of_an_answer_covers_no_button(
    pages: Pages,
) -> None:
    pages.errors.expect("422")
    page = await pages.open(None)
    for name in ("Form first", "After it"):
        await ask(page, name, form=FORM)
    await page.goto("/approvals")
    detail = await open_request(page, "Form first")
    audience = detail.get_by_label("Audience")
    await expect(detail.get_by_text("required", exact=True)).to_be_visible()
    await detail.get_by_role("button", name="Approve").click()
    await expect(audience).to_have_attribute("aria-invalid", "true")
    await expect(audience).to_have_accessible_description("This is needed.")
    await audience.select_option("The team")
    await detail.get_by_role("button", name="Approve").click()
    toast = page.get_by_role("listitem").filter(has_text="Approved: Form first")
    await expect(toast).to_be_visible()
    await toast.hover()  # it stays as long as the pointer is on it
    await open_with_keys(page, "After it")
    for size in ((1440, 900), (1024, 768), (768, 1024), PHONE):
        await resize(page, size)
        await expect(toast).to_be_visible()
        covering = await box_of(toast)
        for name in ("Approve", "Reject"):
            button = await box_of(detail.get_by_role("button", name=name))
            assert not overlap(covering, button), f"{name} is covered at {size}"


async def open_with_keys(page: Page, name: str) -> None:
    row = page.get_by_role("navigation", name="Requests").get_by_role("link", name=name)
    await row.focus()
    await page.keyboard.press("Enter")
    heading = page.get_by_role("region", name="Request").get_by_role("heading", name=name)
    await expect(heading).to_be_visible()


async def box_of(element: Locator) -> FloatRect:
    box = await element.bounding_box()
    assert box is not None
    return box


def overlap(a: FloatRect, b: FloatRect) -> bool:
    return (
        a["x"] < b["x"] + b["width"]
        and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"]
        and b["y"] < a["y"] + a["height"]
    )


@pytest.mark.slow
async def test_edited_text_and_form_go_on(pages: Pages) -> None:
    pages.errors.expect("422")
    page = await pages.open(None)
    execution_id = await ask(page, "Edit it", form=FORM)
    await page.goto("/approvals")
    badge = page.get_by_role("banner").get_by_role("link", name="Approvals")
    await expect(badge).to_contain_text("waiting for you")
    detail = await open_request(page, "Edit it")
    await expect(detail.get_by_role("heading", name="Dear all")).to_be_visible()
    await expect(detail.get_by_role("complementary")).to_contain_text("Send comes next.")
    await detail.get_by_role("button", name="Edit first").click()
    await detail.get_by_label("What is passed on, edited").fill("Dear team")
    await detail.get_by_role("button", name="Approve").click()
    await expect(detail.get_by_role("alert")).to_contain_text("audience")
    await detail.get_by_label("Audience").select_option("The team")
    await detail.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("link", name="Edit it")).to_have_count(0)
    assert (await results(page, execution_id))["sent"] == "Sent: Dear team"
    await page.get_by_role("radio", name="Answered").click()
    await page.wait_for_url("**/approvals?tab=answered")
    answered = await open_request(page, "Edit it")
    await expect(answered.get_by_role("region", name="What was answered")).to_have_text(
        "What was answeredDear team"
    )
    await expect(answered.get_by_role("complementary")).to_contain_text("AudienceThe team")
    await page.reload()
    await expect(answered.get_by_role("complementary")).to_contain_text("DecisionApprove")


@pytest.mark.slow
async def test_request_of_another_page_disappears_by_itself(pages: Pages) -> None:
    one = await pages.open(None)
    execution_id = await ask(one, "Gone soon")
    await one.goto("/approvals")
    two = await pages.open("/approvals")
    first, second = await open_request(one, "Gone soon"), await open_request(two, "Gone soon")
    await first.get_by_role("button", name="Approve").click()
    await expect(second.get_by_role("alert")).to_contain_text("“Approve” was given")
    await expect(two.get_by_role("link", name="Gone soon")).to_have_count(0)
    await expect(one.get_by_text("Approved: Gone soon").first).to_be_visible()
    await one.get_by_role("button", name="Open the run").click()
    await one.wait_for_url(f"**/runs/{execution_id}")


@pytest.mark.slow
async def test_time_runs_and_then_decides(empty_page: Page) -> None:
    page = empty_page
    execution_id = await ask(page, "In time", timeoutS=6, timeoutAction="approve")
    await page.goto("/approvals")
    detail = await open_request(page, "In time")
    limit = detail.get_by_role("region", name="Time limit")
    await expect(limit).to_contain_text("0:0")
    await expect(limit).to_contain_text("it counts as “Approve”")
    await expect(detail.get_by_role("alert")).to_contain_text(
        "The time was over: “Approve” was taken"
    )
    assert "sent" in await results(page, execution_id)


@pytest.mark.slow
async def test_plan_is_approved_before_its_first_step(empty_page: Page) -> None:
    page = empty_page
    graph = {"nodes": [{"id": "a", "type": "text", "name": "Say", "data": {"text": "x"}}]}
    body = {"graph": graph | {"edges": []}, "require_approval": True, "start": True}
    answer = await page.request.post("/api/execute", data=body)
    execution_id = (await answer.json())["execution_id"]
    await page.goto("/approvals")
    inbox = page.get_by_role("navigation", name="Requests")
    await inbox.locator(f"a[href*='{execution_id}']").click()
    detail = page.get_by_role("region", name="Request")
    await expect(detail.get_by_role("heading", name="Approve the plan")).to_be_visible()
    await expect(detail.get_by_role("region", name="Plan as waves")).to_contain_text("Say")
    await expect(detail.get_by_role("link", name="Edit")).to_be_visible()
    await take_screenshot(page, "approvals-plan")
    await detail.get_by_role("button", name="Approve").click()
    assert await results(page, execution_id) == {"a": "x"}


async def test_keyboard_alone_answers(empty_page: Page) -> None:
    page = empty_page
    execution_id = await ask(page, "Keys", timeoutS=90, timeoutAction="reject")  # the most urgent
    await page.goto("/settings")
    await expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("a")
    await page.wait_for_url("**/approvals")
    row = page.get_by_role("navigation", name="Requests").get_by_role("link", name="Keys")
    await expect(row).to_have_attribute("aria-current", "true")
    await page.keyboard.press("a")  # nothing has the focus that could be approved
    await page.keyboard.press("k")
    await expect(row).to_be_focused()
    await page.keyboard.press("Enter")
    detail = page.get_by_role("region", name="Request")
    await expect(detail).to_be_focused()
    await page.keyboard.press("a")
    await expect(row).to_have_count(0)
    assert "sent" in await results(page, execution_id)


@every_width
async def test_inbox_is_usable(empty_page: Page, width: str) -> None:
    page = empty_page
    await ask(page, "Look at it", form=FORM, timeoutS=3600, timeoutAction="reject")
    await page.goto("/approvals")
    await expect(page.get_by_role("link", name="Look at it").first).to_be_visible()
    await assert_screen_is_usable(page, "approvals-list", width)
    await page.get_by_role("link", name="Look at it").first.click()
    await expect(page.get_by_label("Audience")).to_be_visible()
    await assert_screen_is_usable(page, "approvals", width)
    await resize(page, PHONE)
    await expect(page.get_by_role("navigation", name="Requests")).to_be_hidden()
    await page.get_by_role("link", name="All approvals").click()
    await expect(page.get_by_role("navigation", name="Requests")).to_be_visible()
    await page.get_by_role("radio", name="Answered").click()
    await expect(page.get_by_role("link", name="Look at it")).to_have_count(0)
    await assert_screen_is_usable(page, "approvals-answered", width)
