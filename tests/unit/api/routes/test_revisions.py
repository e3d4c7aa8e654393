from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

EDGE_DATA = {"channel": "flow", "label": "ü", "points": [1, {"x": None}], "sourceType": "text"}
CHAIN, _ = read_graph(
    {
        "nodes": [
            {"id": "a", "type": "text", "data": {"text": "one"}},
            {"id": "b", "type": "text", "data": {"text": "{{ input }}"}},
        ],
        "edges": [{"id": "e1", "source": "a", "target": "b", "type": "x", "data": EDGE_DATA}],
    }
)
TITLE = {"op": "set_title", "title": "New"}
CHANGE = {"op": "update_node", "id": "a", "set": {"data": {"text": "two"}}}


async def planned(calls: InProcessClient) -> dict[str, Any]:
    return await calls.post_json("/api/plan", {"prompt": "do it"}, 201)


async def patch(
    calls: InProcessClient,
    plan: dict[str, Any],
    *operations: Any,
    match: str | None = "",
    **more: Any,
) -> Any:
    """Send operations; by default with the hash of the plan."""
    tag = f'"{plan["hash"]}"' if match == "" else match
    return await calls.patch(
        f"/api/plans/{plan['plan_id']}",
        json={"operations": operations, **more},
        headers={} if tag is None else {"If-Match": tag},
    )


async def test_edit_returns_the_plan_as_get_returns_it() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        url = f"/api/plans/{plan['plan_id']}"
        before = await calls.get(url)
        assert before.headers["etag"] == f'"{plan["hash"]}"'
        answer = await patch(calls, plan, CHANGE, TITLE, author="person", note="why")
        assert answer.status_code == 200
        changed = answer.json()
        assert (changed["revision"], changed["title"], changed["status"]) == (2, "New", "draft")
        assert answer.headers["etag"] == f'"{changed["hash"]}"' != before.headers["etag"]
        assert await calls.get_json(url) == changed
        assert changed["edges"] == plan["edges"]
        assert changed["edges"][0]["data"] == EDGE_DATA


async def test_edge_data_comes_back_unchanged() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        edge = {"id": "e2", "source": "a", "target": "b", "targetHandle": "input",
                "sourceHandle": "output", "type": "y", "data": {**EDGE_DATA, "channel": "link"}}  # fmt: skip
        changed = (await patch(calls, plan, {"op": "add_edge", "edge": edge})).json()
        assert changed["edges"][1] == edge
        url = f"/api/plans/{plan['plan_id']}"
        assert (await calls.get_json(url))["edges"][1] == edge
        assert (await calls.get_json(f"{url}/revisions/2"))["edges"] == changed["edges"]
        moved = await patch(
            calls, changed, {"op": "update_node", "id": "a", "set": {"ui": {"x": 1}}}
        )
        assert moved.json()["edges"] == changed["edges"]


async def test_change_without_the_present_hash_is_refused() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        none = await patch(calls, plan, TITLE, match=None)
        assert (none.status_code, none.json()["code"]) == (428, "precondition-required")
        changed = (await patch(calls, plan, CHANGE)).json()
        stale = await patch(calls, plan, TITLE)
        assert (stale.status_code, stale.json()["code"]) == (412, "plan-changed")
        assert stale.json()["current"] == changed["hash"]
        assert stale.headers["etag"] == f'"{changed["hash"]}"'
        weak = await patch(calls, changed, TITLE, match=f'W/"{changed["hash"]}"')
        assert weak.status_code == 412
        several = f'"{plan["hash"]}", "{changed["hash"]}"'
        titled = (await patch(calls, changed, TITLE, match=several)).json()
        assert (titled["revision"], titled["title"]) == (2, "New"), "a title makes no revision"
        assert (await patch(calls, changed, {**TITLE, "title": "X"}, match="*")).status_code == 200


async def test_operation_of_wrong_form_is_wrong_before_it_is_outdated() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        edge = {"id": 9.4e289, "source": "a", "target": "b", "data": EDGE_DATA}
        refused = await patch(calls, plan, {"op": "add_edge", "edge": edge}, match='"another"')
        assert refused.status_code == 422
        assert "/operations/0/edge/id" in refused.text


async def test_draft_with_errors_is_stored_and_not_executed() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        node = {"id": "c", "type": "nothing"}
        draft = (await patch(calls, plan, {"op": "add_node", "node": node})).json()
        (found,) = [f for f in draft["diagnostics"] if f["severity"] == "error"]
        assert (found["code"], found["pointer"]) == ("unknown-node-type", "/nodes/2/type")
        body = {"plan_id": plan["plan_id"], "start": True}
        problem = await calls.expect_problem("POST", "/api/execute", 422, body)
        assert problem["code"] == "graph-invalid"
        assert [f["code"] for f in problem["issues"] if f["severity"] == "error"] == [found["code"]]
        listed = await calls.get_json(f"/api/plans/{plan['plan_id']}/revisions")
        assert [each["error_count"] for each in listed["revisions"]] == [1, 0]


@pytest.mark.parametrize(
    ("operation", "code", "pointer"),
    [
        ({"op": "remove_node", "id": "nobody"}, "unknown-node", "/operations/1/id"),
        ({"op": "add_node", "node": {"id": "c"}}, "missing-field", "/operations/1/node/type"),
        ({"op": "rename", "id": "a"}, "missing-field", "/operations/1/to"),
        ({"op": "rename", "id": "a", "to": "c", "x": 1}, "unknown-field", "/operations/1/x"),
        ({"op": "add_node", "node": []}, "invalid-field", "/operations/1/node"),
        ({"op": "nothing"}, "invalid-field", "/operations/1"),
        ({}, "invalid-field", "/operations/1"),
    ],
)  # fmt: skip
async def test_invalid_operation_is_named_and_nothing_is_changed(
    operation: Any, code: str, pointer: str
) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        answer = await patch(calls, plan, TITLE, operation)
        assert answer.status_code == 422
        assert [(f["code"], f["pointer"]) for f in answer.json()["issues"]] == [(code, pointer)]
        assert await calls.get_json(f"/api/plans/{plan['plan_id']}") == plan


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"operations": []},
        {"operations": [TITLE], "author": "planner"},
        {"operations": [TITLE], "note": "x" * 1001},
        {"operations": TITLE},
    ],
)
async def test_invalid_edit_is_rejected(body: Any) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        answer = await calls.patch(
            f"/api/plans/{plan['plan_id']}", json=body, headers={"If-Match": "*"}
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-body")


async def test_revisions_are_listed_page_by_page() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        url = f"/api/plans/{plan['plan_id']}/revisions"
        for number in range(4):
            text = {**CHANGE, "set": {"data": {"text": f"{number}"}}}
            await patch(calls, plan, text, match="*", author="person", note=f"n{number}")
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            query = {"cursor": cursor} if cursor else {}
            page = await calls.get_json(url, limit=2, **query)
            assert len(page["revisions"]) <= 2
            found += page["revisions"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert [each["revision"] for each in found] == [5, 4, 3, 2, 1]
        assert [each["note"] for each in found] == ["n3", "n2", "n1", "n0", ""]
        assert {each["author"] for each in found[:4]} == {"person"}
        plans_cursor = (
            "MjAyNi0wMS0wMVQwMDowMDowMCswMDowMCAwMTlhMDAwMC0wMDAwLTcwMDAtODAwMC0wMDAwMDAwMDAwMDE="
        )
        problem = await calls.expect_problem("GET", url, 422, cursor=plans_cursor)
        assert problem["code"] == "invalid-cursor"


async def test_revision_is_read_compared_and_restored() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        url = f"/api/plans/{plan['plan_id']}"
        changed = (await patch(calls, plan, CHANGE)).json()
        first = await calls.get(f"{url}/revisions/1")
        assert first.headers["etag"] == f'"{plan["hash"]}"'
        assert first.json()["nodes"] == plan["nodes"]
        second = await calls.get_json(f"{url}/revisions/2")
        assert (second["hash"], second["nodes"]) == (changed["hash"], changed["nodes"])
        for query in ({"to": 2}, {}):
            diff = await calls.get_json(f"{url}/revisions/1/diff", **query)
            assert diff["nodes"] == [
                {
                    "id": "a",
                    "change": "changed",
                    "fields": [{"pointer": "/data/text", "before": "one", "after": "two"}],
                }
            ]
        restore = f"{url}/revisions/1/restore"
        assert (await calls.post(restore)).status_code == 428
        stale = await calls.post(restore, headers={"If-Match": f'"{plan["hash"]}"'})
        assert (stale.status_code, stale.json()["current"]) == (412, changed["hash"])
        headers = {"If-Match": f'"{changed["hash"]}"', "Idempotency-Key": "once"}
        body = {"author": "person", "note": "back"}
        back = await calls.post(restore, json=body, headers=headers)
        assert (back.status_code, back.json()["revision"]) == (200, 3)
        assert back.json()["hash"] == plan["hash"] == back.headers["etag"].strip('"')
        again = await calls.post(restore, json=body, headers=headers)
        assert (again.status_code, again.json()) == (200, back.json())
        assert again.headers["etag"] == back.headers["etag"]
        assert (await calls.get_json(url))["revision"] == 3


async def forked(calls: InProcessClient, execution_id: str, text: str) -> str:
    """Fork an execution with another text of its first node; return the path of the fork."""
    await calls.service.executions.wait(execution_id)
    body = {"changes": {"a": {"data": {"text": text}}}}
    made = await calls.post_json(f"/api/executions/{execution_id}/fork", body, 202)
    await calls.service.executions.wait(made["execution_id"])
    return f"/api/executions/{made['execution_id']}"


async def test_a_fork_of_a_fork_becomes_a_revision_with_the_hash_that_was_forked() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        started = {"plan_id": plan["plan_id"], "start": True}
        run = await calls.post_json("/api/execute", started, 202)
        same = await calls.post(f"/api/executions/{run['execution_id']}/promote")
        assert (same.status_code, same.json()["revision"]) == (200, 1)
        fork = await forked(calls, run["execution_id"], "two")
        other = await forked(calls, fork.rpartition("/")[2], "three")
        stale = await calls.post(f"{fork}/promote", headers={"If-Match": '"other"'})
        assert (stale.status_code, stale.json()["current"]) == (412, plan["hash"])
        body = {"author": "person"}
        kept = (await calls.post(f"{fork}/promote", json=body)).json()
        assert (kept["revision"], kept["nodes"][0]["data"]) == (2, {"text": "two"})
        assert (kept["title"], kept["edges"]) == (plan["title"], plan["edges"])
        (newest, _) = (await calls.get_json(f"/api/plans/{plan['plan_id']}/revisions"))["revisions"]
        assert newest["author"] == "person"
        assert newest["note"] == f"from execution {fork.rpartition('/')[2]}"
        lost = await calls.post(f"{other}/promote")
        assert (lost.status_code, lost.json()["code"]) == (412, "plan-changed")
        forced = await calls.post(f"{other}/promote", headers={"If-Match": f'"{kept["hash"]}"'})
        assert (forced.json()["revision"], forced.json()["nodes"][0]["data"]) == (
            3,
            {"text": "three"},
        )
        assert (await calls.delete(f"/api/plans/{plan['plan_id']}")).status_code == 204
        assert (await calls.post(f"{other}/promote")).status_code == 404


@pytest.mark.parametrize("path", ["/9", "/0", "/x", "/9/diff"])
async def test_unknown_revision_is_not_found(path: str) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        url = f"/api/plans/{(await planned(calls))['plan_id']}/revisions"
        await calls.expect_problem("GET", f"{url}{path}", 404)
        await calls.expect_problem("GET", f"{url}/1/diff", 404, to=9)


async def test_routes_of_an_unknown_plan_are_not_found() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        nobody = {"plan_id": new_id(), "hash": "0" * 64}
        assert (await patch(calls, nobody, TITLE)).status_code == 404
        for path in ("", "/1", "/1/diff"):
            url = f"/api/plans/{nobody['plan_id']}/revisions{path}"
            await calls.expect_problem("GET", url, 404)


async def test_too_many_operations_are_refused() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan = await planned(calls)
        answer = await patch(calls, plan, *[TITLE] * 501)
        assert (answer.status_code, answer.json()["limit"]) == (413, "plan_operations")


def _node(node_id: str, node_type: str = "text", **data: Any) -> dict[str, Any]:
    return {"id": node_id, "type": node_type, "data": data or {"text": "x"}}


def _edge(channel: str = "flow", **ends: str) -> dict[str, Any]:
    ends = {"source": "facts", "target": "note", **ends}
    return {"id": "e1", **ends, "data": {"channel": channel, "bend": [1]}}


MODEL = _node("facts", "model", provider="openai", model="gpt-4o-mini")
USES = _node("note", "agent", userPrompt="x")
ASK = _node("facts", "approval", prompt="Well?", actions=["send", "drop"])


@pytest.mark.parametrize(
    ("nodes", "edges", "label"),
    [
        ([_node("facts", "txt"), _node("note")], [_edge()], "Use type text"),
        ([_node("facts"), _node("note")], [_edge(source="fact")], "Use facts"),
        ([_node("facts"), _node("note")], [_edge(target="nobody")], "Remove the edge"),
        ([_node("facts"), _node("note")], [_edge(sourceHandle="out")], "Use output output"),
        ([ASK, _node("note")], [_edge("link", sourceHandle="send")], "Make it a flow"),
        ([MODEL, USES], [_edge(targetHandle="model")], "Make it a link"),
        ([ASK, _node("note")], [_edge(sourceHandle="sent")], "Use output send"),
        ([_node("facts", txt="x"), _node("note")], [_edge()], "Rename it to text"),
    ],
)
async def test_suggestion_of_a_diagnostic_corrects_it(
    nodes: list[Any], edges: list[Any], label: str
) -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        replaced = {"op": "replace_graph", "graph": {"nodes": nodes, "edges": edges}}
        draft = (await patch(calls, await planned(calls), replaced)).json()
        suggestions = [each["suggestion"] for each in draft["diagnostics"] if "suggestion" in each]
        assert label in [each["label"] for each in suggestions]
        wanted = next(each for each in suggestions if each["label"] == label)
        corrected = (await patch(calls, draft, *wanted["operations"])).json()
        assert [each for each in corrected["diagnostics"] if each["severity"] == "error"] == []
        assert all(edge["data"]["bend"] == [1] for edge in corrected["edges"])


async def test_nothing_is_suggested_where_ids_are_not_certain() -> None:
    inner = {"nodes": [_node("a", "txt")], "edges": []}
    loop = _node("each", "loop", items=[1], body=inner)
    twice = [_node("a", "txt"), _node("a", "txt")]
    async with in_process_client(dependencies()) as calls:
        for graph in ({"nodes": [loop], "edges": []}, {"nodes": twice, "edges": []}):
            report = await calls.post_json("/api/check", {"graph": graph})
            assert report["diagnostics"]
            assert not any("suggestion" in each for each in report["diagnostics"])
