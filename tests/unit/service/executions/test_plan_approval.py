"""Plans that a person approves, rejects or edits before their first node starts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import (
    Conflict,
    Gone,
    GraphInvalid,
    InputError,
    InvalidAnswer,
    PlanwaveError,
    StoreError,
)
from planwave.events import TERMINAL
from planwave.graph.model import Graph, Node
from planwave.graph.operations import ReplaceGraph
from planwave.graph.plan import graph_hash
from planwave.principals import Principal, acting_as
from planwave.service.plans.plan_service import PlanService
from planwave.service.service import Service
from planwave.storage.sql.writer import GroupCommitWriter
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.service.dependencies import FixedPlanner, dependencies, execute_goal

GRAPH = make_graph(text_node("a", "one"), text_node("b", "{{ input }} two"), edges=[("a", "b")])
ANOTHER = {"nodes": [{"id": "d", "type": "text", "data": {"text": "d"}}], "edges": []}
OTHER = {"nodes": [{"id": "c", "type": "text", "data": {"text": "other"}}], "edges": []}


def opened(**more: Any) -> Service:
    return Service(dependencies(more.pop("graph", GRAPH), **more))


async def asked(service: Service, **more: Any) -> tuple[str, str]:
    """Execute a plan that needs approval; return the ids of the execution and its request."""
    how: dict[str, Any] = {"require_approval": True, **more}
    record = await execute_goal(service, **how)
    return record.execution_id, await request_of(service, record.execution_id)


async def request_of(service: Service, execution_id: str) -> str:
    await service.executions.wait(execution_id)
    (request,) = await service.executions.requests(execution_id)
    return request.request_id


async def event_types(service: Service, execution_id: str) -> list[str]:
    return [event.type for event in await service.executions.events(execution_id)]


async def answered(service: Service, asking: tuple[str, str], **answer: Any) -> Any:
    record = await service.executions.answer(*asking, answer)
    await service.executions.wait(record.execution_id)
    return await service.executions.state(record.execution_id)


async def test_nothing_starts_before_the_one_request_of_the_plan_is_answered() -> None:
    async with opened() as service:
        execution_id, request_id = await asked(service)
        state = await service.executions.state(execution_id)
        assert (state.status, state.waiting_for_input, state.current_node_id) == (
            "paused",
            True,
            None,
        )
        assert {node.status for node in state.nodes.values()} == {"pending"}
        assert await event_types(service, execution_id) == [
            "execution.created",
            "execution.started",
            "execution.paused",
        ]
        (request,) = await service.executions.requests(execution_id)
        assert (request.request_id, request.path, request.timeout_s) == (request_id, None, None)
        assert request.request == {
            "kind": "plan-approval",
            "prompt": "Run the plan 'A title'?",
            "actions": ["approve", "reject", "edit"],
            "plan_hash": graph_hash(GRAPH),
            "plan_id": state.plan_id,
            "title": "A title",
            "goal": "do it",
            "forecast": (await service.plans.forecast(state.plan_id or "")),
        }
        document = await service.executions.document(execution_id)
        assert document["requests"] == [request.as_json()]
        assert document["approval"] == {"plan_hash": graph_hash(GRAPH)}


async def test_an_approved_plan_runs() -> None:
    async with opened() as service:
        state = await answered(service, await asked(service), decision="approve", note="go")
        assert (state.status, state.requests) == ("completed", {})
        assert state.is_approved
        assert state.approval["answer"] == {"decision": "approve", "note": "go"}
        assert state.nodes["b"].outputs["output"]["value"] == "one two"
        assert list(state.closed_requests.values()) == ["answered"]


async def test_a_rejected_plan_is_cancelled_with_the_note() -> None:
    async with opened() as service:
        state = await answered(service, await asked(service), decision="reject", note="too dear")
        assert (state.status, state.cause) == ("cancelled", "the plan was rejected: too dear")
        assert state.approval["answer"] == {"decision": "reject", "note": "too dear"}
        assert not state.is_approved
        assert {node.status for node in state.nodes.values()} == {"cancelled"}
        assert "node.started" not in await event_types(service, state.execution_id)


async def test_an_edited_plan_gets_an_execution_that_asks_again() -> None:
    async with opened() as service:
        execution_id, request_id = await asked(service)
        new = await service.executions.answer(
            execution_id, request_id, {"decision": "edit", "value": OTHER}
        )
        before = await service.executions.state(execution_id)
        assert (before.status, before.cause) == (
            "cancelled",
            f"superseded by execution {new.execution_id}",
        )
        asking = new.execution_id, await request_of(service, new.execution_id)
        state = await service.executions.state(new.execution_id)
        assert (state.status, state.goal, state.title) == ("paused", "do it", "A title")
        assert state.approval is not None
        assert before.approval is not None
        assert before.approval["answer"] == {
            "decision": "edit",
            "note": "",
            "value": {
                "execution_id": new.execution_id,
                "plan_hash": state.approval["plan_hash"],
            },
        }
        assert state.approval["plan_hash"] != before.approval["plan_hash"]
        assert (await answered(service, asking, decision="approve")).status == "completed"


async def test_an_edit_is_a_revision_of_the_plan_or_names_one() -> None:
    async with opened() as service:
        execution_id, request_id = await asked(service)
        first = (await service.executions.state(execution_id)).plan_id or ""
        edit = {"decision": "edit", "value": OTHER, "note": "shorter"}
        second = await service.executions.answer(execution_id, request_id, edit)
        (newest, *_) = await service.revisions.list(first)
        assert (second.plan_id, newest.revision, newest.author, newest.note) == (
            first,
            2,
            "person",
            "shorter",
        )
        asking = second.execution_id, await request_of(service, second.execution_id)
        plan = await service.revisions.restore(first, 1, expected=None)
        for value in ({"plan_hash": "no such hash"}, {"plan_hash": newest.hash}):
            with pytest.raises(InvalidAnswer):
                await service.executions.answer(*asking, {"decision": "edit", "value": value})
        named = {"decision": "edit", "value": {"plan_hash": plan.hash}}
        third = await service.executions.answer(*asking, named)
        asking = third.execution_id, await request_of(service, third.execution_id)
        assert (await service.executions.state(third.execution_id)).plan_hash == graph_hash(GRAPH)
        await service.plans.edit(first, [ReplaceGraph(ANOTHER)], expected=None)
        apart = await service.executions.answer(*asking, {"decision": "edit", "value": OTHER})
        assert apart.plan_id != first


async def _created(service: Service, execution_id: str) -> tuple[Any, Any]:
    """Return who wrote the plan of an execution, and the only flows that it may run."""
    (event,) = await service.executions.events(execution_id, limit=1)
    return event.data.get("written_by"), event.data.get("flows")


def _of_token(token_id: str) -> Any:
    return acting_as(Principal("token", token_id, "partner"))


@pytest.mark.parametrize("changed_meanwhile", [False, True])
async def test_an_edited_plan_keeps_its_author_and_the_flows_of_who_began(
    changed_meanwhile: bool,
) -> None:
    model = FixedPlanner(replace(make_plan(GRAPH), provider="openai"))
    async with opened(planner=model) as service:
        flow = await service.flows.create("own", graph=OTHER)
        token = await service.access_tokens.create("partner", ["run"], [flow.plan_id])
        plan = await service.plans.create("do it")
        with _of_token(token.record.token_id):
            first = await service.executions.execute(plan.plan_id, require_approval=True)
        asking = first.execution_id, await request_of(service, first.execution_id)
        assert await _created(service, first.execution_id) == ("model", [flow.plan_id])
        if changed_meanwhile:
            await service.plans.edit(plan.plan_id, [ReplaceGraph(ANOTHER)], expected=None)
        second = await service.executions.answer(*asking, {"decision": "edit", "value": OTHER})
        assert await _created(service, second.execution_id) == ("model", [flow.plan_id])
        asking = second.execution_id, await request_of(service, second.execution_id)
        ended = await answered(service, asking, decision="approve")
        assert ended.status == "completed"
        fork = await service.executions.fork(second.execution_id, rerun=["c"])
        assert await _created(service, fork.execution_id) == ("model", [flow.plan_id])


@pytest.mark.parametrize(
    ("value", "code", "pointer"),
    [
        (GRAPH.to_document(), "invalid-answer", "/value"),
        ("a hash", "invalid-answer", "/value"),
        ({"nodes": [{"id": "x", "type": "nonsense"}], "edges": []}, "unknown-node-type", None),
    ],
)
async def test_an_edit_that_changes_nothing_or_cannot_run_is_refused(
    value: Any, code: str, pointer: str | None
) -> None:
    async with opened() as service:
        execution_id, request_id = await asked(service)
        with pytest.raises(GraphInvalid) as refused:
            await service.executions.answer(
                execution_id, request_id, {"decision": "edit", "value": value}
            )
        (found,) = refused.value.diagnostics
        assert (found.code, found.pointer) == (code, pointer or "/value/nodes/0/type")
        assert [each.request_id for each in await service.executions.requests(execution_id)] == [
            request_id
        ]
        assert len(await service.executions.list()) == 1


async def test_a_refused_edit_leaves_the_plan_as_it_is() -> None:
    async with opened() as service:
        asking = await asked(service, inputs={"a": {"output": "given"}})
        plan_id = (await service.executions.state(asking[0])).plan_id or ""
        with pytest.raises(InputError) as refused:
            await service.executions.answer(*asking, {"decision": "edit", "value": OTHER})
        assert refused.value.code == "unknown-input-node"
        assert [each.revision for each in await service.revisions.list(plan_id)] == [1]
        assert await request_of(service, asking[0]) == asking[1]


async def test_an_edited_plan_asks_for_its_own_revision_although_another_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edit = PlanService.edit

    async def edit_twice(plans: PlanService, plan_id: str, *first: Any, **how: Any) -> Any:
        made = await edit(plans, plan_id, *first, **how)
        await edit(plans, plan_id, [ReplaceGraph(ANOTHER)], expected=None)
        return made

    async with opened() as service:
        asking = await asked(service)
        monkeypatch.setattr(PlanService, "edit", edit_twice)
        new = await service.executions.answer(*asking, {"decision": "edit", "value": OTHER})
        state = await service.executions.state(new.execution_id)
        assert set(state.nodes) == {"c"}
        plan_id = state.plan_id or ""
        assert (await service.revisions.get(plan_id, 2)).hash == state.plan_hash
        assert (await service.revisions.get(plan_id, 3)).hash != state.plan_hash


@pytest.mark.parametrize(
    "answer",
    [{}, {"decision": "yes"}, {"decision": "edit"}, {"decision": "approve", "value": OTHER}],
)
async def test_an_answer_of_another_form_is_refused(answer: Mapping[str, Any]) -> None:
    async with opened() as service:
        asking = await asked(service)
        with pytest.raises(InvalidAnswer):
            await service.executions.answer(*asking, answer)


@pytest.mark.parametrize("first", ["approve", "reject", "edit"])
async def test_the_first_of_two_answers_at_once_holds(first: str) -> None:
    async with opened() as service:
        asking = await asked(service)
        answers: list[dict[str, Any]] = [
            {"decision": first, **({"value": OTHER} if first == "edit" else {})},
            {"decision": "edit", "value": OTHER},
            {"decision": "approve"},
        ]
        refused: list[PlanwaveError] = []

        async def tell(answer: dict[str, Any]) -> None:
            try:
                await service.executions.answer(*asking, answer)
            except PlanwaveError as error:
                refused.append(error)

        async with asyncio.TaskGroup() as clients:
            for each in answers:
                clients.create_task(tell(each))
        assert len(refused) == 2
        assert {error.code for error in refused} == {"request-answered"}
        for record in await service.executions.list():
            await service.executions.wait(record.execution_id)
        paused = await service.executions.list(status="paused")
        state = await service.executions.state(asking[0])
        superseding = (state.approval or {})["answer"].get("value", {}).get("execution_id")
        following = [superseding] if superseding else []
        assert [record.execution_id for record in paused] == following
        made = {record.execution_id for record in await service.executions.list()}
        assert made == {asking[0], *following}, "a refused edit leaves nothing"


@pytest.mark.parametrize("first", ["approve", "reject"])
async def test_a_second_answer_is_refused(first: str) -> None:
    async with opened() as service:
        asking = await asked(service)
        await answered(service, asking, decision=first)
        with pytest.raises(Conflict) as refused:
            await service.executions.answer(*asking, {"decision": "edit", "value": OTHER})
        assert refused.value.code == "request-answered"


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_the_request_survives_restarts(tmp_path: Path, decision: str) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(
            opened(directory=tmp_path, store=SqliteStore.open(tmp_path))
        )
        asking = await asked(first)
        await first.drain(0)
    for _ in range(2):
        async with opened(directory=tmp_path, store=SqliteStore.open(tmp_path)) as service:
            await service.recover()
            (request,) = await service.executions.requests(asking[0])
            assert request.request_id == asking[1]
            await service.drain(0)
    async with opened(directory=tmp_path, store=SqliteStore.open(tmp_path)) as service:
        state = await answered(service, asking, decision=decision)
        assert state.status == ("completed" if decision == "approve" else "cancelled")


async def test_an_execution_that_had_no_time_to_ask_does_so_after_a_restart(
    tmp_path: Path,
) -> None:
    async with opened(directory=tmp_path, store=SqliteStore.open(tmp_path)) as service:
        plan = await service.plans.create("do it")
        made = await service.executions.create(plan.plan_id, require_approval=True, queued=True)
        await service.drain(0)
    async with opened(directory=tmp_path, store=SqliteStore.open(tmp_path)) as service:
        await service.recover()
        async for event in service.executions.watch(made.execution_id):
            if event.type == "execution.paused":
                break
        asking = made.execution_id, await request_of(service, made.execution_id)
        assert (await answered(service, asking, decision="approve")).status == "completed"


async def test_it_can_be_paused_resumed_and_cancelled_while_it_asks() -> None:
    async with opened() as service:
        asking = await asked(service)
        execution_id = asking[0]
        with pytest.raises(Conflict) as refused:
            await service.executions.resume(execution_id)
        assert refused.value.code == "not-paused"
        await service.executions.pause(execution_id)
        state = await answered(service, asking, decision="approve")
        assert (state.status, state.reason) == ("paused", "paused by request")
        assert "node.started" not in await event_types(service, execution_id)
        await service.executions.resume(execution_id)
        assert (await service.executions.wait(execution_id)).status == "completed"
        other = await asked(service)
        await service.executions.pause(other[0])
        await service.executions.resume(other[0])
        state = await service.executions.state(other[0])
        assert (state.status, state.reason) == ("paused", "waiting for an answer")
        assert (await service.executions.cancel(other[0])).status == "cancelled"
        with pytest.raises(Gone) as closed:
            await service.executions.answer(*other, {"decision": "approve"})
        assert closed.value.message == (
            f"request {other[1]!r} is closed: its execution was cancelled"
        )


async def test_the_operator_can_require_it_for_every_execution() -> None:
    async with opened(require_approval=True) as service:
        asking = await asked(service, require_approval=False)
        assert (await answered(service, asking, decision="approve")).status == "completed"


@pytest.mark.parametrize("is_queued", [False, True])
async def test_an_execution_from_before_the_operator_required_it_asks_before_it_starts(
    tmp_path: Path, is_queued: bool
) -> None:
    async with opened(directory=tmp_path, store=SqliteStore.open(tmp_path)) as service:
        plan = await service.plans.create("do it")
        made = await service.executions.create(plan.plan_id, queued=is_queued)
        await service.drain(0)
    how: dict[str, Any] = {"directory": tmp_path, "require_approval": True}
    async with opened(**how, store=SqliteStore.open(tmp_path)) as service:
        await (service.executions.resume if is_queued else service.executions.start)(
            made.execution_id
        )
        asking = made.execution_id, await request_of(service, made.execution_id)
        assert "node.started" not in await event_types(service, made.execution_id)
        await service.drain(0)
    async with opened(**how, store=SqliteStore.open(tmp_path)) as service:
        state = await answered(service, asking, decision="approve")
        assert (state.status, state.approval["plan_hash"]) == ("completed", graph_hash(GRAPH))
        again = await service.executions.fork(made.execution_id, rerun=["b"])
        assert (await service.executions.wait(again.execution_id)).status == "completed"
        stored = (await service.executions.state(again.execution_id)).approval
        assert stored == {"plan_hash": graph_hash(GRAPH), "approved_in": made.execution_id}


class Fails:
    """A node type that fails in its first run."""

    node_type = "fails"

    def __init__(self) -> None:
        self.runs = 0

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any:
        self.runs += 1
        raise RuntimeError("it broke")


def failing() -> Graph:
    return make_graph(text_node("a", "one"), Node("b", "fails", "b"), edges=[("a", "b")])


async def test_a_retry_of_the_same_hash_needs_no_other_approval() -> None:
    async with opened(graph=failing(), types=[Fails()], require_approval=True) as service:
        state = await answered(service, await asked(service), decision="approve")
        assert state.status == "failed"
        again = await service.executions.retry(state.execution_id)
        twice = await service.executions.retry(
            (await service.executions.wait(again.execution_id)).execution_id
        )
        assert (await service.executions.wait(twice.execution_id)).status == "failed"
        stored = (await service.executions.state(twice.execution_id)).approval
        assert stored == {
            "plan_hash": graph_hash(failing()),
            "approved_in": state.execution_id,
        }


async def test_a_fork_with_another_graph_and_a_retry_of_a_rejected_plan_ask_again() -> None:
    async with opened() as service:
        state = await answered(service, await asked(service), decision="approve")
        same = await service.executions.fork(state.execution_id, rerun=["b"])
        assert (await service.executions.wait(same.execution_id)).status == "completed"
        changed = await service.executions.fork(
            state.execution_id, changes={"b": {"data": {"text": "{{ input }} three"}}}
        )
        asking = changed.execution_id, await request_of(service, changed.execution_id)
        rejected = await answered(service, asking, decision="reject")
        again = await service.executions.retry(rejected.execution_id)
        asking = again.execution_id, await request_of(service, again.execution_id)
        assert (await answered(service, asking, decision="approve")).status == "completed"


async def test_policies_of_the_request_are_part_of_the_hash() -> None:
    async with opened() as service:
        asking = await asked(service, policies={"b": {"timeoutS": 30}})
        (request,) = await service.executions.requests(asking[0])
        assert request.request["plan_hash"] != graph_hash(GRAPH)


async def test_an_edited_plan_keeps_the_policies_of_the_nodes_that_it_has() -> None:
    policies = {"a": {"timeoutS": 30}, "b": {"retry": {"attempts": 2}}}
    later = {
        **ANOTHER,
        "nodes": [*ANOTHER["nodes"], {"id": "a", "type": "text", "data": {"text": "a"}}],
    }
    async with opened() as service:
        asking = await asked(service, policies=policies)
        for same in (GRAPH.to_document(), {"plan_hash": graph_hash(GRAPH)}):
            with pytest.raises(InvalidAnswer, match="the plan is unchanged"):
                await service.executions.answer(*asking, {"decision": "edit", "value": same})
        first = await service.executions.answer(*asking, {"decision": "edit", "value": later})
        state = await service.executions.state(first.execution_id)
        nodes = {node["id"]: node.get("policy") for node in (state.graph or {})["nodes"]}
        assert nodes == {"d": None, "a": {"timeoutS": 30}}
        plan = await service.plans.get(first.plan_id or "")
        assert (plan.plan_id, plan.document["revision"]) == (
            (await service.executions.state(asking[0])).plan_id,
            2,
        )
        asking = first.execution_id, await request_of(service, first.execution_id)
        log = (await service.executions.document(first.execution_id))["execution_logs"]
        assert log[0] == "Policies dropped - nodes not in the edited plan: ['b']"
        edit = {"decision": "edit", "value": {**later, "nodes": later["nodes"][1:]}}
        second = await service.executions.answer(*asking, edit)
        state = await service.executions.state(second.execution_id)
        assert (state.graph or {})["nodes"][0]["policy"] == {"timeoutS": 30}


class Crash:
    """Refuses every write of a store after some of them, as the end of the process would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes_left: int | None = None
        self.has_happened = False
        submit = GroupCommitWriter.submit

        def count(writer: GroupCommitWriter, job: Any) -> Any:
            if self.writes_left is not None:
                self.has_happened = self.has_happened or self.writes_left == 0
                if self.has_happened:
                    raise StoreError("the process has ended", code="crashed")
                self.writes_left -= 1
            return submit(writer, job)

        monkeypatch.setattr(GroupCommitWriter, "submit", count)


async def edit_that_crashes(crash: Crash, directory: Path, writes: int) -> tuple[str, str]:
    """Edit a plan in a process that ends after so many writes; return the ids of the request."""
    async with opened(directory=directory, store=SqliteStore.open(directory)) as service:
        asking = await asked(service)
        crash.writes_left, crash.has_happened = writes, False
        with suppress(StoreError):
            await service.executions.answer(
                *asking, {"decision": "edit", "value": OTHER, "note": "why"}
            )
        await service.drain(0)
    crash.writes_left = None
    return asking


async def test_exactly_one_execution_asks_after_a_crash_during_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash, outputs = Crash(monkeypatch), set[str]()
    crash.has_happened = True
    for writes in itertools.count():
        if not crash.has_happened:
            break
        directory = tmp_path / str(writes)
        directory.mkdir()
        old_id, _ = await edit_that_crashes(crash, directory, writes)
        async with opened(directory=directory, store=SqliteStore.open(directory)) as service:
            await recovered(service)
            (pending,) = await service.executions.pending_requests()
            asking = pending.execution.execution_id, pending.request.request_id
            if asking[0] != old_id:
                old = await service.executions.state(old_id)
                assert (old.cause, (old.approval or {})["answer"]["note"]) == (
                    f"superseded by execution {asking[0]}",
                    "why",
                )
            state = await answered(service, asking, decision="approve")
            assert state.status == "completed"
            outputs |= state.nodes.keys()
    assert outputs == {"a", "b", "c"}, "crashes before and after the edit"


async def test_an_edit_that_was_cut_off_gives_way_to_another_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = await edit_that_crashes(Crash(monkeypatch), tmp_path, 2)
    async with opened(directory=tmp_path, store=SqliteStore.open(tmp_path)) as service:
        assert (await answered(service, asking, decision="approve")).status == "completed"
        await recovered(service)
        assert [record.status for record in await service.executions.list()] == [
            "cancelled",
            "completed",
        ]


async def test_resuming_the_execution_of_an_edit_that_was_cut_off_finishes_the_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_id, _ = await edit_that_crashes(Crash(monkeypatch), tmp_path, 2)
    async with opened(directory=tmp_path, store=SqliteStore.open(tmp_path)) as service:
        (new,) = await service.executions.list(status="starting")
        await service.executions.resume(new.execution_id)
        await request_of(service, new.execution_id)
        assert (await service.executions.get(old_id)).status == "cancelled"


async def recovered(service: Service) -> None:
    """Recover the executions, and wait until none of them starts."""
    await service.recover()
    for record in await service.executions.list():
        async for event in service.executions.watch(record.execution_id):
            if event.type in ("execution.paused", *TERMINAL):
                break


async def test_given_inputs_are_settled_after_the_approval() -> None:
    async with opened() as service:
        asking = await asked(service, inputs={"a": {"output": "given"}})
        state = await answered(service, asking, decision="approve")
        assert state.nodes["b"].outputs["output"]["value"] == "given two"
        assert [state.nodes[each].wave for each in ("a", "b")] == [1, 2]
        asking = await asked(service, inputs={"a": {"output": "given"}})
        state = await answered(service, asking, decision="reject")
        assert state.status == "cancelled"


async def test_a_plan_that_nobody_asked_for_approval_of_runs_at_once() -> None:
    async with opened() as service:
        record = await execute_goal(service)
        assert (await service.executions.wait(record.execution_id)).status == "completed"
        events = await service.executions.events(record.execution_id)
        assert "approval" not in events[0].data
