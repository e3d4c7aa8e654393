"""Types of the service's JSON responses, as its OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

ExecutionStatus = Literal["starting", "executing", "paused", "completed", "failed", "cancelled"]
NodeStatus = Literal[
    "pending", "running", "retrying", "waiting", "completed", "failed",
    "skipped", "blocked", "cancelled", "linked", "not_reached",
]  # fmt: skip
PlanStatus = Literal["draft", "executing", "completed", "failed"]


class DiagnosticResponse(TypedDict):
    """One finding about a graph; ``error`` stops it from running."""

    code: str
    severity: Literal["error", "warning", "info"]
    message: str
    pointer: str
    node: NotRequired[str]
    edge: NotRequired[str]
    path: NotRequired[list[str]]
    hint: NotRequired[str]
    fix: NotRequired[str]


class CheckResponse(TypedDict):
    """What was found in a graph, and whether it can run there."""

    valid: bool
    diagnostics: list[DiagnosticResponse]


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
    """What a plan will take; ``cost_usd`` is None where a price is unknown."""

    waves: int
    nodes: int
    width: int
    depth: int
    critical_path: list[str]
    calls: int
    at_least: NotRequired[bool]
    tokens: Span
    cost_usd: Span | None
    effects: list[Effect]


class NodeDocument(TypedDict):
    """One step of a graph."""

    id: str
    type: str
    name: NotRequired[str]
    description: NotRequired[str]
    data: NotRequired[dict[str, Any]]
    policy: NotRequired[dict[str, Any]]
    ui: NotRequired[dict[str, Any]]


class EdgeDocument(TypedDict):
    """One wire of a graph; ``data`` has its ``channel``."""

    id: NotRequired[str]
    source: str
    sourceHandle: NotRequired[str]
    target: str
    targetHandle: NotRequired[str]
    type: NotRequired[str]
    data: dict[str, Any]


class PlanResponse(TypedDict):
    """A plan with its graph."""

    plan_id: str
    user_prompt: str
    title: str
    status: PlanStatus
    revision: int
    hash: str
    created_at: str
    provider: str | None
    model: str | None
    nodes: list[NodeDocument]
    edges: list[EdgeDocument]
    diagnostics: list[DiagnosticResponse]
    fixes: list[str]
    attempts: list[dict[str, Any]]
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
    """One page of plans, newest first; ``next_cursor`` is None on the last one."""

    plans: list[PlanSummary]
    next_cursor: str | None


class ExecutionCreated(TypedDict):
    """An execution that was accepted; ``position`` is its place in the queue, 1 for the next.

    ``flow_version`` is the version of the flow it runs.
    """

    execution_id: str
    plan_id: str | None
    flow_id: str | None
    flow_version: str | None
    status: ExecutionStatus
    position: int | None


class ExecutionSummary(TypedDict):
    """An execution as lists show it; ``flow_version`` is the version of the flow it runs."""

    execution_id: str
    plan_id: str | None
    flow_id: str | None
    flow_version: str | None
    title: str
    user_prompt: str
    status: ExecutionStatus
    timestamp: str
    created_at: str
    started_at: str | None
    completed_at: str | None


class ExecutionsResponse(TypedDict):
    """One page of executions, newest first; ``next_cursor`` is None on the last one."""

    executions: list[ExecutionSummary]
    next_cursor: str | None


class WaveResponse(TypedDict):
    """How far an execution has come: the lowest unfinished wave, and how many there are."""

    current: int
    total: int


class UsageResponse(TypedDict):
    """What model calls took together; ``cost_usd`` is None where a price is unknown."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    estimated: bool


class ErrorInfo(TypedDict):
    """Why something failed; branch on ``code``."""

    code: str
    message: str
    hint: NotRequired[str]
    node: NotRequired[str]


class OpenRequestResponse(TypedDict):
    """A question the node ``path`` waits on; after ``timeout_s`` it goes on without an answer."""

    request_id: str
    path: str
    request: Any
    since: str
    timeout_s: float | None


class OpenRequestsResponse(TypedDict):
    """What an execution waits to be answered, oldest first."""

    requests: list[OpenRequestResponse]


class ExecutionResponse(TypedDict):
    """The state of an execution; ``node_states`` is the status of each node by its path."""

    execution_id: str
    plan_id: str | None
    plan_hash: str | None
    flow_id: str | None
    flow_version: str | None
    title: str
    user_prompt: str
    status: ExecutionStatus
    node_states: dict[str, NodeStatus]
    logs: list[str]
    wave: WaveResponse
    queue_position: int | None
    waitingForInput: bool
    currentNodeId: str | None
    requests: list[OpenRequestResponse]
    usage: UsageResponse
    error: ErrorInfo | None
    failures: list[str]
    handled_failures: list[str]
    reason: str | None
    cause: Any
    inputs: dict[str, Any] | None
    options: dict[str, Any] | None
    parent: Any
    last_seq: int
    created_at: str | None
    started_at: str | None
    completed_at: str | None


class ResultResponse(TypedDict):
    """What an execution gave; ``node_results`` is text by node path."""

    execution_id: str
    plan_id: str | None
    status: ExecutionStatus
    node_results: dict[str, str]
    execution_logs: list[str]
    error: ErrorInfo | None
    started_at: str | None
    completed_at: str | None


class DocumentNode(TypedDict):
    """All there is to know of one node, nested ones included; ``execution_time`` in seconds."""

    id: str
    path: str
    name: str
    description: str
    type: str | None
    provider: str | None
    model: str | None
    status: NodeStatus
    result: str | None
    outputs: dict[str, Any] | None
    error: ErrorInfo | None
    handled: bool
    reason: str | None
    cause: Any
    execution_time: float | None
    dependencies: list[str]
    inputs: dict[str, Any]
    prompt: Any
    wave: int | None
    attempts: int
    reentries: int
    answers: list[dict[str, Any]]
    started_at: str | None
    completed_at: str | None
    usage: UsageResponse


class DocumentResponse(TypedDict):
    """A whole execution: the same as its JSON document in the storage directory."""

    schema_version: int
    execution_id: str
    plan_id: str | None
    plan_hash: str | None
    flow_id: str | None
    flow_version: str | None
    parent: Any
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


class ExplainResponse(TypedDict):
    """Why a node ran, did not run, or waits; branch on ``code``."""

    path: str
    status: NodeStatus
    code: str
    reason: str
    because: list[dict[str, Any]]
    inputs: dict[str, dict[str, Any]]
    course: list[dict[str, Any]]
    parameters: NotRequired[dict[str, dict[str, Any]]]
    prompt: NotRequired[Any]
    error: NotRequired[ErrorInfo]
    requests: NotRequired[list[OpenRequestResponse]]


class NodeDifference(TypedDict):
    """A node that is not the same in both; pairs are of ``a`` and ``b``, None where it is not."""

    path: str
    change: Literal["same", "changed", "only_a", "only_b"]
    status: list[NodeStatus | None]
    duration_s: list[float | None]
    usage: list[UsageResponse | None]
    error: NotRequired[list[ErrorInfo | None]]
    written: NotRequired[list[str]]
    outputs: NotRequired[dict[str, list[dict[str, Any] | None]]]
    result: NotRequired[str]


class DifferenceCounts(TypedDict):
    """How many nodes are what."""

    same: int
    changed: int
    only_a: int
    only_b: int


class DifferenceResponse(TypedDict):
    """What differs between two executions; pairs are of ``a`` and ``b``."""

    a: str
    b: str
    status: list[ExecutionStatus]
    duration_s: list[float | None]
    usage: list[UsageResponse]
    counts: DifferenceCounts
    nodes: list[NodeDifference]
    left_off: int


class GraphDocument(TypedDict):
    """Nodes and edges."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]


class FlowResponse(TypedDict):
    """A flow with its graph; ``version`` is the hash of that, ``revision`` counts changes."""

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    graph: GraphDocument


class FlowSummary(TypedDict):
    """A flow as lists show it."""

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    node_count: int


class FlowsResponse(TypedDict):
    """One page of flows, newest first; ``next_cursor`` is None on the last one."""

    flows: list[FlowSummary]
    next_cursor: str | None


class FlowVersionResponse(TypedDict):
    """One content of a flow; ``revision`` is the first one that had it."""

    version: str
    revision: int
    created_at: str
    node_count: int


class FlowVersionsResponse(TypedDict):
    """One page of versions, newest first; ``next_cursor`` is None on the last one."""

    flow_id: str
    versions: list[FlowVersionResponse]
    next_cursor: str | None


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


class ProvidersResponse(TypedDict):
    """The providers that can be used, by name, and details of all."""

    providers: list[str]
    default_models: dict[str, str | None]
    models: dict[str, list[str]]
    details: list[ProviderDetails]


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
    """One node type; ``schema`` is the JSON Schema of its ``data``, ``example`` a graph to run."""

    node_type: str
    purpose: str
    inputs: list[PortResponse]
    outputs: list[PortResponse]
    entry: bool
    executes: bool
    materializes: bool
    effect: Literal["none", "read", "write", "once"]
    template_fields: list[str] | None
    version: int
    reads_goal: bool
    chooses: bool
    schema: dict[str, Any]
    example: dict[str, Any]


class NodeTypesResponse(TypedDict):
    """The node types there are."""

    node_types: list[NodeTypeResponse]


class LimitResponse(TypedDict):
    """One limit; ``variable`` is the environment variable that sets it."""

    name: str
    value: float
    default: float
    hard_cap: float
    unit: str
    what: str
    variable: str


class LimitsResponse(TypedDict):
    """What may not be passed there."""

    limits: list[LimitResponse]
