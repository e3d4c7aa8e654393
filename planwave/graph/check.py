"""Checking a graph against a catalogue: every fault at once, each with its place and a way out.

Serves planner, API, editor and run alike. What only a node type can judge (data, templates,
providers) comes from ``catalogue.check``; everything about how nodes and edges fit together is
found here. Linear in nodes and edges, without recursion.

Where parts of a document could not be read, the rest is checked all the same; ``doubts.py`` says
what then cannot be judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from planwave.errors import GraphInvalid
from planwave.graph.arrivals import crowded_ports, missing_inputs, never_started
from planwave.graph.capabilities import Catalogue, NodeFacts
from planwave.graph.choices import Choices
from planwave.graph.cycles import cycle_diagnostics
from planwave.graph.diagnostics import Diagnostic, in_order, limit_exceeded
from planwave.graph.doubts import NO_DOUBTS, Doubts, kinds_of, parted
from planwave.graph.fields import repeated_ids
from planwave.graph.gaps import UNREAD, Gaps
from planwave.graph.json_values import shown
from planwave.graph.model import DEFAULT_POLICY, ERROR_HANDLE, LINK, Edge, Graph, Json, Node
from planwave.graph.names import nearest
from planwave.graph.ports import find_output
from planwave.graph.read import read_partly
from planwave.graph.topology import Topology, linked_ids, topology_of
from planwave.graph.wires import FITS, TO_BE_SEEN, Fit, Wire, fit_of

if TYPE_CHECKING:
    from planwave.settings import Limits

_GUESSES: Final = 10
"""How many misspelt names get a guess; each costs a comparison with every name there is."""
_NAMES_SHOWN: Final = 4


def read_and_check(
    source: str | bytes | Mapping[str, Json] | Graph,
    catalogue: Catalogue,
    limits: Limits | None = None,
    *,
    is_own: bool = False,
) -> tuple[Graph | None, list[Diagnostic]]:
    """Find every fault of a graph document: of its JSON, its fields, and the graph it describes.

    A finding that would go away once the others are mended is left out. What is not strict JSON, no
    object, or passes a limit for the whole document, is reported alone.

    Args:
        source: The document, as ``read_partly`` takes it; or a graph made in code.
        catalogue: See :func:`check`.
        limits: What may not be passed, or None.
        is_own: See ``read_partly``.

    Returns:
        The graph, or None where not all of it could be read; and every finding, by its place in the
        document. The graph can run if none has severity ``error``.
    """
    if isinstance(source, Graph):
        return source, check(source, catalogue, limits)
    try:
        graph, findings, gaps, places = read_partly(source, limits=limits, is_own=is_own)
    except GraphInvalid as error:
        return None, list(error.diagnostics)
    findings += _findings(graph, catalogue, limits, gaps, places)
    return graph if gaps is None else None, in_order(findings)


def check(graph: Graph, catalogue: Catalogue, limits: Limits | None = None) -> list[Diagnostic]:
    """Find every fault of a graph.

    Args:
        graph: Any graph, also one that was not made by ``read_graph``.
        catalogue: The node types; also asked once about each node of a known type.
        limits: What may not be passed, or None. A passed count of nodes or edges is reported alone.

    Returns:
        Findings by their place, those of one node or edge with those of its type last. The graph
        can run if none has severity ``error``.
    """
    return in_order(_findings(graph, catalogue, limits))


def _findings(
    graph: Graph,
    catalogue: Catalogue,
    limits: Limits | None,
    gaps: Gaps | None = None,
    places: Sequence[int] | None = None,
) -> list[Diagnostic]:
    """Check a graph or, with gaps, what could be read of one; ``places`` are those of its edges."""
    if limits is not None and (too_many := _too_many(graph, limits)):
        return too_many
    found: list[Diagnostic] = []
    doubts = NO_DOUBTS
    if gaps is None and len(graph.by_id) != len(graph.nodes):
        found += repeated_ids([node.id for node in graph.nodes], "nodes")
        gaps = Gaps()
    if gaps is not None:
        graph, doubts, places = parted(graph, catalogue, gaps, places)
    survey = _Survey(graph, catalogue, doubts)
    structural = survey.structure(limits)
    if places is not None:
        structural = [_moved(finding, places) for finding in structural]
    found += structural
    for number, node in enumerate(graph.nodes):
        if survey.facts[node.type] is not None:
            for finding in catalogue.check(node, graph):
                if not doubts.explains(finding, node):
                    found.append(_placed(finding, node, number))
    return [_unnamed(finding, doubts) for finding in found] if doubts.nameless else found


def _too_many(graph: Graph, limits: Limits) -> list[Diagnostic]:
    counts = (("nodes", limits.nodes, graph.nodes), ("edges", limits.edges, graph.edges))
    return [
        limit_exceeded(name, most, len(met), name, f"/{name}")
        for name, most, met in counts
        if len(met) > most
    ]


def _placed(finding: Diagnostic, node: Node, number: int) -> Diagnostic:
    pointer = f"/nodes/{number}{finding.pointer}"
    return replace(finding, pointer=pointer, node=finding.node or node.id)


def _moved(finding: Diagnostic, places: Sequence[int]) -> Diagnostic:
    """Let a pointer lead to an edge's place in the document instead of that in the graph."""
    parts = finding.pointer.split("/", 3)
    if len(parts) < 3 or parts[1] != "edges":
        return finding
    parts[2] = str(places[int(parts[2])])
    return replace(finding, pointer="/".join(parts))


def _unnamed(finding: Diagnostic, doubts: Doubts) -> Diagnostic:
    """Take out the id that a node was only given because its own could not be read."""
    return replace(finding, node=None) if finding.node in doubts.nameless else finding


class _Survey:
    """One look over a graph; each method finds one family of faults and leaves its notes here."""

    def __init__(self, graph: Graph, catalogue: Catalogue, doubts: Doubts) -> None:
        self.graph = graph
        self.catalogue = catalogue
        self.doubts = doubts
        kinds = {node.type for node in graph.nodes}
        self.facts: dict[str, NodeFacts | None] = {kind: catalogue.facts(kind) for kind in kinds}
        self.kinds = kinds_of(graph.nodes)
        self.has_links = False
        self._guesses = _GUESSES
        self.single: list[tuple[int, Edge]] = []
        self.error_edges: list[tuple[int, Edge, bool]] = []

    def structure(self, limits: Limits | None) -> list[Diagnostic]:
        """Find all that is wrong with how nodes and edges fit together."""
        found = self.types() + self.edges() + self.policies()
        topology = self.topology()
        found += self.inputs(topology)
        found += cycle_diagnostics(topology) if self.may_cycle(topology) else ()
        found += self.unreachable(topology)
        if limits is not None and len(topology.order) == len(topology):
            deepest = max(topology.depth, default=-1) + 1
            if deepest > limits.depth:
                what = "longest path of nodes"
                found.append(limit_exceeded("depth", limits.depth, deepest, what))
        return found

    def types(self) -> list[Diagnostic]:
        """Find an empty graph, unknown types and repeated entry types."""
        nodes = self.graph.nodes
        found: list[Diagnostic] = []
        if not nodes and not self.doubts.no_nodes:
            found.append(Diagnostic("empty-graph", "error", "the graph has no nodes", "/nodes"))
        odd = {kind for kind, facts in self.facts.items() if facts is None or facts.entry}
        first: dict[str, Node] = {}
        for number, node in enumerate(nodes) if odd else ():
            if node.type not in odd or node.type == UNREAD:
                continue
            if self.facts[node.type] is None:
                found.append(self._unknown_type(node, number))
            elif node.type in first:
                found.append(_second_entry(first[node.type], node, number))
            else:
                first[node.type] = node
        return found

    def edges(self) -> list[Diagnostic]:
        """Hold every edge against its ends; edges of one kind share a verdict."""
        found: list[Diagnostic] = []
        kinds = self.kinds.get
        fits: dict[tuple[str | None, str, str | None, str, str], Fit] = {}
        for number, edge in enumerate(self.graph.edges):
            _, source, source_handle, target, target_handle, channel, _, _ = edge
            kind = (kinds(source), source_handle, kinds(target), target_handle, channel)
            fit = fits.get(kind)
            if fit is None:
                fits[kind] = fit = self._fit(edge)
            if fit is not FITS:
                self._note(edge, number, fit, found)
        self.has_links = any(kind[4] == LINK for kind in fits)
        if self.doubts is not NO_DOUBTS:
            self._note_unsure(found)
        return found

    def policies(self) -> list[Diagnostic]:
        """Find policies that need an edge or a handle the graph does not have."""
        found: list[Diagnostic] = []
        handled = {edge.source for _, edge, _ in self.error_edges}
        for number, node in enumerate(self.graph.nodes):
            policy = node.policy
            if policy is DEFAULT_POLICY:
                continue
            is_handled = node.id in handled or self.doubts.may_leave(node.id, ERROR_HANDLE)
            if policy.on_error == "continue" and not is_handled:
                found.append(_error_unhandled(node, number))
            facts = self.facts[node.type]
            if facts is not None and policy.default is not None:
                handle = str(policy.default.get("handle"))
                if find_output(facts.outputs, handle) is None:
                    message = f"node {node.id!r}: a {node.type} has no output {handle!r}"
                    pointer = f"/nodes/{number}/policy/default/handle"
                    found.append(
                        Diagnostic("unknown-handle", "error", message, pointer, node=node.id)
                    )
        return found

    def inputs(self, topology: Topology) -> list[Diagnostic]:
        """Find ports that get too much or too little."""
        choices = Choices(topology, self.facts, self.doubts)
        crowded = crowded_ports(self.graph, self.single, choices, self.doubts)
        return crowded + missing_inputs(self.graph, self.facts, self.doubts)

    def topology(self) -> Topology:
        """Give the graph's topology, linked nodes included."""
        lazy = {kind for kind, facts in self.facts.items() if facts and not facts.executes}
        only = {node.id for node in self.graph.nodes if node.type in lazy} if lazy else ()
        if self.doubts is NO_DOUBTS:
            return topology_of(self.graph, only)
        linked = linked_ids(self.graph, only)
        return Topology(self.graph, {n for n in linked if n in only or not self.doubts.may_run(n)})

    def may_cycle(self, topology: Topology) -> bool:
        """Say whether looking for cycles can find one."""
        return self.has_links or len(topology.order) < len(topology)

    def unreachable(self, topology: Topology) -> list[Diagnostic]:
        """Find nodes that no execution of this graph can start."""
        dead = {number for number, _, delivers in self.error_edges if not delivers}
        return never_started(topology, dead, self.doubts)

    def _fit(self, edge: Edge) -> Fit:
        ends = self.kinds.get(edge.source), self.kinds.get(edge.target)
        source, target = (None if kind is None else self.facts.get(kind) for kind in ends)
        wire = Wire(source, edge.source_handle, target, edge.target_handle, edge.channel)
        fit = fit_of(wire, self.catalogue)
        needs_a_look = None in ends or edge.source_handle == ERROR_HANDLE
        return TO_BE_SEEN if fit is FITS and needs_a_look else fit

    def _note(self, edge: Edge, number: int, fit: Fit, found: list[Diagnostic]) -> None:
        self._note_faults(edge, number, fit, found)
        if fit.single and not fit.faults:
            self.single.append((number, edge))
        if edge.source_handle == ERROR_HANDLE and edge.source in self.kinds:
            self._note_error_edge(edge, number, fit, found)

    def _note_faults(self, edge: Edge, number: int, fit: Fit, found: list[Diagnostic]) -> None:
        for end, field in ((edge.source, "source"), (edge.target, "target")):
            if end not in self.kinds and not self.doubts.is_excused(end):
                found.append(self._dangling(edge, number, end, field))
        for fault in fit.faults:
            message = f"edge {edge.id!r} ({_spelled(edge)}): {fault.message}"
            pointer = f"/edges/{number}{fault.below}"
            found.append(
                Diagnostic(fault.code, "error", message, pointer, edge=edge.id, hint=fault.hint)
            )

    def _note_unsure(self, found: list[Diagnostic]) -> None:
        for number, edge in enumerate(self.doubts.unsure, len(self.graph.edges)):
            self._note_faults(edge, number, self._fit(edge), found)
        lost, spare = list(self.doubts.lost), self.doubts.strays.total()
        if len(lost) > spare:
            found.append(_too_few_for(lost, spare))

    def _note_error_edge(self, edge: Edge, number: int, fit: Fit, found: list[Diagnostic]) -> None:
        on_error = self.graph.by_id[edge.source].policy.on_error
        continues = on_error == "continue" or edge.source in self.doubts.unruled
        self.error_edges.append((number, edge, continues or not fit.from_error))
        if fit.from_error and not continues:
            found.append(
                Diagnostic(
                    "unknown-handle",
                    "warning",
                    f"edge {edge.id!r} leaves handle {ERROR_HANDLE!r} of {edge.source!r}, "
                    "which never sends anything there",
                    f"/edges/{number}/sourceHandle",
                    edge=edge.id,
                    hint=f'give {edge.source!r} the policy "onError": "continue"',
                )
            )

    def _nearest(self, name: str, known: Collection[str]) -> str | None:
        self._guesses -= 1
        return nearest(name, known) if self._guesses >= 0 else None

    def _unknown_type(self, node: Node, number: int) -> Diagnostic:
        known = list(self.catalogue.names())
        near = self._nearest(node.type, known)
        message = (
            f"node {node.id!r} has the unknown type {shown(node.type)}; "
            f"known types are {', '.join(known)}"
        )
        hint = f"did you mean {near!r}?" if near else "use one of the known types"
        pointer = f"/nodes/{number}/type"
        return Diagnostic("unknown-node-type", "error", message, pointer, node=node.id, hint=hint)

    def _dangling(self, edge: Edge, number: int, end: str, field: str) -> Diagnostic:
        near = self._nearest(end, self.kinds)
        message = f"edge {edge.id!r}: {field} {shown(end)} does not exist"
        hint = f"did you mean {near!r}?" if near else "name a node of this graph"
        pointer = f"/edges/{number}/{field}"
        return Diagnostic("dangling-edge", "error", message, pointer, edge=edge.id, hint=hint)


def _spelled(edge: Edge) -> str:
    return " to ".join("?" if end == UNREAD else end for end in (edge.source, edge.target))


def _too_few_for(names: Sequence[str], spare: int) -> Diagnostic:
    listed = ", ".join(map(shown, names[:_NAMES_SHOWN]))
    message = (
        f"edges name {len(names)} ids that no node has ({listed}), more than there are nodes "
        f"without an id of their own ({spare})"
    )
    hint = "give each node the id that its edges name, and let no edge name another"
    return Diagnostic("dangling-edge", "error", message, "/edges", hint=hint)


def _second_entry(first: Node, node: Node, number: int) -> Diagnostic:
    return Diagnostic(
        "duplicate-start",
        "warning",
        f"{node.id!r} is a second {node.type} beside {first.id!r}: without inputs both start",
        f"/nodes/{number}/type",
        node=node.id,
        hint="keep one, or name the one meant in the execution's inputs",
    )


def _error_unhandled(node: Node, number: int) -> Diagnostic:
    return Diagnostic(
        "error-unhandled",
        "error",
        f"node {node.id!r} continues on error, but no edge leaves its handle {ERROR_HANDLE!r}",
        f"/nodes/{number}/policy/onError",
        node=node.id,
        hint=f'add an edge with "sourceHandle": "{ERROR_HANDLE}", or use "onError": "fail"',
    )
