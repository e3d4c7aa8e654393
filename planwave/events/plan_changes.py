"""What the changes of its graph leave of an execution that runs or waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from planwave.events.node_state import NodeState
from planwave.events.paths import outermost_path
from planwave.events.plan_payloads import WRITTEN, is_for_model
from planwave.events.request_text import is_approved, is_change_request, is_plan_approval
from planwave.events.streamed_text import StreamedText
from planwave.events.types import NodeDelta, PlanRefused, PlanRequested, PlanRevised
from planwave.graph.editing.revision import Progress, changed_graph
from planwave.shapes.common import GraphDocument

if TYPE_CHECKING:
    from planwave.events.state import ExecutionState
    from planwave.events.types import ResumedData
    from planwave.graph.model import Graph
    from planwave.shapes.executions import PlanApprovalResponse
    from planwave.shapes.nodes import (
        PlanChangeResponse,
        PlanRequestResponse,
        RefusedChangeResponse,
    )

_OPEN: Final = frozenset({"pending", "skipped", "blocked", "cancelled", "linked", "not_reached"})
"""The statuses that a node without a start can have."""


NO_GRAPH: Final[GraphDocument] = {"nodes": [], "edges": []}


@dataclass(slots=True)
class PlanChanges:
    """The changes of an execution so far.

    Attributes:
        records: What each change was, in order, with the nodes that it dropped as they were by then.
        dropped: The ids of all nodes that were dropped.
        refused: The changes that were requested and not made, in order.
        open: The change that is being written, or waits for a person; None without one.
        requested: How many were requested of a model.
        written: What a model has written so far of the open one; see ``WRITTEN``.
    """

    records: list[PlanChangeResponse] = field(default_factory=list["PlanChangeResponse"])
    dropped: set[str] = field(default_factory=set[str])
    refused: list[RefusedChangeResponse] = field(default_factory=list["RefusedChangeResponse"])
    open: PlanRequestResponse | None = None
    requested: int = 0
    written: StreamedText = field(default_factory=StreamedText, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.records)

    def progress(self, nodes: Mapping[str, NodeState], graph: Graph) -> Progress:
        """Return how far a run of a graph has come.

        Args:
            nodes: The state of its nodes by path.
            graph: The graph.
        """
        own = [nodes[each.id] for each in graph.nodes if each.id in nodes]
        begun = [each for each in own if has_begun(each)]
        return Progress(
            {each.path: each.status for each in begun},
            {each.path for each in begun if _is_spent(each)},
            {each.path: each.via for each in begun if each.via is not None},
            self.dropped,
        )

    def as_json(self) -> dict[str, Any]:
        """Return what documents have of it; nothing where the graph never changed, nor was to be changed."""
        told = {"changes": self.records, "refused_changes": self.refused, "plan_request": self.open}
        return {name: each for name, each in told.items() if each}

    def request(self, event: PlanRequested) -> None:
        """Take note of a change that the execution waits for."""
        self.requested += is_for_model(event.data)
        self.open = {"at": event.at, **event.data}
        self.written = StreamedText()

    def write(self, event: NodeDelta) -> None:
        """Take in a part of the open change, as a model writes it."""
        is_open = self.open is not None and event.attempt == self.requested
        if is_open and event.data["kind"] == WRITTEN:
            self.written.put(event.data["offset"], event.data["text"])

    def _close(self) -> None:
        self.open, self.written = None, StreamedText()

    def refuse(self, event: PlanRefused) -> None:
        """Take note of a change that is not made."""
        self._close()
        self.refused.append({"at": event.at, **event.data})

    def record(self, event: PlanRevised, state: ExecutionState) -> None:
        """Take note of a change, in the state of its execution.

        Nodes that never began are as new in it, or gone; what had begun and is dropped stays with the change, with
        what ran inside it.
        """
        self._close()
        data, nodes, before = event.data, state.nodes, state.graph or NO_GRAPH
        change = data["graph_change"]
        dropped = set(change["dropped_nodes"])
        gone = [nodes.pop(each) for each in [*nodes] if outermost_path(each) in dropped]
        self.dropped |= dropped
        self.records.append(
            {
                "change": data["change"],
                "at": event.at,
                "base": data["base"],
                "hash": data["hash"],
                "note": data.get("note") or "",
                "by": data.get("by"),
                "revised_by": data.get("revised_by"),
                "graph_change": change,
                "dropped": [each.as_json() for each in gone if has_begun(each)],
            }
        )
        state.graph, state.plan_hash = changed_graph(before, change), data["hash"]
        floors, own = state.waves.floors, dict[str, NodeState]()
        for node in state.graph["nodes"]:
            node_id = node["id"]
            known = nodes.pop(node_id, None)
            if known is None or not has_begun(known):
                own[node_id], floors[node_id] = NodeState(node_id), (data["floor"], False)
                continue
            own[node_id] = known
            if known.wave is not None:
                floors[node_id] = known.wave, True
        for node_id in change["dropped_nodes"]:
            floors.pop(node_id, None)
        state.nodes = {**own, **nodes}  # nested nodes come last, as before


def approval_after(
    approval: PlanApprovalResponse | None, request: Any, data: ResumedData
) -> PlanApprovalResponse | None:
    """Return the approval of the plan after an answer to a request of the execution itself.

    It holds for one graph: an approved change of that binds it to the changed one.
    """
    if is_plan_approval(request):
        after: PlanApprovalResponse = {**(approval or {"plan_hash": request["plan_hash"]})}
    elif is_change_request(request) and approval is not None and is_approved(data.get("answer")):
        after = {"plan_hash": request["hash"]}
    else:
        return approval
    after["answer"] = data.get("answer")
    if (who := data.get("answered_by")) is not None:
        after["answered_by"] = who
    return after


def has_begun(node: NodeState) -> bool:
    """Return whether a node was started, was cancelled by itself, or has a preset or a reused result."""
    is_cancelled = node.status == "cancelled" and node.attempt > 0
    return is_cancelled or node.started_at is not None or node.status not in _OPEN


def _is_spent(node: NodeState) -> bool:
    return node.status == "cancelled" or (node.status == "failed" and not node.handled)
