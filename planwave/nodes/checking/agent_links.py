"""Checks of what is linked to an agent, and of an agent that is linked to others as a tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from planwave.graph.model import FLOW, LINK, Edge
from planwave.nodes.agents.tool import TOOLS_HANDLE, TOOLS_OUT
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.node_view import NodeView


def check_tools(view: NodeView, *, web_search: bool) -> Iterator[NodeFinding]:
    """Find tools that a model cannot use which the agent may call, its fallbacks included."""
    has_tools = any(edge.target_handle == TOOLS_HANDLE for edge in view.incoming)
    for model in view.models:
        if has_tools and not model.profile.tools:
            yield NodeFinding(
                "tools-unavailable",
                f"{model.what} cannot call tools, and tools are linked to the agent",
                model.pointer,
                hint="choose another model, or remove the links",
            )
        if web_search and not model.profile.web_search:
            is_own = model.pointer in ("", "/data/model")
            yield NodeFinding(
                "web-search-unavailable",
                f"the provider of {model.what} has no web search of its own",
                "/data/tools/web_search" if is_own else model.pointer,
                hint="choose a model of openai or anthropic, or link a tool that searches",
            )


def check_delegation(
    view: NodeView, subagents: bool | None, delegate: Literal["shared", "exclusive"]
) -> Iterator[NodeFinding]:
    """Find links between agents that do not fit together.

    Args:
        view: An agent.
        subagents: Its ``tools.subagents``: False forbids links from other agents.
        delegate: Its ``delegate``.
    """
    agent = view.node.type
    for edge in view.incoming:
        source = view.index.by_id.get(edge.source)
        if edge.channel != LINK or source is None or source.type != agent:
            continue
        if subagents is False:
            yield NodeFinding(
                "subagents-disabled",
                f"the agent {source.id!r} is linked to it, but data.tools.subagents is false",
                "/data/tools/subagents",
                hint="remove the field, or the link",
            )
        if (edge.source_handle, edge.target_handle) != (TOOLS_OUT, TOOLS_HANDLE):
            yield NodeFinding(
                "subagent-handle",
                f"the link from the agent {source.id!r} leads from {edge.source_handle!r} to "
                f"{edge.target_handle!r}; an agent is linked from {TOOLS_OUT!r} to {TOOLS_HANDLE!r}",
                hint=f"connect {TOOLS_OUT!r} with {TOOLS_HANDLE!r}",
            )
    links = [edge for edge in view.outgoing if edge.source_handle == TOOLS_OUT]
    yield from _check_consumers(links, view)
    if delegate == "exclusive" and links:
        yield from _check_exclusive(links, view)


def _check_consumers(links: list[Edge], view: NodeView) -> Iterator[NodeFinding]:
    for edge in links:
        target = view.index.by_id.get(edge.target)
        if target is None or view.index.type_info_of(target.id) is None:
            continue  # what it links cannot be told
        if target.type != view.node.type:
            yield NodeFinding(
                "subagent-not-agent",
                f"it is linked to {target.id!r} as a tool, which is no agent but {target.type!r}",
                hint="link it to an agent, or connect its output with a flow edge",
            )


def _check_exclusive(links: list[Edge], view: NodeView) -> Iterator[NodeFinding]:
    parents = list(dict.fromkeys(edge.target for edge in links))
    if len(parents) > 1:
        yield NodeFinding(
            "subagent-parents",
            f"data.delegate is exclusive, but {', '.join(map(repr, parents))} share it",
            "/data/delegate",
            hint="set data.delegate to shared, or keep one of the links",
        )
    if any(edge.channel == FLOW for edge in (*view.incoming, *view.outgoing)):
        yield NodeFinding(
            "subagent-in-flow",
            "data.delegate is exclusive, but flow edges make it a stage of the graph too",
            "/data/delegate",
            hint="set data.delegate to shared, or remove its flow edges",
        )
