"""A graph as integers: which nodes must settle before which.

Nodes are numbered in graph order. **Effective edges** are what ordering follows: every flow edge,
and the link edges that leave a *gate*. A linked node (one that is materialised on demand, never
executed) is a gate when something must settle before it can be used: a flow edge into it, or
another gate linked into it. A gate passes that requirement on to each of its link consumers, so
"a flow edge into a linked node is a prerequisite of its consumers" costs one pass, not a product.

A flow edge into a linked node from one of its consumers, or from a node after a consumer, cannot be
such a prerequisite: the node is executed after that consumer, as a stage, and is no gate.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from planwave.graph.model import FLOW, LINK, Edge, Graph

Adjacency = Sequence[Sequence[int]] | Mapping[int, Sequence[int]]


def materialized_ids(graph: Graph, only_materialize: Container[str] = ()) -> set[str]:
    """Return the ids of the nodes that are never executed.

    Args:
        graph: Any graph, also an invalid one.
        only_materialize: Ids of nodes whose type has no ``execute``.

    Returns:
        Ids of nodes with an outgoing link edge and no outgoing flow edge, and ``only_materialize``;
        without the nodes that flow edges bring something from their consumers.
    """
    ids = _ids_with_links_only(graph.edges)
    if only_materialize:
        ids.update(node.id for node in graph.nodes if node.id in only_materialize)
    ids &= graph.by_id.keys()
    return ids - _stages_after_consumers(graph, ids, only_materialize) if ids else ids


def topology_of(graph: Graph, only_materialize: Collection[str] = ()) -> Topology:
    """Return a graph's topology; the checker and the executor share one for the same graph."""
    key = (Topology, frozenset(only_materialize))
    topology: Topology | None = graph.derived.get(key)
    if topology is None:
        topology = graph.derived[key] = Topology(graph, materialized_ids(graph, only_materialize))
    return topology


def strongly_connected(adjacency: Adjacency, nodes: Iterable[int]) -> list[list[int]]:
    """Return the strongly connected components reachable from ``nodes`` (Tarjan, iterative)."""
    components: list[list[int]] = []
    seen: dict[int, int] = {}
    low: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    for root in nodes:
        if root in seen:
            continue
        walk = [(root, iter(adjacency[root]))]
        while walk:
            node, following = walk[-1]
            if node not in seen:
                seen[node] = low[node] = len(seen)
                open_nodes.append(node)
                is_open.add(node)
            for target in following:
                if target not in seen:
                    walk.append((target, iter(adjacency[target])))
                    break
                if target in is_open:
                    low[node] = min(low[node], seen[target])
            else:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == seen[node]:
                    components.append(_pop_component(node, open_nodes, is_open))
    return components


def _pop_component(root: int, open_nodes: list[int], is_open: set[int]) -> list[int]:
    component: list[int] = []
    while True:
        node = open_nodes.pop()
        is_open.remove(node)
        component.append(node)
        if node == root:
            return component


class Topology:
    """Effective edges of a graph as adjacency lists, with depth and order. Built in O(V + E).

    Dangling edges are left out (the checker reports them). ``order`` is a topological order in
    graph order among equals; it is shorter than ``ids`` when there is a cycle, and ``depth`` is
    then meaningless for the nodes missing from it.

    Attributes:
        nodes, edges: Those of the graph. The graph itself would be a reference cycle, because it
            caches its topology.
        ids: Node ids; the position is the node's number.
        index: Number of each id.
        linked: Whether a node is never executed.
        handles: Source handle of each graph edge by edge number.
        sources, targets: Ends of each graph edge by edge number; -1 where the edge is not effective.
        incoming, outgoing: Effective edge numbers of each node, in graph order.
        in_degrees: How many effective edges lead into each node.
        order: Node numbers in topological order.
        depth: Longest effective path from a root, in executed nodes; linked nodes pass theirs on.
    """

    __slots__ = (
        "depth",
        "edges",
        "handles",
        "ids",
        "in_degrees",
        "incoming",
        "index",
        "linked",
        "nodes",
        "order",
        "outgoing",
        "sources",
        "targets",
    )  # fmt: skip

    def __init__(self, graph: Graph, linked: Container[str] | None = None) -> None:
        self.nodes, self.edges = graph.nodes, graph.edges
        self.handles = [edge.source_handle for edge in graph.edges]
        self.ids = [node.id for node in graph.nodes]
        self.index = {node_id: i for i, node_id in enumerate(self.ids)}
        chosen = materialized_ids(graph) if linked is None else linked
        self.linked = [node_id in chosen for node_id in self.ids] if chosen else [False] * len(self)
        self._connect(graph)
        self.in_degrees = [len(edges) for edges in self.incoming]
        self.order = self._sort()
        self.depth = self.depths()

    def __len__(self) -> int:
        return len(self.ids)

    def successors(self, node: int) -> list[int]:
        """Return the numbers of the nodes that wait for a node, one entry for each edge."""
        return [self.targets[e] for e in self.outgoing[node]]

    def stages_after_consumers(self) -> set[str]:
        """Return the ids of the executed nodes that would be linked but for their consumers' values."""
        index, linked = self.index, self.linked
        only_links = _ids_with_links_only(self.edges)
        return {each for each in only_links if each in index and not linked[index[each]]}

    def depths(self, part: Container[int] | None = None) -> list[int]:
        """Return each node's depth in the part of the graph that runs.

        Args:
            part: The nodes of that part; None for all of them.
        """
        depth = [0] * len(self)
        linked, sources, incoming = self.linked, self.sources, self.incoming
        for node in self.order:
            deepest = 0
            for edge in incoming[node]:
                source = sources[edge]
                if part is not None and source not in part:
                    continue
                below = depth[source] if linked[source] else depth[source] + 1
                if below > deepest:
                    deepest = below
            depth[node] = deepest
        return depth

    def _connect(self, graph: Graph) -> None:
        edges, index, linked = graph.edges, self.index, self.linked
        any_linked = True in linked
        gates = self._gates(graph) if any_linked else ()
        self.sources = sources = [-1] * len(edges)
        self.targets = targets = [-1] * len(edges)
        self.incoming: list[list[int]] = [[] for _ in self.ids]
        self.outgoing: list[list[int]] = [[] for _ in self.ids]
        incoming, outgoing = self.incoming, self.outgoing
        for number, edge in enumerate(edges):
            source = index.get(edge.source, -1)
            target = index.get(edge.target, -1)
            if source < 0 or target < 0:
                continue
            if any_linked and linked[source]:
                if source not in gates:
                    continue
            elif edge.channel != FLOW:
                continue
            sources[number] = source
            targets[number] = target
            outgoing[source].append(number)
            incoming[target].append(number)

    def _gates(self, graph: Graph) -> set[int]:
        """Return the linked nodes that must wait for another node to settle."""
        index, linked = self.index, self.linked
        gates: set[int] = set()
        feeds: dict[int, list[int]] = {}
        for edge in graph.edges:
            source, target = index.get(edge.source, -1), index.get(edge.target, -1)
            if source < 0 or target < 0 or not linked[target]:
                continue
            if linked[source]:
                feeds.setdefault(source, []).append(target)
            elif edge.channel == FLOW:
                gates.add(target)
        stack = list(gates)
        while stack:
            for target in feeds.get(stack.pop(), ()):
                if target not in gates:
                    gates.add(target)
                    stack.append(target)
        return gates

    def _sort(self) -> list[int]:
        """Return a topological order (Kahn's algorithm), without recursion."""
        targets, outgoing = self.targets, self.outgoing
        pending = self.in_degrees.copy()
        order = [node for node, count in enumerate(pending) if not count]
        for node in order:
            for edge in outgoing[node]:
                target = targets[edge]
                pending[target] -= 1
                if not pending[target]:
                    order.append(target)
        return order


def _ids_with_links_only(edges: Iterable[Edge]) -> set[str]:
    """Return the ids of the nodes that only links leave."""
    ids = {edge.source for edge in edges if edge.channel == LINK}
    return ids - {edge.source for edge in edges if edge.channel == FLOW} if ids else ids


def _stages_after_consumers(
    graph: Graph, linked: Collection[str], only_materialize: Container[str]
) -> set[str]:
    """Return the nodes among linked ones that would wait for their consumers: those in a cycle."""
    into = [edge for edge in graph.edges if edge.channel == FLOW and edge.target in linked]
    into = [edge for edge in into if edge.target not in only_materialize]
    if not into:
        return set()
    topology = Topology(graph, linked)
    if len(topology.order) == len(topology):
        return set()
    adjacency = [topology.successors(node) for node in range(len(topology))]
    components = strongly_connected(adjacency, range(len(topology)))
    cycle_of = {topology.ids[n]: number for number, part in enumerate(components) for n in part}
    return {
        edge.target
        for edge in into
        if edge.source not in linked and cycle_of.get(edge.source) == cycle_of[edge.target]
    }
