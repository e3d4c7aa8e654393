"""Check a graph against a catalogue: every error at once, each with its pointer and a hint.

The planner, the API, the editor and the executor use the same check. Errors that only a node type
can find (data, templates, providers) come from ``catalogue.check``; errors in how nodes and edges
fit together are found here. Linear in nodes and edges, without recursion.

If parts of a document could not be read, the rest is checked; ``partial.py`` drops findings that the
unreadable parts may cause.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from planwave.errors import GraphInvalid
from planwave.graph.checking.cycles import cycle_diagnostics
from planwave.graph.checking.edges import (
    CHECK_EACH,
    COMPATIBLE,
    EdgeCheck,
    EdgeKind,
    check_edge_kind,
)
from planwave.graph.checking.exclusive import ExclusiveBranches
from planwave.graph.checking.inputs import (
    missing_inputs,
    nothing_to_pass_on,
    too_many_inputs,
    unreachable_nodes,
)
from planwave.graph.checking.partial import PartialGraph, without_consequences
from planwave.graph.checking.policies import check_policies
from planwave.graph.diagnostics import Diagnostic, limit_exceeded, short_repr, sorted_by_location
from planwave.graph.flow_inputs import flow_inputs_of
from planwave.graph.model import ERROR_HANDLE, LINK, Edge, Graph, Json, Node
from planwave.graph.ports import outputs_of
from planwave.graph.protocols import NodeTypeInfo, NodeTypes
from planwave.graph.reading.documents import read_lenient
from planwave.graph.reading.fields import duplicate_ids
from planwave.graph.reading.unreadable import PLACEHOLDER_PREFIX, UNREADABLE
from planwave.graph.suggestions import (
    LOAD_OWN_TYPE,
    MAX_SUGGESTIONS,
    Correction,
    closest_match,
    edge_removal,
    edge_suggestion,
    node_suggestion,
)
from planwave.graph.topology import Topology, topology_of

if TYPE_CHECKING:
    from planwave.settings import Limits


def read_and_check(
    source: str | bytes | Mapping[str, Json] | Graph,
    catalogue: NodeTypes,
    limits: Limits | None = None,
) -> tuple[Graph | None, list[Diagnostic]]:
    """Read a graph document and find every error in its JSON, its fields and the graph.

    A finding that unreadable parts may have caused is omitted (see ``partial.py``). A document that is not strict
    JSON or not an object, or exceeds a limit as a whole, gets only that finding.

    Args:
        source: The document, as for ``read_lenient``; or a graph made in code.
        catalogue: See ``check``.
        limits: The configured limits, or None.

    Returns:
        The graph, or None if part of it could not be read; and every finding, in document order.
        The graph can run if no finding has severity ``error``.
    """
    if isinstance(source, Graph):
        return source, check(source, catalogue, limits)
    try:
        graph, findings, partial_ids, edge_indexes = read_lenient(source, limits=limits)
    except GraphInvalid as error:
        return None, list(error.diagnostics)
    findings += _findings(graph, catalogue, limits, partial_ids, edge_indexes)
    return graph if partial_ids is None else None, sorted_by_location(findings)


def check(graph: Graph, catalogue: NodeTypes, limits: Limits | None = None) -> list[Diagnostic]:
    """Find every error of a graph.

    Args:
        graph: Any graph, also one that was not made by ``read_graph``.
        catalogue: The node types; ``catalogue.check`` is called once for each node of a known type.
        limits: The configured limits, or None. Too many nodes or edges are reported alone.

    Returns:
        Findings in document order; for one node, those of its type come last. The graph can run if
        no finding has severity ``error``.
    """
    return sorted_by_location(_findings(graph, catalogue, limits))


def _findings(
    graph: Graph,
    catalogue: NodeTypes,
    limits: Limits | None,
    partial_ids: Set[str] | None = None,
    edge_indexes: Sequence[int] | None = None,
) -> list[Diagnostic]:
    """Check a graph; for ``partial_ids`` and ``edge_indexes`` see ``ReadResult``."""
    if limits is not None and (too_many := _too_many(graph, limits)):
        return too_many
    findings: list[Diagnostic] = []
    if partial_ids is None and len(graph.by_id) != len(graph.nodes):
        findings += duplicate_ids([node.id for node in graph.nodes], "nodes")
        partial_ids = frozenset()
    partial = None if partial_ids is None else PartialGraph(graph, partial_ids)
    checker = GraphChecker(
        graph, catalogue, frozenset() if partial is None else partial.unsure_ends
    )
    findings += checker.check_structure(limits)
    findings += checker.check_nodes()
    if edge_indexes is not None:
        findings = [_at_document_index(finding, edge_indexes) for finding in findings]
    findings = without_consequences(findings, graph)
    if partial is None:
        return findings
    return [_without_placeholder_id(finding) for finding in findings if partial.keeps(finding)]


def _too_many(graph: Graph, limits: Limits) -> list[Diagnostic]:
    counts = (("nodes", limits.nodes, graph.nodes), ("edges", limits.edges, graph.edges))
    return [
        limit_exceeded(name, maximum, len(items), name, f"/{name}")
        for name, maximum, items in counts
        if len(items) > maximum
    ]


def _at_node(finding: Diagnostic, node: Node, index: int) -> Diagnostic:
    pointer = f"/nodes/{index}{finding.pointer}"
    return replace(finding, pointer=pointer, node=finding.node or node.id)


def _about_edge(finding: Diagnostic, edge: Edge, index: int) -> Diagnostic:
    message = f"edge {edge.id!r} ({_edge_text(edge)}): {finding.message}"
    return replace(finding, message=message, pointer=f"/edges/{index}{finding.pointer}")


def _at_document_index(finding: Diagnostic, edge_indexes: Sequence[int]) -> Diagnostic:
    """Return a finding whose pointer has an edge's position in the document, not in the graph."""
    parts = finding.pointer.split("/", 3)
    if len(parts) < 3 or parts[1] != "edges":
        return finding
    parts[2] = str(edge_indexes[int(parts[2])])
    return replace(finding, pointer="/".join(parts))


def _without_placeholder_id(finding: Diagnostic) -> Diagnostic:
    """Return a finding without the placeholder id of a node whose own id could not be read."""
    is_placeholder = finding.node is not None and finding.node.startswith(PLACEHOLDER_PREFIX)
    return replace(finding, node=None, suggestion=None) if is_placeholder else finding


class GraphChecker:
    """One check of a graph; each method finds one family of errors and stores its intermediate results."""

    def __init__(self, graph: Graph, catalogue: NodeTypes, unsure_ends: Set[str]) -> None:
        self.graph = graph
        self.catalogue = catalogue
        kinds = {node.type for node in graph.nodes}
        self.all_infos = {kind: catalogue.type_info(kind) for kind in kinds}
        self.stand_ins = {
            kind for kind, facts in self.all_infos.items() if facts and facts.stands_in
        }
        """The types of which nothing is known, although they are registered."""
        self.type_infos: dict[str, NodeTypeInfo | None] = self.all_infos | dict.fromkeys(
            self.stand_ins
        )
        self.types_by_id = {node.id: node.type for node in graph.nodes}
        self.types_by_id.update(dict.fromkeys(unsure_ends, UNREADABLE))
        self.has_links = False
        self._suggestions_left = MAX_SUGGESTIONS
        self.single_value_edges: list[tuple[int, Edge]] = []
        self.error_edges: list[tuple[int, Edge, bool]] = []

    def check_structure(self, limits: Limits | None) -> list[Diagnostic]:
        """Return the findings about how nodes and edges fit together."""
        findings = self.check_types() + self.check_edges()
        handled = {edge.source for _, edge, _ in self.error_edges}
        findings += check_policies(self.graph, self.type_infos, handled)
        topology = self.build_topology()
        findings += self.check_inputs(topology)
        if self.has_links or len(topology.order) < len(topology):
            findings += cycle_diagnostics(topology)
        dead = {number for number, _, delivers in self.error_edges if not delivers}
        findings += unreachable_nodes(topology, dead)
        if limits is not None and len(topology.order) == len(topology):
            deepest = max(topology.depth, default=-1) + 1
            if deepest > limits.depth:
                what = "longest path of nodes"
                findings.append(limit_exceeded("depth", limits.depth, deepest, what))
        return findings

    def check_nodes(self) -> list[Diagnostic]:
        """Return the findings that only the node types can make."""
        findings: list[Diagnostic] = []
        for number, node in enumerate(self.graph.nodes):
            if self.type_infos[node.type] is not None or node.type in self.stand_ins:
                for finding in self.catalogue.check(node, self.graph):
                    findings.append(self._located(finding, node, number))
        return findings

    def _located(self, finding: Diagnostic, node: Node, number: int) -> Diagnostic:
        for index, edge in enumerate(self.graph.edges) if finding.edge is not None else ():
            if edge.id == finding.edge and node.id in (edge.source, edge.target):
                return _about_edge(finding, edge, index)
        return _at_node(finding, node, number)

    def check_types(self) -> list[Diagnostic]:
        """Return the findings about an empty graph, unknown types and repeated entry types."""
        nodes = self.graph.nodes
        findings: list[Diagnostic] = []
        if not nodes:
            findings.append(Diagnostic("empty-graph", "error", "the graph has no nodes", "/nodes"))
        reportable = {
            kind for kind, facts in self.type_infos.items() if facts is None or facts.entry
        } - self.stand_ins
        declarations = self._declarations() if reportable else frozenset[str]()
        first: dict[str, Node] = {}
        for number, node in enumerate(nodes) if reportable else ():
            if node.type not in reportable or node.type == UNREADABLE:
                continue
            if node.id in declarations:
                continue  # it only declares inputs, wherever the run begins
            if self.type_infos[node.type] is None:
                findings.append(self._unknown_type(node, number))
            elif node.type in first:
                findings.append(_duplicate_entry(first[node.type], node, number))
            else:
                first[node.type] = node
        return findings

    def check_edges(self) -> list[Diagnostic]:
        """Check every edge against its ends; edges of one kind share the result."""
        findings: list[Diagnostic] = []
        kinds = self._kinds_by_id().get
        results: dict[tuple[str | None, str, str | None, str, str], EdgeCheck] = {}
        for number, edge in enumerate(self.graph.edges):
            _, source, source_handle, target, target_handle, channel, _, _ = edge
            kind = (kinds(source), source_handle, kinds(target), target_handle, channel)
            result = results.get(kind)
            if result is None:
                results[kind] = result = self._check_kind(edge)
            if result is not COMPATIBLE:
                self._record(edge, number, result, findings)
        self.has_links = any(kind[4] == LINK for kind in results)
        return findings

    def _kinds_by_id(self) -> Mapping[str, str]:
        """Return what decides about the ports of each node: its type, or the node itself."""
        facts = {
            kind: info for kind, info in self.type_infos.items() if info and info.schema_output
        }
        own = {
            node.id: f"{node.type} {node.id}"
            for node in (self.graph.nodes if facts else ())
            if (info := facts.get(node.type)) and outputs_of(node, info) is not info.outputs
        }
        return self.types_by_id | own if own else self.types_by_id

    def check_inputs(self, topology: Topology) -> list[Diagnostic]:
        """Return the findings about ports with too many or too few inputs."""
        branches = ExclusiveBranches(topology, self.all_infos)
        too_many = too_many_inputs(self.graph, self.single_value_edges, branches)
        missing = missing_inputs(self.graph, self.type_infos)
        return too_many + missing + nothing_to_pass_on(self.graph, self.type_infos)

    def build_topology(self) -> Topology:
        """Return the graph's topology, linked nodes included.

        A node that is made from its inputs cannot wait for its own consumer: its flow edges remain
        prerequisites, so that the cycle is found.
        """
        kinds = {kind for kind, facts in self.type_infos.items() if facts and not facts.executes}
        only = {node.id for node in self.graph.nodes if node.type in kinds} if kinds else set[str]()
        topology = topology_of(self.graph, only)
        made_of_inputs = {
            node_id for node_id in topology.stages_after_consumers() if self._reads_inputs(node_id)
        }
        return topology_of(self.graph, only | made_of_inputs) if made_of_inputs else topology

    def _reads_inputs(self, node_id: str) -> bool:
        facts = self.type_infos.get(self.graph.by_id[node_id].type)
        return facts is not None and not facts.materializes_unresolved

    def _check_kind(self, edge: Edge) -> EdgeCheck:
        ends = self.types_by_id.get(edge.source), self.types_by_id.get(edge.target)
        source, target = (None if kind is None else self.type_infos.get(kind) for kind in ends)
        if source is not None and source.schema_output is not None and ends[0] != UNREADABLE:
            source = source._replace(outputs=outputs_of(self.graph.by_id[edge.source], source))
        kind = EdgeKind(source, edge.source_handle, target, edge.target_handle, edge.channel)
        result = check_edge_kind(kind, self.catalogue)
        depends_on_edge = None in ends or edge.source_handle == ERROR_HANDLE
        return CHECK_EACH if result is COMPATIBLE and depends_on_edge else result

    def _record(
        self, edge: Edge, number: int, result: EdgeCheck, findings: list[Diagnostic]
    ) -> None:
        self._record_findings(edge, number, result, findings)
        if result.single_value and not result.findings:
            self.single_value_edges.append((number, edge))
        if edge.source_handle == ERROR_HANDLE and edge.source in self.graph.by_id:
            self._record_error_edge(edge, number, result, findings)

    def _record_findings(
        self, edge: Edge, number: int, result: EdgeCheck, findings: list[Diagnostic]
    ) -> None:
        for end, field in ((edge.source, "source"), (edge.target, "target")):
            if end not in self.types_by_id:
                findings.append(self._dangling_edge(edge, number, end, field))
        for code, pointer, message, hint, correction in result.findings:
            finding = Diagnostic(
                code,
                "error",
                message,
                pointer,
                edge=edge.id,
                hint=hint,
                suggestion=edge_suggestion(edge, correction),
            )
            findings.append(_about_edge(finding, edge, number))

    def _record_error_edge(
        self, edge: Edge, number: int, result: EdgeCheck, findings: list[Diagnostic]
    ) -> None:
        on_error = self.graph.by_id[edge.source].policy.on_error
        continues = on_error == "continue"
        self.error_edges.append((number, edge, continues or not result.is_error_output))
        if result.is_error_output and not continues:
            findings.append(
                Diagnostic(
                    "unknown-handle",
                    "warning",
                    f"edge {edge.id!r} leaves handle {ERROR_HANDLE!r} of {edge.source!r}, "
                    "which never sends a value from it",
                    f"/edges/{number}/sourceHandle",
                    edge=edge.id,
                    hint=f"let the policy of {edge.source!r} for errors be 'continue'",
                )
            )

    def _suggest(self, name: str, names: Collection[str]) -> str | None:
        self._suggestions_left -= 1
        return closest_match(name, names) if self._suggestions_left >= 0 else None

    def _declarations(self) -> Set[str]:
        """Return the ids of the entry nodes that declare inputs and that no edge leaves."""
        fields = flow_inputs_of(self.graph, self.catalogue).fields
        return {node_id for node_id in fields if not self.graph.outgoing.get(node_id)}

    def _unknown_type(self, node: Node, number: int) -> Diagnostic:
        types = list(self.catalogue.names())
        suggestion = self._suggest(node.type, types)
        message = f"node {node.id!r} has the unknown type {short_repr(node.type)}"
        if suggestion is None:
            listed = f"known types are {', '.join(types)}" if types else "no type is known here"
            message += f"; {listed}"
        hint = f"did you mean {suggestion!r}?" if suggestion else "use one of the known types;"
        hint += f" {LOAD_OWN_TYPE}"
        pointer = f"/nodes/{number}/type"
        correction = None
        if suggestion and self.types_by_id[node.id] == node.type:  # else its id is not certain
            correction = Correction(f"Use type {suggestion}", {"type": suggestion})
        return Diagnostic(
            "unknown-node-type",
            "error",
            message,
            pointer,
            node=node.id,
            hint=hint,
            suggestion=node_suggestion(node.id, correction),
        )

    def _dangling_edge(self, edge: Edge, number: int, end: str, field: str) -> Diagnostic:
        suggestion = self._suggest(end, self.graph.by_id)
        message = f"edge {edge.id!r} ({_edge_text(edge)}): {field} {short_repr(end)} does not exist"
        hint = f"did you mean {suggestion!r}?" if suggestion else "name a node of this graph"
        pointer = f"/edges/{number}/{field}"
        correction = Correction(f"Use {suggestion}", {field: suggestion})
        return Diagnostic(
            "dangling-edge",
            "error",
            message,
            pointer,
            edge=edge.id,
            hint=hint,
            suggestion=edge_suggestion(edge, correction) if suggestion else edge_removal(edge),
        )


def _edge_text(edge: Edge) -> str:
    return " to ".join("?" if end == UNREADABLE else end for end in (edge.source, edge.target))


def _duplicate_entry(first: Node, node: Node, number: int) -> Diagnostic:
    return Diagnostic(
        "duplicate-start",
        "warning",
        f"{node.id!r} is a second {node.type} beside {first.id!r}: without inputs both start",
        f"/nodes/{number}/type",
        node=node.id,
        hint="remove one, or name the intended one in the execution's inputs",
    )
