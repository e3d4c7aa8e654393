"""Shapes of streamed messages: of the WebSocket, and of a plan while it is written."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from planwave.errors import ErrorDocument
from planwave.principals import PrincipalDocument
from planwave.shapes.common import (
    ExecutionStatus,
    GraphDocument,
    OptionsDocument,
    ParentDocument,
)
from planwave.shapes.executions import (
    BudgetResponse,
    OpenRequestResponse,
    PlanApprovalResponse,
    WaveResponse,
)
from planwave.shapes.graphs import DiagnosticResponse
from planwave.shapes.nodes import (
    NodeSnapshot,
    PlanChangeResponse,
    PlanRequestResponse,
    RefusedChangeResponse,
    UsageResponse,
)

# -- the WebSocket ---------------------------------------------------------------------------------


class SnapshotMessage(TypedDict):
    """The whole state of an execution when a client connected; it has all events up to `last_seq`."""

    type: Literal["snapshot"]
    execution_id: str
    status: ExecutionStatus
    goal: str
    title: str
    plan_id: str | None
    plan_hash: str | None
    revision: int | None
    flow: str | None
    graph: GraphDocument | None
    """As the last of its changes left it."""
    changes: NotRequired[list[PlanChangeResponse]]
    """What was changed in it while it ran or waited, in order; left out where nothing was."""
    refused_changes: NotRequired[list[RefusedChangeResponse]]
    """The changes that it asked for and that were not made, in order; left out where there are none."""
    plan_request: NotRequired[PlanRequestResponse]
    """The change of its graph that it waits for; left out without one."""
    inputs: dict[str, dict[str, Any]] | None
    options: OptionsDocument | None
    parent: ParentDocument | None
    approval: PlanApprovalResponse | None
    created_by: PrincipalDocument | None
    created_at: str | None
    started_at: str | None
    completed_at: str | None
    last_seq: int
    error: ErrorDocument | None
    reason: str | None
    cause: Any
    failures: list[str]
    handled_failures: list[str]
    waves: WaveResponse
    usage: UsageResponse
    budget: BudgetResponse | None
    waitingForInput: bool
    currentNodeId: str | None
    requests: list[OpenRequestResponse]
    nodes: list[NodeSnapshot]
    logs: list[str]
    """The last sentences of its log."""


class PartMessage(TypedDict):
    """A part of a message that is longer than `socket_frame_bytes`; the texts together are it."""

    type: Literal["part"]
    part: int
    of: int
    text: str


class PongMessage(TypedDict):
    """The answer to a ping."""

    type: Literal["pong"]


class ErrorMessage(TypedDict):
    """The answer to a message that is no ping."""

    type: Literal["error"]
    code: str
    detail: str
    hint: NotRequired[str]


class DrainingMessage(TypedDict):
    """The service goes down: come back in a moment, with `after`."""

    type: Literal["server_draining"]
    code: str
    detail: str


# -- a plan while it is written --------------------------------------------------------------------


class PlanText(TypedDict):
    """Text of the model's reply, or of its reasoning."""

    text: str
    reasoning: bool


class PlanTitle(TypedDict):
    """The title of the plan."""

    title: str


class PlanNode(TypedDict):
    """A node, once it is complete; fields that the model left out are missing."""

    id: NotRequired[str]
    name: NotRequired[str]
    description: NotRequired[str]
    type: NotRequired[str]
    provider: NotRequired[str]
    model: NotRequired[str]


class PlanEdge(TypedDict):
    """An edge, once it is complete."""

    source: NotRequired[str]
    target: NotRequired[str]
    channel: NotRequired[str]


class PlanOperation(TypedDict):
    """What a change does besides adding nodes and edges: `update_node`, `remove_node`, `remove_edge`, `rename`."""

    op: NotRequired[str]
    id: NotRequired[str]
    set: NotRequired[dict[str, Any]]
    to: NotRequired[str]
    source: NotRequired[str]
    target: NotRequired[str]
    source_handle: NotRequired[str]
    target_handle: NotRequired[str]


class PlanRepair(TypedDict):
    """It is written again: all earlier parts are void."""

    attempt: int
    diagnostics: list[DiagnosticResponse]


class PlanFix(TypedDict):
    """A correction of the model's reply."""

    fix: str
