"""The queue and what is carried from it: order, places, drains, and who comes first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import Conflict, QueueFull, ShuttingDown
from planwave.events import TERMINAL, Event
from planwave.executor.driver.execution import Execution
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult
from planwave.service.service import Service
from planwave.service.streaming.live_execution import LiveExecution
from planwave.settings import Limits
from planwave.storage.memory import MemoryStore
from planwave.storage.records import ExecutionRecord, PlanRecord
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
    return [event.type for event in await service.events(execution_id)]


async def plan_in(service: Service) -> str:
    return (await service.create_plan("do it")).plan_id


# -- the queue


async def test_executions_start_in_the_order_they_came_and_know_their_place() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME)) as service:
        plan = await plan_in(service)
        ids = [(await service.execute(plan)).execution_id for _ in range(4)]
        await until(lambda: doors.came)
        assert [service.position(i) for i in ids] == [None, 1, 2, 3]
        assert (service.load.running, service.load.queued) == (1, 3)
        for number, execution_id in enumerate(ids, 1):
            doors.let(execution_id)
            await service.wait(execution_id)
            await until(lambda number=number: len(doors.came) == min(number + 1, 4))
            assert [service.position(i) for i in ids[number + 1 :]] == list(range(1, 4 - number))
        assert doors.came == ids


async def test_as_many_run_at_once_as_may() -> None:
    doors = Doors()
    limits = Limits(concurrent_executions=2)
    async with Service(dependencies(DOOR, types=[doors], limits=limits)) as service:
        plan = await plan_in(service)
        ids = [(await service.execute(plan)).execution_id for _ in range(3)]
        await until(lambda: len(doors.came) == 2)
        assert (service.load.running, service.load.queued) == (2, 1)
        for execution_id in ids:
            doors.let(execution_id)
            await service.wait(execution_id)


async def test_a_full_queue_says_when_to_come_back_and_creates_nothing() -> None:
    doors = Doors()
    limits = Limits(concurrent_executions=1, queued_executions=2)
    async with Service(dependencies(DOOR, types=[doors], limits=limits)) as service:
        plan = await plan_in(service)
        early = await service.create_execution(plan)
        ids = [(await service.execute(plan)).execution_id for _ in range(3)]
        with pytest.raises(QueueFull) as caught:
            await service.execute(plan)
        assert (caught.value.code, caught.value.retry_after_s) == ("queue-full", 5)
        assert "PLANWAVE_LIMIT_QUEUED_EXECUTIONS" in (caught.value.hint or "")
        assert len(await service.executions()) == 4
        with pytest.raises(QueueFull):
            await service.start(early.execution_id)
        assert (await service.execution(early.execution_id)).status == "starting"
        for execution_id in ids:
            doors.let(execution_id)
            await service.wait(execution_id)
        await service.start(early.execution_id)
        doors.let(early.execution_id)
        assert (await service.wait(early.execution_id)).status == "completed"


async def test_one_free_place_is_given_once_however_many_ask_at_once() -> None:
    doors, store = Doors(), Gated("create")
    limits = Limits(concurrent_executions=1, queued_executions=0)
    async with Service(dependencies(DOOR, types=[doors], limits=limits, store=store)) as service:
        plan = await plan_in(service)
        refused = 0

        async def ask() -> str | None:
            nonlocal refused
            try:
                return (await service.execute(plan)).execution_id
            except QueueFull:
                refused += 1
                return None

        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(ask()) for _ in range(10)]
            await store.came.wait()
            store.gate.set()
        (accepted,) = [one for task in asked if (one := task.result())]
        assert refused == 9
        assert [x.execution_id for x in await service.executions()] == [accepted]
        doors.let(accepted)


async def test_a_place_is_free_again_when_nothing_came_of_it() -> None:
    limits = Limits(concurrent_executions=1, queued_executions=0)
    async with Service(dependencies(make_graph(text_node("a")), limits=limits)) as service:
        plan = await plan_in(service)
        for _ in range(3):
            with pytest.raises(Exception, match="no plan"):
                await service.execute("01900000-0000-7000-8000-0000000000ff")
        record = await service.execute(plan)
        assert (await service.wait(record.execution_id)).status == "completed"


# -- starting what was made before


async def test_what_was_made_before_runs_when_it_is_started() -> None:
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        made = await service.create_execution(await plan_in(service))
        assert (made.status, service.position(made.execution_id)) == ("starting", None)
        await service.start(made.execution_id)
        assert (await service.wait(made.execution_id)).status == "completed"
        with pytest.raises(Conflict, match="it is completed") as caught:
            await service.start(made.execution_id)
        assert caught.value.code == "already-started"


async def test_what_an_earlier_process_made_runs_here_with_its_inputs_and_options() -> None:
    store = MemoryStore()
    graph = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])
    async with Service(dependencies(graph, store=store)) as earlier:
        made = await earlier.create_execution(
            await plan_in(earlier), inputs={"a": {"output": "given"}}, trigger={"by": "me"}
        )
        async with Service(dependencies(graph, store=store)) as later:
            await later.start(made.execution_id)
            record = await later.wait(made.execution_id)
            events = await later.events(made.execution_id)
            assert (record.status, record.epoch) == ("completed", 2)
            assert [e.seq for e in events] == list(range(1, record.last_seq + 1))
            given = [e for e in events if e.data.get("given")]
            assert [e.path for e in given] == ["a"]


async def test_what_another_process_left_running_is_not_started_again() -> None:
    store = MemoryStore()
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        made = await service.create_execution(await plan_in(service))
        began = Event(made.execution_id, 2, "t", "execution.started", None, None, {"waves": 1})
        await store.append(made.execution_id, 1, [began])
        with pytest.raises(Conflict, match="it is executing"):
            await service.start(made.execution_id)


class Switched(FakeProviders):
    """Providers that can go away."""

    gone = False

    def list(self) -> list[Any]:
        return [replace(i, available=i.available and not self.gone) for i in self.infos]

    def resolve(self, provider: str | None, model: str | None) -> tuple[str, str]:
        return super().resolve("off" if self.gone else provider, model)


@pytest.mark.parametrize("queued", [False, True], ids=["started late", "queued"])
async def test_an_execution_whose_provider_went_away_fails_and_starts_no_node(queued: bool) -> None:
    doors, providers = Doors(), Switched()
    catalogue = library_registry(providers)
    catalogue.register(doors)
    agent = Node("a", "agent", "A", data={"provider": "openai", "userPrompt": "x"})
    made = replace(
        dependencies(make_graph(agent), types=[doors], limits=ONE_AT_A_TIME), catalogue=catalogue
    )
    async with Service(made) as service:
        if queued:
            busy = await service.read_plan(json.dumps(DOOR.to_document()))
            first = await service.execute(busy)
            record = await service.execute(await plan_in(service))
            providers.gone = True
            doors.let(first.execution_id)
        else:
            record = await service.create_execution(await plan_in(service))
            providers.gone = True
            await service.start(record.execution_id)
        assert (await service.wait(record.execution_id)).status == "failed"
        events = await service.events(record.execution_id)
        assert [e.type for e in events] == ["execution.created", "execution.failed"]
        assert events[-1].data["error"]["code"] == "unavailable-provider"
        assert events[-1].data["error"]["hint"] == "set OFF_KEY"


async def test_two_starts_at_once_run_it_once() -> None:
    store = Gated("claim")
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        made = await service.create_execution(await plan_in(service))

        async def start() -> bool:
            try:
                await service.start(made.execution_id)
            except Conflict:
                return False
            return True

        async with asyncio.TaskGroup() as tasks:
            starts = [tasks.create_task(start()) for _ in range(5)]
            await store.came.wait()
            store.gate.set()
        assert sorted(task.result() for task in starts) == [False] * 4 + [True]
        await service.wait(made.execution_id)
        assert (await types_of(service, made.execution_id)).count("execution.started") == 1


# -- callers that leave


async def test_a_caller_that_leaves_before_the_start_was_accepted_leaves_it_to_be_started() -> None:
    store = Gated("claim")
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        made = await service.create_execution(await plan_in(service))
        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(service.start(made.execution_id))
            await store.came.wait()
            caller.cancel()
        assert (await service.execution(made.execution_id)).status == "starting"
        store.gate.set()
        await service.start(made.execution_id)
        assert (await service.wait(made.execution_id)).status == "completed"


async def test_an_accepted_execution_goes_on_without_its_caller() -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "H"))
    async with Service(dependencies(graph, types=[held])) as service:
        plan = await plan_in(service)

        async def call() -> None:
            record = await service.execute(plan)
            await service.wait(record.execution_id)

        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(call())
            await held.started.wait()
            caller.cancel()
        held.release.set()
        (record,) = await service.executions()
        assert (await service.wait(record.execution_id)).status == "completed"


# -- cancelling


async def test_a_queued_execution_is_cancelled_and_never_starts() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME)) as service:
        plan = await plan_in(service)
        first, second, third = [(await service.execute(plan)).execution_id for _ in range(3)]
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(service.wait(second))
            await asyncio.sleep(0)
            await service.cancel(second, "not wanted")
        assert waiting.result().status == "cancelled"
        assert [service.position(i) for i in (second, third)] == [None, 1]
        with pytest.raises(Conflict):
            await service.cancel(second)
        for execution_id in (first, third):
            doors.let(execution_id)
            await service.wait(execution_id)
        assert doors.came == [first, third]
        events = await service.events(second)
        assert events[-1].data == {"cause": "not wanted"}


async def test_a_cancel_right_after_the_start_comes_before_any_node() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors])) as service:
        record = await service.execute(await plan_in(service))
        await service.cancel(record.execution_id, "changed my mind")
        events = await service.events(record.execution_id)
        assert events[-1].type == "execution.cancelled"
        assert events[-1].data["cause"] == "changed my mind"
        assert "node.started" not in [e.type for e in events]
        assert doors.came == []
        assert (await service.execution(record.execution_id)).epoch == 1


@pytest.mark.parametrize("first", ["start", "cancel"])
async def test_of_a_start_and_a_cancel_at_once_the_first_is_done_and_the_other_told(
    first: str,
) -> None:
    doors, store = Doors(), Gated("claim")
    async with Service(dependencies(DOOR, types=[doors], store=store)) as service:
        made = await service.create_execution(await plan_in(service))
        told: list[str] = []

        async def start() -> None:
            try:
                await service.start(made.execution_id)
                told.append("started")
            except Conflict:
                told.append("too late")

        async with asyncio.TaskGroup() as tasks:
            calls = [start(), service.cancel(made.execution_id)]
            for call in calls if first == "start" else reversed(calls):
                tasks.create_task(call)
                await store.came.wait()
            store.gate.set()
        assert told == ["started" if first == "start" else "too late"]
        assert (await service.wait(made.execution_id)).status == "cancelled"
        ends = [t for t in await types_of(service, made.execution_id) if t in TERMINAL]
        assert ends == ["execution.cancelled"]


async def test_a_cancel_that_comes_too_late_says_how_it_ended() -> None:
    held, store = HeldNode(), Gated("node.completed")
    graph = make_graph(Node("h", "held", "H"))
    async with Service(dependencies(graph, types=[held], store=store)) as service:
        record = await service.execute(await plan_in(service))
        await held.started.wait()
        held.release.set()
        await store.came.wait()
        async with asyncio.TaskGroup() as tasks:
            late = tasks.create_task(_conflict(service.cancel(record.execution_id)))
            await asyncio.sleep(0)
            store.gate.set()
        assert "is already completed" in late.result()


async def _conflict(call: Any) -> str:
    with pytest.raises(Conflict) as caught:
        await call
    return caught.value.message


# -- going down


async def test_a_drain_lets_running_nodes_finish_and_ends_nothing() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors], limits=ONE_AT_A_TIME)) as service:
        plan = await plan_in(service)
        running, queued = [(await service.execute(plan)).execution_id for _ in range(2)]
        await until(lambda: doors.came)
        async with asyncio.TaskGroup() as tasks:
            draining = tasks.create_task(service.drain(30))
            waiting = [tasks.create_task(service.wait(i)) for i in (running, queued)]
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


async def test_a_drain_that_runs_out_of_time_cuts_off_what_is_left() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors])) as service:
        record = await service.execute(await plan_in(service))
        await until(lambda: doors.came)
        await service.drain(0)
        assert (await service.wait(record.execution_id)).status == "executing"
        assert (await types_of(service, record.execution_id))[-1] == "node.started"


async def test_a_drain_can_be_cut_short() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors])) as service:
        record = await service.execute(await plan_in(service))
        await until(lambda: doors.came)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(service.drain(3600))
            await asyncio.sleep(0)
            service.abort()
        assert (await service.execution(record.execution_id)).status == "executing"


async def test_nothing_new_is_taken_while_the_service_goes_down() -> None:
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        plan = await plan_in(service)
        made = await service.create_execution(plan)
        await service.drain(0)
        for call in (
            lambda: service.execute(plan),
            lambda: service.create_execution(plan),
            lambda: service.start(made.execution_id),
            lambda: anext(service.watch(made.execution_id)),
            lambda: anext(service.status_updates(made.execution_id, 1)),
        ):
            with pytest.raises(ShuttingDown):
                await call()
        assert [x.status for x in await service.executions()] == ["starting"]


async def test_what_was_about_to_run_when_the_drain_came_stays_as_it_is() -> None:
    doors = Doors()
    async with Service(dependencies(DOOR, types=[doors])) as service:
        record = await service.execute(await plan_in(service))
        await service.drain(30)
        assert (await service.wait(record.execution_id)).status == "starting"
        assert doors.came == []


async def test_a_drain_between_creating_and_queueing_leaves_nothing_that_would_start_later() -> (
    None
):
    store = Gated("create")
    async with Service(dependencies(make_graph(text_node("a")), store=store)) as service:
        plan = await plan_in(service)
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(_drained(service.execute(plan)))
            await store.came.wait()
            await service.drain(0)
            store.gate.set()
        assert calling.result()
        assert [x.status for x in await service.executions()] == ["cancelled"]


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


async def test_a_cancel_of_what_is_being_left_says_that_it_was_left() -> None:
    stubborn = Stubborn()
    graph = make_graph(Node("s", "stubborn", "S"))
    async with Service(dependencies(graph, types=[stubborn])) as service:
        record = await service.execute(await plan_in(service))
        await stubborn.came.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(service.drain(0))
            await stubborn.told.wait()
            told = tasks.create_task(_drained(service.cancel(record.execution_id)))
            await asyncio.sleep(0)
            stubborn.gives_up.set()
        assert told.result()
        assert (await service.execution(record.execution_id)).status == "executing"


async def test_leaving_the_service_cancels_even_what_was_only_about_to_run() -> None:
    doors, store = Doors(), MemoryStore()
    async with Service(dependencies(DOOR, types=[doors], store=store)) as service:
        record = await service.execute(await plan_in(service))
    kept = await store.execution(record.execution_id)
    assert kept is not None
    assert (kept.status, doors.came) == ("cancelled", [])


async def test_an_execution_that_was_watched_to_its_end_is_let_go_of() -> None:
    graph = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])
    async with Service(dependencies(graph)) as service:
        plan = await service.create_plan("do it")
        with uncollected(Execution, LiveExecution) as left:
            execution_id = (await service.execute(plan.plan_id)).execution_id
            assert {type(each) for each in left} == {LiveExecution}
            async for _ in service.watch(execution_id):
                pass
            await service.wait(execution_id)
            await until(lambda: not left)
