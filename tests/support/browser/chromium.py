"""One Chromium for all browser tests of a run, and what a page may not do.

A test gets a page that no other test uses meanwhile. Errors on its console, exceptions and violations of the
content security policy fail the test, unless the test expects them.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    WebError,
    async_playwright,
    expect,
)

from tests.support.paths import ROOT

EXECUTABLE: Final = Path("/usr/bin/chromium")
FLAGS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
    # Pages live for seconds, so that optimized code of theirs costs more time than it saves.
    "--js-flags=--no-opt --no-maglev",
)  # fmt: skip
DESKTOP: Final = (1440, 900)
TABLET: Final = (768, 1024)
PHONE: Final = (390, 844)
ZOOMED: Final = (320, 256)
"""A window of 1280 by 1024 at 400 % zoom (WCAG 1.4.10)."""
PATIENCE_MS: Final = 30_000
"""How long a test waits for what it expects of a page, on a busy machine."""
Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")
_DEFAULT_ICON: Final = "/favicon.ico"
"""What Chromium asks for, at times late, of the JSON that a page rests on between two tests."""
_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy violated: ${event.violatedDirective} by ${event.blockedURI || "inline"}`);
});
"""


def missing() -> str | None:
    """Return why browser tests cannot run here; None if they can."""
    if not EXECUTABLE.exists():
        return f"{EXECUTABLE} is missing"
    spec = importlib.util.spec_from_file_location("web", ROOT / "tools" / "web.py")
    assert spec is not None
    assert spec.loader is not None
    web = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(web)
    if not web.WebProject(ROOT).is_current:
        return "the web UI is not built from its present sources: run `make web`"
    return None


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """Start Chromium with a new profile, and end it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=EXECUTABLE, headless=True, args=list(FLAGS)
        )
        try:
            yield browser
        finally:
            await browser.close()


class PageErrors:
    """Errors of the pages of one test.

    Attributes:
        found: All of them, in order.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self._expected: list[re.Pattern[str]] = []

    def expect(self, pattern: str) -> None:
        """Accept errors that match, such as those of a connection that the test cuts."""
        self._expected.append(re.compile(pattern))

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._on_console)
        context.on("weberror", self._on_exception)

    def unwatch(self, context: BrowserContext) -> None:
        context.remove_listener("console", self._on_console)
        context.remove_listener("weberror", self._on_exception)

    @property
    def unexpected(self) -> list[str]:
        return [
            found
            for found in self.found
            if not any(pattern.search(found) for pattern in self._expected)
        ]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.location["url"].endswith(_DEFAULT_ICON):
            self.found.append(f"{message.text} ({message.location['url']})")

    def _on_exception(self, error: WebError) -> None:
        self.found.append(f"exception: {error.error}")


class PagePool:
    """Pages of one service that tests use one after the other.

    A new context costs a second of CPU time: a process, and everything that a cache would hold. A page
    that is taken again has lost its cookies, storage, routes and size, and has left what the test before
    has opened: a late response to that must not fail another test.
    """

    def __init__(self, browser: Browser, base_url: str) -> None:
        self.base_url = base_url
        self._browser = browser
        self._idle: list[Page] = []

    async def new_page(self) -> Page:
        """Return a page in a context of its own."""
        context = await self._browser.new_context(
            reduced_motion="reduce", locale="en-GB", base_url=self.base_url, timezone_id="UTC"
        )
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        await context.add_init_script(_REPORT_VIOLATIONS)
        return await context.new_page()

    async def take(self) -> Page:
        """Return a page with no cookie and nothing stored."""
        if not self._idle:
            return await self.new_page()
        page = self._idle.pop()
        await page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        await page.context.clear_cookies()
        return page

    async def give_back(self, page: Page) -> None:
        """Take a page back from a test. It rests until another takes it."""
        if page.is_closed():
            await page.context.close()
            return
        for other in page.context.pages:
            if other is not page:
                await other.close()
        await page.unroute_all()
        await page.goto(f"{self.base_url}/healthz")  # has the origin's storage, and no script
        self._idle.append(page)

    async def close(self) -> None:
        for page in self._idle:
            await page.context.close()


class Pages:
    """Opens pages of one service for one test; see the fixture ``pages``."""

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self._taken: list[Page] = []
        self._own: list[Page] = []
        self.errors = PageErrors()

    async def open(
        self,
        path: str | None = "/",
        theme: Theme = "light",
        viewport: tuple[int, int] = DESKTOP,
        before_load: Callable[[Page], Awaitable[object]] | None = None,
        with_cache: bool = True,
    ) -> Page:
        """Open an address of the service, with no cookie and nothing stored.

        Args:
            path: The address below the service's, with a slash at its beginning; None loads nothing.
            theme: The colour scheme that the system prefers.
            viewport: Width and height in CSS pixels.
            before_load: Prepares the page before it loads, such as its clock.
            with_cache: Whether scripts that another test has loaded may come from the cache.
        """
        if with_cache and before_load is None:
            page = await self._pool.take()
            self._taken.append(page)
        else:
            page = await self._pool.new_page()
            self._own.append(page)
        self.errors.watch(page.context)
        width, height = viewport
        await page.set_viewport_size({"width": width, "height": height})
        await page.emulate_media(color_scheme=theme)
        if before_load is not None:
            await before_load(page)
        if path is not None:
            await page.goto(f"{self._pool.base_url}{path}")
        return page

    async def close(self) -> None:
        """Close what is open; fail if a page had an error that the test does not expect."""
        for page in (*self._taken, *self._own):
            self.errors.unwatch(page.context)
        for page in self._own:
            await page.context.close()
        for page in self._taken:
            await self._pool.give_back(page)
        assert not self.errors.unexpected, "\n".join(self.errors.unexpected)


@asynccontextmanager
async def pages_of(browser: Browser, base_url: str) -> AsyncGenerator[Pages]:
    """Open pages of a service that only one test uses."""
    pool = PagePool(browser, base_url)
    pages = Pages(pool)
    try:
        yield pages
        await pages.close()
    finally:
        await pool.close()


async def take_screenshot(page: Page, name: str) -> None:
    """Write a picture of the whole page into the folder ``SCREENSHOTS`` names, if it is set."""
    if folder := os.environ.get("SCREENSHOTS"):
        await page.screenshot(path=ROOT / folder / f"{name}.png", full_page=True)
