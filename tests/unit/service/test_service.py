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
    NotFound,
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
from planwave.storage.memory import MemoryStore
from planwave.storage.records import ExecutionRecord, PlanRecord
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import FailingNode, HeldNode
from tests.support.service.dependencies import FixedPlanner, dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])


async def run_to_end(service: Service, plan: str | Plan, **more: Any) -> tuple[str, list[Event]]:
    record = await service.execute(plan, **more)
    return record.execution_id, [event async for event in service.watch(record.execution_id)]


async def test_a_plan_is_stored_before_it_is_given() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.create_plan("do it")
        stored = await service.plan(plan.plan_id)
        assert (stored.user_prompt, stored.hash) == ("do it", plan.hash)
        assert stored.document["nodes"][0]["id"] == "a"


async def test_an_executed_plan_is_watched_from_creation_to_its_end(tmp_path) -> None:
    async with Service(dependencies(CHAIN, directory=tmp_path)) as service:
        plan = await service.create_plan("do it")
        execution_id, events = await run_to_end(service, plan.plan_id)
        record = await service.wait(execution_id)
        assert [e.seq for e in events if e.seq] == list(range(1, record.last_seq + 1))
        assert (events[0].type, events[-1].type) == ("execution.created", "execution.completed")
        assert events[0].data["goal"] == "do it"
        assert events[0].data["plan_hash"] == plan.hash
        assert record.status == "completed"
        written = json.loads((tmp_path / f"{execution_id}.json").read_text())
        assert written["node_results"] == {"a": "one", "b": "two"}
        assert (await service.execution(execution_id)).document_seq == record.last_seq


async def test_options_are_held_below_the_limits_and_stored_with_the_execution() -> None:
    limits = Limits(parallel_nodes=3, node_timeout_s=5, largest_result_bytes=9, run_state_bytes=99)
    async with Service(dependencies(CHAIN, limits=limits)) as service:
        plan = await service.create_plan("do it")
        options = RunOptions(scheduling="waves", max_parallel=50, node_timeout_s=2)
        _, events = await run_to_end(service, plan.plan_id, options=options)
        stored = events[0].data["options"]
        assert (stored["scheduling"], stored["max_parallel"]) == ("waves", 3)
        assert stored["node_timeout_s"] == 2
        assert (stored["max_result_bytes"], stored["max_state_bytes"]) == (9, 99)


async def test_inputs_settle_nodes_without_running_them() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.create_plan("do it")
        execution_id, events = await run_to_end(
            service, plan.plan_id, inputs={"a": {"output": "given"}}
        )
        assert events[0].data["inputs"] == {"a": {"output": "given"}}
        assert "a" not in [e.path for e in events if e.type == "node.started"]
        assert (await service.document(execution_id))["status"] == "completed"


async def test_flat_inputs_are_stored_by_node_and_apart_from_what_was_handed_in() -> None:
    graph = make_graph(Node("s", "start", "S"), text_node("t"), edges=[("s", "t")])
    async with Service(dependencies(graph)) as service:
        plan = await service.create_plan("do it")
        handed: dict[str, Any] = {"output": ["hi"]}
        accepted = await service.execute(plan.plan_id, inputs=handed)
        handed["output"].append("changed")
        await service.wait(accepted.execution_id)
        documents = await service.document(accepted.execution_id)
        events = [e async for e in service.watch(accepted.execution_id)]
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
async def test_nothing_is_created_for_inputs_no_node_can_be_given(
    inputs: Any, code: str, says: str
) -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.create_plan("do it")
        with pytest.raises(InputError) as caught:
            await service.execute(plan.plan_id, inputs=inputs)
        assert caught.value.code == code
        assert says in caught.value.message
        assert await service.executions() == []


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


async def test_what_was_checked_just_now_is_not_checked_again() -> None:
    type_ = Looking()
    async with Service(dependencies(types=[type_])) as service:
        checked = await service.parse_and_check(LOOKING)
        assert type_.looks == 1
        record = await service.create_execution(checked)
        assert type_.looks == 1
        assert (
            record.plan_id == checked.plan.plan_id == (await service.plan(record.plan_id)).plan_id
        )
        await service.create_execution(checked.plan)
        assert type_.looks == 2


async def test_what_was_checked_otherwise_is_checked_before_it_runs() -> None:
    type_ = Looking()
    async with (
        Service(dependencies(types=[type_])) as other,
        Service(dependencies(types=[type_])) as service,
    ):
        theirs, checked = (
            await other.parse_and_check(LOOKING),
            await service.parse_and_check(LOOKING),
        )
        type_.looks = 0
        await service.create_execution(theirs)  # against limits and providers of their own
        assert type_.looks == 1
        await service.create_execution(checked, policies={"a": {"timeoutS": 9}})
        assert type_.looks == 2
        with pytest.raises(GraphInvalid, match="timeoutS"):
            await service.create_execution(checked, policies={"a": {"timeoutS": 1e9}})
        changed = replace(checked.plan, graph=make_graph(text_node("a"), edges=[("a", "lost")]))
        with pytest.raises(GraphInvalid, match="lost"):
            await service.create_execution(checked._replace(plan=changed))
        await service.create_execution(checked)
        stored = await service.parse_and_check({"plan_id": checked.plan.plan_id, **LOOKING})
        assert stored.plan.plan_id == checked.plan.plan_id
        type_.looks = 0
        await service.create_execution(stored)  # of the graph as it is stored
        assert type_.looks == 1


async def test_what_was_found_of_a_provider_stops_an_execution_without_a_second_look() -> None:
    graph = make_graph(Node("a", "agent", "a", data={"provider": "off", "userPrompt": "x"}))
    async with Service(dependencies()) as service:
        checked = await service.parse_and_check(graph.to_document())
        with pytest.raises(UnavailableProvider):
            await service.create_execution(checked)
        assert await service.executions() == []


@pytest.mark.parametrize(
    ("provider", "error"), [("off", UnavailableProvider), ("nobody", UnknownProvider)]
)
async def test_nothing_is_created_where_a_provider_cannot_be_used(provider, error) -> None:
    graph = make_graph(Node("a", "agent", "A", data={"provider": provider, "userPrompt": "x"}))
    async with Service(dependencies(graph)) as service:
        plan = await service.create_plan("do it")
        with pytest.raises(error) as caught:
            await service.execute(plan.plan_id)
        assert caught.value.hint
        assert await service.executions() == []


async def test_an_unknown_plan_is_not_found() -> None:
    async with Service(dependencies()) as service:
        with pytest.raises(NotFound, match="no plan"):
            await service.execute("nope")


async def test_a_running_execution_is_cancelled_durably(tmp_path) -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "H"), text_node("after"), edges=[("h", "after")])
    async with Service(dependencies(graph, directory=tmp_path, types=[held])) as service:
        plan = await service.create_plan("do it")
        record = await service.execute(plan.plan_id)
        await held.started.wait()
        await service.cancel(record.execution_id, "enough")
        events = await service.events(record.execution_id)
        assert events[-1].type == "execution.cancelled"
        assert events[-1].data["cause"] == "enough"
        assert json.loads((tmp_path / f"{record.execution_id}.json").read_text())["status"] == (
            "cancelled"
        )
        with pytest.raises(Conflict, match="already cancelled"):
            await service.cancel(record.execution_id)


async def test_leaving_the_service_cancels_what_runs_and_keeps_it() -> None:
    held, store = HeldNode(), MemoryStore()
    async with Service(
        dependencies(make_graph(Node("h", "held", "H")), types=[held], store=store)
    ) as service:
        plan = await service.create_plan("do it")
        record = await service.execute(plan.plan_id)
        await held.started.wait()
    kept = await store.execution(record.execution_id)
    assert kept is not None
    assert kept.status == "cancelled"


async def test_an_execution_left_by_a_crash_can_be_cancelled(tmp_path) -> None:
    store = MemoryStore()
    async with Service(dependencies(CHAIN, store=store)) as service:
        plan = await service.create_plan("do it")
        execution_id, _ = await run_to_end(service, plan.plan_id)
        done = await store.events(execution_id)
        orphan_id = "01900000-0000-7000-8000-00000000000f"
        record = replace(
            await service.execution(execution_id), execution_id=orphan_id, status="starting"
        )
        await store.create_execution(record, [e._replace(execution_id=orphan_id) for e in done[:3]])
        await service.cancel(orphan_id, "left behind")
        assert (await service.execution(orphan_id)).status == "cancelled"
        nodes = (await service.document(orphan_id))["nodes"]
        assert {n["path"]: (n["status"], n["cause"]) for n in nodes} == {
            "a": ("cancelled", "left behind"),
            "b": ("cancelled", "left behind"),
        }


async def test_a_cancel_is_accepted_though_its_document_cannot_be_written(tmp_path) -> None:
    store = MemoryStore()
    record = ExecutionRecord("x1", None, "t", "g", "starting", "t")
    await store.create_execution(record, [Event("x1", 1, "t", "execution.created", None, None, {})])
    async with Service(dependencies(CHAIN, store=store, directory=tmp_path / "gone")) as service:
        await service.cancel("x1")
        assert (await service.execution("x1")).status == "cancelled"


async def test_several_watchers_see_the_same_and_late_ones_the_whole() -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "H"), text_node("after"), edges=[("h", "after")])
    async with Service(dependencies(graph, types=[held])) as service:
        plan = await service.create_plan("do it")
        record = await service.execute(plan.plan_id)

        async def seqs(after: int = 0) -> list[int]:
            return [e.seq async for e in service.watch(record.execution_id, after=after) if e.seq]

        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(seqs())
            await held.started.wait()
            second = tasks.create_task(seqs())
            cursor = tasks.create_task(seqs(after=3))
            held.release.set()
        last = (await service.execution(record.execution_id)).last_seq
        assert first.result() == second.result() == list(range(1, last + 1))
        assert cursor.result() == list(range(4, last + 1))
        assert await seqs() == first.result()


async def test_a_failed_node_fails_the_execution_and_nothing_else() -> None:
    graph = make_graph(Node("x", "broken", "X"), text_node("y"))
    async with Service(dependencies(graph, types=[FailingNode()])) as service:
        plan = await service.create_plan("do it")
        execution_id, events = await run_to_end(service, plan.plan_id)
        assert events[-1].type == "execution.failed"
        statuses = {n["id"]: n["status"] for n in (await service.document(execution_id))["nodes"]}
        assert statuses == {"x": "failed", "y": "completed"}
        assert await service.plan_status(plan.plan_id) == "failed"


class RefusingStore(MemoryStore):
    """Refuses the append after the execution was created, until it ``works``."""

    works = False

    async def append(self, execution_id: str, epoch: int, events: Any) -> None:
        if not self.works:
            raise StoreError("the disk is full")
        await super().append(execution_id, epoch, events)


async def test_a_broken_store_is_told_to_who_waits_and_who_watches() -> None:
    async with Service(dependencies(CHAIN, store=RefusingStore())) as service:
        plan = await service.create_plan("do it")
        execution_id = (await service.execute(plan.plan_id)).execution_id
        with pytest.raises(StoreError, match="disk is full"):
            _ = [event async for event in service.watch(execution_id)]
        with pytest.raises(StoreError, match="disk is full"):
            await service.wait(execution_id)


async def test_a_run_that_broke_can_be_cancelled_once_the_store_works_again() -> None:
    store = RefusingStore()
    async with Service(dependencies(CHAIN, store=store)) as service:
        plan = await service.create_plan("do it")
        execution_id = (await service.execute(plan.plan_id)).execution_id
        with pytest.raises(StoreError, match="disk is full"):
            await service.wait(execution_id)
        store.works = True
        await service.cancel(execution_id)
        assert (await service.wait(execution_id)).status == "cancelled"


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


async def test_an_execution_whose_caller_left_before_it_began_does_not_stay_open() -> None:
    store = SlowStore()
    async with Service(dependencies(CHAIN, store=store)) as service:
        plan = await service.create_plan("do it")
        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(service.execute(plan.plan_id))
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


async def test_two_cancels_of_an_execution_left_by_a_crash_end_it_once() -> None:
    store = RacingStore()
    record = ExecutionRecord("x1", None, "t", "g", "starting", "t")
    await store.create_execution(record, [Event("x1", 1, "t", "execution.created", None, None, {})])
    async with Service(dependencies(CHAIN, store=store)) as service:
        with pytest.raises(Conflict, match="already cancelled"):
            await service.cancel("x1")
        assert [e.seq for e in await service.events("x1")] == [1, 2]


async def test_documents_that_lag_are_written_at_the_next_start(tmp_path) -> None:
    store = MemoryStore()
    async with Service(dependencies(CHAIN, store=store)) as service:
        plan = await service.create_plan("do it")
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


async def test_a_slow_document_of_a_pause_never_replaces_that_of_the_end(
    tmp_path, monkeypatch
) -> None:
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
        plan = await service.create_plan("do it")
        record = await service.execute(plan.plan_id)
        await writing.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(service.cancel(record.execution_id))
            async for _ in service.watch(record.execution_id):
                pass  # to the terminal event
            for _ in range(20):
                await asyncio.sleep(0)
            gate.set()
    assert written == ["paused", "cancelled"]


async def test_a_long_run_is_made_a_document_beside_the_event_loop(tmp_path, monkeypatch) -> None:
    made = document_writer.build_document
    threads: list[threading.Thread] = []

    def project(*given: Any) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return made(*given)

    for module in (document_writer, history):
        monkeypatch.setattr(module, "build_document", project)
    async with Service(dependencies(CHAIN, directory=tmp_path)) as service:
        plan = await service.create_plan("do it")
        execution_id, _ = await run_to_end(service, plan.plan_id)
        await service.wait(execution_id)
        await service.document(execution_id)
    assert len(threads) == 2
    assert threading.current_thread() not in threads


async def test_a_document_that_cannot_be_written_loses_no_execution(tmp_path) -> None:
    missing = tmp_path / "gone"
    async with Service(dependencies(CHAIN, directory=missing)) as service:
        plan = await service.create_plan("do it")
        execution_id, _ = await run_to_end(service, plan.plan_id)
        assert (await service.wait(execution_id)).status == "completed"
        assert not missing.exists()


async def test_a_graph_made_by_hand_becomes_a_stored_plan_with_its_execution() -> None:
    source = json.dumps({"title": "Mine", **CHAIN.to_document()})
    async with Service(dependencies()) as service:
        plan = await service.read_plan(source)
        assert (plan.title, plan.forecast["waves"]) == ("Mine", 2)
        assert await service.plans() == []
        execution_id, _ = await run_to_end(service, plan)
        assert (await service.execution(execution_id)).status == "completed"
        assert (await service.plan(plan.plan_id)).title == "Mine"


async def test_a_stored_plan_keeps_its_id_until_it_is_edited() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.create_plan("do it")
        documents = plan.as_json()
        again = await service.read_plan(json.dumps(documents))
        assert again.plan_id == plan.plan_id
        documents["nodes"][0]["data"]["text"] = "changed"
        edited = await service.read_plan(json.dumps(documents).encode())
        assert edited.plan_id != plan.plan_id
        assert edited.user_prompt == "do it"


async def test_a_faulty_document_is_refused_with_everything_found_and_not_stored() -> None:
    source = json.dumps(
        {
            "nodes": [{"id": "a", "type": "text"}, {"id": "b", "type": "nothing-like-it"}],
            "edges": [{"source": "a", "target": "zz", "data": {"channel": "flow"}}],
        }
    )
    async with Service(dependencies()) as service:
        report = service.check_document(source)
        with pytest.raises(GraphInvalid) as caught:
            await service.read_plan(source)
        codes = {found.code for found in caught.value.diagnostics}
        assert {"unknown-node-type", "dangling-edge"} <= codes
        assert codes == {found.code for found in report.diagnostics}
        assert await service.plans() == []


async def test_the_planner_is_told_the_goal_and_its_progress_is_passed_on() -> None:
    from planwave.planner.progress import PlanProgress

    told: list[Any] = []
    said = PlanProgress("title", {"title": "T"})
    planner = FixedPlanner(make_plan(CHAIN), [said])
    async with Service(dependencies(planner=planner)) as service:
        await service.create_plan("my goal", on_progress=told.append)
    assert (planner.goals, told) == (["my goal"], [said])


async def test_closing_closes_the_rooms_before_the_store() -> None:
    store, closed = MemoryStore(), []

    async def close() -> None:
        await store.executions()
        closed.append(True)

    async with Service(dependencies(store=store, close=close)):
        pass
    assert closed == [True]
    with pytest.raises(StoreError):
        await store.save_plan(None)  # type: ignore[arg-type]


PLAN = make_graph(text_node("a"))


async def test_a_plan_under_ones_own_id_is_written_once() -> None:
    planner, own = FixedPlanner(make_plan(PLAN)), new_id()
    async with Service(dependencies(planner=planner)) as service:
        first = await service.create_plan("do it", plan_id=own)
        again = await service.create_plan("do it", plan_id=own)
        assert (first.plan_id, again.hash) == (own, first.hash)
        assert planner.goals == ["do it"]


async def test_an_execution_under_ones_own_id_is_made_once() -> None:
    async with Service(dependencies(PLAN)) as service:
        plan, own = await service.create_plan("do it"), new_id()
        for _ in range(2):
            record = await service.create_execution(plan.plan_id, execution_id=own)
            assert (record.execution_id, record.status) == (own, "starting")
        assert len(await service.executions()) == 1


async def test_an_execution_that_was_made_and_not_started_is_started_by_asking_again() -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "h"))
    async with Service(dependencies(graph, types=[held])) as service:
        plan, own = await service.create_plan("do it"), new_id()
        await service.create_execution(plan.plan_id, execution_id=own)
        await service.execute(plan.plan_id, execution_id=own)
        await held.started.wait()
        running = await service.execute(plan.plan_id, execution_id=own)
        assert (running.execution_id, running.status) == (own, "executing")
        held.release.set()
        await service.wait(own)
        ended = await service.execute(plan.plan_id, execution_id=own)
        assert ended.status == "completed"
