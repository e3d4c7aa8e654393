"""What an execution that failed delivered all the same, what is missing of it, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import ErrorDocument
from planwave.events.node_state import NodeState
from planwave.events.state import ExecutionState
from planwave.graph.result import LastNodes, without_error

if TYPE_CHECKING:
    from planwave.shapes.common import BlockedCause, MissingResult, Outcome, OutcomeResponse

PARTIAL: Final[Outcome] = "partial"
_OWES_NOTHING: Final = frozenset({"completed", "skipped", "linked", "not_reached"})
"""Statuses of last nodes that did what they were to do in this run, be it nothing."""
_UNKNOWN: Final[ErrorDocument] = {"code": "execution-failed", "message": "the execution failed"}


class LastNodesOfRun(NamedTuple):
    """What became of the last nodes of an execution that ran, in the order of the graph.

    A node that completed without a value is in neither list, nor is one whose failure its policy handed on.

    Attributes:
        delivered: The paths of those that delivered something.
        missing: Those that were to deliver something and did not.
    """

    delivered: list[str]
    missing: list[MissingResult]


def last_nodes_of(state: ExecutionState) -> LastNodesOfRun:
    """Return what became of the last nodes of an execution that failed."""
    found = LastNodesOfRun([], [])
    if state.graph is None:
        return found
    names = {each["id"]: each.get("name") or each["id"] for each in state.graph["nodes"]}
    for node_id in LastNodes.of_document(state.graph).deliverers:
        node = state.nodes[node_id]
        if without_error(node.delivered or {}):
            found.delivered.append(node_id)
        elif node.status not in _OWES_NOTHING and not node.handled:
            cause = _cause(state, node)
            found.missing.append(
                {"path": node_id, "name": names[node_id], "status": node.status, "cause": cause}
            )
    return found


def outcome_of(state: ExecutionState) -> OutcomeResponse:
    """Return the outcome of an execution; partial only where it failed and a last node delivered something."""
    if state.status == "failed":
        delivered, missing = last_nodes_of(state)
        if delivered:
            return {"outcome": PARTIAL, "missing": missing}
    return {"outcome": None, "missing": []}


def missing_text(missing: MissingResult) -> str:
    """Return why a result is missing: ``failed: …``, or ``blocked, because 'a' failed: …``."""
    node, error = missing["cause"]["node"], missing["cause"]["error"]
    if node in (None, missing["path"]):
        return f"{missing['status']}: {error['message']}"
    return f"{missing['status']}, because {node!r} failed: {error['message']}"


def _cause(state: ExecutionState, node: NodeState) -> BlockedCause:
    """Return the failure that kept a node from delivering, where it began: inside a nested run too."""
    first = state.error or _UNKNOWN
    match node.status:
        case "failed":
            where, error = node.path, node.error or first
        case "blocked":
            blocked: BlockedCause = node.cause or {"node": None, "error": first}
            where, error = blocked["node"], blocked["error"]
        case _:  # cancelled at the first failure, or by what ended the execution
            where = first.get("node")
            failed = None if where is None else state.nodes.get(where)
            error = failed.error if failed is not None and failed.error is not None else first
    if (origin := error.get("cause")) is not None:
        where, error = origin["node"], origin
    own: ErrorDocument = {"code": error["code"], "message": error["message"]}
    if "hint" in error:
        own["hint"] = error["hint"]
    return {"node": where, "error": own}
