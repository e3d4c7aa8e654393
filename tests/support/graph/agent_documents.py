"""Graphs of agents for executions that are cut off: tools of every effect, approvals, agents that call agents.

The models of the agents are ``tests/support/llm/scripted_agent_model.py``; their prompts say what they call. The
tools are those of ``tests/support/recovery``: functions, an HTTP service, an MCP server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

FUNCTIONS = ("look", "save", "send", "order", "mail")
HTTP_TOOLS = ("http_look", "http_save")
MCP_TOOLS = ("mcp_look", "mcp_save", "mcp_send")
HELPER = "helper"
DELEGATE = f"delegate_{HELPER}"
EFFECTS = {
    **{name: "read" for name in ("look", "http_look", "mcp_look")},
    **{name: "write" for name in ("save", "order", "http_save", "mcp_save")},
    **{name: "once" for name in ("send", "mail", "mcp_send")},
}
"""The effects of all tools that act, by name."""
ASKING = ("order", "mail")
"""The tools that a person approves whatever the agent says."""
_FIELDS = {"item": {"type": "string"}, "text": {"type": "string"}}


def call(tool: str, item: str, text: str = "as asked") -> dict[str, Any]:
    """Return one call of a script."""
    return {"tool": tool, "item": item, "text": text}


def delegation(item: str, *rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the call of the other agent, with its script."""
    return {"tool": DELEGATE, "item": item, "task": {"rounds": rounds, "text": f"{item} is done"}}


def agent_document(
    *scripts: Sequence[Sequence[dict[str, Any]]], service: str, approval: str = "never"
) -> dict[str, Any]:
    """Return a graph of one agent after the other, with the tools that their scripts call.

    Args:
        scripts: The rounds of each agent, of calls that are made in one reply.
        service: The ``host:port`` of the HTTP service.
        approval: When a person approves calls of the agents.
    """
    agents = [
        _agent(
            f"n{number}",
            approval,
            userPrompt=json.dumps({"rounds": rounds, "text": f"n{number} is done"}),
        )
        for number, rounds in enumerate(scripts)
    ]
    edges = [
        _edge(source["id"], "output", target["id"], "input", "flow")
        for source, target in pairwise(agents)
    ]
    used = {each["tool"] for rounds in scripts for each in _calls_in(rounds)}
    if DELEGATE in used:
        agents.append(_agent(HELPER, approval))
        edges += [_edge(HELPER, "tools-out", agent["id"], "tools", "link") for agent in agents[:-1]]
    tools = _tool_nodes(used, service)
    edges += [
        _edge(tool["id"], "tools", agent["id"], "tools", "link")
        for tool in tools
        for agent in agents
    ]
    return {"nodes": [*tools, *agents], "edges": edges}


def random_agents(random: Random, service: str) -> dict[str, Any]:
    """Return a graph of one or two agents that do something of everything; some have attempts left.

    One of eight has an MCP server: it starts a process, which takes most of the time of a short life.
    """
    tools = [*FUNCTIONS, "send", "send", *HTTP_TOOLS]
    tools += MCP_TOOLS * 2 if random.random() < 0.125 else ()
    scripts = [_rounds(random, tools, depth=0) for _ in range(1 + random.randrange(2))]
    approval = random.choice(["never", "never", "write"])
    document = agent_document(*scripts, service=service, approval=approval)
    for node in document["nodes"]:
        if node["type"] == "agent" and random.random() < 0.5:
            node["policy"] = {"retry": {"attempts": 3, "backoffS": 0}}
    return document


def _rounds(random: Random, tools: Sequence[str], depth: int) -> list[list[dict[str, Any]]]:
    return [
        [_random_call(random, tools, depth) for _ in range(1 + random.randrange(3))]
        for _ in range(1 + random.randrange(2))
    ]


def _random_call(random: Random, tools: Sequence[str], depth: int) -> dict[str, Any]:
    item = f"i{random.getrandbits(64):016x}"
    if depth == 0 and random.random() < 0.25:
        return delegation(item, *_rounds(random, tools, depth + 1))
    return call(random.choice(tools), item)


def _calls_in(rounds: Iterable[Sequence[dict[str, Any]]]) -> Iterable[dict[str, Any]]:
    for each in (each for calls in rounds for each in calls):
        yield each
        yield from _calls_in(each.get("task", {}).get("rounds", ()))


def _agent(node_id: str, approval: str, **data: str) -> dict[str, Any]:
    data |= {"provider": "openai", "approval": approval}
    return {"id": node_id, "type": "agent", "name": node_id, "data": data}


def _tool_nodes(used: Iterable[str], service: str) -> list[dict[str, Any]]:
    names = sorted(used)
    functions = [name for name in names if name in FUNCTIONS]
    nodes: list[dict[str, Any]] = []
    if functions:
        nodes.append({"id": "kit", "type": "toolset", "data": {"names": functions}})
    nodes += [_http_tool(name, service) for name in names if name in HTTP_TOOLS]
    if any(name in MCP_TOOLS for name in names):
        data = {"server": "mcp", "approval": "never"}
        nodes.append({"id": "server", "type": "mcp_server", "data": data})
    return nodes


def _http_tool(name: str, service: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": _FIELDS, "required": [*_FIELDS]}
    address = f"http://{service}/{name.removeprefix('http_')}"
    where = (
        {"method": "POST", "url": address}
        if EFFECTS[name] == "write"
        else {"method": "GET", "url": f"{address}?item={{item}}&text={{text}}"}
    )
    data = {"name": name, "description": f"Does {name}.", "parameters": schema, **where}
    return {"id": name, "type": "http_tool", "data": data}


def _edge(source: str, handle: str, target: str, into: str, channel: str) -> dict[str, Any]:
    return {
        "id": f"{source}-{target}",
        "source": source,
        "sourceHandle": handle,
        "target": target,
        "targetHandle": into,
        "data": {"channel": channel},
    }
