"""The page of the web UI in a real browser: its addresses, how it loads, and what it may not do."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import expect

from tests.support.browser.accessibility import (
    assert_accessible,
    assert_accessible_in_both_themes,
)
from tests.support.browser.chromium import Pages
from tests.support.browser.steps import GOAL

UNKNOWN_RUN = "01a209f5-e0a2-7000-9139-4a1cb34422c8"
FIRST_SCREEN_BYTES = 180_000
"""JavaScript that the first screen may load, as it comes over the network."""
FIRST_SCREEN_FILES = 16
"""Scripts and style sheets of the first screen; each is a request."""
FIRST_SCREEN_REQUESTS = 20
"""Requests until the first screen is whole, that of the page itself among them."""
SMALLEST_COMPRESSED_BYTES = 1_000
"""Compression makes smaller files larger."""


async def test_deep_links_load_what_they_name(pages: Pages) -> None:
    pages.errors.expect("status of 4(04|22)|WebSocket")
    page = await pages.open(None)
    planned = await page.request.post("/api/plan", data={"prompt": GOAL})
    await page.goto(f"/?plan={(await planned.json())['plan_id']}")
    await expect(page.get_by_role("heading", level=1)).to_have_text(GOAL)
    plan = page.get_by_role("region", name="The plan")
    await expect(plan.get_by_role("listitem")).to_have_count(3)
    await page.goto(f"/runs/{UNKNOWN_RUN}")
    await expect(page.get_by_role("alert")).to_contain_text(UNKNOWN_RUN)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Run")
    await assert_accessible(page)
    await page.goto("/plans/xyz")
    refusal = page.get_by_role("alert").filter(has_text="xyz")
    await expect(refusal).to_contain_text("is no plan id")
    await expect(page.get_by_role("main")).not_to_contain_text("GET /api")
    await page.goto("/no/such/page")
    await expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    await expect(page).to_have_title(re.compile(r"^(\(\d+\) )?Not found · planwave$"))
    await assert_accessible_in_both_themes(page)
    await page.get_by_role("link", name="New goal").click()
    await expect(page).to_have_title(re.compile(r"^(\(\d+\) )?New goal · planwave$"))
    answer = await page.request.get(f"/runs/{UNKNOWN_RUN}/steps/a.b")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


async def test_login_takes_the_token_at_once_and_names_no_header(pages: Pages) -> None:
    pages.errors.expect("status of 401")
    page = await pages.open(None)
    refusal = {
        "error": {
            "code": "unauthorized",
            "message": "the token is missing",
            "hint": "Send Authorization: Bearer with the token of this service",
        }
    }
    await page.route("**/api/**", lambda route: route.fulfill(status=401, json=refusal))
    await page.goto("/runs")
    await expect(page.get_by_label("Token")).to_be_focused()
    await page.keyboard.type("a wrong one")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Token")).to_have_attribute("aria-invalid", "true")
    await expect(page.locator("body")).not_to_contain_text("Authorization")


async def test_first_screen_loads_little_javascript_and_only_once(pages: Pages) -> None:
    page = await pages.open(None, with_cache=False)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await page.goto("/")
    await page.wait_for_load_state("networkidle")
    assert len(requests) <= FIRST_SCREEN_REQUESTS, requests
    loaded: list[dict[str, Any]] = await page.evaluate(
        """() => performance.getEntriesByType("resource")
            .filter((entry) => /\\.(js|css)$/.test(new URL(entry.name).pathname))
            .map((entry) => ({ url: entry.name, encoded: entry.encodedBodySize,
                               decoded: entry.decodedBodySize }))"""
    )
    assert loaded
    large = [each for each in loaded if each["decoded"] > SMALLEST_COMPRESSED_BYTES]
    assert all(each["encoded"] < each["decoded"] for each in large), "not compressed"
    assert len(loaded) <= FIRST_SCREEN_FILES, loaded
    scripts = [each for each in loaded if each["url"].endswith(".js")]
    assert sum(each["encoded"] for each in scripts) <= FIRST_SCREEN_BYTES, loaded
    await page.goto("/settings")
    again: list[int] = await page.evaluate(
        """() => performance.getEntriesByType("resource")
            .filter((entry) => entry.name.includes("/assets/index-"))
            .map((entry) => entry.transferSize)"""
    )
    assert again
    assert set(again) == {0}


async def test_policy_blocks_inline_script_style_and_foreign_image(pages: Pages) -> None:
    pages.errors.expect("policy|Content Security Policy|violates")
    page = await pages.open()
    await page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.intruded = true";
            document.body.append(script);
            const style = document.createElement("style");
            style.textContent = "body { visibility: hidden }";
            document.head.append(style);
            const image = document.createElement("img");
            image.src = "http://127.0.0.2:9/x.png";
            document.body.append(image);
            const allowed = document.createElement("style");
            allowed.nonce = document.querySelector("meta[name=style-nonce]").content;
            allowed.textContent = "body { color: rgb(1, 2, 3) }";
            document.head.append(allowed);
        }"""
    )
    assert await page.evaluate("window.intruded") is None
    assert await page.locator("body").evaluate(
        "(body) => [getComputedStyle(body).visibility, getComputedStyle(body).color]"
    ) == ["visible", "rgb(1, 2, 3)"]
    blocked = {found.split(" by ")[0] for found in pages.errors.found if "violated" in found}
    assert blocked == {
        "policy violated: script-src-elem",
        "policy violated: style-src-elem",
        "policy violated: img-src",
    }
