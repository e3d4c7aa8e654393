"""Flows that nodes name: found by name, and reported where they do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import GraphInvalid, NotFound
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Node
from planwave.graph.reading.documents import read_graph
from planwave.nodes.subgraphs import FlowName
from planwave.service.dependencies import ServiceDependencies
from planwave.service.flows.flow_queries import FlowQueries
from planwave.service.flows.flow_references import unknown_flows
from planwave.service.flows.flow_service import FlowResolver
from planwave.service.service import Service
from planwave.settings import Limits
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

STORED = make_graph(text_node("a", "said")).to_document()


def inner(**flow: Any) -> dict[str, Any]:
    return {"nodes": [{"id": "n", "type": "inner", "data": {"flow": flow}}], "edges": []}


async def found(graph: dict[str, Any], parts: ServiceDependencies) -> list[Diagnostic]:
    read, _ = read_graph(graph)
    return await unknown_flows(read, parts.catalogue, FlowQueries(parts.store))


async def test_a_node_runs_the_flow_of_a_name() -> None:
    parts = dependencies()
    async with Service(parts) as service:
        flow = await service.flows.create("Triage", graph=STORED)
        for named in ({"name": "Triage"}, {"name": "TRIAGE", "revision": 1}):
            assert await found(inner(**named), parts) == []
        flows = FlowResolver(parts.store, parts.catalogue, Limits())
        assert await flows.find("Triage") == flow.plan_id
        with pytest.raises(NotFound, match="'triag'") as caught:
            await flows.find("triag")
        assert (caught.value.code, "'Triage'" in str(caught.value.hint)) == ("unknown-flow", True)
        with pytest.raises(NotFound, match="there is no flow") as caught:
            await flows.get("nowhere")
        assert caught.value.code == "unknown-flow"


@pytest.mark.parametrize(
    ("flow", "code", "hint"),
    [
        ({"name": "Triag"}, "unknown-flow", "'Triage'"),
        ({"id": "Triage"}, "unknown-flow", "\"name\": 'Triage'"),
        ({"name": "zzzzzz"}, "unknown-flow", "list the flows"),
        ({"name": "Triage", "revision": 2}, "unknown-flow", "newest revision is 1"),
    ],
)
async def test_a_flow_that_does_not_exist_is_reported_with_the_nearest_one(
    flow: dict[str, str], code: str, hint: str
) -> None:
    parts = dependencies()
    async with Service(parts) as service:
        for name in ("Triage", "Twice"):
            await service.flows.create(name, graph=STORED)
        (finding,) = await found(inner(**flow), parts)
        assert (finding.code, finding.severity, finding.node) == (code, "error", "n")
        assert finding.pointer == "/nodes/0/data/flow"
        assert hint in str(finding.hint)


async def test_nested_graphs_are_searched_and_what_is_known_later_is_not() -> None:
    parts = dependencies()
    outer = {"nodes": [{"id": "o", "type": "loop", "data": {"body": inner(name="x")}}], "edges": []}
    (finding,) = await found(outer, parts)
    assert (finding.pointer, finding.message.partition(":")[0]) == ("/nodes/0/data", "node 'o/n'")
    assert await found(inner(name="{{ goal }}"), parts) == []
    wired = {**inner(name="x"), "edges": [
        {"source": "s", "target": "n", "targetHandle": "flow", "data": {"channel": "flow"}}
    ]}  # fmt: skip
    wired["nodes"] = [*wired["nodes"], {"id": "s", "type": "json", "data": {"value": {}}}]
    assert await found(wired, parts) == []


async def test_nothing_is_created_for_a_graph_that_names_an_unknown_flow() -> None:
    parts = dependencies()
    async with Service(parts) as service:
        checked = await service.plans.parse_and_check(inner(name="x"))
        with pytest.raises(GraphInvalid, match="there is no flow 'x'"):
            await service.executions.execute(checked)
        assert await service.executions.list() == []
        report = await service.flows.check_references(service.plans.check(inner(name="x")))
        assert [each.code for each in report.diagnostics] == ["unknown-flow"]


def test_a_flow_is_named_by_id_or_name() -> None:
    for wrong in ({}, {"id": "a", "name": "b"}):
        with pytest.raises(ValueError, match="one of the two"):
            FlowName.model_validate(wrong)


TAKES_NUMBER = make_graph(
    Node("s", "start", "s", data={"schema": {"type": "object", "required": ["number"]}}),
).to_document()


def calling(arguments: Any, *edges: dict[str, Any]) -> dict[str, Any]:
    """Return a step that calls the flow ``Pay``, after another one."""
    data = {"flow": {"name": "Pay"}, "arguments": arguments}
    given = {"id": "s", "type": "json", "data": {"value": {}}}
    return {"nodes": [{"id": "n", "type": "call_tool", "data": data}, given], "edges": list(edges)}


@pytest.mark.parametrize(
    ("arguments", "pointers"),
    [
        ({"input": {"number": 1}}, []),
        ({"input": "{{ goal }}"}, []),
        ("{{ goal }}", []),
        ({}, [""]),
        ({"input": {}}, ["/input"]),
        ({"inputt": {"number": 1}}, ["/inputt", ""]),
    ],
)
async def test_what_a_step_gives_a_flow_that_does_not_take_it_is_reported(
    arguments: Any, pointers: list[str]
) -> None:
    parts = dependencies()
    async with Service(parts) as service:
        await service.flows.create("Pay", graph=TAKES_NUMBER)
        findings = await found(calling(arguments), parts)
        expected = [f"/nodes/0/data/arguments{each}" for each in pointers]
        assert [(each.code, each.pointer) for each in findings] == [
            ("invalid-arguments", each) for each in expected
        ]
        for each in findings:
            assert each.message.startswith("node 'n': the arguments do not fit the flow: ")


async def test_arguments_that_a_wire_brings_are_not_known() -> None:
    parts = dependencies()
    edge = {"source": "s", "target": "n", "targetHandle": "arguments", "data": {"channel": "flow"}}
    async with Service(parts) as service:
        await service.flows.create("Pay", graph=TAKES_NUMBER)
        assert await found(calling({}, edge), parts) == []
        nested = {"id": "o", "type": "loop", "data": {"body": calling({})}}
        (finding,) = await found({"nodes": [nested], "edges": []}, parts)
        assert (finding.pointer, finding.node) == ("/nodes/0/data", "o")
