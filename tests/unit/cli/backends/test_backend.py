"""A flow at both workplaces: here, and at a service."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.cli.backends.local import LocalBackend
from planwave.cli.backends.remote import RemoteBackend
from planwave.cli.inputs import Source
from planwave.client import AsyncClient
from planwave.errors import GraphInvalid, InputError
from planwave.executor.options import RunOptions
from planwave.graph.plan import graph_hash
from planwave.service.flows.flow_queries import Flow
from planwave.service.service import Service
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

AT = "2026-01-15T12:00:00+00:00"
GRAPH = make_graph(text_node("a"))
FLOW = Flow(
    "01911111-0000-7000-8000-000000000001",
    "Gone",
    "A title",
    "why",
    7,
    graph_hash(GRAPH),
    AT,
    AT,
    GRAPH.to_document(),
)
FAULTY = replace(FLOW, graph={"nodes": [{"id": "a", "type": "gone"}], "edges": []})


def checking(*found: dict[str, Any]) -> httpx2.MockTransport:
    """A service that finds this in whatever it is asked to check, and executes anything."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/api/check":
            return httpx2.Response(200, json={"valid": not found, "diagnostics": [*found]})
        body = json.loads(request.content)
        assert (request.url.path, body["flow"]) == ("/api/execute", FLOW.plan_id)
        return httpx2.Response(202, json={"execution_id": f"of revision {body['revision']}"})

    return httpx2.MockTransport(answer)


def remote(*found: dict[str, Any], **more: Any) -> RemoteBackend:
    return RemoteBackend(AsyncClient(transport=checking(*found)), Path("storage"), **more)


async def test_flow_becomes_a_plan_with_forecast() -> None:
    async with Service(dependencies()) as service:
        plan = await LocalBackend(service).plan_flow(FLOW, ())
    assert (plan.title, plan.user_prompt, plan.hash) == ("Gone", "why", FLOW.hash)
    assert (plan.forecast["nodes"], plan.forecast["calls"]) == (1, 0)


async def test_plan_is_stored_only_when_it_starts() -> None:
    source = Source("file.json", json.dumps(GRAPH.to_document()).encode())
    async with Service(dependencies()) as service:
        here = LocalBackend(service)
        plan = await here.plan_source(source, ())
        with pytest.raises(InputError, match="run_to names 'ghost'"):
            await here.start(plan, (), RunOptions(run_to=("ghost",)))
        assert await service.plans.list() == []
        await service.executions.wait(await here.start(plan, (), None))
        assert [stored.plan_id for stored in await service.plans.list()] == [plan.plan_id]


async def test_unknown_node_type_of_flow_is_reported_locally() -> None:
    async with Service(dependencies()) as service:
        with pytest.raises(GraphInvalid, match=r"^flow 'Gone': ") as refused:
            await LocalBackend(service).plan_flow(FAULTY, ())
    assert [found.code for found in refused.value.diagnostics] == ["unknown-node-type"]


async def test_unknown_node_type_of_flow_is_reported_remotely() -> None:
    found = {
        "code": "unknown-node-type",
        "severity": "error",
        "message": "no such type",
        "pointer": "/nodes/0/type",
    }
    async with remote(found) as location:
        with pytest.raises(GraphInvalid, match=r"^flow 'Gone': no such type$"):
            await location.plan_flow(FAULTY, ())


async def test_execution_starts_the_planned_flow_revision() -> None:
    async with remote() as location:
        plan = await location.plan_flow(FLOW, ())
        assert (plan.title, plan.user_prompt, plan.graph) == ("Gone", "why", GRAPH)
        assert await location.start(plan, (), None) == "of revision 7"
    async with Service(dependencies()) as service:
        stored = await service.flows.create("F", graph=GRAPH.to_document())
        here = LocalBackend(service)
        plan = await here.plan_flow(stored, ())
        await service.flows.update(stored.plan_id, graph=make_graph(text_node("b")).to_document())
        record = await service.executions.get(await here.start(plan, (), None))
        assert (record.plan_id, record.revision, record.flow) == (stored.plan_id, 1, "F")
        await service.executions.wait(record.execution_id)


async def test_remote_backend_rejects_provider_option_for_flow() -> None:
    async with remote(provider="openai") as location:
        with pytest.raises(InputError, match="with its own default"):
            await location.plan_flow(FLOW, ())
