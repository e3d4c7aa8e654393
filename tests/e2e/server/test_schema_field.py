"""``$schema`` and YAML over HTTP: the first is allowed at the top of a graph, the second is not read."""

from __future__ import annotations

import httpx2

from tests.support.server.running_server import running_server

SCHEMA = "https://example.com/planwave.schema.json"
GRAPH = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}
YAML = "nodes:\n- {id: a, type: text, data: {text: x}}\nedges: []\n"


def test_schema_is_read_over_http_and_stored_nowhere() -> None:
    """Bodies are JSON alone; in each place of a graph ``$schema`` is allowed at its top, and gone afterwards."""
    graph = {"$schema": SCHEMA, **GRAPH}
    with (
        running_server() as running,
        httpx2.Client(base_url=running.base_url, trust_env=False) as client,
    ):
        checked = client.post("/api/check", json={"graph": graph}).json()
        assert checked["diagnostics"] == []
        assert set(checked["graph"]) == {"nodes", "edges"}
        made = client.post("/api/flows", json={"name": "one", "graph": graph})
        assert made.status_code == 201, made.text
        plan = client.get(f"/api/plans/{made.json()['plan_id']}").json()
        assert "$schema" not in plan
        operation = {"op": "replace_graph", "graph": graph}
        changed = client.patch(
            f"/api/plans/{plan['plan_id']}",
            json={"operations": [operation]},
            headers={"if-match": f'"{plan["hash"]}"'},
        )
        assert changed.status_code == 200, changed.text
        assert changed.json()["hash"] == plan["hash"]
        started = client.post("/api/execute", json={"graph": graph, "start": True})
        assert started.status_code == 202, started.text
        inner = {"id": "i", "type": "inner", "data": {"graph": graph}}
        nested = client.post("/api/check", json={"graph": {"nodes": [inner], "edges": []}}).json()
        (found,) = nested["diagnostics"]
        assert (found["code"], found["pointer"]) == ("unknown-field", "/nodes/0/data/graph/$schema")
        refused = client.post(
            "/api/check", content=YAML, headers={"content-type": "application/yaml"}
        )
        assert refused.status_code == 415
        as_json = client.post(
            "/api/check", content=YAML, headers={"content-type": "application/json"}
        )
        assert (as_json.status_code, as_json.json()["code"]) == (400, "invalid-json")
