"""What plans and executions look like in answers.

Answers are written as they are stored, without a detour over these models: they are the
documentation, and tests hold the answers to it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planwave.api.models import (
    ResponseModel,
    ExecutionStatus,
    GraphDocument,
    NodeStatus,
    PlanStatus,
)

# -- plans ----------------------------------------------------------------------------------------


class DiagnosticResponse(ResponseModel):
    """One finding about a graph."""

    code: str = Field(examples=["flow-cycle"])
    severity: Literal["error", "warning", "info"]
    """`error` stops a graph from running."""
    message: str
    pointer: str = Field(examples=["/nodes/1/data/model"])
    """JSON pointer into the graph."""
    node: str | None = None
    edge: str | None = None
    path: list[str] | None = None
    """The nodes around a cycle."""
    hint: str | None = None
    """The way out."""
    fix: str | None = None
    """What was changed, where the meaning was certain."""


class CheckResponse(ResponseModel):
    """What was found in a graph."""

    valid: bool
    """Whether it can run here, now."""
    diagnostics: list[DiagnosticResponse]


class Span(ResponseModel):
    """From terse to talkative answers."""

    low: float
    high: float


class Effect(ResponseModel):
    """A node that changes the world."""

    node: str
    type: str
    effect: Literal["write", "once"]


class ForecastResponse(ResponseModel):
    """What a plan will take, estimated before anything is run or paid."""

    waves: int
    nodes: int
    width: int
    """Nodes in the widest wave."""
    depth: int
    critical_path: list[str]
    calls: int
    """Model calls; those of a graph inside a node count once."""
    at_least: bool = False
    """Whether a node runs graphs, so that it may be more."""
    tokens: Span
    cost_usd: Span | None
    """Null where a price is unknown."""
    effects: list[Effect]


class PlanResponse(GraphDocument):
    """A plan: a titled graph made for a goal."""

    plan_id: str
    user_prompt: str
    title: str
    status: PlanStatus
    """That of its newest execution; `draft` without one."""
    revision: int
    hash: str
    """Of the graph; executions are bound to it."""
    created_at: str
    provider: str | None
    """Who wrote it; null for a plan made by hand."""
    model: str | None
    diagnostics: list[DiagnosticResponse]
    fixes: list[str]
    """What was changed in the model's reply."""
    attempts: list[dict[str, Any]]
    """`{reply, finish_reason, diagnostics, usage}` of each model call."""
    forecast: dict[str, Any]


class PlanSummary(ResponseModel):
    """A plan as lists show it."""

    plan_id: str
    user_prompt: str
    title: str
    status: PlanStatus
    revision: int
    hash: str
    created_at: str
    provider: str | None
    model: str | None
    node_count: int


class PlansResponse(ResponseModel):
    """One page of plans, newest first."""

    plans: list[PlanSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


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
    error: ErrorInfo | None
    handled: bool
    """Its failure was caught by its policy."""
    reason: str | None
    """Why it was skipped."""
    cause: Any
    """Why it was blocked or cancelled."""
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
