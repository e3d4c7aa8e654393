"""Forks and retries of executions whose nodes run graphs: what ran inside them is not lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.capabilities import ExecutionResult
from planwave.graph.model import Graph, Json, Node, Policy, Retry
from planwave.graph.values import DataValue
from planwave.service.explain import explain
from planwave.service.service import Service
from tests.fakes.service import graph_of
from tests.unit.service.test_control import executed, opened, outputs_of
from tests.unit.service.test_forks import reused


class Pays:
    """A node type that gives what it is to say, counts its runs by path, and fails where told to.

    It waits at the paths that are held, and says when it has come there.
    """

    node_type = "pays"
    template_fields = None

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.broken: set[str] = set()
        self.held: set[str] = set()
        self.came = asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.runs[context.path] += 1
        if context.path in self.held:
            self.came.set()
            await asyncio.Event().wait()
        if context.path in self.broken:
            raise NodeError("out of order")
        texts = [str(arrival.value.value) for arrival in inputs.arrivals]
        said = "+".join([*texts, str(data.get("say", context.node_id))])
        used = {"provider": "p", "model": "m", "input_tokens": 10, "output_tokens": 1}
        event = context_event(context, "usage", used)
        return ExecutionResult({"output": DataValue("text", said)}, [event])

    def paid(self) -> dict[str, int]:
        """Give the runs since this was asked last."""
        found = dict(self.runs)
        self.runs.clear()
        return found


def context_event(context: Any, kind: str, data: Json) -> Any:
    from planwave.graph.capabilities import NodeEvent

    return NodeEvent(context.node_id, "pays", kind, context.run_id, data)


def step(node_id: str, kind: str = "pays", **data: Any) -> dict[str, Any]:
    return {"id": node_id, "type": kind, "data": data}


def body(*nodes: Mapping[str, Any], edges: Any = ()) -> dict[str, Any]:
    flow = {"data": {"channel": "flow"}}
    return {"nodes": list(nodes), "edges": [{"source": s, "target": t, **flow} for s, t in edges]}


TWO = body(step("a", say="{{ item }}"), step("b"), edges=[("a", "b")])
FIVE = ["v", "w", "x", "y", "z"]


def loop(inside: Mapping[str, Any] = TWO, **data: Any) -> Graph:
    return graph_of(
        Node("loop", "loop", "L", data={"items": FIVE, "body": inside, **data}),
        Node("last", "text", "Last", data={"text": "{{ input }}"}),
        edges=[("loop", "last")],
    )


async def failed(service: Service) -> str:
    """Give an execution that has failed."""
    own = await executed(service)
    assert (await service.wait(own)).status == "failed"
    return own


async def came_to(service: Service, own: str) -> Any:
    """Give what the loop of an execution that completes came to."""
    assert (await service.wait(own)).status == "completed"
    return (await outputs_of(service, own))["loop"]["output"]


async def test_a_retry_of_a_loop_pays_for_the_item_that_failed_alone(tmp_path: Path) -> None:
    work = Pays()
    work.broken = {"loop[3]/b"}
    async with opened(tmp_path, loop(), work) as service:
        first = await failed(service)
        work.broken.clear()
        before = work.paid()
        own = (await service.retry(first)).execution_id
        assert await came_to(service, own) == [f"{item}+b" for item in FIVE]
        lost = {path: 1 for path in (f"loop[{n}]/{x}" for n in range(5) for x in "ab")}
        done = {p: 1 for p in await reused(service, own) if p}
        assert work.paid() | done == lost
        assert not done.keys() - before.keys()
        assert "loop[3]/a" in done, "of the item that failed too"
        assert "loop[3]/b" not in done
