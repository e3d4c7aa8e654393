"""The queue and what is carried from it: order, places, drains, and who comes first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import Conflict, QueueFull, ShuttingDown, StoreError
from planwave.events import TERMINAL, Event
from planwave.executor.driver.execution import Execution
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult
from planwave.service.service import Service
from planwave.service.streaming.live_execution import LiveExecution
from planwave.settings import Limits
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.nodes.held_nodes import HeldNode
from tests.support.object_lifetimes import uncollected
from tests.support.polling import until
from tests.support.service.dependencies import dependencies

ONE_AT_A_TIME = Limits(concurrent_executions=1)


class Doors:
    """A node type that writes down who came, and lets each through when it is called."""

    node_type = "door"

    def __init__(self) -> None:
        self.came: list[str] = []
        self._open: dict[str, asyncio.Event] = {}

    def _door(self, execution_id: str) -> asyncio.Event:
        return self._open.setdefault(execution_id, asyncio.Event())

    def let(self, execution_id: str) -> None:
        self._door(execution_id).set()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.came.append(context.run_id)
        await self._door(context.run_id).wait()
        return ExecutionResult({"output": DataValue("text", "through")})


DOOR = make_graph(Node("d", "door", "D"), text_node("after"), edges=[("d", "after")])


class Gated(MemoryStore):
    """Stops before one kind of write until the gate is opened, and says that it has come there."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at
        self.came = asyncio.Event()
        self.gate = asyncio.Event()

    async def _pass(self, what: str) -> None:
        if what == self._at:
            self.came.set()
            await self.gate.wait()

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event], plan: PlanRecord | None = None
    ) -> None:
        await self._pass("create")
        await super().create_execution(record, events, plan)

    async def claim(self, execution_id: str, *, queued: bool | None = None) -> int:
        await self._pass("claim")
        return await super().claim(execution_id, queued=queued)

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        await self._pass(events[0].type)
        await super().append(execution_id, epoch, events)


async def types_of(service: Service, execution_id: str) -> list[str]:
    return [event.type for event in await service.executions.events(execution_id)]


async def plan_in(service: Service) -> str:
    return (await service.plans.create("do it")).plan_id


# -- the queue


async def test_executions_start_in_order_with_queue_positions() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME)) as service:
        plan = await plan_in(service)
        ids = [(await service.executions.execute(plan)).execution_id for _ in range(4)]
        await until(lambda: doors.came)
        assert [service.executions.driver.position(i) for i in ids] == [None, 1, 2, 3]
        assert (service.load.running, service.load.queued) == (1, 3)
        for number, execution_id in enumerate(ids, 1):
            doors.let(execution_id)
            await service.executions.wait(execution_id)
            await until(lambda number=number: len(doors.came) == min(number + 1, 4))
            assert [service.executions.driver.position(i) for i in ids[number + 1 :]] == list(
                range(1, 4 - number)
            )
        assert doors.came == ids


async def test_concurrent_executions_are_limited() -> None:
    doors = Doors()
    limits = Limits(concurrent_executions=2)
    async with Service(dependencies(DOOR, types=[doors], limits=limits)) as service:
        plan = await plan_in(service)
        ids = [(await service.executions.execute(plan)).execution_id for _ in range(3)]
        await until(lambda: len(doors.came) == 2)
        assert (service.load.running, service.load.queued) == (2, 1)
        for execution_id in ids:
            doors.let(execution_id)
            await service.executions.wait(execution_id)


async def test_full_queue_rejects_with_retry_after_and_creates_nothing() -> None:
    doors = Doors()
    limits = Limits(concurrent_executions=1, queued_executions=2)
    async with Service(dependencies(DOOR, types=[doors], limits=limits)) as service:
        plan = await plan_in(service)
        early = await service.executions.create(plan)
        ids = [(await service.executions.execute(plan)).execution_id for _ in range(3)]
        with pytest.raises(QueueFull) as caught:
            await service.executions.execute(plan)
        assert (caught.value.code, caught.value.retry_after_s) == ("queue-full", 5)
        assert caught.value.hint == "try again in 5 s, or raise the limit queued_executions"
        assert len(await service.executions.list()) == 4
        with pytest.raises(QueueFull):
            await service.executions.start(early.execution_id)
        assert (await service.executions.get(early.execution_id)).status == "starting"
        for execution_id in ids:
            doors.let(execution_id)
            await service.executions.wait(execution_id)
        await service.executions.start(early.execution_id)
        doors.let(early.execution_id)
        assert (await service.executions.wait(early.execution_id)).status == "completed"


async def test_last_free_place_is_given_once() -> None:
    doors, store = Doors(), Gated("create")
    limits = Limits(concurrent_executions=1, queued_executions=0)
    async with Service(dependencies(DOOR, types=[doors], limits=limits, store=store)) as service:
        plan = await plan_in(service)
        refused = 0

        async def ask() -> str | None:
            nonlocal refused
            try:
                return (await service.executions.execute(plan)).execution_id
            except QueueFull:
                refused += 1
                return None

        async with asyncio.TaskGroup() as tasks:
            requested = [tasks.create_task(ask()) for _ in range(10)]
            await store.came.wait()
            store.gate.set()
        (accepted,) = [one for task in requested if (one := task.result())]
        assert refused == 9
        assert [x.execution_id for x in await service.executions.list()] == [accepted]
        doors.let(accepted)


async def test_place_is_released_after_rejected_execution() -> None:
    limits = Limits(concurrent_executions=1, queued_executions=0)
    async with Service(dependencies(make_graph(text_node("a")), limits=limits)) as service:
        plan = await plan_in(service)
        for _ in range(3):
            with pytest.raises(Exception, match="no plan"):
                await service.executions.execute("01900000-0000-7000-8000-0000000000ff")
        record = await service.executions.execute(plan)
        assert (await service.executions.wait(record.execution_id)).status == "completed"


# -- starting what was made before


async def test_execution_created_by_earlier_process_keeps_inputs_and_options() -> None:
    store = MemoryStore()
    graph = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])
    async with Service(dependencies(graph, store=store)) as earlier:
        created = await earlier.executions.create(
            await plan_in(earlier), inputs={"a": {"output": "given"}}, trigger={"by": "me"}
        )
        async with Service(dependencies(graph, store=store)) as later:
            await later.executions.start(created.execution_id)
            record = await later.executions.wait(created.execution_id)
            events = await later.executions.events(created.execution_id)
            assert (record.status, record.epoch) == ("completed", 2)
            assert [e.seq for e in events] == list(range(1, record.last_seq + 1))
            given = [e for e in events if e.data.get("given")]
            assert [e.path for e in given] == ["a"]


async def test_execution_running_elsewhere_is_not_started() -> None:
    store = MemoryStore()
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        created = await service.executions.create(await plan_in(service))
        began = Event(created.execution_id, 2, "t", "execution.started", None, None, {"waves": 1})
        await store.append(created.execution_id, 1, [began])
        with pytest.raises(Conflict, match="it is executing"):
            await service.executions.start(created.execution_id)


class Switched(FakeProviders):
    """Providers that can go away."""

    gone = False

    def list(self) -> list[Any]:
        return [replace(i, available=i.available and not self.gone) for i in self.infos]

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        return super().resolve("off" if self.gone else provider, model)


@pytest.mark.parametrize("queued", [False, True], ids=["started late", "queued"])
async def test_execution_fails_when_its_provider_became_unavailable(queued: bool) -> None:
    doors, providers = Doors(), Switched()
    catalogue = library_registry(providers, [doors])
    agent = Node("a", "agent", "A", data={"provider": "openai", "userPrompt": "x"})
    created = replace(
        dependencies(make_graph(agent), types=[doors], limits=ONE_AT_A_TIME), catalogue=catalogue
    )
    async with Service(created) as service:
        if queued:
            busy = await service.plans.read(json.dumps(DOOR.to_document()))
            first = await service.executions.execute(busy)
            record = await service.executions.execute(await plan_in(service))
            providers.gone = True
            doors.let(first.execution_id)
        else:
            record = await service.executions.create(await plan_in(service))
            providers.gone = True
            await service.executions.start(record.execution_id)
        assert (await service.executions.wait(record.execution_id)).status == "failed"
        events = await service.executions.events(record.execution_id)
        assert [e.type for e in events] == ["execution.created", "execution.failed"]
        assert events[-1].data["error"]["code"] == "unavailable-provider"
        assert events[-1].data["error"]["hint"] == "set OFF_KEY"


async def test_concurrent_starts_run_once() -> None:
    store = Gated("claim")
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        created = await service.executions.create(await plan_in(service))

        async def start() -> bool:
            try:
                await service.executions.start(created.execution_id)
            except Conflict:
                return False
            return True

        async with asyncio.TaskGroup() as tasks:
            starts = [tasks.create_task(start()) for _ in range(5)]
            await store.came.wait()
            store.gate.set()
        assert sorted(task.result() for task in starts) == [False] * 4 + [True]
        await service.executions.wait(created.execution_id)
        assert (await types_of(service, created.execution_id)).count("execution.started") == 1


# -- callers that leave


async def test_cancelled_start_leaves_execution_startable() -> None:
    store = Gated("claim")
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        created = await service.executions.create(await plan_in(service))
        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(service.executions.start(created.execution_id))
            await store.came.wait()
            caller.cancel()
        assert (await service.executions.get(created.execution_id)).status == "starting"
        store.gate.set()
        await service.executions.start(created.execution_id)
        assert (await service.executions.wait(created.execution_id)).status == "completed"


async def test_execution_continues_after_its_caller_left() -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "H"))
    async with Service(dependencies(graph, types=[held])) as service:
        plan = await plan_in(service)

        async def call() -> None:
            record = await service.executions.execute(plan)
            await service.executions.wait(record.execution_id)

        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(call())
            await held.started.wait()
            caller.cancel()
        held.release.set()
        (record,) = await service.executions.list()
        assert (await service.executions.wait(record.execution_id)).status == "completed"


# -- cancelling


async def test_queued_execution_is_cancelled_and_never_starts() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME)) as service:
        plan = await plan_in(service)
        first, second, third = [
            (await service.executions.execute(plan)).execution_id for _ in range(3)
        ]
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(service.executions.wait(second))
            await asyncio.sleep(0)
            await service.executions.cancel(second, "not wanted")
        assert waiting.result().status == "cancelled"
        assert [service.executions.driver.position(i) for i in (second, third)] == [None, 1]
        with pytest.raises(Conflict):
            await service.executions.cancel(second)
        for execution_id in (first, third):
            doors.let(execution_id)
            await service.executions.wait(execution_id)
        assert doors.came == [first, third]
        events = await service.executions.events(second)
        assert events[-1].data == {"cause": "not wanted"}


class RefusesOnce(Gated):
    """Refuses the first write of events after the gate, where it is told to."""

    refuses = False

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        if self.refuses:
            self.refuses = False
            await self._pass("append")
            raise StoreError("the disk is full", code="disk-full")
        await super().append(execution_id, epoch, events)


COMMANDS: Mapping[str, Callable[[Service, str], Awaitable[object]]] = {
    "cancel": lambda service, execution_id: service.executions.cancel(execution_id),
    "pause": lambda service, execution_id: service.executions.pause(execution_id),
}


@pytest.mark.parametrize("is_its_turn", [False, True], ids=["queued", "its turn comes meanwhile"])
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_queued_execution_runs_after_a_command_that_could_not_be_stored(
    command: str, is_its_turn: bool
) -> None:
    doors, store = Doors(), RefusesOnce("append")
    async with Service(
        dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME, store=store)
    ) as service:
        plan = await plan_in(service)
        second = (await service.executions.execute(plan)).execution_id
        await until(lambda: doors.came == [second])
        await service.executions.pause(second)
        doors.let(second)
        await service.executions.wait(second)
        first = (await service.executions.execute(plan)).execution_id
        await until(lambda: doors.came == [second, first])
        await service.executions.resume(second)
        store.refuses = True
        async with asyncio.TaskGroup() as tasks:
            sent = tasks.create_task(_refusal(COMMANDS[command](service, second)))
            await store.came.wait()
            if is_its_turn:
                doors.let(first)
                await service.executions.wait(first)
            store.gate.set()
        assert sent.result() == "disk-full"
        doors.let(first)
        for execution_id in (first, second):
            assert (await service.executions.wait(execution_id)).status == "completed"


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_that_could_not_be_stored_counts_as_no_second_recovery(
    command: str,
) -> None:
    before, doors, store = Doors(), Doors(), RefusesOnce("append")
    async with Service(dependencies(DOOR, types=[before], store=store)) as earlier:
        plan = await plan_in(earlier)
        both = [(await earlier.executions.execute(plan)).execution_id for _ in range(2)]
        await until(lambda: before.came == both)
        await earlier.drain(0)
        store.gate.set()
        async with Service(
            dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME, store=store)
        ) as service:
            await service.recover()
            await until(
                lambda: doors.came == both[:1] and service.executions.driver.position(both[1]) == 1
            )
            store.refuses = True
            assert await _refusal(COMMANDS[command](service, both[1])) == "disk-full"
            for execution_id in both:
                doors.let(execution_id)
                assert (await service.executions.wait(execution_id)).status == "completed"
            assert (await service.executions.get(both[1])).epoch == 2


class HeldAfterCommit(Gated):
    """Commits events of one execution, and returns once the gate is opened."""

    held: str | None = None

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        await super().append(execution_id, epoch, events)
        if execution_id == self.held:
            await self._pass("append")


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_is_applied_where_its_caller_leaves_after_the_commit(command: str) -> None:
    doors, store = Doors(), HeldAfterCommit("append")
    async with Service(
        dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME, store=store)
    ) as service:
        plan = await plan_in(service)
        second = (await service.executions.execute(plan)).execution_id
        await until(lambda: doors.came == [second])
        await service.executions.pause(second)
        doors.let(second)
        await service.executions.wait(second)
        first = (await service.executions.execute(plan)).execution_id
        await until(lambda: doors.came == [second, first])
        await service.executions.resume(second)
        store.held = second
        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(_call(COMMANDS[command](service, second)))
            await store.came.wait()
            caller.cancel()
            await asyncio.sleep(0)
            store.gate.set()
        assert caller.cancelled()
        doors.let(first)
        await service.executions.wait(first)
        expected = {"cancel": "cancelled", "pause": "paused"}[command]
        record = await service.executions.wait(second)
        assert (record.status, service.load.queued) == (expected, 0)
        assert (await service.executions.get(second)).status == expected


async def _call(call: Awaitable[object]) -> None:
    await call


async def _refusal(call: Awaitable[object]) -> str:
    with pytest.raises(StoreError) as refused:
        await call
    return refused.value.code


async def test_cancel_after_start_precedes_every_node() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors])) as service:
        record = await service.executions.execute(await plan_in(service))
        await service.executions.cancel(record.execution_id, "changed my mind")
        events = await service.executions.events(record.execution_id)
        assert events[-1].type == "execution.cancelled"
        assert events[-1].data["cause"] == "changed my mind"
        assert "node.started" not in [e.type for e in events]
        assert doors.came == []
        assert (await service.executions.get(record.execution_id)).epoch == 1


@pytest.mark.parametrize("first", ["start", "cancel"])
async def test_concurrent_start_and_cancel_are_ordered(
    first: str,
) -> None:
    doors, store = Doors(), Gated("claim")
    async with Service(dependencies(DOOR, types=[doors], store=store)) as service:
        created = await service.executions.create(await plan_in(service))
        received: list[str] = []

        async def start() -> None:
            try:
                await service.executions.start(created.execution_id)
                received.append("started")
            except Conflict:
                received.append("too late")

        async with asyncio.TaskGroup() as tasks:
            calls = [start(), service.executions.cancel(created.execution_id)]
            for call in calls if first == "start" else reversed(calls):
                tasks.create_task(call)
                await store.came.wait()
            store.gate.set()
        assert received == ["started" if first == "start" else "too late"]
        assert (await service.executions.wait(created.execution_id)).status == "cancelled"
        ends = [t for t in await types_of(service, created.execution_id) if t in TERMINAL]
        assert ends == ["execution.cancelled"]


async def test_late_cancel_reports_the_final_status() -> None:
    held, store = HeldNode(), Gated("node.completed")
    graph = make_graph(Node("h", "held", "H"))
    async with Service(dependencies(graph, types=[held], store=store)) as service:
        record = await service.executions.execute(await plan_in(service))
        await held.started.wait()
        held.release.set()
        await store.came.wait()
        async with asyncio.TaskGroup() as tasks:
            late = tasks.create_task(_conflict(service.executions.cancel(record.execution_id)))
            await asyncio.sleep(0)
            store.gate.set()
        assert "is already completed" in late.result()


async def _conflict(call: Any) -> str:
    with pytest.raises(Conflict) as caught:
        await call
    return caught.value.message


# -- going down


async def test_drain_waits_for_running_nodes_and_ends_no_execution() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME)) as service:
        plan = await plan_in(service)
        running, queued = [(await service.executions.execute(plan)).execution_id for _ in range(2)]
        await until(lambda: doors.came)
        async with asyncio.TaskGroup() as tasks:
            draining = tasks.create_task(service.drain(30))
            waiting = [tasks.create_task(service.executions.wait(i)) for i in (running, queued)]
            await asyncio.sleep(0)
            assert service.load.is_draining
            assert not draining.done()
            doors.let(running)
        assert [task.result().status for task in waiting] == ["executing", "starting"]
        types = await types_of(service, running)
        assert types[-1] == "wave.completed"
        assert types.count("node.completed") == types.count("node.started") == 1
        assert await types_of(service, queued) == ["execution.created"]
        assert (service.load.running, service.load.queued) == (0, 0)


async def test_streams_that_were_closed_before_a_drain_cut_nothing_off() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME)) as service:
        running = (await service.executions.execute(await plan_in(service))).execution_id
        await until(lambda: doors.came)
        service.close_streams()
        await asyncio.sleep(0.01)
        async with asyncio.TaskGroup() as tasks:
            draining = tasks.create_task(service.drain(30))
            await asyncio.sleep(0.01)
            assert not draining.done()
            doors.let(running)
        statuses = [e.status for e in (await service.executions.state(running)).nodes.values()]
        assert statuses.count("completed") == 1, "what ran came to its end"


async def test_drain_timeout_interrupts_nodes() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors])) as service:
        record = await service.executions.execute(await plan_in(service))
        await until(lambda: doors.came)
        await service.drain(0)
        assert (await service.executions.wait(record.execution_id)).status == "executing"
        assert (await types_of(service, record.execution_id))[-1] == "node.started"


async def test_drain_can_be_aborted() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors])) as service:
        record = await service.executions.execute(await plan_in(service))
        await until(lambda: doors.came)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(service.drain(3600))
            await asyncio.sleep(0)
            service.abort()
        assert (await service.executions.get(record.execution_id)).status == "executing"


async def test_draining_service_rejects_new_work() -> None:
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        plan = await plan_in(service)
        created = await service.executions.create(plan)
        await service.drain(0)
        for call in (
            lambda: service.executions.execute(plan),
            lambda: service.executions.create(plan),
            lambda: service.executions.start(created.execution_id),
            lambda: anext(service.executions.watch(created.execution_id)),
            lambda: anext(service.executions.status_updates(created.execution_id, 1)),
        ):
            with pytest.raises(ShuttingDown):
                await call()
        assert [x.status for x in await service.executions.list()] == ["starting"]


async def test_drain_leaves_unstarted_execution_unchanged() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors])) as service:
        record = await service.executions.execute(await plan_in(service))
        await service.drain(30)
        assert (await service.executions.wait(record.execution_id)).status == "starting"
        assert doors.came == []


async def test_drain_between_create_and_queue_cancels_the_execution() -> None:
    store = Gated("create")
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        plan = await plan_in(service)
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(_drained(service.executions.execute(plan)))
            await store.came.wait()
            await service.drain(0)
            store.gate.set()
        assert calling.result()
        assert [x.status for x in await service.executions.list()] == ["cancelled"]


async def _drained(call: Any) -> bool:
    with pytest.raises(ShuttingDown):
        await call
    return True


class Stubborn:
    """A node type that takes its time to give up."""

    node_type = "stubborn"

    def __init__(self) -> None:
        self.came, self.told, self.gives_up = (asyncio.Event() for _ in range(3))

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.came.set()
        try:
            return await asyncio.Event().wait()  # type: ignore[return-value]
        finally:
            self.told.set()
            await self.gives_up.wait()


async def test_cancel_during_drain_is_rejected() -> None:
    stubborn = Stubborn()
    graph = make_graph(Node("s", "stubborn", "S"))
    async with Service(dependencies(graph, types=[stubborn])) as service:
        record = await service.executions.execute(await plan_in(service))
        await stubborn.came.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(service.drain(0))
            await stubborn.told.wait()
            received = tasks.create_task(_drained(service.executions.cancel(record.execution_id)))
            await asyncio.sleep(0)
            stubborn.gives_up.set()
        assert received.result()
        assert (await service.executions.get(record.execution_id)).status == "executing"


async def test_closing_service_cancels_unstarted_execution() -> None:
    doors, store = Doors(), MemoryStore()
    async with Service(dependencies(DOOR, types=[doors], store=store)) as service:
        record = await service.executions.execute(await plan_in(service))
    stored = await store.execution(record.execution_id)
    assert stored is not None
    assert (stored.status, doors.came) == ("cancelled", [])


async def test_watched_execution_is_freed_after_its_end() -> None:
    graph = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])
    async with Service(dependencies(graph)) as service:
        plan = await service.plans.create("do it")
        with uncollected(Execution, LiveExecution) as left:
            execution_id = (await service.executions.execute(plan.plan_id)).execution_id
            assert {type(each) for each in left} == {LiveExecution}
            async for _ in service.executions.watch(execution_id):
                pass
            await service.executions.wait(execution_id)
            await until(lambda: not left)
