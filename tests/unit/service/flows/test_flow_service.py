"""Flows: saved, changed, executed, deleted; and as nodes get at them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import (
    GraphInvalid,
    InputError,
    LimitExceeded,
    NotFound,
    PreconditionFailed,
    UnavailableProvider,
)
from planwave.events import fold
from planwave.graph.model import Node
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.service.dependencies import ServiceDependencies
from planwave.service.flows import flow_service
from planwave.service.flows.flow_queries import Flow, FlowRef
from planwave.service.flows.flow_service import NAME_CHARS, FlowResolver
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.sqlite.sql_store import MemoryStore
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
    """A node type that is not there any more after :meth:`go`."""

    node_type = "gone"

    async def execute(self, *_: Any) -> Any:
        raise AssertionError


def with_type() -> ServiceDependencies:
    return dependencies(CHAIN, types=[Gone()], store=MemoryStore())


async def saved(service: Service, name: str = "Flow", **what: Any) -> Flow:
    return await service.create_flow(name, **(what or {"graph": CHAIN.to_document()}))


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
        created = await service.create_flow("  A name ", graph=json.dumps(graph))
        assert (created.name, created.description, created.revision) == ("A name", "", 1)
        assert created.created_at == created.updated_at
        assert created.version == graph_hash(read_graph(graph)[0])
        assert created.graph == graph
        assert await service.flow(created.flow_id) == created


async def test_plan_is_saved_as_flow_with_goal_and_hash() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.create_plan("do it")
        created = await service.create_flow("Do", plan_id=plan.plan_id)
        assert (created.description, created.version) == ("do it", plan.hash)
        assert created.graph == CHAIN.to_document()
        output = await service.create_flow("Do", plan_id=plan.plan_id, description="")
        assert output.description == ""
        of_document = await service.create_flow("Do", graph=plan.as_json())
        assert (of_document.description, of_document.version) == ("do it", plan.hash)


async def test_flow_with_unavailable_provider_is_saved_and_not_executed() -> None:
    away = make_graph(Node("n", "agent", "n", "do it", data={"provider": "off"}))
    async with Service(dependencies()) as service:
        created = await saved(service, graph=away.to_document())
        with pytest.raises(UnavailableProvider):
            await service.execute(FlowRef(created.flow_id))
        assert await service.executions() == []


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x1b[2J", "x" * (NAME_CHARS + 1)])
async def test_flow_name_is_one_line_of_limited_length(name: str) -> None:
    async with Service(dependencies()) as service:
        with pytest.raises(InputError) as refused:
            await saved(service, name)
        assert refused.value.code == "invalid-name"
        stored = await saved(service, "ü" * NAME_CHARS)
        with pytest.raises(InputError):
            await service.update_flow(stored.flow_id, name=name)


async def test_description_is_limited() -> None:
    async with Service(dependencies(limits=Limits(goal_chars=5))) as service:
        stored = await service.create_flow("F", graph=STARTS, description="x" * 5)
        for refusing in (
            service.create_flow("F", graph=STARTS, description="x" * 6),
            service.update_flow(stored.flow_id, description="x" * 6),
        ):
            with pytest.raises(LimitExceeded, match="goal_chars"):
                await refusing


async def test_invalid_flow_source_and_unknown_ids_are_rejected() -> None:
    async with Service(dependencies()) as service:
        stored = await saved(service)
        for refusing in (
            service.create_flow("F"),
            service.create_flow("F", graph=STARTS, plan_id=new_id()),
            service.update_flow(stored.flow_id, graph=STARTS, plan_id=new_id()),
        ):
            with pytest.raises(InputError):
                await refusing
        for refusing in (
            service.create_flow("F", plan_id=new_id()),
            service.update_flow(stored.flow_id, plan_id=new_id()),
            service.update_flow(new_id(), name="x"),
            service.delete_flow(new_id()),
            service.flow(new_id()),
            service.flow(stored.flow_id, "0" * 64),
            service.flow_versions(new_id()),
            service.execute(FlowRef(new_id())),
            service.execute(FlowRef(stored.flow_id, "0" * 64)),
        ):
            with pytest.raises(NotFound):
                await refusing


async def test_changed_graph_is_a_new_version_and_older_ones_stay() -> None:
    async with Service(dependencies()) as service:
        first = await saved(service)
        second = await service.update_flow(first.flow_id, graph=OTHER.to_document())
        assert (second.revision, second.graph) == (2, OTHER.to_document())
        assert (second.name, second.created_at) == (first.name, first.created_at)
        assert await service.flow(first.flow_id, first.version) == first
        back = await service.update_flow(first.flow_id, graph=CHAIN.to_document())
        assert (back.version, back.revision) == (first.version, 3)
        versions = await service.flow_versions(first.flow_id)
        assert {each.version: each.revision for each in versions} == {
            first.version: 1,
            second.version: 2,
        }


async def test_unchanged_update_makes_no_revision_and_ui_no_version() -> None:
    async with Service(dependencies()) as service:
        first = await saved(service)
        again = await service.update_flow(
            first.flow_id, graph=CHAIN.to_document(), name=" Flow ", description=""
        )
        assert again == first
        moved = CHAIN.to_document()
        moved["nodes"][0]["ui"] = {"position": {"x": 9}}
        after = await service.update_flow(first.flow_id, graph=moved)
        assert (after.version, after.revision, after.graph) == (first.version, 2, moved)
        assert len(await service.flow_versions(first.flow_id)) == 1
        renamed = await service.update_flow(first.flow_id, name="New")
        assert (renamed.name, renamed.revision, renamed.graph) == ("New", 3, moved)


async def test_concurrent_updates_are_all_stored() -> None:
    async with Service(dependencies()) as service:
        stored = await saved(service)
        graphs = [make_graph(text_node("a", str(n))) for n in range(20)]
        async with asyncio.TaskGroup() as group:
            for graph in graphs:
                group.create_task(service.update_flow(stored.flow_id, graph=graph.to_document()))
        versions = await service.flow_versions(stored.flow_id)
        assert {each.version for each in versions} == {stored.version, *map(graph_hash, graphs)}
        assert {each.revision for each in versions} == set(range(1, 22))
        assert (await service.flow(stored.flow_id)).revision == 21


async def test_one_of_concurrent_conditional_updates_succeeds() -> None:
    async with Service(dependencies()) as service:
        stored = await saved(service)

        async def change(number: int) -> bool:
            graph = make_graph(text_node("a", str(number))).to_document()
            try:
                await service.update_flow(stored.flow_id, graph=graph, expected={stored.version})
            except PreconditionFailed:
                return False
            return True

        async with asyncio.TaskGroup() as group:
            created = [group.create_task(change(number)) for number in range(10)]
        assert [each.result() for each in created].count(True) == 1
        assert (await service.flow(stored.flow_id)).revision == 2


async def test_flow_with_preassigned_id_is_created_once() -> None:
    async with Service(dependencies()) as service:
        own = new_id()
        first = await service.create_flow("F", graph=STARTS, flow_id=own)
        await service.update_flow(own, name="G")
        again = await service.create_flow("F", graph=STARTS, flow_id=own)
        assert (first.flow_id, again.name) == (own, "G")
        assert len(await service.flows()) == 1


async def test_execution_is_bound_to_its_flow_version() -> None:
    async with Service(dependencies()) as service:
        first = await service.create_flow("F", graph=CHAIN.to_document(), description="a goal")
        second = await service.update_flow(first.flow_id, graph=OTHER.to_document())
        newest = await service.execute(FlowRef(first.flow_id))
        older = await service.execute(FlowRef(first.flow_id, first.version))
        for record, of in ((newest, second), (older, first)):
            await service.wait(record.execution_id)
            assert (record.plan_id, record.title, record.user_prompt) == (None, "F", "a goal")
            assert (record.flow_id, record.flow_version) == (of.flow_id, of.version)
            document = await service.document(record.execution_id)
            assert (document["flow_id"], document["flow_version"]) == (of.flow_id, of.version)
            assert document["plan_hash"] == of.version
            assert document["graph"] == of.graph
            assert document["status"] == "completed"
        assert document["node_results"]["b"] == "got one"
        found = await service.executions(flow_id=first.flow_id)
        assert [x.execution_id for x in found] == [older.execution_id, newest.execution_id]


@pytest.mark.parametrize("inputs", [{"s": {"output": "hello"}}, {"output": "hello"}])
async def test_flow_takes_inputs_by_node_or_flat(inputs: Any) -> None:
    async with Service(dependencies()) as service:
        created = await saved(service, graph=STARTS)
        record = await service.execute(FlowRef(created.flow_id), inputs=inputs)
        await service.wait(record.execution_id)
        document = await service.document(record.execution_id)
        assert document["node_results"]["echo"] == "heard hello"


async def test_execution_of_flow_has_version_in_its_state() -> None:
    store = MemoryStore()
    async with Service(dependencies(store=store)) as service:
        created = await saved(service)
        record = await service.create_execution(FlowRef(created.flow_id))
        await service.start(record.execution_id)
        await service.wait(record.execution_id)
        state = fold(await service.events(record.execution_id))
        assert (state.status, state.flow_id, state.flow_version) == (
            "completed",
            created.flow_id,
            created.version,
        )


async def test_fork_keeps_flow_version_only_with_the_same_graph() -> None:
    async with Service(dependencies()) as service:
        created = await saved(service)
        record = await service.execute(FlowRef(created.flow_id))
        await service.wait(record.execution_id)
        same = await service.fork(record.execution_id, rerun=["b"])
        changed = await service.fork(
            record.execution_id, changes={"b": {"data": {"text": "now {{ input }}"}}}
        )
        assert (same.flow_id, same.flow_version) == (created.flow_id, created.version)
        assert (changed.flow_id, changed.flow_version) == (created.flow_id, None)
        for each in (same, changed):
            await service.wait(each.execution_id)


async def test_flow_with_unknown_type_is_readable_and_not_executed() -> None:
    parts = with_type()
    graph = make_graph(Node("g", "gone", "G")).to_document()
    async with Service(parts) as service:
        created = await saved(service, graph=graph)
    async with Service(dependencies(store=parts.store)) as service:
        assert await service.flow(created.flow_id) == created
        for refusing in (
            service.execute(FlowRef(created.flow_id)),
            FlowResolver(parts.store, service.catalogue, service.limits).get(created.flow_id),
        ):
            with pytest.raises(GraphInvalid) as refused:
                await refusing
            assert [each.code for each in refused.value.diagnostics] == ["unknown-node-type"]
        assert await service.executions() == []


# -- as nodes get at them


def flows_of(service: Service, parts: ServiceDependencies) -> FlowResolver:
    return FlowResolver(parts.store, service.catalogue, service.limits)


async def test_resolver_returns_latest_or_named_version() -> None:
    parts = dependencies(store=MemoryStore())
    async with Service(parts) as service:
        first = await saved(service)
        flows = flows_of(service, parts)
        graph = await flows.get(first.flow_id, None)
        assert graph == CHAIN
        assert await flows.get(first.flow_id) is graph, "made ready once"
        second = await service.update_flow(first.flow_id, graph=OTHER.to_document())
        assert await flows.get(first.flow_id, None) == OTHER
        assert await flows.get(first.flow_id, first.version) is graph
        assert await flows.get(first.flow_id, second.version) == OTHER


async def test_resolver_rejects_unknown_flow_and_version() -> None:
    parts = dependencies(store=MemoryStore())
    async with Service(parts) as service:
        created = await saved(service)
        flows = flows_of(service, parts)
        await flows.get(created.flow_id)
        with pytest.raises(NotFound, match="has no version"):
            await flows.get(created.flow_id, "0" * 64)
        await service.delete_flow(created.flow_id)
        for requested in (
            (created.flow_id, None),
            (created.flow_id, created.version),
            (new_id(), None),
        ):
            with pytest.raises(NotFound, match="no flow"):
                await flows.get(*requested)


async def test_resolver_returns_first_of_many_versions() -> None:
    parts = dependencies(store=MemoryStore())
    async with Service(parts) as service:
        created = await saved(service)
        flows = flows_of(service, parts)
        first = await flows.get(created.flow_id)
        for number in range(flow_service._READY):
            graph = make_graph(text_node("a", str(number)))
            await service.update_flow(created.flow_id, graph=graph.to_document())
            await flows.get(created.flow_id)
        assert await flows.get(created.flow_id, created.version) == first


async def test_flow_over_lowered_limits_is_rejected_by_name() -> None:
    parts = dependencies(store=MemoryStore())
    async with Service(parts) as service:
        created = await saved(service, "Two steps")
    tighter = FlowResolver(parts.store, parts.catalogue, Limits(nodes=1))
    with pytest.raises(GraphInvalid, match="'Two steps'"):
        await tighter.get(created.flow_id)
    async with Service(replace(parts, limits=Limits(nodes=1))) as service:
        with pytest.raises(GraphInvalid):
            await service.execute(FlowRef(created.flow_id))
