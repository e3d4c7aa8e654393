"""Shapes of executions, their logs, requests for input, and differences."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from planwave.errors import ErrorDocument
from planwave.principals import PrincipalDocument
from planwave.shapes.common import (
    ExecutionStatus,
    JsonSchema,
    NodeStatus,
    OptionsDocument,
    Outcome,
    OutcomeResponse,
    ParentDocument,
    StatusResponse,
)
from planwave.shapes.nodes import (
    PlanChangeResponse,
    PlanRequestResponse,
    RefusedChangeResponse,
    ReusedFrom,
    UsageResponse,
)


class ExecutionCreated(TypedDict):
    """An execution that was accepted; it is stored."""

    execution_id: str
    plan_id: str | None
    revision: int | None
    flow: str | None
    status: ExecutionStatus
    position: int | None
    """Place in the queue, 1 for the next one; null if it is not queued."""


class WaitsForResponse(TypedDict):
    """What an execution waits for that not every process can do."""

    capability: str
    """What a process has to be able to do: `local` is to run the embedded model."""
    processes: int
    """How many processes can."""


class ForkedFrom(TypedDict):
    """The execution that another one was made out of."""

    execution_id: str
    retry: bool
    """Whether this is a retry: failed nodes of the parent run again."""


class ExecutionDigest(TypedDict):
    """How far an execution is."""

    steps: int
    """Nodes of its own graph that run."""
    waves: list[dict[str, int]]
    """Of each wave the number of nodes by status."""
    models: list[str]
    """Those it has called."""
    usage: UsageResponse
    parent: ForkedFrom | None
    waitingForInput: bool
    inputs: str
    """The values of its inputs on one line, shortened; empty without any."""


class LabelsResponse(TypedDict):
    """What people call an execution."""

    name: str | None
    """In place of the title; null where nobody gave one."""
    tags: list[str]
    note: str
    starred: bool


class ExecutionSummary(LabelsResponse, StatusResponse):
    """An execution as lists show it."""

    execution_id: str
    plan_id: str | None
    revision: int | None
    flow: str | None
    created_by: PrincipalDocument | None
    title: str
    user_prompt: str
    outcome: Outcome | None
    """`partial`: it failed, and delivered results all the same. Null otherwise."""
    waits_for: NotRequired[WaitsForResponse]
    """Why no process runs it: only some can. Left out otherwise."""
    timestamp: str
    """When it was made, UTC; the same as `created_at`."""
    created_at: str
    started_at: str | None
    completed_at: str | None
    planning: UsageResponse | None
    """What the calls used that wrote its plan, which are paid once for all its executions and are not among its own
    `usage`; null for a plan that no model wrote."""
    digest: NotRequired[ExecutionDigest]
    """Only with `digest=1`; left out where it takes long to find: it is there the next time."""


class ExecutionCounts(TypedDict):
    """How many executions fit all filters but `status` and `waiting`."""

    total: int
    at_least: bool
    """True where so many have the words of `q` that only the newest 1,000 were counted: each number may be higher."""
    waiting: int
    """Those that wait for an answer of a person; they are executing or paused too."""
    starting: int
    executing: int
    paused: int
    completed: int
    failed: int
    cancelled: int


class ExecutionsResponse(TypedDict):
    """One page of executions, newest first."""

    executions: list[ExecutionSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""
    counts: NotRequired[ExecutionCounts]
    """Where asked for (`counts=1`)."""


class WaveResponse(TypedDict):
    """How far an execution has come."""

    current: int
    """The lowest unfinished wave."""
    total: int


class OpenRequestResponse(TypedDict):
    """A question that a node waits on, or the whole execution."""

    request_id: str
    path: str | None
    """Of the node that asks; null where the execution asks, for approval of its plan or of a change of it, or for a higher budget."""
    request: Any
    """The request. An `approval` has `{kind, prompt, actions, form, value, editable}`, the approval
    of a plan (`plan-approval`) `{kind, prompt, actions, plan_hash, plan_id, title, goal, forecast}`, a
    higher budget (`budget`) `{kind, message, actions, limits, used, waiting, proposed}`, a change of
    the graph that is run (`plan-change`) `{kind, prompt, actions, change, by, path, request, answer, base, hash,
    graph_change, difference, additions, forecast}`; its `forecast` is that of the steps that have not begun."""
    since: str
    """When it was asked, UTC."""
    timeout_s: float | None
    """Seconds from then on after which the node goes on without an answer; null: it waits."""


class PlanApprovalResponse(TypedDict):
    """The approval of a plan; it holds for one hash."""

    plan_hash: str
    """Of the graph that runs."""
    approved_in: NotRequired[str]
    """The earlier execution in which this hash was approved."""
    approved_revision: NotRequired[int]
    """The revision of the flow that is approved for all callers."""
    answer: NotRequired[Any]
    """`{decision, note, value?}` once it was given here."""
    answered_by: NotRequired[PrincipalDocument]
    """Who answered here."""


class BudgetResponse(TypedDict):
    """The budget of an execution, by amount: `usd`, `tokens`, `calls`, `wall_s`."""

    limits: dict[str, float]
    """Those that hold now."""
    used: dict[str, float]
    warned: list[str]
    """Amounts that are nearly used up."""


class OpenRequestsResponse(TypedDict):
    """The open requests of an execution."""

    requests: list[OpenRequestResponse]
    """Oldest first."""


class PendingRequest(OpenRequestResponse):
    """A question to a person, and the execution that waits for its answer."""

    execution_id: str
    title: str
    user_prompt: str
    node_name: str
    deadline: str | None
    """When the node goes on without an answer, UTC; null: it waits."""
    answered: NotRequired[AnswerResponse]
    """Of `status=answered` only."""


class AnswerResponse(TypedDict):
    """How a request was answered."""

    at: str
    """UTC."""
    by: Literal["person", "timeout"]
    """`timeout`: nobody answered in time."""
    answered_by: PrincipalDocument | None
    """Who answered; null after a timeout, or where an older planwave did not record it."""
    answer: Any
    """Of a request with actions `{decision, note, value?, form?}`."""


class PendingRequestsResponse(TypedDict):
    """One page of the requests of all executions to people."""

    requests: list[PendingRequest]
    """Open ones: the soonest deadline first; then those without one, oldest first. Answered ones:
    the newest answer first."""
    total: int
    """How many there are on all pages."""
    next_cursor: str | None
    """For the next page; null on the last one."""


class ExecutionResponse(LabelsResponse, StatusResponse, OutcomeResponse):
    """The state of an execution."""

    execution_id: str
    plan_id: str | None
    revision: int | None
    """The revision of the plan that it runs; null where its graph was changed since."""
    plan_hash: str | None
    flow: str | None
    """The name of the plan at the start, where it was started as a flow; null for one of a plan."""
    title: str
    user_prompt: str
    node_states: dict[str, NodeStatus]
    """Status by node path, in graph order."""
    logs: list[str]
    wave: WaveResponse
    queue_position: int | None
    waits_for: NotRequired[WaitsForResponse]
    """Why no process runs it: only some can. Left out otherwise."""
    waitingForInput: bool
    currentNodeId: str | None
    """The node of the oldest open request."""
    requests: list[OpenRequestResponse]
    """The open ones, oldest first."""
    usage: UsageResponse
    plan_request: NotRequired[PlanRequestResponse]
    """The change of its graph that it waits for; left out without one."""
    planning: UsageResponse | None
    """What the calls used that wrote its plan; as in lists."""
    budget: BudgetResponse | None
    """What it may use; null where nothing limits it."""
    error: ErrorDocument | None
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
    options: OptionsDocument | None
    parent: ParentDocument | None
    trigger: Any
    """What started it, `{"id", "kind", "delivery"}`; null for a person or a program with a token."""
    created_by: PrincipalDocument | None
    """Who created it; null where an older planwave did."""
    approval: PlanApprovalResponse | None
    """The approval that its plan needs; null where it needs none."""
    trace_url: NotRequired[str]
    """The page of its trace, for the operator, where it was traced and the service knows such a page."""
    last_seq: int
    """The last event this shows."""
    created_at: str | None
    started_at: str | None
    completed_at: str | None


class LegacyStatus(TypedDict):
    """The state of an execution in a compact shape."""

    execution_id: str
    plan_id: str | None
    status: ExecutionStatus
    node_states: dict[str, NodeStatus]
    logs: list[str]


class RunResultResponse(TypedDict):
    """What the last nodes of an execution delivered."""

    nodes: list[str]
    """The nodes that the value comes from: the `end` nodes that delivered something, or else the last
    nodes that did."""
    value: Any
    """The value of the only node; several give an object by node id, none gives null."""


class ResultResponse(OutcomeResponse):
    """The result of an execution, so far or at its end."""

    execution_id: str
    plan_id: str | None
    status: ExecutionStatus
    result: RunResultResponse
    node_results: dict[str, str]
    """Results as text, by node path; nodes without one are left out."""
    execution_logs: list[str]
    error: ErrorDocument | None
    started_at: str | None
    completed_at: str | None


class LegacyNodeResult(TypedDict):
    """What one node gave."""

    node_id: str
    name: str
    status: NodeStatus
    result: str | None
    error: str | None
    execution_time: float | None
    """Seconds."""


class LegacyResult(TypedDict):
    """The results of an execution in a compact shape."""

    execution_id: str
    plan_id: str | None
    status: ExecutionStatus
    node_results: list[LegacyNodeResult]
    execution_logs: list[str]
    started_at: str | None
    completed_at: str | None


class RecordedCallResponse(TypedDict):
    """An external call of a node, as it is recorded."""

    ordinal: int
    """Its number within the attempt."""
    attempt: int
    kind: str
    """`model`, `tool`, `mcp`, `http`, `flow`, `agent` or `fetch`."""
    name: str
    request: NotRequired[Any]
    request_bytes: NotRequired[int]
    """The size of a request that is too large to be shown."""
    result: NotRequired[Any]
    """Of a model: `{text, finish_reason, reasoning?, tool_calls?, sources?}`."""
    result_bytes: NotRequired[int]
    """The size of a result that is too large to be shown."""
    error: NotRequired[ErrorDocument]
    traceback: NotRequired[str]
    """Where the exception of a tool's code came from; only for the operator."""
    usage: NotRequired[dict[str, Any]]
    """The tokens and cost of a model call."""
    started_at: NotRequired[str]
    duration_s: NotRequired[float]


class DocumentNode(TypedDict):
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
    streamed: NotRequired[dict[str, str]]
    """The `text` and the `reasoning` that its last attempt had streamed when it was cancelled or failed, which is no result;
    left out where there is none."""
    error: str | None
    """Why it failed, as text."""
    error_detail: ErrorDocument | None
    traceback: NotRequired[str]
    """Where the exception of its code came from; only for the operator."""
    handled: bool
    """Its failure was caught by its policy, or a node around it completed."""
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
    """The request to the model: `{system, prompt, provider, model}`."""
    wave: int | None
    attempts: int
    reentries: int
    """How often it was entered again because its process had ended."""
    answers: list[dict[str, Any]]
    """The answers to its requests: `{request_id, at, by, answer, …}`."""
    calls: list[RecordedCallResponse]
    """Its external calls, by attempt and number."""
    started_at: str | None
    completed_at: str | None
    usage: UsageResponse


class DocumentResponse(StatusResponse, OutcomeResponse):
    """The whole execution as one document; the same as `{execution_id}.json` in the storage."""

    schema_version: int
    execution_id: str
    plan_id: str | None
    revision: int | None
    plan_hash: str | None
    flow: str | None
    parent: ParentDocument | None
    trigger: Any
    """What started it, `{"id", "kind", "delivery"}`; null for a person or a program with a token."""
    created_by: PrincipalDocument | None
    """Who created it; null where an older planwave did."""
    approval: PlanApprovalResponse | None
    """The approval that its plan needs; null where it needs none."""
    user_prompt: str
    title: str
    timestamp: str
    started_at: str | None
    completed_at: str | None
    last_seq: int
    error: ErrorDocument | None
    failures: list[str]
    handled_failures: list[str]
    reason: str | None
    cause: Any
    waitingForInput: bool
    currentNodeId: str | None
    requests: list[OpenRequestResponse]
    waves: WaveResponse
    usage: UsageResponse
    budget: BudgetResponse | None
    """What it may use; null where nothing limits it."""
    inputs: dict[str, Any] | None
    result: RunResultResponse
    nodes: list[DocumentNode]
    node_results: dict[str, str]
    execution_logs: list[str]
    graph: dict[str, Any] | None
    """As the last of its changes left it."""
    changes: NotRequired[list[PlanChangeResponse]]
    """What was changed in it while it ran or waited, in order; left out where nothing was."""
    refused_changes: NotRequired[list[RefusedChangeResponse]]
    """The changes that it asked for and that were not made, in order; left out where there are none."""
    plan_request: NotRequired[PlanRequestResponse]
    """The change of its graph that it waits for; left out without one."""


class ExplainResponse(TypedDict):
    """Why a node ran, did not run, or waits."""

    path: str
    status: NodeStatus
    code: Annotated[str, JsonSchema(examples=["blocked"])]
    """Stable; branch on it."""
    reason: str
    """A sentence or two."""
    because: list[dict[str, Any]]
    """The nodes it depends on: `{node, status, …}`."""
    inputs: dict[str, dict[str, Any]]
    """The inputs, by handle: `{text, arrivals: [{edge, source, value, text, …}]}`."""
    course: list[dict[str, Any]]
    """Its history, in order: `{seq, at, what, attempt?, …}`."""
    parameters: NotRequired[dict[str, dict[str, Any]]]
    """Where its wired parameters came from: `{name: {channel, source, edge, handle?, over}}`."""
    prompt: NotRequired[Any]
    """The last request to a model."""
    error: NotRequired[ErrorDocument]
    traceback: NotRequired[str]
    """Where the exception of its code came from; only for the operator."""
    requests: NotRequired[list[OpenRequestResponse]]
    """Its open requests."""


class LogEntryResponse(TypedDict):
    """One line of the typed log."""

    timestamp: str
    nodeId: str
    """A node's path, or `system`."""
    type: Literal[
        "step_start",
        "start_prompt",
        "logic_check",
        "wait_input",
        "input_received",
        "llm_response",
        "llm_error",
        "error",
        "message",
        "timer",
        "tool_call_end",
        "tool_call_error",
        "subagent_call_start",
        "subagent_call_end",
        "subagent_call_error",
    ]
    content: str
    level: Literal["debug", "info", "warning", "error"]
    traceback: NotRequired[str]
    """Where the exception of its code came from; only for the operator."""


class LogEntriesResponse(TypedDict):
    """The typed log of an execution."""

    execution_id: str
    status: ExecutionStatus
    entries: list[LogEntryResponse]
    last_seq: int
    """The value of `after` for the next page."""


class StoredEventsResponse(TypedDict):
    """The stored events of an execution, without its streamed text."""

    execution_id: str
    events: list[dict[str, Any]]
    """`ExecutionEvent`s, in order; none: there are no more yet."""
    last_seq: int
    """The value of `after` for the next page."""


class NodeDifference(TypedDict):
    """A node that is not the same in both; pairs are of `a` and of `b`, null where it is not there."""

    path: str
    change: Literal["same", "changed", "only_a", "only_b"]
    """Its state, outputs or definition differ, or only one execution has it."""
    status: list[NodeStatus | None]
    duration_s: list[float | None]
    usage: list[UsageResponse | None]
    error: NotRequired[list[ErrorDocument | None]]
    written: NotRequired[list[str]]
    """Fields of it in the graph that differ, such as `data.text`."""
    outputs: NotRequired[dict[str, list[dict[str, Any] | None]]]
    """By handle: `{type, value}`; of a long value `{type, preview, sha256, chars}`."""
    result: NotRequired[str]
    """The unified diff of its main text."""


class DifferenceCounts(TypedDict):
    """The number of nodes, by the kind of difference."""

    same: int
    changed: int
    only_a: int
    only_b: int


class DifferenceResponse(TypedDict):
    """The differences between two executions; pairs are of `a` and of `b`."""

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
