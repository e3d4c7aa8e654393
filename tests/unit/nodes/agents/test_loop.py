from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel

import planwave
from planwave.nodes.agents.tool import Tool, ToolError
from planwave.nodes.agents.tool_function import FunctionTool
from planwave.providers.protocols import ModelProfile, ModelReply, ModelRequest, Usage
from planwave.service.library.results import RunResult
from planwave.settings import Limits
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.agent_runs import (
    Kit,
    agent_graph,
    calls,
    run_agents,
    scripted,
    tool,
)
from tests.support.nodes.nested_graphs import node_document, registry_with
from tests.support.nodes.node_context import services_with


class TreeNode(BaseModel):
    inside: list[TreeNode] = []


def count_nodes(root: TreeNode) -> int:
    """Count them."""
    return 1 + sum(map(count_nodes, root.inside))


NUMBERS = {"x": {"type": "integer"}, "y": {"type": "integer"}}


async def add(x: int, y: int) -> int:
    return x + y


ADD = tool("add", add, fields=NUMBERS)


def texts(request: ModelRequest) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in request.messages]


async def test_result_of_a_call_goes_back_to_the_model() -> None:
    script = scripted(calls(("add", {"x": 2, "y": 3}), text="Let me see."), "It is 5.")
    run = await run_agents(agent_graph(), script, ADD)
    result, requests, _ = run
    assert result.text == "It is 5."
    assert [spec.name for spec in requests[0].tools] == ["add"]
    assert texts(requests[1]) == [("user", "Go"), ("assistant", "Let me see."), ("tool", "5")]
    assert requests[1].messages[2].tool_call_id == "c1"
    start, end = run.events("tool_call_start", "tool_call_end")
    about = {
        "call_id": "c1", "parent_call_id": None, "name": "add", "kind": "tool", "node_id": "kit",
        "path": "a", "depth": 0,
    }  # fmt: skip
    assert start == ("tool_call_start", {**about, "arguments": {"x": 2, "y": 3}})
    assert end[1].pop("duration_s") >= 0
    assert end == ("tool_call_end", {**about, "result": 5})


async def test_model_that_cannot_call_tools_is_not_asked() -> None:
    weak = ListedProviders({"local": ["tiny"]}, profiles={"tiny": ModelProfile(tools=False)})
    script = scripted("It is 5.")
    result, requests, _ = await run_agents(agent_graph(), script, ADD, providers=weak)
    assert requests == []
    assert [failure.code for failure in result.failures] == ["tools-unavailable"]
    assert "local (tiny) cannot call tools" in result.failures[0].message


async def test_calls_of_one_reply_run_at_the_same_time_and_are_told_in_order() -> None:
    both = asyncio.Barrier(2)

    async def meet(name: str) -> str:
        await both.wait()
        return name

    script = scripted(calls(("meet", {"name": "one"}), ("meet", {"name": "two"})), "Done.")
    result, requests, _ = await run_agents(agent_graph(), script, tool("meet", meet))
    assert result.text == "Done."
    assert texts(requests[1])[2:] == [("tool", "one"), ("tool", "two")]


async def test_calls_run_one_after_the_other_where_they_have_to() -> None:
    running: list[str] = []

    async def alone(name: str) -> int:
        running.append(name)
        await asyncio.sleep(0)
        return len(running) - running.index(name)

    agent = node_document("a", "agent", userPrompt="Go", parallelTools=False)
    script = scripted(calls(("alone", {"name": "one"}), ("alone", {"name": "two"})), "Done.")
    _, requests, _ = await run_agents(agent_graph(agent), script, tool("alone", alone))
    assert texts(requests[1])[2:] == [("tool", "1"), ("tool", "1")]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ad", {"x": 1}, "there is no tool 'ad'. Did you mean 'add'?"),
        ("add", '{"x": 1', "the arguments are not valid JSON"),
        ("add", "[1]", "the arguments are an object, not an array"),
        ("add", {"x": "one"}, "the arguments do not fit the tool: /x: the value is not of type"),
        ("add", {"x": 1}, "TypeError"),
    ],
)
async def test_call_that_cannot_be_made_is_an_error_that_the_model_sees(
    name: str, arguments: Any, message: str
) -> None:
    run = await run_agents(agent_graph(), scripted(calls((name, arguments)), "Sorry."), ADD)
    result, requests, _ = run
    assert result.text == "Sorry."
    (_, text) = texts(requests[1])[-1]
    assert text.startswith("Error: ")
    assert message in text
    assert requests[1].messages[-1].is_error
    ((_, data),) = run.events("tool_call_error")
    assert data["call_id"] == "c1"
    assert message in data["error"]["message"]


async def test_error_of_a_tool_is_for_the_model() -> None:
    async def fail() -> None:
        raise ToolError("the ticket is closed", code="closed")

    result, requests, _ = await run_agents(
        agent_graph(), scripted(calls(("close", {})), "It is closed."), tool("close", fail)
    )
    assert result.text == "It is closed."
    assert texts(requests[1])[-1] == ("tool", "Error: the ticket is closed")


class NoException(BaseException):
    """What a tool may raise all the same."""


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such ticket"), "ValueError: no such ticket"),
        (SystemExit(2), "SystemExit: 2"),
        (NoException("gone"), "NoException: gone"),
        (BaseExceptionGroup("all", [NoException()]), "BaseExceptionGroup: all (1 sub-exception)"),
    ],
)
async def test_whatever_a_tool_raises_is_for_the_model(
    error: BaseException, text: str, others: int
) -> None:
    async def fail() -> None:
        raise error

    asked = calls(("close", {}), *[("look", {})] * others)
    run = await run_agents(
        agent_graph(), scripted(asked, "Sorry."), tool("close", fail), tool("look")
    )
    assert run.result.text == "Sorry."
    assert texts(run.requests[1])[2] == ("tool", f"Error: {text}")


@pytest.mark.parametrize("others", [0, 1])
async def test_function_that_cancels_itself_is_an_error_for_the_model(others: int) -> None:
    async def leave() -> None:
        raise asyncio.CancelledError

    asked = calls(("leave", {}), *[("look", {})] * others)
    kit = FunctionTool(leave).tool
    run = await run_agents(agent_graph(), scripted(asked, "Sorry."), kit, tool("look"))
    assert texts(run.requests[1])[2] == ("tool", "Error: the tool 'leave' cancelled itself")


@pytest.mark.parametrize("parallel", [True, False])
async def test_cancelled_agent_does_not_wait_for_a_function_in_a_thread(parallel: bool) -> None:
    began, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        began.set()
        go_on.wait()

    kit = Kit([FunctionTool(hang).tool])
    services, _ = services_with(lambda _: [calls(*[("hang", {})] * 2)])
    agent = node_document("a", "agent", userPrompt="Go", parallelTools=parallel)
    built = planwave.build(agent_graph(agent), registry=registry_with(kit))
    run = planwave.run(built, services=services, check=False)

    async def end() -> RunResult:
        return await run

    try:
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(end())
            await asyncio.to_thread(began.wait)
            run.cancel()
        assert ended.result().status == "cancelled"
        assert not go_on.is_set()
    finally:
        go_on.set()


async def test_unusable_schema_fails_the_agent_unless_the_tool_checks_its_arguments() -> None:
    async def call(arguments: Any, context: Any) -> Any:
        return dict(arguments)

    node = {"type": "object", "properties": {"in": {"$ref": "#/$defs/node"}}}
    recursive = {"type": "object", "properties": {"root": node}, "$defs": {"node": node}}
    script = scripted(calls(("keep", {"root": {"in": {}}})), "Kept.")
    refused = Tool("keep", "Keep it.", recursive, call)
    run = await run_agents(agent_graph(), script, refused)
    assert (run.result.error or {})["message"].startswith("node 'a' failed: the tool 'keep' has no")
    (failure,) = run.result.failures
    assert failure.code == "invalid-tool"
    accepted = Tool("keep", "Keep it.", recursive, call, checks_arguments=True)
    for approval, answer in (("never", None), ("always", {"decision": "approve"})):
        agent = node_document("a", "agent", userPrompt="Go", approval=approval)
        run = await run_agents(agent_graph(agent), script, accepted)
        result = run.result
        for request in result.requests:
            result = await result.run.answer(request.request_id, answer)
        assert result.text == "Kept."


async def test_function_may_take_a_recursive_model() -> None:
    kit = FunctionTool(count_nodes).tool
    good, bad = {"root": {"inside": [{}, {}]}}, {"root": {"inside": 3}}
    script = scripted(calls(("count_nodes", good), ("count_nodes", bad)), "Three.")
    run = await run_agents(agent_graph(), script, kit)
    assert [text for role, text in texts(run.requests[1]) if role == "tool"] == [
        "3", "Error: root.inside has to be an array, not a number"
    ]  # fmt: skip


async def test_tool_that_takes_too_long_is_cut_off() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    result, requests, _ = await run_agents(
        agent_graph(),
        scripted(calls(("hang", {})), "Never mind."),
        tool("hang", hang, timeout_s=0.01),
    )
    assert result.text == "Never mind."
    assert texts(requests[1])[-1] == ("tool", "Error: the tool did not answer within 0.01 s")


async def test_agent_that_asks_for_calls_without_end_is_stopped() -> None:
    agent = node_document("a", "agent", userPrompt="Go", maxSteps=3)
    result, requests, _ = await run_agents(
        agent_graph(agent), lambda _: calls(("add", {"x": 1, "y": 1})), ADD
    )
    assert result.error is not None
    assert result.error["code"] == "max-steps"
    assert len(requests) == 3


async def test_limit_of_rounds_holds_for_all_agents() -> None:
    agent = node_document("a", "agent", userPrompt="Go", maxSteps=9)
    result, requests, _ = await run_agents(
        agent_graph(agent),
        lambda _: calls(("add", {"x": 1, "y": 1})),
        ADD,
        limits=Limits(tool_rounds=2),
    )
    assert result.error is not None
    assert result.error["code"] == "max-steps"
    assert len(requests) == 2


SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("reply", ['{"age": 4}', '```json\n{"age": 4}\n```'])
async def test_result_fits_the_schema(reply: str) -> None:
    agent = node_document("a", "agent", userPrompt="Go", outputSchema=SCHEMA)
    result, requests, _ = await run_agents(agent_graph(agent, kit_of=()), scripted(reply))
    assert result.outputs["a"]["output"].value == {"age": 4}
    assert requests[0].schema == SCHEMA


async def test_reply_that_does_not_fit_is_repaired_once() -> None:
    agent = node_document("a", "agent", userPrompt="Go", outputSchema=SCHEMA)
    result, requests, _ = await run_agents(
        agent_graph(agent, kit_of=()), scripted('{"age": "old"}', '{"age": 4}')
    )
    assert result.outputs["a"]["output"].value == {"age": 4}
    role, text = texts(requests[1])[-1]
    assert role == "user"
    assert "/age" in text


async def test_second_reply_that_does_not_fit_fails_with_what_is_wrong() -> None:
    agent = node_document("a", "agent", userPrompt="Go", outputSchema=SCHEMA)
    result, requests, _ = await run_agents(
        agent_graph(agent, kit_of=()), scripted("old", '{"age": "old"}')
    )
    assert result.error is not None
    assert result.error["code"] == "invalid-output"
    assert '/age: the value is not of type "integer"' in result.error["message"]
    assert len(requests) == 2


async def test_last_reply_that_is_allowed_is_not_repaired() -> None:
    agent = node_document("a", "agent", userPrompt="Go", outputSchema=SCHEMA, maxSteps=1)
    result, requests, _ = await run_agents(agent_graph(agent, kit_of=()), scripted("old"))
    assert result.error is not None
    assert result.error["code"] == "invalid-output"
    assert len(requests) == 1


async def test_conversation_may_be_wired_into_another_agent() -> None:
    graph = agent_graph(
        node_document("a", "agent", userPrompt="Go"),
        node_document("b", "agent", userPrompt="And now?"),
    )
    graph["edges"].append(
        {
            "source": "a", "sourceHandle": "messages", "target": "b", "targetHandle": "messages",
            "data": {"channel": "flow"},
        }
    )  # fmt: skip

    def script(request: ModelRequest) -> ModelReply | str:
        if request.messages and request.messages[-1].text == "Go":
            return calls(("add", {"x": 1, "y": 2}))
        return "It is 3." if request.messages else calls(("add", {"x": 1, "y": 2}))

    result, requests, _ = await run_agents(graph, script, ADD)
    assert result.outputs["b"]["output"].value == "It is 3."
    last = requests[-1]
    assert texts(last) == [
        ("user", "Go"), ("assistant", ""), ("tool", "3"), ("assistant", "It is 3.")
    ]  # fmt: skip
    assert last.prompt == "And now?"
    assert last.messages[1].tool_calls == requests[1].messages[1].tool_calls


async def test_usage_of_all_replies_counts() -> None:
    reply = ModelReply("Done.", "openai", "m", "stop", Usage(5, 7, 0.25))
    result, _, _ = await run_agents(
        agent_graph(), scripted(calls(("add", {"x": 1, "y": 1})), reply), ADD
    )
    assert (result.usage.input_tokens, result.usage.output_tokens) == (8, 9)
