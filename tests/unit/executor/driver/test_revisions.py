"""Changes of a running graph by hand, after a stop, and beside cancels of nodes."""

from __future__ import annotations

import asyncio
from typing import Any

from planwave.graph.editing.revision import graph_change
from planwave.graph.model import Graph
from tests.support.engine.behaviors import asks, returns_after
from tests.support.engine.generic_nodes import ExecutionHarness
from tests.support.engine.revised_runs import request_about
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_plan_requests import (
    APPROVE,
    Writer,
    answer_at,
    fails,
    scene,
)


def at(seconds: float, act: Any, *args: Any) -> None:
    asyncio.get_running_loop().call_later(seconds, act, *args)


def revise_at(
    run: ExecutionHarness, seconds: float, graph: Graph, *, asks_first: bool = False
) -> None:
    """Change the graph; a person is asked first if the plan needs an approval."""

    def revise() -> None:
        change = graph_change(run.program.graph.document, graph.document)
        data: Any = {"change": 1, "base": "", "hash": "h", "graph_change": change, "floor": 1}
        run.execution.revise(graph, data, request_about(data) if asks_first else None)

    at(seconds, revise)


@virtual_time
async def test_a_change_by_hand_after_a_stop_takes_it_away() -> None:
    """Whatever came between: ``quick`` completes after the stop and before the change."""
    graph = parse_graph("a b quick late", "a>late")
    behaviors = {"a": returns_after(3), "b": fails, "quick": returns_after(1.5)}
    run = scene(Writer(), behaviors, graph, on_failure="stop")
    revise_at(run, 2, parse_graph("a b quick more", "a>more"))
    assert await run.run() == "failed"
    assert run.event_names("plan.refused", "plan.revised", "node.cancelled", "node.completed") == [
        "plan.refused",
        "node.cancelled late",
        "node.completed quick",
        "plan.revised",
        "node.completed a",
        "node.completed more",
    ]


@virtual_time
async def test_a_node_that_was_cancelled_while_it_was_queued_does_not_start_after_a_change() -> (
    None
):
    """A pause holds it back, in a wave that comes after the one of the new node."""
    graph = parse_graph("w x n", "x>n")
    behaviors = {"w": asks(), "x": returns_after(1)}
    run = scene(None, behaviors, graph, scheduling="waves", replan=None)
    at(0.5, run.execution.pause)
    at(2, run.execution.cancel_node, "n", "enough")
    revise_at(run, 3, parse_graph("w x n y", "x>n"))
    at(4, run.execution.resume)
    run.answer_after(5)
    assert await run.run() == "failed"
    assert run.event_names("plan.revised", "node.cancelled", "node.started") == [
        "node.started w",
        "node.started x",
        "node.cancelled n",
        "plan.revised",
        "node.started y",
    ]


@virtual_time
async def test_a_node_that_is_cancelled_while_a_person_decides_about_a_change_stays_so() -> None:
    """A pause holds it back while the change is proposed."""
    graph = parse_graph("a n", "a>n")
    run = scene(None, {"a": returns_after(1)}, graph, replan=None)
    at(0.5, run.execution.pause)
    revise_at(run, 2, parse_graph("a n y", "a>n"), asks_first=True)
    at(3, run.execution.cancel_node, "n", "enough")
    answer_at(run, 4, APPROVE)
    at(5, run.execution.resume)
    assert await run.run() == "failed"
    assert run.event_names("node.cancelled", "plan.revised", "node.started") == [
        "node.started a",
        "node.cancelled n",
        "plan.revised",
        "node.started y",
    ]
