"""Changes of a graph while it is run: what may change, the change as JSON, and the changed graph.

What has begun cannot be undone, so its nodes and all that decided what reached them stay as they are. Nodes
that never began may be changed, rewired and dropped, but for those that somebody reads a reply from. Pure; O(V + E).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import FLOW, Edge, Graph, Json, Node, edge_document, node_document
from planwave.graph.plan import canonical_json, without_ui
from planwave.graph.protocols import NodeTypes
from planwave.graph.subgraphs import all_nodes
from planwave.graph.topology import materialized_ids

if TYPE_CHECKING:
    from planwave.shapes.common import (
        EdgeDocument,
        GraphChangeDocument,
        GraphDocument,
        NodeDocument,
    )

FROZEN_NODE: Final = "frozen-node"
FROZEN_INPUT: Final = "frozen-input"
USED_ID: Final = "used-id"
NOTHING_CHANGED: Final = "nothing-changed"
_FORK_HINT: Final = "fork the execution to run that step again"
_REPLY_HINT: Final = (
    "leave it, and change the steps before it; or fork the execution with this graph"
)


class Progress(NamedTuple):
    """How far a run of a graph has come.

    Attributes:
        begun: The status of each node of the graph that has begun, by id; those with a preset result too.
        spent: The nodes among them that failed without a policy for that, or were cancelled by themselves.
        winners: The edge that won, by id of a node with ``join: any`` that has begun.
        used: The ids of nodes that were dropped before.
    """

    begun: Mapping[str, str]
    spent: Collection[str] = ()
    winners: Mapping[str, str] = {}
    used: Collection[str] = ()


def graph_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> GraphChangeDocument:
    """Return what makes graph document ``after`` out of ``before``, but for ``ui`` and the order of what both have."""
    change: dict[str, list[Any]] = {}
    for kind in ("nodes", "edges"):
        old = {each["id"]: each for each in before[kind]}
        new = {each["id"]: each for each in after[kind]}
        change[kind] = [
            each
            for own_id, each in new.items()
            if own_id not in old or _content(each) != _content(old[own_id])
        ]
        change[f"dropped_{kind}"] = [own_id for own_id in old if own_id not in new]
    return cast("GraphChangeDocument", change)


def changed_graph(before: Mapping[str, Any], change: GraphChangeDocument) -> GraphDocument:
    """Return a graph document after a change: changed ones stay in their places, new ones come last."""
    nodes = _changed(before["nodes"], change["nodes"], change["dropped_nodes"])
    edges = _changed(before["edges"], change["edges"], change["dropped_edges"])
    return {
        "nodes": cast("list[NodeDocument]", nodes),
        "edges": cast("list[EdgeDocument]", edges),
    }


def _changed(
    items: Sequence[Mapping[str, Any]], new: Sequence[Any], dropped: Sequence[str]
) -> list[Any]:
    gone = set(dropped)
    by_id = {each["id"]: each for each in items if each["id"] not in gone}
    by_id.update((each["id"], each) for each in new)
    return list(by_id.values())


def frozen_nodes(graph: Graph, progress: Progress) -> dict[str, str]:
    """Return why nodes of a running graph stay as they are, by id.

    These are the nodes that have begun, what is linked into them, and what was skipped before them: that
    it was skipped has decided what reached them.
    """
    frozen = {each: _words_of(status) for each, status in progress.begun.items()}
    stack = [*frozen]
    while stack:
        node_id = stack.pop()
        for edge in graph.incoming.get(node_id, ()):
            if edge.source in frozen or _is_still_open(graph, edge, progress):
                continue
            is_link = edge.channel != FLOW
            frozen[edge.source] = (
                f"{node_id!r} uses it" if is_link else f"{node_id!r} began without it"
            )
            stack.append(edge.source)
    return frozen


def _words_of(status: str) -> str:
    return f"it is {status}" if status in ("running", "waiting", "retrying") else f"it {status}"


def _is_still_open(graph: Graph, edge: Edge, progress: Progress) -> bool:
    """Return whether the source of an edge has decided nothing: another edge of ``join: any`` has won."""
    target = graph.by_id[edge.target]
    is_any = edge.channel == FLOW and target.policy.join == "any"
    return is_any and progress.winners.get(target.id) != edge.id


def revision_findings(
    before: Graph, after: Graph, progress: Progress, catalogue: NodeTypes
) -> list[Diagnostic]:
    """Return why a running graph cannot become another one; empty if it can.

    Args:
        before: The graph that is run.
        after: The graph that it would be, without errors of its own.
        progress: How far the run has come.
        catalogue: The node types.
    """
    frozen = frozen_nodes(before, progress)
    numbers = {node.id: number for number, node in enumerate(after.nodes)}
    findings = list(_used_ids(before, after, progress, numbers))
    for node_id, why in frozen.items():
        if node_id in after.by_id:
            findings += _changes_of_frozen(before, after, node_id, why, numbers[node_id], progress)
            if node_id in progress.begun and node_id not in progress.spent:
                findings += _changed_choice(
                    before, after, node_id, why, numbers[node_id], catalogue
                )
        elif node_id not in progress.spent:
            findings.append(_frozen(f"node {node_id!r} cannot be dropped: {why}", node_id))
    findings += _changed_replies(before, after, frozen, numbers, catalogue)
    passive = _never_executed(before, catalogue)
    was, becomes = (set(materialized_ids(each, passive)) for each in (before, after))
    for node_id in sorted((was ^ becomes) & frozen.keys() & after.by_id.keys()):
        findings.append(
            _frozen(
                f"node {node_id!r} cannot become or cease to be a node that others only use: "
                f"{frozen[node_id]}",
                node_id,
                numbers[node_id],
            )
        )
    if not findings and _is_same(before, after):
        findings.append(Diagnostic(NOTHING_CHANGED, "error", "the graph would stay as it is", ""))
    return findings


def _is_same(before: Graph, after: Graph) -> bool:
    change = graph_change(before.document, after.document)
    return not any(change.values())


def _used_ids(
    before: Graph, after: Graph, progress: Progress, numbers: Mapping[str, int]
) -> Iterator[Diagnostic]:
    for node_id in progress.used:
        if node_id in after.by_id and node_id not in before.by_id:
            yield Diagnostic(
                USED_ID,
                "error",
                f"the id {node_id!r} was that of a step that was dropped",
                f"/nodes/{numbers[node_id]}/id",
                node_id,
                hint="choose another id: the history of the execution names steps by their ids",
            )


def _changes_of_frozen(
    before: Graph, after: Graph, node_id: str, why: str, number: int, progress: Progress
) -> Iterator[Diagnostic]:
    old_node, new_node = (node_document(each.by_id[node_id]) for each in (before, after))
    if _content(old_node) != _content(new_node):
        hint = "drop it and add a step with another id" if node_id in progress.spent else _FORK_HINT
        yield _frozen(f"node {node_id!r} cannot be changed: {why}", node_id, number, hint=hint)
    old, new = (
        {canonical_json(edge_document(edge)): edge for edge in each.incoming.get(node_id, ())}
        for each in (before, after)
    )
    added = [edge for text, edge in new.items() if text not in old]
    removed = [
        edge
        for text, edge in old.items()
        if text not in new and not _is_still_open(before, edge, progress)
    ]
    for edge, word in [
        *((each, "added") for each in added),
        *((each, "removed") for each in removed),
    ]:
        yield Diagnostic(
            FROZEN_INPUT,
            "error",
            f"the edge {edge.id!r} from {edge.source!r} to {node_id!r} cannot be {word}: {why}",
            f"/nodes/{number}",
            node_id,
            edge=edge.id,
            hint="what a step was given stays as it was",
        )


def _changed_choice(
    before: Graph, after: Graph, node_id: str, why: str, number: int, catalogue: NodeTypes
) -> Iterator[Diagnostic]:
    """Yield a finding where the edges out of a node that has begun decide about another result than it gives."""
    node = before.by_id[node_id]
    facts = catalogue.type_info(node.type)
    if facts is None or facts.decided_by_edges is None:
        return
    old, new = (
        sorted({e.source_handle for e in each.outgoing.get(node_id, ()) if e.channel == FLOW})
        for each in (before, after)
    )
    # Where no edge is left, nothing depends on what it chooses.
    decide = facts.decided_by_edges
    if new and old != new and decide(node.data, old) != decide(node.data, new):
        handles = ", ".join(repr(each) for each in sorted({*old} ^ {*new}))
        message = f"the edges of node {node_id!r} by {handles} cannot be added or removed: {why}, and what it gives depends on them"
        yield _frozen(message, node_id, number)


def _changed_replies(
    before: Graph,
    after: Graph,
    frozen: Collection[str],
    numbers: Mapping[str, int],
    catalogue: NodeTypes,
) -> Iterator[Diagnostic]:
    """Yield a finding for each node that is not frozen and would reply otherwise, or no more; also inside it."""
    for node in before.nodes:
        replies = [] if node.id in frozen else _replies_of(node, catalogue)
        now = after.by_id.get(node.id)
        if replies and (now is None or replies != _replies_of(now, catalogue)):
            word = "dropped" if now is None else "changed"
            message = f"node {node.id!r} cannot be {word}: whoever started the run waits for the reply that it gives"
            yield _frozen(message, node.id, numbers.get(node.id), hint=_REPLY_HINT)


def _replies_of(node: Node, catalogue: NodeTypes) -> list[tuple[str, str]]:
    """Return the nodes that give a reply, of a node and of those inside it: their paths and contents."""
    return [
        (each.path, _content(node_document(each.node)))
        for each in all_nodes(Graph((node,), ()), catalogue)
        if (facts := catalogue.type_info(each.node.type)) is not None and facts.gives_reply
    ]


def _never_executed(graph: Graph, catalogue: NodeTypes) -> set[str]:
    """Return the ids of the nodes whose type is never executed."""
    facts = ((node.id, catalogue.type_info(node.type)) for node in graph.nodes)
    return {node_id for node_id, each in facts if each is not None and not each.executes}


def _content(document: Mapping[str, Json]) -> str:
    return canonical_json(without_ui(document))


def _frozen(
    message: str, node_id: str, number: int | None = None, *, hint: str = _FORK_HINT
) -> Diagnostic:
    pointer = "/nodes" if number is None else f"/nodes/{number}"
    return Diagnostic(FROZEN_NODE, "error", message, pointer, node_id, hint=hint)
