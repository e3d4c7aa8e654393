"""Writes ``nested.sql``: ``python -m tests.contract.stores.golden.write_nested``.

A database with executions whose nodes run graphs (``loop``, ``while``, ``inner``, ``planner``): one waits for
answers inside all of them, one failed inside, one completed, and one was cut off while it ran. It is written
again when ``stored.sql`` is.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from planwave.errors import NodeError
from planwave.graph.model import DataValue
from planwave.graph.plan import Plan
from planwave.graph.protocols import ExecutionResult
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.nodes.authoring.node_type import NodeData
from planwave.providers.protocols import ModelRequest
from planwave.service.service import Service
from planwave.storage.sqlite import connection, migrations
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_plan
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import services_with
from tests.support.service.dependencies import FixedPlanner, dependencies

FILE: Final = Path(__file__).parent / "nested.sql"
ASKS, FAILED, COMPLETED, CUT_OFF = "it asks", "it failed", "it completed", "it was cut off"
BROKEN: Final = ("each[1]/second", "plans[plan]/second")
HELD: Final = ("each[1]/second",)


class StepData(NodeData):
    """What a step returns."""

    value: Any = None


class Step:
    """Returns the value of its data.

    Attributes:
        runs: How often it ran, by path.
        broken: Paths where it fails.
        held: Paths where it comes to no end; ``came`` is set by then.
    """

    node_type = "step"
    template_fields = None
    Data = StepData

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.broken: Sequence[str] = ()
        self.held: Sequence[str] = ()
        self.came = asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.runs[context.path] += 1
        if context.path in self.held:
            self.came.set()
            await asyncio.Event().wait()
        if context.path in self.broken:
            raise NodeError("out of order", retryable=False)
        return ExecutionResult({"output": DataValue("any", data["value"])})


def _body(goal: str, first: str, second: str = "{{ input }}{{ input }}") -> dict[str, Any]:
    """Return a graph of two steps, with a question between them in the execution that asks."""
    steps = [
        node_document("first", "step", value=first),
        node_document("second", "step", value=second),
    ]
    if goal != ASKS:
        return graph_document(*steps, edges=[("first", "second")])
    asks = node_document("ask", "approval", prompt="Good?")
    edges = [("first", "ask"), ("ask", "second", "approve")]
    return graph_document(*steps, asks, edges=edges)


def graph_of(goal: str) -> dict[str, Any]:
    """Return the graph of an execution."""
    parallel = 2 if goal == ASKS else 1  # both items ask; else one fails or is held after the other
    return graph_document(
        node_document(
            "each", "loop", items=["a", "b"], parallel=parallel, body=_body(goal, "{{ item }}")
        ),
        node_document(
            "again",
            "while",
            condition="value.goes",
            initial={"goes": True, "next": {"goes": False}},
            body=_body(goal, "{{ value.next }}", "{{ input }}"),
        ),
        node_document("say", "step", value="d"),
        node_document("inside", "inner", graph=_body(goal, "{{ goal }}")),
        node_document("plans", "planner", goal=goal),
        node_document("last", "step", value="{{ nodes.each.output }}"),
        edges=[("say", "inside"), ("each", "last"), ("again", "last"), ("plans", "last")],
    )


class NestedPlanner:
    """Plans for the nodes of type ``planner``."""

    def request_for(self, prompt: str, provider: str, model: str, **_: Any) -> ModelRequest:
        return ModelRequest(provider, model, prompt)

    async def create_plan(self, prompt: str, *_: Any, **__: Any) -> Plan:
        plan = make_plan(read_graph(_body(prompt, "{{ goal }}"))[0])
        return replace(plan, user_prompt=prompt)


@asynccontextmanager
async def opened(
    directory: Path, step: Step, planner: FixedPlanner | None = None
) -> AsyncGenerator[Service]:
    """Open a service over what is stored in a directory."""
    services, _ = services_with(lambda _: ["reply"], planner=NestedPlanner())
    parts = dependencies(
        directory=directory, store=SqliteStore.open(directory), types=[step], planner=planner,
        node_services=lambda _: services,
    )  # fmt: skip
    async with Service(parts) as service:
        yield service


async def fill(service: Service, planner: FixedPlanner, step: Step) -> None:
    """Run an execution of every kind as far as it is to come."""
    for goal in (ASKS, FAILED, COMPLETED, CUT_OFF):
        planner.plan = make_plan(read_graph(graph_of(goal))[0], new_id())
        step.broken, step.held = BROKEN * (goal == FAILED), HELD * (goal == CUT_OFF)
        plan = await service.plans.create(goal)
        record = await service.executions.execute(plan.plan_id)
        if goal == CUT_OFF:
            await step.came.wait()
            await asyncio.sleep(1)  # until all else has settled and is stored
        else:
            await service.executions.wait(record.execution_id)


async def main() -> None:
    """Write the file."""
    directory = Path(tempfile.mkdtemp())
    planner, step = FixedPlanner(make_plan(read_graph(graph_of(ASKS))[0])), Step()
    async with opened(directory, step, planner) as service:
        await fill(service, planner, step)
        with closing(sqlite3.connect(directory / connection.DATABASE_NAME)) as raw:
            dump = [*raw.iterdump(), f"PRAGMA user_version = {migrations.SCHEMA_VERSION};"]
        FILE.write_text("\n".join(dump) + "\n", "utf-8")
        os._exit(0)  # what runs is left as a crash would leave it


if __name__ == "__main__":
    asyncio.run(main())
