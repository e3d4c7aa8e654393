"""What a type says that its results depend on is compared as it was when the node ran."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.model import Graph
from planwave.graph.protocols import Suspension
from tests.support.engine import generic_nodes
from tests.support.engine.behaviors import runs_graph
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    GenericNode,
    MemoryJournal,
    result_with,
)
from tests.support.engine.recovered_runs import events_after_command, recovered
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.reuse.test_reuse import reuse_of, reused_paths

Inputs = Context = Any


class World:
    """Something outside that a node reads, and a log of the nodes that ran."""

    def __init__(self) -> None:
        self.price = 1
        self.ran: list[str] = []

    async def read(self, inputs: Inputs, context: Context) -> Any:
        self.ran.append(context.path)
        return result_with(self.price)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world on which the nodes ``p`` depend, wherever they are."""
    found = World()

    class Dependent(GenericNode):
        async def result_depends_on(self, data: Any, inputs: Inputs, context: Context) -> Any:
            return found.price if context.node_id == "p" else None

    monkeypatch.setattr(generic_nodes, "GenericNode", Dependent)
    return found


async def forked(graph: Graph, before: ExecutionHarness, **more: Any) -> ExecutionHarness:
    harness = ExecutionHarness(
        graph, before.behaviors, reuse=reuse_of(graph, before.stored, **more)
    )
    assert await harness.run() == "completed"
    return harness


IN_A_GRAPH = {"outer": runs_graph("k", parse_graph("p"))}
IN_TWO_GRAPHS = {
    "outer": runs_graph("k", parse_graph("mid")),
    "mid": runs_graph("k", parse_graph("p")),
}
PLACES: dict[str, tuple[Graph, dict[str, Any], str]] = {
    "the node": (parse_graph("a p z", "a>p", "p>z"), {}, "p"),
    "a linked node": (parse_graph("p z", "p~z"), {"z": "reads"}, "z"),
    "a node linked to a linked one": (parse_graph("p m z", "p~m", "m~z"), {"z": "reads"}, "z"),
    "a node in a graph": (parse_graph("outer"), IN_A_GRAPH, "outer[k]/p"),
    "a node in a graph in a graph": (parse_graph("outer"), IN_TWO_GRAPHS, "outer[k]/mid[k]/p"),
}


@pytest.mark.parametrize("is_retry", [False, True])
@pytest.mark.parametrize("place", PLACES)
@virtual_time
async def test_a_result_is_reused_only_while_what_it_depends_on_is_the_same(
    world: World, place: str, is_retry: bool
) -> None:
    graph, behaviors, path = PLACES[place]
    acts = {each: world.read if act == "reads" else act for each, act in behaviors.items()}
    before = ExecutionHarness(graph, {"p": world.read, **acts})
    assert await before.run() == "completed"
    assert world.ran == [path]
    world.ran.clear()
    same = await forked(graph, before, is_retry=is_retry)
    assert world.ran == []
    assert path in reused_paths(same)
    world.price = 2
    other = await forked(graph, same, is_retry=is_retry)
    assert world.ran == [path]
    assert path not in reused_paths(other)
    world.ran.clear()
    await forked(graph, other, is_retry=is_retry)
    assert world.ran == []


@virtual_time
async def test_a_value_kept_by_a_failed_node_is_used_only_while_it_holds(world: World) -> None:
    async def keeps(inputs: Inputs, context: Context) -> Any:
        async def read() -> Any:
            world.ran.append("read")
            return world.price

        kept = await context.runtime.once("price", read)
        if len(world.ran) < 2:
            raise NodeError("out of order")
        return result_with(kept)

    graph = parse_graph("p")
    before = ExecutionHarness(graph, {"p": keeps})
    assert await before.run() == "failed"
    world.price = 2
    after = await forked(graph, before, rerun=["p"], is_retry=True)
    assert after.execution.outputs["p"]["output"].value == 2


async def asks_with_the_price(inputs: Inputs, context: Context) -> Any:
    return Suspension({"for": context.path}, "seen")


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("is_loaded", [False, True])
@virtual_time
async def test_a_change_while_a_node_waits_makes_its_result_nobodys(
    world: World, changes: bool, is_loaded: bool
) -> None:
    graph = parse_graph("p")
    parks: dict[str, Any] = {"parks": "always"} if is_loaded else {}
    harness = ExecutionHarness(graph, {"p": asks_with_the_price}, journal=MemoryJournal(), **parks)
    if not is_loaded:
        harness.answer_after(2)
        harness.listeners.append(lambda e: change(e.type == "node.waiting"))

    def change(now: bool) -> None:
        world.price = 2 if changes and now else world.price

    await harness.run()
    stored = harness.stored
    if is_loaded:
        change(True)
        request_id = harness.request_id()
        stored = await events_after_command(
            harness, stored, lambda loaded: loaded.answer(request_id, "yes")
        )
        following = recovered(harness, stored)
        await following.run()
        stored = [*stored, *following.stored]
    (done,) = (e.data for e in stored if e.type == "node.completed")
    assert (done["depends_on"] == "") is changes


def changed_between(attempts: list[int], world: World) -> Callable[..., Any]:
    async def act(inputs: Inputs, context: Context) -> Any:
        attempts.append(world.price)
        if len(attempts) == 1:
            world.price = 2
            raise NodeError("try again", retryable=True)
        return result_with(world.price)

    return act


@virtual_time
async def test_the_result_of_a_later_attempt_depends_on_what_that_one_saw(world: World) -> None:
    graph = parse_graph("p")
    policy = graph.nodes[0].policy
    retried = graph.nodes[0]._replace(
        policy=policy._replace(retry=dataclasses.replace(policy.retry, attempts=2))
    )
    graph = Graph((retried,), ())
    seen: list[int] = []
    before = ExecutionHarness(graph, {"p": changed_between(seen, world)})
    assert await before.run() == "completed"
    after = await forked(graph, before)
    assert (seen, reused_paths(after)) == ([1, 2], {"p"})
