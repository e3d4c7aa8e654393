"""What a retry of an execution runs again. Everything else of a retry is that of a fork."""

from __future__ import annotations

from typing import Final

from planwave.errors import Conflict
from planwave.events import ENDED_NODE, ExecutionState
from planwave.events.paths import ancestor_paths, outermost_path
from planwave.service.executions.fork import require_settled

_FAILED: Final = frozenset({"failed", "cancelled"})


def failed_nodes(parent: ExecutionState) -> tuple[str, ...]:
    """Return the nodes that a retry runs again: all that failed or were cancelled.

    A node that completed without what failed inside it is one of them, such as a loop that skips failed items.

    Nodes that were blocked or never started have no result and run in any case. If there are only
    such nodes, the result is empty.

    Raises:
        Conflict: ``still-running``; ``nothing-to-retry`` if no node can be retried.
    """
    require_settled(parent)
    own = [node["id"] for node in (parent.graph or {}).get("nodes", ())]
    statuses = {node_id: parent.nodes[node_id].status for node_id in own}
    around = _completed_around_failures(parent)
    again = tuple(
        node_id for node_id, status in statuses.items() if status in _FAILED or node_id in around
    )
    is_unfinished = parent.is_over and any(s not in ENDED_NODE for s in statuses.values())
    if not (again or is_unfinished):
        completed = parent.status == "completed"
        why = "it completed" if completed else "no step of it failed or was cancelled"
        raise Conflict(
            f"nothing to retry: {why}",
            code="nothing-to-retry",
            hint="to run steps again, fork it and name them in `rerun`",
        )
    return again


def _completed_around_failures(parent: ExecutionState) -> set[str]:
    """Return the nodes of the graph that completed, or contain a node that did, despite a failure inside.

    The nodes inside a reused result belong to the execution that it was taken from.
    """
    around = {
        outermost_path(path)
        for path, node in parent.nodes.items()
        if (node.reused or {}).get("failed_inside")
    }
    for path, node in parent.nodes.items():
        outer = ancestor_paths(path)
        if node.status in _FAILED and not node.handled and outer:
            container = parent.nodes.get(outer[-1])
            if container is not None and container.status == "completed":
                around.add(outer[0])
    return around
