# Generated from the OpenAPI document by tools/gen_client_types.py; do not edit. Run: make generate
"""Types of the service's JSON responses."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

ExecutionStatus = Literal["starting", "executing", "paused", "completed", "failed", "cancelled"]
NodeStatus = Literal[
    "pending",
    "running",
    "retrying",
    "waiting",
    "completed",
    "failed",
    "skipped",
    "blocked",
    "cancelled",
    "linked",
    "not_reached",
]
PlanStatus = Literal["draft", "executing", "completed", "failed"]


class DiagnosticResponse(TypedDict):
    """One finding about a graph."""

    code: str
    severity: Literal["error", "warning", "info"]
    """`error` stops a graph from running."""
    message: str
    pointer: str
    """JSON pointer into the graph."""
    node: NotRequired[str]
    edge: NotRequired[str]
    path: NotRequired[list[str]]
    """The nodes around a cycle."""
    hint: NotRequired[str]
    """The way out."""
    fix: NotRequired[str]
    """What was changed, where the meaning was certain."""


class NodeDocument(TypedDict):
    """One step."""

    id: str
    type: str
    """A node type; `GET /api/node-types` lists them."""
    name: NotRequired[str]
    description: NotRequired[str]
    data: NotRequired[dict[str, Any]]
    """What the type asks for; see its schema."""
    policy: NotRequired[dict[str, Any]]
    """`{join, retry: {attempts, backoffS, on, notOn}, timeoutS, onError, default, effect}`, all optional."""
    ui: NotRequired[dict[str, Any]]
    """Kept for editors, never read."""


class EdgeDocument(TypedDict):
    """One wire."""

    id: NotRequired[str]
    source: str
    sourceHandle: NotRequired[str]
    target: str
    targetHandle: NotRequired[str]
    type: NotRequired[str]
    data: dict[str, Any]
    """`{"channel": "flow" | "link"}`, and whatever an editor keeps here."""


class GraphDocument(TypedDict):
    """Nodes and edges, as they are stored and drawn."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]


class CheckResponse(TypedDict):
    """The result of checking a graph."""

    valid: bool
    """Whether it can run here, now."""
    diagnostics: list[DiagnosticResponse]
    graph: GraphDocument | None
    """As it is stored and run, with every handle and channel; null if a part cannot be read."""


class UsageResponse(TypedDict):
    """What model calls took together."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    estimated: bool


class DifferenceCounts(TypedDict):
    """How many nodes are what."""

    same: int
    changed: int
    only_a: int
    only_b: int


class ErrorInfo(TypedDict):
    """Why something failed."""

    code: str
    message: str
    hint: NotRequired[str]
    node: NotRequired[str]


class NodeDifference(TypedDict):
    """A node that is not the same in both; pairs are of `a` and of `b`, null where it is not there."""

    path: str
    change: Literal["same", "changed", "only_a", "only_b"]
    """What it is and gives, or what the graph says of it, is another; or only one has it."""
    status: list[NodeStatus | None]
    duration_s: list[float | None]
    usage: list[UsageResponse | None]
    error: NotRequired[list[ErrorInfo | None]]
    written: NotRequired[list[str]]
    """Fields of it in the graph that differ."""
    outputs: NotRequired[dict[str, list[dict[str, Any] | None]]]
    """By handle: `{type, value}`; of a long value `{type, preview, sha256, chars}`."""
    result: NotRequired[str]
    """The unified diff of its main text."""


class DifferenceResponse(TypedDict):
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


class OpenRequestResponse(TypedDict):
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


class WaveResponse(TypedDict):
    """How far an execution has come."""

    current: int
    """The lowest unfinished wave."""
    total: int


class ReusedFrom(TypedDict):
    """The node whose result was taken in place of a run."""

    execution_id: str
    path: str


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


class DocumentResponse(TypedDict):
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


class ExecutionCreated(TypedDict):
    """An execution that was accepted; it is stored."""

    execution_id: str
    plan_id: str | None
    flow_id: str | None
    flow_version: str | None
    status: ExecutionStatus
    position: int | None
    """Place in the queue, 1 for the next one; null for what is not queued."""


class ExecutionResponse(TypedDict):
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


class ExecutionSummary(TypedDict):
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


class ExecutionsResponse(TypedDict):
    """One page of executions, newest first."""

    executions: list[ExecutionSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class ExplainResponse(TypedDict):
    """Why a node ran, did not run, or waits."""

    path: str
    status: NodeStatus
    code: str
    """Stable; branch on it."""
    reason: str
    """A sentence or two."""
    because: list[dict[str, Any]]
    """The nodes it depends on: `{node, status, …}`."""
    inputs: dict[str, dict[str, Any]]
    """What it read, by handle: `{text, arrivals: [{edge, source, value, text, …}]}`."""
    course: list[dict[str, Any]]
    """What happened to it, in order: `{seq, at, what, attempt?, …}`."""
    parameters: NotRequired[dict[str, dict[str, Any]]]
    """Where its wired parameters came from: `{name: {channel, source, edge, handle?, over}}`."""
    prompt: NotRequired[Any]
    """What was sent to a model last."""
    error: NotRequired[ErrorInfo]
    requests: NotRequired[list[OpenRequestResponse]]
    """What it waits for."""


class FlowResponse(TypedDict):
    """A flow: a graph saved under a name."""

    flow_id: str
    name: str
    description: str
    """What it is for; its executions have it as their goal."""
    version: str
    """The hash of the graph: the `ETag`, and what `If-Match` compares."""
    revision: int
    """Counts its changes; of an older version, that which brought it."""
    created_at: str
    updated_at: str
    """When the revision was saved, UTC."""
    graph: GraphDocument


class FlowSummary(TypedDict):
    """A flow as lists show it."""

    flow_id: str
    name: str
    description: str
    """What it is for; its executions have it as their goal."""
    version: str
    """The hash of its graph; what is the same is the same version."""
    revision: int
    """Counts its changes; 1 for a new one."""
    created_at: str
    updated_at: str
    node_count: int


class FlowsResponse(TypedDict):
    """One page of flows, newest first."""

    flows: list[FlowSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class FlowVersionResponse(TypedDict):
    """One content of a flow."""

    version: str
    revision: int
    """The first one that had it."""
    created_at: str
    node_count: int


class FlowVersionsResponse(TypedDict):
    """One page of versions, newest first."""

    flow_id: str
    versions: list[FlowVersionResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""


class Span(TypedDict):
    """From terse to talkative answers."""

    low: float
    high: float


class Effect(TypedDict):
    """A node that changes the world."""

    node: str
    type: str
    effect: Literal["write", "once"]


class ForecastResponse(TypedDict):
    """What a plan will take, estimated before anything is run or paid."""

    waves: int
    nodes: int
    width: int
    """Nodes in the widest wave."""
    depth: int
    critical_path: list[str]
    calls: int
    """Model calls; those of a graph inside a node count once."""
    at_least: NotRequired[bool]
    """Whether a node runs graphs, so that it may be more."""
    tokens: Span
    cost_usd: Span | None
    """Null where a price is unknown."""
    effects: list[Effect]


class LimitResponse(TypedDict):
    """One limit."""

    name: str
    value: float
    default: float
    hard_cap: float
    unit: str
    what: str
    variable: str
    """The environment variable that sets it."""


class LimitsResponse(TypedDict):
    """What may not be passed here."""

    limits: list[LimitResponse]


class PortResponse(TypedDict):
    """A named socket of a node type."""

    name: str
    type: str
    label: str
    channel: Literal["flow", "link"]
    multiple: bool
    required: bool
    side: str
    color: str
    shape: str


class NodeTypeResponse(TypedDict):
    """One node type."""

    node_type: str
    purpose: str
    inputs: list[PortResponse]
    outputs: list[PortResponse]
    entry: bool
    """Whether executions may be given values for it."""
    executes: bool
    """Whether it runs as a step."""
    materializes: bool
    """Whether it can be a dependency of other nodes, over a link."""
    effect: Literal["none", "read", "write", "once"]
    template_fields: list[str] | None
    """Fields of `data` in which `{{ … }}` is resolved; null means all."""
    version: int
    """Raised where the same data and inputs give something else from then on."""
    reads_goal: bool
    """Whether its result depends on the execution's goal by itself."""
    chooses: bool
    """Whether one of its outputs alone carries a value."""
    schema: dict[str, Any]
    """JSON Schema of `data`."""
    example: dict[str, Any]
    """A small graph that shows it at work and can be run; empty where there is none."""


class NodeTypesResponse(TypedDict):
    """The node types there are."""

    node_types: list[NodeTypeResponse]


class OpenRequestsResponse(TypedDict):
    """What an execution waits to be answered."""

    requests: list[OpenRequestResponse]
    """Oldest first."""


class PlanResponse(TypedDict):
    """A plan: a titled graph made for a goal."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]
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


class PlanSummary(TypedDict):
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


class PlansResponse(TypedDict):
    """One page of plans, newest first."""

    plans: list[PlanSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class ProviderDetails(TypedDict):
    """One provider, and why it can or cannot be used."""

    name: str
    kind: str
    available: bool
    reason: str
    how_to_enable: str
    models: list[str]
    default_model: str | None
    open_models: bool
    """Whether names outside `models` are accepted too."""


class ProvidersResponse(TypedDict):
    """The providers that can be used, by name, and details of all."""

    providers: list[str]
    default_models: dict[str, str | None]
    models: dict[str, list[str]]
    details: list[ProviderDetails]


class ResultResponse(TypedDict):
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
