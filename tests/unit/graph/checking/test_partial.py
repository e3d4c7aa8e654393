"""What could not be read explains nothing away but what it may really be the cause of."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Node
from tests.support.graph.fake_catalog import FakeNodeCatalog, parse_graph

CONTINUE = {"onError": "continue"}
AWAY = object()
"""For :func:`broken`: the field is left out."""


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


def told(document: Any, catalogue: FakeNodeCatalog | None = None) -> list[tuple[str, str]]:
    graph, found = read_and_check(document, catalogue or FakeNodeCatalog())
    assert graph is None
    return [(d.code, d.pointer) for d in found]


NO_CHANNEL = "missing-channel", "/edges/0/data/channel"


def test_an_edge_has_the_only_channel_that_its_ends_leave_open() -> None:
    graph = parse_graph("a b", "a>b", "b>a")
    assert told(broken(graph, edge(0, "data"))) == [("flow-cycle", "/nodes/0"), NO_CHANNEL]
    links = parse_graph("g:gear h:gear", "g.gear~h.gears", "h.gear~g.gears")
    assert told(broken(links, edge(0, "data"))) == [("link-cycle", "/nodes/0"), NO_CHANNEL]


def test_an_edge_that_may_have_either_channel_is_in_no_cycle() -> None:
    graph = parse_graph("a:nope b:nope", "a>b", "b>a")
    found = told(broken(graph, edge(0, "data")))
    assert found == [
        ("unknown-node-type", "/nodes/0/type"), ("unknown-node-type", "/nodes/1/type"), NO_CHANNEL,
    ]  # fmt: skip


def test_ends_that_no_channel_fits_are_a_fault_beside_the_missing_one() -> None:
    graph = parse_graph("a u:user", "a>u.gears")
    assert told(broken(graph, edge(0, "data"))) == [NO_CHANNEL, ("channel-mismatch", "/edges/0")]


def test_what_an_unsure_edge_does_say_is_checked() -> None:
    graph = parse_graph("a b", "a.nope>ghost")
    assert told(broken(graph, edge(0, "data", {"channel": "wire"}))) == [
        ("unknown-channel", "/edges/0/data/channel"),
        ("dangling-edge", "/edges/0/target"),
        ("unknown-handle", "/edges/0/sourceHandle"),
    ]
    assert told(broken(graph, edge(0, "source"))) == [
        ("missing-field", "/edges/0/source"),
        ("dangling-edge", "/edges/0/target"),
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


@pytest.mark.parametrize("field", [edge(0, "sourceHandle", 3), edge(0, "source", 3)])
def test_an_error_may_be_handled_by_an_edge_that_could_not_be_read(
    field: tuple[str, int, str, Any],
) -> None:
    graph = parse_graph("a b", "a.error>b")
    document = broken(graph, field, node(0, "policy", CONTINUE), node(1, "policy", CONTINUE))
    handled = [pointer for code, pointer in told(document) if code == "error-unhandled"]
    assert handled == ([] if field[2] == "source" else ["/nodes/1/policy/onError"])


@pytest.mark.parametrize(
    ("policy", "codes"),
    [
        ({"on_error": "continue"}, ["unknown-field"]),
        ({"onError": "continu"}, ["invalid-field"]),
        ([], ["invalid-field"]),
    ],
)
def test_a_policy_that_was_not_read_may_be_the_one_that_is_needed(
    policy: Any, codes: list[str]
) -> None:
    graph = parse_graph("a b c d", "a.error>b", "a>c.only", "d>c.only")
    sound = told(broken(graph, node(3, "ui", 1)))
    assert [code for code, _ in sound] == [
        "unreachable-node", "invalid-field", "unknown-handle", "too-many-inputs",
    ]  # fmt: skip
    document = broken(graph, node(0, "policy", policy), node(2, "policy", policy))
    assert [code for code, _ in told(document)] == codes * 2


def test_a_policy_under_a_wrong_name_counts_as_unread() -> None:
    graph = parse_graph("a b", "a.error>b")
    assert told(broken(graph, node(0, "polcy", {}))) == [("unknown-field", "/nodes/0/polcy")]


def test_what_was_read_of_a_faulty_policy_is_held_against_the_graph() -> None:
    policy = {"onError": "continue", "timeoutS": -1}
    assert told(broken(parse_graph("a"), node(0, "policy", policy))) == [
        ("invalid-field", "/nodes/0/policy/timeoutS"),
        ("error-unhandled", "/nodes/0/policy/onError"),
    ]


def test_a_node_that_an_unread_edge_may_reach_can_start() -> None:
    graph = parse_graph("a b c", "a.error>b", "c>b")
    found = [code for code, _ in told(broken(graph, edge(1, "target", 7)))]
    assert found == ["unknown-handle", "invalid-field"]


@pytest.mark.parametrize(
    ("graph", "place"),
    [
        # b may be one way of the choice, so that not both ways are taken
        (parse_graph("f:fork a b c", "f.way-0>a", "f.way-1>b", "a>c.only", "b>c.only"),
         edge(1, "target", 5)),
        # the join before c keeps what is known of its other ways
        (parse_graph("f:fork a b m c", "f.way-0>a", "f.way-1>b", "b>m", "a>c.only", "m>c.only"),
         edge(1, "target", 5)),
        # which way is taken is not known
        (parse_graph("f:fork c", "f.way-0>c.only", "f.way-0>c.only", "f.way-1>c.only"),
         edge(1, "sourceHandle", 5)),
        # whether there is a choice is not known
        (parse_graph("f:fork c", "f.way-0>c.only", "f.way-1>c.only"), node(0, "type", 5)),
        # whether c is reached by the edge is not known
        (parse_graph("a b c", "a>c.only", "b>c.only"), edge(1, "target", 5)),
        (parse_graph("a b c", "a>c.only", "b>c.only"), node(1, "id")),
    ],
)  # fmt: skip
def test_values_that_may_not_come_together_are_not_too_many(
    graph: Graph, place: tuple[str, int, str, Any]
) -> None:
    assert len(told(broken(graph, place))) == 1


@pytest.mark.parametrize("place", [edge(0, "data"), node(0, "type"), edge(0, "label", 1)])
def test_values_that_come_together_in_any_case_are_too_many(
    place: tuple[str, int, str, Any],
) -> None:
    graph = parse_graph("f:fork r a b c", "f.way-0>r", "r>a", "r>b", "a>c.only", "b>c.only")
    assert ("too-many-inputs", "/edges/4") in told(broken(graph, place))


def test_a_join_of_unknown_ways_is_unknown_and_of_some_known_ones_what_these_share() -> None:
    fork = "f.way-0>a", "f.way-1>b", "x>a", "a>c.only", "b>c.only"
    graph = parse_graph("f:fork x a b c z", *fork, "z>x")
    assert len(told(broken(graph, edge(5, "target", 5)))) == 1
    graph = parse_graph("x y a b c z", "x>a", "y>a", "a>c.only", "b>c.only", "z>x", "z>y")
    assert len(told(broken(graph, edge(4, "target", 5), edge(5, "target", 5)))) == 2


def test_a_linked_node_that_an_unread_flow_edge_may_leave_holds_nobody_back() -> None:
    graph = parse_graph("u:user h:user a", "u>a", "a>h", "h.gear~u.gears", "h>a")
    sound = parse_graph("u:user h:user a", "u>a", "a>h", "h.gear~u.gears")
    assert [c for c, _ in told(broken(sound, node(2, "ui", 1)))] == ["flow-cycle", "invalid-field"]
    assert [c for c, _ in told(broken(graph, edge(3, "target", 1)))] == ["invalid-field"]
    links = parse_graph("g:user h:user u:user a", "g.gear~u.motor", "h.gear~u.motor", "g>a")
    assert [c for c, _ in told(broken(links, edge(2, "target", 1)))] == ["invalid-field"]


def test_edges_to_a_node_without_an_id_do_not_dangle() -> None:
    graph = parse_graph("a b c", "a>b", "b>c")
    assert told(broken(graph, node(1, "id"))) == [("missing-field", "/nodes/1/id")]
    assert told(broken(graph, node(1, "id", "x" * 300))) == [("invalid-id", "/nodes/1/id")]
    document = graph.to_document()
    document["nodes"][1] = "b"
    assert told(document) == [("invalid-field", "/nodes/1")]


def test_more_names_than_nodes_without_an_id_are_told_together() -> None:
    graph = parse_graph("a b c", "a>b", "b>c", "a>ghost")
    _, found = read_and_check(broken(graph, node(1, "id")), FakeNodeCatalog())
    assert [(d.code, d.pointer) for d in found] == [
        ("missing-field", "/nodes/1/id"), ("dangling-edge", "/edges"),
    ]  # fmt: skip
    assert "2 ids that no node has ('b', 'ghost')" in found[1].message


@pytest.mark.parametrize("node_id", ["b!", " b", "B#"])
def test_edges_go_by_an_id_that_cannot_stay(node_id: str) -> None:
    graph = parse_graph("a b c:strict", "a>b", "b>a", "b>c.need")
    document = broken(graph, node(1, "id", node_id))
    assert told(document) == [("flow-cycle", "/nodes/0"), ("invalid-id", "/nodes/1/id")]


def test_an_id_that_cannot_stay_and_that_no_edge_means_may_be_any() -> None:
    graph = parse_graph("a b", "a>other")
    assert told(broken(graph, node(1, "id", "!"))) == [("invalid-id", "/nodes/1/id")]


def test_edges_of_an_id_that_is_taken_may_mean_either_node() -> None:
    graph = parse_graph("a b c x:strict", "a>b", "c>a", "b>c", "b>x.need")
    document = broken(graph, node(2, "id", "b"))
    assert told(document) == [("duplicate-id", "/nodes/2/id")]
    both = parse_graph("a b:strict b:number", "a.nope>b.nope")
    assert told(broken(both, node(0, "ui", 1))) == [
        ("invalid-field", "/nodes/0/ui"),
        ("missing-required-input", "/nodes/1"),
        ("duplicate-id", "/nodes/2/id"),
        ("unknown-handle", "/edges/0/sourceHandle"),
    ]


def test_a_type_that_was_not_read_is_not_unknown() -> None:
    assert told(broken(parse_graph("a b", "a>b"), node(0, "type"))) == [
        ("missing-field", "/nodes/0/type")
    ]


def test_a_node_without_an_id_is_named_by_its_place_alone() -> None:
    _, found = read_and_check(broken(parse_graph("a b:nope"), node(1, "id")), FakeNodeCatalog())
    assert [(d.code, d.pointer, d.node) for d in found] == [
        ("missing-field", "/nodes/1/id", None),
        ("unknown-node-type", "/nodes/1/type", None),
    ]


def says(*findings: Diagnostic) -> FakeNodeCatalog:
    """Give a catalogue that finds the same in the node ``x``, whatever the graph."""

    def said(node: Node, graph: Graph) -> list[Diagnostic]:
        return list(findings) if node.id == "x" else []

    return FakeNodeCatalog(said)


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
    ("places", "left"),
    [
        ([node(0, "ui", 1)], FINDINGS),
        ([node(1, "label", "X")], (NOT_TEXT, TOO_MANY, UNDEFINED, APART, NO_OUTPUT)),
        ([node(1, "description", 1)], (NOT_TEXT, TOO_MANY, UNDEFINED, APART, NO_OUTPUT)),
        ([node(1, "data", 1)], (TOO_MANY, APART)),
        ([edge(1, "source", 1)], (NOT_TEXT, TOO_MANY, NO_OUTPUT)),
        ([edge(1, "targetHandle", 1)], (TOO_MANY,)),
        ([edge(0, "source", 1)], tuple(f for f in FINDINGS if f is not APART)),
        ([node(0, "policy", 1)], tuple(f for f in FINDINGS if f is not NO_OUTPUT)),
        ([node(1, "policy", 1)], tuple(f for f in FINDINGS if f is not ODD)),
    ],
)
def test_a_finding_of_a_type_counts_unless_what_was_not_read_may_explain_it(
    places: list[tuple[str, int, str, Any]], left: tuple[Diagnostic, ...]
) -> None:
    graph = parse_graph("b x a", "a>b", "b>x")
    document = graph.to_document()
    document["nodes"][1]["data"] = {"text": ["x"]}
    for name, number, field, value in places:
        document[name][number][field] = value
    _, found = read_and_check(document, says(*FINDINGS))
    said = {(d.code, d.message) for d in found}
    assert [f for f in FINDINGS if (f.code, f.message) in said] == list(left)


def test_one_unsound_field_does_not_keep_the_others_of_the_data_from_being_checked() -> None:
    document = parse_graph("x").to_document()
    document["nodes"][0]["data"] = {"text": ["x"], "more": {1}, 3: "x"}
    _, found = read_and_check(document, says(NOT_TEXT, NEEDS))
    assert [d.code for d in found] == ["not-json-value", "not-json-value", "own-code"]


def test_places_are_those_of_the_document_also_behind_a_dropped_edge() -> None:
    document = parse_graph("a b c", "a>b", "a>b", "b>c", "b>ghost").to_document()
    _, found = read_and_check(document, FakeNodeCatalog())
    assert [(d.code, d.pointer) for d in found] == [
        ("duplicate-edge", "/edges/1"), ("dangling-edge", "/edges/3/target"),
    ]  # fmt: skip
    document["edges"][2]["data"] = {}
    assert told(document) == [
        ("duplicate-edge", "/edges/1"),
        ("missing-channel", "/edges/2/data/channel"),
        ("dangling-edge", "/edges/3/target"),
    ]
