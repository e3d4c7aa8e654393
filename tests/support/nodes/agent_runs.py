"""Agents that run with scripted models and tools made of functions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from planwave.graph.model import LINK, Json, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.providers.protocols import ModelReply, ModelRequest, ToolCall, Usage
from planwave.service.library.results import RunResult
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.nested_graphs import node_document, run_to_end
from tests.support.nodes.node_context import services_with

Reply = str | ModelReply
Script = Callable[[ModelRequest], Reply]


def calls(*wanted: tuple[str, Mapping[str, Any] | str], text: str = "") -> ModelReply:
    """Return a reply that calls tools: names and arguments; the ids are ``c1``, ``c2`` and so on."""
    made = tuple(
        ToolCall(f"c{number}", name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(wanted, 1)
    )
    return ModelReply(text, "openai", "m", "stop", Usage(3, 2, 0.5), tool_calls=made)


def scripted(*replies: Reply) -> Script:
    """Return a model that gives these replies, one for each turn of it in the conversation."""

    def reply(request: ModelRequest) -> Reply:
        return replies[sum(turn.role == "assistant" for turn in request.messages)]

    return reply


def tool(
    name: str,
    act: Callable[..., Awaitable[Json]] | None = None,
    *,
    fields: Mapping[str, Any] | None = None,
    **options: Any,
) -> Tool:
    """Return a tool made of a function of its arguments; without one it gives them back."""

    async def call(arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
        return dict(arguments) if act is None else await act(**arguments)

    schema = {"type": "object", "properties": dict(fields or {}), "additionalProperties": True}
    return Tool(name, f"Does {name}.", schema, call, **{"effect": "none", **options})


class Kit:
    """A node type that gives tools."""

    node_type = "kit"
    outputs = (Port("tools", "tool", channel=LINK),)

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = list(tools)

    async def materialize(self, data: Any, output_handle: str, context: FlowContext) -> list[Tool]:
        return self._tools


def agent_graph(
    *agents: dict[str, Any], edges: Sequence[tuple[str, str]] = (), kit_of: Sequence[str] = ("a",)
) -> dict[str, Any]:
    """Return a graph of agents; ``kit`` is linked to some of them, others are tools of each other.

    Args:
        agents: Their documents; the first is ``a`` if there are none.
        edges: ``(sub-agent, agent)`` pairs.
        kit_of: The agents that get the tools of ``kit``.
    """
    nodes = list(agents) or [node_document("a", "agent", userPrompt="Go")]
    links = [("kit", "tools", each) for each in kit_of]
    links += [(sub, "tools-out", lead) for sub, lead in edges]
    if kit_of:
        nodes.append(node_document("kit", "kit"))
    return {
        "nodes": nodes,
        "edges": [
            {
                "source": source,
                "sourceHandle": handle,
                "target": target,
                "targetHandle": "tools",
                "data": {"channel": "link"},
            }
            for source, handle, target in links
        ],
    }


class AgentRun(NamedTuple):
    """A run of agents: its result, the requests to the model, and what its nodes emitted."""

    result: RunResult
    requests: list[ModelRequest]
    emitted: list[tuple[str, Any]]

    def events(self, *kinds: str) -> list[tuple[str, Any]]:
        """Return type and data of the events of some types."""
        return [each for each in self.emitted if each[0] in kinds]


async def run_agents(
    graph: Mapping[str, Any],
    script: Script,
    *tools: Tool,
    limits: Any = None,
    providers: Any = None,
    **options: Any,
) -> AgentRun:
    """Run a graph of agents to its end, or until it waits."""
    store = MemoryStore()
    services, models = services_with(
        lambda request: [script(request)], providers, limits=limits, recorder=store
    )
    result = await run_to_end(graph, Kit(tools), services=services, store=store, **options)
    emitted = [
        (event.data["event_type"], event.data["data"])
        for event in await store.events(result.execution_id)
        if event.type == "node.event"
    ]
    return AgentRun(result, models.requests, emitted)
