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
    "why",
    graph_hash(GRAPH),
    1,
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
        assert (request.url.path, body["flow_id"]) == ("/api/execute", FLOW.flow_id)
        return httpx2.Response(202, json={"execution_id": body["version"]})

    return httpx2.MockTransport(answer)


def remote(*found: dict[str, Any], **more: Any) -> RemoteBackend:
    return RemoteBackend(AsyncClient(transport=checking(*found)), Path("storage"), **more)


async def test_a_flow_comes_with_what_it_will_take() -> None:
    async with Service(dependencies()) as service:
        plan = await LocalBackend(service).plan_flow(FLOW, ())
    assert (plan.title, plan.user_prompt, plan.hash) == ("Gone", "why", FLOW.version)
    assert (plan.forecast["nodes"], plan.forecast["calls"]) == (1, 0)


async def test_a_file_that_is_not_started_leaves_nothing_behind() -> None:
    source = Source("file.json", json.dumps(GRAPH.to_document()).encode())
    async with Service(dependencies()) as service:
        here = LocalBackend(service)
        plan = await here.plan_source(source, ())
        with pytest.raises(InputError, match="run_to names 'ghost'"):
            await here.start(plan, (), RunOptions(run_to=("ghost",)))
        assert await service.plans() == []
        await service.wait(await here.start(plan, (), None))
        assert [kept.plan_id for kept in await service.plans()] == [plan.plan_id]


async def test_a_flow_whose_type_is_gone_is_named_here() -> None:
    async with Service(dependencies()) as service:
        with pytest.raises(GraphInvalid, match=r"^flow 'Gone': ") as refused:
            await LocalBackend(service).plan_flow(FAULTY, ())
    assert [found.code for found in refused.value.diagnostics] == ["unknown-node-type"]


async def test_a_flow_whose_type_is_gone_is_named_there() -> None:
    found = {
        "code": "unknown-node-type",
        "severity": "error",
        "message": "no such type",
        "pointer": "/nodes/0/type",
    }
    async with remote(found) as place:
        with pytest.raises(GraphInvalid, match=r"^flow 'Gone': no such type$"):
            await place.plan_flow(FAULTY, ())


async def test_the_version_that_was_looked_at_is_what_starts() -> None:
    async with remote() as place:
        plan = await place.plan_flow(FLOW, ())
        assert (plan.title, plan.user_prompt, plan.graph) == ("Gone", "why", GRAPH)
        assert await place.start(plan, (), None) == FLOW.version
    async with Service(dependencies()) as service:
        kept = await service.create_flow("F", graph=GRAPH.to_document())
        here = LocalBackend(service)
        plan = await here.plan_flow(kept, ())
        await service.update_flow(kept.flow_id, graph=make_graph(text_node("b")).to_document())
        record = await service.execution(await here.start(plan, (), None))
        assert (record.flow_id, record.flow_version) == (kept.flow_id, kept.version)
        await service.wait(record.execution_id)


async def test_a_service_runs_a_flow_with_its_own_providers() -> None:
    async with remote(provider="openai") as place:
        with pytest.raises(InputError, match="with its own default"):
            await place.plan_flow(FLOW, ())
