from __future__ import annotations

from planwave.graph.model import LINK, Edge, Graph, Node
from planwave.nodes.checking.branch_handles import check_named_handles, check_numbered_handles
from planwave.nodes.checking.node_view import GraphIndex, NodeView
from tests.support.graph.builders import make_edge

NODE = Node("n", "router", "N")


def leaving(*handles: str, channel: str = "flow") -> NodeView:
    """Return a node whose edges leave through some handles."""
    edges: tuple[Edge, ...] = tuple(
        make_edge("n", f"t{i}", source_handle=handle, channel=channel, edge_id=f"e{i}")  # type: ignore[arg-type]
        for i, handle in enumerate(handles)
    )
    return NodeView(NODE, GraphIndex(Graph((NODE,), edges), {}))


def test_an_edge_through_a_number_without_a_branch_is_an_error() -> None:
    view = leaving("case-0", "case-1", "default", "error", "other", "case-2", "case-x")
    findings = list(check_numbered_handles("case-", 2, "default", view))
    assert [(f.code, f.edge, f.pointer, f.message, f.hint) for f in findings] == [
        (
            "unknown-handle",
            edge,
            "/sourceHandle",
            f"'n' has no output {handle!r}; it has only 2 branches",
            "use one of case-0, case-1, default",
        )
        for edge, handle in (("e5", "case-2"), ("e6", "case-x"))
    ]


def test_the_hint_lists_only_the_first_of_many_branches() -> None:
    (finding,) = check_numbered_handles("c-", 100, "else", leaving("c-100"))
    assert finding.hint is not None
    assert finding.hint.startswith("use one of c-0, ")
    assert finding.hint.endswith(", c-11, else")


def test_an_edge_through_an_undeclared_name_is_an_error() -> None:
    view = leaving("yes", "no", "error", "yess", "entirely different")
    near, far = check_named_handles(["yes", "no"], view)
    assert (near.code, near.edge, near.pointer) == ("unknown-handle", "e3", "/sourceHandle")
    assert near.message == "'n' has no output 'yess'; its outputs are yes, no"
    assert near.hint == "did you mean 'yes'?"
    assert far.hint == 'write "sourceHandle": "yes"; in Python, connect node["yes"]'


def test_links_are_not_checked_against_branches() -> None:
    view = leaving("case-9", "what", channel=LINK)
    assert list(check_numbered_handles("case-", 1, "default", view)) == []
    assert list(check_named_handles(["yes"], view)) == []
