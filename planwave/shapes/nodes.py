"""Shapes of the nodes of executions, of what they use, and of changes of their graph while it is run."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from planwave.errors import ErrorDocument
from planwave.principals import PrincipalDocument
from planwave.shapes.common import (
    ChangeCause,
    ChangeWriterDocument,
    GraphChangeDocument,
    NodeStatus,
    OutputsDocument,
)


class UsageResponse(TypedDict):
    """The tokens and the cost of all model calls."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    estimated: bool
    cache_read_tokens: NotRequired[int]
    """Those of `input_tokens` that were read from a provider's cache; absent for 0."""
    cache_write_tokens: NotRequired[int]
    """Those of `input_tokens` that were written to it; absent for 0."""
    reasoning_tokens: NotRequired[int]
    """Those of `output_tokens` that the model thought with; absent for 0, and where its provider does not say."""


class ReusedFrom(TypedDict):
    """The node whose result was taken in place of a run."""

    execution_id: str
    path: str
    failed_inside: bool
    """Whether it completed although a node inside it failed, such as a loop that skips failed items."""


class NodeSnapshot(TypedDict):
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
    traceback: NotRequired[str]
    """Where the exception of its code came from; only for the operator."""
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


class PlanChangeResponse(TypedDict):
    """A change of the graph of an execution while it ran or waited."""

    change: int
    """Counts the changes from 1."""
    at: str
    base: str
    """The hash of the graph before it."""
    hash: str
    note: str
    """Why it was made, in the words of who asked for it; of a change that a model wrote, what the model says of it."""
    by: ChangeCause | None
    """What asked for it: a step that failed, a step that found out, a person; null in executions of earlier versions."""
    revised_by: PrincipalDocument | None
    graph_change: GraphChangeDocument
    dropped: list[NodeSnapshot]
    """The steps that it dropped although they had begun, as they were by then."""
    request_id: NotRequired[str]
    """The request that a person answers before the change is made, where the plan needs an approval."""


class ReplanAccepted(TypedDict):
    """A change of the graph of an execution that a model is writing; nothing of the execution starts meanwhile."""

    execution_id: str
    change: int
    """The number that it will have: of `plan.requested`, and then of `plan.revised` or `plan.refused`."""


class PlanRequestResponse(TypedDict):
    """A change of its own graph that an execution waits for; nothing starts until it is made or refused."""

    change: int
    """The number that it will have."""
    at: str
    by: ChangeCause
    path: NotRequired[str]
    """The node that failed, or that asks for it."""
    request: NotRequired[str]
    """What is asked for, in words."""
    requested_by: NotRequired[PrincipalDocument]
    """Who has a model write it."""
    writer: NotRequired[ChangeWriterDocument]
    """Whom a person asks to write it; absent where the person has written it."""


class RefusedChangeResponse(TypedDict):
    """A change of its own graph that an execution asked for, and that was not made."""

    change: int
    at: str
    error: ErrorDocument
    """Why."""
    diagnostics: NotRequired[list[dict[str, Any]]]
