"""Edges without a channel: a graph document has to name it, an operation that adds an edge need not."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

NODES: Final = [
    {"id": "a", "type": "text", "data": {"text": "one"}},
    {"id": "b", "type": "text", "data": {"text": "{{ input }}"}},
]
BARE: Final = {"source": "a", "target": "b"}
HINT: Final = 'write "data": {"channel": "flow"}'
SOUND, _ = read_graph({"nodes": NODES, "edges": [{**BARE, "data": {"channel": "flow"}}]})
WITHOUT_CHANNEL: Final = (
    {},
    {"data": None},
    {"data": {}},
    {"data": {"channel": None}},
    {"data": {"label": "x"}},
)
REPLACED: Final = "replace_graph"


def _body(method: str, path: str, graph: dict[str, Any]) -> dict[str, Any]:
    if method == "PATCH":
        return {"operations": [{"op": REPLACED, "graph": graph}]}
    return {"graph": graph, **({"name": "F"} if (method, path) == ("POST", "/api/flows") else {})}


def _takes_graphs(schema: Any, schemas: dict[str, Any], names: frozenset[str]) -> bool:
    """Return whether a schema of a request holds a graph document, by its references."""
    if isinstance(schema, list):
        return any(_takes_graphs(each, schemas, names) for each in schema)
    if not isinstance(schema, dict):
        return False
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name == "GraphDocument":
        return True
    inner = schemas.get(name) if name and name not in names else None
    values = [value for key, value in schema.items() if key not in ("examples", "example")]
    return _takes_graphs([inner, *values], schemas, names | {name})


async def _doors(calls: InProcessClient) -> list[tuple[str, str]]:
    """Return the routes whose requests hold a graph document, read from OpenAPI."""
    openapi = await calls.get_json("/openapi.json")
    schemas = openapi["components"]["schemas"]
    return [
        (method.upper(), path)
        for path, operations in openapi["paths"].items()
        for method, operation in operations.items()
        if _takes_graphs(operation.get("requestBody"), schemas, frozenset())
    ]


@pytest.mark.parametrize("edge", WITHOUT_CHANNEL, ids=str)
async def test_every_route_that_takes_a_graph_asks_for_the_channel_of_its_edges(
    edge: dict[str, Any],
) -> None:
    async with in_process_client(dependencies(SOUND)) as calls:
        plan = await calls.post_json("/api/plan", {"prompt": "do it"}, 201)
        flow = await calls.post_json("/api/flows", {"name": "G", "graph": SOUND.document}, 201)
        run = await calls.post_json("/api/execute", {"graph": SOUND.document}, 201)
        doors = [*await _doors(calls), ("POST", "/api/check")]
        assert ("PUT", "/api/flows/{plan_id}") in doors
        assert ("POST", "/api/execute") in doors
        graph = {"nodes": NODES, "edges": [{**BARE, **edge}]}
        for method, path in doors:
            own = (flow if path.startswith("/api/flows") else plan)["plan_id"]
            answer = await calls.request(
                method,
                path.replace("{plan_id}", own).replace("{execution_id}", run["execution_id"]),
                json=_body(method, path, graph),
                headers={"If-Match": "*", "Idempotency-Key": new_id()},
            )
            assert HINT in json.dumps(answer.json()).replace("\\", ""), (method, path, answer.text)


@pytest.mark.parametrize("edge", WITHOUT_CHANNEL, ids=str)
@pytest.mark.parametrize("kind", ["plan", "flow"])
async def test_an_operation_adds_a_flow_edge_where_it_names_no_channel(
    kind: str, edge: dict[str, Any]
) -> None:
    async with in_process_client(dependencies(SOUND)) as calls:
        if kind == "plan":
            item = await calls.post_json("/api/plan", {"prompt": "do it"}, 201)
        else:
            body = {"name": "F", "graph": SOUND.document}
            item = await calls.post_json("/api/flows", body, 201)
        node = {"id": "c", "type": "text", "data": {"text": "{{ input }}"}}
        added = {"source": "b", "target": "c", **edge}
        operations = [{"op": "add_node", "node": node}, {"op": "add_edge", "edge": added}]
        answer = await calls.patch(
            f"/api/{kind}s/{item['plan_id']}",
            json={"operations": operations},
            headers={"If-Match": "*"},
        )
        assert answer.status_code == 200, answer.text
        changed = answer.json()
        assert not changed["diagnostics"]
        edges = changed["edges"] if kind == "plan" else changed["graph"]["edges"]
        label = (edge.get("data") or {}).get("label")
        expected = {"channel": "flow"} | ({} if label is None else {"label": label})
        assert edges[-1]["data"] == expected
