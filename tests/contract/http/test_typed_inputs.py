"""Inputs that do not fit what a flow declares are refused before the run, however it is started."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.api.middleware.audit import ACTIONS
from planwave.errors import InputError
from planwave.executor.options import RunOptions
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke_json
from tests.support.mcp.planwave_server import mcp_session
from tests.support.server.in_process_client import InProcessClient
from tests.support.triggers.hook_sender import hook_flow, hook_service, listening, text

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
START = {"id": "s", "type": "start", "data": {"schema": SCHEMA}}
GRAPH = {"nodes": [START, text("t", "{{ city }}")], "edges": []}
FAULTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "wrong type": ({"city": 7}, ["/inputs/city"]),
    "out of range": ({"city": "Porto", "days": 0}, ["/inputs/days"]),
    "missing": ({"days": 2}, ["/inputs/city"]),
    "nothing": ({}, ["/inputs/city"]),
    "unknown": ({"city": "Porto", "citty": "x"}, ["/inputs/citty"]),
    "all at once": ({"s": {"output": {"days": "2", "x": 1}}}, [
        "/inputs/s/output/x", "/inputs/s/output/city", "/inputs/s/output/days",
    ]),
}  # fmt: skip
"""What a run may be given wrongly, and where that is."""


async def executes(calls: InProcessClient, flow_id: str, inputs: Any, **body: Any) -> Any:
    return await calls.expect_problem("POST", "/api/execute", 422, {**body, "inputs": inputs})


async def a_flow(calls: InProcessClient, flow_id: str, inputs: Any) -> Any:
    return await executes(calls, flow_id, inputs, flow=flow_id, start=True)


async def created_only(calls: InProcessClient, flow_id: str, inputs: Any) -> Any:
    return await executes(calls, flow_id, inputs, flow=flow_id)


async def a_plan(calls: InProcessClient, flow_id: str, inputs: Any) -> Any:
    return await executes(calls, flow_id, inputs, plan_id=flow_id, start=True)


async def a_graph(calls: InProcessClient, flow_id: str, inputs: Any) -> Any:
    return await executes(calls, flow_id, inputs, graph=GRAPH, start=True)


async def with_a_token(calls: InProcessClient, flow_id: str, inputs: Any) -> Any:
    wanted = {"name": "t", "scopes": ["run"], "flows": [flow_id]}
    token = (await calls.post_json("/api/tokens", wanted, 201))["token"]
    body = {"flow": flow_id, "inputs": inputs, "start": True}
    headers = {"Authorization": f"Bearer {token}"}
    answer = await calls.post("/api/execute", json=body, headers=headers)
    assert answer.status_code == 422, answer.text
    return answer.json()


async def raised(start: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
    with pytest.raises(InputError) as caught:
        await start()
    error: Any = caught.value
    return {"code": error.code, "issues": [each.as_json() for each in error.diagnostics]}


async def a_program(calls: InProcessClient, flow_id: str, inputs: Any) -> Any:
    return await raised(lambda: planwave.run(GRAPH, inputs=inputs))


async def the_tool_run(calls: InProcessClient, inputs: Any) -> Any:
    """Return the error of a call of the tool ``run`` of the MCP server."""
    headers = await mcp_session(calls, {})
    params = {"name": "run", "arguments": {"flow": "Trip", "inputs": inputs}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = (await calls.post("/mcp", json=call, headers=headers)).text
    data = next(each for each in answer.splitlines() if each.startswith(("data: {", "{")))
    result = json.loads(data.removeprefix("data: "))["result"]
    assert result["isError"]
    return result["structuredContent"]


WAYS: dict[str, Callable[[InProcessClient, str, Any], Awaitable[Any]]] = {
    way.__name__: way for way in (a_flow, created_only, a_plan, a_graph, with_a_token, a_program)
}


@asynccontextmanager
async def saved_flow() -> AsyncGenerator[tuple[InProcessClient, str]]:
    async with hook_service() as calls:
        flow = await calls.post_json("/api/flows", {"name": "Trip", "graph": GRAPH}, 201)
        yield calls, flow["plan_id"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", WAYS)
async def test_every_way_refuses_every_fault_and_creates_nothing(way: str, fault: str) -> None:
    inputs, pointers = FAULTS[fault]
    async with saved_flow() as (calls, flow_id):
        problem = await WAYS[way](calls, flow_id, inputs)
        assert problem["code"] == "invalid-inputs"
        assert [each["pointer"] for each in problem["issues"]] == pointers
        assert {(each["code"], each["severity"]) for each in problem["issues"]} == {
            ("invalid-inputs", "error")
        }
        assert (await calls.get_json("/api/executions"))["executions"] == []


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_tool_of_the_mcp_server_refuses_every_fault(fault: str) -> None:
    async with saved_flow() as (calls, _):
        error = await the_tool_run(calls, FAULTS[fault][0])
        assert error["code"] == "invalid-inputs"
        assert (await calls.get_json("/api/executions"))["executions"] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_the_command_line_refuses_every_fault(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    invoke_json("flow", "save", "Trip", "-", stdin=json.dumps(GRAPH))
    inputs, pointers = FAULTS[fault]
    given = ("--input", json.dumps(inputs)) if inputs else ()
    for command in (("flow", "run", "Trip"), ("exec", "-")):
        stdin = json.dumps(GRAPH) if command[0] == "exec" else None
        refused = invoke_json(*command, *given, stdin=stdin, code=2)
        assert refused["error"]["code"] == "invalid-inputs"
        assert [each["pointer"].rpartition("/")[2] for each in refused["diagnostics"]] == [
            each.rpartition("/")[2] for each in pointers
        ]
    assert invoke_json("ls")["executions"] == []


OTHERS = {
    "run": "a goal: the plan of a model declares no fields",
    "sendMessage": "a message for a chat_start; a chat keeps it, and its reply says what is missing",
    "editMessage": "as sendMessage",
    "retryMessage": "as sendMessage",
    "continueMessage": "as sendMessage",
}
"""Routes that create an execution and are given no inputs of a flow, and why."""


async def fire(calls: InProcessClient) -> Any:
    graph = hook_flow()
    graph["nodes"].append(START)
    trigger = await listening(calls, graph)
    return await calls.expect_problem("POST", f"/api/triggers/{trigger}/fire", 422, {"value": 1})


async def chat_completion(calls: InProcessClient) -> Any:
    await model(calls)
    body = {"model": "Trip", "messages": [{"role": "user", "content": "Porto"}]}
    return openai_error(await calls.post("/v1/chat/completions", json=body))


async def response(calls: InProcessClient) -> Any:
    await model(calls)
    return openai_error(await calls.post("/v1/responses", json={"model": "Trip", "input": "Porto"}))


async def model(calls: InProcessClient) -> None:
    flow = await calls.post_json("/api/flows", {"name": "Trip", "graph": GRAPH}, 201)
    path = f"/api/flows/{flow['plan_id']}/publication"
    assert (await calls.put(path, json={"model": True})).status_code == 200


def openai_error(answer: Any) -> Any:
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


async def create_execution(calls: InProcessClient) -> Any:
    return await executes(calls, "", {}, graph=GRAPH)


ROUTES = {
    "createExecution": create_execution,
    "fireTrigger": fire,
    "createChatCompletion": chat_completion,
    "createResponse": response,
}


def test_every_route_that_creates_executions_is_tried_or_has_a_reason() -> None:
    creating = {name for name, action in ACTIONS.items() if action.name == "execution.created"}
    assert creating == {*ROUTES, *OTHERS}


@pytest.mark.parametrize("route", ROUTES)
async def test_every_route_says_what_does_not_fit(route: str) -> None:
    async with hook_service() as calls:
        problem = await ROUTES[route](calls)
        assert problem["code"] == "invalid-inputs"
        assert (await calls.get_json("/api/executions"))["executions"] == []


async def test_inputs_that_fit_are_taken_with_the_defaults_of_what_is_not_given() -> None:
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "pace": {"default": "slow"}}}
    graph = {
        "nodes": [{**START, "data": {"schema": schema}}, text("t", "{{ city }}, {{ pace }}")],
        "edges": [],
    }
    run = await planwave.run(graph, inputs={"city": "Porto", "days": 2})
    assert run.text == "Porto, slow"
    open_graph = {
        "nodes": [
            {**START, "data": {"schema": {**SCHEMA, "additionalProperties": True}}},
            text("t", "{{ city }}"),
        ],
        "edges": [],
    }
    assert (
        await planwave.run(open_graph, inputs={"s": {"output": {"city": "Faro", "more": 1}}})
    ).text == "Faro"


@pytest.mark.parametrize("given", [{"s": {"output": "many"}}, {"output": "many"}, {}])
async def test_an_input_without_fields_has_its_type_too(given: Any) -> None:
    graph = {
        "nodes": [{"id": "s", "type": "start", "data": {"schema": {"type": "number"}}}],
        "edges": [],
    }
    problem = await raised(lambda: planwave.run(graph, inputs=given))
    (issue,) = problem["issues"]
    assert issue["pointer"] == "/inputs" + "".join(
        f"/{each}" for each in [*given, *(["output"] if "s" in given else [])]
    )


async def test_what_does_not_run_needs_no_inputs() -> None:
    graph = {
        "nodes": [START, text("a", "x"), text("b", "y")],
        "edges": [{"source": "s", "target": "a", "data": {"channel": "flow"}}],
    }
    run = await planwave.run(graph, options=RunOptions(run_to=("b",)))
    assert run.text == "y"
