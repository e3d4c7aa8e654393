"""What each node of an execution needs of others, and what became of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from planwave.events import ENDED_NODE, Event, NodeState, fold
from planwave.events.graphs import NodeLocation
from planwave.events.node_inputs import NodeInputs
from planwave.events.timeline import timelines
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, FLOW

EdgeStatus = Literal["delivered", "skipped", "failed", "open"]


class Dependency(NamedTuple):
    """Something a node needs: an edge into it, or into what is linked to it.

    Attributes:
        node: Where the edge comes from.
        settled: The outcome of the edge; ``open`` while it is not decided.
        edge, source_handle, handle: The edge's id and its ends.
        through: The linked node it leads into; the node itself gets no value from it.
    """

    node: NodeState
    settled: EdgeStatus
    edge: str | None
    source_handle: str
    handle: str
    through: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the dependency as JSON, with the handles that carried a value where others did not."""
        document: dict[str, Any] = {
            "node": self.node.path,
            "status": self.node.status,
            "settled": self.settled,
            "edge": self.edge,
            "sourceHandle": self.source_handle,
            "targetHandle": self.handle,
        }
        if self.through is not None:
            document["through"] = self.through
        if self.node.error is not None:
            document["error"] = self.node.error
        if self.settled == "skipped" and self.node.outputs is not None:
            document["gave"] = list(self.node.outputs)
        return document


class DependencyView:
    """An execution's state with the history and the dependencies of each node of its graph.

    Attributes:
        state: The state; it is not changed.
        node_histories: The events of each node, by path.
        feeds: What reached each node, and where each node is.
        own_nodes: The nodes of its graph; all others are of nested runs.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.state = state = fold(events)
        self.node_histories = timelines(events)
        self.feeds = NodeInputs(state)
        self.own_nodes = {node["id"] for node in (state.graph or {}).get("nodes", ())}

    def consumers(self, path: str) -> list[dict[str, Any]]:
        """Return the consumers of a linked node."""
        prefix, graph, own_id = self.location_of(path)
        return [
            {
                "node": prefix + edge["target"],
                "status": self.node(prefix + edge["target"]).status,
                "edge": edge.get("id"),
            }
            for edge in graph.outgoing.get(own_id, ())
            if edge["data"]["channel"] != FLOW
        ]

    def dependencies(self, path: str, through: str | None = None) -> list[Dependency]:
        """Return the dependencies of a node in edge order; consumers inherit those of linked nodes."""
        dependencies: list[Dependency] = []
        prefix, graph, own_id = self.location_of(path)
        for edge in graph.incoming.get(own_id, ()):
            source = prefix + edge["source"]
            if self._is_linked(source):
                dependencies += self.dependencies(source, source)
            elif edge["data"]["channel"] == FLOW:
                node = self.node(source)
                leaves = edge.get("sourceHandle") or DEFAULT_SOURCE_HANDLE
                enters = edge.get("targetHandle") or DEFAULT_TARGET_HANDLE
                fate = _edge_status(node, leaves)
                dependencies.append(Dependency(node, fate, edge.get("id"), leaves, enters, through))
        return dependencies

    def _is_linked(self, path: str) -> bool:
        """Return whether a node only runs through a link; for nested nodes their graph decides."""
        place = self.location_of(path)
        if place.parent is None:
            return self.node(path).status == "linked"
        return place.graph.is_linked(place.id)

    def location_of(self, path: str) -> NodeLocation:
        """Return the status of a node."""
        return self.feeds.graphs.locate(path)

    def blockers(self, path: str) -> list[NodeState]:
        """Return the running or waiting nodes that block everything open before a node."""
        nodes: dict[str, NodeState] = {}
        seen = {path}
        stack = [path]
        while stack:
            for need in self.dependencies(stack.pop()):
                if need.settled != "open" or need.node.path in seen:
                    continue
                seen.add(need.node.path)
                if need.node.status == "pending":
                    stack.append(need.node.path)
                else:
                    nodes[need.node.path] = need.node
        return [node for each, node in self.state.nodes.items() if each in nodes]

    def reused(self, path: str) -> Mapping[str, Any] | None:
        """Return ``{"execution_id"}`` of the execution whose result a node reused, or None."""
        course = self.node_histories.get(path, ())
        return next((step.details["reused"] for step in course if step.what == "reused"), None)

    def was_changed(self, path: str) -> bool:
        """Return whether the fork request set the result of a node."""
        return any(step.what == "changed" for step in self.node_histories.get(path, ()))

    def was_cancelled_at_work(self, path: str) -> bool:
        """Return whether a node was cancelled while it ran or waited, not before its start."""
        course = self.node_histories.get(path, ())
        return any(step.what == "cancelled" and step.attempt is not None for step in course)

    def failures(self) -> list[NodeState]:
        """Return the nodes that failed uncaught."""
        return [n for n in self.state.nodes.values() if n.status == "failed" and not n.handled]

    def node(self, path: str) -> NodeState:
        """Return a node's state; a new state for a node that no event names."""
        return self.state.nodes.get(path) or NodeState(path)


def _edge_status(source: NodeState, handle: str) -> EdgeStatus:
    """Return the outcome of an edge that leaves a node by a handle."""
    if source.status == "completed" or (source.status == "failed" and source.handled):
        return "delivered" if handle in (source.outputs or {}) else "skipped"
    if source.status in ("skipped", "not_reached"):
        return "skipped"
    return "failed" if source.status in ENDED_NODE else "open"
