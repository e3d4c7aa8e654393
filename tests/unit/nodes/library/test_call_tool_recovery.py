"""Steps that call a tool, when the process ends at any point: nothing acts twice that must not."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

import planwave
from planwave.errors import PlanwaveError
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.nested_graphs import FakeFlowStore, graph_document, node_document
from tests.support.nodes.node_context import services_with
from tests.support.recovery.crash_points import CrashPoint, HaltingProxy


class TakenOver:
    """An execution whose process ends at a point, and the process that takes it over."""

    def __init__(self, policy: Any = None, **tool: Any) -> None:
        self.keys: list[str] = []
        self._store = MemoryStore()
        self._registry = Registry(LIBRARY)
        self._registry.tools.register(Tool("act", "Acts.", {"type": "object"}, self._act, **tool))
        step = node_document("n", "call_tool", tool="act", arguments={"to": "Ada"})
        self._graph = graph_document(step if policy is None else {**step, "policy": policy})

    async def _act(self, arguments: Any, context: ToolCallContext) -> str:
        self.keys.append(context.idempotency_key)
        return f"acted {len(self.keys)} times"

    async def run(self, point: str) -> planwave.RunResult:
        """Run up to a point in one process, then in another to the end or to a question."""
        ending = HaltingProxy(self._store, CrashPoint.parse(point))
        run = self.begun(ending)

        async def go_on() -> None:
            with suppress(PlanwaveError):
                await run

        async with asyncio.TaskGroup() as group:
            group.create_task(go_on())
            await ending.has_ended.wait()
            result = await self.opened(run.execution_id).resume()
            ending.is_released.set()
        return result

    def begun(self, store: Any = None) -> planwave.Run:
        """Begin the run."""
        store = store or self._store
        services, _ = services_with(lambda request: [], recorder=store)
        return planwave.run(
            self._graph, registry=self._registry, store=store, services=services, check=False
        )

    def opened(self, execution_id: str) -> planwave.Run:
        """Open the run as another process."""
        services, _ = services_with(lambda request: [], recorder=self._store)
        return planwave.open(
            self._store, execution_id, services=services, registry=self._registry, check=False
        )


BEFORE_IT_BEGINS = ("before:record:1:begun",)
BEGUN = (
    "after:record:1:begun",
    "before:append:1:tool_call_start",
    "after:append:1:tool_call_start",
    "before:record:1:tool",
)
RECORDED = ("after:record:1:tool",)


@pytest.mark.parametrize("effect", ["once", "write", "read"])
@pytest.mark.parametrize("point", [*BEFORE_IT_BEGINS, *BEGUN, *RECORDED])
async def test_a_step_asks_only_where_nobody_knows_whether_its_tool_acted(
    effect: Any, point: str
) -> None:
    if (effect != "once" and "begun" in point) or (effect == "read" and "start" in point):
        return  # calls of this effect do not come to the point
    execution = TakenOver(effect=effect)
    result = await execution.run(point)
    has_acted = point == "before:record:1:tool"
    if effect == "once" and point in BEGUN:
        (request,) = result.requests
        asked: Any = request.request
        assert (asked["kind"], asked["tool"]["name"]) == ("interrupted", "act")
        assert (asked["value"], len(execution.keys)) == ({"to": "Ada"}, has_acted)
        return
    assert (result.status, len(set(execution.keys))) == ("completed", 1)
    assert len(execution.keys) == 1 + has_acted


@pytest.mark.parametrize(
    ("answer", "text", "acts"),
    [
        ({"decision": "run_again"}, "acted 2 times", 2),
        ({"decision": "give_result", "value": {"it": "did"}}, {"it": "did"}, 1),
        ({"decision": "fail"}, None, 1),
    ],
)
async def test_a_person_decides_about_a_call_that_was_cut_off(
    answer: Any, text: Any, acts: int
) -> None:
    execution = TakenOver(effect="once")
    result = await execution.run("before:record:1:tool")
    (request,) = result.requests
    ended = await result.run.answer(request.request_id, answer)
    assert len(execution.keys) == acts
    if text is None:
        assert ended.error is not None
        assert ended.error["code"] == "interrupted"
    else:
        assert ended.outputs["n"]["output"].value == text


async def test_an_approved_call_is_made_once_by_another_process_and_asked_about_once() -> None:
    execution = TakenOver(effect="once", approval="always")
    waiting = await execution.begun()
    (request,) = waiting.requests
    opened = execution.opened(waiting.execution_id)
    ended = await opened.answer(request.request_id, {"decision": "approve"})
    assert (ended.status, ended.requests, len(execution.keys)) == ("completed", (), 1)


async def test_an_author_who_says_once_is_asked_about_the_step_itself() -> None:
    execution = TakenOver(policy={"effect": "once"}, effect="read")
    result = await execution.run("before:record:1:tool")
    (request,) = result.requests
    assert (request.path, len(execution.keys)) == ("n", 1)


async def test_a_flow_goes_on_where_it_was_cut_off() -> None:
    mail = {**node_document("mail", "text", text="sent"), "policy": {"effect": "once"}}
    flow = graph_document(
        mail,
        node_document("ask", "approval", prompt="Go on?"),
        node_document("out", "end"),
        edges=[("mail", "ask"), ("ask", "out", "approve", "input")],
    )
    store = MemoryStore()
    services, _ = services_with(
        lambda request: [], recorder=store, flows=FakeFlowStore(work=[flow])
    )
    step = node_document("n", "call_tool", flow={"id": "work"})
    result = await planwave.run(
        graph_document(step), registry=Registry(LIBRARY), services=services, store=store
    )
    (request,) = result.requests
    assert request.path.endswith("/ask")
    ended = await result.run.answer(request.request_id, {"decision": "approve"})
    assert (ended.status, ended.text, ended.requests) == ("completed", "sent", ())
