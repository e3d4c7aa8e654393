"""The graph of a linked node that is run as a stage: the node, and everything linked into it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import count
from typing import NamedTuple, cast

from planwave.errors import PermanentError
from planwave.executor.program import Program
from planwave.executor.values import GraphValues
from planwave.expressions.variables import NODES
from planwave.graph.model import DEFAULT_POLICY, FLOW, LINK, Edge, Graph, Json, Node, Policy

ByNode = Mapping[str, Mapping[str, Json]]
"""Values by node id and output handle."""


class SettledValues(NamedTuple):
    """The values of a graph run that the run of a linked node needs.

    Attributes:
        arriving: Those that flow edges bring to the node, and to what is linked into it.
        named: Those that its expressions may name by ``nodes``.
    """

    arriving: ByNode
    named: ByNode


def require_linked(program: Program, caller: int, target: int) -> None:
    """Refuse a node that cannot be run for another one.

    Raises:
        PermanentError: ``not-linked``: no links lead from it to the caller; ``channel-mismatch``: its
            type cannot be executed.
    """
    of_target, of_caller = program.steps[target], program.steps[caller]
    if target == caller or target not in program.linked_into(caller):
        raise PermanentError(
            f"node {of_caller.node.id!r} cannot run {of_target.node.id!r}, which is not linked to it",
            code="not-linked",
            hint="a node runs those that a link, or a chain of links, leads from",
        )
    if not of_target.facts.executes:
        raise PermanentError(
            f"node {of_caller.node.id!r} cannot run {of_target.node.id!r}: "
            f"type {of_target.node.type!r} is only used over links",
            code="channel-mismatch",
            hint="resolve the link instead",
        )


def settled_values(
    values: GraphValues, caller: int, target: int, handles: Container[str]
) -> SettledValues:
    """Return the values that the run of a linked node needs of the graph around it.

    Only nodes before the caller count: they have settled before it began, and their values are the
    same whenever it runs again.

    Args:
        values: The settled outputs.
        caller: The node that runs the target.
        target: The linked node.
        handles: The input handles of the target that get a value of the caller, in place of what
            flow edges bring there.
    """
    program, outputs = values.program, values.outputs
    before = program.ancestors(caller)
    members = program.linked_into(target)
    index = program.topology.index
    arriving: dict[str, dict[str, Json]] = {}
    for edge in _flow_edges_into(program, members):
        if index[edge.target] == target and edge.target_handle in handles:
            continue
        source = index[edge.source]
        source_outputs = outputs[source] if source in before and source != target else None
        if source_outputs is not None and edge.source_handle in source_outputs:
            of_source = arriving.setdefault(edge.source, {})
            of_source[edge.source_handle] = source_outputs[edge.source_handle].value
    named: dict[str, dict[str, Json]] = {}
    for node in _named_nodes(program, members, before & program.ancestors(target)):
        if (node_outputs := outputs[node]) is not None:
            named[program.topology.ids[node]] = {h: each.value for h, each in node_outputs.items()}
    return SettledValues(arriving, named)


def linked_graph(
    program: Program, caller: int, target: int, handles: Iterable[str], arriving: ByNode
) -> Graph:
    """Return the graph in which a linked node is a stage; the same one for the same arguments.

    Where it gives values, the caller is a node of it, without its data: an edge leads from each of its
    handles to the handle of that name of the target. What settled before it is there in the same way.

    Args:
        program: The graph around it.
        caller: The node that runs the target.
        target: The linked node.
        handles: The input handles of the target that get a value.
        arriving: See ``SettledValues``.
    """
    names = tuple(handles)
    delivered = tuple((source, tuple(by_handle)) for source, by_handle in arriving.items())
    key = (linked_graph, caller, target, names, delivered)
    graph = program.graph.derived.get(key)
    if graph is None:
        graph = program.graph.derived[key] = _build(program, caller, target, names, arriving)
    return cast("Graph", graph)


def _build(
    program: Program, caller: int, target: int, handles: tuple[str, ...], arriving: ByNode
) -> Graph:
    members = program.linked_into(target)
    nodes = {n: program.steps[n].node for n in members}
    nodes[target] = _as_stage(nodes[target])
    edges = [
        edge
        for edge in program.graph.edges
        if program.topology.index.get(edge.target) in nodes
        and (
            program.topology.index.get(edge.source) in nodes and edge.source != nodes[target].id
            if edge.channel == LINK
            else edge.source_handle in arriving.get(edge.source, ())
            and not (edge.target == nodes[target].id and edge.target_handle in handles)
        )
    ]
    added = [program.topology.index[source] for source in arriving]
    if handles:
        added.append(caller)
    for n in added:
        nodes.setdefault(n, _without_data(program.steps[n].node))
    edges += _edges_from_caller(program.topology.ids[caller], nodes[target].id, handles, edges)
    return Graph(tuple(nodes[n] for n in sorted(nodes)), tuple(edges))


def _edges_from_caller(
    caller: str, target: str, handles: Iterable[str], others: Iterable[Edge]
) -> list[Edge]:
    edge_ids = {edge.id for edge in others}
    ids = (edge_id for n in count(1) if (edge_id := f"given-{n}") not in edge_ids)
    data = {"channel": FLOW}
    return [Edge(next(ids), caller, name, target, name, FLOW, data) for name in handles]


def _as_stage(node: Node) -> Node:
    """Return a node that takes all that arrives, whatever it does where it is a stage."""
    if node.policy.join == DEFAULT_POLICY.join:
        return node
    document = {k: v for k, v in (node.policy_document or {}).items() if k != "join"}
    policy: Policy = node.policy._replace(join=DEFAULT_POLICY.join)
    return node._replace(policy=policy, policy_document=document or None)


def _without_data(node: Node) -> Node:
    return Node(node.id, node.type, node.name)


def _flow_edges_into(program: Program, members: Iterable[int]) -> list[Edge]:
    ids = program.topology.ids
    incoming = program.graph.incoming
    return [e for n in members for e in incoming.get(ids[n], ()) if e.channel == FLOW]


def _named_nodes(program: Program, members: Iterable[int], among: frozenset[int]) -> list[int]:
    """Return the nodes that expressions of some nodes name by ``nodes``, in graph order."""
    named = set[str]()
    for member in members:
        step = program.steps[member]
        # The text of a field that is one expression is read when its node resolves it.
        if any(NODES in str(step.node.data.get(f, "")) for f in step.facts.expression_fields):
            return sorted(among)
        for reference in () if step.template is None else step.template.references:
            if reference.root != NODES:
                continue
            if reference.key is None:
                return sorted(among)
            named.add(reference.key)
    return sorted(n for n in among if program.topology.ids[n] in named)
