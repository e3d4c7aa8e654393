"""Steps that call a tool of a real server: what they give, when a person is asked, what is left."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.storage.sqlite.memory import MemoryStore
from tests.contract.mcp import test_approvals
from tests.support.mcp.servers import Marks, hostile_program, scripted_program, servers_of
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import services_with

REGISTRY = Registry(LIBRARY, mcp_servers={"box": None})


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


def steps(*data: dict[str, Any]) -> dict[str, Any]:
    """Return a graph of steps, one after the other, that call tools of ``box``."""
    names = [f"s{number}" for number, _ in enumerate(data)]
    nodes = [
        node_document(name, "call_tool", server="box", **each)
        for name, each in zip(names, data, strict=True)
    ]
    return graph_document(*nodes, edges=[*pairwise(names)])


async def run(
    graph: Any, program: dict[str, Any], store: MemoryStore | None = None
) -> planwave.RunResult:
    services, _ = services_with(lambda request: [], mcp=servers_of(box=program))
    if store is not None:
        services = replace(services, approved_tools=store.approved_tools, recorder=store)
    return await planwave.run(graph, registry=REGISTRY, services=services, check=False)


@pytest.mark.slow
async def test_steps_share_one_server_which_gives_json_where_it_has_a_schema(marks: Marks) -> None:
    quiet = {"approval": "never"}
    graph = steps(
        {"tool": "add", "arguments": {"a": 1, "b": 2}, **quiet},
        {"tool": "add", "arguments": {"a": "{{ input.result }}", "b": 4}, **quiet},
        {"tool": "count", "arguments": {"n": "{{ input.result }}"}, **quiet},
        {"tool": "save", "arguments": {"text": "{{ input }}"}, **quiet},
    )
    result = await run(graph, scripted_program(marks))
    assert result.status == "completed", result.error
    values = [each["output"].value for each in result.outputs.values()]
    assert values == [{"result": 3}, {"result": 7}, "counted to 7", "saved counted to 7"]
    (saved,) = [line for line in marks.lines if line.startswith("save ")]
    assert saved.endswith(f" {result.execution_id}/s3/0"), "the key that planwave gives"
    await marks.all_gone()
    assert len(marks.pids) == 1


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        ({"tool": "ad"}, "unknown-mcp-tool", "has no tool 'ad'"),
        ({"tool": "add", "arguments": {"a": 1}}, "invalid-arguments", '"b" is a required'),
        ({"tool": "fail", "arguments": {"text": "no order"}}, "mcp-tool-error", "no order"),
        (
            {"tool": "die", "arguments": {"status": 3}},
            "mcp-connection-lost",
            "exited with status 3",
        ),
    ],
)
@pytest.mark.slow
async def test_what_goes_wrong_fails_the_step(
    marks: Marks, data: dict[str, Any], code: str, text: str
) -> None:
    result = await run(steps({**data, "approval": "never"}), scripted_program(marks))
    assert result.error is not None
    assert (result.error["code"], text in result.error["message"]) == (code, True), result.error
    await marks.all_gone()


RULES = [
    ("never", {}),
    ("never", {"approval": "always"}),
    ("never", {"approval": "write", "read_tools": ["act"]}),
    ("write", {"read_tools": ["act"]}),
    ("write", {"trust_hints": True}),
    ("write", {}),
    ("always", {"trust_hints": True}),
]


@pytest.mark.parametrize(("of_node", "rules"), RULES)
async def test_a_person_is_asked_exactly_when_an_agent_would_ask(
    marks: Marks, of_node: str, rules: dict[str, Any]
) -> None:
    program = {**hostile_program(marks, "described", ABOUT="Acts."), **rules}
    result = await run(steps({"tool": "act", "approval": of_node}), program)
    of_agent = await test_approvals.run(marks, of_node, **rules)
    asked = [each.request["tool"]["effect"] for each in result.requests]
    assert asked == [each.request["tool"]["effect"] for each in of_agent.requests]


async def test_without_a_rule_a_person_approves_what_may_change_something(marks: Marks) -> None:
    result = await run(steps({"tool": "act"}), hostile_program(marks, "described", ABOUT="Acts."))
    (request,) = result.requests
    asked: Any = request.request
    assert (asked["tool"]["server"], asked["tool"]["tool"]) == ("box", "act")
    ended = await result.run.answer(request.request_id, {"decision": "approve"})
    assert (ended.status, ended.text) == ("completed", "done")


async def test_a_tool_that_changed_since_a_call_of_it_was_approved_asks_again(marks: Marks) -> None:
    store, quiet = MemoryStore(), steps({"tool": "act", "approval": "never"})

    def about(text: str) -> dict[str, Any]:
        return hostile_program(marks, "described", ABOUT=text)

    first = await run(steps({"tool": "act"}), about("Acts."), store)
    answered = await first.run.answer(first.requests[0].request_id, {"decision": "approve"})
    assert answered.status == "completed"
    assert (await run(quiet, about("Acts."), store)).requests == ()
    (request,) = (await run(quiet, about("Deletes everything."), store)).requests
    assert "has changed its tool 'act'" in request.request["prompt"]
