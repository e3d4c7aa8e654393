"""What a caller asks for under an id of its own is made once."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import (
    Conflict,
    GraphInvalid,
    InputError,
    StoreError,
    UnavailableProvider,
    UnknownProvider,
)
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.model import Node
from planwave.graph.plan import Plan
from planwave.graph.protocols import Suspension
from planwave.ids import new_id
from planwave.service.executions import document_writer
from planwave.service.queries import history
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.service.dependencies import FixedPlanner, dependencies, execute_goal

CHAIN = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])


async def run_to_end(service: Service, plan: str | Plan, **more: Any) -> tuple[str, list[Event]]:
    record = await service.executions.execute(plan, **more)
    return record.execution_id, [
        event async for event in service.executions.watch(record.execution_id)
    ]


async def test_executed_plan_is_watched_to_its_end(tmp_path) -> None:
    async with Service(dependencies(CHAIN, directory=tmp_path)) as service:
        plan = await service.plans.create("do it")
        execution_id, events = await run_to_end(service, plan.plan_id)
        record = await service.executions.wait(execution_id)
        assert [e.seq for e in events if e.seq] == list(range(1, record.last_seq + 1))
        assert (events[0].type, events[-1].type) == ("execution.created", "execution.completed")
        assert events[0].data["goal"] == "do it"
        assert events[0].data["plan_hash"] == plan.hash
        assert record.status == "completed"
        written = json.loads((tmp_path / f"{execution_id}.json").read_text())
        assert written["node_results"] == {"a": "one", "b": "two"}
        assert (await service.executions.get(execution_id)).document_seq == record.last_seq


async def test_options_without_a_value_get_the_limits_and_are_stored() -> None:
    limits = Limits(parallel_nodes=3, node_timeout_s=5, largest_result_bytes=9, run_state_bytes=99)
    async with Service(dependencies(CHAIN, limits=limits)) as service:
        plan = await service.plans.create("do it")
        options = RunOptions(scheduling="waves", node_timeout_s=2)
        _, events = await run_to_end(service, plan.plan_id, options=options)
        stored = events[0].data["options"]
        assert (stored["scheduling"], stored["max_parallel"]) == ("waves", 3)
        assert stored["node_timeout_s"] == 2
        assert (stored["max_result_bytes"], stored["max_state_bytes"]) == (9, 99)


async def test_option_beyond_a_limit_is_an_error() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.plans.create("do it")
        with pytest.raises(InputError) as caught:
            await service.executions.execute(plan.plan_id, options=RunOptions(max_parallel=10**30))
        assert caught.value.code == "invalid-option"
        assert caught.value.message == (
            f"the option max_parallel is {10**30}, at most 64 is allowed (limit parallel_nodes)"
        )
        assert caught.value.hint == "ask for less, or raise the limit parallel_nodes"


async def test_flat_inputs_are_stored_by_node_and_copied() -> None:
    graph = make_graph(Node("s", "start", "S"), text_node("t"), edges=[("s", "t")])
    async with Service(dependencies(graph)) as service:
        plan = await service.plans.create("do it")
        handed: dict[str, Any] = {"output": ["hi"]}
        accepted = await service.executions.execute(plan.plan_id, inputs=handed)
        handed["output"].append("changed")
        await service.executions.wait(accepted.execution_id)
        documents = await service.executions.document(accepted.execution_id)
        events = [e async for e in service.executions.watch(accepted.execution_id)]
    assert events[0].data["inputs"] == {"s": {"output": ["hi"]}}
    assert documents["node_results"]["s"] == '["hi"]'


@pytest.mark.parametrize(
    ("inputs", "code", "says"),
    [
        ({"ghost": {"output": 1}}, "unknown-input-node", "ghost"),
        ({"a": {"x": 1}}, "invalid-inputs", "its outputs are: output"),
        ({"a": {"output": {1}}}, "invalid-inputs", "Python set"),
        ({"a": "text"}, "invalid-inputs", "must be an object"),
    ],
)
async def test_invalid_inputs_create_nothing(inputs: Any, code: str, says: str) -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.plans.create("do it")
        with pytest.raises(InputError) as caught:
            await service.executions.execute(plan.plan_id, inputs=inputs)
        assert caught.value.code == code
        assert says in caught.value.message
        assert await service.executions.list() == []


class Looking:
    """Counts how often nodes of it are checked."""

    node_type = "looking"

    def __init__(self) -> None:
        self.looks = 0

    def check(self, data: Any, view: Any) -> list[Any]:
        self.looks += 1
        return []

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any: ...


LOOKING = {"nodes": [{"id": "a", "type": "looking"}], "edges": []}


async def test_checked_plan_is_not_checked_again() -> None:
    type_ = Looking()
    async with Service(dependencies(types=[type_])) as service:
        checked = await service.plans.parse_and_check(LOOKING)
        assert type_.looks == 1
        record = await service.executions.create(checked)
        assert type_.looks == 1
        assert (
            record.plan_id
            == checked.plan.plan_id
            == (await service.plans.get(record.plan_id)).plan_id
        )
        await service.executions.create(checked.plan)
        assert type_.looks == 2


async def test_plan_checked_elsewhere_is_checked_again() -> None:
    type_ = Looking()
    async with (
        Service(dependencies(types=[type_])) as other,
        Service(dependencies(types=[type_])) as service,
    ):
        theirs, checked = (
            await other.plans.parse_and_check(LOOKING),
            await service.plans.parse_and_check(LOOKING),
        )
        type_.looks = 0
        await service.executions.create(theirs)  # against limits and providers of their own
        assert type_.looks == 1
        await service.executions.create(checked, policies={"a": {"timeoutS": 9}})
        assert type_.looks == 2
        with pytest.raises(GraphInvalid, match="timeoutS"):
            await service.executions.create(checked, policies={"a": {"timeoutS": 1e9}})
        changed = replace(checked.plan, graph=make_graph(text_node("a"), edges=[("a", "lost")]))
        with pytest.raises(GraphInvalid, match="lost"):
            await service.executions.create(checked._replace(plan=changed))
        await service.executions.create(checked)
        stored = await service.plans.parse_and_check({"plan_id": checked.plan.plan_id, **LOOKING})
        assert stored.plan.plan_id == checked.plan.plan_id
        type_.looks = 0
        await service.executions.create(stored)  # of the graph as it is stored
        assert type_.looks == 1


async def test_checked_plan_with_unavailable_provider_is_rejected() -> None:
    graph = make_graph(Node("a", "agent", "a", data={"provider": "off", "userPrompt": "x"}))
    async with Service(dependencies()) as service:
        checked = await service.plans.parse_and_check(graph.to_document())
        with pytest.raises(UnavailableProvider):
            await service.executions.create(checked)
        assert await service.executions.list() == []


@pytest.mark.parametrize(
    ("provider", "error"), [("off", UnavailableProvider), ("nobody", UnknownProvider)]
)
async def test_unusable_provider_creates_nothing(provider, error) -> None:
    graph = make_graph(Node("a", "agent", "A", data={"provider": provider, "userPrompt": "x"}))
    async with Service(dependencies(graph)) as service:
        plan = await service.plans.create("do it")
        with pytest.raises(error) as caught:
            await service.executions.execute(plan.plan_id)
        assert caught.value.hint
        assert await service.executions.list() == []


async def test_running_execution_is_cancelled_and_stored(tmp_path) -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "H"), text_node("after"), edges=[("h", "after")])
    async with Service(dependencies(graph, directory=tmp_path, types=[held])) as service:
        record = await execute_goal(service)
        await held.started.wait()
        await service.executions.cancel(record.execution_id, "enough")
        events = await service.executions.events(record.execution_id)
        assert events[-1].type == "execution.cancelled"
        assert events[-1].data["cause"] == "enough"
        assert json.loads((tmp_path / f"{record.execution_id}.json").read_text())["status"] == (
            "cancelled"
        )
        with pytest.raises(Conflict, match="already cancelled"):
            await service.executions.cancel(record.execution_id)


async def test_closing_service_cancels_running_execution() -> None:
    held, store = HeldNode(), MemoryStore()
    async with Service(
        dependencies(make_graph(Node("h", "held", "H")), types=[held], store=store)
    ) as service:
        record = await execute_goal(service)
        await held.started.wait()
    saved = await store.execution(record.execution_id)
    assert saved is not None
    assert saved.status == "cancelled"


async def test_execution_left_by_a_crash_can_be_cancelled(tmp_path) -> None:
    store = MemoryStore()
    async with Service(dependencies(CHAIN, store=store)) as service:
        plan = await service.plans.create("do it")
        execution_id, _ = await run_to_end(service, plan.plan_id)
        done = await store.events(execution_id)
        orphan_id = "01900000-0000-7000-8000-00000000000f"
        record = replace(
            await service.executions.get(execution_id), execution_id=orphan_id, status="starting"
        )
        await store.create_execution(record, [e._replace(execution_id=orphan_id) for e in done[:3]])
        await service.executions.cancel(orphan_id, "left behind")
        assert (await service.executions.get(orphan_id)).status == "cancelled"
        nodes = (await service.executions.document(orphan_id))["nodes"]
        assert {n["path"]: (n["status"], n["cause"]) for n in nodes} == {
            "a": ("cancelled", "left behind"),
            "b": ("cancelled", "left behind"),
        }


class RefusingStore(MemoryStore):
    """Refuses the append after the execution was created, until it ``works``."""

    works = False

    async def append(self, execution_id: str, epoch: int, events: Any) -> None:
        if not self.works:
            raise StoreError("the disk is full")
        await super().append(execution_id, epoch, events)


async def test_store_error_is_raised_to_waiters_and_subscribers() -> None:
    async with Service(dependencies(CHAIN, store=RefusingStore())) as service:
        execution_id = (await execute_goal(service)).execution_id
        with pytest.raises(StoreError, match="disk is full"):
            _ = [event async for event in service.executions.watch(execution_id)]
        with pytest.raises(StoreError, match="disk is full"):
            _ = [summary async for summary in service.executions.status_updates(execution_id, 1000)]
        with pytest.raises(StoreError, match="disk is full"):
            await service.executions.wait(execution_id)


async def test_broken_execution_can_be_cancelled_when_store_works_again() -> None:
    store = RefusingStore()
    async with Service(dependencies(CHAIN, store=store)) as service:
        execution_id = (await execute_goal(service)).execution_id
        with pytest.raises(StoreError, match="disk is full"):
            await service.executions.wait(execution_id)
        store.works = True
        await service.executions.cancel(execution_id)
        assert (await service.executions.wait(execution_id)).status == "cancelled"


class SlowStore(MemoryStore):
    """Keeps a new execution, and never comes to say so."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = asyncio.Event()

    async def create_execution(
        self, record: ExecutionRecord, events: Any, plan: PlanRecord | None = None
    ) -> None:
        await super().create_execution(record, events, plan)
        self.kept.set()
        await asyncio.Event().wait()


async def test_execution_of_cancelled_caller_is_cancelled() -> None:
    store = SlowStore()
    async with Service(dependencies(CHAIN, store=store)) as service:
        plan = await service.plans.create("do it")
        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(service.executions.execute(plan.plan_id))
            await store.kept.wait()
            caller.cancel()
    assert [x.status for x in await store.executions()] == ["cancelled"]


class RacingStore(MemoryStore):
    """Lets another caller cancel first, just before an execution is claimed."""

    async def claim(self, execution_id: str) -> int:
        if (await self.events(execution_id))[-1].type != "execution.cancelled":
            seq = len(await self.events(execution_id)) + 1
            other = Event(execution_id, seq, "t", "execution.cancelled", None, None, {})
            await self.append(execution_id, await super().claim(execution_id), [other])
        return await super().claim(execution_id)


async def test_concurrent_cancels_end_an_abandoned_execution_once() -> None:
    store = RacingStore()
    record = ExecutionRecord("x1", None, "t", "g", "starting", "t")
    await store.create_execution(record, [Event("x1", 1, "t", "execution.created", None, None, {})])
    async with Service(dependencies(CHAIN, store=store)) as service:
        with pytest.raises(Conflict, match="already cancelled"):
            await service.executions.cancel("x1")
        assert [e.seq for e in await service.executions.events("x1")] == [1, 2]


async def test_lagging_documents_are_written_at_start(tmp_path) -> None:
    store = MemoryStore()
    async with Service(dependencies(CHAIN, store=store)) as service:
        plan = await service.plans.create("do it")
        execution_id, _ = await run_to_end(service, plan.plan_id)
        assert await store.lagging_documents() == [execution_id]
        async with Service(dependencies(CHAIN, store=store, directory=tmp_path)):
            assert (tmp_path / f"{execution_id}.json").is_file()
            assert await store.lagging_documents() == []


class Asks:
    """A node type that waits for an answer."""

    node_type = "asks"

    async def execute(self, data: Any, inputs: Any, context: Any) -> Suspension:
        return Suspension({"question": "go on?"}, None)

    async def resume(self, *_: Any) -> Any:
        raise AssertionError("nobody answers here")


async def test_slow_document_write_does_not_replace_a_newer_one(tmp_path, monkeypatch) -> None:
    writing, gate = asyncio.Event(), asyncio.Event()
    written: list[str] = []

    async def write(_directory: Any, texts: dict[str, bytes]) -> dict[str, Exception]:
        for status in [json.loads(text)["status"] for text in texts.values()]:
            if status == "paused":
                writing.set()
                await gate.wait()
            written.append(status)
        return {}

    monkeypatch.setattr("planwave.service.executions.document_writer.write_documents", write)
    graph = make_graph(Node("q", "asks", "Q"))
    async with Service(dependencies(graph, directory=tmp_path, types=[Asks()])) as service:
        record = await execute_goal(service)
        await writing.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(service.executions.cancel(record.execution_id))
            async for _ in service.executions.watch(record.execution_id):
                pass  # to the terminal event
            for _ in range(20):
                await asyncio.sleep(0)
            gate.set()
    assert written == ["paused", "cancelled"]


async def test_documents_are_built_outside_the_event_loop(tmp_path, monkeypatch) -> None:
    created = document_writer.build_document
    threads: list[threading.Thread] = []

    def project(*given: Any) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return created(*given)

    for module in (document_writer, history):
        monkeypatch.setattr(module, "build_document", project)
    async with Service(dependencies(CHAIN, directory=tmp_path)) as service:
        plan = await service.plans.create("do it")
        execution_id, _ = await run_to_end(service, plan.plan_id)
        await service.executions.wait(execution_id)
        await service.executions.document(execution_id)
    assert len(threads) == 2
    assert threading.current_thread() not in threads


async def test_document_write_error_does_not_fail_the_execution(tmp_path) -> None:
    missing = tmp_path / "gone"
    async with Service(dependencies(CHAIN, directory=missing)) as service:
        plan = await service.plans.create("do it")
        execution_id, _ = await run_to_end(service, plan.plan_id)
        assert (await service.executions.wait(execution_id)).status == "completed"
        assert not missing.exists()


async def test_graph_becomes_a_stored_plan_with_its_execution() -> None:
    source = json.dumps({"title": "Mine", **CHAIN.to_document()})
    async with Service(dependencies()) as service:
        plan = await service.plans.read(source)
        assert (plan.title, plan.forecast["waves"]) == ("Mine", 2)
        assert await service.plans.list() == []
        execution_id, _ = await run_to_end(service, plan)
        assert (await service.executions.get(execution_id)).status == "completed"
        assert (await service.plans.get(plan.plan_id)).title == "Mine"


async def test_plan_keeps_its_id_until_edited() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.plans.create("do it")
        documents = plan.as_json()
        again = await service.plans.read(json.dumps(documents))
        assert again.plan_id == plan.plan_id
        documents["nodes"][0]["data"]["text"] = "changed"
        edited = await service.plans.read(json.dumps(documents).encode())
        assert edited.plan_id != plan.plan_id
        assert edited.user_prompt == "do it"


async def test_planner_progress_is_passed_on() -> None:
    from planwave.planner.progress import PlanProgress

    received: list[Any] = []
    output = PlanProgress("title", {"title": "T"})
    planner = FixedPlanner(make_plan(CHAIN), [output])
    async with Service(dependencies(planner=planner)) as service:
        await service.plans.create("my goal", on_progress=received.append)
    assert (planner.goals, received) == (["my goal"], [output])


async def test_close_callback_runs_before_the_store_closes() -> None:
    store, closed = MemoryStore(), []

    async def close() -> None:
        await store.executions()
        closed.append(True)

    async with Service(dependencies(store=store, close=close)):
        pass
    assert closed == [True]
    with pytest.raises(StoreError, match="closed"):
        await store.claim("x1")


PLAN = make_graph(text_node("a"))


async def test_plan_with_preassigned_id_is_created_once() -> None:
    planner, own = FixedPlanner(make_plan(PLAN)), new_id()
    async with Service(dependencies(planner=planner)) as service:
        first = await service.plans.create("do it", plan_id=own)
        again = await service.plans.create("do it", plan_id=own)
        assert (first.plan_id, again.hash) == (own, first.hash)
        assert planner.goals == ["do it"]


async def test_execution_with_preassigned_id_is_created_once() -> None:
    async with Service(dependencies(PLAN)) as service:
        plan, own = await service.plans.create("do it"), new_id()
        for _ in range(2):
            record = await service.executions.create(plan.plan_id, execution_id=own)
            assert (record.execution_id, record.status) == (own, "starting")
        assert len(await service.executions.list()) == 1


async def test_repeated_execute_starts_a_created_execution() -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "h"))
    async with Service(dependencies(graph, types=[held])) as service:
        plan, own = await service.plans.create("do it"), new_id()
        await service.executions.create(plan.plan_id, execution_id=own)
        await service.executions.execute(plan.plan_id, execution_id=own)
        await held.started.wait()
        running = await service.executions.execute(plan.plan_id, execution_id=own)
        assert (running.execution_id, running.status) == (own, "executing")
        held.release.set()
        await service.executions.wait(own)
        ended = await service.executions.execute(plan.plan_id, execution_id=own)
        assert ended.status == "completed"
