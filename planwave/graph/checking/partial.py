"""Drop findings that unreadable parts of a document may have caused.

The rule is that of compilers for erroneous types. A node is *partial* if a field of it could not be
read, if its id is doubtful (missing, malformed or shared), or if an edge that may name it could not
be read. What a partial node receives is not known, and neither is what its descendants receive:
findings that compare these nodes with their edges or with other nodes, and findings about their data
as a whole, are dropped until the rest of the document can be read. Findings about one field, one edge
or a cycle are reported in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, is_id
from planwave.graph.reading.unreadable import PLACEHOLDER_PREFIX, UNREADABLE
from planwave.graph.suggestions import MAX_SUGGESTIONS, closest_match, normalized

_CROSS_REFERENCES: Final = frozenset(
    {
        "error-unhandled",
        "missing-required-input",
        "not-an-ancestor",
        "template-undefined",
        "too-many-inputs",
        "unavailable-provider",
        "unknown-handle",
        "unknown-model",
        "unknown-provider",
        "unreachable-node",
    }
)
"""Codes of errors in how a node fits its edges and other nodes, and in data that edges may replace."""
_ABOUT_INPUTS: Final = frozenset(
    {"missing-required-input", "not-an-ancestor", "template-undefined", "unreachable-node"}
)
"""Codes of errors that one more edge into a node, or into a node before it, would correct."""
_ABOUT_OUTPUTS: Final = frozenset({"error-unhandled", "unused-decision", "unused-retry"})
"""Codes that an edge with an unread source may explain, whichever node it leaves."""


class PartialGraph:
    """A graph of which some nodes or edges could not be read completely. Built in O(V + E).

    Args:
        graph: All nodes and edges of the document, with ``UNREADABLE`` in the unread fields.
        partial_ids: Ids of nodes with an unread field or a malformed id.

    Attributes:
        unsure_ends: Ends of edges that may name any of several nodes.
    """

    def __init__(self, graph: Graph, partial_ids: Iterable[str]) -> None:
        self.unsure_ends = _unsure_ends(graph)
        unread = [
            edge
            for edge in graph.edges
            if UNREADABLE in edge[1:6]
            or not self.unsure_ends.isdisjoint((edge.source, edge.target))
        ]
        sources, targets = {edge.source for edge in unread}, {edge.target for edge in unread}
        self._any_outputs = UNREADABLE in sources
        partial = {*partial_ids, *((self.unsure_ends | sources) - {UNREADABLE}), *targets}
        self._partial = _with_descendants(partial, graph)
        """With ``UNREADABLE`` if an edge may lead into any node."""

    def keeps(self, finding: Diagnostic) -> bool:
        """Return whether a finding is certain; warnings about a partial node never are."""
        is_error = finding.severity == "error"
        if finding.node is None:
            return is_error
        is_about_all_data = finding.pointer.endswith("/data")
        if is_error and finding.code not in _CROSS_REFERENCES and not is_about_all_data:
            return True
        if self._any_outputs and finding.code in _ABOUT_OUTPUTS:
            return False
        return self._partial.isdisjoint((finding.node, UNREADABLE))


def without_consequences(findings: list[Diagnostic], graph: Graph) -> list[Diagnostic]:
    """Drop missing inputs that an edge with a misspelt end explains: correct the edge first.

    Such an edge leads to the node whose id is closest to the misspelt one, or to its own target. Only
    the ends that the check suggests ids for are compared: each comparison takes long.
    """
    dangling = {each.edge for each in findings if each.code == "dangling-edge"}
    if not dangling or all(each.code not in _ABOUT_INPUTS for each in findings):
        return findings
    ends = {edge.target: None for edge in graph.edges if edge.id in dangling}  # in order
    misspelt = [end for end in ends if end not in graph.by_id][:MAX_SUGGESTIONS]
    near = {closest_match(end, graph.by_id) for end in misspelt}
    receivers = (ends.keys() & graph.by_id.keys()) | (near - {None})
    affected = _with_descendants((each for each in receivers if each is not None), graph)
    return [
        each for each in findings if each.code not in _ABOUT_INPUTS or each.node not in affected
    ]


def _unsure_ends(graph: Graph) -> set[str]:
    """Return the ends of edges that may name a node with a missing, malformed or shared id.

    A malformed id with letters or digits is meant by the ends that are alike; any other one may be meant by all.
    """
    times = Counter(node.id for node in graph.nodes)
    shared = {node_id for node_id, count in times.items() if count > 1}
    malformed = {node_id for node_id in times if not is_id(node_id)}
    ends = {end for edge in graph.edges for end in (edge.source, edge.target)}
    ends -= times.keys() - malformed
    similar = {normalized(node_id) for node_id in malformed}
    may_be_any = shared or any(
        node_id.startswith(PLACEHOLDER_PREFIX) or not normalized(node_id) for node_id in malformed
    )
    unknown = {end for end in ends - malformed if may_be_any or normalized(end) in similar}
    return {UNREADABLE} | shared | unknown


def _with_descendants(starts: Iterable[str], graph: Graph) -> set[str]:
    members = set(starts)
    stack = list(members)
    while stack:
        new = {edge.target for edge in graph.outgoing.get(stack.pop(), ())} - members
        members |= new
        stack += new
    return members
