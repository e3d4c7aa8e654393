"""What an API does with executions that workers drive: the same as if it drove them itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from planwave.errors import PlanwaveError
from planwave.events import Event
from planwave.service.carriers.carrier import CarrierUnavailable
from planwave.service.executions import carried as carried_module
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.service import Service
from planwave.settings import Limits
from tests.contract.carriers.conftest import Doors, Fleet, OpenFleet, held_graph, until, until_async
from tests.support.graph.builders import make_plan
from tests.support.nodes.held_nodes import FailingNode
from tests.support.service.dependencies import dependencies

SEND = {"decision": "send"}


async def test_an_execution_is_driven_by_a_worker_and_served_by_the_api(
    open_fleet: OpenFleet,
) -> None:
    async with open_fleet() as fleet:
        api = fleet.api.executions
        own = await fleet.execute()
        assert await fleet.held(own) == "worker-0"
        seen: list[Event] = []

        async def watch() -> None:
            async for event in api.watch(own):
                seen.append(event)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch())
            request = await fleet.asked(own)
            await api.answer(own, request, SEND)
            assert (await api.wait(own)).status == "completed"
        stored = [event.seq for event in await api.events(own)]
        assert [event.seq for event in seen if event.seq] == stored
        assert stored == list(range(1, len(stored) + 1))
        await asyncio.sleep(0)
        assert [live.execution_id for live in api.live_executions] == [], "nothing is kept"


async def test_what_nobody_looks_at_is_not_kept_by_the_api(open_fleet: OpenFleet) -> None:
    async with open_fleet() as fleet:
        own = await fleet.execute()
        await fleet.held(own)
        assert [live.execution_id for live in fleet.api.executions.live_executions] == []
        assert (await fleet.api.executions.state(own)).status == "executing"


class Outcome(NamedTuple):
    refusal: tuple[str, str, str | None] | None
    status: str = ""
    nodes: tuple[tuple[str, str], ...] = ()


class Bench:
    """Where executions are brought to a state and commanded: one service, or several."""

    def __init__(
        self,
        executions: ExecutionService,
        let: Callable[[str], object],
        came: list[tuple[str, str]],
    ) -> None:
        self.executions, self.let, self._came = executions, let, came

    async def reach(self, state: str) -> str:
        graph = held_graph("broken" if state == "failed" else "text")
        made = await self.executions.create(make_plan(graph))
        own = made.execution_id
        if state == "created":
            return own
        await self.executions.start(own)
        await until(lambda: own in dict(self._came))
        if state == "executing":
            return own
        if state == "requested":
            await self.executions.pause(own)
            return own
        self.let(own)
        await self.executions.wait(own)
        if state == "waiting":
            return own
        await self.executions.answer(own, await self.request(own), SEND)
        await self.executions.wait(own)
        return own

    async def request(self, own: str) -> str:
        (request,) = await self.executions.requests(own)
        return request.request_id

    async def outcome(self, state: str, command: str) -> Outcome:
        own = await self.reach(state)
        asked = await self.request(own) if state == "waiting" else "r1"
        try:
            await COMMANDS[command](self.executions, own, asked)
        except PlanwaveError as error:
            plain = [str(each or "").replace(own, "ID").replace(asked, "R") for each in (error, error.hint)]
            return Outcome((error.code, *plain))  # fmt: skip
        self.let(own)
        await self.executions.wait(own)
        folded = await self.executions.state(own)
        nodes = tuple((path, node.status) for path, node in sorted(folded.nodes.items()))
        return Outcome(None, folded.status, nodes)


COMMANDS: dict[str, Any] = {
    "start": lambda e, own, _: e.start(own),
    "cancel": lambda e, own, _: e.cancel(own, "enough"),
    "cancel held": lambda e, own, _: e.cancel(own, "enough", node="held"),
    "cancel ask": lambda e, own, _: e.cancel(own, "enough", node="ask"),
    "cancel none": lambda e, own, _: e.cancel(own, "enough", node="aks"),
    "pause": lambda e, own, _: e.pause(own),
    "resume": lambda e, own, _: e.resume(own),
    "answer": lambda e, own, asked: e.answer(own, asked, SEND),
    "answer badly": lambda e, own, asked: e.answer(own, asked, {"decision": "sent"}),
    "answer none": lambda e, own, _: e.answer(own, "r99", SEND),
    "fork": lambda e, own, _: e.fork(own, rerun=["last"], start=False),
    "retry": lambda e, own, _: e.retry(own, start=False),
}
STATES = ("created", "executing", "requested", "waiting", "failed")


@asynccontextmanager
async def alone() -> AsyncGenerator[Bench]:
    came: list[tuple[str, str]] = []
    doors = Doors("alone", came, {})
    limits = Limits(concurrent_executions=100)
    async with Service(dependencies(types=[doors, FailingNode()], limits=limits)) as service:
        await service.recover()
        yield Bench(service.executions, doors.let, came)
        await service.drain(0)


async def outcomes(bench: Bench) -> dict[tuple[str, str], Outcome]:
    found: dict[tuple[str, str], Outcome] = {}

    async def one(state: str, command: str) -> None:
        found[state, command] = await bench.outcome(state, command)

    async with asyncio.timeout(90), asyncio.TaskGroup() as tasks:
        for state in STATES:
            for command in COMMANDS:
                tasks.create_task(one(state, command))
    return found


async def test_every_command_in_every_state_is_answered_as_in_one_process(
    open_fleet: OpenFleet,
) -> None:
    async with alone() as bench:
        expected = await outcomes(bench)
    async with open_fleet(workers=2) as fleet:
        found = await outcomes(Bench(fleet.api.executions, fleet.let, fleet.came))
    different = {of: (expected[of], found[of]) for of in expected if found[of] != expected[of]}
    assert different == {}
