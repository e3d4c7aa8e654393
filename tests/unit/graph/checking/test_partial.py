"""Findings about partial nodes and their descendants are dropped, all others are kept."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Node
from tests.support.graph.fake_node_types import FakeNodeTypes, parse_graph

CONTINUE = {"onError": "continue"}
AWAY = object()
"""For ``broken``: the field is left out."""


def broken(graph: Graph, *places: tuple[str, int, str, Any]) -> dict[str, Any]:
    """Give a graph's document with fields changed: list, number, name and value of each."""
    document = graph.to_document()
    for name, number, field, value in places:
        entry = document[name][number]
        entry.pop(field, None)
        if value is not AWAY:
            entry[field] = value
    return document


def node(number: int, field: str, value: Any = AWAY) -> tuple[str, int, str, Any]:
    return "nodes", number, field, value


def edge(number: int, field: str, value: Any = AWAY) -> tuple[str, int, str, Any]:
    return "edges", number, field, value


def told(document: Any, catalogue: FakeNodeTypes | None = None) -> list[tuple[str, str]]:
    graph, found = read_and_check(document, catalogue or FakeNodeTypes())
    assert graph is None
    return [(d.code, d.pointer) for d in found]


NO_CHANNEL = "missing-channel", "/edges/0/data/channel"


@pytest.mark.parametrize(
    ("edges", "pointer"),
    [
        (["s>aks.need"], "/edges/0/target"),
        (["t>ask.need"], "/edges/0/source"),
    ],
)
def test_a_misspelt_end_explains_the_input_that_is_missing(edges: list[str], pointer: str) -> None:
    _, found = read_and_check(parse_graph("s ask:strict", *edges), FakeNodeTypes())
    assert [(d.code, d.pointer) for d in found] == [("dangling-edge", pointer)]


def test_a_misspelt_end_explains_no_input_of_other_nodes() -> None:
    graph = parse_graph("s ask:strict other:strict", "s>aks.need")
    _, found = read_and_check(graph, FakeNodeTypes())
    assert [(d.code, d.node) for d in found] == [
        ("missing-required-input", "other"), ("dangling-edge", None),
    ]  # fmt: skip


def test_an_edge_that_may_have_either_channel_is_in_no_cycle() -> None:
    graph = parse_graph("a:nope b:nope", "a>b", "b>a")
    found = told(broken(graph, edge(0, "data")))
    assert found == [
        ("unknown-node-type", "/nodes/0/type"), ("unknown-node-type", "/nodes/1/type"), NO_CHANNEL,
    ]  # fmt: skip


@pytest.mark.parametrize("place", [edge(0, "label", 1), node(0, "label", 1)])
def test_a_cycle_of_edges_that_were_read_is_reported(place: tuple[str, int, str, Any]) -> None:
    assert ("flow-cycle", "/nodes/0") in told(broken(parse_graph("a b", "a>b", "b>a"), place))


def test_the_readable_fields_of_an_edge_are_checked() -> None:
    graph = parse_graph("a b", "a.nope>ghost")
    assert told(broken(graph, edge(0, "data", {"channel": "wire"}))) == [
        ("unknown-channel", "/edges/0/data/channel"),
        ("dangling-edge", "/edges/0/target"),
    ]
    assert told(broken(graph, edge(0, "source"))) == [
        ("missing-field", "/edges/0/source"),
        ("dangling-edge", "/edges/0/target"),
    ]
    assert told(broken(graph, edge(0, "target"))) == [
        ("missing-field", "/edges/0/target"),
        ("unknown-handle", "/edges/0/sourceHandle"),
    ]
    lost_handle = broken(parse_graph("g:gear a", "g>a"), edge(0, "sourceHandle", 5))
    assert told(lost_handle) == [
        ("invalid-field", "/edges/0/sourceHandle"),
        ("channel-mismatch", "/edges/0/data/channel"),
    ]


FED = parse_graph("a x:strict", "a>x.need")
UNFED = parse_graph("a x:strict")


@pytest.mark.parametrize(
    ("graph", "places"),
    [
        (FED, [edge(0, "target", 5)]),
        (FED, [edge(0, "targetHandle", "")]),
        (FED, [edge(0, "targetHandle"), edge(0, "target_handle", "need")]),
        (FED, [node(1, "id")]),
        (UNFED, [node(1, "values", {})]),
        (UNFED, [node(1, "data", [])]),
    ],
)
def test_an_input_that_may_have_been_written_is_not_missed(graph: Graph, places: Any) -> None:
    assert "missing-required-input" not in [code for code, _ in told(broken(graph, *places))]


@pytest.mark.parametrize(
    "place",
    [
        edge(0, "source", 3), edge(0, "sourceHandle", 3), node(0, "polcy", {}), node(0, "data", 1),
    ],
)  # fmt: skip
def test_an_error_may_be_handled_where_the_node_or_its_edges_were_not_read(
    place: tuple[str, int, str, Any],
) -> None:
    graph = parse_graph("a b", "a.error>b")
    document = broken(graph, node(0, "policy", CONTINUE), place)
    assert "error-unhandled" not in [code for code, _ in told(document)]


def test_an_edge_with_an_unread_source_may_leave_any_node_but_leads_into_one() -> None:
    graph = parse_graph("a b x:strict", "a.error>b", "a>b")
    policies = node(0, "policy", CONTINUE), node(2, "policy", CONTINUE)
    assert told(broken(graph, *policies, node(0, "ui", 1))) == [
        ("invalid-field", "/nodes/0/ui"),
        ("error-unhandled", "/nodes/2/policy/onError"),
        ("missing-required-input", "/nodes/2"),
    ]
    assert told(broken(graph, *policies, edge(1, "source", 3))) == [
        ("missing-required-input", "/nodes/2"),
        ("invalid-field", "/edges/1/source"),
    ]


def test_an_input_that_no_unread_edge_can_bring_is_missed() -> None:
    graph = parse_graph("a x:strict y:strict b", "a>x.need", "a>b")
    document = broken(graph, edge(0, "data"), edge(1, "targetHandle", 1), node(0, "label", "A"))
    assert ("missing-required-input", "/nodes/2") in told(document)
    assert ("missing-required-input", "/nodes/1") not in told(document)


def test_without_edges_nothing_is_missed_and_without_nodes_nothing_dangles() -> None:
    graph = parse_graph("a x:strict c:nope", "a>x")
    document = broken(graph, node(0, "policy", CONTINUE))
    edges = document.pop("edges")
    assert told(document) == [("unknown-node-type", "/nodes/2/type"), ("missing-field", "/edges")]
    assert told({"nodes": {}, "edges": edges}) == [("invalid-field", "/nodes")]
    assert told({"nodes": [], "edges": 1}) == [
        ("empty-graph", "/nodes"), ("invalid-field", "/edges"),
    ]  # fmt: skip


def test_a_policy_under_a_wrong_name_counts_as_unread() -> None:
    graph = parse_graph("a b", "a.error>b")
    assert told(broken(graph, node(0, "polcy", {}))) == [("unknown-field", "/nodes/0/polcy")]


@pytest.mark.parametrize(
    "place",
    [edge(0, "target", 5), edge(1, "data"), node(0, "id"), node(0, "type"), node(1, "label", 1)],
)
def test_what_descendants_of_a_partial_node_receive_is_not_known(
    place: tuple[str, int, str, Any],
) -> None:
    edges = "f.way-0>a", "a>b", "a>c", "b>d.only", "c>d.only", "a.error>e"
    sound = parse_graph("f:fork a b c d e", *edges)
    assert told(broken(sound, node(3, "ui", 1))) == [
        ("invalid-field", "/nodes/3/ui"),
        ("unreachable-node", "/nodes/5"),
        ("too-many-inputs", "/edges/4"),
    ]
    assert len(told(broken(sound, place))) == 1


def test_edges_to_a_node_without_an_id_do_not_dangle() -> None:
    graph = parse_graph("a b c", "a>b", "b>c")
    assert told(broken(graph, node(1, "id"))) == [("missing-field", "/nodes/1/id")]
    assert told(broken(graph, node(1, "id", "x" * 300))) == [("invalid-id", "/nodes/1/id")]
    document = graph.to_document()
    document["nodes"][1] = "b"
    assert told(document) == [("invalid-field", "/nodes/1")]


def test_an_id_that_cannot_stay_and_that_no_edge_means_may_be_any() -> None:
    graph = parse_graph("a b", "a>other")
    assert told(broken(graph, node(1, "id", "!"))) == [("invalid-id", "/nodes/1/id")]


def test_an_invalid_id_hides_no_edge_that_leads_elsewhere() -> None:
    graph = parse_graph("a b", "a>zz")
    assert told(broken(graph, node(1, "id", "b ad"))) == [
        ("invalid-id", "/nodes/1/id"),
        ("dangling-edge", "/edges/0/target"),
    ]


@pytest.mark.parametrize("node_id", ["b!", " b", "B#"])
def test_edges_may_name_a_node_whose_id_is_malformed(node_id: str) -> None:
    graph = parse_graph("a b c:strict", "a>b", "b>c.need", "a>ghost")
    document = broken(graph, node(1, "id", node_id))
    assert told(document) == [("invalid-id", "/nodes/1/id"), ("dangling-edge", "/edges/2/target")]


def test_edges_may_name_either_of_two_nodes_with_one_id() -> None:
    graph = parse_graph("a b c x:strict", "a>b", "c>a", "b>c", "b>x.need")
    assert told(broken(graph, node(2, "id", "b"))) == [("duplicate-id", "/nodes/2/id")]
    both = parse_graph("a b:strict b:number", "a.nope>b.nope")
    assert told(broken(both, node(0, "ui", 1))) == [
        ("invalid-field", "/nodes/0/ui"),
        ("duplicate-id", "/nodes/2/id"),
        ("unknown-handle", "/edges/0/sourceHandle"),
    ]


def test_a_type_that_was_not_read_is_not_unknown() -> None:
    assert told(broken(parse_graph("a b", "a>b"), node(0, "type"))) == [
        ("missing-field", "/nodes/0/type")
    ]


def test_a_node_without_an_id_is_named_by_its_place_alone() -> None:
    _, found = read_and_check(broken(parse_graph("a b:nope"), node(1, "id")), FakeNodeTypes())
    assert [(d.code, d.pointer, d.node) for d in found] == [
        ("missing-field", "/nodes/1/id", None),
        ("unknown-node-type", "/nodes/1/type", None),
    ]


def says(*findings: Diagnostic) -> FakeNodeTypes:
    """Give a catalogue that finds the same in the node ``x``, whatever the graph."""

    def said(node: Node, graph: Graph) -> list[Diagnostic]:
        return list(findings) if node.id == "x" else []

    return FakeNodeTypes(said)


NEEDS = Diagnostic("missing-required-input", "error", "needs text", "/data/text")
NOT_TEXT = Diagnostic("own-code", "error", "not so", "/data/text/0")
TOO_MANY = Diagnostic("limit-exceeded", "error", "too long", "/policy/timeoutS")
FEW = Diagnostic("own-code", "error", "takes two", "/data")
ALL = Diagnostic("own-code", "error", "all wrong")
ODD = Diagnostic("odd", "warning", "odd", "/data/text")
UNDEFINED = Diagnostic("template-undefined", "error", "no foo", "/data/text")
APART = Diagnostic("not-an-ancestor", "error", "not before it", "/data/text")
NO_OUTPUT = Diagnostic("unknown-handle", "error", "no such output", "/data/text")
FINDINGS = (NEEDS, NOT_TEXT, TOO_MANY, FEW, ALL, ODD, UNDEFINED, APART, NO_OUTPUT)


@pytest.mark.parametrize(
    ("place", "left"),
    [
        (node(0, "ui", 1), FINDINGS),
        (node(3, "label", "Y"), FINDINGS),
        *(
            (place, (NOT_TEXT, TOO_MANY, ALL))
            for place in (
                node(1, "label", "X"), node(1, "data", 1), node(1, "policy", 1),
                edge(1, "source", 1), edge(1, "targetHandle", 1),
                edge(0, "source", 1), node(2, "policy", 1),
            )
        ),
    ],
)  # fmt: skip
def test_of_a_partial_node_only_findings_about_one_field_are_kept(
    place: tuple[str, int, str, Any], left: tuple[Diagnostic, ...]
) -> None:
    graph = parse_graph("b x a y", "a>b", "b>x", "x>y")
    _, found = read_and_check(broken(graph, place), says(*FINDINGS))
    reported = {(d.code, d.message) for d in found}
    assert [f for f in FINDINGS if (f.code, f.message) in reported] == list(left)


def test_one_unsound_field_does_not_keep_the_others_of_the_data_from_being_checked() -> None:
    document = parse_graph("x").to_document()
    document["nodes"][0]["data"] = {"text": ["x"], "more": {1}, 3: "x"}
    _, found = read_and_check(document, says(NOT_TEXT, NEEDS))
    assert [d.code for d in found] == ["not-json-value", "not-json-value", "own-code"]


def test_places_are_those_of_the_document_also_behind_a_dropped_edge() -> None:
    document = parse_graph("a b c:nope", "a>b", "a>b", "b>c", "b>ghost").to_document()
    _, found = read_and_check(document, FakeNodeTypes())
    assert [(d.code, d.pointer) for d in found] == [
        ("unknown-node-type", "/nodes/2/type"),
        ("duplicate-edge", "/edges/1"),
        ("dangling-edge", "/edges/3/target"),
    ]
    document["edges"][2]["data"] = {}
    assert told(document) == [
        ("unknown-node-type", "/nodes/2/type"),
        ("duplicate-edge", "/edges/1"),
        ("missing-channel", "/edges/2/data/channel"),
        ("dangling-edge", "/edges/3/target"),
    ]
