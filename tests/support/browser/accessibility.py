"""What every screen must pass: axe-core without a violation of WCAG 2.2 A and AA, and 400 % zoom."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import pytest
from playwright.async_api import Page

from tests.support.browser.chromium import (
    DESKTOP,
    PHONE,
    TABLET,
    THEMES,
    ZOOMED,
    take_screenshot,
)
from tests.support.browser.steps import rendered
from tests.support.paths import ROOT

AXE: Final = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
ALL_RULES: Final = {
    "type": "tag",
    "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
}
COLOUR_RULES: Final = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""The rules of ``ALL_RULES`` whose result depends on colours, which is all that differs between themes."""
_RUN: Final = """
async (runOnly) => {
  const found = await axe.run(document, { runOnly, resultTypes: ["violations"], preload: false });
  return {
    passes: found.passes.length,
    violations: found.violations.flatMap((rule) => rule.nodes.map((node) =>
      `${rule.id} (${rule.help}): ${node.target.join(" ")}: ${node.failureSummary}`)),
  };
}
"""


async def assert_accessible(page: Page, rules: Mapping[str, Any] = ALL_RULES) -> None:
    """Check the page as it is now; the failure names each rule and element."""
    if not await page.evaluate("() => 'axe' in window"):  # half a megabyte, once per page
        await page.evaluate(_source())
    found: dict[str, Any] = await page.evaluate(_RUN, rules)
    violations: list[str] = found["violations"]
    assert not violations, "\n\n".join(violations)
    assert found["passes"], "axe has looked at nothing"


async def assert_accessible_in_both_themes(page: Page, picture: str | None = None) -> None:
    """Check the page as it is now in both themes; it is left in the light one.

    Args:
        page: The page.
        picture: The beginning of the names of its pictures; None takes none.
    """
    for theme, rules in zip(THEMES, (ALL_RULES, COLOUR_RULES), strict=True):
        await page.emulate_media(color_scheme=theme)
        await assert_accessible(page, rules)
        if picture is not None:
            await take_screenshot(page, f"{picture}-{theme}")
    await page.emulate_media(color_scheme=THEMES[0])


_TOO_WIDE: Final = """
() => {
  const main = document.querySelector("main");
  const isWide = main && main.scrollWidth > main.clientWidth;
  if (!isWide && document.documentElement.scrollWidth <= innerWidth) return [];
  const wide = [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5)
    .map((element) => `${element.tagName} ${element.className} ${Math.round(element.getBoundingClientRect().right)}`);
  return wide.length ? wide : ["nothing seen"];
}
"""


_UNREACHABLE: Final = """
() => {
  const isReached = (element) => {
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) return true;  // its label is what one sees
    const middle = (start, end, most) => (Math.max(start, 0) + Math.min(end, most)) / 2;
    const at = [middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight)];
    const hit = document.elementFromPoint(...at);
    return hit && (element.contains(hit) || hit.contains(element) || hit.closest("label")?.contains(element));
  };
  return [...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")]
    .filter((element) => !element.disabled && !element.closest("[inert], [aria-hidden='true'], .react-flow__nodes"))
    .filter((element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .filter((element) => !isReached(element) && (element.focus(), !isReached(element)))
    .map((element) => `${element.tagName} ${element.getAttribute("aria-label") ?? element.textContent}`);
}
"""


_PATIENCE: Final = 50
"""How often a page is looked at, a tenth of a second apart."""

every_width = pytest.mark.parametrize(
    "width",
    [
        "desktop",
        pytest.param("phone", marks=pytest.mark.slow),
        pytest.param("zoomed", marks=pytest.mark.slow),
    ],
)
"""Runs a test of a screen's usability at each width: that of a desk, of a phone, and at 400 % zoom."""


BETWEEN: Final = ((1024, 768), TABLET)
"""Half a screen and a tablet held upright: between what a desk and a phone show."""
WIDTHS: Final = (DESKTOP, *BETWEEN, PHONE)
"""The windows that every screen is looked at in."""
_HIDDEN_ACTION: Final = """
() => [...document.querySelectorAll("button[class*=primary], a[class*=primary]")]
  .filter((button) => button.checkVisibility())
  .map((button) => [button.textContent, button.getBoundingClientRect()])
  .filter(([, box]) => box.left < 0 || box.right > innerWidth + 0.5 || box.width < 2)
  .map(([name]) => name)
"""


_SIZES: Final = {"desktop": DESKTOP, "tablet": TABLET, "phone": PHONE, "zoomed": ZOOMED}


async def assert_screen_is_usable(page: Page, name: str, width: str) -> None:
    """Check a screen in its present state at a width, in both themes.

    It takes a picture of each theme, ``NAME-WIDTH-THEME``, or one of the zoomed page, and leaves the
    page at its size.
    """
    before = page.viewport_size
    await resize(page, _SIZES[width])
    if width == "zoomed":
        await _assert_fits(page)
        await take_screenshot(page, f"{name}-zoomed")
        unreachable = await _found_in_the_end(page, _UNREACHABLE)
        assert not unreachable, f"at 400 % zoom these cannot be brought into view: {unreachable}"
    else:
        await assert_accessible_in_both_themes(page, f"{name}-{width}")
    if width in ("phone", "tablet"):
        await _assert_fits(page)
    if width == "desktop":
        for size in BETWEEN:
            await resize(page, size)
            await _assert_fits(page)
            await _assert_main_action_is_seen(page)
    if before is not None:
        await page.set_viewport_size(before)


async def assert_fits_everywhere(page: Page) -> None:
    """Check that a screen scrolls sideways at no width, and that at 400 % zoom each control can be brought into view."""
    for size in (*WIDTHS, ZOOMED):
        await resize(page, size)
        await _assert_fits(page)
        await _assert_main_action_is_seen(page)
    unreachable = await _found_in_the_end(page, _UNREACHABLE)
    assert not unreachable, f"at 400 % zoom these cannot be brought into view: {unreachable}"


_WATCH_FOCUS: Final = """
() => {
  const reached = new Set();
  globalThis.reachedByKeyboard = reached;
  document.activeElement?.blur();
  if (globalThis.watchesFocus) return;
  globalThis.watchesFocus = true;
  addEventListener("focusin", ({ target }) => globalThis.reachedByKeyboard.add(target), true);
}
"""
_NEEDS_POINTER: Final = """
() => {
  const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex], [role=button], [role=tab]";
  const SETS = "[role=tablist], [role=radiogroup], [role=toolbar], [role=menu], [role=listbox], [role=grid], [role=application], .react-flow__nodes";
  const reached = globalThis.reachedByKeyboard;
  const isSeen = (each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && !each.closest("[inert], [aria-hidden='true']");
  const isInSet = (each) => {
    const set = each.closest(SETS);
    return set !== null && [...reached].some((other) => set.contains(other));
  };
  const isOfGroup = (each) => each.type === "radio" && [...reached].some((other) => other.name === each.name);
  const unreached = [...document.querySelectorAll(CONTROLS)]
    .filter((each) => !each.disabled && isSeen(each) && !reached.has(each))
    .filter((each) => each.tabIndex >= 0 || each.matches("a[href], button, input, select, textarea"))
    .filter((each) => !isInSet(each) && !isOfGroup(each));
  const forPointers = [...document.querySelectorAll("body *")]
    .filter((each) => getComputedStyle(each).cursor === "pointer" && isSeen(each))
    .filter((each) => !each.closest(`${CONTROLS}, label`) && !each.querySelector(CONTROLS));
  return [...unreached, ...forPointers]
    .map((each) => `${each.tagName} ${each.getAttribute("aria-label") ?? each.textContent.slice(0, 60)}`);
}
"""
_MOST_STOPS: Final = 600
"""So often Tab is pressed at most."""


async def assert_reached_by_keyboard(page: Page) -> None:
    """Press Tab through the page until each control had the focus, or is in a set, such as of tabs, of which one had it."""
    await page.evaluate(_WATCH_FOCUS)
    unreached: list[str] = []
    for _ in range(0, _MOST_STOPS, 20):
        for _ in range(20):
            await page.keyboard.press("Tab")
        unreached = await page.evaluate(_NEEDS_POINTER)
        if not unreached:
            return
    raise AssertionError(f"the Tab key does not lead to {unreached}")


async def resize(page: Page, size: tuple[int, int]) -> None:
    """Give the page a size and wait for the frames that it is laid out anew in."""
    width, height = size
    await page.set_viewport_size({"width": width, "height": height})
    await rendered(page)


async def _found_in_the_end(page: Page, script: str) -> list[str]:
    """Return what a script still finds wrong once the page has come to rest after a new size."""
    found: list[str] = []
    for _ in range(_PATIENCE):
        found = await page.evaluate(script)
        if not found:
            break
        await asyncio.sleep(0.1)
    return found


async def _assert_fits(page: Page) -> None:
    """Check that the page does not scroll sideways (WCAG 1.4.10); the failure names what is too wide."""
    too_wide = await _found_in_the_end(page, _TOO_WIDE)
    assert not too_wide, f"at {page.viewport_size} the page scrolls sideways: {too_wide}"


async def _assert_main_action_is_seen(page: Page) -> None:
    """Check that no primary button of the screen stands beside the window."""
    hidden = await _found_in_the_end(page, _HIDDEN_ACTION)
    assert not hidden, f"at {page.viewport_size} these are out of sight: {hidden}"


@cache
def _source() -> str:
    return AXE.read_text("utf-8")
