"""Calls of tools when the process ends in the middle: nothing acts twice that must not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import planwave
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.storage.call_documents import calls_by_node
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.agent_runs import Kit, agent_graph, calls, run_agents, scripted, tool
from tests.support.nodes.nested_graphs import (
    FakeFlowStore,
    graph_document,
    node_document,
    registry_with,
    run_to_end,
)
from tests.support.nodes.node_context import services_with
from tests.support.virtual_loop import virtual_time


class Crash:
    """A tool whose first calls never return, and processes that take over.

    Args:
        effect: The effect of the tool.
        cut_off: The number of its calls that never return.
    """

    def __init__(self, effect: Any, cut_off: int = 1) -> None:
        self.keys: list[str] = []
        self._acted = [asyncio.Event() for _ in range(cut_off)]
        tool = Tool("act", "Acts.", {"type": "object"}, self._call, effect=effect)
        reply = scripted(calls(("act", {})), "Done.")
        self._store = MemoryStore()
        self._services, self.models = services_with(lambda request: [reply(request)])
        self._registry = registry_with(Kit([tool]))
        self._run = planwave.run(
            agent_graph(),
            registry=self._registry,
            store=self._store,
            services=self._services,
            check=False,
        )

    async def _call(self, arguments: Any, context: ToolCallContext) -> str:
        self.keys.append(context.idempotency_key)
        if len(self.keys) <= len(self._acted):
            self._acted[len(self.keys) - 1].set()
            await asyncio.Event().wait()
        return f"acted {len(self.keys)} times"

    async def recorded_calls(self) -> list[Any]:
        """Return the calls as the document of the run shows them."""
        run_id = self._run.execution_id
        shown = calls_by_node((await self._store.calls([run_id])).get(run_id, []))
        return [call for calls in shown.values() for call in calls]

    async def resumed(self, run: planwave.Run | None = None) -> planwave.RunResult:
        """Run until the tool has acted; continue as another process, up to the end or a question.

        Args:
            run: What goes on with the run; None begins it.
        """
        cut_off = self._run if run is None else run

        async def go_on() -> None:
            await cut_off

        async with asyncio.TaskGroup() as group:
            running = group.create_task(go_on())
            await self._acted[len(self.keys)].wait()
            opened = planwave.open(
                self._store,
                self._run.execution_id,
                services=self._services,
                registry=self._registry,
                check=False,
            )
            result = await opened.resume()
            running.cancel()
        return result


@pytest.mark.parametrize("effect", ["read", "write", "none"])
async def test_call_that_was_cut_off_is_made_again_with_the_same_key(effect: str) -> None:
    crash = Crash(effect)
    result = await crash.resumed()
    assert result.text == "Done."
    first, again = crash.keys
    assert first == again
    assert crash.models.requests[-1].messages[-1].text == "acted 2 times"


@pytest.mark.parametrize(
    ("answer", "told", "acts"),
    [
        ({"decision": "run_again"}, "acted 2 times", 2),
        ({"decision": "give_result", "value": "it did"}, "it did", 1),
    ],
)
async def test_person_decides_about_a_call_that_must_not_happen_twice(
    answer: dict[str, str], told: str, acts: int
) -> None:
    crash = Crash("once")
    result = await crash.resumed()
    (request,) = result.requests
    asked: Any = request.request
    assert (asked["kind"], asked["tool"]["name"]) == ("interrupted", "act")
    assert len(crash.keys) == 1
    result = await result.run.answer(request.request_id, answer)
    assert (result.text, len(crash.keys)) == ("Done.", acts)
    assert crash.models.requests[-1].messages[-1].text == told
    assert [call["result"] for call in await crash.recorded_calls()] == [told]


async def test_person_lets_a_call_fail_that_was_cut_off() -> None:
    crash = Crash("once")
    result = await crash.resumed()
    (request,) = result.requests
    result = await result.run.answer(request.request_id, {"decision": "fail"})
    assert result.error is not None
    assert result.error["code"] == "interrupted"
    assert len(crash.keys) == 1
    (call,) = await crash.recorded_calls()
    assert call["error"]["code"] == "interrupted"


async def test_person_decides_each_time_that_a_call_was_cut_off() -> None:
    crash = Crash("once", cut_off=2)
    result = await crash.resumed()
    (request,) = result.requests
    run = result.run.answer(request.request_id, {"decision": "run_again"})
    result = await crash.resumed(run)
    assert len(crash.keys) == 2
    (again,) = result.requests
    result = await result.run.answer(again.request_id, {"decision": "run_again"})
    assert (result.text, len(crash.keys)) == ("Done.", 3)


async def test_approval_inside_a_flow_that_must_not_run_twice_is_the_only_question() -> None:
    mail = {**node_document("mail", "text", text="sent"), "policy": {"effect": "once"}}
    flow = graph_document(
        mail,
        node_document("ask", "approval", prompt="Go on?"),
        node_document("out", "end"),
        edges=[("mail", "ask"), ("ask", "out", "approve", "input")],
    )
    about = {"name": "work", "description": "Works.", "flow": {"id": "work"}}
    graph = agent_graph(kit_of=())
    graph["nodes"].append(node_document("flow", "flow_tool", **about))
    graph["edges"].append({
        "source": "flow", "sourceHandle": "tools", "target": "a", "targetHandle": "tools",
        "data": {"channel": "link"},
    })  # fmt: skip
    reply, store = scripted(calls(("work", {})), "Done."), MemoryStore()
    services, _ = services_with(
        lambda request: [reply(request)], recorder=store, flows=FakeFlowStore(work=[flow])
    )
    result = await run_to_end(graph, services=services, store=store)
    (request,) = result.requests
    result = await result.run.answer(request.request_id, {"decision": "approve"})
    assert (result.text, result.requests) == ("Done.", ())


@virtual_time
async def test_time_of_a_call_counts_while_another_one_waits_for_a_person() -> None:
    async def act() -> None:
        await asyncio.sleep(60)

    agent = {**node_document("a", "agent", userPrompt="Go"), "policy": {"timeoutS": 30}}
    script = scripted(calls(("ask", {}), ("act", {})), "Done.")
    run = await run_agents(
        agent_graph(agent), script, tool("ask", approval="always"), tool("act", act)
    )
    assert run.result.error is not None
    assert run.result.error["code"] == "node-timeout"
