"""Response models of executions, their logs, requests for input, and differences.

As in ``plans.py``, they document responses that are written without them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planwave.api.schemas.common import (
    ExecutionStatus,
    NodeStatus,
    ResponseModel,
)
from planwave.service.queries.diff import Change

# -- executions -----------------------------------------------------------------------------------


class ExecutionCreated(ResponseModel):
    """An execution that was accepted; it is stored."""

    execution_id: str
    plan_id: str | None
    flow_id: str | None
    flow_version: str | None
    status: ExecutionStatus
    position: int | None
    """Place in the queue, 1 for the next one; null for what is not queued."""


class ExecutionSummary(ResponseModel):
    """An execution as lists show it."""

    execution_id: str
    plan_id: str | None
    flow_id: str | None
    flow_version: str | None
    title: str
    user_prompt: str
    status: ExecutionStatus
    timestamp: str
    """When it was made, UTC; the same as `created_at`."""
    created_at: str
    started_at: str | None
    completed_at: str | None


class ExecutionsResponse(ResponseModel):
    """One page of executions, newest first."""

    executions: list[ExecutionSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class WaveResponse(ResponseModel):
    """How far an execution has come."""

    current: int
    """The lowest unfinished wave."""
    total: int


class UsageResponse(ResponseModel):
    """What model calls took together."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    estimated: bool


class ErrorInfo(ResponseModel):
    """Why something failed."""

    code: str
    message: str
    hint: str | None = None
    node: str | None = None


class OpenRequestResponse(ResponseModel):
    """A question a node waits on."""

    request_id: str
    path: str
    """Of the node that asks."""
    request: Any
    """What is asked. An `approval` has `{kind, prompt, actions, form, value, editable}`."""
    since: str
    """When it was asked, UTC."""
    timeout_s: float | None
    """Seconds from then on after which the node goes on without an answer; null: it waits."""


class OpenRequestsResponse(ResponseModel):
    """What an execution waits to be answered."""

    requests: list[OpenRequestResponse]
    """Oldest first."""


class ExecutionResponse(ResponseModel):
    """The state of an execution."""

    execution_id: str
    plan_id: str | None
    plan_hash: str | None
    flow_id: str | None
    flow_version: str | None
    """The version of the flow it runs; null where its graph was changed since."""
    title: str
    user_prompt: str
    status: ExecutionStatus
    node_states: dict[str, NodeStatus]
    """Status by node path, in graph order."""
    logs: list[str]
    wave: WaveResponse
    queue_position: int | None
    waitingForInput: bool
    currentNodeId: str | None
    """The node of the oldest open request."""
    requests: list[OpenRequestResponse]
    """The open ones, oldest first."""
    usage: UsageResponse
    error: ErrorInfo | None
    """Why it failed."""
    failures: list[str]
    """Paths of nodes that failed it."""
    handled_failures: list[str]
    """Paths of nodes whose failure was handled."""
    reason: str | None
    """Why it is paused."""
    cause: Any
    """Why it was cancelled."""
    inputs: dict[str, Any] | None
    options: dict[str, Any] | None
    parent: Any
    last_seq: int
    """The last event this shows."""
    created_at: str | None
    started_at: str | None
    completed_at: str | None


class ResultResponse(ResponseModel):
    """What an execution gave, so far or in the end."""

    execution_id: str
    plan_id: str | None
    status: ExecutionStatus
    node_results: dict[str, str]
    """Results as text, by node path; nodes without one are left out."""
    execution_logs: list[str]
    error: ErrorInfo | None
    started_at: str | None
    completed_at: str | None


class ReusedFrom(ResponseModel):
    """The node whose result was taken in place of a run."""

    execution_id: str
    path: str


class DocumentNode(ResponseModel):
    """All there is to know of one node, nested ones included."""

    id: str
    path: str
    name: str
    description: str
    type: str | None
    provider: str | None
    model: str | None
    status: NodeStatus
    result: str | None
    """As text; null where there is none."""
    outputs: dict[str, Any] | None
    """`{handle: {type, value}}`."""
    error: str | None
    """Why it failed, as text."""
    error_detail: ErrorInfo | None
    handled: bool
    """Its failure was caught by its policy."""
    reason: str | None
    """Why it was skipped."""
    cause: Any
    """Why it was blocked or cancelled."""
    reused: ReusedFrom | None
    """Where its result was taken from; null where the node ran."""
    execution_time: float | None
    """Seconds."""
    dependencies: list[str]
    inputs: dict[str, Any]
    """`{handle: {type, value}}` as they reached it."""
    prompt: Any
    """What was sent to a model: `{system, prompt, provider, model}`."""
    wave: int | None
    attempts: int
    reentries: int
    """How often it was entered again because its process had ended."""
    answers: list[dict[str, Any]]
    """What it was answered: `{request_id, at, by, answer, …}`."""
    started_at: str | None
    completed_at: str | None
    usage: UsageResponse


class DocumentResponse(ResponseModel):
    """The whole execution as one document; the same as `{execution_id}.json` in the storage."""

    schema_version: int
    execution_id: str
    plan_id: str | None
    plan_hash: str | None
    flow_id: str | None
    flow_version: str | None
    parent: Any
    """What it is a fork of."""
    user_prompt: str
    title: str
    timestamp: str
    status: ExecutionStatus
    started_at: str | None
    completed_at: str | None
    last_seq: int
    error: ErrorInfo | None
    failures: list[str]
    handled_failures: list[str]
    reason: str | None
    cause: Any
    waitingForInput: bool
    currentNodeId: str | None
    requests: list[OpenRequestResponse]
    waves: WaveResponse
    usage: UsageResponse
    inputs: dict[str, Any] | None
    nodes: list[DocumentNode]
    node_results: dict[str, str]
    execution_logs: list[str]
    graph: dict[str, Any] | None


class ExplainResponse(ResponseModel):
    """Why a node ran, did not run, or waits."""

    path: str
    status: NodeStatus
    code: str = Field(examples=["blocked"])
    """Stable; branch on it."""
    reason: str
    """A sentence or two."""
    because: list[dict[str, Any]]
    """The nodes it depends on: `{node, status, …}`."""
    inputs: dict[str, dict[str, Any]]
    """What it read, by handle: `{text, arrivals: [{edge, source, value, text, …}]}`."""
    course: list[dict[str, Any]]
    """What happened to it, in order: `{seq, at, what, attempt?, …}`."""
    parameters: dict[str, dict[str, Any]] | None = None
    """Where its wired parameters came from: `{name: {channel, source, edge, handle?, over}}`."""
    prompt: Any = None
    """What was sent to a model last."""
    error: ErrorInfo | None = None
    requests: list[OpenRequestResponse] | None = None
    """What it waits for."""


class LogEntryResponse(ResponseModel):
    """One line of the typed log."""

    timestamp: str
    nodeId: str
    """A node's path, or `system`."""
    type: Literal[
        "step_start", "start_prompt", "logic_check", "wait_input", "input_received",
        "llm_response", "llm_error", "error", "message", "timer",
        "subagent_call_start", "subagent_call_end", "subagent_call_error",
    ]  # fmt: skip
    content: str


class LogEntriesResponse(ResponseModel):
    """The typed log of an execution."""

    execution_id: str
    status: ExecutionStatus
    entries: list[LogEntryResponse]
    last_seq: int
    """Ask with `after` this for what comes next."""


class NodeDifference(ResponseModel):
    """A node that is not the same in both; pairs are of `a` and of `b`, null where it is not there."""

    path: str
    change: Change
    """What it is and gives, or what the graph says of it, is another; or only one has it."""
    status: list[NodeStatus | None]
    duration_s: list[float | None]
    usage: list[UsageResponse | None]
    error: list[ErrorInfo | None] | None = None
    written: list[str] | None = None
    """Fields of it in the graph that differ."""
    outputs: dict[str, list[dict[str, Any] | None]] | None = None
    """By handle: `{type, value}`; of a long value `{type, preview, sha256, chars}`."""
    result: str | None = None
    """The unified diff of its main text."""


class DifferenceCounts(ResponseModel):
    """How many nodes are what."""

    same: int
    changed: int
    only_a: int
    only_b: int


class DifferenceResponse(ResponseModel):
    """What differs between two executions; pairs are of `a` and of `b`."""

    a: str
    b: str
    status: list[ExecutionStatus]
    duration_s: list[float | None]
    """Seconds from start to end; null before the end."""
    usage: list[UsageResponse]
    counts: DifferenceCounts
    nodes: list[NodeDifference]
    """Those that are not the same, the first 200."""
    left_off: int
    """How many more there are."""
