"""The events of agents, in their order: what every consumer of a stream may rely on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

import planwave
from planwave.events import Event
from planwave.events.logs.typed_log import execution_log_entries
from planwave.providers.protocols import Delta, ModelReply, ModelRequest, ToolCall, Usage
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.agent_runs import Kit, agent_graph, calls, scripted, tool
from tests.support.nodes.nested_graphs import node_document, registry_with
from tests.support.nodes.node_context import services_with

USAGE = Usage(3, 2, 0.5)


def summary(event: Event) -> str:
    """Return path and type of an event; of the calls of tools, the call and the depth too."""
    kind, call = event.type, ""
    if kind == "node.event":
        kind, data = event.data["event_type"], event.data["data"]
        if "_call_" in kind:
            call = f" {data['call_id']} of {data['parent_call_id']} at {data['depth']}"
    return f"{event.path or ''} {kind}{call}".strip()


async def events_of(
    graph: dict[str, Any],
    reply: Callable[[ModelRequest], list[Any]],
    *tools: Any,
    answer: Any = None,
) -> list[str]:
    """Return the events of the nodes of a run, its questions answered."""
    services, _ = services_with(reply)
    store = MemoryStore()
    built = planwave.build(graph, registry=registry_with(Kit(tools)))
    run = planwave.run(built, store=store, services=services, check=False)
    result = await run
    for request in result.requests:
        result = await run.answer(request.request_id, answer)
    return [summary(each) for each in await store.events(run.execution_id) if each.path]


def says(*replies: Any) -> Callable[[ModelRequest], list[Any]]:
    reply = scripted(*replies)
    return lambda request: [reply(request)]


BEGINNING = ["a node.started", "a prompt"]
ROUND = ["a tool_call_start c1 of None at 0", "a tool_call_end c1 of None at 0", "a usage"]


async def test_plain() -> None:
    assert await events_of(agent_graph(), says("Hi."), tool("add")) == [
        *BEGINNING, "a usage", "a node.completed"
    ]  # fmt: skip


async def test_reasoning_is_streamed_before_the_text() -> None:
    def reply(request: ModelRequest) -> list[Any]:
        return [Delta("Hm.", "reasoning"), "Hi."]

    services, _ = services_with(reply)
    run = planwave.run(agent_graph(kit_of=()), registry=registry_with(), services=services)
    deltas = [event.data async for event in run if event.type == "node.delta"]
    assert [(each["kind"], each["text"]) for each in deltas] == [
        ("reasoning", "Hm."), ("text", "Hi.")
    ]  # fmt: skip


async def test_one_call() -> None:
    script = says(calls(("add", {})), "Hi.")
    assert await events_of(agent_graph(), script, tool("add")) == [
        *BEGINNING, "a usage", *ROUND, "a node.completed"
    ]  # fmt: skip


async def test_parallel_calls_start_in_their_order_and_end_as_they_end() -> None:
    second_ended = asyncio.Event()

    async def act(which: int) -> int:
        if which == 1:
            await second_ended.wait()
        else:
            second_ended.set()
        return which

    script = says(calls(("act", {"which": 1}), ("act", {"which": 2})), "Hi.")
    assert await events_of(agent_graph(), script, tool("act", act)) == [
        *BEGINNING,
        "a usage",
        "a tool_call_start c1 of None at 0",
        "a tool_call_start c2 of None at 0",
        "a tool_call_end c2 of None at 0",
        "a tool_call_end c1 of None at 0",
        "a usage",
        "a node.completed",
    ]


@pytest.mark.parametrize(
    ("decision", "after"),
    [("approve", ROUND), ("reject", ["a tool_call_error c1 of None at 0", "a usage"])],
)
async def test_approval(decision: str, after: list[str]) -> None:
    script = says(calls(("add", {})), "Hi.")
    kit = tool("add", approval="always")
    assert await events_of(agent_graph(), script, kit, answer={"decision": decision}) == [
        *BEGINNING,
        "a usage",
        "a run_graph",
        "a[approve-1-0] wave.started",
        "a[approve-1-0]/add node.started",
        "a[approve-1-0]/add node.waiting",
        "a node.parked",
        "a[approve-1-0]/add node.answered",
        "a node.unparked",
        "a prompt",
        "a usage",
        "a[approve-1-0]/add node.completed",
        "a[approve-1-0] wave.completed",
        *after,
        "a node.completed",
    ]


async def test_agent_that_another_one_calls() -> None:
    lead = node_document("a", "agent", userPrompt="Go")
    member = {**node_document("m", "agent", userPrompt="{{ input }}"), "name": "M"}

    def reply(request: ModelRequest) -> list[Any]:
        if request.prompt == "Look.":
            return ["Seen."]
        told = any(turn.role == "tool" for turn in request.messages)
        return ["Hi."] if told else [calls(("delegate_M", {"task": "Look."}))]

    events = await events_of(agent_graph(lead, member, edges=[("m", "a")], kit_of=()), reply)
    (inside,) = {each.split("/")[0] for each in events if "/m" in each}
    assert events == [
        *BEGINNING,
        "a usage",
        "a subagent_call_start c1 of None at 0",
        "a run_graph",
        f"{inside}/a node.completed",
        f"{inside} wave.started",
        f"{inside}/m node.started",
        f"{inside}/m prompt",
        f"{inside}/m usage",
        f"{inside}/m node.completed",
        f"{inside} wave.completed",
        "a subagent_call_end c1 of None at 0",
        "a usage",
        "a node.completed",
    ]


async def test_log_of_agents_that_other_ones_call() -> None:
    """The fields of a call of an agent in ``format=log`` are those that AgentFlow has."""
    agents = [
        node_document("a", "agent", userPrompt="Go"),
        {**node_document("m", "agent", userPrompt="{{ input }}"), "name": "Mid"},
        {**node_document("l", "agent", userPrompt="{{ input }}", maxSteps=1), "name": "Leaf"},
    ]

    def reply(request: ModelRequest) -> list[Any]:
        told = any(turn.role == "tool" for turn in request.messages)
        (name,) = (each.name for each in request.tools)
        return ["Done."] if told else [calls((name, {"task": f"For {name}."}))]

    services, _ = services_with(reply)
    store = MemoryStore()
    graph = agent_graph(*agents, edges=[("m", "a"), ("l", "m")], kit_of=("l",))
    built = planwave.build(graph, registry=registry_with(Kit([tool("t")])))
    run = planwave.run(built, store=store, services=services, check=False)
    await run
    entries = execution_log_entries(await store.events(run.execution_id))
    found = [
        (entry.node_id.count("["), entry.type, json.loads(entry.content))
        for entry in entries
        if entry.type.startswith("subagent")
    ]
    mid = {"parentNodeId": "a", "subagentNodeId": "m", "subagentName": "Mid", "callId": "c1",
           "depth": 1}  # fmt: skip
    leaf = {**mid, "subagentNodeId": "l", "subagentName": "Leaf", "depth": 2, "parentCallId": "c1"}
    start, end, error = (f"subagent_call_{each}" for each in ("start", "end", "error"))
    message = found[2][2].pop("message")
    assert "after 1 replies" in message
    assert found == [
        (0, start, {"type": start, **mid, "message": "For delegate_Mid."}),
        (1, start, {"type": start, **leaf, "message": "For delegate_Leaf."}),
        (1, error, {"type": error, **leaf}),
        (0, end, {"type": end, **mid}),
    ]


async def test_cancellation_in_a_call() -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    call = ToolCall("c1", "hang", "{}")
    services, _ = services_with(
        lambda _: [ModelReply("", "openai", "m", "stop", USAGE, tool_calls=(call,))]
    )
    store = MemoryStore()
    built = planwave.build(agent_graph(), registry=registry_with(Kit([tool("hang", hang)])))
    run = planwave.run(built, store=store, services=services, check=False)
    async with asyncio.TaskGroup() as group:

        async def follow() -> None:
            await run

        group.create_task(follow())
        await begun.wait()
        run.cancel()
    events = [summary(each) for each in await store.events(run.execution_id)]
    assert events[-4:] == [
        "a tool_call_start c1 of None at 0",
        "a node.cancelled",
        "wave.completed",
        "execution.cancelled",
    ]
