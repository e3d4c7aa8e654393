"""What a plan would reach outside of itself that another one does not."""

from __future__ import annotations

from collections.abc import Sequence

from planwave.graph.model import Edge, Graph, Node, Policy
from planwave.planner.plan_access import new_access
from tests.support.graph.builders import make_edge, make_graph, text_node
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


ASK = Node("ask", "approval", "Ask", data={"prompt": "Post it?"})
SEND = Node("send", "fetch", "Send", data={"url": "https://a.example/", "method": "POST"})
FACTS = text_node("facts")


def way(source: str, target: str, handle: str) -> Edge:
    return make_edge(source, target, source_handle=handle)


ASKED = make_graph(FACTS, ASK, SEND, edges=[("facts", "ask"), way("ask", "send", "approve")])
BEFORE_SEND = ("safeguard", "'approve' of 'ask' before 'send'", "send")


def test_a_question_that_no_longer_comes_before_what_changes_something_is_named() -> None:
    gone = make_graph(FACTS, SEND, edges=[("facts", "send")])
    assert access(ASKED, gone) == [("safeguard", "the approval 'ask'", "ask"), BEFORE_SEND]
    beside = make_graph(*ASKED.nodes, edges=[*ASKED.edges, make_edge("facts", "send")])
    other_way = make_graph(*ASKED.nodes, edges=[ASKED.edges[0], way("ask", "send", "reject")])
    loose = make_graph(*ASKED.nodes, edges=[("facts", "ask")])
    for after in (beside, other_way, loose):
        assert access(ASKED, after) == [BEFORE_SEND]
    between = make_graph(
        *ASKED.nodes, text_node("more"),
        edges=[ASKED.edges[0], way("ask", "more", "approve"), ("more", "send")],
    )  # fmt: skip
    renamed = make_graph(
        FACTS, ASK._replace(id="q"), SEND._replace(id="post"),
        edges=[("facts", "q"), way("q", "post", "approve")],
    )  # fmt: skip
    without_both = make_graph(FACTS, text_node("x"))
    assert access(ASKED, between) == access(ASKED, renamed) == []
    assert access(ASKED, without_both) == [("safeguard", "the approval 'ask'", "ask")]


def test_what_guarded_a_step_that_is_gone_is_named_at_any_depth() -> None:
    careful = Node("a", "agent", "A", "x", {"approval": "always"}, Policy(timeout_s=5), policy_document={"timeoutS": 5})  # fmt: skip
    inner = {"id": "i", "type": "agent", "data": {"approval": "write", "userPrompt": "x"}}

    def loop(*nodes: object) -> Node:
        return Node(
            "l", "loop", "L", data={"items": "[]", "body": {"nodes": [*nodes], "edges": []}}
        )

    before = make_graph(careful, loop(inner))
    assert access(before, make_graph(loop({"id": "j", "type": "text", "data": {"text": "x"}}))) == [
        ("safeguard", "approval of 'a'", "a"),
        ("safeguard", "the policy of 'a'", "a"),
        ("safeguard", "approval of 'i'", "l"),
    ]
    assert access(before, make_graph(careful._replace(id="b"), loop(inner))) == []


def test_a_tool_that_changes_something_and_is_given_to_another_step_is_named() -> None:
    post = Node("post", "http_tool", "Post", data={"name": "post", "url": "https://a.example/", "method": "POST"})  # fmt: skip
    agents = [Node(each, "agent", each, "x", {"approval": "always"}) for each in "ab"]

    def given(*targets: str) -> Graph:
        links = [make_edge("post", each, channel="link", source_handle="tool", target_handle="tools") for each in targets]  # fmt: skip
        return make_graph(post, *agents, edges=links)

    assert access(given("a"), given("a", "b")) == [("link", "post to b", "b")]
    assert access(given("a", "b"), given("a")) == []
