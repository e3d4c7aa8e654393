from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planwave.errors import StoreError
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.storage.sqlite.store import SqliteStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")]).to_document()
OTHER = make_graph(text_node("a", "other")).to_document()
HELD = {"nodes": [{"id": "h", "type": "held"}], "edges": []}
STARTS: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "echo", "type": "text", "data": {"text": "heard {{ input }}"}},
    ],
    "edges": [{"source": "s", "target": "echo", "data": {"channel": "flow"}}],
}
FAULTY: dict[str, Any] = {
    "nodes": [{"id": "a", "type": "txt"}, {"id": "b", "type": "text", "data": {"text": "x"}}],
    "edges": [{"source": "b", "target": "nobody", "data": {"channel": "flow"}}],
}
NOBODY = "019a0000-0000-7000-8000-00000000000f"
RENAME = {"op": "rename", "id": "echo", "to": "hearing"}
RETITLE = {"op": "set_title", "title": "Heard"}


async def saved(calls: InProcessClient, name: str = "Flow", graph: Any = CHAIN, **more: Any) -> Any:
    created = await calls.post_json("/api/flows", {"name": name, "graph": graph, **more}, 201)
    return created


async def put(calls: InProcessClient, plan_id: str, body: Any, if_match: str | None = None) -> Any:
    headers = {} if if_match is None else {"If-Match": if_match}
    return await calls.put(f"/api/flows/{plan_id}", json=body, headers=headers)


async def test_created_flow_is_found_at_its_location() -> None:
    async with in_process_client(dependencies()) as calls:
        answer = await calls.post("/api/flows", json={"name": "F", "graph": CHAIN})
        created = answer.json()
        assert (answer.status_code, created["name"], created["graph"]) == (201, "F", CHAIN)
        assert answer.headers["etag"] == f'"{created["hash"]}"'
        found = await calls.get(answer.headers["location"])
        assert (found.json(), found.headers["etag"]) == (created, answer.headers["etag"])


KEPT_PLACE: dict[str, Any] = {
    "nodes": [
        {"id": "a", "type": "text", "name": "A", "data": {"text": "one"}},
        {
            "id": "send",
            "type": "placeholder",
            "name": "Send",
            "data": {"kind": "slack", "parameters": {"text": "={{ $json.x }}", "n": [1, None]}},
            "ui": {"position": {"x": 3, "y": 4}},
        },
    ],
    "edges": [
        {
            "id": "e",
            "source": "send",
            "sourceHandle": "main-1",
            "target": "a",
            "targetHandle": "input",
            "data": {"channel": "flow"},
        }
    ],
}


async def test_a_graph_with_errors_is_saved_as_a_draft_where_that_is_asked_for() -> None:
    async with in_process_client(dependencies()) as calls:
        created = await saved(calls, graph=KEPT_PLACE, draft=True)
        path, plan = f"/api/flows/{created['plan_id']}", f"/api/plans/{created['plan_id']}"
        assert (created["revision"], created["live_revision"]) == (1, None)
        assert created["draft"]["error_count"] == 1
        assert (await calls.get_json(path))["graph"] == created["graph"] == KEPT_PLACE
        document = await calls.get_json(plan)
        assert [each["code"] for each in document["diagnostics"]] == ["placeholder"]
        assert document["forecast"] == {}
        assert [
            each["draft"] is None for each in (await calls.get_json("/api/flows"))["flows"]
        ] == [False]
        for body in ({"flow": created["plan_id"]}, {"plan_id": created["plan_id"]}):
            body = {**body, "start": True, "options": {"run_to": ["a"]}}
            problem = await calls.expect_problem("POST", "/api/execute", 422, body)
            assert problem["code"] in ("draft-revision", "graph-invalid")
        replaced = {"type": "text", "data": {"kind": None, "parameters": None, "text": "now"}}
        operation = {"op": "update_node", "id": "send", "set": replaced}
        headers = {"If-Match": f'"{created["hash"]}"'}
        answer = await calls.patch(plan, json={"operations": [operation]}, headers=headers)
        assert answer.json()["diagnostics"][0]["code"] == "unknown-handle"
        operations = [
            {"op": "remove_edge", "id": "e"},
            {"op": "add_edge", "edge": {"source": "send", "target": "a"}},
        ]
        answer = await calls.patch(path, json={"operations": operations}, headers={"If-Match": "*"})
        assert (answer.json()["live_revision"], answer.json()["draft"]) == (3, None)
        run = await calls.post_json("/api/execute", {"flow": "Flow", "start": True}, 202)
        await calls.service.executions.wait(run["execution_id"])
        assert (await calls.get(f"/api/executions/{run['execution_id']}/result")).status_code == 200


async def test_a_graph_with_errors_becomes_the_draft_of_a_flow_where_that_is_asked_for() -> None:
    async with in_process_client(dependencies()) as calls:
        created = await saved(calls)
        for graph in (KEPT_PLACE, FAULTY):
            answer = await put(calls, created["plan_id"], {"graph": graph})
            assert answer.status_code == 422
        answer = await put(calls, created["plan_id"], {"graph": KEPT_PLACE, "draft": True})
        assert (answer.status_code, answer.json()["live_revision"]) == (200, 1)
        assert answer.json()["draft"]["revision"] == 2


async def test_a_draft_that_cannot_be_read_is_not_saved() -> None:
    twice = {"nodes": [KEPT_PLACE["nodes"][0]] * 2, "edges": []}
    async with in_process_client(dependencies()) as calls:
        body = {"name": "F", "graph": twice, "draft": True}
        problem = await calls.expect_problem("POST", "/api/flows", 422, body)
        assert "duplicate-id" in str(problem)
        assert (await calls.get_json("/api/flows"))["flows"] == []


async def test_the_draft_of_a_plan_gets_a_name_where_that_is_asked_for() -> None:
    async with in_process_client(dependencies()) as calls:
        created = await saved(calls)
        plan_id = created["plan_id"]
        assert (await calls.delete(f"/api/flows/{plan_id}/name")).status_code == 204
        operation = {"op": "replace_graph", "graph": KEPT_PLACE}
        await calls.patch(
            f"/api/plans/{plan_id}", json={"operations": [operation]}, headers={"If-Match": "*"}
        )
        body = {"name": "Named", "plan_id": plan_id}
        await calls.expect_problem("POST", "/api/flows", 422, body)
        named = await calls.post_json("/api/flows", {**body, "draft": True}, 201)
        assert (named["name"], named["draft"]["revision"]) == ("Named", 2)


async def test_invalid_graph_is_rejected_with_pointers() -> None:
    async with in_process_client(dependencies()) as calls:
        created = await saved(calls)
        for method, path in (("POST", "/api/flows"), ("PUT", f"/api/flows/{created['plan_id']}")):
            problem = await calls.expect_problem(method, path, 422, {"name": "F", "graph": FAULTY})
            assert problem["code"] == "graph-invalid"
            assert [(each["code"], each["pointer"]) for each in problem["issues"]] == [
                ("unknown-node-type", "/graph/nodes/0/type"),
                ("dangling-edge", "/graph/edges/0/target"),
            ]
        assert (await calls.get_json("/api/flows"))["flows"] == [
            {
                **{k: v for k, v in created.items() if k not in ("graph", "hash", "inputs")},
                "node_count": 2,
                "updated_by": {"kind": "local"},
            }
        ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "F"},
        {"graph": CHAIN},
        {"name": "F", "graph": CHAIN, "plan_id": NOBODY},
        {"name": "", "graph": CHAIN},
        {"name": "x" * 201, "graph": CHAIN},
        {"name": 5, "graph": CHAIN},
        {"name": "F", "graph": []},
        {"name": "F", "graph": CHAIN, "description": 1},
        {"name": "F", "graph": CHAIN, "id": "mine"},
    ],
)
async def test_invalid_flow_is_rejected(body: Any) -> None:
    async with in_process_client(dependencies()) as calls:
        problem = await calls.expect_problem("POST", "/api/flows", 422, body)
        assert problem["code"] == "invalid-body"
        assert problem["issues"]


@pytest.mark.parametrize(
    "body", [{}, {"graph": CHAIN, "from_plan_id": NOBODY}, {"name": ""}, {"version": "x"}]
)
async def test_invalid_update_is_rejected(body: Any) -> None:
    async with in_process_client(dependencies()) as calls:
        created = await saved(calls)
        problem = await calls.expect_problem("PUT", f"/api/flows/{created['plan_id']}", 422, body)
        assert problem["code"] == "invalid-body"


async def test_flows_are_listed_newest_first_and_filtered_by_text() -> None:
    async with in_process_client(dependencies()) as calls:
        created = [await saved(calls, name) for name in ("One", "Two", "Three")]
        page = await calls.get_json("/api/flows", limit=2)
        assert [each["name"] for each in page["flows"]] == ["Three", "Two"]
        await calls.delete(f"/api/flows/{created[1]['plan_id']}")
        last = await calls.get_json("/api/flows", limit=2, cursor=page["next_cursor"])
        assert ([each["name"] for each in last["flows"]], last["next_cursor"]) == (["One"], None)
        for query in ({"q": "THR"}, {"name": "THREE"}, {"name": "three", "q": "hre"}):
            found = await calls.get_json("/api/flows", **query)
            assert [each["plan_id"] for each in found["flows"]] == [created[2]["plan_id"]]
        for query in ({"name": "Thre"}, {"name": ""}, {"name": "Three", "q": "one"}):
            assert (await calls.get_json("/api/flows", **query))["flows"] == []


async def test_flow_is_read_in_the_live_or_another_revision() -> None:
    async with in_process_client(dependencies()) as calls:
        first = await saved(calls)
        path = f"/api/flows/{first['plan_id']}"
        second = (await put(calls, first["plan_id"], {"graph": OTHER})).json()
        assert (second["revision"], second["graph"]) == (2, OTHER)
        assert await calls.get_json(path) == second
        earlier = await calls.get_json(path, revision=1)
        assert earlier == {**first, "live_revision": 2}
        listed = await calls.get_json(f"/api/plans/{first['plan_id']}/revisions")
        assert [
            (each["hash"], each["revision"], each["node_count"]) for each in listed["revisions"]
        ] == [(second["hash"], 2, 1), (first["hash"], 1, 2)]
        await calls.expect_problem("GET", path, 404, revision=3)
        assert (await calls.expect_problem("GET", path, 422, revision="first"))["issues"]


async def test_a_draft_over_a_flow_is_stored_and_not_live() -> None:
    async with in_process_client(dependencies()) as calls:
        flow = await saved(calls)
        path = f"/api/plans/{flow['plan_id']}"
        broken = {"op": "add_node", "node": {"id": "x", "type": "txt"}}
        etag = {"If-Match": f'"{flow["hash"]}"'}
        answer = await calls.patch(path, json={"operations": [broken]}, headers=etag)
        plan = answer.json()
        assert (answer.status_code, plan["revision"], plan["live_revision"]) == (200, 2, 1)
        (draft, _) = (await calls.get_json(f"{path}/revisions"))["revisions"]
        shown = await calls.get_json(f"/api/flows/{flow['plan_id']}")
        assert shown == {**flow, "draft": draft}
        summary = (await calls.get_json("/api/flows"))["flows"][0]
        about = (summary["revision"], summary["node_count"], summary["updated_at"])
        assert about == (1, 2, flow["updated_at"])
        assert (summary["draft"], draft["node_count"]) == (draft, 3)
        late = await calls.patch(
            f"/api/flows/{flow['plan_id']}", json={"operations": [RETITLE]}, headers=etag
        )
        assert (late.status_code, late.json()["current"]) == (412, plan["hash"])
        own = (await calls.post_json("/api/execute", {"flow": "FLOW"}, 201))["execution_id"]
        execution = await calls.get_json(f"/api/executions/{own}")
        assert (execution["revision"], execution["flow"]) == (1, "Flow")


async def test_name_is_taken_away_and_the_plan_stays() -> None:
    async with in_process_client(dependencies()) as calls:
        flow = await saved(calls)
        path = f"/api/flows/{flow['plan_id']}"
        assert (await calls.put(f"{path}/publication", json={"tool": True})).status_code == 200
        for method, at in (
            ("DELETE", path),
            ("DELETE", f"{path}/name"),
            ("DELETE", f"/api/plans/{flow['plan_id']}"),
        ):
            problem = await calls.expect_problem(method, at, 409)
            assert (problem["code"], "as a tool" in problem["detail"]) == ("flow-in-use", True)
        refused = await calls.put(path, json={"name": "Other"})
        assert (refused.status_code, refused.json()["code"]) == (409, "flow-in-use")
        assert (await calls.delete(f"{path}/name?force=true")).status_code == 204
        await calls.expect_problem("GET", path, 404)
        plan = await calls.get_json(f"/api/plans/{flow['plan_id']}")
        assert (plan["name"], plan["published"], plan["live_revision"]) == (None, [], 1)
        named = {"plan_id": flow["plan_id"], "name": "Again"}
        again = await calls.post_json("/api/flows", named, 201)
        assert (again["plan_id"], again["name"]) == (flow["plan_id"], "Again")


async def test_update_with_stale_etag_is_rejected() -> None:
    async with in_process_client(dependencies()) as calls:
        first = await saved(calls)
        own, etag = first["plan_id"], f'"{first["hash"]}"'
        answer = await put(calls, own, {"graph": OTHER}, etag)
        second = answer.json()
        assert answer.status_code == 200
        assert answer.headers["etag"] == f'"{second["hash"]}"' != etag
        late = await put(calls, own, {"name": "late"}, etag)
        assert (late.status_code, late.json()["code"]) == (412, "plan-changed")
        assert second["hash"] in late.json()["detail"]
        for unlike in (f"W/{answer.headers['etag']}", '""', "nonsense", ","):
            refused = await put(calls, own, {"name": "late"}, unlike)
            assert refused.status_code == 412, unlike
        for like in (f'{etag}, "{second["hash"]}"', second["hash"], "*"):
            changed = await put(calls, own, {"name": like}, like)
            assert (changed.status_code, changed.json()["name"]) == (200, like)


async def test_flow_is_edited_by_the_operations_of_plans() -> None:
    async with in_process_client(dependencies()) as calls:
        first = await saved(calls, graph=STARTS)
        path, body = f"/api/flows/{first['plan_id']}", {"operations": [RENAME, RETITLE]}
        unnamed = await calls.patch(path, json=body)
        assert (unnamed.status_code, unnamed.json()["code"]) == (428, "precondition-required")
        etag = {"If-Match": f'"{first["hash"]}"'}
        answer = await calls.patch(path, json=body, headers=etag)
        second = answer.json()
        assert second["diagnostics"] == []
        assert (second["name"], second["title"], second["revision"]) == ("Flow", "Heard", 2)
        assert [node["id"] for node in second["graph"]["nodes"]] == ["s", "hearing"]
        assert second["graph"]["edges"][0]["target"] == "hearing"
        assert answer.headers["etag"] == f'"{second["hash"]}"'
        late = await calls.patch(path, json=body, headers=etag)
        assert (late.status_code, late.json()["current"]) == (412, second["hash"])
        wrong = {"operations": [{"op": "add_node", "node": {"id": 1, "type": "text"}}]}
        refused = await calls.patch(path, json=wrong, headers=etag)
        assert (refused.status_code, "/operations/0/node/id" in refused.text) == (422, True)


async def test_edit_of_a_flow_warns_of_names_that_it_could_not_follow() -> None:
    """As a plan's edit does: one answer for the same operations on the same graph."""
    computed = {"id": "c", "type": "text", "data": {"text": "{{ nodes['ec' ~ goal].output }}"}}
    graph = {**STARTS, "nodes": [*STARTS["nodes"], computed]}
    async with in_process_client(dependencies(read_graph(graph)[0])) as calls:
        flow = await saved(calls, graph=graph)
        plan = await calls.post_json("/api/plan", {"prompt": "do it"}, 201)
        body, anyway = {"operations": [RENAME]}, {"If-Match": "*"}
        found = []
        for path in (f"/api/plans/{plan['plan_id']}", f"/api/flows/{flow['plan_id']}"):
            answer = await calls.patch(path, json=body, headers=anyway)
            assert answer.status_code == 200, answer.text
            found.append(answer.json()["diagnostics"])
        assert [(each["code"], each["pointer"]) for each in found[1]] == [
            ("renamed-node", "/nodes/2/data/text")
        ]
        assert found[0] == found[1]


async def test_edit_that_leaves_a_flow_with_errors_is_refused() -> None:
    async with in_process_client(dependencies()) as calls:
        flow = await saved(calls, graph=STARTS)
        path, anyway = f"/api/flows/{flow['plan_id']}", {"If-Match": "*"}
        for operation, code in (
            ({"op": "add_node", "node": {"id": "x", "type": "txt"}}, "unknown-node-type"),
            ({"op": "rename", "id": "nobody", "to": "x"}, "unknown-node"),
        ):
            body = {"operations": [RETITLE, operation]}
            refused = await calls.patch(path, json=body, headers=anyway)
            assert (refused.status_code, code in refused.text) == (422, True)
        assert await calls.get_json(path) == flow


async def test_unknown_flow_is_not_found() -> None:
    async with in_process_client(dependencies()) as calls:
        path = f"/api/flows/{NOBODY}"
        for method, at, body in (
            ("GET", path, None),
            ("GET", "/api/flows/nonsense", None),
            ("PUT", path, {"name": "x"}),
            ("DELETE", path, None),
            ("POST", "/api/execute", {"flow": NOBODY}),
            ("POST", "/api/execute", {"flow": "nonsense" * 20}),
            ("POST", "/api/execute", {"plan_id": "nonsense" * 1_000}),
        ):
            problem = await calls.expect_problem(method, at, 404, body)
            assert len(problem["detail"]) < 300


async def test_flow_is_executed_and_execution_names_its_revision() -> None:
    async with in_process_client(dependencies()) as calls:
        flow = await saved(calls, graph=STARTS, description="why")
        await put(calls, flow["plan_id"], {"graph": OTHER})
        body = {"flow": "flow", "revision": 1, "start": True}
        created = await calls.post_json("/api/execute", {**body, "inputs": {"output": "hi"}}, 202)
        assert (created["plan_id"], created["revision"]) == (flow["plan_id"], 1)
        assert created["flow"] == "Flow"
        own = created["execution_id"]
        await calls.service.executions.wait(own)
        state = await calls.get_json(f"/api/executions/{own}")
        assert (state["plan_id"], state["revision"]) == (flow["plan_id"], 1)
        assert (state["plan_hash"], state["flow"]) == (flow["hash"], "Flow")
        assert (state["title"], state["user_prompt"]) == ("Flow", "why")
        document = await calls.get_json(f"/api/executions/{own}/document")
        assert (document["flow"], document["node_results"]["echo"]) == ("Flow", "heard hi")
        other = await calls.post_json("/api/execute", {"graph": OTHER}, 201)
        listed = await calls.get_json("/api/executions", plan_id=flow["plan_id"])
        assert [(x["execution_id"], x["revision"]) for x in listed["executions"]] == [(own, 1)]
        every = await calls.get_json("/api/executions")
        assert {x["execution_id"]: x["flow"] for x in every["executions"]} == {
            own: "Flow",
            other["execution_id"]: None,
        }


@pytest.mark.parametrize(
    "body",
    [
        {"plan_id": NOBODY, "flow": NOBODY},
        {"flow": NOBODY, "graph": CHAIN},
        {"revision": 1},
        {"graph": CHAIN, "revision": 1},
        {"flow": "Flow", "revision": "1"},
        {"flow": "Flow", "revision": 0},
        {"flow": 5},
    ],
)
async def test_execution_takes_exactly_one_of_plan_flow_and_graph(body: Any) -> None:
    async with in_process_client(dependencies()) as calls:
        assert (await calls.expect_problem("POST", "/api/execute", 422, body))[
            "code"
        ] == "invalid-body"


@pytest.mark.parametrize("source", ["flow", "plan_id"])
async def test_a_revision_is_executed_and_an_unknown_one_is_not(source: str) -> None:
    async with in_process_client(dependencies()) as calls:
        flow = await saved(calls)
        await put(calls, flow["plan_id"], {"graph": OTHER})
        body = {source: flow["plan_id"], "revision": 1}
        created = await calls.post_json("/api/execute", body, 201)
        assert (created["revision"], created["flow"]) == (1, "Flow" if source == "flow" else None)
        state = await calls.get_json(f"/api/executions/{created['execution_id']}")
        assert state["plan_hash"] == flow["hash"]
        for unknown in (3, 2**40):
            answer = await calls.post("/api/execute", json={**body, "revision": unknown})
            assert answer.status_code == 404, answer.text


async def test_flow_in_use_is_not_deleted() -> None:
    held = HeldNode()
    async with in_process_client(dependencies(types=[held])) as calls:
        flow = await saved(calls, graph=HELD)
        path = f"/api/flows/{flow['plan_id']}"
        body = {"flow": flow["plan_id"], "start": True}
        own = (await calls.post_json("/api/execute", body, 202))["execution_id"]
        assert (await calls.expect_problem("DELETE", path, 409))["code"] == "plan-in-use"
        held.release.set()
        await calls.service.executions.wait(own)
        assert (await calls.delete(path)).status_code == 204
        await calls.expect_problem("GET", path, 404)
        assert (await calls.get_json(f"/api/executions/{own}"))["plan_id"] == flow["plan_id"]


async def test_flow_created_before_crash_is_not_created_twice(tmp_path: Path) -> None:
    class Crashing(SqliteStore):
        async def store_response(self, key: str, status: int, body: str) -> None:
            raise StoreError("the process dies here")

    key, body = {"Idempotency-Key": new_id()}, {"name": "F", "graph": CHAIN}
    async with in_process_client(dependencies(store=Crashing.open(tmp_path))) as calls:
        first = (await calls.post("/api/flows", json=body, headers=key)).json()
    async with in_process_client(dependencies(store=SqliteStore.open(tmp_path))) as calls:
        again = await calls.post("/api/flows", json=body, headers=key)
        assert (again.status_code, again.json()) == (201, first)
        assert [each["plan_id"] for each in (await calls.get_json("/api/flows"))["flows"]] == [
            first["plan_id"]
        ]


TRIP: dict[str, Any] = {
    "nodes": [
        {
            "id": "s",
            "type": "start",
            "data": {"schema": {"type": "object", "properties": {"city": {"type": "string"}}}},
        },
        {"id": "t", "type": "text", "data": {"text": "{{ city }}"}},
    ],
    "edges": [{"source": "s", "target": "t", "data": {"channel": "flow"}}],
}


async def test_a_flow_is_checked_with_the_description_that_is_stored() -> None:
    """It is the goal of its executions, so it names inputs of the graph and nothing else."""
    async with in_process_client(dependencies()) as calls:

        async def refused(method: str, path: str, body: dict[str, Any]) -> None:
            problem = await calls.expect_problem(method, path, 422, body)
            assert [each["pointer"] for each in problem["issues"]] == ["/description"]
            assert "toun" in problem["issues"][0]["message"]

        wrong, right = "A trip to {{ toun }}", "A trip to {{ city }}"
        await refused("POST", "/api/flows", {"name": "F", "graph": TRIP, "description": wrong})
        flow = await saved(calls, graph=TRIP, description=right)
        own = f"/api/flows/{flow['plan_id']}"
        await refused("PUT", own, {"description": wrong})
        assert (await calls.get(own)).json()["description"] == right
        toun = {"properties": {"toun": {"type": "string"}}}
        other = {**TRIP, "nodes": [{**TRIP["nodes"][0], "data": {"schema": toun}}]}
        other["edges"] = []
        problem = await calls.expect_problem("PUT", own, 422, {"graph": other})
        assert [each["pointer"] for each in problem["issues"]] == ["/description"]
        both = await put(calls, flow["plan_id"], {"graph": other, "description": wrong})
        assert (both.status_code, both.json()["description"]) == (200, wrong)
        await saved(calls, "Draft", TRIP, description=wrong, draft=True)
        plan = await calls.post_json("/api/flows", {"name": "P", "graph": TRIP}, 201)
        await calls.delete(f"/api/flows/{plan['plan_id']}/name")
        naming = {"name": "Q", "plan_id": plan["plan_id"], "description": wrong}
        await refused("POST", "/api/flows", naming)
        copied = await calls.post_json("/api/flows", {**naming, "plan_id": flow["plan_id"]}, 201)
        assert copied["description"] == wrong, "its live revision has that input"
