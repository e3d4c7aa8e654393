"""Services that share a database and a task queue, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest

import planwave
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.service.carriers.watchdog import Watchdog
from planwave.service.service import Service
from planwave.setting_tables import TemporalSettings
from planwave.storage.postgres.store import PostgresStore
from tests.support import polling
from tests.support.graph.builders import make_plan
from tests.support.llm.fake_providers import library_registry
from tests.support.nodes.held_nodes import FailingNode
from tests.support.service.dependencies import FixedPlanner, dependencies

until = partial(polling.until, every_s=0.01)  # it happens beyond a server
LEASE_S = 2.0


class Doors:
    """A node type that holds each execution until it is let through.

    Attributes:
        came: The executions that were held, with where that was, in order.
    """

    node_type = "door"

    def __init__(
        self, where: str, came: list[tuple[str, str]], open_: dict[str, asyncio.Event]
    ) -> None:
        self._where, self.came, self._open = where, came, open_

    def let(self, execution_id: str) -> None:
        """Let an execution through, wherever it comes from now on."""
        self._open.setdefault(execution_id, asyncio.Event()).set()

    async def execute(self, data: Any, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        own = context.run_id
        self.came.append((own, self._where))
        await self._open.setdefault(own, asyncio.Event()).wait()
        return ExecutionResult({"output": DataValue("text", "through")})


def held_graph(last: str = "text", **asks: Any) -> Graph:
    """A step that is held, a request, and a last step."""
    document = {
        "nodes": [
            {"id": "held", "type": "door"},
            {"id": "ask", "type": "approval", "data": {"prompt": "Send?", "actions": ["send", "drop"], **asks}},
            {"id": "last", "type": last, "data": {"text": "sent"} if last == "text" else {}},
        ],
        "edges": [
            {"source": "held", "target": "ask", "data": {"channel": "flow"}},
            {"source": "ask", "sourceHandle": "send", "target": "last", "data": {"channel": "flow"}},
        ],
    }  # fmt: skip
    registry = library_registry(types=[Doors("", [], {}), FailingNode()])
    return planwave.build(document, registry=registry).graph


class Fleet:
    """Services over one database and one task queue; the first one only serves.

    Attributes:
        came: See ``Doors``.
        by_name: The services.
    """

    def __init__(self, url: str, address: str, task_queue: str, opened: AsyncExitStack) -> None:
        self._url, self._opened = url, opened
        self._settings = TemporalSettings(address=address, task_queue=task_queue, lease_s=LEASE_S)
        self.came: list[tuple[str, str]] = []
        self._doors: dict[str, asyncio.Event] = {}
        self.by_name: dict[str, Service] = {}
        self.let = Doors("", self.came, self._doors).let

    @property
    def api(self) -> Service:
        return self.by_name["api"]

    async def open(
        self,
        name: str,
        *,
        drives: bool,
        graph: Graph | None = None,
        capabilities: frozenset[str] = frozenset(),
        types: Sequence[Any] = (),
        **more: Any,
    ) -> Service:
        # Not above: the SDK may be missing.
        from planwave.service.carriers.temporal import TemporalCarrier

        store = PostgresStore.open(
            self._url, is_carried=True, lease_s=LEASE_S * 3, capabilities=capabilities
        )
        watchdog = Watchdog(LEASE_S * 20, lambda: store.stats, lambda code: None)
        parts = dependencies(
            types=[Doors(name, self.came, self._doors), FailingNode(), *types],
            store=store,
            carrier=TemporalCarrier(self._settings, watchdog, 20, store.now, capabilities),
            now=store.now,
            capabilities=capabilities,
            drives=drives,
            planner=more.pop("planner", None) or FixedPlanner(make_plan(graph or held_graph())),
            **more,
        )
        service = self.by_name[name] = await self._opened.enter_async_context(Service(parts))
        return service

    async def execute(self, graph: Graph | None = None, **more: Any) -> str:
        plan = make_plan(graph or held_graph())
        return (await self.api.executions.execute(plan, **more)).execution_id

    async def held(self, execution_id: str) -> str:
        """Wait until an execution is held, and return where."""
        await until(lambda: execution_id in dict(self.came))
        return dict(self.came)[execution_id]

    async def asked(self, execution_id: str) -> str:
        """Let an execution through to its request, and return that."""
        self.let(execution_id)
        assert (await self.api.executions.wait(execution_id)).status == "paused"
        (request,) = await self.api.executions.requests(execution_id)
        return request.request_id


async def until_async(holds: Callable[[], Awaitable[bool]], s: float = 20.0) -> None:
    async with asyncio.timeout(s):
        while not await holds():  # noqa: ASYNC110 - it happens beyond a server
            await asyncio.sleep(0.02)


OpenFleet = Callable[..., Any]


@pytest.fixture
def open_fleet(database_url: str, temporal_address: str, task_queue: str) -> OpenFleet:
    """Opens one service that serves, and so many workers."""

    @asynccontextmanager
    async def opened(workers: int = 1, **more: Any) -> AsyncGenerator[Fleet]:
        async with asyncio.timeout(120), AsyncExitStack() as stack:
            fleet = Fleet(database_url, temporal_address, task_queue, stack)
            await fleet.open("api", drives=False, **more)
            for number in range(workers):
                await fleet.open(f"worker-{number}", drives=True, **more)
            yield fleet

    return opened
