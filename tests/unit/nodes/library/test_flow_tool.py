"""Stored flows as tools: their schema, their nested runs, their effect."""

from __future__ import annotations

from typing import Any

import pytest

import planwave
from planwave.errors import PlanwaveError
from planwave.executor.options import RunOptions
from planwave.graph.model import LINK, DataValue, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.ids import UUID_PATTERN
from planwave.nodes.agents.linked_tools import linked_tools
from planwave.nodes.agents.tool import ToolCallContext
from planwave.nodes.tools.flow_inputs import ANY_VALUE
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.nested_graphs import (
    FakeFlowStore,
    diagnostics_of,
    graph_document,
    node_document,
    registry_with,
    run_to_end,
    values_or_error,
    with_long_render_time,
)
from tests.support.nodes.node_context import services_with
from tests.support.virtual_loop import virtual_time

FETCH = {"url": "https://api.test/"}


class Caller:
    """Calls its tools one after the other with the arguments in its data; gives results and facts."""

    node_type = "caller"
    inputs = (Port("tools", "tool", channel=LINK, multiple=True),)

    async def execute(self, data: Any, inputs: Any, context: FlowContext) -> ExecutionResult:
        results: list[Any] = []
        (tool,) = await linked_tools(context)
        for number, arguments in enumerate(data["calls"]):
            call = ToolCallContext(context, f"call_{number}", f"key-{number}")
            try:
                results.append(await tool.call(arguments, call))
            except PlanwaveError as error:
                results.append([error.code, error.message])
        facts = {"schema": dict(tool.parameters), "effect": tool.effect, "kind": tool.kind}
        values = {"results": results, **facts}
        return ExecutionResult({"output": DataValue("json", values)})


def calling(*calls: Any, **data: Any) -> dict[str, Any]:
    """Return a graph in which ``n`` calls a flow tool."""
    about = {"name": "work", "description": "Do it.", "flow": {"id": "work"}, **data}
    document = graph_document(
        node_document("f", "flow_tool", **about), node_document("n", "caller", calls=list(calls))
    )
    link = {
        "source": "f", "sourceHandle": "tools", "target": "n", "targetHandle": "tools",
        "data": {"channel": "link"},
    }  # fmt: skip
    return {**document, "edges": [link]}


async def outcome(stored: Any, *calls: Any, **data: Any) -> Any:
    """Call a flow with each of these arguments; return what the caller gives."""
    flows = stored if isinstance(stored, FakeFlowStore) else FakeFlowStore(work=[stored])
    services, _ = services_with(lambda _: "", flows=flows)
    result = await run_to_end(calling(*calls, **data), Caller(), services=services)
    values = values_or_error(result)
    return values["output"] if isinstance(values, dict) else values


def shouting(kind: str = "start", template: str = "{{ input | upper }}!", **data: Any) -> Any:
    return graph_document(
        node_document("in", kind, **data),
        node_document("t", "text", text=template),
        node_document("e", "end"),
        edges=[("in", "t"), ("t", "e")],
    )


@virtual_time
async def test_a_call_runs_the_flow_with_its_input_and_gives_its_result() -> None:
    found = await outcome(shouting(), {"input": "hi"}, {"input": "ho"})
    assert found["results"] == ["HI!", "HO!"]
    assert (found["effect"], found["kind"]) == ("none", "flow")
    assert found["schema"] == {
        "type": "object",
        "properties": {"input": {**ANY_VALUE, "description": "in"}},
        "required": ["input"],
        "additionalProperties": False,
    }


@virtual_time
async def test_an_entry_with_data_of_its_own_needs_no_argument() -> None:
    found = await outcome(shouting(initialInput="own"), {}, {"input": "given"})
    assert found["results"] == ["OWN!", "GIVEN!"]
    assert found["schema"]["required"] == []


@virtual_time
async def test_the_parts_of_a_message_are_arguments_of_their_own() -> None:
    flow = shouting("user_input", template="{{ input.message }} {{ input.extras.a }}")
    found = await outcome(flow, {"message": "hi", "extras": {"a": 1}}, {"images": 3, "message": ""})
    assert found["results"][0] == "hi 1"
    assert found["results"][1][0] == "invalid-arguments"
    assert found["schema"]["required"] == ["message"]
    assert found["schema"]["properties"]["message"] == {"type": "string"}


@virtual_time
async def test_several_entry_nodes_are_arguments_by_their_ids() -> None:
    flow = graph_document(
        node_document("a", "start"),
        node_document("b", "start", initialInput="own"),
        node_document("m", "merge"),
        edges=[("a", "m"), ("b", "m")],
    )
    found = await outcome(flow, {"a": 1, "b": 2}, {"a": 1})
    assert found["results"][0] == [1, 2]
    assert list(found["schema"]["properties"]) == ["a", "b"]
    assert found["schema"]["required"] == ["a"]


@virtual_time
async def test_with_a_schema_of_its_own_the_arguments_are_one_object() -> None:
    schema = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    found = await outcome(
        shouting(template="Hello {{ input.who }}"), {"who": "Ada"}, parameters=schema
    )
    assert found["results"] == ["Hello Ada"]
    assert found["schema"] == schema


@virtual_time
async def test_a_failing_flow_is_an_error_that_names_its_node() -> None:
    found = await outcome(shouting(template="{{ input.missing.part }}"), {"input": {}})
    code, message = found["results"][0]
    assert code == "nested-run-failed"
    assert "n[call_0]/t" in message


@virtual_time
async def test_an_agent_stays_with_the_revision_of_its_first_call() -> None:
    flows = FakeFlowStore(work=[shouting(template="one"), shouting(template="two")])
    assert (await outcome(flows, {"input": ""}, {"input": ""}))["results"] == ["two", "two"]
    assert len(flows.requests) == 2  # its schema, and the first call
    found = await outcome(flows, {"input": ""}, flow={"id": "work", "revision": 1})
    assert found["results"] == ["one"]


@virtual_time
async def test_a_flow_may_be_named_by_its_name() -> None:
    flows = FakeFlowStore(work=[shouting(template="one"), shouting(template="two")])
    for flow, expected in (({"name": "Work"}, "two"), ({"name": "Work", "revision": 1}, "one")):
        found = await outcome(flows, {"input": ""}, {"input": ""}, flow=flow)
        assert found["results"] == [expected, expected]


@virtual_time
async def test_a_flow_that_does_not_exist_fails_the_node() -> None:
    assert (await outcome(FakeFlowStore(), {}))[0] == "unknown-flow"
    result = await run_to_end(calling({}), Caller(), services=services_with(lambda _: "")[0])
    assert values_or_error(result)[0] == "no-flows"


@pytest.mark.parametrize(
    ("nodes", "effect"),
    [
        ([node_document("a", "text", text="x")], "none"),
        ([node_document("a", "fetch", **FETCH)], "read"),
        ([node_document("a", "fetch", **FETCH, method="POST")], "write"),
        (
            [
                node_document(
                    "a",
                    "loop",
                    items=[1],
                    body=graph_document(node_document("b", "fetch", **FETCH)),
                )
            ],
            "read",
        ),
        ([node_document("a", "inner", flow={"id": "other"})], "once"),
        ([node_document("a", "planner", goal="g")], "once"),
        ([node_document("a", "nowhere")], "once"),
    ],
)
@virtual_time
async def test_the_effect_is_the_strongest_in_the_flow(nodes: list[Any], effect: str) -> None:
    assert (await outcome(graph_document(*nodes)))["effect"] == effect


@virtual_time
async def test_calls_count_against_the_limits_of_nested_runs() -> None:
    services, _ = services_with(lambda _: "", flows=FakeFlowStore(work=[shouting()]))
    result = await run_to_end(
        calling({"input": "x"}), Caller(), services=services, options=RunOptions(max_depth=0)
    )
    (found,) = values_or_error(result)["output"]["results"]
    assert found[0] == "limit-exceeded"


def test_a_schema_that_is_no_object_is_found() -> None:
    (found,) = diagnostics_of(calling(parameters={"type": "string"}), Caller())
    assert (found.code, found.pointer) == ("invalid-data", "/nodes/0/data/parameters/type")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["user_input", "chat_start"])
@pytest.mark.parametrize("arguments", [{"message": "hi"}, {}])
async def test_new_ids_in_a_flow_are_the_same_after_the_process_changes(
    kind: str, arguments: dict[str, Any]
) -> None:
    flow = graph_document(
        node_document("ask", kind, message="ho"),
        node_document("may", "approval", prompt="May I, {{ nodes.ask.chatId }}?"),
        node_document("got", "text", text="{{ nodes.ask.chatId }} {{ nodes.ask.threadId }}"),
        edges=[("ask", "may"), ("may", "got", "approve")],
    )
    services, _ = services_with(lambda _: "", flows=FakeFlowStore(work=[flow]))
    store = MemoryStore()
    paused = await run_to_end(calling(arguments), Caller(), services=services, store=store)
    (request,) = paused.requests
    opened = planwave.open(
        store, paused.execution_id, services=services, registry=registry_with(Caller()), check=False
    )
    opened = opened.answer(request.request_id, {"decision": "approve", "note": ""})
    values = values_or_error(await with_long_render_time(opened))
    (got,) = values["output"]["results"]
    chat_id, thread_id = got.split()
    assert UUID_PATTERN.fullmatch(chat_id)
    assert UUID_PATTERN.fullmatch(thread_id)
    assert request.request["prompt"] == f"May I, {chat_id}?"
