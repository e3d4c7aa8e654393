"""Agents in a run that use a real server: what they see, which events there are, what is left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.graph.model import Json
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.providers.protocols import ModelReply, ModelRequest, ToolCall
from tests.support.llm.fake_providers import ListedProviders
from tests.support.mcp.servers import AGENT_WITH_SERVER, Marks, scripted_program, servers_of
from tests.support.nodes.node_context import services_with

REGISTRY = Registry(
    LIBRARY, providers=ListedProviders({"openai": ["m"]}), mcp_servers={"box": None}
)


async def agent_calls(
    marks: Marks, tool: str, arguments: Mapping[str, Json]
) -> tuple[planwave.RunResult, list[Any]]:
    """Run an agent whose model calls a tool once, then repeats what it was told."""

    def reply(request: ModelRequest) -> list[Any]:
        if told := [each.text for each in request.messages if each.role == "tool"]:
            return told
        call = ToolCall("c1", tool, json.dumps(arguments))
        return [ModelReply("", request.provider, request.model, "tool_calls", tool_calls=(call,))]

    services, _ = services_with(reply, mcp=servers_of(box=scripted_program(marks)))
    run = planwave.run(AGENT_WITH_SERVER, registry=REGISTRY, services=services)
    events = [event.data async for event in run if event.type == "node.event"]
    return await run, events


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments", "kinds", "told"),
    [
        (
            "box_count",
            {"n": 1},
            ["tool_call_start", "tool_call_progress", "tool_call_end"],
            "counted to 1",
        ),
        (
            "box_die",
            {"status": 3},
            ["tool_call_start", "tool_call_error"],
            "Error: the connection to the MCP server 'box' ended during the call: its program "
            "exited with status 3",
        ),
    ],
)
async def test_an_agent_is_told_what_became_of_its_call_and_no_process_is_left(
    tmp_path: Path, tool: str, arguments: Mapping[str, Json], kinds: list[str], told: str
) -> None:
    marks = Marks(tmp_path / "marks")
    result, events = await agent_calls(marks, tool, arguments)
    assert (result.status, result.outputs["agent"]["output"].value) == ("completed", told)
    assert [each["event_type"] for each in events if "tool" in each["event_type"]] == kinds
    await marks.all_gone()
    assert len(marks.pids) == 1
