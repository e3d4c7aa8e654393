"""What a plan would reach outside of itself that another one does not."""

from __future__ import annotations

from collections.abc import Sequence

from planwave.graph.model import Graph, Node
from planwave.planner.plan_access import new_access
from tests.support.graph.builders import make_graph
from tests.unit.planner.test_revision import CATALOGUE, PLAN


def access(before: Graph, after: Graph) -> Sequence[tuple[str, str, str]]:
    return [tuple(each) for each in new_access(before, after, CATALOGUE)]


def test_what_a_plan_would_reach_and_does_not_yet_is_named_once_with_its_step() -> None:
    send = Node("send", "fetch", "Send", data={"url": "https://A.example:8080/x", "method": "POST"})
    server = Node("s", "mcp_server", "S", data={"server": "mail"})
    asks = Node("b", "agent", "B", "x", {"provider": "anthropic", "model": "m"})
    body = {
        "nodes": [{"id": "i", "type": "agent", "data": {"provider": "deep", "model": "m"}}],
        "edges": [],
    }
    loop = Node("l", "loop", "L", data={"items": "[]", "body": body})
    after = make_graph(*PLAN.nodes, send, server, asks, loop, edges=[("facts", "note")])
    found = access(PLAN, after)
    assert ("host", "a.example:8080", "send") in found
    assert ("server", "mail", "s") in found
    assert ("provider", "anthropic", "b") in found
    assert ("provider", "deep", "l") in found
    assert any(kind == "effect" and "fetch" in name for kind, name, _ in found)
    assert access(after, after) == []
    assert access(after, PLAN) == []
