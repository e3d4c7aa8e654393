"""Links: made in the web UI, opened by somebody who has no access, without JavaScript, on any device."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.web.test_approvals import ask
from tests.support.browser.accessibility import assert_screen_is_usable, every_width
from tests.support.browser.nasty_text import NASTY_TEXT
from tests.support.browser.steps import stored_events
from tests.support.browser.web_service import WebService

FORM = {
    "type": "object",
    "required": ["audience"],
    "properties": {
        "audience": {"enum": ["The team", "Everybody"], "title": "Who gets it"},
        "count": {"type": "integer", "title": "How many", "default": 1},
        "urgent": {"type": "boolean", "title": "Send it at once"},
    },
}


@asynccontextmanager
async def stranger(browser: Browser, *, scripts: bool = False) -> AsyncIterator[Page]:
    """Open a page of somebody else's browser, which runs no scripts of pages."""
    context = await browser.new_context(java_script_enabled=scripts)
    try:
        yield await context.new_page()
    finally:
        await context.close()


async def link_to(page: Page, execution_id: str, **body: object) -> str:
    made = await page.request.post(f"/api/executions/{execution_id}/links", data=body)
    assert made.ok, await made.text()
    return str((await made.json())["url"])


async def request_of(page: Page, execution_id: str) -> str:
    await page.goto(f"/runs/{execution_id}")
    await expect(page.get_by_text("Waiting for you").first).to_be_visible()
    found = await page.request.get(f"/api/executions/{execution_id}/requests")
    return str((await found.json())["requests"][0]["request_id"])


async def test_a_shared_result_is_read_by_somebody_without_access(
    page: Page, browser: Browser
) -> None:
    graph = {
        "title": "Three days",
        "nodes": [{"id": "a", "type": "text", "data": {"text": NASTY_TEXT}}],
        "edges": [],
    }
    made = await page.request.post("/api/execute", data={"graph": graph, "start": True})
    execution_id = (await made.json())["execution_id"]
    await stored_events(page, execution_id)
    await page.goto(f"/runs/{execution_id}")
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Share …").click()
    dialog = page.get_by_role("dialog", name="Share")
    await dialog.get_by_role("button", name="Make a link").click()
    field = dialog.get_by_label("The new link")
    await expect(field).to_have_value(re.compile(r"^http://[^/]+/links/[\w-]{22}$"))
    url = await field.input_value()
    await expect(dialog.get_by_role("listitem")).to_contain_text("Result until")
    for width in ("desktop", "phone"):
        await assert_screen_is_usable(page, "share", width)
    async with stranger(browser) as other:
        shown = await other.goto(url)
        assert shown is not None
        assert shown.headers["referrer-policy"] == "strict-origin"
        await expect(other.get_by_role("heading", name="Three days")).to_be_visible()
        await expect(other.get_by_role("link", name="From elsewhere")).to_have_attribute(
            "rel", "noreferrer noopener nofollow"
        )
    await dialog.get_by_role("button", name="Take back: Result").click()
    await expect(dialog.get_by_role("listitem")).to_have_count(0)
    async with stranger(browser) as other:
        assert (gone := await other.goto(url)) is not None
        assert gone.status == 410
        await expect(other.get_by_role("heading", name="This link was taken back")).to_be_visible()


async def test_a_one_time_link_answers_without_javascript_and_once(
    page: Page, browser: Browser
) -> None:
    execution_id = await ask(page, "By link", form=FORM)
    await page.goto("/approvals")
    await (
        page.get_by_role("navigation", name="Requests").get_by_role("link", name="By link").click()
    )
    detail = page.get_by_role("region", name="Request")
    await detail.get_by_role("button", name="Copy a one-time link").click()
    url = await detail.get_by_label("A link that answers once").input_value()
    async with stranger(browser) as other:
        await other.goto(url)
        await other.goto(url)  # to look at it decides nothing
        await other.get_by_label("Who gets it").select_option("Everybody")
        for name in ("Send it at once", "How many"):
            await other.get_by_label(name).press("Enter")
            await expect(other.get_by_role("button", name="Approve")).to_be_visible()
            assert other.url == url  # nothing is sent
        await other.get_by_label("Note").fill("Go on.")
        sent: list[dict[str, str]] = []
        other.on("request", lambda each: sent.append(each.headers))
        await other.get_by_role("button", name="Approve").click()
        await expect(other.get_by_role("heading", name="Recorded: Approve")).to_be_visible()
        origin = url[: url.index("/links/")]
        assert sent[0]["origin"] == origin
        assert {each.get("referer") for each in sent} <= {None, f"{origin}/"}
        assert (again := await other.goto(url)) is not None
        assert again.status == 410
        await expect(other.get_by_role("heading", name="This link has been used")).to_be_visible()
    await stored_events(page, execution_id)
    answered = await page.request.get("/api/requests?status=answered")
    mine = next(
        each for each in (await answered.json())["requests"] if each["execution_id"] == execution_id
    )
    assert mine["answered"]["answer"]["form"] == {
        "audience": "Everybody",
        "count": 1,
        "urgent": False,
    }
    assert mine["answered"]["answered_by"]["kind"] == "link"


@every_width
async def test_pages_of_links_are_usable(
    page: Page, browser: Browser, service: WebService, width: str
) -> None:
    execution_id = await ask(page, "Usable", form=FORM, timeoutS=3600, timeoutAction="reject")
    request_id = await request_of(page, execution_id)
    urls = {
        "link-request": await link_to(page, execution_id, kind="request", request_id=request_id),
        "link-run": await link_to(page, execution_id, kind="run"),
        "link-unknown": f"{service.url}/links/{'a' * 22}",
    }
    graph = {
        "title": "A report: everything",
        "nodes": [{"id": "a", "type": "text", "name": "Report", "data": {"text": NASTY_TEXT}}],
        "edges": [],
    }
    made = await page.request.post("/api/execute", data={"graph": graph, "start": True})
    done = (await made.json())["execution_id"]
    await stored_events(page, done)
    urls["link-result"] = await link_to(page, done, kind="run")
    async with stranger(browser, scripts=True) as other:
        for name, url in urls.items():
            await other.goto(url)
            await assert_screen_is_usable(other, name, width)


async def test_a_page_of_a_link_is_printed_without_its_form(page: Page, browser: Browser) -> None:
    execution_id = await ask(page, "Printed")
    request_id = await request_of(page, execution_id)
    url = await link_to(page, execution_id, kind="request", request_id=request_id)
    async with stranger(browser, scripts=True) as other:
        await other.goto(url)
        await other.emulate_media(media="print", color_scheme="dark")
        await expect(other.get_by_role("button", name="Approve")).to_be_hidden()
        colour = await other.evaluate("() => getComputedStyle(document.body).color")
        assert colour == "rgb(0, 0, 0)"


pytestmark = pytest.mark.timeout(120)
