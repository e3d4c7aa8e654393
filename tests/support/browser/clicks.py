"""How many clicks a task takes in the browser; typing, and keys such as Enter, are none."""

from __future__ import annotations

from typing import Final

from playwright.async_api import Page

_COUNT: Final = """
() => {
  const add = (by) => sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks")) + by);
  sessionStorage.setItem("clicks", 0);
  if (globalThis.countsClicks) return;
  globalThis.countsClicks = true;
  addEventListener("pointerdown", ({ isTrusted }) => isTrusted && add(1), true);
  addEventListener("dblclick", () => add(-1), true);
  addEventListener("change", ({ target }) => target.tagName === "SELECT" && add(1), true);
}
"""
_COUNTED: Final = "() => globalThis.countsClicks ? Number(sessionStorage.getItem('clicks')) : null"


async def count_clicks(page: Page) -> None:
    """Count the clicks on a loaded page from here on: presses of the pointer, a double click as one, and choices in lists."""
    await page.evaluate(_COUNT)


async def clicks_on(page: Page) -> int:
    """Return how many clicks there were since ``count_clicks``; the page must not have been loaded anew since."""
    counted: int | None = await page.evaluate(_COUNTED)
    assert counted is not None, "the page was loaded again, and nobody counts"
    return counted
