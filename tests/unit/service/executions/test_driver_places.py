"""An execution holds a running place while a node of it works, and no longer, whatever it waits for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult
from planwave.principals import Principal, acting_as
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.sqlite.store import SqliteStore
from tests.support.nodes.held_nodes import HeldNode
from tests.support.polling import until
from tests.support.service.dependencies import dependencies
from tests.support.virtual_loop import virtual_time

_ONE = Limits(concurrent_executions=1, burst_executions=0)
_BACKOFF_S = 600.0


class Flaky:
    """A node type that fails the first time in each execution and node, and counts what runs at once."""

    node_type = "flaky"

    def __init__(self) -> None:
        self.tried = set[tuple[str, str]]()
        self.at_work = self.most_at_work = 0

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.at_work += 1
        self.most_at_work = max(self.at_work, self.most_at_work)
        await asyncio.sleep(1)
        self.at_work -= 1
        if (context.run_id, context.node_id) not in self.tried:
            self.tried.add((context.run_id, context.node_id))
            raise NodeError("not yet")
        return ExecutionResult({"output": DataValue("text", "done")})


class Idles:
    """A node type with two tasks that wait for long, one after some work of both."""

    node_type = "idles"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        async def wait(seconds: float) -> None:
            await asyncio.sleep(1)
            async with context.idle():
                await asyncio.sleep(seconds)

        async with context.task_group() as tasks:
            tasks.create_task(wait(_BACKOFF_S))
            tasks.create_task(wait(_BACKOFF_S * 2))
        await wait(_BACKOFF_S)
        return ExecutionResult({"output": DataValue("text", "done")})


Document = dict[str, Any]


def node(node_id: str, node_type: str, data: Document | None = None, **more: Any) -> Document:
    return {"id": node_id, "type": node_type, "data": data or {}, **more}


def graph(*nodes: Document) -> Document:
    edges = [
        {"source": a["id"], "target": b["id"], "data": {"channel": "flow"}}
        for a, b in pairwise(nodes)
    ]
    return {"nodes": list(nodes), "edges": edges}


_RETRY = {"retry": {"attempts": 3, "backoffS": _BACKOFF_S}}
_WAITS = {
    "a retry": graph(node("n", "flaky", policy=_RETRY), node("after", "text", {"text": "x"})),
    "a pause of a provider": graph(
        node("n", "idles", policy={"timeoutS": 10_000}), node("after", "text", {"text": "x"})
    ),
    "a time": graph(
        node("n", "wait", {"seconds": _BACKOFF_S}), node("after", "text", {"text": "x"})
    ),
    "a retry beside a time": {
        "nodes": [
            node("n", "flaky", policy=_RETRY),
            node("w", "wait", {"seconds": _BACKOFF_S}),
        ],
        "edges": [],
    },
}


def nested(inner: Document, level: int) -> Document:
    """Return a graph that runs another one so many levels deep, beside one that ends at once."""
    for number in range(level):
        items = {"items": [1, 2] if number == 0 else [1], "body": inner}
        inner = graph(node(f"loop{number}", "loop", items))
    return inner


async def started(service: Service, document: Document) -> str:
    checked = await service.plans.parse_and_check(document)
    return (await service.executions.execute(checked)).execution_id


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("kind", _WAITS)
@virtual_time
async def test_what_only_waits_gives_its_place_back_and_goes_on(kind: str, level: int) -> None:
    flaky = Flaky()
    loop = asyncio.get_running_loop()
    async with Service(dependencies(types=[flaky, Idles()], limits=_ONE)) as service:
        waiting = [await started(service, nested(_WAITS[kind], level)) for _ in range(3)]
        quick = await started(service, graph(node("t", "text", {"text": "x"})))
        assert (await service.executions.wait(quick)).status == "completed"
        assert loop.time() < _BACKOFF_S / 2
        for each in waiting:
            while (record := await service.executions.wait(each)).status == "paused":  # noqa: ASYNC110
                await asyncio.sleep(1)  # it waits for a time, and is in the store only
            assert record.status == "completed"
        assert flaky.most_at_work <= (2 if level else 1), "two items of one execution"
        assert (service.load.running, service.load.queued) == (0, 0)


async def test_a_newcomer_starts_at_once_while_another_has_all_places_and_also_after_a_restart(
    tmp_path: Path,
) -> None:
    limits = Limits(concurrent_executions=2, burst_executions=1, drain_s=0)
    long, quick = graph(node("n", "held")), graph(node("t", "text", {"text": "x"}))
    one, another = Principal("token", "one"), Principal("token", "another")
    parts = dependencies(types=[HeldNode()], limits=limits, store=SqliteStore.open(tmp_path))
    async with Service(parts) as service:
        with acting_as(Principal("trigger", "t", by=one)):
            first = [await started(service, long) for _ in range(2)]
        with acting_as(Principal("chat", "c", by=one)):
            flood = [*first, *[await started(service, long) for _ in range(3)]]
        with acting_as(another):
            mine = [await started(service, long), await started(service, long)]
            assert service.executions.driver.position(mine[0]) is None, (
                "it runs: all places were another's"
            )
        assert [service.executions.driver.position(each) for each in (*flood[2:], mine[1])] == [
            2,
            3,
            4,
            1,
        ]
        await until(lambda: service.load.running == 3)
        await service.drain()
    held = HeldNode()
    parts = dependencies(types=[held], limits=limits, store=SqliteStore.open(tmp_path))
    async with Service(parts) as service:
        ids = [*flood, *mine]
        assert await service.recover() == len(ids)
        await until(
            lambda: sum(service.executions.driver.position(each) is not None for each in ids) == 4
        )
        places = [each for each in ids if service.executions.driver.position(each) is None]
        assert len({*places} & {*mine}) == 1, "each has a place, whatever was first"
        operators = await started(service, quick)
        assert service.executions.driver.position(operators) == 1, (
            "no place beyond three, so it is the next one"
        )
        held.release.set()
        for each in (*ids, operators):
            assert (await service.executions.wait(each)).status == "completed"


@virtual_time
async def test_a_wait_that_is_broken_off_leaves_the_place_with_who_works() -> None:
    """One task of a node is cancelled in its wait; the node works on, so the next one does not start."""

    class Breaks:
        node_type = "breaks"

        async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
            with suppress(TimeoutError):
                async with asyncio.timeout(5), context.idle():
                    await asyncio.sleep(_BACKOFF_S)
            await asyncio.sleep(30)
            return ExecutionResult({"output": DataValue("text", "done")})

    loop = asyncio.get_running_loop()
    async with Service(dependencies(types=[Breaks()], limits=_ONE)) as service:
        first = await started(service, graph(node("n", "breaks")))
        second = await started(service, graph(node("n", "breaks")))
        await asyncio.sleep(2)
        assert service.executions.driver.position(second) is None, (
            "it has the place while the first one waits"
        )
        for each in (first, second):
            assert (await service.executions.wait(each)).status == "completed"
        assert service.load.running == 0
        assert loop.time() < _BACKOFF_S
