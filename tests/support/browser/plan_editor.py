"""The editor of a plan, as browser tests use it: by the roles and names of its controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from playwright.async_api import Locator, Page, expect

from tests.support.browser.chromium import Pages
from tests.support.browser.steps import GOAL

EDGE_DATA: Final = {"channel": "flow", "type": "wide", "own": {"colour": "red", "list": [1, None]}}
"""Edge data with fields that planwave does not know."""
GRAPH: Final[Mapping[str, Any]] = {
    "nodes": [
        {"id": "facts", "type": "text", "name": "Facts", "data": {"text": "Water boils."}},
        {
            "id": "draft",
            "type": "agent",
            "name": "Draft",
            "description": "Do draft.",
            "data": {"provider": "openai"},
        },
        {"id": "other", "type": "text", "name": "Other", "data": {"text": "Ice floats."}},
    ],
    "edges": [{"id": "e1", "source": "facts", "target": "draft", "data": EDGE_DATA}],
}
_AS_WHEN_THE_TAB_IS_CLOSED: Final = (
    "() => void dispatchEvent(new Event('beforeunload', { cancelable: true }))"
)


async def create_plan(page: Page, graph: Mapping[str, Any] = GRAPH) -> str:
    """Make a plan over HTTP and give it a graph; return its id. The graph is revision 2."""
    made = await page.request.post("/api/plan", data={"prompt": GOAL})
    assert made.ok, await made.text()
    plan_id: str = (await made.json())["plan_id"]
    await patch_plan(page, plan_id, {"op": "replace_graph", "graph": dict(graph)})
    return plan_id


async def patch_plan(page: Page, plan_id: str, *operations: Mapping[str, Any]) -> None:
    """Change a plan as a program does, whatever it has become."""
    answer = await page.request.patch(
        f"/api/plans/{plan_id}",
        data={"operations": list(operations), "author": "api"},
        headers={"If-Match": "*"},
    )
    assert answer.ok, await answer.text()


class PlanEditor:
    """An open editor.

    Attributes:
        page: Its page.
        plan_id: The plan that it changes.
    """

    def __init__(self, page: Page, plan_id: str) -> None:
        self.page = page
        self.plan_id = plan_id

    @classmethod
    async def open(
        cls, pages: Pages, graph: Mapping[str, Any] = GRAPH, **options: Any
    ) -> PlanEditor:
        """Make a plan with a graph and open its editor; options are those of ``Pages.open``."""
        page = await pages.open(None, **options)
        return await cls(page, await create_plan(page, graph)).visit()

    async def visit(self) -> PlanEditor:
        await self.page.goto(f"/plans/{self.plan_id}")
        await expect(self.page.get_by_role("heading", level=1)).to_be_visible()
        return self

    def card(self, name: str) -> Locator:
        """The button of a step in the canvas or the table."""
        return self.page.locator("button[data-step]").filter(has_text=name)

    def socket(self, node_id: str, handle: str) -> Locator:
        """A port of a step in the canvas, such as ``flow:output``."""
        return self.page.locator(
            f'.react-flow__handle[data-nodeid="{node_id}"][data-handleid="{handle}"]'
        )

    @property
    def panel(self) -> Locator:
        """The form of the selected step."""
        return self.page.get_by_role("complementary")

    async def select(self, name: str) -> Locator:
        """Select a step; return its form."""
        await self.card(name).click()
        await expect(self.panel).to_have_attribute("aria-label", f"Settings of {name}")
        return self.panel

    async def add_step(self, node_type: str) -> None:
        """Add a step by keyboard."""
        await expect(self.page.locator("button[data-step]").first).to_be_visible()
        await self.page.keyboard.press("n")
        await expect(self.page.get_by_role("textbox", name="Find a type")).to_be_focused()
        await self.page.keyboard.type(node_type)
        await self.page.keyboard.press("Enter")

    async def is_uncovered(self, node_id: str) -> bool:
        """Whether nothing of the canvas stands above the four corners of a step."""
        step = self.page.locator(f'.react-flow__node[data-id="{node_id}"]')
        return await step.evaluate(
            """(step) => {
              const { left, right, top, bottom } = step.getBoundingClientRect();
              const over = [...document.querySelectorAll(".react-flow__panel, [role=toolbar]")]
                .map((each) => each.getBoundingClientRect());
              return !over.some((box) =>
                box.left < right && box.right > left && box.top < bottom && box.bottom > top);
            }"""
        )

    async def saved(self) -> dict[str, Any]:
        """Have everything saved, without the pause after a change; return the plan as the service has it."""
        await self.page.evaluate(_AS_WHEN_THE_TAB_IS_CLOSED)
        await expect(self.page.get_by_role("status").get_by_text("Saved")).to_be_visible()
        return await self.stored()

    async def stored(self) -> dict[str, Any]:
        """Return the plan as the service has it now."""
        answer = await self.page.request.get(f"/api/plans/{self.plan_id}")
        return dict(await answer.json())

    async def stored_node(self, node_id: str) -> dict[str, Any]:
        plan = await self.saved()
        (node,) = (node for node in plan["nodes"] if node["id"] == node_id)
        return dict(node)

    async def authors(self) -> list[tuple[int, str]]:
        """Return the number and the author of each revision, newest first."""
        answer = await self.page.request.get(f"/api/plans/{self.plan_id}/revisions")
        revisions: Sequence[dict[str, Any]] = (await answer.json())["revisions"]
        return [(each["revision"], each["author"]) for each in revisions]

    async def drag(self, start: Locator, end: Locator | tuple[float, float]) -> None:
        """Drag with the mouse, to an element or by some pixels."""
        x, y = await _middle(start)
        to_x, to_y = (x + end[0], y + end[1]) if isinstance(end, tuple) else await _middle(end)
        mouse = self.page.mouse
        await mouse.move(x, y)
        await mouse.down()
        await mouse.move((x + to_x) / 2, (y + to_y) / 2, steps=5)
        await mouse.move(to_x, to_y, steps=5)
        await mouse.up()


async def _middle(element: Locator) -> tuple[float, float]:
    """Return the middle of an element once the canvas has stopped moving it."""
    await element.hover()
    box = await element.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
