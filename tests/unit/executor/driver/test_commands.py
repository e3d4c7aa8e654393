"""Commands and timers that meet in one turn: what came first holds."""

from __future__ import annotations

import asyncio
from typing import Any

from planwave.errors import NodeError
from planwave.graph.model import Graph, Node, Policy, Retry
from tests.support.engine.behaviors import asks
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time


@virtual_time
async def test_a_cancel_wins_over_a_request_timeout_behind_it_in_the_same_turn() -> None:
    async def cancels(inputs: Any, context: Any) -> Any:
        if context.attempt == 1:
            raise NodeError("not yet", retryable=True)
        harness.execution.cancel("enough")
        harness.execution.expire(harness.request_id())

    patient = Policy(retry=Retry(2, 1.0))
    graph = Graph((Node("q", "step", "Q"), Node("c", "step", "C", policy=patient)), ())
    harness = ExecutionHarness(graph, {"q": asks(None, 60.0, "nobody came"), "c": cancels})

    assert await harness.run() == "cancelled"
    assert harness.data_of("node.answered") == []
    assert harness.data_of("node.cancelled", "q") == [{"cause": "enough"}]


@virtual_time
async def test_a_resume_while_a_node_runs_lets_the_next_nodes_start() -> None:
    async def works(inputs: Any, context: Any) -> Any:
        harness.execution.pause()
        await asyncio.sleep(1)
        assert harness.event_names("execution.paused", "execution.resumed") == ["execution.paused"]
        harness.execution.resume()
        await asyncio.sleep(1)
        return result_with("done")

    harness = ExecutionHarness(parse_graph("a b c", "a>b", "b>c"), {"a": works})
    assert await harness.run() == "completed"
    assert harness.event_names("execution.paused", "execution.resumed", "node.completed") == [
        "execution.paused", "execution.resumed",
        "node.completed a", "node.completed b", "node.completed c",
    ]  # fmt: skip
