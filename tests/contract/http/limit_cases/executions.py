"""Limits of executions and their queue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent
from planwave.principals import Principal, acting_as
from planwave.service.executions.session import ExecutionSession
from planwave.service.fair_queue import FairQueue
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.sqlite.store import SqliteStore
from tests.contract.http.limit_cases.graphs import node_ids
from tests.contract.http.limit_cases.registry import (
    Refusal,
    SizedNode,
    SlowNode,
    TellingNode,
    case,
    graph_of,
    refusal_in_events,
    run_graph,
)
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies


@case("recoveries", 3)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with Service(dependencies(types=[HeldNode()], limits=limits)) as service:
        created = await service.executions.create(make_plan(graph_of("held", "h")))
        store, execution_id = service._store, created.execution_id
        for _ in range(amount - 1):
            await store.claim(execution_id)
        await ExecutionSession(service._dependencies, execution_id, is_recovery=True).load()
    return None


@case("recoveries_per_s", 2, at=2, past=3, code="slower", mentions=[], virtual=True)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with Service(dependencies(types=[HeldNode()], limits=limits)) as service:
        for _ in range(5):
            created = await service.executions.create(make_plan(graph_of("held", "h")))
            await service._store.claim(created.execution_id, queued=True)
        assert await service.recover() == 5
        await asyncio.sleep(0.99)
        left = await service.executions.list(status="starting")
        return None if 5 - len(left) >= amount else Refusal("slower")


async def _queued(limits: Limits, amount: int) -> Refusal | None:
    held = HeldNode()
    async with Service(dependencies(types=[held], limits=limits)) as service:
        plan = make_plan(graph_of("held", "h"))
        created: list[str] = []
        try:
            for _ in range(amount):
                created.append((await service.executions.execute(plan)).execution_id)
        finally:
            held.release.set()
            for execution_id in created:
                await service.executions.wait(execution_id)
    return None


@case(
    "concurrent_executions",
    2,
    code="queue-full",
    mentions=["0 executions wait"],
    queued_executions=0,
)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _queued(limits, amount)


@case(
    "queued_executions", 2, code="queue-full", mentions=["2 executions wait", "queued_executions"],
    concurrent_executions=1,
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _queued(limits, amount + 1)


@case(
    "waiting_executions", 2, code="quota-exceeded", mentions=["2 executions", "waiting_executions"]
)
async def _(limits: Limits, amount: int) -> Refusal | None:
    """A token has so many executions that wait for a person, beside one that runs; others have more."""
    held = HeldNode()
    asks = Node("a", "approval", "A", data={"prompt": "Well?"})
    async with Service(dependencies(types=[held], limits=limits)) as service:
        for _ in range(amount + 1):
            await service.executions.create(make_plan(graph_of("held", "h")))
        with acting_as(Principal("token", "another")):
            await service.executions.create(make_plan(graph_of("held", "h")))
        with acting_as(Principal("token", "one")):
            running = await service.executions.execute(make_plan(graph_of("held", "h")))
            await held.started.wait()
            try:
                for _ in range(amount):
                    paused = await service.executions.execute(make_plan(make_graph(asks)))
                    assert (await service.executions.wait(paused.execution_id)).status == "paused"
            finally:
                held.release.set()
                await service.executions.wait(running.execution_id)
    return None


@case("forks", 2)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with Service(dependencies(limits=limits)) as service:
        first = await service.executions.execute(make_plan(make_graph(text_node("a"))))
        await service.executions.wait(first.execution_id)
        for number in range(amount):
            await service.executions.fork(first.execution_id, rerun=["a"], start=number % 2 == 0)
    return None


@case("burst_executions", 2, code="waits", mentions=[], concurrent_executions=1)
async def _(limits: Limits, amount: int) -> Refusal | None:
    """One principal has the only place; so many others come."""
    queue = FairQueue(limits.concurrent_executions, limits.burst_executions)
    for number in range(amount + 1):
        queue.add(f"e{number}", f"principal {number}")
    while queue.next() is not None:
        pass
    return Refusal("waits") if queue.waiting else None


@case("drain_s", 25, at=24.9, past=25.1, code="left-resumable", mentions=[], virtual=True)
async def _(limits: Limits, amount: float) -> Refusal | None:
    takes = SlowNode(amount)
    async with Service(dependencies(types=[takes], limits=limits)) as service:
        plan = make_plan(graph_of("takes", "t"))
        execution_id = (await service.executions.execute(plan)).execution_id
        await takes.started.wait()
        await service.drain()
        kinds = [event.type for event in await service.executions.events(execution_id)]
    return None if "node.completed" in kinds else Refusal("left-resumable")


@case("parallel_nodes", 3, code="waits", mentions=[], virtual=True)
async def _(limits: Limits, amount: int) -> Refusal | None:
    takes = SlowNode(1)
    await run_graph(limits, graph_of("takes", *(f"n{i}" for i in range(amount))), takes)
    assert takes.most <= limits.parallel_nodes
    return None if takes.most == amount else Refusal("waits")


@case(
    "node_timeout_s", 60, at=59.9, past=60.1, code="node-timeout", mentions=["60"],
    run_timeout_s=1_000, virtual=True,
)  # fmt: skip
async def _(limits: Limits, amount: float) -> Refusal | None:
    events = await run_graph(limits, graph_of("takes", "t"), SlowNode(amount))
    return refusal_in_events(events, "node.failed")


@case(
    "run_timeout_s", 90, at=89.9, past=90.1, code="run-timeout", mentions=["90"],
    node_timeout_s=1_000, virtual=True,
)  # fmt: skip
async def _(limits: Limits, amount: float) -> Refusal | None:
    events = await run_graph(limits, graph_of("takes", "t"), SlowNode(amount))
    return refusal_in_events(events, "execution.failed")


@case("largest_result_bytes", 100)
async def _(limits: Limits, amount: int) -> Refusal | None:
    events = await run_graph(limits, graph_of("gives", "a"), SizedNode(amount))
    return refusal_in_events(events, "node.failed")


@case("event_bytes", 100)
async def _(limits: Limits, amount: int) -> Refusal | None:
    events = await run_graph(limits, graph_of("tells", "t"), TellingNode(amount))
    return refusal_in_events(events, "node.failed")


@case("run_state_bytes", 100)
async def _(limits: Limits, amount: int) -> Refusal | None:
    first, second = SizedNode(50), SizedNode(amount - 50)
    second.node_type = "also"
    graph = make_graph(Node("a", "gives", "a"), Node("b", "also", "b"), edges=[("a", "b")])
    return refusal_in_events(await run_graph(limits, graph, first, second), "execution.failed")


@case("events", 30, mentions=["events", "30", "31"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    """A text node makes two events, and one that is given its result only one."""
    count, is_odd = divmod(amount - 4, 2)
    graph = make_graph(*map(text_node, node_ids(count + is_odd)))
    inputs = {"n0": {"output": "given"}} if is_odd else None
    events = await run_graph(limits, graph, inputs=inputs)
    assert (
        len(await run_graph(NO_RATE_LIMITS, graph, inputs=inputs)) == amount + 1
    )  # the last one apart
    return refusal_in_events(events, "execution.failed")


def files_in(place: Path) -> list[Path]:
    return [each for each in place.rglob("*") if each.is_file()]


@case("node_result_bytes", 500, code="kept-as-a-file", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    with TemporaryDirectory() as directory:
        location = Path(directory)
        store = SqliteStore.open(location, artifact_bytes=limits.node_result_bytes)
        await run_graph(
            limits, graph_of("gives", "a"), SizedNode(amount), store=store, directory=location
        )
        files = files_in(location / "artifacts")
    return Refusal("kept-as-a-file") if files else None


async def _spend(limits: Limits, usage: dict[str, float]) -> Refusal | None:
    """Run a node that uses this much of the budget in one call, as it has announced."""

    class SpendingNode:
        node_type = "spends"

        async def execute(self, data: Any, inputs: Any, context: FlowContext) -> Any:
            assert context.budget is not None
            reservation = await context.budget.reserve(usage)
            told = {"input_tokens": usage.get("tokens", 0), "cost_usd": usage.get("usd")}
            yield NodeEvent(context.node_id, "spends", "usage", context.run_id, told)
            reservation.release()
            yield ExecutionResult({"output": DataValue("any", None)})

    parts = dependencies(types=[SpendingNode()], limits=limits)
    async with Service(parts) as service:
        record = await service.executions.execute(make_plan(graph_of("spends", "s")))
        async with (
            asyncio.timeout(30),
            service.executions.subscribe(record.execution_id) as reading,
        ):
            async for batch in reading:
                for event in batch.events:
                    if event.type == "execution.paused":
                        return Refusal("paused", str(event.data["request"]["message"]))
    return None


@case("budget_tokens", 5_000, code="paused", mentions=["5,000 tokens", "may use 5,001 tokens"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _spend(limits, {"tokens": amount})


@case("budget_usd", 2, at=2, past=2.5, code="paused", mentions=["$2.00", "may use $2.50"])
async def _(limits: Limits, amount: float) -> Refusal | None:
    return await _spend(limits, {"usd": amount})


@case("links", 2)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with Service(dependencies(limits=limits)) as service:
        created = await service.executions.create(make_plan(make_graph(text_node("a"))))
        for _ in range(amount):
            await service.links.create(created.execution_id, "result")
    return None


@case(
    "answer_link_hours",
    2,
    at=2,
    past=2.1,
    code="invalid-link",
    mentions=["7200", "answer_link_hours"],
)
async def _(limits: Limits, amount: float) -> Refusal | None:
    asks = Node("a", "approval", "A", data={"prompt": "Well?"})
    async with Service(dependencies(limits=limits)) as service:
        paused = await service.executions.execute(make_plan(make_graph(asks)))
        await service.executions.wait(paused.execution_id)
        (request,) = await service.executions.requests(paused.execution_id)
        await service.links.create(
            paused.execution_id, "request", request_id=request.request_id, lifetime_s=amount * 3_600
        )
    return None
