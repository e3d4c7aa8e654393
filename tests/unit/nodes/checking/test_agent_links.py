"""Links between agents that do not fit together are found before a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.nodes.nested_graphs import diagnostics_of, node_document

Edge = tuple[str, str, str, str]


def found(*links: Edge, flows: tuple[Edge, ...] = (), **data: dict[str, Any]) -> list[str]:
    """Return the codes of all findings in a graph of three agents, one ``llm``, and these edges.

    Args:
        links: Source, its handle, target and its handle.
        flows: The same, for flow edges.
        data: More data of the nodes.
    """
    nodes = [
        {**node_document(each, "agent", userPrompt="Go", **data.get(each, {})), "name": each}
        for each in ("a", "b", "c")
    ]
    nodes.append(node_document("x", "llm", prompt="Go"))
    edges = [
        {"source": s, "sourceHandle": sh, "target": t, "targetHandle": th, "data": {"channel": on}}
        for on, each in (("link", links), ("flow", flows))
        for s, sh, t, th in each
    ]
    return [each.code for each in diagnostics_of({"nodes": nodes, "edges": edges})]


def called(sub: str, lead: str) -> Edge:
    return sub, "tools-out", lead, "tools"


FREE: dict[str, Any] = {"delegate": "shared"}
EXCLUSIVE: dict[str, Any] = {"delegate": "exclusive"}
NO_AGENTS: dict[str, Any] = {"tools": {"subagents": False}}


def test_agents_may_be_linked_and_shared_unless_they_say_otherwise() -> None:
    assert found(called("b", "a"), called("b", "c"), called("c", "a")) == []
    assert found(called("b", "a"), a={"tools": {"subagents": True}}, b=FREE) == []
    assert found(called("b", "a"), b=EXCLUSIVE) == []
    assert found(a=NO_AGENTS, b=EXCLUSIVE) == []
    stage = (("b", "output", "c", "systemPrompt"),)
    assert found(called("b", "a"), flows=stage) == []


@pytest.mark.parametrize(
    ("links", "flows", "data", "code"),
    [
        ([called("b", "a")], [], {"a": NO_AGENTS}, "subagents-disabled"),
        ([called("b", "a"), called("b", "c")], [], {"b": EXCLUSIVE}, "subagent-parents"),
        ([called("b", "a")], [("b", "output", "c", "systemPrompt")], {"b": EXCLUSIVE},
         "subagent-in-flow"),
        ([called("b", "a")], [("c", "output", "b", "systemPrompt")], {"b": EXCLUSIVE},
         "subagent-in-flow"),
        ([("b", "output", "a", "tools")], [], {}, "subagent-handle"),
        ([("b", "tools-out", "x", "tools")], [], {}, "subagent-not-agent"),
        ([called("a", "a")], [], {}, "link-cycle"),
        ([called("a", "b"), called("b", "c"), called("c", "a")], [], {}, "link-cycle"),
    ],
)  # fmt: skip
def test_links_that_do_not_fit_are_errors(
    links: list[Edge], flows: list[Edge], data: dict[str, Any], code: str
) -> None:
    assert code in found(*links, flows=tuple(flows), **data)


def test_tools_do_not_come_over_flow_edges() -> None:
    assert "channel-mismatch" in found(flows=(("b", "output", "a", "tools"),))
    assert "channel-mismatch" in found(flows=(("b", "tools-out", "a", "input"),))
