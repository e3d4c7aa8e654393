"""The page while its service asks for a token, goes away and comes back."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser, expect

from tests.support.browser.accessibility import assert_accessible_in_both_themes
from tests.support.browser.chromium import Pages, pages_of
from tests.support.browser.web_service import WebService, web_service

NETWORK_ERROR = "Failed to load resource: net::ERR_"


async def test_page_asks_for_token_and_remembers_the_login(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        web_service(tmp_path, token="the right one") as service,
        pages_of(browser, service.url) as pages,
    ):
        pages.errors.expect("status of 401")
        page = await pages.open()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
        await assert_accessible_in_both_themes(page)
        await page.get_by_label("Token").fill("a wrong one")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_label("Token")).to_have_attribute("aria-invalid", "true")
        await page.get_by_label("Token").fill("the right one")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("textbox", name="Goal")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("textbox", name="Goal")).to_be_visible()
        (cookie,) = await page.context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert await page.evaluate("JSON.stringify({ ...localStorage })") != ""
        stored = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
        assert "the right one" not in stored
        await page.goto(f"{service.url}/settings?tab=browser")
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Log in")


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
