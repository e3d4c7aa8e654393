"""Status values, shapes that events have too, and what a JSON Schema says besides a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from annotated_types import Predicate
from typing_extensions import TypedDict

from planwave.errors import ErrorDocument

NodeStatus = Literal[
    "pending", "running", "retrying", "waiting", "completed", "failed",
    "skipped", "blocked", "cancelled", "linked", "not_reached",
]  # fmt: skip
ExecutionStatus = Literal["starting", "executing", "paused", "completed", "failed", "cancelled"]
Publication = Literal["model", "tool"]
"""What a flow can be published as."""
ExportFormat = Literal["mermaid", "dot", "yaml", "json-schema", "python"]
"""What a graph can be written as."""
Author = Literal["person", "planner", "api"]
"""Who can make a revision."""
PlanStatus = Literal["draft", "executing", "completed", "failed"]


class JsonSchema:
    """Keywords of JSON Schema for a field: ``Annotated[str, JsonSchema(examples=["left"])]``.

    Args:
        **keywords: They are shown beside the type.
    """

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        """Add the keywords to what pydantic makes of the type."""
        return handler(core_schema) | self._keywords


class NodeDocument(TypedDict):
    """One step."""

    id: Annotated[str, JsonSchema(pattern="^[A-Za-z0-9_.-]{1,64}$")]
    type: str
    """A node type; `GET /api/node-types` lists them."""
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    data: NotRequired[dict[str, Any] | None]
    """The fields of the node type; see its schema."""
    policy: NotRequired[dict[str, Any] | None]
    """`{join, retry: {attempts, backoffS, on, notOn}, timeoutS, onError, default, effect}`, all optional."""
    ui: NotRequired[dict[str, Any] | None]
    """Kept for editors, never read."""


def _has_channel(data: dict[str, Any]) -> bool:
    return isinstance(data.get("channel"), str)


class EdgeEnds(TypedDict):
    """What an edge of a graph and an edge that an operation adds have in common."""

    id: NotRequired[str | None]
    source: str
    sourceHandle: NotRequired[str | None]
    target: str
    targetHandle: NotRequired[str | None]
    type: NotRequired[str | None]


class EdgeDocument(EdgeEnds):
    """One wire."""

    data: Annotated[dict[str, Any], Predicate(_has_channel)]
    """`{"channel": "flow" | "link"}`, and other fields of an editor."""


class AddedEdgeDocument(EdgeEnds):
    """One wire that an operation adds; a flow edge where it names no channel."""

    data: NotRequired[dict[str, Any] | None]
    """`{"channel": "flow" | "link"}`, `flow` by default, and other fields of an editor."""


class GraphDocument(TypedDict):
    """Nodes and edges, as they are stored and drawn."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]


ChangeCause = Literal["failure", "node", "person"]
"""What a change comes from: the failure of a node, a node that asks for it, or a person."""


class ChangeWriterDocument(TypedDict):
    """The model that a person has chosen to write a change; null is the default."""

    provider: str | None
    model: str | None


class GraphChangeDocument(TypedDict):
    """What a change makes of a graph: ``nodes`` and ``edges`` are new or changed ones, whole."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]
    dropped_nodes: list[str]
    dropped_edges: list[str]


class OutputDocument(TypedDict):
    """One output of a node."""

    type: str
    value: Any


OutputsDocument: TypeAlias = dict[str, OutputDocument]
"""The outputs of a node, by handle."""


class OptionsDocument(TypedDict):
    """The options of an execution that differ from the defaults; see ``RunOptions``."""

    scheduling: NotRequired[Literal["eager", "waves"]]
    on_failure: NotRequired[Literal["continue", "stop"]]
    max_parallel: NotRequired[int | None]
    node_timeout_s: NotRequired[float | None]
    run_timeout_s: NotRequired[float | None]
    max_events: NotRequired[int | None]
    max_result_bytes: NotRequired[int | None]
    max_event_bytes: NotRequired[int | None]
    max_state_bytes: NotRequired[int | None]
    max_steps: NotRequired[int | None]
    max_depth: NotRequired[int | None]
    run_to: NotRequired[list[str]]
    run_from: NotRequired[list[str]]
    budget: NotRequired[dict[str, float | None] | None]
    replan: NotRequired[dict[str, Any] | None]


class ParentDocument(TypedDict):
    """The request of a fork, with the execution that it forks."""

    execution_id: str
    retry: NotRequired[bool]
    rerun: NotRequired[list[str]]
    given: NotRequired[dict[str, dict[str, Any]]]


class StatusResponse(TypedDict):
    """The status of an execution."""

    status: ExecutionStatus
    interrupted: NotRequired[bool]
    """True where nobody alive runs it though its status says so: it goes on once it is resumed. Left out otherwise."""


Outcome = Literal["partial"]
"""What the status of an execution leaves open: it failed, and delivered results all the same."""


class BlockedCause(TypedDict):
    """The failed node that a node was blocked by, and its error."""

    node: str | None
    error: ErrorDocument


class MissingResult(TypedDict):
    """A last node that should have delivered a result and did not."""

    path: str
    name: str
    status: NodeStatus
    """`failed`, `blocked` by the failure of another node, `cancelled`, or `pending` where the execution ended before."""
    cause: BlockedCause
    """The failure where it began: the node itself, the one that blocked it, or a node inside of these; its `node` is
    null where something else ended the execution."""


class OutcomeResponse(TypedDict):
    """What an execution that failed delivered all the same, and what it did not."""

    outcome: Outcome | None
    """`partial`: it failed, and some of its last nodes delivered something; see `missing`. Null otherwise."""
    missing: list[MissingResult]
    """Of a partial outcome: the last nodes without a result, and why. Empty otherwise."""
