"""Exports over HTTP: each format of what is stored and of what is not, with what its JSON shows and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph
from planwave.interop.exporting.exporter import FORMATS
from planwave.shapes.common import ExportFormat
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])
GRAPH = CHAIN.to_document()
MEDIA_TYPES = {
    "mermaid": "text/plain; charset=utf-8",
    "dot": "text/plain; charset=utf-8",
    "yaml": "application/yaml",
    "json-schema": "application/schema+json",
    "python": "text/plain; charset=utf-8",
}


async def make_all(calls: InProcessClient) -> dict[str, str]:
    """Make a plan, a flow and an execution that has ended; return the address of each."""
    plan = await calls.post_json("/api/plan", {"prompt": "do it"}, 201)
    flow = await calls.post_json("/api/flows", {"name": "Chain", "graph": GRAPH}, 201)
    run = await calls.post_json("/api/execute", {"graph": GRAPH, "start": True}, 202)
    address = f"/api/executions/{run['execution_id']}"
    while (await calls.get_json(address))["status"] != "completed":  # noqa: ASYNC110
        await asyncio.sleep(0)
    return {
        "plan": f"/api/plans/{plan['plan_id']}",
        "flow": f"/api/flows/{flow['plan_id']}",
        "execution": address,
    }


@pytest.mark.parametrize("to", FORMATS)
async def test_every_format_of_everything_that_is_stored(to: ExportFormat) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        for address in (await make_all(calls)).values():
            answer = await calls.get(f"{address}/export", params={"to": to})
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == MEDIA_TYPES[to]
            assert answer.text.strip()


async def test_the_picture_of_an_execution_has_its_statuses() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        addresses = await make_all(calls)
        drawn = {
            kind: (await calls.get(f"{address}/export", params={"to": "mermaid"})).text
            for kind, address in addresses.items()
        }
        assert "  class a,b completed\n" in drawn["execution"]
        assert "class" not in drawn["plan"]
        assert 'title: "Chain"' in drawn["flow"]


@pytest.mark.parametrize("to", ["yaml", "json-schema"])
async def test_a_token_sees_its_flow_and_not_the_types_of_the_service(to: str) -> None:
    async with in_process_client(dependencies(CHAIN), token="secret") as calls:
        calls.headers["Authorization"] = "Bearer secret"
        addresses = await make_all(calls)
        plan_id = addresses["flow"].rpartition("/")[2]
        run = await calls.post_json("/api/execute", {"flow": plan_id, "start": True}, 202)
        body = {"name": "reader", "flows": [plan_id], "scopes": ["read"]}
        token = (await calls.post_json("/api/tokens", body, 201))["token"]
        calls.headers["Authorization"] = f"Bearer {token}"
        for address in (addresses["flow"], f"/api/executions/{run['execution_id']}"):
            answer = await calls.get(f"{address}/export", params={"to": to})
            assert answer.status_code == (200 if to == "yaml" else 403)
        assert (
            await calls.get(f"{addresses['execution']}/export", params={"to": to})
        ).status_code == 404


async def test_yaml_comes_back_as_the_same_graph() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        addresses = await make_all(calls)
        for address in addresses.values():
            text = (await calls.get(f"{address}/export", params={"to": "yaml"})).text
            title, _, rest = text.partition("\n")
            assert title.startswith("title: ")
            assert graph_hash(read_graph(rest)[0]) == graph_hash(CHAIN)
            assert "do it" not in text, "the goal is no part of a graph"


@pytest.mark.parametrize(
    ("query", "status"), [({"to": "png"}, 422), ({}, 422), ({"to": "yaml", "revision": 7}, 404)]
)
async def test_what_is_not_there_is_refused(query: dict[str, Any], status: int) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        flow = (await make_all(calls))["flow"]
        assert (await calls.get(f"{flow}/export", params=query)).status_code == status


async def test_a_graph_that_is_not_stored_is_written_also_with_errors() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        draft = {"nodes": [{"id": "a", "type": "of-others"}], "edges": []}
        body = {"to": "mermaid", "graph": draft, "title": "Draft"}
        answer = await calls.post("/api/export", json=body)
        assert answer.text == '---\ntitle: "Draft"\n---\nflowchart TD\n  a("a")\n'
        unreadable = {"to": "mermaid", "graph": {"nodes": [{"id": "a b"}], "edges": []}}
        refused = await calls.post("/api/export", json=unreadable)
        assert (refused.status_code, refused.json()["code"]) == (422, "graph-invalid")
        unknown = await calls.post("/api/export", json={"to": "png", "graph": draft})
        assert unknown.status_code == 422


async def test_the_schema_needs_no_graph_and_has_the_types_of_the_service() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        answer = await calls.post("/api/export", json={"to": "json-schema"})
        schema = json.loads(answer.text)
        types = (await calls.get_json("/api/node-types"))["node_types"]
        named = [each["const"] for each in schema["$defs"]["node"]["properties"]["type"]["oneOf"]]
        assert named == [each["node_type"] for each in types]
