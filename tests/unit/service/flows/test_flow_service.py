"""Flows: saved, changed, executed, deleted; and as nodes get at them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import (
    Conflict,
    GraphInvalid,
    InputError,
    LimitExceeded,
    NotFound,
    PreconditionFailed,
    UnavailableProvider,
)
from planwave.events import fold
from planwave.graph.model import Node
from planwave.graph.operations import AddNode, RemoveNode, SetTitle
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.service.dependencies import ServiceDependencies
from planwave.service.flows import flow_service
from planwave.service.flows.flow_queries import Flow, FlowRef
from planwave.service.flows.flow_service import NAME_CHARS, FlowResolver
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "got {{ input }}"), edges=[("a", "b")])
OTHER = make_graph(text_node("a", "two"))
STARTS: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "echo", "type": "text", "data": {"text": "heard {{ input }}"}},
    ],
    "edges": [{"source": "s", "target": "echo", "data": {"channel": "flow"}}],
}


class Gone:
    """A node type that is not there any more after ``go``."""

    node_type = "gone"

    async def execute(self, *_: Any) -> Any:
        raise AssertionError


def with_type() -> ServiceDependencies:
    return dependencies(CHAIN, types=[Gone()], store=MemoryStore())


async def saved(service: Service, name: str = "Flow", **what: Any) -> Flow:
    return await service.flows.create(name, **(what or {"graph": CHAIN.to_document()}))


async def test_flow_graph_round_trips() -> None:
    node = {"id": "a", "type": "text", "name": "A", "data": {"text": "x"}}
    node["ui"] = {"position": {"x": 1.25, "y": -7}, "colour": None, "tags": ["ü", []]}
    edge = {
        "id": "e1",
        "source": "a",
        "sourceHandle": "output",
        "target": "b",
        "targetHandle": "input",
        "type": "smoothstep",
        "data": {"channel": "flow", "sourceType": "text", "bend": [1, {"deep": None}]},
    }
    graph = {"nodes": [node, {**node, "id": "b", "ui": {}}], "edges": [edge]}
    async with Service(dependencies()) as service:
        created = await service.flows.create("  A name ", graph=json.dumps(graph))
        assert (created.name, created.description, created.revision) == ("A name", "", 1)
        assert created.created_at == created.updated_at
        assert created.hash == graph_hash(read_graph(graph)[0])
        assert created.graph == graph
        assert await service.flows.get(created.plan_id) == created


async def test_plan_gets_a_name_and_is_the_flow() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.plans.create("do it")
        created = await service.flows.create("Do", plan_id=plan.plan_id)
        assert (created.plan_id, created.name, created.title) == (plan.plan_id, "Do", plan.title)
        assert (created.description, created.hash) == (plan.title, plan.hash), "not the goal"
        assert created.graph == CHAIN.to_document()
        assert (await service.plans.get(plan.plan_id)).name == "Do"
        assert len(await service.plans.list()) == 1
        of_document = await service.flows.create("Of a document", graph=plan.as_json())
        assert (of_document.description, of_document.hash) == (plan.title, plan.hash)
        assert of_document.plan_id != plan.plan_id


async def test_a_plan_that_has_a_name_is_copied_in_its_live_revision() -> None:
    async with Service(dependencies()) as service:
        first = await saved(service)
        await service.flows.update(first.plan_id, graph=OTHER.to_document())
        draft = [AddNode({"id": "x", "type": "nothing"})]
        await service.plans.edit(first.plan_id, draft, expected=None)
        copy = await service.flows.create("Copy", plan_id=first.plan_id, description="")
        assert (copy.graph, copy.revision, copy.description) == (OTHER.to_document(), 1, "")
        origin = {"plan_id": first.plan_id, "revision": 2}
        assert (await service.plans.get(copy.plan_id)).document["origin"] == origin
        assert (await service.flows.get(first.plan_id)).name == "Flow"


@pytest.mark.parametrize("other", ["Flow", "FLOW", " flow "])
async def test_a_name_is_taken_once_without_regard_to_case(other: str) -> None:
    async with Service(dependencies(CHAIN)) as service:
        await saved(service)
        second, plan = await saved(service, "Second"), await service.plans.create("do it")
        for refusing in (
            saved(service, other),
            service.flows.update(second.plan_id, name=other),
            service.flows.create(other, plan_id=plan.plan_id),
        ):
            with pytest.raises(Conflict) as refused:
                await refusing
            assert refused.value.code == "name-taken"
        assert len(await service.flows.list()) == 2


async def test_a_draft_is_stored_and_callers_go_on_with_the_live_revision() -> None:
    async with Service(dependencies()) as service:
        flow = await saved(service)
        draft = [AddNode({"id": "x", "type": "nothing"})]
        edited = await service.plans.edit(flow.plan_id, draft, expected={flow.hash}, note="later")
        assert (edited.document["revision"], edited.live_revision) == (2, 1)
        shown = await service.flows.get(flow.plan_id)
        assert (shown.draft or {})["note"] == "later"
        assert replace(shown, draft=None) == flow
        record = await service.executions.execute(FlowRef(flow.plan_id))
        await service.executions.wait(record.execution_id)
        assert (record.revision, record.flow) == (1, "Flow")
        with pytest.raises(InputError, match="is a draft with errors"):
            await service.executions.execute(FlowRef(flow.plan_id, 2))
        with pytest.raises(GraphInvalid):
            await service.executions.execute(flow.plan_id)
        with pytest.raises(GraphInvalid):
            await service.flows.edit(flow.plan_id, [SetTitle("New")], expected=None)
        mended = await service.plans.edit(flow.plan_id, [RemoveNode("x")], expected=None)
        assert (mended.document["revision"], mended.live_revision) == (3, 3)
        assert (await service.flows.get(flow.plan_id)).revision == 3
        revisions = await service.revisions.list(flow.plan_id)
        assert [(each.revision, each.note) for each in revisions] == [
            (3, ""),
            (2, "later"),
            (1, ""),
        ]


async def test_plans_that_are_named_at_once_are_named_and_copied() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.plans.create("do it")
        async with asyncio.TaskGroup() as group:
            made = [
                group.create_task(service.flows.create(name, plan_id=plan.plan_id))
                for name in ("A", "B", "C", "a")
            ]
        flows = [each.result() for each in made]
        assert {each.name.upper() for each in flows} == {"A", "B", "C"}
        assert len({each.plan_id for each in flows}) == 3
        again = await service.flows.create(flows[0].name, plan_id=flows[0].plan_id)
        assert again == await service.flows.get(flows[0].plan_id)


async def test_a_flow_without_its_name_is_a_plan() -> None:
    async with Service(dependencies()) as service:
        flow = await saved(service)
        await service.executions.execute(FlowRef(flow.plan_id))
        await service.flows.remove_name(flow.plan_id)
        assert (await service.plans.get(flow.plan_id)).name is None
        for refusing in (
            service.flows.get(flow.plan_id),
            service.executions.execute(FlowRef(flow.plan_id)),
            service.flows.remove_name(flow.plan_id),
            service.flows.delete(flow.plan_id),
        ):
            with pytest.raises(NotFound):
                await refusing
        of_plan = await service.executions.execute(flow.plan_id)
        assert (of_plan.plan_id, of_plan.flow) == (flow.plan_id, None)
        await saved(service)


async def test_what_leads_to_a_name_goes_with_it_where_that_is_forced() -> None:
    async with Service(dependencies()) as service:
        flow = await saved(service, graph=STARTS)
        await service.flows.publish(flow.plan_id, {"tool": True})
        token = await service.access_tokens.create("one", ["run"], [flow.plan_id])
        for refusing in (
            service.flows.update(flow.plan_id, name="New"),
            service.flows.remove_name(flow.plan_id),
            service.flows.delete(flow.plan_id),
            service.plans.delete(flow.plan_id),
        ):
            with pytest.raises(Conflict, match="as a tool") as refused:
                await refusing
            assert refused.value.code == "flow-in-use"
            assert "'one'" in refused.value.message
        assert service.access_tokens.find(token.secret) is not None
        renamed = await service.flows.update(flow.plan_id, name="New", force=True)
        assert (renamed.name, renamed.published) == ("New", ())
        assert service.access_tokens.find(token.secret) is None, "it had no other flow"


async def test_flow_with_unavailable_provider_is_saved_and_not_executed() -> None:
    away = make_graph(Node("n", "agent", "n", "do it", data={"provider": "off"}))
    async with Service(dependencies()) as service:
        created = await saved(service, graph=away.to_document())
        with pytest.raises(UnavailableProvider):
            await service.executions.execute(FlowRef(created.plan_id))
        assert await service.executions.list() == []


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x1b[2J", "x" * (NAME_CHARS + 1)])
async def test_flow_name_is_one_line_of_limited_length(name: str) -> None:
    async with Service(dependencies()) as service:
        with pytest.raises(InputError) as refused:
            await saved(service, name)
        assert refused.value.code == "invalid-name"
        stored = await saved(service, "ü" * NAME_CHARS)
        with pytest.raises(InputError):
            await service.flows.update(stored.plan_id, name=name)


async def test_description_is_limited() -> None:
    async with Service(dependencies(limits=Limits(goal_chars=5))) as service:
        stored = await service.flows.create("F", graph=STARTS, description="x" * 5)
        for refusing in (
            service.flows.create("F", graph=STARTS, description="x" * 6),
            service.flows.update(stored.plan_id, description="x" * 6),
        ):
            with pytest.raises(LimitExceeded, match="goal_chars"):
                await refusing


async def test_invalid_flow_source_and_unknown_ids_are_rejected() -> None:
    async with Service(dependencies()) as service:
        stored = await saved(service)
        for refusing in (
            service.flows.create("F"),
            service.flows.create("F", graph=STARTS, plan_id=new_id()),
            service.flows.update(stored.plan_id, graph=STARTS, graph_of=new_id()),
        ):
            with pytest.raises(InputError):
                await refusing
        for refusing in (
            service.flows.create("F", plan_id=new_id()),
            service.flows.update(stored.plan_id, graph_of=new_id()),
            service.flows.update(new_id(), name="x"),
            service.flows.delete(new_id()),
            service.flows.get(new_id()),
            service.flows.get(stored.plan_id, 2),
            service.executions.execute(FlowRef(new_id())),
            service.executions.execute(FlowRef(stored.plan_id, 2)),
        ):
            with pytest.raises(NotFound):
                await refusing


async def test_changed_graph_is_a_new_revision_and_older_ones_stay() -> None:
    async with Service(dependencies()) as service:
        first = await saved(service)
        change = {"author": "person", "note": "shorter"}
        second = await service.flows.update(first.plan_id, graph=OTHER.to_document(), **change)
        assert (second.revision, second.graph) == (2, OTHER.to_document())
        assert (second.name, second.created_at) == (first.name, first.created_at)
        assert replace(await service.flows.get(first.plan_id, 1), live_revision=1) == first
        back = await service.flows.update(first.plan_id, graph=CHAIN.to_document())
        assert (back.hash, back.revision) == (first.hash, 3)
        revisions = await service.revisions.list(first.plan_id)
        assert [(each.revision, each.hash, each.author, each.note) for each in revisions] == [
            (3, first.hash, "api", ""),
            (2, second.hash, "person", "shorter"),
            (1, first.hash, "api", ""),
        ]


async def test_neither_an_unchanged_graph_nor_ui_nor_a_name_makes_a_revision() -> None:
    async with Service(dependencies()) as service:
        first = await saved(service)
        again = await service.flows.update(
            first.plan_id, graph=CHAIN.to_document(), name=" Flow ", description=""
        )
        assert again == first
        moved = CHAIN.to_document()
        moved["nodes"][0]["ui"] = {"position": {"x": 9}}
        after = await service.flows.update(first.plan_id, graph=moved)
        assert (after.hash, after.revision, after.graph) == (first.hash, 1, moved)
        renamed = await service.flows.update(first.plan_id, name="New")
        assert (renamed.name, renamed.revision, renamed.graph) == ("New", 1, moved)
        assert len(await service.revisions.list(first.plan_id)) == 1


async def test_concurrent_updates_are_all_stored() -> None:
    async with Service(dependencies()) as service:
        stored = await saved(service)
        graphs = [make_graph(text_node("a", str(n))) for n in range(20)]
        async with asyncio.TaskGroup() as group:
            for graph in graphs:
                group.create_task(service.flows.update(stored.plan_id, graph=graph.to_document()))
        revisions = await service.revisions.list(stored.plan_id)
        assert {each.hash for each in revisions} == {stored.hash, *map(graph_hash, graphs)}
        assert {each.revision for each in revisions} == set(range(1, 22))
        assert (await service.flows.get(stored.plan_id)).revision == 21


async def test_one_of_concurrent_conditional_updates_succeeds() -> None:
    async with Service(dependencies()) as service:
        stored = await saved(service)

        async def change(number: int) -> bool:
            graph = make_graph(text_node("a", str(number))).to_document()
            try:
                await service.flows.update(stored.plan_id, graph=graph, expected={stored.hash})
            except PreconditionFailed:
                return False
            return True

        async with asyncio.TaskGroup() as group:
            created = [group.create_task(change(number)) for number in range(10)]
        assert [each.result() for each in created].count(True) == 1
        assert (await service.flows.get(stored.plan_id)).revision == 2


async def test_flow_with_preassigned_id_is_created_once() -> None:
    async with Service(dependencies()) as service:
        own = new_id()
        first = await service.flows.create("F", graph=STARTS, preassigned_id=own)
        await service.flows.update(own, name="G")
        again = await service.flows.create("F", graph=STARTS, preassigned_id=own)
        assert (first.plan_id, again.name) == (own, "G")
        assert len(await service.flows.list()) == 1


async def test_execution_is_bound_to_its_flow_and_revision() -> None:
    async with Service(dependencies()) as service:
        first = await service.flows.create("F", graph=CHAIN.to_document(), description="a goal")
        second = await service.flows.update(first.plan_id, graph=OTHER.to_document())
        newest = await service.executions.execute(FlowRef(first.plan_id))
        older = await service.executions.execute(FlowRef(first.plan_id, 1))
        for record, of in ((newest, second), (older, first)):
            await service.executions.wait(record.execution_id)
            assert (record.flow, record.title, record.user_prompt) == ("F", "F", "a goal")
            assert (record.plan_id, record.revision) == (of.plan_id, of.revision)
            document = await service.executions.document(record.execution_id)
            assert (document["plan_id"], document["revision"]) == (of.plan_id, of.revision)
            assert (document["plan_hash"], document["flow"]) == (of.hash, "F")
            assert document["graph"] == of.graph
            assert document["status"] == "completed"
        assert document["node_results"]["b"] == "got one"
        found = await service.executions.list(plan_id=first.plan_id)
        assert [x.execution_id for x in found] == [older.execution_id, newest.execution_id]


@pytest.mark.parametrize("inputs", [{"s": {"output": "hello"}}, {"output": "hello"}])
async def test_flow_takes_inputs_by_node_or_flat(inputs: Any) -> None:
    async with Service(dependencies()) as service:
        created = await saved(service, graph=STARTS)
        record = await service.executions.execute(FlowRef(created.plan_id), inputs=inputs)
        await service.executions.wait(record.execution_id)
        document = await service.executions.document(record.execution_id)
        assert document["node_results"]["echo"] == "heard hello"


async def test_execution_of_flow_has_its_revision_in_its_state() -> None:
    store = MemoryStore()
    async with Service(dependencies(store=store)) as service:
        created = await saved(service)
        record = await service.executions.create(FlowRef(created.plan_id))
        await service.executions.start(record.execution_id)
        await service.executions.wait(record.execution_id)
        state = fold(await service.executions.events(record.execution_id))
        assert (state.status, state.plan_id, state.revision, state.flow) == (
            "completed",
            created.plan_id,
            1,
            "Flow",
        )


async def test_an_edit_at_the_approval_of_one_execution_is_not_for_all_callers() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.plans.create("a secret goal")
        flow = await service.flows.create("F", plan_id=plan.plan_id)
        record = await service.executions.execute(FlowRef(flow.plan_id), require_approval=True)
        await service.executions.wait(record.execution_id)
        (request,) = await service.executions.requests(record.execution_id)
        answer = {"decision": "edit", "value": OTHER.to_document(), "note": "for once"}
        after = await service.executions.answer(record.execution_id, request.request_id, answer)
        await service.executions.wait(after.execution_id)
        assert await service.flows.get(flow.plan_id) == flow
        assert len(await service.revisions.list(flow.plan_id)) == 1
        assert after.plan_id != flow.plan_id
        assert (after.flow, after.user_prompt) == (None, flow.description)


async def test_fork_keeps_the_revision_only_with_the_same_graph() -> None:
    async with Service(dependencies()) as service:
        created = await saved(service)
        record = await service.executions.execute(FlowRef(created.plan_id))
        await service.executions.wait(record.execution_id)
        same = await service.executions.fork(record.execution_id, rerun=["b"])
        changed = await service.executions.fork(
            record.execution_id, changes={"b": {"data": {"text": "now {{ input }}"}}}
        )
        assert (same.plan_id, same.revision, same.flow) == (created.plan_id, 1, "Flow")
        assert (changed.plan_id, changed.revision, changed.flow) == (created.plan_id, None, None)
        for each in (same, changed):
            await service.executions.wait(each.execution_id)


async def test_flow_with_unknown_type_is_readable_and_not_executed() -> None:
    parts = with_type()
    graph = make_graph(Node("g", "gone", "G")).to_document()
    async with Service(parts) as service:
        created = await saved(service, graph=graph)
    async with Service(dependencies(store=parts.store)) as service:
        assert await service.flows.get(created.plan_id) == created
        for refusing in (
            service.executions.execute(FlowRef(created.plan_id)),
            FlowResolver(parts.store, service.catalogue, service.limits).get(created.plan_id),
        ):
            with pytest.raises(GraphInvalid) as refused:
                await refusing
            assert [each.code for each in refused.value.diagnostics] == ["unknown-node-type"]
        assert await service.executions.list() == []


# -- as nodes get at them


def flows_of(service: Service, parts: ServiceDependencies) -> FlowResolver:
    return FlowResolver(parts.store, service.catalogue, service.limits)


async def test_resolver_returns_the_live_or_a_named_revision() -> None:
    parts = dependencies(store=MemoryStore())
    async with Service(parts) as service:
        first = await saved(service)
        flows = flows_of(service, parts)
        graph = await flows.get(first.plan_id, None)
        assert graph == CHAIN
        assert await flows.get(first.plan_id) is graph, "made ready once"
        await service.flows.update(first.plan_id, graph=OTHER.to_document())
        assert await flows.get(first.plan_id, None) == OTHER
        assert await flows.get(first.plan_id, 1) is graph
        assert await flows.get(first.plan_id, 2) == OTHER


async def test_resolver_rejects_unknown_flow_and_revision() -> None:
    parts = dependencies(store=MemoryStore())
    async with Service(parts) as service:
        created = await saved(service)
        flows = flows_of(service, parts)
        await flows.get(created.plan_id)
        with pytest.raises(NotFound, match="has no revision 2"):
            await flows.get(created.plan_id, 2)
        await service.flows.delete(created.plan_id)
        for requested in (
            (created.plan_id, None),
            (created.plan_id, 1),
            (new_id(), None),
        ):
            with pytest.raises(NotFound, match="no flow"):
                await flows.get(*requested)


async def test_resolver_returns_first_of_many_revisions() -> None:
    parts = dependencies(store=MemoryStore())
    async with Service(parts) as service:
        created = await saved(service)
        flows = flows_of(service, parts)
        first = await flows.get(created.plan_id)
        for number in range(flow_service._READY):
            graph = make_graph(text_node("a", str(number)))
            await service.flows.update(created.plan_id, graph=graph.to_document())
            await flows.get(created.plan_id)
        assert await flows.get(created.plan_id, 1) == first


async def test_flow_over_lowered_limits_is_rejected_by_name() -> None:
    parts = dependencies(store=MemoryStore())
    async with Service(parts) as service:
        created = await saved(service, "Two steps")
    tighter = FlowResolver(parts.store, parts.catalogue, Limits(nodes=1))
    with pytest.raises(GraphInvalid, match="'Two steps'"):
        await tighter.get(created.plan_id)
    async with Service(replace(parts, limits=Limits(nodes=1))) as service:
        with pytest.raises(GraphInvalid):
            await service.executions.execute(FlowRef(created.plan_id))
