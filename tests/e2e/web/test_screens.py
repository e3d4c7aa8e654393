"""Every screen with text at its worst: at each width, zoomed, by keyboard, in both themes.

A screen that the web UI has and ``SCREENS`` has not fails the first test.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import APIRequestContext, Browser, Page, expect

from planwave.api.routes import web
from tests.support.browser.accessibility import (
    WIDTHS,
    assert_accessible,
    assert_accessible_in_both_themes,
    assert_fits_everywhere,
    assert_reached_by_keyboard,
    resize,
)
from tests.support.browser.chromium import DESKTOP, PHONE, Pages, take_screenshot
from tests.support.browser.nasty_text import LONG_LINE, LONG_TEXT, NASTY_NAME, NASTY_TEXT
from tests.support.browser.steps import rendered
from tests.support.browser.web_service import WebService
from tests.support.paths import ROOT

ROUTES: Final = ROOT / "web" / "src" / "app" / "routes.tsx"
FORM: Final = {
    "type": "object",
    "required": ["audience"],
    "properties": {"audience": {"type": "string", "title": NASTY_NAME, "description": LONG_LINE}},
}
GRAPH: Final[Mapping[str, Any]] = {
    "title": NASTY_NAME,
    "nodes": [
        {"id": "in", "type": "start", "name": NASTY_NAME, "data": {"schema": FORM}},
        {
            "id": "report",
            "type": "agent",
            "name": NASTY_NAME,
            "description": f"Report {LONG_LINE}",
            "data": {"provider": "openai"},
        },
        {"id": "words", "type": "text", "name": NASTY_NAME, "data": {"text": NASTY_TEXT}},
    ],
    "edges": [{"source": "in", "target": "report", "data": {"channel": "flow"}}],
}
ASKING: Final[Mapping[str, Any]] = {
    "title": NASTY_NAME,
    "nodes": [
        {"id": "text", "type": "text", "name": NASTY_NAME, "data": {"text": NASTY_TEXT}},
        {
            "id": "ask",
            "type": "approval",
            "name": NASTY_NAME,
            "data": {
                "prompt": NASTY_TEXT,
                "form": FORM,
                "timeoutS": 3600,
                "timeoutAction": "reject",
            },
        },
    ],
    "edges": [{"source": "text", "target": "ask", "data": {"channel": "flow"}}],
}
NIGHTLY: Final[Mapping[str, Any]] = {
    "nodes": [
        {"id": "night", "type": "schedule", "name": NASTY_NAME, "data": {"cron": "30 2 * * *"}},
        {"id": "words", "type": "text", "data": {"text": NASTY_TEXT}},
    ],
    "edges": [{"source": "night", "target": "words", "data": {"channel": "flow"}}],
}

SCREENS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("/",),
    "plans/:planId": ("/plans/{flow}",),
    "runs": ("/runs?q=gesellschaft",),
    "runs/compare": ("/runs/compare?a={run}&b={other}",),
    "runs/:executionId": (
        "/runs/{run}",
        "/runs/{other}?step=report",
        "/runs/{other}?view=result",
        "/runs/{asking}?step=ask",
    ),
    "runs/:executionId/change": ("/runs/{asking}/change",),
    "spend": ("/spend?by=flow",),
    "flows": ("/flows?named=all&q=gesellschaft",),
    "flows/:flowId": ("/flows/{flow}",),
    "flows/:planId/edit": ("/flows/{flow}/edit",),
    "triggers": ("/triggers",),
    "approvals": ("/approvals?request={asking}/{request}",),
    "chat/:chatId?": ("/chat/{chat}",),
    "settings": ("/settings",),
    "*": ("/no/such/page",),
}
"""The addresses of each screen that are looked at, by its route in ``web/src/app/routes.tsx``."""
every_screen = pytest.mark.parametrize("screen", SCREENS)


async def test_no_screen_is_left_out() -> None:
    routes = await asyncio.to_thread(ROUTES.read_text, "utf-8")
    assert set(re.findall(r'path: "([^"]+)"', routes)) - {"/"} | {""} == set(SCREENS)
    first = {screen.partition("/")[0] for screen in SCREENS} - {"*"}
    assert first == web._SCREENS - {web.PAGE_NAME}


async def posted(api: APIRequestContext, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    answer = await api.post(path, data=dict(body))
    assert answer.ok, await answer.text()
    return dict(await answer.json())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stored(browser: Browser, shared_service: WebService) -> AsyncIterator[dict[str, str]]:
    """A flow, runs of it that differ, an open request and a chat: their ids."""
    shared_service.model.reset()
    shared_service.model.replies = {"Report": LONG_TEXT}
    context = await browser.new_context(base_url=shared_service.url)
    api = context.request
    flow = (await posted(api, "/api/flows", {"name": NASTY_NAME, "graph": GRAPH}))["plan_id"]
    nightly = await posted(api, "/api/flows", {"name": f"Nightly {NASTY_NAME}", "graph": NIGHTLY})
    trigger = await posted(api, "/api/triggers", {"plan_id": nightly["plan_id"]})
    await posted(api, f"/api/triggers/{trigger['trigger_id']}/fire", {})
    runs: list[str] = []
    for city in ("Lisbon", NASTY_NAME):
        body = {"plan_id": flow, "inputs": {"audience": city}, "start": True}
        runs.append((await posted(api, "/api/execute", body))["execution_id"])
        await api.get(f"/api/executions/{runs[-1]}/events")
        shared_service.model.replies = {"Report": NASTY_TEXT}
    labels = {"name": NASTY_NAME, "tags": [NASTY_NAME[:30], "one"], "note": NASTY_TEXT[:500]}
    assert (await api.patch(f"/api/executions/{runs[0]}", data=labels)).ok
    made = await posted(api, "/api/execute", {"graph": ASKING, "start": True})
    chat = (await posted(api, "/api/chats", {"title": NASTY_NAME, "config": {}}))["chat_id"]
    message = {"message": f"Report {NASTY_TEXT}"}
    turn = await posted(api, f"/api/chats/{chat}/messages", message)
    await api.get(f"/api/chats/{chat}/messages/{turn['message']['message_id']}/events")
    request = ""
    while not request:
        found = await api.get(f"/api/executions/{made['execution_id']}/requests")
        for each in (await found.json())["requests"]:
            request = each["request_id"]
    yield {
        "flow": flow,
        "run": runs[0],
        "other": runs[1],
        "asking": made["execution_id"],
        "request": request,
        "chat": chat,
    }
    await context.close()


async def visit(page: Page, address: str, stored: Mapping[str, str]) -> None:
    """Open a screen, and wait until its text is there."""
    await page.goto(address.format(**stored))
    await expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    await expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
    if "{" in address or "?q=" in address:
        await expect(page.get_by_text("gesellschaft").first).to_be_attached()
    await rendered(page)


def pictured(screen: str, address: str) -> str:
    """Return the name of a picture of a screen."""
    state = address.partition("?")[2].partition("=")[2].partition("&")[0]
    return "-".join(
        re.findall(r"\w+", f"nasty {screen or 'goal'} {state if '{' not in state else ''}")
    )


@every_screen
async def test_screen_fits_each_width_and_is_reached_by_keyboard(
    pages: Pages, stored: dict[str, str], screen: str
) -> None:
    """Nothing scrolls sideways, at 400 % zoom neither, and no control needs a pointer."""
    page = await pages.open(None)
    for address in SCREENS[screen]:
        await resize(page, DESKTOP)
        await visit(page, address, stored)
        await assert_reached_by_keyboard(page)
        await assert_fits_everywhere(page)
        await resize(page, PHONE)
        await assert_accessible(page)
        await take_screenshot(page, f"{pictured(screen, address)}-390")


@pytest.mark.slow
@every_screen
async def test_screen_is_accessible_at_each_width_in_both_themes(
    pages: Pages, stored: dict[str, str], screen: str
) -> None:
    page = await pages.open(None)
    for address in SCREENS[screen]:
        await visit(page, address, stored)
        for size in WIDTHS:
            await resize(page, size)
            await assert_accessible_in_both_themes(page, f"{pictured(screen, address)}-{size[0]}")
