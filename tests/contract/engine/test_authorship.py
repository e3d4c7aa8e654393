"""Who wrote a plan, and which flows it may run, in every execution that comes out of another one.

Each way to get an execution out of another one is a row, tried in the same process and after it ended.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import planwave
from planwave.graph.model import Node
from planwave.graph.operations import ReplaceGraph
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import ExecutionResult
from planwave.graph.reading.documents import read_graph
from planwave.nodes.library import LIBRARY
from planwave.principals import Principal, acting_as
from planwave.service.executions import execution_service
from planwave.service.flows.flow_queries import FlowRef
from planwave.service.flows.flow_service import FlowResolver
from planwave.service.library import sources
from planwave.service.service import Service
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_edge, make_graph, make_plan, text_node
from tests.support.llm.fake_providers import DEFAULT_LIMITS, library_registry
from tests.support.nodes.node_context import services_with
from tests.support.service.dependencies import FixedPlanner, dependencies
from tests.support.storage.either_database import Place
from tests.unit.service.executions.test_commands import opened

POSTS = {
    "nodes": [{"id": "f", "type": "fetch", "data": {"url": "http://x.test/", "method": "POST"}}],
    "edges": [],
}


class Carries:
    """Runs a graph that stands nowhere in the plan; waits before that while it is ``held``."""

    node_type = "carries"

    def __init__(self) -> None:
        self.held = False
        self.begun = asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.begun.set()
        if self.held:
            await asyncio.Event().wait()
        await context.runtime.run_graph("inside", read_graph(POSTS)[0], {})
        return ExecutionResult({})


GRAPH = make_graph(text_node("a", "one"), Node("c", "carries", "C"), edges=[make_edge("a", "c")])
EDITED = make_graph(text_node("a", "two"), Node("c", "carries", "C"), edges=[make_edge("a", "c")])


class Begun(NamedTuple):
    """An execution of an access token, of a plan that a model wrote."""

    plan_id: str
    execution_id: str
    flow_id: str


async def begin(service: Service, work: Carries, state: str) -> Begun:
    """Begin an execution and bring it into a state: ``ended``, ``asking``, ``created`` or ``cut off``."""
    flow = await service.flows.create("own", graph=EDITED.to_document())
    token = await service.access_tokens.create("partner", ["run"], [flow.plan_id])
    plan = await service.plans.create("do it")
    work.held = state == "cut off"
    with acting_as(Principal("token", token.record.token_id, "partner")):
        if state == "created":
            record = await service.executions.create(plan.plan_id)
        else:
            record = await service.executions.execute(
                plan.plan_id, require_approval=state == "asking"
            )
    if state == "cut off":
        await work.begun.wait()
        work.held = False
    elif state != "created":
        await service.executions.wait(record.execution_id)
    return Begun(plan.plan_id, record.execution_id, flow.plan_id)


async def fork(service: Service, begun: Begun) -> str:
    return (await service.executions.fork(begun.execution_id, rerun=["c"])).execution_id


async def changed_fork(service: Service, begun: Begun) -> str:
    changes = {"a": {"data": {"text": "two"}}}
    return (await service.executions.fork(begun.execution_id, changes=changes)).execution_id


async def fork_of_a_fork(service: Service, begun: Begun) -> str:
    first = await fork(service, begun)
    await service.executions.wait(first)
    return await fork(service, begun._replace(execution_id=first))


async def retry(service: Service, begun: Begun) -> str:
    return (await service.executions.retry(begun.execution_id)).execution_id


async def edit(service: Service, begun: Begun, value: Any = None) -> str:
    (asked,) = await service.executions.requests(begun.execution_id)
    answer = {"decision": "edit", "value": value or EDITED.to_document()}
    edited = await service.executions.answer(begun.execution_id, asked.request_id, answer)
    await service.executions.wait(edited.execution_id)
    (asked,) = await service.executions.requests(edited.execution_id)
    await service.executions.answer(edited.execution_id, asked.request_id, {"decision": "approve"})
    return edited.execution_id


async def edit_of_the_stored_plan(service: Service, begun: Begun) -> str:
    change = ReplaceGraph(EDITED.to_document())
    await service.plans.edit(begun.plan_id, [change], expected=None)
    return await edit(service, begun, {"plan_hash": graph_hash(EDITED)})


async def approve(service: Service, begun: Begun) -> str:
    (asked,) = await service.executions.requests(begun.execution_id)
    await service.executions.answer(begun.execution_id, asked.request_id, {"decision": "approve"})
    return begun.execution_id


async def start(service: Service, begun: Begun) -> str:
    return (await service.executions.start(begun.execution_id)).execution_id


async def recover(service: Service, begun: Begun) -> str:
    await service.recover()
    async with asyncio.timeout(60):
        while not (await service.executions.state(begun.execution_id)).is_over:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return begun.execution_id


class Way(NamedTuple):
    """How an execution comes out of another one.

    Attributes:
        state: The state of the one before; see ``begin``.
        take: Does it; returns the id of the execution.
        made_by: The function of the code that makes the new execution; None where none is made.
        next_process: Whether only a later process can do it.
    """

    state: str
    take: Callable[[Service, Begun], Awaitable[str]]
    made_by: str | None = None
    next_process: bool = False


WAYS = {
    "fork": Way("ended", fork, "_create_fork"),
    "changed fork": Way("ended", changed_fork, "_create_fork"),
    "fork of a fork": Way("ended", fork_of_a_fork, "_create_fork"),
    "retry": Way("ended", retry, "_create_fork"),
    "edit": Way("asking", edit, "_create"),
    "edit of the stored plan": Way("asking", edit_of_the_stored_plan, "_create"),
    "approval": Way("asking", approve),
    "start": Way("created", start),
    "recovery": Way("cut off", recover, next_process=True),
}


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("name", WAYS)
async def test_what_comes_out_of_an_execution_has_its_author_and_its_flows(
    name: str, reopened: bool, place: Place
) -> None:
    way, work = WAYS[name], Carries()
    model = FixedPlanner(replace(make_plan(GRAPH), provider="openai"))
    async with AsyncExitStack() as first:
        service = await first.enter_async_context(opened(place, GRAPH, work, planner=model))
        begun = await begin(service, work, way.state)
        if reopened or way.next_process:
            await first.aclose()
            service = await first.enter_async_context(opened(place, GRAPH, work, planner=model))
        execution_id = await way.take(service, begun)
        assert (execution_id == begun.execution_id) == (way.made_by is None)
        await service.executions.wait(execution_id)
        expect_the_same(await service.executions.events(execution_id), begun)


def expect_the_same(events: Any, begun: Begun) -> None:
    """Expect author and flows of the first execution, and that the graph inside is refused."""
    assert events[0].data.get("written_by") == "model"
    assert events[0].data.get("flows") == [begun.flow_id]
    codes = [(e.path, e.data["error"]["code"]) for e in events if e.type == "node.failed"]
    assert codes == [("c", "type-not-allowed")]


LIBRARY_WAYS: dict[str, tuple[str, Callable[[planwave.Run], planwave.Run], str | None]] = {
    "fork": ("ended", lambda run: run.fork(rerun=["c"]), "create_fork"),
    "changed fork": ("ended", lambda run: run.fork(set={"a.text": "two"}), "create_fork"),
    "retry": ("ended", lambda run: run.retry(), "create_fork"),
    "start": ("created", lambda run: run.resume(), None),
    "recovery": ("cut off", lambda run: run.resume(), None),
}


@pytest.mark.parametrize("name", LIBRARY_WAYS)
async def test_so_has_what_a_program_makes_of_it(name: str, place: Place) -> None:
    state, take, _ = LIBRARY_WAYS[name]
    work = Carries()
    model = FixedPlanner(replace(make_plan(GRAPH), provider="openai"))
    async with opened(place, GRAPH, work, planner=model) as service:
        begun = await begin(service, work, state)
    store = place.open()
    services, _ = services_with(lambda _: [], planner=None)
    registry = planwave.Registry([*LIBRARY, work])
    stored = planwave.open(
        store, begun.execution_id, registry=registry, services=services, check=False
    )
    try:
        await stored  # loads it
        run = take(stored)
        await run
        expect_the_same(await store.events(run.execution_id), begun)
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("module", "makes", "entries"),
    [
        (execution_service, "_persist", {each.made_by for each in WAYS.values()}),
        (sources, "_create", {each[2] for each in LIBRARY_WAYS.values()} | {"new_run"}),
    ],
)
def test_every_way_is_a_row(module: Any, makes: str, entries: set[str | None]) -> None:
    """``new_run`` begins one: it comes out of no other."""
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    found = {
        outer.name
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        for call in ast.walk(outer)
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == makes
    }
    assert found == entries - {None}


async def test_the_flows_of_an_ancestor_are_looked_up_as_it_did() -> None:
    """A name that means one of the token's flows means the same where its results are reused."""
    store, registry = MemoryStore(), library_registry()
    services, _ = services_with(lambda _: [])
    flows = FlowResolver(store, registry, DEFAULT_LIMITS)
    found = replace(services, flows=flows)
    runs = make_graph(Node("i", "inner", "I", data={"flow": {"name": "g"}}), text_node("z", "z"))
    async with Service(dependencies(store=store, node_services=lambda _: found)) as service:
        flow = await service.flows.create("f", graph=runs.to_document())
        own = await service.flows.create("g", graph=make_graph(text_node("t", "own")).to_document())
        made = await service.access_tokens.create("n", ["run"], [flow.plan_id, own.plan_id])
        with acting_as(Principal("token", made.record.token_id, "n")):
            first = await service.executions.execute(FlowRef(flow.plan_id))
        await service.executions.wait(first.execution_id)
        fork = await service.executions.fork(first.execution_id, rerun=["z"])
        await service.executions.wait(fork.execution_id)
        events = await service.executions.events(fork.execution_id)
        assert [e.path for e in events if "reused" in e.data] == ["i"]
        node = (await service.executions.state(fork.execution_id)).nodes["i"]
        assert (node.outputs or {})["output"]["value"] == "own"
