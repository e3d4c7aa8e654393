"""What every page has: navigation, keys, search and theme; and the settings."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_screen_is_usable,
    every_width,
)
from tests.support.browser.chromium import Pages
from tests.support.browser.web_service import WebService
from tests.support.llm.planner_replies import planner_reply, reply_node


async def test_first_tab_stop_skips_the_bar_and_keys_can_be_switched_off(pages: Pages) -> None:
    page = await pages.open("/settings")
    await expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Skip to the page")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("tab", name="Models")).to_be_focused()
    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    await expect(keys.get_by_text("Go to new")).to_be_visible()
    await assert_accessible(page)
    await keys.get_by_role("switch", name="Single letters").click()
    await page.keyboard.press("Escape")
    await expect(keys).to_have_count(0)
    await page.keyboard.press("g")
    await page.keyboard.press("n")
    await page.keyboard.press("?")
    await expect(keys).to_have_count(0)
    await expect(page).to_have_url(re.compile("/settings$"))
    await page.get_by_role("tab", name="This browser").click()
    await page.get_by_role("switch", name="Single letters").click()
    await page.keyboard.press("g")
    await page.keyboard.press("n")
    await expect(page.get_by_role("textbox", name="Goal")).to_be_focused()


async def test_theme_is_kept_and_follows_the_system_again(page: Page) -> None:
    async def colour() -> str:
        return await page.locator("body").evaluate("(body) => getComputedStyle(body).colorScheme")

    await page.get_by_role("button", name="Theme: as the system").click()
    await page.get_by_role("menuitem", name="Dark").click()
    assert await colour() == "dark"
    await page.reload()
    await expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert await colour() == "dark"
    await page.get_by_role("button", name="Theme: dark").click()
    await page.get_by_role("menuitem", name="As the system").click()
    assert await colour() == "light"


@pytest.mark.slow
async def test_search_finds_plans_and_opens_them(page: Page, service: WebService) -> None:
    service.model.plans = [planner_reply(reply_node("weigh"), title="Colours of cucumbers")]
    answer = await page.request.post(
        f"{service.url}/api/plan", data={"prompt": "Weigh cucumbers by colour"}
    )
    plan = await answer.json()
    await page.get_by_role("main").click()
    await page.get_by_role("link", name="Settings").click()
    await page.keyboard.press("/")
    await page.keyboard.type("cucumbers")
    await expect(page.get_by_role("option", name=plan["title"])).to_be_visible()
    await assert_accessible(page)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{service.url}/?plan={plan['plan_id']}")
    await page.keyboard.press("/")
    await page.keyboard.type("nothing has this text")
    await expect(page.get_by_text("Nothing has “nothing has this text”")).to_be_visible()


@every_width
async def test_settings_are_usable(pages: Pages, width: str) -> None:
    page = await pages.open("/settings")
    for tab, first in (
        ("Models", "Ready"),
        ("Node types", "agent"),
        ("Limits", "PLANWAVE_LIMIT_BODY_BYTES"),
        ("This browser", "Light or dark pages."),
    ):
        await page.get_by_role("tab", name=tab).click()
        ring = await page.get_by_role("tab", name=tab).evaluate(
            "tab => tab.matches(':focus-visible')"
        )
        assert not ring, "a click draws no focus ring"
        await expect(page.get_by_text(first, exact=True).first).to_be_visible()
        await assert_screen_is_usable(page, f"settings-{tab}".replace(" ", "-"), width)
    await page.get_by_role("tab", name="Node types").click()
    await page.get_by_role("searchbox", name="Search node types").fill("temperature")
    await page.get_by_text("Have a language model do one task.").click()
    await expect(
        page.get_by_role("region", name="Fields").get_by_text("temperature")
    ).to_be_visible()
    await assert_accessible(page)
