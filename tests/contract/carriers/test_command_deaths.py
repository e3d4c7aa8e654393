"""A process that drives an execution dies while it carries out a command, between any two of its commits.

The command is carried out once, by the process that died or by the next one, and its sender is told so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import psycopg
import pytest

import planwave
from planwave.graph.model import Graph
from planwave.service.carriers.carrier import CarrierLoad, Drive
from planwave.service.executions import carried as carried_module
from planwave.service.executions.command_rules import (
    Answer,
    Cancel,
    CancelNode,
    Command,
    Pause,
    Resume,
    has_done,
)
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.service import Service
from planwave.storage.postgres.store import PostgresStore
from tests.contract.carriers.conftest import Doors, until
from tests.contract.carriers.test_shared_executions import NoSlot
from tests.support.graph.builders import make_plan
from tests.support.llm.fake_providers import library_registry
from tests.support.service.dependencies import dependencies

SEND = {"decision": "send"}
COMMITS = 3
"""Those of a command at least: it begins, its events, its outcome."""


def graph() -> Graph:
    """A step that is held while a request beside it is open, so that a process drives it all the time."""
    document = {
        "nodes": [
            {"id": "held", "type": "door"},
            {"id": "ask", "type": "approval", "data": {"prompt": "Send?", "actions": ["send"]}},
        ],
        "edges": [],
    }
    registry = library_registry(types=[Doors("", [], {})])
    return planwave.build(document, registry=registry).graph


class QueueCarrier:
    """A carrier that hands what is submitted anywhere to the process that lives."""

    load = CarrierLoad(0, 0, 0)
    is_ready = True

    def __init__(self, queue: asyncio.Queue[str]) -> None:
        self._queue, self.is_dead = queue, False

    def running_of(self, account: str) -> int:
        return 0

    def withdraw(self, execution_id: str) -> bool:
        return False

    def position(self, execution_id: str) -> int | None:
        return None

    async def submit(self, execution_id: str, account: str, **_: Any) -> None:
        self._queue.put_nowait(execution_id)

    async def drop(self, execution_id: str) -> None:
        """Do nothing: who is handed it lets it rest."""

    async def serve(self, drive: Drive, slots: int) -> None:
        async def driven(execution_id: str) -> None:
            with suppress(Exception):
                await drive(execution_id, NoSlot())

        async with asyncio.TaskGroup() as tasks:
            while True:
                execution_id = await self._queue.get()
                if self.is_dead:
                    self._queue.put_nowait(execution_id)
                    return
                tasks.create_task(driven(execution_id))


class Death:
    """Has the process of a store write nothing more after so many commits."""

    def __init__(self, store: PostgresStore) -> None:
        assert store._transactions is not None
        self._store = store
        self._begin = store._transactions.begin
        self._left: int | None = None
        self.has_come = threading.Event()
        self._is_over = threading.Event()
        store._transactions.begin = self._begin_or_die

    def after(self, commits: int) -> None:
        self._left = commits

    def _begin_or_die(self) -> None:
        if self._left == 0:
            self.has_come.set()
            self._is_over.wait()
            raise psycopg.OperationalError("this process is dead")
        if self._left is not None:
            self._left -= 1
        self._begin()

    async def is_seen(self) -> None:
        """Have the others see that it is dead."""
        assert self._store._holder is not None
        await asyncio.to_thread(self._store._holder.stop)

    def is_over(self) -> None:
        """Let the threads of the test end."""
        self._left = 0
        self._is_over.set()


class Scene:
    """Services on one database: one that serves, and those that drive, one after the other."""

    def __init__(self, url: str, opened: AsyncExitStack) -> None:
        self._url, self._opened = url, opened
        self._came: list[tuple[str, str]] = []
        self._queue: asyncio.Queue[str] = asyncio.Queue()

    async def open(self, name: str, *, drives: bool) -> tuple[Service, QueueCarrier, Death]:
        store = PostgresStore.open(self._url, is_carried=True)
        death, carrier = Death(store), QueueCarrier(self._queue)
        types = [Doors(name, self._came, {})]
        parts = dependencies(
            types=types, store=store, carrier=carrier, now=store.now, drives=drives
        )
        service = await self._opened.enter_async_context(Service(parts))
        self._opened.callback(death.is_over)
        return service, carrier, death

    async def is_held(self, execution_id: str) -> None:
        await until(lambda: execution_id in dict(self._came))

    def hand_over(self, execution_id: str) -> None:
        self._queue.put_nowait(execution_id)


Send = Callable[[ExecutionService, str, str], Awaitable[Any]]
SENDS: dict[type[Command], Send] = {
    Cancel: lambda e, own, _: e.cancel(own, "enough"),
    CancelNode: lambda e, own, _: e.cancel(own, "enough", node="held"),
    Pause: lambda e, own, _: e.pause(own),
    Resume: lambda e, own, _: e.resume(own),
    Answer: lambda e, own, request: e.answer(own, request, SEND),
}


async def is_carried_out(url: str, kind: type[Command], commits: int) -> bool:
    """Give a command, and let its owner die after so many commits; return whether it came to that."""
    async with asyncio.timeout(40), AsyncExitStack() as opened:
        scene = Scene(url, opened)
        served, _, _ = await scene.open("api", drives=False)
        api = served.executions
        _, carrier, death = await scene.open("first", drives=True)
        own = (await api.execute(make_plan(graph()))).execution_id
        await scene.is_held(own)
        while not (requests := await api.requests(own)):  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.01)
        request = requests[0].request_id
        if kind is Resume:
            await api.pause(own)
        before = (await api.get(own)).last_seq
        death.after(commits)
        async with asyncio.TaskGroup() as tasks:
            sent = tasks.create_task(SENDS[kind](api, own, request))
            await until(lambda: death.has_come.is_set() or sent.done())
            came_first = not sent.done()
            if came_first:
                carrier.is_dead = True
                await death.is_seen()
                following, _, _ = await scene.open("next", drives=True)
                await opened.enter_async_context(following.executions.sweeping())
                scene.hand_over(own)
        command = {
            Cancel: Cancel("enough"),
            CancelNode: CancelNode("held", "enough"),
            Answer: Answer(request, SEND, (await api.events(own))[0].data["created_by"]),
        }.get(kind) or kind()
        events = await api.events(own)
        done = [each.type for each in events if each.seq > before and has_done(each, command)]
        assert len(done) == 1, [each.type for each in events]
        return came_first


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", SENDS)
async def test_a_command_is_carried_out_once_wherever_its_owner_dies(
    database_url: str, monkeypatch: pytest.MonkeyPatch, kind: type[Command]
) -> None:
    monkeypatch.setattr(carried_module, "SWEEP_S", 0.2)
    deaths = 0
    while await is_carried_out(database_url, kind, deaths):
        deaths += 1
    assert deaths >= COMMITS
