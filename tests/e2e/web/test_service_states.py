"""The page of a service behind a path and a token, and of one that goes away and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.support.browser.accessibility import assert_screen_is_usable
from tests.support.browser.chromium import Pages, pages_of
from tests.support.browser.steps import enter_goal
from tests.support.browser.web_service import WebService, web_service

NETWORK_ERROR = "Failed to load resource: net::ERR_"


@pytest.mark.slow
async def test_page_below_a_path_prefix_asks_for_the_token_and_remembers_the_login(
    browser: Browser, tmp_path: Path
) -> None:
    prefix = "/tools/planwave"
    async with (
        web_service(tmp_path, "--root-path", prefix, token="the right one") as service,
        pages_of(browser, f"{service.url}{prefix}") as pages,
    ):
        pages.errors.expect("status of 401")
        page = await pages.open()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
        await assert_screen_is_usable(page, "login", "desktop")
        await expect(page.get_by_role("banner").get_by_role("link")).to_have_count(1)
        await page.get_by_label("Token").fill("a wrong one")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_label("Token")).to_have_attribute("aria-invalid", "true")
        await page.get_by_label("Token").fill("the right one")
        await page.get_by_role("button", name="Log in").click()
        await enter_goal(page)
        await page.wait_for_url(f"{service.url}{prefix}/?plan=*")
        await page.get_by_role("button", name="Run", exact=True).click()
        await page.wait_for_url(f"{service.url}{prefix}/runs/*")
        await page.reload()
        await expect(page.get_by_role("button", name="Last, completed").first).to_be_visible()
        assert await page.evaluate("document.baseURI") == f"{service.url}{prefix}/"
        loaded = await page.evaluate(
            "performance.getEntriesByType('resource').map((entry) => entry.name)"
        )
        assert loaded
        assert all(url.startswith(f"{service.url}{prefix}/") for url in loaded)
        (cookie,) = await page.context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        stored = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
        assert "the right one" not in stored
        await page.get_by_role("link", name="Settings").click()
        await page.get_by_role("tab", name="This browser").click()
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Log in")


@pytest.mark.slow
async def test_page_says_that_its_service_is_away_and_back(
    pages: Pages, service: WebService
) -> None:
    pages.errors.expect(NETWORK_ERROR)
    page = await pages.open(before_load=lambda opened: opened.clock.install())
    bar = page.get_by_role("banner")
    await expect(bar.get_by_text("Live")).to_be_visible()
    service.proxy.cut()
    await page.clock.fast_forward(20_000)
    await expect(bar.get_by_text("Reconnecting")).to_be_visible()
    service.proxy.restore()
    await page.clock.fast_forward(5_000)
    await expect(bar.get_by_text("Live")).to_be_visible()
