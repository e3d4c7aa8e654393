"""The canvas in the browser: the same gestures and keys in the editor of a plan and in a run."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browser.accessibility import resize
from tests.support.browser.chromium import Pages
from tests.support.browser.plan_editor import PlanEditor, create_plan
from tests.support.browser.steps import execute_graph, rendered, stored_events

Screen = Literal["editor", "run"]
every_screen = pytest.mark.parametrize("screen", ["editor", "run"])

SOCKETS = """
() => [...document.querySelectorAll(".react-flow__edge")].flatMap((edge) => {
  const line = edge.querySelector("path");
  const on = line.getScreenCTM();
  const ends = [0, line.getTotalLength()].map((at) => line.getPointAtLength(at).matrixTransform(on));
  const [from, to] = edge.dataset.id.split(" ");
  return ends.map(({ x, y }, index) => {
    const [node, handle] = [from, to][index].split("/");
    const socket = document.querySelector(
      `.react-flow__handle[data-nodeid="${node}"][data-handleid="${handle}"].${["source", "target"][index]}`);
    const box = socket.getBoundingClientRect();
    const away = (at, start, end) => Math.max(start - at, at - end, 0);
    return Math.max(away(x, box.left, box.right), away(y, box.top, box.bottom));
  });
})
"""
"""How far each end of each wire is from its socket, in px; an edge is named by its sockets."""


def text(node_id: str) -> dict[str, Any]:
    return {"id": node_id, "type": "text", "name": f"Step {node_id}", "data": {"text": node_id}}


def edge(source: str, target: str, **fields: Any) -> dict[str, Any]:
    return {"source": source, "target": target, "data": {"channel": "flow"}, **fields}


CHAIN: dict[str, Any] = {
    "nodes": [text(each) for each in ("a", "b", "c", "d")],
    "edges": [edge("a", "b"), edge("a", "c"), edge("b", "d")],
}
WIDE: dict[str, Any] = {
    "nodes": [text(f"n{number}") for number in range(180)],
    "edges": [edge(f"n{number}", f"n{number + 12}") for number in range(168)],
}


class Canvas:
    """The canvas of an open screen."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.area = page.get_by_role("group", name="Steps ", exact=False).first

    @classmethod
    async def open(cls, pages: Pages, screen: Screen, graph: dict[str, Any]) -> Canvas:
        page = await pages.open(None)
        if screen == "editor":
            await PlanEditor(page, await create_plan(page, graph)).visit()
        else:
            await stored_events(page, await execute_graph(page, graph))
            await page.reload()  # as it is opened, not where the run has been followed to
        canvas = cls(page)
        await expect(canvas.cards.first).to_be_visible()
        await rendered(page)
        return canvas

    @property
    def cards(self) -> Locator:
        return self.area.locator("button[data-step]")

    @property
    def chosen(self) -> Locator:
        return self.area.locator("button[data-step][aria-pressed=true]")

    def card(self, node_id: str) -> Locator:
        return self.area.locator(f'button[data-step="{node_id}"]')

    async def expect_chosen(self, node_id: str | None) -> None:
        await expect(self.chosen).to_have_count(0 if node_id is None else 1)
        if node_id is not None:
            await expect(self.chosen).to_have_attribute("data-step", node_id)

    async def view(self) -> tuple[float, float, float]:
        """Return where the graph is, and how large, once it is at rest."""
        read = """() => {
          const on = getComputedStyle(document.querySelector(".react-flow__viewport")).transform;
          const { e, f, a } = new DOMMatrixReadOnly(on);
          return [e, f, a];
        }"""
        seen: list[list[float]] = []
        while len(seen) < 4 or any(view != seen[-1] for view in seen[-4:]):
            await rendered(self.page)
            seen.append(await self.page.evaluate(read))
        x, y, zoom = seen[-1]
        return x, y, zoom

    async def empty_place(self) -> tuple[float, float]:
        """Return a point of the canvas where no card is: between its tools and the lower edge."""
        box = await self.area.bounding_box()
        assert box is not None
        return box["x"] + box["width"] / 2, box["y"] + box["height"] - 60

    async def drag(self, by: tuple[float, float]) -> None:
        x, y = await self.empty_place()
        await self.page.mouse.move(x, y)
        await self.page.mouse.down()
        await self.page.mouse.move(x + by[0] / 2, y + by[1] / 2)
        await self.page.mouse.move(x + by[0], y + by[1])
        await self.page.mouse.up()


@every_screen
async def test_pointer_chooses_pans_and_zooms(pages: Pages, screen: Screen) -> None:
    canvas = await Canvas.open(pages, screen, CHAIN)
    page = canvas.page
    await canvas.card("a").click()
    await canvas.expect_chosen("a")
    await page.mouse.click(*await canvas.empty_place())
    await canvas.expect_chosen(None)
    x, y, zoom = await canvas.view()
    await canvas.drag((-90, -40))
    assert await canvas.view() == pytest.approx((x - 90, y - 40, zoom), abs=1)
    await page.mouse.wheel(30, 50)
    assert await canvas.view() == pytest.approx((x - 105, y - 65, zoom), abs=1)  # half of the wheel
    await page.keyboard.down("Control")
    await page.mouse.wheel(0, 80)
    await page.keyboard.up("Control")
    assert (await canvas.view())[2] < zoom
    await page.get_by_role("button", name="Fit", exact=True).click()
    assert await canvas.view() == pytest.approx((x, y, zoom), abs=1)
    await page.get_by_role("button", name="Zoom out").click()
    assert (await canvas.view())[2] < zoom
    await canvas.expect_chosen(None)


@every_screen
async def test_keys_lead_along_the_edges_and_zoom(pages: Pages, screen: Screen) -> None:
    canvas = await Canvas.open(pages, screen, CHAIN)
    page = canvas.page
    await expect(canvas.area.locator("button[data-step][tabindex='0']")).to_have_count(1)
    await canvas.card("a").focus()
    for key, expected in (
        ("ArrowRight", "b"), ("ArrowDown", "c"), ("ArrowUp", "b"), ("ArrowRight", "d"),
        ("ArrowLeft", "b"), ("Alt+ArrowRight", "b"), ("Control+ArrowRight", "b"),
    ):  # fmt: skip
        await page.keyboard.press(key)
        await canvas.expect_chosen(expected)
        await expect(canvas.card(expected)).to_be_focused()
    zoom = (await canvas.view())[2]
    await page.keyboard.press("-")
    smaller = (await canvas.view())[2]
    assert smaller < zoom
    await page.keyboard.press("+")
    assert (await canvas.view())[2] == pytest.approx(zoom)
    for _ in range(8):
        await page.keyboard.press("-")
    await expect(canvas.area.get_by_text("Step a")).to_have_count(0)
    await expect(canvas.card("c")).to_have_accessible_name(
        "Step c" if screen == "editor" else re.compile(r"^Step c, completed, \d\.\d s$")
    )
    await canvas.area.locator('.react-flow__node[data-id="c"]').click()
    await canvas.expect_chosen("c")
    await page.keyboard.press("f")
    assert (await canvas.view())[2] > smaller
    await page.keyboard.press("Escape")
    await canvas.expect_chosen(None)


@every_screen
async def test_large_graph_opens_readable_and_draws_what_is_seen(
    pages: Pages, screen: Screen
) -> None:
    canvas = await Canvas.open(pages, screen, WIDE)
    assert (await canvas.view())[2] == 1
    await expect(canvas.card("n0")).to_be_in_viewport(ratio=1)
    assert await canvas.cards.count() < 90
    await canvas.card("n0").focus()
    for number in range(12, 108, 12):
        await canvas.page.keyboard.press("ArrowRight")
        await expect(canvas.card(f"n{number}")).to_be_focused()
    await expect(canvas.card("n96")).to_be_in_viewport(ratio=1)
    if screen == "editor":  # its panel has made the canvas narrower
        await canvas.expect_chosen("n96")
    await canvas.page.keyboard.press("f")
    await expect(canvas.cards).to_have_count(180)
    await expect(canvas.area.locator(".react-flow__edge")).to_have_count(168)


@every_screen
async def test_step_whose_card_is_not_drawn_is_found_by_its_name(
    pages: Pages, screen: Screen
) -> None:
    canvas = await Canvas.open(pages, screen, WIDE)
    page = canvas.page
    for name in ("n170", "n3"):  # the second while the panel of the first is open
        await expect(canvas.card(name)).not_to_be_in_viewport()
        await page.keyboard.press("Control+f")
        await expect(page.get_by_label("Name, id or task of a step")).to_be_focused()
        await page.keyboard.type(f"step {name}")
        await page.keyboard.press("Enter")
        await canvas.expect_chosen(name)
        await expect(canvas.card(name)).to_be_in_viewport(ratio=1)


@every_screen
@pytest.mark.parametrize("width", [1100, 768])
async def test_canvas_has_room_on_half_a_screen(pages: Pages, screen: Screen, width: int) -> None:
    canvas = await Canvas.open(pages, screen, CHAIN)
    await resize(canvas.page, (width, 800))
    box = await canvas.area.bounding_box()
    assert box is not None
    assert box["height"] >= 250
    mark = await canvas.area.get_by_text("React Flow").bounding_box()
    assert mark is not None
    sides = mark["x"] - box["x"], box["x"] + box["width"] - mark["x"] - mark["width"]
    assert min(sides) < 24, "the mark of the library floats in the middle"
    await canvas.card("a").click()
    await canvas.expect_chosen("a")


async def test_wires_end_at_their_sockets_near_and_far(pages: Pages) -> None:
    nodes = [
        text("a"),
        {"id": "agent", "type": "agent", "name": "Agent", "description": "Do it."},
        {"id": "if", "type": "conditional", "name": "If"},
        {"id": "tool", "type": "http_request", "name": "Tool"},
        {"id": "model", "type": "model", "name": "Model"},
        text("z"),
    ]
    wires = [
        ("a", "output", "agent", "input", "flow"),
        ("agent", "messages", "if", "input", "flow"),
        ("if", "false", "z", "input", "flow"),
        ("tool", "tools", "agent", "tools", "link"),
        ("model", "output", "agent", "model", "link"),
    ]
    edges = [
        {
            "id": f"{source}/{channel}:{output} {target}/{channel}:{port}",
            "source": source,
            "sourceHandle": output,
            "target": target,
            "targetHandle": port,
            "data": {"channel": channel},
        }
        for source, output, target, port, channel in wires
    ]
    canvas = await Canvas.open(pages, "editor", {"nodes": nodes, "edges": edges})
    for _ in range(2):
        away: list[float] = await canvas.page.evaluate(SOCKETS)
        assert len(away) == 2 * len(edges)
        assert max(away) < 1
        for _ in range(6):
            await canvas.page.keyboard.press("-")
        await canvas.view()
