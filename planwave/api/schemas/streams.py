"""JSON Schemas of streams: events, messages of the WebSocket, and a plan while it is written.

OpenAPI has no place for the messages of a WebSocket, so these schemas are components that no
operation answers with. The schemas of events are those of ``planwave/events/types.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NotRequired, get_args

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from planwave.api.schemas.common import (
    ExecutionStatus,
    GraphDocument,
    NodeStatus,
    PrincipalResponse,
    ResponseModel,
)
from planwave.api.schemas.executions import (
    BudgetResponse,
    OpenRequestResponse,
    PlanApprovalResponse,
    ReusedFrom,
    UsageResponse,
    WaveResponse,
)
from planwave.api.schemas.plans import DiagnosticResponse
from planwave.errors import ErrorDocument
from planwave.events.types import (
    NestedRunAbandonedData,
    NestedRunOpenedData,
    OnceStoredData,
    OptionsDocument,
    ParentDocument,
    TypedEvent,
)
from planwave.graph.outputs import OutputsDocument

EVENT: Final = "ExecutionEvent"
PLAN_EVENT: Final = "PlanStreamEvent"
SOCKET_MESSAGE: Final = "SocketMessage"
_REF: Final = "#/components/schemas/{model}"


# -- the WebSocket ---------------------------------------------------------------------------------


class NodeSnapshot(ResponseModel):
    """A node, nested or not, when a client connected."""

    path: str
    name: str | None
    """Of a nested node that has one; the graph has the names of the others."""
    status: NodeStatus
    attempts: int
    wave: int | None
    started_at: str | None
    completed_at: str | None
    duration_s: float | None
    outputs: OutputsDocument | None
    error: ErrorDocument | None
    handled: bool
    """Its own policy caught its failure, as in `node.failed`; a node around it that completed is not
    counted here, but it is in the document."""
    reason: str | None
    handle: str | None
    """The required handle that got no value, for a skipped node."""
    cause: Any
    reused: ReusedFrom | None
    via: str | None
    """The edge that won `join: any`."""
    answer: Any
    prompt: Any
    provider: Any
    model: Any
    usage: UsageResponse
    text: str
    """Streamed so far by the newest attempt."""
    reasoning: str


class SnapshotMessage(ResponseModel):
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
    inputs: dict[str, dict[str, Any]] | None
    options: OptionsDocument | None
    parent: ParentDocument | None
    approval: PlanApprovalResponse | None
    created_by: PrincipalResponse | None
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


class PartMessage(ResponseModel):
    """A part of a message that is longer than `socket_frame_bytes`; the texts together are it."""

    type: Literal["part"]
    part: int
    of: int
    text: str


class PongMessage(ResponseModel):
    """The answer to a ping."""

    type: Literal["pong"]


class ErrorMessage(ResponseModel):
    """The answer to a message that is no ping."""

    type: Literal["error"]
    code: str
    detail: str
    hint: str | None = None


class DrainingMessage(ResponseModel):
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


class PlanRepair(TypedDict):
    """The plan is written again: earlier titles, nodes and edges are void."""

    attempt: int
    diagnostics: list[DiagnosticResponse]


class PlanFix(TypedDict):
    """A correction of the model's reply."""

    fix: str


# -- schemas ---------------------------------------------------------------------------------------

_PLAN_PARTS: Final[dict[str, Any]] = {
    "delta": PlanText,
    "title": PlanTitle,
    "node": PlanNode,
    "edge": PlanEdge,
    "repair": PlanRepair,
    "fix": PlanFix,
}
_PLAN_ENDS: Final = {"plan": "PlanResponse", "problem": "Problem", "server_draining": "Problem"}
_MESSAGES: Final = (SnapshotMessage, PartMessage, PongMessage, ErrorMessage, DrainingMessage)
_STORED_IN_NODE_EVENT: Final[Mapping[str, Any]] = {
    "nested_run.opened": NestedRunOpenedData,
    "nested_run.abandoned": NestedRunAbandonedData,
    "once.stored": OnceStoredData,
}
"""Types that only a reader knows: they are sent as ``node.event``, with these data in ``data.data``."""
_GRAPH_PARTS: Final = frozenset({"GraphDocument", "NodeDocument", "EdgeDocument", "EdgeKind"})
"""The part of a graph that consumers of events use; whole graphs are sent, as everywhere."""


def stream_schemas() -> dict[str, Any]:
    """Return the schemas of streamed messages and of their parts, by name."""
    schemas: dict[str, Any] = {}
    event_types = list(_event_types())
    for kind in (*event_types, *_STORED_IN_NODE_EVENT.values(), *_PLAN_PARTS.values(), *_MESSAGES):
        schemas |= _definitions(kind)
    for name in _GRAPH_PARTS:
        schemas.pop(name, None)
    event_names = [kind.__name__ for kind in event_types]
    message_names = [kind.__name__ for kind in _MESSAGES]
    schemas[EVENT] = {
        "description": "An event of an execution.",
        "oneOf": [_ref(name) for name in event_names],
    }
    schemas[SOCKET_MESSAGE] = {
        "description": "A message of the WebSocket with `mode=events`: one of these, or events.",
        "oneOf": [
            *(_ref(name) for name in message_names),
            {"type": "array", "items": _ref(EVENT)},
        ],
    }
    plan_parts = {name: kind.__name__ for name, kind in _PLAN_PARTS.items()} | _PLAN_ENDS
    schemas[PLAN_EVENT] = {
        "description": "An event of a plan while it is written: its name, and its data.",
        "oneOf": [_plan_event(name, data) for name, data in plan_parts.items()],
    }
    return schemas


def _event_types() -> Iterator[Any]:
    """Yield a type for the JSON of each event that is sent."""
    for member in get_args(TypedEvent):
        literal, data = get_args(member)
        (name,) = get_args(literal)
        if name in _STORED_IN_NODE_EVENT:
            continue
        path = str if name.startswith("node.") else NotRequired[str]
        words = name.replace("_", ".").split(".")
        fields = {"execution_id": str, "seq": int, "at": str, "type": literal, "path": path}
        fields |= {"attempt": NotRequired[int], "data": data}
        # A class of this name cannot be written down; the type checker knows events by TypedEvent.
        class_name = "".join(map(str.title, words)) + "Event"
        yield TypedDict(class_name, fields)  # pyright: ignore[reportArgumentType]


def _definitions(kind: Any) -> dict[str, Any]:
    schema = TypeAdapter(kind).json_schema(ref_template=_REF)
    inner = schema.pop("$defs", {})
    return {**inner, kind.__name__: schema}


def _plan_event(name: str, data: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"event": {"const": name}, "data": _ref(data)},
        "required": ["event", "data"],
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(model=name)}
