"""Routes that tell executions what to do: pause, resume, cancel, answer."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from planwave.executor.options import RunOptions
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ExecutionResult, FlowContext, Suspension
from planwave.settings import Limits
from tests.support.graph.builders import make_edge, make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies


def asking(**data: Any) -> Graph:
    """A text that a person decides about, and a way to go on for each decision."""
    asks = Node("q", "approval", "Check", data={"prompt": "Send it?", **data})
    return make_graph(
        text_node("draft", "Dear all"), asks, text_node("sent", "sent: {{ input }}"),
        text_node("dropped", "dropped"),
        edges=[
            ("draft", "q"),
            make_edge("q", "sent", source_handle="approve"),
            make_edge("q", "dropped", source_handle="reject"),
        ],
    )  # fmt: skip


class AsksFreely:
    node_type = "asks"

    async def execute(self, data: Any, inputs: Inputs, context: FlowContext) -> Suspension:
        return Suspension("What is it?")

    async def resume(self, data: Any, inputs: Any, context: Any, state: Any, answer: Any) -> Any:
        return ExecutionResult({"output": DataValue("json", answer)})


async def start_paused(calls: InProcessClient) -> str:
    """Run the plan until it rests; give the path of its execution."""
    created = await calls.post_json("/api/run", {"prompt": "x"}, 202)
    await calls.service.executions.wait(created["execution_id"])
    return f"/api/executions/{created['execution_id']}"


async def outcome(calls: InProcessClient, path: str) -> dict[str, str]:
    await calls.service.executions.wait(path.rpartition("/")[2])
    return (await calls.get_json(f"{path}/result"))["node_results"]


async def the_request(calls: InProcessClient, path: str) -> dict[str, Any]:
    (found,) = (await calls.get_json(f"{path}/requests"))["requests"]
    return found


async def test_open_request_is_shown_and_answer_resumes_execution() -> None:
    async with in_process_client(dependencies(asking())) as calls:
        path = await start_paused(calls)
        shown = await calls.get_json(path)
        assert (shown["status"], shown["currentNodeId"]) == ("paused", "q")
        request = await the_request(calls, path)
        assert shown["requests"] == [request]
        assert (request["path"], request["request"]["prompt"]) == ("q", "Send it?")
        assert request["request"]["value"] == "Dear all"
        answer = {"decision": "approve", "note": "fine", "value": "Dear you"}
        await calls.post_json(f"{path}/requests/{request['request_id']}", answer)
        assert (await outcome(calls, path))["sent"] == "sent: Dear you"
        shown = await calls.get_json(path)
        assert (shown["waitingForInput"], shown["requests"]) == (False, [])
        again = await calls.expect_problem(
            "POST", f"{path}/requests/{request['request_id']}", 409, answer
        )
        assert again["code"] == "request-answered"


async def test_second_answer_is_rejected() -> None:
    graph = make_graph(Node("p", "asks", "P"), Node("q", "asks", "Q"))
    async with in_process_client(dependencies(graph, types=[AsksFreely()])) as calls:
        path = await start_paused(calls)
        first, second = (await calls.get_json(f"{path}/requests"))["requests"]
        for answer in (
            [1, None],
            None,
        ):  # anything but an object is one too, where nothing is asked
            of = first if answer else second
            if answer:
                await calls.post_json(f"{path}/requests/{of['request_id']}", answer)
                problem = await calls.expect_problem(
                    "POST", f"{path}/requests/{of['request_id']}", 409, 2
                )
                assert problem["code"] == "request-answered"
            else:
                raw = await calls.post(
                    f"{path}/requests/{of['request_id']}", content=b"null",
                    headers={"content-type": "application/json"},
                )  # fmt: skip
                assert raw.status_code == 200
        assert await outcome(calls, path) == {"p": "[1,null]", "q": ""}


@pytest.mark.parametrize(
    ("answer", "code", "pointer"),
    [
        ({"decision": "aprove"}, "unknown-decision", "/decision"),
        ({"note": "?"}, "unknown-decision", "/decision"),
        ({"decision": "approve", "form": {"n": "many"}}, "invalid-form", "/form/n"),
        ({"decision": "approve", "form": {"n": 1}, "value": 2}, "value-not-editable", "/value"),
        ({"decision": "approve", "form": {"n": 1}, "more": 2}, "invalid-answer", "/more"),
        ("approve", "invalid-answer", ""),
    ],
)
async def test_invalid_answer_is_rejected_and_request_stays_open(
    answer: Any, code: str, pointer: str
) -> None:
    form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with in_process_client(dependencies(asking(form=form, editable=False))) as calls:
        path = await start_paused(calls)
        request = await the_request(calls, path)
        at = f"{path}/requests/{request['request_id']}"
        problem = await calls.expect_problem("POST", at, 422, answer)
        assert problem["code"] == code
        assert (code, pointer) in [(each["code"], each["pointer"]) for each in problem["issues"]]
        await calls.post_json(at, {"decision": "approve", "form": {"n": 3}})
        assert (await outcome(calls, path))["sent"] == "sent: Dear all"


async def test_answer_after_node_was_cancelled_is_gone() -> None:
    graph = make_graph(Node("p", "asks", "P"), Node("q", "asks", "Q"))
    async with in_process_client(dependencies(graph, types=[AsksFreely()])) as calls:
        path = await start_paused(calls)
        first, second = (await calls.get_json(f"{path}/requests"))["requests"]
        created = await calls.post_json(f"{path}/cancel", {"node": "p", "cause": "not needed"})
        assert created["status"] == "paused"
        problem = await calls.expect_problem(
            "POST", f"{path}/requests/{first['request_id']}", 410, 1
        )
        assert problem["code"] == "request-closed"
        assert (await calls.expect_problem("POST", f"{path}/cancel", 409, {"node": "p"}))["code"]
        await calls.expect_problem("POST", f"{path}/cancel", 404, {"node": "nobody"})
        await calls.post_json(f"{path}/requests/{second['request_id']}", 1)
        await outcome(calls, path)
        shown = await calls.get_json(path)
        assert shown["node_states"] == {"p": "cancelled", "q": "completed"}


async def test_paused_execution_continues_after_resume() -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "H"), text_node("after", "done"), edges=[("h", "after")])
    async with in_process_client(dependencies(graph, types=[held])) as calls:
        created = await calls.post_json("/api/run", {"prompt": "x"}, 202)
        path = f"/api/executions/{created['execution_id']}"
        await held.started.wait()
        assert (await calls.expect_problem("POST", f"{path}/resume", 409))["code"] == "not-paused"
        assert (await calls.post_json(f"{path}/pause"))["status"] == "paused"
        held.release.set()
        assert await outcome(calls, path) == {"h": "h let go"}
        assert (await calls.get_json(path))["reason"] == "paused by request"
        answer = await calls.post_json(f"{path}/resume")
        assert answer["status"] in ("executing", "completed")
        assert await outcome(calls, path) == {"h": "h let go", "after": "done"}
        for command in ("pause", "resume"):
            assert (await calls.expect_problem("POST", f"{path}/{command}", 409))[
                "code"
            ] == "already-ended"


async def test_cancellation_cause_is_stored() -> None:
    async with in_process_client(dependencies(asking())) as calls:
        path = await start_paused(calls)
        assert (await calls.post_json(f"{path}/cancel", {"cause": "too late"}))[
            "status"
        ] == "cancelled"
        assert (await calls.get_json(path))["cause"] == "too late"


@pytest.mark.parametrize("body", [{"cause": ""}, {"cause": "x" * 1_001}, {"why": "?"}, {"node": 1}])
async def test_invalid_cancellation_is_rejected(body: Any) -> None:
    async with in_process_client(dependencies(asking())) as calls:
        path = await start_paused(calls)
        assert (await calls.expect_problem("POST", f"{path}/cancel", 422, body))[
            "code"
        ] == "invalid-body"
        assert (await calls.get_json(path))["status"] == "paused"


@pytest.mark.parametrize("name", ["r99", "r0", "x", "r1x", "r" + "9" * 30, "%2e%2e"])
async def test_unknown_request_is_not_found(name: str) -> None:
    async with in_process_client(dependencies(asking())) as calls:
        path = await start_paused(calls)
        problem = await calls.expect_problem(
            "POST", f"{path}/requests/{name}", 404, {"decision": "approve"}
        )
        assert problem["code"] == "not-found"


async def test_open_requests_of_all_executions_are_listed_in_pages() -> None:
    async with in_process_client(dependencies(asking())) as calls:
        paths = [await start_paused(calls) for _ in range(3)]
        first = await calls.get_json("/api/requests", limit=2)
        assert first["total"] == 3
        cursor = first["next_cursor"]
        last = await calls.get_json("/api/requests", cursor=cursor)
        found = [*first["requests"], *last["requests"]]
        assert [f"/api/executions/{each['execution_id']}" for each in found] == paths
        assert (found[0]["node_name"], found[0]["request"]["prompt"]) == ("Check", "Send it?")
        assert last["next_cursor"] is None

        request = f"{paths[0]}/requests/{found[0]['request_id']}"
        await calls.post_json(request, {"decision": "approve"})
        assert (await calls.get_json("/api/requests"))["total"] == 2


async def test_answered_requests_of_all_executions_are_listed_newest_first_in_pages() -> None:
    async with in_process_client(dependencies(asking())) as calls:
        paths = [await start_paused(calls) for _ in range(3)]
        for path in reversed(paths):
            asked = (await calls.get_json(f"{path}/requests"))["requests"][0]
            answer = {"decision": "approve", "note": f"for {path}"}
            await calls.post_json(f"{path}/requests/{asked['request_id']}", answer)

        def listed(**query: Any) -> Coroutine[Any, Any, Any]:
            return calls.get_json("/api/requests", status="answered", **query)

        first = await listed(limit=2)
        last = await listed(cursor=first["next_cursor"])
        found = [*first["requests"], *last["requests"]]
        assert (first["total"], last["next_cursor"]) == (3, None)
        assert [f"/api/executions/{each['execution_id']}" for each in found] == paths
        assert (found[0]["node_name"], found[0]["request"]["prompt"]) == ("Check", "Send it?")
        given = found[0]["answered"]
        assert (given["by"], given["answer"]["note"]) == ("person", f"for {paths[0]}")
        assert found[0]["since"] < given["at"]
        assert (await calls.get_json("/api/requests"))["requests"] == []

        await calls.service.executions.wait(found[0]["execution_id"])
        await calls.delete(paths[0])
        assert [each["execution_id"] for each in (await listed())["requests"]] == [
            each["execution_id"] for each in found[1:]
        ]


async def test_executions_that_wait_for_a_person_are_listed_in_pages() -> None:
    async with in_process_client(dependencies(asking())) as calls:
        paths = [await start_paused(calls) for _ in range(3)]
        request = (await calls.get_json(f"{paths[1]}/requests"))["requests"][0]["request_id"]
        await calls.post_json(f"{paths[1]}/requests/{request}", {"decision": "approve"})
        first = await calls.get_json("/api/executions", waiting=1, limit=1)
        last = await calls.get_json("/api/executions", waiting=1, cursor=first["next_cursor"])
        found = [*first["executions"], *last["executions"]]
        assert [f"/api/executions/{each['execution_id']}" for each in found] == [paths[2], paths[0]]
        assert last["next_cursor"] is None
        counted = await calls.get_json("/api/executions", counts=1, status="failed", limit=1)
        assert counted["executions"] == []
        assert {name: count for name, count in counted["counts"].items() if count} == {
            "total": 3, "paused": 2, "waiting": 2, "completed": 1,
        }  # fmt: skip
        assert (await calls.get_json("/api/executions", counts=1, q="xyz"))["counts"]["total"] == 0
        assert "counts" not in first
        for status, count in {"paused": 2, "completed": 0, "executing": 0}.items():
            page = await calls.get_json("/api/executions", waiting=1, status=status)
            assert len(page["executions"]) == count
        assert (await calls.get_json("/api/executions", waiting=1, q="xyz"))["executions"] == []


@pytest.mark.parametrize("status", ["open", "answered"])
@pytest.mark.parametrize("cursor", ["x", "e30=", "WyJhIl0=", "WyJhIiwiYiIsMWUzMF0="])
async def test_a_cursor_of_another_list_of_requests_is_refused(cursor: str, status: str) -> None:
    async with in_process_client(dependencies()) as calls:
        problem = await calls.expect_problem(
            "GET", "/api/requests", 422, cursor=cursor, status=status
        )
        assert problem["code"] == "invalid-cursor"


@pytest.mark.parametrize("bound", ["the service", "the execution"])
async def test_answer_above_the_largest_result_is_refused_and_the_request_stays_open(
    bound: str,
) -> None:
    most = Limits(largest_result_bytes=40) if bound == "the service" else Limits()
    graph = make_graph(
        Node("q", "approval", "Check", data={"prompt": "?", "editable": True}),
        Node("p", "asks", "P"),
    )
    options = RunOptions(max_result_bytes=None if bound == "the service" else 40)
    async with in_process_client(dependencies(types=[AsksFreely()], limits=most)) as calls:
        own_id = (
            await calls.service.executions.execute(make_plan(graph), options=options)
        ).execution_id
        path = f"/api/executions/{own_id}"
        await calls.service.executions.wait(own_id)
        asked = (await calls.get_json(f"{path}/requests"))["requests"]
        large = {"q": {"decision": "approve", "value": "x" * 40}, "p": ["x" * 40]}
        right = {"q": {"decision": "approve", "value": "x" * 30}, "p": ["x" * 30]}
        pointers = {"q": "/value", "p": ""}
        for each in asked:
            own, node = f"{path}/requests/{each['request_id']}", each["path"]
            problem = await calls.expect_problem("POST", own, 422, large[node])
            (found,) = problem["issues"]
            assert (found["code"], found["pointer"]) == ("limit-exceeded", pointers[node])
        assert (await calls.get_json(f"{path}/requests"))["requests"] == asked
        for each in asked:
            await calls.post_json(f"{path}/requests/{each['request_id']}", right[each["path"]])
        await calls.service.executions.wait(own_id)
        assert (await calls.get_json(path))["status"] == "completed"
