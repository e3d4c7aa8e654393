"""When a person approves calls of a server's tools: the stricter rule holds, hints count where they are trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.providers.protocols import ModelReply, ModelRequest, ToolCall
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.fake_providers import ListedProviders
from tests.support.mcp.servers import Marks, hostile_program, servers_of
from tests.support.nodes.node_context import services_with

REGISTRY = Registry(
    LIBRARY, providers=ListedProviders({"openai": ["m"]}), mcp_servers={"box": None}
)
LINK = {
    "source": "tools", "sourceHandle": "tools", "target": "agent", "targetHandle": "tools",
    "data": {"channel": "link"},
}  # fmt: skip


async def run(
    marks: Marks,
    of_node: str,
    store: MemoryStore | None = None,
    about: str = "Acts.",
    **rules: Any,
) -> Any:
    """Run an agent that calls the tool of a server once; return the result, paused where a person is asked."""

    def reply(request: ModelRequest) -> list[Any]:
        if told := [each.text for each in request.messages if each.role == "tool"]:
            return told
        call = ToolCall("c1", "box_act", "{}")
        return [ModelReply("", request.provider, request.model, "tool_calls", tool_calls=(call,))]

    program = {**hostile_program(marks, "described", ABOUT=about), **rules}
    services, _ = services_with(reply, mcp=servers_of(box=program))
    services = replace(services, approved_tools=None if store is None else store.approved_tools)
    data = {"server": "box", "approval": of_node}
    graph: Any = {
        "nodes": [
            {"id": "tools", "type": "mcp_server", "data": data},
            {"id": "agent", "type": "agent", "data": {"userPrompt": "Go."}},
        ],
        "edges": [LINK],
    }
    return await planwave.run(graph, registry=REGISTRY, services=services)


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


@pytest.mark.parametrize(
    ("of_node", "rules", "effect"),
    [
        ("never", {}, None),
        ("never", {"approval": "always"}, "once"),
        ("never", {"approval": "write"}, "once"),
        ("write", {"approval": "never"}, "once"),
        ("write", {}, "once"),
        ("write", {"read_tools": ["act"]}, None),
        ("write", {"read_tools": ["other"]}, "once"),
        ("write", {"trust_hints": True}, None),
        ("always", {"trust_hints": True}, "read"),
        ("never", {"approval": "always", "read_tools": ["act"]}, "read"),
    ],
)
async def test_the_stricter_of_both_rules_holds_and_hints_where_they_are_trusted(
    marks: Marks, of_node: str, rules: dict[str, Any], effect: str | None
) -> None:
    result = await run(marks, of_node, **rules)
    asked = [each.request["tool"]["effect"] for each in result.requests]
    assert asked == ([] if effect is None else [effect])


async def test_a_tool_that_changed_since_it_was_approved_asks_again_over_runs(marks: Marks) -> None:
    store = MemoryStore()
    assert (await run(marks, "never", store)).requests == ()

    first = await run(marks, "write", store)
    (request,) = first.requests
    assert "has changed" not in request.request["prompt"]
    approved = await first.run.answer(request.request_id, {"decision": "approve"})
    assert approved.status == "completed"
    assert (await run(marks, "never", store)).requests == ()

    again = await run(marks, "never", store, "Deletes everything.")
    (request,) = again.requests
    assert "The server 'box' has changed its tool 'act'" in request.request["prompt"]
    assert "Its description is now: Deletes everything." in request.request["prompt"]
    rejected = await again.run.answer(request.request_id, {"decision": "reject"})
    assert rejected.text.startswith("Error: a person rejected this call")

    (request,) = (third := await run(marks, "never", store, "Deletes everything.")).requests
    approved = await third.run.answer(request.request_id, {"decision": "approve"})
    assert (approved.status, approved.text) == ("completed", "done")
    assert (await run(marks, "never", store, "Deletes everything.")).requests == ()
