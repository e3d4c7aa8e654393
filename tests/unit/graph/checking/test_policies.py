"""Policies that do not fit their graph: a retry that can never happen."""

from __future__ import annotations

import pytest

from planwave.graph.checking.checker import check, read_and_check
from planwave.graph.model import Graph, Policy, Retry
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from tests.support.graph.fake_node_types import FakeNodeTypes, parse_graph

CATALOGUE = Registry(LIBRARY)
TWICE = Policy(retry=Retry(2))
FIXED_TYPES = [
    "approval", "boolean", "chat_start", "conditional", "end", "if", "json", "merge", "number", "parser",
    "schedule", "send_message", "sse", "start", "switch", "text", "tool_approval", "transform", "user_input",
    "void", "wait", "webhook", "webhook_reply",
]  # fmt: skip
OTHER_TYPES = [
    "agent",
    "call_tool",
    "chat",
    "fetch",
    "inner",
    "llm",
    "loop",
    "placeholder",
    "planner",
    "while",
]


def unused(graph: Graph) -> list[tuple[str, str, str]]:
    """Return severity, pointer and message of each unused retry."""
    return [
        (d.severity, d.pointer, d.message)
        for d in check(graph, FakeNodeTypes())
        if d.code == "unused-retry"
    ]


def is_unused(graph: Graph) -> bool:
    return "unused-retry" in [found.code for found in check(graph, CATALOGUE)]


@pytest.mark.parametrize(
    ("retry", "reason"),
    [
        (Retry(2, 0, ("rate-limited",), ("rate-limited",)), "retry.notOn names all that retry.on names"),
        (Retry(2, 0, ("A", "B"), ("B", "C", "A")), "retry.notOn names all that retry.on names"),
        (Retry(2, 0, (), ("Exception",)), "retry.notOn names every exception"),
        (
            Retry(2, 0, ("PermanentError",)),
            "retry.on names PermanentError only, which no other attempt can change",
        ),
        (Retry(1, 0, ("TimeoutError",)), "retry.attempts is 1"),
        (Retry(1, 0, (), ("TimeoutError",)), "retry.attempts is 1"),
    ],
)  # fmt: skip
def test_a_retry_that_excludes_every_failure_is_a_warning(retry: Retry, reason: str) -> None:
    graph = parse_graph("s a", "s>a", policies={"a": Policy(retry=retry)})
    assert unused(graph) == [
        ("warning", "/nodes/1/policy/retry", f"node 'a' is never retried: {reason}")
    ]


@pytest.mark.parametrize(
    "retry",
    [
        Retry(),
        Retry(1, 5),
        Retry(2),
        Retry(2, 0, ("A", "B"), ("B",)),
        Retry(2, 0, ("A",)),
        Retry(2, 0, (), ("A",)),
    ],
)
def test_a_retry_that_some_failure_allows_is_fine(retry: Retry) -> None:
    assert unused(parse_graph("a", policies={"a": Policy(retry=retry)})) == []


def test_a_retry_of_a_node_that_is_only_linked_is_a_warning() -> None:
    reason = "node 'g' is never retried: it is only linked, so it is never executed"
    linked = parse_graph("g:gear u:user", "g.gear~u.gears", policies={"g": TWICE, "u": TWICE})
    assert unused(linked) == [("warning", "/nodes/0/policy/retry", reason)]
    assert unused(parse_graph("g:user u:user", "g.gear~u.gears", policies={"g": TWICE})) != []
    executed = parse_graph("g:user u:user", "g.gear~u.gears", "g>u", policies={"g": TWICE})
    assert unused(executed) == []


def test_a_linked_node_may_be_executed_where_the_source_of_an_edge_is_unreadable() -> None:
    policy = {"retry": {"attempts": 2}}
    nodes = [{"id": "g", "type": "user", "policy": policy}, {"id": "u", "type": "user"}]
    link = {
        "source": "g", "sourceHandle": "gear", "target": "u", "targetHandle": "gears",
        "data": {"channel": "link"},
    }  # fmt: skip
    unread = {"source": 1, "target": "u", "data": {"channel": "flow"}}
    for edges, is_reported in (([link], True), ([link, unread], False)):
        _, found = read_and_check({"nodes": nodes, "edges": edges}, FakeNodeTypes())
        assert ("unused-retry" in [each.code for each in found]) == is_reported


@pytest.mark.parametrize("kind", FIXED_TYPES)
def test_a_retry_of_a_type_whose_failures_are_permanent_is_a_warning(kind: str) -> None:
    assert is_unused(parse_graph(f"a:{kind}", policies={"a": TWICE}))
    # An attempt that is out of time may be followed by one that is not.
    assert not is_unused(parse_graph(f"a:{kind}", policies={"a": TWICE._replace(timeout_s=5)}))


@pytest.mark.parametrize("kind", OTHER_TYPES)
def test_a_retry_of_a_type_whose_failures_may_pass_is_fine(kind: str) -> None:
    assert not is_unused(parse_graph(f"a:{kind}", policies={"a": TWICE}))


def test_every_type_that_is_executed_is_tested_here() -> None:
    executed = {
        name
        for name in CATALOGUE.names()
        if (facts := CATALOGUE.type_info(name)) and facts.executes
    }
    assert executed == {*FIXED_TYPES, *OTHER_TYPES}


def test_a_retry_is_used_where_a_linked_node_may_fail_for_a_time() -> None:
    graph = parse_graph("m:model t:text", "m~t.text", policies={"t": TWICE})
    assert not is_unused(graph)
