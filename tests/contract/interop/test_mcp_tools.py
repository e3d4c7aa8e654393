"""The tools of planwave as an MCP server, as the official client sees them in both eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import mcp_types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged

from planwave.ids import new_id
from tests.support.mcp.planwave_server import MODES, call, fail, mcp_client, text_of
from tests.support.server.running_server import RunningServer

APPROVAL: dict[str, Any] = {
    "nodes": [
        {"id": "draft", "type": "text", "data": {"text": "Dear all"}},
        {"id": "q", "type": "approval", "data": {"prompt": "Send it?", "editable": True}},
    ],
    "edges": [{"source": "draft", "target": "q", "data": {"channel": "flow"}}],
}
START: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "t", "type": "text", "data": {"text": "Hello {{ input }}"}},
    ],
    "edges": [{"source": "s", "target": "t", "data": {"channel": "flow"}}],
}


@pytest.fixture(params=MODES)
async def client(request: Any, server: RunningServer) -> AsyncIterator[Client]:
    # The SDK wants a connection to be closed by the task that opened it; fixtures do not see to that.
    connected: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    is_over = asyncio.Event()

    async def hold() -> None:
        async with mcp_client(server, request.param) as own:
            connected.set_result(own)
            await is_over.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(hold())
        yield await connected
        is_over.set()


async def saved(server: RunningServer, graph: dict[str, Any], name: str = "") -> str:
    """Save a flow; give its id."""
    made = server.service.flows.create(name or new_id(), graph=json.dumps(graph))
    return (await server.on_loop(made)).plan_id


async def test_tools_say_what_they_take_and_what_they_do(client: Client) -> None:
    own = {"plan", "run", "status", "result", "answer"}  # beside the flows that other tests publish
    listed = (await client.list_tools()).tools
    tools = {each.name: each for each in listed if each.name in own}
    assert tools.keys() == own
    assert tools["plan"].input_schema["required"] == ["goal"]
    wait = tools["run"].input_schema["properties"]["wait_s"]
    assert (wait["type"], wait["default"], wait["maximum"]) == ("number", 50.0, 3600)
    reads = {name for name, each in tools.items() if each.annotations.read_only_hint}  # type: ignore[union-attr]
    assert reads == {"status", "result"}
    assert all(each.description for each in tools.values())
    assert client.server_capabilities.tools.list_changed  # type: ignore[union-attr]


async def test_a_goal_is_planned_and_run_with_progress(client: Client) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def progress(number: float, total: float | None, message: str | None) -> None:
        seen.append((number, total, message))

    result = await client.call_tool("run", {"goal": "texts"}, progress_callback=progress)
    assert (text_of(result), result.structured_content["status"]) == ("two", "completed")
    assert seen == [
        (0, None, "Planning"),
        (1, None, "Planned 'A title': 2 steps"),
        (1.5, 3, "Wave 1 of 2: a"),
        (2, 3, "Wave 1 of 2 completed"),
        (2.5, 3, "Wave 2 of 2: b"),
        (3, 3, "Wave 2 of 2 completed"),
    ]


async def test_a_plan_is_shown_and_run_later(client: Client) -> None:
    plan = await call(client, "plan", goal="texts")
    assert [each["id"] for each in plan["nodes"]] == ["a", "b"]
    assert plan["edges"] == [{"source": "a", "target": "b", "channel": "flow"}]
    done = await call(client, "run", plan_id=plan["plan_id"])
    assert (done["plan_id"], done["result"]) == (plan["plan_id"], "two")


async def test_a_goal_is_planned_with_answers_to_what_it_leaves_open(client: Client) -> None:
    told = {"Which market?": "Austria"}
    result = await client.call_tool("plan", {"goal": "texts", "answers": told})
    assert "Answered: Which market? Austria" in text_of(result)
    (question,) = result.structured_content["questions"]
    assert (question["answer"], question["assumed"]) == ("Austria", False)


async def test_a_flow_runs_with_inputs_by_name_and_by_id(
    client: Client, server: RunningServer
) -> None:
    name = new_id()
    plan_id = await saved(server, START, name)
    for source in (name, plan_id):
        done = await call(client, "run", flow=source, inputs={"s": {"output": "Ada"}})
        assert done["result"] == "Hello Ada"


async def test_a_failed_run_is_an_error_with_its_reason_and_its_result_is_none(
    client: Client,
) -> None:
    result = await client.call_tool("run", {"goal": "broken"})
    assert result.is_error
    assert "node 'x' failed: ValueError: it broke" in text_of(result)
    assert "Traceback" not in text_of(result)
    found = await call(client, "result", execution_id=result.structured_content["execution_id"])
    assert (found["status"], [each["node"] for each in found["failures"]]) == ("failed", ["x"])


async def test_a_run_that_waits_for_a_person_is_paused_and_an_answer_continues_it(
    client: Client, server: RunningServer
) -> None:
    paused = await call(client, "run", flow=await saved(server, APPROVAL))
    assert (paused["status"], paused["requests"][0]["prompt"]) == ("paused", "Send it?")
    own = paused["execution_id"]
    for both in ({}, {"decision": "approve", "answer": 1}):
        text = await fail(client, "answer", execution_id=own, **both)
        assert text.startswith("give either decision or answer")
    refused = await fail(client, "answer", execution_id=own, decision="perhaps")
    assert "perhaps" in refused
    assert "approve" in refused
    done = await call(client, "answer", execution_id=own, decision="approve", value="Hi all")
    assert (done["execution_id"], done["status"], done["result"]) == (own, "completed", "Hi all")
    again = await fail(client, "answer", execution_id=own, decision="approve")
    assert again == f"execution {own} waits for no answer; see its status first"


async def test_a_long_run_continues_and_is_waited_for_further(
    client: Client, server: RunningServer
) -> None:
    begun = await call(client, "run", goal="held", wait_s=0)
    own = begun["execution_id"]
    assert begun["status"] in ("starting", "executing")
    assert begun["next"].endswith("Call `result` with its execution_id and a wait_s.")
    assert (await call(client, "status", execution_id=own))["status"] != "completed"
    server.release(own)
    done = await call(client, "result", execution_id=own, wait_s=60)
    assert (done["status"], done["node_results"]) == (
        "completed",
        {"h": "h let go", "after": "after"},
    )
    one = await client.call_tool("result", {"execution_id": own, "node": "h"})
    assert text_of(one) == "h let go"
    unknown = await fail(client, "result", execution_id=own, node="nope")
    assert unknown.endswith("has no node 'nope'; its nodes are h, after")


BAD_CALLS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("plan", {}, "goal is required"),
    ("plan", {"goal": "x", "mode": 1}, "mode is not known here"),
    ("run", {}, "give one of goal, plan_id and flow"),
    ("run", {"goal": "x", "flow": "y"}, "give one of goal, plan_id and flow"),
    ("run", {"plan_id": "x", "revision": 1}, "revision goes with flow"),
    ("run", {"plan_id": "x"}, "there is no plan 'x'"),
    ("run", {"flow": "no such flow"}, "there is no flow 'no such flow'"),
    ("run", {"goal": "texts", "wait_s": -1}, "wait_s has to be at least 0"),
    ("run", {"goal": "texts", "wait_s": "soon"}, "wait_s has to be a number, not text"),
    ("run", {"goal": "texts", "inputs": {"nope": {"output": 1}}}, "nope"),
    ("status", {"execution_id": "x"}, "there is no execution 'x'"),
    ("result", {"execution_id": "../x"}, "there is no execution '../x'"),
    ("answer", {"execution_id": "x", "decision": "approve"}, "there is no execution 'x'"),
)


async def test_a_call_that_cannot_be_processed_fails_with_a_sentence(client: Client) -> None:
    for tool, arguments, sentence in BAD_CALLS:
        assert sentence in await fail(client, tool, **arguments), (tool, arguments)


async def test_an_unknown_tool_is_an_error_of_the_protocol(client: Client) -> None:
    with pytest.raises(MCPError, match="there is no tool 'nope'"):
        await client.call_tool("nope", {})


async def test_results_are_resources(client: Client) -> None:
    done = await call(client, "run", goal="texts")
    base = f"planwave://executions/{done['execution_id']}"
    listed = (await client.list_resources()).resources
    assert f"{base}/result" in [each.uri for each in listed]
    templates = (await client.list_resource_templates()).resource_templates
    assert [each.uri_template.rpartition("/")[2] for each in templates] == ["result", "document"]
    (result,) = (await client.read_resource(f"{base}/result")).contents
    assert json.loads(result.text)["node_results"] == {"a": "one", "b": "two"}  # type: ignore[union-attr]
    (document,) = (await client.read_resource(f"{base}/document")).contents
    assert json.loads(document.text)["graph"]["nodes"][0]["id"] == "a"  # type: ignore[union-attr]
    for uri in ("planwave://executions/nope/result", f"{base}/nope", "file:///etc/passwd"):
        with pytest.raises(MCPError, match="there is no"):
            await client.read_resource(uri)


async def test_the_same_key_starts_one_execution(client: Client) -> None:
    key = new_id()
    first = await call(client, "run", goal="texts", idempotency_key=key)
    again = await call(client, "run", goal="texts", idempotency_key=key, wait_s=3)
    assert again == first
    other = await fail(client, "run", goal="held", idempotency_key=key)
    assert "was used with other arguments" in other


async def test_a_key_is_free_again_after_a_call_that_started_nothing(client: Client) -> None:
    key = new_id()
    assert "no such flow" in await fail(client, "run", flow="no such flow", idempotency_key=key)
    assert (await call(client, "run", goal="texts", idempotency_key=key))["result"] == "two"


async def published(server: RunningServer, graph: dict[str, Any], name: str) -> str:
    """Publish a flow as a tool; give its id."""
    plan_id = await saved(server, graph, name)
    await server.on_loop(server.service.flows.publish(plan_id, {"tool": True}))
    return plan_id


async def test_a_published_flow_is_a_tool_with_typed_arguments(
    client: Client, server: RunningServer
) -> None:
    name = f"Greet {new_id()}"
    plan_id = await published(server, START, name)
    tools = {each.title: each for each in (await client.list_tools()).tools}
    tool = tools[name]
    assert tool.name == name.lower().replace(" ", "_").replace("-", "_")
    assert tool.input_schema["required"] == ["input"]
    assert tool.input_schema["additionalProperties"] is False
    result = await client.call_tool(tool.name, {"input": "Ada"})
    assert (text_of(result), result.structured_content["status"]) == ("Hello Ada", "completed")
    record = await server.on_loop(
        server.service.executions.get(result.structured_content["execution_id"])
    )
    assert record.plan_id == plan_id
    assert "input" in await fail(client, tool.name)
    assert "the arguments are input" in await fail(client, tool.name, input="x", other=1)
    await server.on_loop(server.service.flows.publish(plan_id, {"tool": False}))
    assert name not in [each.title for each in (await client.list_tools()).tools]
    with pytest.raises(MCPError, match="there is no tool"):
        await client.call_tool(tool.name, {"input": "Ada"})


async def test_a_key_starts_one_execution_of_a_flow_that_waits_for_a_person(
    client: Client, server: RunningServer
) -> None:
    name = f"k{new_id()}"
    await published(server, APPROVAL, name)
    tool, key = name.replace("-", "_"), new_id()
    first = await call(client, tool, idempotency_key=key)
    assert (first["status"], first["requests"][0]["node"]) == ("paused", "q")
    assert (await call(client, tool, idempotency_key=key))["execution_id"] == first["execution_id"]
    assert "has to be text" in await fail(client, tool, idempotency_key=1)


async def test_flows_of_similar_names_and_of_the_name_of_a_tool_have_names_of_their_own(
    client: Client, server: RunningServer
) -> None:
    title = f"t{new_id()}"
    ids = [
        await published(server, START, name)
        for name in (title, title.replace("-", " "), "Run", "\u2713")
    ]
    plain = title.replace("-", "_")
    names = {each.name for each in (await client.list_tools()).tools}
    own = {plain, f"{plain}_{ids[1][-8:]}", f"run_{ids[2][-8:]}", f"flow_{ids[3][-8:]}"}
    assert own <= names
    for plan_id in ids:
        await server.on_loop(server.service.flows.delete(plan_id, force=True))


async def test_clients_are_told_when_the_tools_change(server: RunningServer) -> None:
    told = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            told.set()

    async with (
        mcp_client(server) as modern,
        mcp_client(server, "legacy", message_handler=hear) as legacy,
        modern.listen(tools_list_changed=True) as changes,
    ):
        await legacy.list_tools()
        plan_id = await published(server, START, new_id())
        assert isinstance(await anext(aiter(changes)), ToolsListChanged)
        await told.wait()
        await server.on_loop(server.service.flows.delete(plan_id, force=True))
