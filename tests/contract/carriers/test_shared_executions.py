"""What an API does with executions that workers drive: the same as if it drove them itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple

import pytest

import planwave
from planwave.errors import Conflict, Gone, GraphInvalid, NotFound, PlanwaveError, ShuttingDown
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.graph.reading.documents import read_graph
from planwave.principals import current_principal
from planwave.service.carriers.carrier import CarrierUnavailable, Rest
from planwave.service.chats import reply_runs
from planwave.service.chats.chat_documents import UserContent
from planwave.service.executions import carried as carried_module
from planwave.service.executions.command_rules import Replan, Revise
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.postgres.owners import ExecutionOwners
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.records import ExecutionRecord
from tests.contract.carriers.conftest import Doors, Fleet, OpenFleet, held_graph, until, until_async
from tests.support.graph.builders import make_plan
from tests.support.llm.fake_providers import library_registry
from tests.support.llm.watched_model import WatchedModel
from tests.support.nodes.held_nodes import FailingNode
from tests.support.service.dependencies import dependencies
from tests.support.service.written_changes import GRAPH as CHANGED
from tests.support.service.written_changes import MENTION, REPLACES, REPLAN, changes, planner_of

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


async def test_what_nobody_has_started_rests_although_it_is_handed_over(
    open_fleet: OpenFleet,
) -> None:
    async with open_fleet() as fleet:
        own = (await fleet.api.executions.create(make_plan(held_graph()))).execution_id
        driver = fleet.by_name["worker-0"].executions.driver
        slot: Any = None
        assert await driver.drive(own, slot) == Rest("starting"), "else it came again for ever"
        record = await fleet.api.executions.get(own)
        assert (record.status, fleet.came) == ("starting", [])


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
            plain = [
                str(each or "").replace(own, "ID").replace(asked, "R")
                for each in (error, error.hint)
            ]
            return Outcome((error.code, *plain))  # fmt: skip
        self.let(own)
        await self.executions.wait(own)
        folded = await self.executions.state(own)
        nodes = tuple((path, node.status) for path, node in sorted(folded.nodes.items()))
        return Outcome(None, folded.status, nodes)


async def revised(executions: ExecutionService, own: str, _: str) -> None:
    graph: Any = (await executions.state(own)).graph
    more = {"id": "more", "type": "text", "name": "more", "data": {"text": "x"}}
    wider = {**graph, "nodes": [*graph["nodes"], more]}
    await executions.send_command(own, Revise(wider, None, "", current_principal().as_json()))


async def changed_begun(executions: ExecutionService, own: str, _: str) -> None:
    graph: Any = (await executions.state(own)).graph
    nodes = [{**each, "name": "Other"} for each in graph["nodes"]]
    command = Revise({**graph, "nodes": nodes}, None, "", current_principal().as_json())
    try:
        await executions.send_command(own, command)
    except GraphInvalid as error:
        codes = {each.code for each in error.diagnostics}
        assert codes == {"frozen-node"}, "the findings come with it, from whoever drives it"
        raise


async def replanned(executions: ExecutionService, own: str, _: str) -> None:
    by = current_principal().as_json()
    await executions.send_command(own, Replan("another way", None, by))


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
    "revise": revised,
    "revise what has begun": changed_begun,
    "replan": replanned,
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


class NoSlot:
    def change(self, change: object, grant: object) -> None:
        """Do nothing: no place is counted."""


def owners_of(service: Service) -> ExecutionOwners:
    owners = service._store.owners
    assert owners is not None
    return owners


async def gone(url: str, own: str) -> None:
    """Let a process take an execution up and end at once."""
    store = PostgresStore.open(url, is_carried=True)
    assert store.owners is not None
    await store.owners.take(own)
    await store.close()


async def test_a_drained_worker_hands_its_executions_over_with_no_attempt_lost(
    open_fleet: OpenFleet,
) -> None:
    async with open_fleet(limits=Limits(recoveries=1)) as fleet:
        api = fleet.api.executions
        own = await fleet.execute()
        assert await fleet.held(own) == "worker-0"
        seen: list[int] = []

        async def watch() -> None:
            async for event in api.watch(own):
                seen.append(event.seq)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch())
            leaving = fleet.by_name["worker-0"]
            for number in (1, 2, 3):
                name = f"worker-{number}"
                await fleet.open(name, drives=True, limits=Limits(recoveries=1))
                began = asyncio.get_running_loop().time()
                await leaving.drain(0)
                await until(lambda name=name: (own, name) in fleet.came)
                assert asyncio.get_running_loop().time() - began < 6
                leaving = fleet.by_name[name]
            await api.answer(own, await fleet.asked(own), SEND)
            assert (await api.wait(own)).status == "completed"
        stored = [event.seq for event in await api.events(own)]
        assert [each for each in seen if each] == stored == list(range(1, len(stored) + 1))


async def test_what_ends_its_process_again_and_again_is_set_aside_but_commands_do_not_count(
    open_fleet: OpenFleet, database_url: str
) -> None:
    limits = Limits(recoveries=2)
    async with open_fleet(limits=limits) as fleet:
        crashing, commanded = await fleet.execute(), await fleet.execute()
        await fleet.held(crashing)
        await fleet.held(commanded)
        await fleet.by_name["worker-0"].drain(0)
        await until_async(lambda: _rests(fleet, crashing, commanded))
        for _ in range(3):
            await gone(database_url, crashing)
            await fleet.api.executions.pause(commanded)
            await fleet.api.executions.resume(commanded)
        await fleet.open("worker-1", drives=True, limits=limits)
        aside = await fleet.api.executions.wait(crashing)
        assert aside.status == "paused"
        reason = (await fleet.api.executions.events(crashing))[-1].data["reason"]
        assert "recoveries without any progress" in reason
        await until(lambda: (commanded, "worker-1") in fleet.came)
        await fleet.asked(commanded)


async def _rests(fleet: Fleet, *ids: str) -> bool:
    return not any([await owners_of(fleet.api).is_elsewhere(each) for each in ids])


async def test_a_command_whose_owner_ends_first_is_carried_out_by_the_sweep(
    open_fleet: OpenFleet, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried_module, "SWEEP_S", 0.2)
    async with open_fleet(workers=0) as fleet, fleet.api.executions.sweeping():
        own = await fleet.execute()
        owner = PostgresStore.open(database_url, is_carried=True)
        assert owner.owners is not None
        await owner.owners.take(own)
        async with asyncio.TaskGroup() as tasks:
            cancelled = tasks.create_task(fleet.api.executions.cancel(own, "enough"))
            await asyncio.sleep(0.5)
            assert not cancelled.done()
            await owner.close()
        assert cancelled.result().status == "cancelled"
        last = (await fleet.api.executions.events(own))[-1]
        assert (last.type, last.data) == ("execution.cancelled", {"cause": "enough"})


async def test_the_sweep_submits_what_the_carrier_was_not_told(
    open_fleet: OpenFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried_module, "SWEEP_S", 0.2)
    async with open_fleet() as fleet:
        carrier, api = fleet.api._dependencies.carrier, fleet.api.executions

        async def refuse(*_: object, **__: object) -> None:
            raise CarrierUnavailable("it is away")

        with monkeypatch.context() as away:
            away.setattr(carrier, "submit", refuse)
            unreadable = await _unreadable(fleet)
            own = await fleet.execute()
            await asyncio.sleep(0.5)
        assert fleet.came == []
        async with api.sweeping():
            await fleet.held(own)
            await until_async(lambda: _is_known(fleet))
        assert unreadable not in dict(fleet.came)


async def _is_known(fleet: Fleet) -> bool:
    return await owners_of(fleet.api).unsubmitted(0, 10) == []


async def _unreadable(fleet: Fleet) -> str:
    own, at = "unreadable", "2026-01-01T00:00:00.000000Z"
    record = ExecutionRecord(own, None, "t", "g", "starting", at, queued=True)
    created = Event(own, 1, at, "execution.created", None, None, {"graph": "none"})
    await fleet.api._store.create_execution(record, [created])
    started = Event(own, 2, at, "execution.started", None, None, {})
    await fleet.api._store.append(own, 1, [started])
    return own


async def test_what_cannot_be_read_is_set_aside_and_what_was_deleted_is_forgotten(
    open_fleet: OpenFleet,
) -> None:
    async with open_fleet(workers=0) as fleet:
        driver = fleet.api.executions.driver
        assert await driver.drive("deleted", NoSlot()) == Rest("cancelled")
        own = await _unreadable(fleet)
        assert await driver.drive(own, NoSlot()) == Rest("paused")
        record = await fleet.api._store.execution(own)
        assert record is not None
        assert record.status == "paused"


async def test_the_time_for_an_answer_ends_with_nobody_in_memory(open_fleet: OpenFleet) -> None:
    async with open_fleet() as fleet:
        graph = held_graph(timeoutS=1.0, timeoutAction="send")
        own = await fleet.execute(graph)
        await fleet.asked(own)
        async with asyncio.timeout(8):
            await until_async(lambda: _has_status(fleet, own, "completed"), 8)
        events = await fleet.api.executions.events(own)
        at = {event.type: datetime.fromisoformat(event.at) for event in events}
        asked = next(e.at for e in events if e.type == "node.waiting")
        took_s = (at["execution.completed"] - datetime.fromisoformat(asked)).total_seconds()
        assert 1 <= took_s < 4


async def test_a_link_answers_at_any_process_once(open_fleet: OpenFleet) -> None:
    async with open_fleet() as fleet:
        own = await fleet.execute()
        request_id = await fleet.asked(own)
        _, key = await fleet.api.links.create(own, "request", request_id=request_id)
        link = await fleet.api.links.find(key)
        await fleet.api.links.answer(link, request_id, SEND)
        assert (await fleet.api.executions.wait(own)).status == "completed"
        (answered,) = (await fleet.api.executions.answered_requests.page(None, 5)).answers
        assert answered.as_json()["answered"]["answered_by"] == link.principal.as_json()
        with pytest.raises(Gone) as gone:
            await fleet.api.links.answer(await fleet.api.links.find(key), request_id, SEND)
        assert gone.value.code == "link-used"


@pytest.mark.parametrize(("decision", "status"), [("approve", "completed"), ("reject", "failed")])
async def test_a_change_that_a_worker_asks_about_is_decided_at_the_api(
    open_fleet: OpenFleet, decision: str, status: str
) -> None:
    models = WatchedModel([changes(*REPLACES, MENTION)])
    graph, _ = read_graph(CHANGED)
    async with open_fleet(planner=planner_of(models)) as fleet:
        api = fleet.api.executions
        own = await fleet.execute(graph, options=RunOptions(replan=REPLAN))
        assert (await api.wait(own)).status == "paused"
        (request,) = await api.requests(own)
        shown = request.request
        assert [each["name"] for each in shown["additions"]] == ["other.example"]
        assert shown["forecast"]["nodes"] == 3  # words, sent and see
        await api.answer(own, request.request_id, {"decision": decision})
        assert (await api.wait(own)).status == status
        document = await api.document(own)
        made = [each["hash"] for each in document.get("changes", ())]
        assert made == ([shown["hash"]] if decision == "approve" else [])
        assert len(models.requests) == document["usage"]["calls"] == 1
        with pytest.raises(Conflict) as late:
            await api.answer(own, request.request_id, {"decision": decision})
        assert late.value.code == "request-answered"


async def test_words_at_the_api_become_a_change_in_the_process_that_drives_the_execution(
    open_fleet: OpenFleet,
) -> None:
    added = {
        "op": "add_node",
        "node": {"id": "more", "name": "More", "type": "text", "data": {"text": "x"}},
    }
    models = WatchedModel([changes(added)])
    async with open_fleet(planner=planner_of(models)) as fleet:
        api = fleet.api
        own = await fleet.execute()
        assert await fleet.held(own) == "worker-0"
        accepted = await api.changes.replan(own, "also more")
        assert accepted == {"execution_id": own, "change": 1}
        await api.executions.answer(own, await fleet.asked(own), SEND)
        assert (await api.executions.wait(own)).status == "completed"
        state = await api.executions.state(own)
        assert [each["by"] for each in state.changes.records] == ["person"]
        assert state.nodes["more"].status == "completed"
        assert len(models.requests) == (await api.executions.document(own))["usage"]["calls"] == 1


async def test_a_change_that_a_person_makes_at_the_api_asks_with_all_that_the_worker_shows(
    open_fleet: OpenFleet,
) -> None:
    async with open_fleet() as fleet:
        api = fleet.api
        own = await fleet.execute(require_approval=True)
        await api.executions.wait(own)
        (plan,) = await api.executions.requests(own)
        await api.executions.answer(own, plan.request_id, {"decision": "approve"})
        assert await fleet.held(own) == "worker-0"
        document: Any = (await api.executions.state(own)).graph
        more = {"id": "more", "type": "text", "data": {"text": "See https://other.example/"}}
        wider = {**document, "nodes": [*document["nodes"], more]}
        asked = await api.changes.revise(own, wider, note="see there, too")
        request_id = asked["request_id"]
        assert request_id is not None
        requests = {each.request_id: each.request for each in await api.executions.requests(own)}
        shown = requests[request_id]
        assert [each["name"] for each in shown["additions"]] == ["other.example"]
        assert shown["forecast"]["nodes"] == 3  # all but the step that is held
        await api.executions.answer(own, request_id, {"decision": "approve"})
        await api.executions.answer(own, await fleet.asked(own), SEND)
        assert (await api.executions.wait(own)).status == "completed"
        state = await api.executions.state(own)
        assert [each["hash"] for each in state.changes.records] == [shown["hash"]]
        assert state.nodes["more"].status == "completed"


async def _has_status(fleet: Fleet, own: str, status: str) -> bool:
    return (await fleet.api.executions.get(own)).status == status


async def test_plans_are_approved_and_edited_executions_retried_and_deleted(
    open_fleet: OpenFleet,
) -> None:
    async with open_fleet() as fleet:
        api = fleet.api.executions
        own = await fleet.execute(require_approval=True)
        await api.wait(own)
        (request,) = await api.requests(own)
        edited = held_graph("broken").document
        following = await api.answer(
            own, request.request_id, {"decision": "edit", "value": edited, "note": "so"}
        )
        assert (await api.wait(own)).status == "cancelled"
        new = following.execution_id
        await api.wait(new)
        (request,) = await api.requests(new)
        await api.answer(new, request.request_id, {"decision": "approve"})
        await api.answer(new, await fleet.asked(new), SEND)
        assert (await api.wait(new)).status == "failed"
        again = (await api.retry(new)).execution_id
        assert (await api.wait(again)).status == "failed"
        assert again not in dict(fleet.came), "what was done is not done again"
        await fleet.api.maintenance.delete_execution(again)
        with pytest.raises(NotFound):
            await api.get(again)


async def test_the_open_requests_of_all_are_counted_by_each(open_fleet: OpenFleet) -> None:
    async with open_fleet() as fleet:
        request = await fleet.asked(await fleet.execute())
        for service in fleet.by_name.values():
            found = (await service.backlog()).requests
            assert [each.request_id for each in found] == [request]


async def test_a_reply_that_was_stored_and_never_started_is_started_by_who_leads_alone(
    open_fleet: OpenFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_runs, "RECOVER_S", 0.1)
    document = {
        "nodes": [
            {"id": "talk", "type": "chat_start", "data": {}},
            {"id": "say", "type": "text", "data": {"text": "Hello"}},
        ],
        "edges": [{"source": "talk", "target": "say", "data": {"channel": "flow"}}],
    }
    async with open_fleet() as fleet:
        chats = fleet.api.chats
        flow = await fleet.api.flows.create("talk", graph=document)
        chat = (await chats.create(plan_id=flow.plan_id)).record.chat_id
        with monkeypatch.context() as ending:

            async def goes_down(*_: object, **__: object) -> None:
                raise ShuttingDown

            ending.setattr(fleet.api.executions, "execute", goes_down)
            with pytest.raises(ShuttingDown):
                await chats.send(chat, UserContent("Hello"))
        store = fleet.api._store
        (reply,) = await store.chats.open_messages()
        for service in fleet.by_name.values():
            await service.recover()
        assert await store.execution(str(reply.execution_id)) is None, "nobody leads here"
        async with fleet.by_name["worker-0"].chats.recovering():
            await until_async(lambda: _has_ended(fleet, chat, reply.message_id))


async def _has_ended(fleet: Fleet, chat: str, message: str) -> bool:
    return (await fleet.api.chats.message(chat, message)).status == "completed"


class Needy:
    """A node type that only a process with a capability can run, as its run shows; it counts where it began."""

    node_type = "needy"

    def __init__(self, where: str, fleet: Fleet, can: bool) -> None:
        self._where, self._fleet, self._can = where, fleet, can

    async def execute(self, data: Any, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        self._fleet.came.append((context.run_id, self._where))
        if not self._can:
            driver = self._fleet.by_name[self._where].executions.driver
            async with context.idle():
                await driver.hand_over(context.run_id, "local")
        return ExecutionResult({"output": DataValue("text", "done")})


async def test_a_worker_hands_on_what_only_a_run_shows_to_need_what_it_lacks(
    open_fleet: OpenFleet,
) -> None:
    document = {
        "nodes": [
            {"id": "before", "type": "text", "data": {"text": "one"}},
            {"id": "call", "type": "needy"},
        ],
        "edges": [{"source": "before", "target": "call", "data": {"channel": "flow"}}],
    }
    async with open_fleet(workers=0) as fleet:
        lacking = Needy("worker-0", fleet, can=False)
        graph = planwave.build(document, registry=library_registry(types=[lacking])).graph
        api = await fleet.open("other", drives=False, types=[lacking])
        await fleet.open("worker-0", drives=True, types=[lacking])
        own = (await api.executions.execute(make_plan(graph))).execution_id
        await until_async(lambda: _waits_for(api, own, 0))
        able = Needy("worker-1", fleet, can=True)
        await fleet.open("worker-1", drives=True, capabilities=frozenset(["local"]), types=[able])
        assert (await api.executions.wait(own)).status == "completed"
        assert fleet.came == [(own, "worker-0"), (own, "worker-1")]
        ran = [
            each.path for each in await api.executions.events(own) if each.type == "node.completed"
        ]
        assert sorted(ran) == ["before", "call"], "what had ended is not done again"


async def _waits_for(service: Service, own: str, processes: int) -> bool:
    found = await service.executions.waits_for([await service.executions.get(own)])
    return found == {own: {"capability": "local", "processes": processes}}
