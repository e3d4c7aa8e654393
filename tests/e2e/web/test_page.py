"""The page of the web UI in a real browser: how it loads, what it may not do, whom it shuts out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.support.browser.chromium import Pages, pages_of
from tests.support.browser.web_service import WebService, web_service

FIRST_SCREEN_BYTES = 220_000
"""JavaScript that the first screen may load, as it comes over the network."""
SMALLEST_COMPRESSED_BYTES = 1_000
"""Compression makes smaller files larger."""


async def test_deep_link_loads_page(pages: Pages) -> None:
    page = await pages.open("/runs/01a209f5-e0a2-7000-9139-4a1cb34422c8")
    await expect(page.locator("#root")).not_to_be_empty()
    answer = await page.request.get(f"{page.url}/steps/a.b")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


async def test_first_screen_loads_little_javascript(pages: Pages) -> None:
    page = await pages.open(with_cache=False)
    await page.wait_for_load_state("networkidle")
    loaded: list[dict[str, Any]] = await page.evaluate(
        """() => performance.getEntriesByType("resource")
            .filter((entry) => new URL(entry.name).pathname.endsWith(".js"))
            .map((entry) => ({ url: entry.name, encoded: entry.encodedBodySize,
                               decoded: entry.decodedBodySize }))"""
    )
    assert loaded
    large = [each for each in loaded if each["decoded"] > SMALLEST_COMPRESSED_BYTES]
    assert all(each["encoded"] < each["decoded"] for each in large), "not compressed"
    assert sum(each["encoded"] for each in loaded) <= FIRST_SCREEN_BYTES, loaded


async def test_policy_blocks_inline_script_foreign_image_and_frame(pages: Pages) -> None:
    pages.errors.expect("policy|Content Security Policy|violates")
    page = await pages.open(with_cache=False)
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
        }"""
    )
    assert await page.evaluate("window.intruded") is None
    assert await page.locator("body").evaluate("(body) => getComputedStyle(body).visibility") == (
        "visible"
    )
    blocked = {found.split(" by ")[0] for found in pages.errors.found if "violated" in found}
    assert blocked == {
        "policy violated: script-src-elem",
        "policy violated: style-src-elem",
        "policy violated: img-src",
    }


async def test_style_with_nonce_of_page_is_applied(page: Page) -> None:
    await page.evaluate(
        """() => {
            const style = document.createElement("style");
            style.nonce = document.querySelector("meta[name=style-nonce]").content;
            style.textContent = "body { color: rgb(1, 2, 3) }";
            document.head.append(style);
        }"""
    )
    colour = await page.locator("body").evaluate("(body) => getComputedStyle(body).color")
    assert colour == "rgb(1, 2, 3)"


async def test_page_works_below_path_prefix(browser: Browser, tmp_path: Path) -> None:
    async with (
        web_service(tmp_path, "--root-path", "/tools/planwave") as service,
        pages_of(browser, f"{service.url}/tools/planwave") as pages,
    ):
        page = await pages.open(with_cache=False)
        for path in ("/", "/runs/1"):
            await page.goto(f"{service.url}/tools/planwave{path}")
            await expect(page.locator("#root")).not_to_be_empty()
            assert await page.evaluate("document.baseURI") == f"{service.url}/tools/planwave/"
            loaded = await page.evaluate(
                "performance.getEntriesByType('resource').map((entry) => entry.name)"
            )
            assert loaded
            assert all(url.startswith(f"{service.url}/tools/planwave/") for url in loaded)
        pages.errors.expect("404")  # there is no such run
        await page.get_by_role("link", name="New", exact=True).click()
        await page.get_by_role("textbox", name="Goal").fill("Do two things")
        await page.keyboard.press("Control+Enter")
        await page.wait_for_url(f"{service.url}/tools/planwave/?plan=*")
        await page.get_by_role("button", name="Run", exact=True).click()
        await page.wait_for_url(f"{service.url}/tools/planwave/runs/*")


async def test_assets_are_not_loaded_twice(pages: Pages, service: WebService) -> None:
    page = await pages.open()
    await page.goto(f"{service.url}/runs/1")
    cached: list[int] = await page.evaluate(
        """() => performance.getEntriesByType("resource")
            .filter((entry) => entry.name.includes("/assets/index-"))
            .map((entry) => entry.transferSize)"""
    )
    assert cached
    assert set(cached) == {0}
