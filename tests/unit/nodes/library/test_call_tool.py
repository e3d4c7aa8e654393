"""``call_tool``: which tool it calls, what is checked before, when a person is asked, what it gives."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import pytest

import planwave
from planwave.errors import NodeError, ToolError
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Json
from planwave.graph.protocols import effect_of
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.services import NodeServices
from planwave.service.library.results import RunResult
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.agent_runs import calls, scripted
from tests.support.nodes.nested_graphs import FakeFlowStore, graph_document, node_document
from tests.support.nodes.node_context import services_with
from tests.support.virtual_loop import virtual_time

SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "reason": {"enum": ["late", "damaged"]},
        "lines": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["number"],
    "additionalProperties": False,
}
NUMBER = {"arguments": {"number": 7}}


class Shop:
    """Tools of the operator, which note their calls."""

    def __init__(self, **options: Any) -> None:
        self.made: list[Mapping[str, Json]] = []
        self.errors: list[BaseException] = []
        self.registry = Registry(LIBRARY, mcp_servers={"crm": None})
        about = {"effect": "none", **options}
        self.registry.tools.register(Tool("refund", "Refunds.", SCHEMA, self._call, **about))

    async def _call(self, arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
        self.made.append(arguments)
        if self.errors:
            raise self.errors.pop(0)
        return {"refunded": arguments["number"]}

    def check(self, given: Json = None, **data: Any) -> list[Diagnostic]:
        """Return the findings of a step that calls a tool."""
        return read_and_check(graph_of(data, given), self.registry)[1]

    async def run(
        self, given: Json = None, policy: Any = None, services: Any = None, **data: Any
    ) -> RunResult:
        """Run a step that calls a tool, after a start node that gives a value."""
        graph = graph_of(data, given)
        graph["nodes"][1] |= {} if policy is None else {"policy": policy}
        return await run_graph(graph, self.registry, services)


def graph_of(data: Mapping[str, Any], given: Json = None) -> dict[str, Any]:
    start = node_document("start", "start", initialInput=given)
    return graph_document(start, node_document("n", "call_tool", **data), edges=[("start", "n")])


async def run_graph(graph: Any, registry: Registry, services: NodeServices | None) -> RunResult:
    if services is None:
        services, _ = services_with(lambda request: [])
    return await planwave.run(
        graph, registry=registry, services=services, store=MemoryStore(), check=False
    )


async def node_events(run: planwave.Run) -> list[Any]:
    """Run to the end; return what the step that calls a tool has emitted about its call."""
    return [
        each.data
        async for each in run
        if each.type == "node.event" and "tool_call" in each.data["event_type"]
    ]


def found(findings: list[Diagnostic]) -> list[tuple[str, str]]:
    return [(each.code, each.pointer.removeprefix("/nodes/1/data")) for each in findings]


def value(result: RunResult) -> Any:
    assert result.status == "completed", result.error
    return result.outputs["n"]["output"].value


# -- which tool ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"tool": "refund", **NUMBER}, []),
        ({"server": "crm", "tool": "anything"}, []),
        ({"flow": {"name": "Refund"}}, []),
        ({}, [("missing-required-input", "/tool")]),
        ({"server": "crm"}, [("missing-required-input", "/tool")]),
        ({"flow": {"name": "F"}, "tool": "refund"}, [("conflicting-field", "/tool")]),
        (
            {"flow": {"name": "F"}, "tool": "refund", "server": "crm"},
            [("conflicting-field", "/tool"), ("conflicting-field", "/server")],
        ),
        ({"tool": "refnd"}, [("unknown-tool", "/tool")]),
        ({"server": "crn", "tool": "refund"}, [("unknown-mcp-server", "/server")]),
    ],
)
def test_a_step_names_one_tool_in_one_of_three_forms(data: Any, expected: Any) -> None:
    assert found(Shop().check(**data)) == expected


@pytest.mark.parametrize(
    ("data", "correction"),
    [
        ({"tool": "refnd", **NUMBER}, {"tool": "refund"}),
        ({"server": "crn", "tool": "refund"}, {"server": "crm"}),
        (
            {"tool": "refund", "arguments": {"numbr": 7}},
            {"arguments": {"number": 7, "numbr": None}},
        ),
    ],
)
def test_a_misspelt_name_has_a_correction(data: Any, correction: Any) -> None:
    finding = Shop().check(**data)[0]
    assert finding.hint is not None
    assert "did you mean" in finding.hint
    suggestion: Any = finding.suggestion
    assert suggestion["operations"][0]["set"]["data"] == correction


@pytest.mark.parametrize("data", [{"tool": "{{ input }}"}, {"server": "{{ input }}", "tool": "t"}])
def test_no_template_decides_which_tool_is_called(data: Any) -> None:
    assert ("policy-field", f"/{next(iter(data))}") in found(Shop().check("refund", **data))


@pytest.mark.parametrize("field", ["tool", "server", "flow", "approval"])
@pytest.mark.parametrize("channel", ["flow", "link"])
def test_no_wire_decides_which_tool_is_called(field: str, channel: str) -> None:
    graph = graph_document(
        node_document("given", "text", text="refund"),
        node_document("n", "call_tool", tool="refund", **NUMBER),
        edges=[("given", "n", "output", field)],
    )
    graph["edges"][0]["data"]["channel"] = channel
    codes = {each.code for each in read_and_check(graph, Shop().registry)[1]}
    assert codes & {"policy-field", "unknown-handle", "channel-mismatch"}


# -- the arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"number": "{{ input }}"}, []),
        ({"number": "{{ input }}", "reason": "{{ input }}", "lines": ["{{ input }}", "x"]}, []),
        ({"number": 7, "reason": "late", "lines": []}, []),
        ("{{ input }}", []),
        ({}, [""]),
        ({"reason": "{{ input }}"}, [""]),
        ({"number": "7"}, ["/number"]),
        ({"number": "{{ input }}", "lines": "{{ input }}", "reason": "old"}, ["/reason"]),
        ({"number": 7, "lines": ["{{ input }}", 8]}, ["/lines/1"]),
        ({"number": 7, "state": "{{ input }}"}, ["/state"]),
        ({"numbr": "{{ input }}"}, ["/numbr", ""]),
    ],
)
def test_what_is_written_is_checked_against_the_schema_of_the_tool(
    arguments: Json, expected: list[str]
) -> None:
    findings = Shop().check(7, tool="refund", arguments=arguments)
    assert found(findings) == [("invalid-arguments", f"/arguments{each}") for each in expected]


def test_a_hint_names_the_arguments_that_there_are() -> None:
    (finding,) = Shop().check(tool="refund", arguments={"number": 7, "zzz": 1})
    assert finding.hint == "it takes number, reason, lines"
    none = Shop()
    none.registry.tools.register(
        Tool("ping", "Pings.", {"type": "object", "additionalProperties": False}, none._call)
    )
    (finding,) = none.check(tool="ping", arguments={"number": 7})
    assert finding.hint == "it takes no arguments"


async def test_templates_keep_their_types_and_the_result_is_json() -> None:
    shop = Shop()
    arguments = {"number": "{{ input.n }}", "lines": ["{{ input.to }}", "No. {{ input.n }}"]}
    result = await shop.run({"n": 7, "to": "Ada"}, tool="refund", arguments=arguments)
    assert value(result) == {"refunded": 7}
    assert shop.made == [{"number": 7, "lines": ["Ada", "No. 7"]}]


async def test_arguments_as_a_whole_may_come_from_a_template_or_a_wire() -> None:
    shop = Shop()
    assert value(await shop.run({"number": 3}, tool="refund", arguments="{{ input }}"))
    graph = graph_of({"tool": "refund"}, {"number": 4})
    graph["edges"][0]["targetHandle"] = "arguments"
    assert read_and_check(graph, shop.registry)[1] == []
    assert value(await run_graph(graph, shop.registry, None)) == {"refunded": 4}
    assert shop.made == [{"number": 3}, {"number": 4}]


async def test_what_a_template_gave_is_checked_before_the_call() -> None:
    shop = Shop()
    result = await shop.run("seven", tool="refund", arguments={"number": "{{ input }}"})
    assert result.error is not None
    assert result.error["code"] == "invalid-arguments"
    assert '/number: the value is not of type "integer"' in result.error["message"]
    assert shop.made == []


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (ToolError("the shop is closed"), 2),
        (RuntimeError("no connection"), 2),
        (ToolError("there is no such order", retryable=False), 1),
        (NodeError("it is gone", code="gone", retryable=False), 1),
    ],
)
async def test_a_call_that_fails_fails_the_step_which_its_policy_repeats(
    error: BaseException, attempts: int
) -> None:
    shop = Shop()
    shop.errors.append(error)
    policy = {"retry": {"attempts": 2, "backoffS": 0}}
    result = await shop.run(policy=policy, tool="refund", **NUMBER)
    assert len(shop.made) == attempts
    assert result.status == ("completed" if attempts == 2 else "failed")


async def test_a_failure_may_go_on_through_the_error_handle() -> None:
    shop = Shop()
    shop.errors.append(ToolError("the shop is closed", code="closed", hint="wait"))
    graph = graph_of({"tool": "refund", **NUMBER})
    graph["nodes"][1]["policy"] = {"onError": "continue"}
    graph["nodes"].append(node_document("told", "text", text="{{ input.code }}"))
    graph["edges"].append(
        {**graph["edges"][0], "source": "n", "sourceHandle": "error", "target": "told"}
    )
    result = await run_graph(graph, shop.registry, None)
    assert (result.status, result.text) == ("completed", "closed")
    assert result.outputs["n"]["error"].value == {
        "code": "closed",
        "message": "the shop is closed",
        "hint": "wait",
    }


@virtual_time
async def test_the_time_of_a_call_is_limited() -> None:
    shop = Shop()

    async def hang(arguments: Any, context: Any) -> Json:
        await asyncio.Event().wait()

    shop.registry.tools.register(Tool("hang", "Hangs.", {"type": "object"}, hang, effect="none"))
    result = await shop.run(tool="hang", timeoutS=5)
    assert result.error is not None
    assert result.error["code"] == "tool-timeout"


# -- a person --------------------------------------------------------------------------------------


async def asks_as_agent(of_node: str | None, **tool: Any) -> bool:
    """Return whether an agent asks before it calls the same tool under the same rule."""
    shop = Shop(**tool)
    reply = scripted(calls(("refund", {"number": 7})), "Done.")
    services, _ = services_with(lambda request: [reply(request)])
    about: dict[str, Any] = {"name": "refund"} | ({} if of_node is None else {"approval": of_node})
    graph = graph_document(
        node_document("t", "tool", **about), node_document("a", "agent", userPrompt="Go")
    )
    link = {"source": "t", "sourceHandle": "tools", "target": "a", "targetHandle": "tools"}
    graph["edges"] = [{**link, "data": {"channel": "link"}}]
    return bool((await run_graph(graph, shop.registry, services)).requests)


APPROVALS = ("never", "write", "always")
EFFECTS = ("none", "read", "write", "once")


@pytest.mark.parametrize(
    ("of_node", "of_tool", "effect"), [*itertools.product((None, *APPROVALS), APPROVALS, EFFECTS)]
)
async def test_a_person_is_asked_exactly_when_an_agent_would_ask(
    of_node: str | None, of_tool: Any, effect: Any
) -> None:
    shop, rule = (
        Shop(approval=of_tool, effect=effect),
        {} if of_node is None else {"approval": of_node},
    )
    result = await shop.run(tool="refund", **NUMBER, **rule)
    assert bool(result.requests) == await asks_as_agent(of_node, approval=of_tool, effect=effect)
    assert len(shop.made) == (not result.requests)


async def asking() -> tuple[Shop, RunResult]:
    shop = Shop(approval="always", effect="write")
    return shop, await shop.run(7, tool="refund", arguments={"number": "{{ input }}"})


async def test_the_question_shows_the_arguments_that_will_be_sent() -> None:
    shop, result = await asking()
    (request,) = result.requests
    asked: Any = request.request
    assert request.path == "n[approve-1-0]/refund"
    assert (asked["value"], asked["editable"], asked["valueSchema"]) == (
        {"number": 7},
        True,
        SCHEMA,
    )
    assert asked["tool"]["name"] == "refund"
    assert (result.status, shop.made) == ("paused", [])
    ended = await result.run.answer(request.request_id, {"decision": "approve"})
    assert (value(ended), shop.made) == ({"refunded": 7}, [{"number": 7}])


async def test_a_person_may_change_the_arguments_and_the_result_stays_json() -> None:
    shop, result = await asking()
    changed = {"decision": "approve", "value": {"number": 8}}
    ended = await result.run.answer(result.requests[0].request_id, changed)
    assert (value(ended), shop.made) == ({"refunded": 8}, [{"number": 8}])


async def test_a_rejected_call_fails_the_step_and_is_not_repeated() -> None:
    shop = Shop(approval="always")
    policy = {"retry": {"attempts": 3, "backoffS": 0}}
    result = await shop.run(policy=policy, tool="refund", **NUMBER)
    answer = {"decision": "reject", "note": "Not this one."}
    ended = await result.run.answer(result.requests[0].request_id, answer)
    assert ended.error is not None
    assert (ended.error["code"], ended.requests, shop.made) == ("rejected", (), [])
    assert "They wrote: Not this one." in ended.error["message"]


@virtual_time
async def test_a_question_that_nobody_answers_is_a_rejection() -> None:
    shop = Shop(approval="always")
    services, _ = services_with(lambda request: [], limits=Limits(approval_timeout_s=60))
    result = await shop.run(services=services, tool="refund", **NUMBER)
    ended = await result.run.resume()
    assert ended.error is not None
    assert (ended.error["code"], shop.made) == ("rejected", [])


async def test_another_attempt_of_a_tool_that_acts_once_asks_first() -> None:
    shop = Shop(effect="once")
    shop.errors.append(ToolError("the line broke"))
    policy = {"retry": {"attempts": 2, "backoffS": 0}}
    result = await shop.run(policy=policy, tool="refund", **NUMBER)
    (request,) = result.requests
    asked: Any = request.request
    assert asked["prompt"].startswith("An earlier run of this step has called the tool refund")
    assert (asked["value"], len(shop.made)) == ({"number": 7}, 1)
    ended = await result.run.answer(request.request_id, {"decision": "approve"})
    assert (value(ended), len(shop.made)) == ({"refunded": 7}, 2)


# -- events, records, forks ------------------------------------------------------------------------


async def test_the_events_of_a_call_are_those_of_an_agents_call() -> None:
    shop = Shop(effect="write")
    services, _ = services_with(lambda request: [])
    run = planwave.run(
        graph_of({"tool": "refund", **NUMBER}), registry=shop.registry, services=services
    )
    events = await node_events(run)
    assert [each["event_type"] for each in events] == ["tool_call_start", "tool_call_end"]
    start, end = (each["data"] for each in events)
    assert (start["name"], start["kind"], start["path"]) == ("refund", "tool", "n")
    assert (start["arguments"], end["result"]) == ({"number": 7}, {"refunded": 7})
    assert start["call_id"] == end["call_id"]
    (call,) = (await run).document["nodes"][1]["calls"]
    assert (call["kind"], call["name"], call["result"]) == ("tool", "refund", {"refunded": 7})


async def test_a_fork_is_served_the_call_unless_it_changes() -> None:
    shop = Shop(effect="once")
    done = await shop.run(7, tool="refund", arguments={"number": "{{ input }}"})
    same = await done.run.fork(rerun=["start"])
    assert (value(same), len(shop.made)) == ({"refunded": 7}, 1)
    again = await done.run.fork(rerun=["n"])
    (request,) = again.requests
    assert "An earlier run of this step" in str(request.request)
    other = await done.run.fork(set={"n.arguments": {"number": 8}})
    (request,) = other.requests
    ended = await other.run.answer(request.request_id, {"decision": "approve"})
    assert value(ended) == {"refunded": 8}
    assert [each["number"] for each in shop.made] == [7, 8]


def test_the_effect_of_a_step_is_that_of_its_tool_where_that_is_known() -> None:
    registry = Shop(effect="read").registry
    registry.tools.register(Tool("mail", "Mails.", {}, Shop()._call, effect="once"))
    facts = registry.type_info("call_tool")
    assert facts is not None
    effects = {}
    for name, data in {
        "tool": {"tool": "refund"},
        "of a server": {"server": "crm", "tool": "refund"},
        "once": {"tool": "mail"},
        "flow": {"flow": {"name": "refund"}},
    }.items():
        graph, _ = read_and_check(graph_of(data), registry)
        assert graph is not None
        effects[name] = effect_of(graph.by_id["n"], facts, graph)
    assert effects == {"tool": "read", "of a server": "once", "once": "once", "flow": "once"}


def typed_steps() -> tuple[Registry, Any]:
    """Return types with a tool that says what it gives, and a graph in which it leads into a number."""
    registry = Registry(LIBRARY, mcp_servers={"crm": None})

    @planwave.tool(effect="none", registry=registry)
    def lines() -> list[str]:
        """Return lines."""
        return ["a", "b"]

    @planwave.node("first_of", registry=registry)
    def first_of(items: list[str]) -> str:
        return items[0]

    @planwave.node("double", registry=registry)
    def double(number: int) -> int:
        return number * 2

    def graph(kind: str, handle: str, **data: Any) -> Any:
        call, user = node_document("n", "call_tool", **data), node_document("f", kind)
        return graph_document(call, user, edges=[("n", "f", "output", handle)])

    return registry, graph


async def test_the_output_has_the_type_that_the_tool_says() -> None:
    registry, graph = typed_steps()
    fitting = graph("first_of", "items", tool="lines")
    assert read_and_check(fitting, registry)[1] == []
    read, _ = read_and_check(fitting, registry)
    assert read is not None
    (output,) = registry.node_ports(read)["n"]["outputs"]
    assert output["type"] == "json"
    assert output["schema"] == {"type": "array", "items": {"type": "string"}}
    result = await run_graph(fitting, registry, None)
    assert result.outputs["f"]["output"].value == "a"
    (finding,) = read_and_check(graph("double", "number", tool="lines"), registry)[1]
    assert (finding.code, finding.hint) == (
        "type-mismatch",
        "put a node between them that converts the value",
    )
    for other in ({"server": "crm", "tool": "lines"}, {"flow": {"name": "F"}}):
        assert read_and_check(graph("double", "number", **other), registry)[1] == []


# -- flows -----------------------------------------------------------------------------------------


FLOW = graph_document(
    node_document("start", "start"),
    node_document("say", "text", text="{{ input.who }} is greeted."),
    edges=[("start", "say")],
)
OTHER = graph_document(
    node_document("start", "start"),
    node_document("say", "text", text="Bye, {{ input.who }}."),
    edges=[("start", "say")],
)


async def test_a_stored_flow_is_called_as_a_tool() -> None:
    store = FakeFlowStore(greet=[FLOW, OTHER])
    services, _ = services_with(lambda request: [], flows=store)
    data = {"flow": {"name": "Greet"}, "arguments": {"input": {"who": "{{ input }}"}}}
    result = await Shop().run("Ada", services=services, **data)
    assert value(result) == "Bye, Ada."
    data["flow"] = {"name": "Greet", "revision": 1}
    result = await Shop().run("Ada", services=services, **data)
    assert value(result) == "Ada is greeted."
    run = planwave.run(
        graph_of(data, "Ada"), registry=Shop().registry, services=services, store=MemoryStore()
    )
    (start, _) = [each["data"] for each in await node_events(run)]
    assert (start["kind"], start["name"], start["flow"]) == ("flow", "Greet", "Greet")
    paths = [each["path"] for each in (await run).document["nodes"]]
    assert f"n[{start['run_key']}]/say" in paths


async def test_a_flow_is_the_one_that_was_live_when_the_step_began() -> None:
    ask = node_document("ask", "approval", prompt="Go on?")
    first = {**FLOW, "nodes": [*FLOW["nodes"], ask]}
    first["edges"] = graph_document(edges=[("start", "ask"), ("ask", "say", "approve", "input")])[
        "edges"
    ]
    flows = {"greet": [first]}
    services, _ = services_with(lambda request: [], flows=FakeFlowStore(**flows))
    data = {"flow": {"name": "Greet"}, "arguments": {"input": {"who": "Ada"}}}
    result = await Shop().run(services=services, **data)
    flows["greet"].append(OTHER)
    (request,) = result.requests
    ended = await result.run.answer(request.request_id, {"decision": "approve"})
    assert value(ended) == "Ada is greeted."


async def test_the_arguments_of_a_flow_are_checked_when_it_is_called() -> None:
    services, _ = services_with(lambda request: [], flows=FakeFlowStore(greet=[FLOW]))
    result = await Shop().run(services=services, flow={"id": "greet"}, arguments={"who": "Ada"})
    assert result.error is not None
    assert result.error["code"] == "invalid-arguments"


async def test_a_fork_calls_a_flow_again_that_has_changed_since() -> None:
    flows = {"greet": [FLOW]}
    services, _ = services_with(lambda request: [], flows=FakeFlowStore(**flows))
    data = {"flow": {"name": "Greet"}, "arguments": {"input": {"who": "Ada"}}}
    done = await Shop().run(services=services, **data)
    assert value(await done.run.fork()) == "Ada is greeted."
    flows["greet"].append(OTHER)
    assert value(await done.run.fork(rerun=["n"])) == "Bye, Ada."
