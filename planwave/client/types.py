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


class PrincipalResponse(TypedDict):
    """Who did something."""

    kind: Literal["operator", "session", "token", "trigger", "chat", "local", "library"]
    """`operator`: with the service's token; `session`: a browser that logged in with it; `token`: an
access token; `trigger`; `chat`; `local`: the command line, or anybody where the service has no
token; `library`: a Python program."""
    id: NotRequired[str]
    """Of the session, token, trigger or chat; left out where there is none."""
    name: NotRequired[str]
    """The name of a token, the kind of a trigger."""
    by: NotRequired[PrincipalResponse]
    """Who set up the trigger or the chat."""


class ChatConfig(TypedDict):
    """What replies without a flow: an agent, made of these fields."""

    provider: NotRequired[str]
    model: NotRequired[str]
    system_prompt: NotRequired[str]
    """Who the model is."""
    instructions: NotRequired[str]
    """What else it is told, after a blank line."""
    tools: NotRequired[list[str]]
    """Names of registered tools that it may call."""
    temperature: NotRequired[float]
    reasoning_effort: NotRequired[str]
    max_tokens: NotRequired[int]
    approval: NotRequired[Literal["never", "always", "write"]]
    """When a person approves calls of its tools."""
    on_disconnect: NotRequired[Literal["continue", "cancel"]]
    """What becomes of a reply when the last client leaves that follows it."""


class ReplyUsage(TypedDict):
    """What a reply has used so far."""

    inputTokens: int
    outputTokens: int
    totalTokens: int
    costUsd: float | None
    """Null where the price of a model is not known."""


class MessageResponse(TypedDict):
    """One message; see docs/chat.md for its blocks."""

    message_id: str
    chat_id: str
    parent_id: str | None
    role: Literal["user", "assistant"]
    origin: Literal["send", "edit", "retry", "continue"]
    created_at: str
    siblings: list[str]
    """The ids of all messages with this parent and role, in the order of creation."""
    blocks: list[dict[str, Any]]
    execution_id: str | None
    status: ExecutionStatus | None
    """Of a reply; null in messages of the user."""
    cursor: int | None
    """Of a reply: the events up to here are in `blocks`."""
    usage: ReplyUsage | None
    """Of a reply, what its models used."""


class ChatResponse(TypedDict):
    """A chat with its messages."""

    chat_id: str
    title: str
    created_at: str
    created_by: PrincipalResponse | None
    """Who opened it; null where it is not known."""
    updated_at: str
    plan_id: str | None
    plan_revision: int | None
    node_id: str | None
    config: ChatConfig | None
    head: str | None
    """The last message of the branch that is shown."""
    revision: int
    """Counts the changes of the chat and of the status of its messages."""
    status: ExecutionStatus | None
    """Of the newest reply."""
    messages: list[MessageResponse]
    """In the order of creation."""


class ChatSummary(TypedDict):
    """A chat without its messages."""

    chat_id: str
    title: str
    created_at: str
    created_by: PrincipalResponse | None
    """Who opened it; null where it is not known."""
    updated_at: str
    plan_id: str | None
    plan_revision: int | None
    node_id: str | None
    config: ChatConfig | None
    head: str | None
    """The last message of the branch that is shown."""
    revision: int
    """Counts the changes of the chat and of the status of its messages."""
    status: ExecutionStatus | None
    """Of the newest reply."""


class ChatsResponse(TypedDict):
    """One page of chats, newest first."""

    chats: list[ChatSummary]
    next_cursor: str | None


class UpdateNodeOperation(TypedDict):
    """Changes fields of a node, but not its id."""

    op: Literal["update_node"]
    id: str
    set: dict[str, Any]
    """A merge patch (RFC 7396) for the node: null removes a field."""


class AddEdgeOperation(TypedDict):
    """Adds an edge at the end; without an id it gets one."""

    op: Literal["add_edge"]
    edge: dict[str, Any]
    """One wire."""


class RemoveEdgeOperation(TypedDict):
    """Removes an edge."""

    op: Literal["remove_edge"]
    id: str


class SuggestionResponse(TypedDict):
    """The one way to correct a finding, for a person to accept."""

    label: str
    operations: list[UpdateNodeOperation | AddEdgeOperation | RemoveEdgeOperation]
    """For `PATCH`, of the plan or the flow that has the graph."""


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
    """Corrections of the document, made only if its meaning was certain."""
    suggestion: NotRequired[SuggestionResponse]
    """Only where there is one way to correct it."""


class NodeDocument(TypedDict):
    """One step."""

    id: str
    type: str
    """A node type; `GET /api/node-types` lists them."""
    name: NotRequired[str]
    description: NotRequired[str]
    data: NotRequired[dict[str, Any]]
    """The fields of the node type; see its schema."""
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
    """`{"channel": "flow" | "link"}`, and other fields of an editor."""


class GraphDocument(TypedDict):
    """Nodes and edges, as they are stored and drawn."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]


class PortResponse(TypedDict):
    """A named socket of a node type; one that takes flow and link edges is listed once for each."""

    name: str
    """The handle; `{i}` in it stands for a number, any other `{word}` for any text."""
    type: str
    """The socket type; `socket_types` lists them."""
    label: str
    channel: Literal["flow", "link"]
    multiple: bool
    """Whether several flow edges may lead into it."""
    required: bool
    side: str
    """`left`, `right`, `top` or `bottom`; the same for all ports of a name."""
    color: str
    """That of the socket type on light pages."""
    shape: str
    """That of the socket type: `circle`, `square`, `diamond`, `tab`."""


class NodePortsResponse(TypedDict):
    """The ports of one node."""

    inputs: list[PortResponse]
    outputs: list[PortResponse]


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
    """The forecast of a plan: calls, tokens and cost, before anything runs."""

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


class CheckResponse(TypedDict):
    """The result of checking a graph."""

    valid: bool
    """Whether it can run here, now."""
    diagnostics: list[DiagnosticResponse]
    graph: GraphDocument | None
    """As it is stored and run, with every handle and channel; null if a part cannot be read."""
    ports: dict[str, NodePortsResponse]
    """By node id, of the nodes whose data or edges decide about their ports; all others have those of
their type. Without patterns: numbered and open ports are given by the handles there are."""
    forecast: ForecastResponse | None
    """Its forecast; null if it has errors other than those of providers."""


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


class DifferenceCounts(TypedDict):
    """The number of nodes, by the kind of difference."""

    same: int
    changed: int
    only_a: int
    only_b: int


class ErrorInfo(TypedDict):
    """Why something failed."""

    code: str
    message: str
    hint: NotRequired[str]
    url: NotRequired[str]
    """The URL whose request failed, without credentials and query."""
    node: NotRequired[str]


class NodeDifference(TypedDict):
    """A node that is not the same in both; pairs are of `a` and of `b`, null where it is not there."""

    path: str
    change: Literal["same", "changed", "only_a", "only_b"]
    """Its state, outputs or definition differ, or only one execution has it."""
    status: list[NodeStatus | None]
    duration_s: list[float | None]
    usage: list[UsageResponse | None]
    error: NotRequired[list[ErrorInfo | None]]
    written: NotRequired[list[str]]
    """Fields of it in the graph that differ, such as `data.text`."""
    outputs: NotRequired[dict[str, list[dict[str, Any] | None]]]
    """By handle: `{type, value}`; of a long value `{type, preview, sha256, chars}`."""
    result: NotRequired[str]
    """The unified diff of its main text."""


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
    answered_by: NotRequired[PrincipalResponse]
    """Who answered here."""


class OpenRequestResponse(TypedDict):
    """A question that a node waits on, or the whole execution."""

    request_id: str
    path: str | None
    """Of the node that asks; null where the execution asks, for approval of its plan or a higher budget."""
    request: Any
    """The request. An `approval` has `{kind, prompt, actions, form, value, editable}`, the approval
of a plan (`plan-approval`) `{kind, prompt, actions, plan_hash, plan_id, title, goal, forecast}`, a
higher budget (`budget`) `{kind, message, actions, limits, used, waiting}`."""
    since: str
    """When it was asked, UTC."""
    timeout_s: float | None
    """Seconds from then on after which the node goes on without an answer; null: it waits."""


class WaveResponse(TypedDict):
    """How far an execution has come."""

    current: int
    """The lowest unfinished wave."""
    total: int


class BudgetResponse(TypedDict):
    """The budget of an execution, by amount: `usd`, `tokens`, `calls`, `wall_s`."""

    limits: dict[str, float]
    """Those that hold now."""
    used: dict[str, float]
    warned: list[str]
    """Amounts that are nearly used up."""


class RunResultResponse(TypedDict):
    """What the last nodes of an execution delivered."""

    nodes: list[str]
    """The nodes that the value comes from: the `end` nodes that delivered something, or else the last
nodes that did."""
    value: Any
    """The value of the only node; several give an object by node id, none gives null."""


class ReusedFrom(TypedDict):
    """The node whose result was taken in place of a run."""

    execution_id: str
    path: str
    failed_inside: bool
    """Whether it completed although a node inside it failed, such as a loop that skips failed items."""


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
    error: NotRequired[ErrorInfo]
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
    error: str | None
    """Why it failed, as text."""
    error_detail: ErrorInfo | None
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


class DocumentResponse(TypedDict):
    """The whole execution as one document; the same as `{execution_id}.json` in the storage."""

    schema_version: int
    execution_id: str
    plan_id: str | None
    revision: int | None
    plan_hash: str | None
    flow: str | None
    parent: Any
    """The execution that it forks."""
    trigger: Any
    """What started it, `{"id", "kind", "delivery"}`; null for a person or a program with a token."""
    created_by: PrincipalResponse | None
    """Who created it; null where an older planwave did."""
    approval: PlanApprovalResponse | None
    """The approval that its plan needs; null where it needs none."""
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
    budget: BudgetResponse | None
    """What it may use; null where nothing limits it."""
    inputs: dict[str, Any] | None
    result: RunResultResponse
    nodes: list[DocumentNode]
    node_results: dict[str, str]
    execution_logs: list[str]
    graph: dict[str, Any] | None


class ExecutionCreated(TypedDict):
    """An execution that was accepted; it is stored."""

    execution_id: str
    plan_id: str | None
    revision: int | None
    flow: str | None
    status: ExecutionStatus
    position: int | None
    """Place in the queue, 1 for the next one; null if it is not queued."""


class ExecutionResponse(TypedDict):
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
    budget: BudgetResponse | None
    """What it may use; null where nothing limits it."""
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
    trigger: Any
    """What started it, `{"id", "kind", "delivery"}`; null for a person or a program with a token."""
    created_by: PrincipalResponse | None
    """Who created it; null where an older planwave did."""
    approval: PlanApprovalResponse | None
    """The approval that its plan needs; null where it needs none."""
    last_seq: int
    """The last event this shows."""
    created_at: str | None
    started_at: str | None
    completed_at: str | None


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


class ExecutionSummary(TypedDict):
    """An execution as lists show it."""

    execution_id: str
    plan_id: str | None
    revision: int | None
    flow: str | None
    created_by: PrincipalResponse | None
    title: str
    user_prompt: str
    status: ExecutionStatus
    timestamp: str
    """When it was made, UTC; the same as `created_at`."""
    created_at: str
    started_at: str | None
    completed_at: str | None
    digest: NotRequired[ExecutionDigest]
    """Only with `digest=1`; left out where it takes long to find: it is there the next time."""


class ExecutionCounts(TypedDict):
    """How many executions fit all filters but `status` and `waiting`."""

    total: int
    waiting: int
    """Those that wait for an answer of a person; they are executing or paused too."""
    starting: NotRequired[int]
    executing: NotRequired[int]
    paused: NotRequired[int]
    completed: NotRequired[int]
    failed: NotRequired[int]
    cancelled: NotRequired[int]


class ExecutionsResponse(TypedDict):
    """One page of executions, newest first."""

    executions: list[ExecutionSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""
    counts: NotRequired[ExecutionCounts]
    """Where asked for (`counts=1`)."""


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
    """The inputs, by handle: `{text, arrivals: [{edge, source, value, text, …}]}`."""
    course: list[dict[str, Any]]
    """Its history, in order: `{seq, at, what, attempt?, …}`."""
    parameters: NotRequired[dict[str, dict[str, Any]]]
    """Where its wired parameters came from: `{name: {channel, source, edge, handle?, over}}`."""
    prompt: NotRequired[Any]
    """The last request to a model."""
    error: NotRequired[ErrorInfo]
    requests: NotRequired[list[OpenRequestResponse]]
    """Its open requests."""


class ApprovalResponse(TypedDict):
    """The approval of a revision, for all callers of a flow."""

    at: str
    by: PrincipalResponse


class RevisionSummary(TypedDict):
    """A revision as lists show it."""

    plan_id: str
    revision: int
    """1 for the plan as it was made."""
    hash: str
    """Of the graph."""
    title: str
    author: Literal["person", "planner", "api"]
    note: str
    created_at: str
    created_by: PrincipalResponse | None
    """Who made it; null where an older planwave did."""
    node_count: int
    error_count: int
    """With any error it is a draft, which cannot be executed."""
    approval: ApprovalResponse | None
    """That of its hash; null where nobody approved it."""


class FlowEditResponse(TypedDict):
    """A flow after a change by operations."""

    plan_id: str
    """The id of the plan that the flow is: see `GET /api/plans/{plan_id}` for its newest revision."""
    name: str
    """Unique without regard to case."""
    title: str
    description: str
    """Its purpose; its executions have it as their goal."""
    revision: int
    """The revision that is shown: the one that callers start unless another one was asked for."""
    live_revision: int | None
    """The revision that callers start; null while none is approved."""
    draft: RevisionSummary | None
    """The newest revision, where callers do not start it: it has errors, or is not approved. Always null for an
access token."""
    created_at: str
    updated_at: str
    """When the revision was made, UTC."""
    published: list[Literal["model", "tool"]]
    """What the flow is published as; see `PUT /api/flows/{plan_id}/publication`."""
    hash: str
    """Of the graph: the `ETag`, which `If-Match` compares with the newest revision."""
    inputs: dict[str, Any] | None
    """The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read."""
    graph: GraphDocument
    diagnostics: list[DiagnosticResponse]
    """Warnings about its graph, and about names that the operations could not follow."""


class FlowResponse(TypedDict):
    """A flow: a plan that has a name, in the revision that callers start."""

    plan_id: str
    """The id of the plan that the flow is: see `GET /api/plans/{plan_id}` for its newest revision."""
    name: str
    """Unique without regard to case."""
    title: str
    description: str
    """Its purpose; its executions have it as their goal."""
    revision: int
    """The revision that is shown: the one that callers start unless another one was asked for."""
    live_revision: int | None
    """The revision that callers start; null while none is approved."""
    draft: RevisionSummary | None
    """The newest revision, where callers do not start it: it has errors, or is not approved. Always null for an
access token."""
    created_at: str
    updated_at: str
    """When the revision was made, UTC."""
    published: list[Literal["model", "tool"]]
    """What the flow is published as; see `PUT /api/flows/{plan_id}/publication`."""
    hash: str
    """Of the graph: the `ETag`, which `If-Match` compares with the newest revision."""
    inputs: dict[str, Any] | None
    """The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read."""
    graph: GraphDocument


class FlowSummary(TypedDict):
    """A flow as lists show it."""

    plan_id: str
    """The id of the plan that the flow is: see `GET /api/plans/{plan_id}` for its newest revision."""
    name: str
    """Unique without regard to case."""
    title: str
    description: str
    """Its purpose; its executions have it as their goal."""
    revision: int
    """The revision that is shown: the one that callers start unless another one was asked for."""
    live_revision: int | None
    """The revision that callers start; null while none is approved."""
    draft: RevisionSummary | None
    """The newest revision, where callers do not start it: it has errors, or is not approved. Always null for an
access token."""
    created_at: str
    updated_at: str
    """When the revision was made, UTC."""
    published: list[Literal["model", "tool"]]
    """What the flow is published as; see `PUT /api/flows/{plan_id}/publication`."""
    updated_by: PrincipalResponse | None
    """Who made the revision; null where it is not known."""
    node_count: int


class FlowsResponse(TypedDict):
    """One page of flows, newest first."""

    flows: list[FlowSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


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
    """The limits of the service."""

    limits: list[LimitResponse]


class NodeTypeResponse(TypedDict):
    """One node type."""

    node_type: str
    purpose: str
    """When to use it, as planners are told."""
    summary: str
    """A few words for people who choose a type."""
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


class SocketTypeResponse(TypedDict):
    """How sockets of one type are drawn, and the types they accept."""

    type: str
    label: str
    color: str
    """On light pages, as `#rrggbb`."""
    dark_color: str
    """On dark pages."""
    shape: str
    accepts: list[str]
    """Other types whose values it takes."""


class NodeTypesResponse(TypedDict):
    """The node types there are, and the types of their sockets."""

    node_types: list[NodeTypeResponse]
    socket_types: list[SocketTypeResponse]


class NotificationResponse(TypedDict):
    """One message to one target."""

    notification_id: str
    """The `webhook-id` of the message, the same in every attempt."""
    target_id: str
    execution_id: str
    event: str
    """What happened: `completed`, `failed`, `cancelled` or `waiting`."""
    status: Literal["pending", "delivered", "dead"]
    """`dead` if nobody accepted it in time; it can be sent again."""
    created_at: str
    attempts: int
    """How often it was sent, since a person had it sent again."""
    next_at: str | None
    """When it is sent next; null unless it is pending."""
    error: str
    """Why the last attempt failed; empty if none did."""


class NotificationsResponse(TypedDict):
    """One page of notifications, newest first."""

    notifications: list[NotificationResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""


class OpenRequestsResponse(TypedDict):
    """The open requests of an execution."""

    requests: list[OpenRequestResponse]
    """Oldest first."""


class PlanOrigin(TypedDict):
    """A revision of another plan."""

    plan_id: str
    revision: int


class PlanResponse(TypedDict):
    """A plan in its newest revision: a titled graph made for a goal."""

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
    name: str | None
    """The name, for which it is a flow; null for a plan without one."""
    description: str
    """The purpose of a flow."""
    published: list[Literal["model", "tool"]]
    """What a flow is published as; see `PUT /api/flows/{plan_id}/publication`."""
    live_revision: int | None
    """The revision that callers of a flow start: the newest one without errors and, where the operator requires
it, with an approval; null without one."""
    approval: ApprovalResponse | None
    """That of its hash; null where nobody approved it."""
    inputs: dict[str, Any] | None
    """The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read."""
    origin: NotRequired[PlanOrigin]
    """The flow that it was copied from; left out for all others."""
    provider: str | None
    """The provider of the model that wrote it; null for a plan that no model wrote."""
    model: str | None
    diagnostics: list[DiagnosticResponse]
    fixes: list[str]
    """Corrections of the model's reply."""
    attempts: list[dict[str, Any]]
    """`{reply, finish_reason, diagnostics, usage}` of each model call."""
    forecast: dict[str, Any]
    """As of the revision, in the form of `GET …/forecast`; empty for a draft with errors."""


class PlanSummary(TypedDict):
    """A plan as lists show it."""

    plan_id: str
    user_prompt: str
    title: str
    name: str | None
    """The name, for which it is a flow; null for a plan without one."""
    status: PlanStatus
    revision: int
    live_revision: int | None
    """The revision that callers of a flow start; a lower number than `revision`, or null, under a draft."""
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


class ModelDownload(TypedDict):
    """A download of a model that is going on."""

    model: str
    done_bytes: int
    size_bytes: int


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
    download: ModelDownload | None
    """Of the embedded model, while it is downloaded; null: it is not."""


class ProvidersResponse(TypedDict):
    """The providers that can be used, by name, and details of all."""

    providers: list[str]
    default_models: dict[str, str | None]
    models: dict[str, list[str]]
    details: list[ProviderDetails]


class PublishedHook(TypedDict):
    """A webhook of a flow."""

    trigger_id: str
    path: str
    """Where it receives requests."""
    enabled: bool


class PublicationResponse(TypedDict):
    """What a flow is published as."""

    plan_id: str
    name: str
    model: bool
    tool: bool
    hooks: list[PublishedHook]
    """The triggers of its `webhook` nodes; those that are not enabled start nothing."""


class ReplyResponse(TypedDict):
    """A new reply, which may not have started."""

    chat_id: str
    message: MessageResponse


class ResultResponse(TypedDict):
    """The result of an execution, so far or at its end."""

    execution_id: str
    plan_id: str | None
    status: ExecutionStatus
    result: RunResultResponse
    node_results: dict[str, str]
    """Results as text, by node path; nodes without one are left out."""
    execution_logs: list[str]
    error: ErrorInfo | None
    started_at: str | None
    completed_at: str | None


class FieldDifference(TypedDict):
    """One field that differs; a value that is missing on a side is left out."""

    pointer: str
    """JSON pointer into the node or the edge."""
    before: NotRequired[Any]
    after: NotRequired[Any]


class ElementDifference(TypedDict):
    """One node or edge that differs."""

    id: str | None
    change: Literal["added", "removed", "changed"]
    before: NotRequired[dict[str, Any]]
    """Of a removed one: all of it."""
    after: NotRequired[dict[str, Any]]
    """Of an added one: all of it."""
    fields: NotRequired[list[FieldDifference]]
    """Of a changed one."""


class RevisionDiffResponse(TypedDict):
    """The differences between two revisions of a plan, without `ui`."""

    plan_id: str
    a: int
    b: int
    hash: list[str]
    """Of A and of B."""
    title: list[str] | None
    """Of A and of B; null where they are the same."""
    nodes: list[ElementDifference]
    edges: list[ElementDifference]
    reordered: list[Literal["nodes", "edges"]]
    """Which lists have common members in another order."""


class RevisionResponse(TypedDict):
    """One revision of a plan."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]
    plan_id: str
    revision: int
    """1 for the plan as it was made."""
    hash: str
    """Of the graph."""
    title: str
    author: Literal["person", "planner", "api"]
    note: str
    created_at: str
    created_by: PrincipalResponse | None
    """Who made it; null where an older planwave did."""
    node_count: int
    error_count: int
    """With any error it is a draft, which cannot be executed."""
    approval: ApprovalResponse | None
    """That of its hash; null where nobody approved it."""
    diagnostics: list[DiagnosticResponse]


class RevisionsResponse(TypedDict):
    """One page of revisions, newest first."""

    plan_id: str
    revisions: list[RevisionSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class TargetResponse(TypedDict):
    """A URL that is notified of executions."""

    target_id: str
    """Its id; of a target of the operator its name in `planwave.toml`."""
    plan_id: str | None
    """The flow whose executions count; null for those of all, which only the operator sets."""
    flow: str | None
    url: str
    secrets: list[str]
    """The names of the secrets that sign."""
    events: list[str]
    problem: str | None
    """Why it gets nothing; null without a problem."""
    created_at: str | None
    """Null for a target of the operator."""


class TargetsResponse(TypedDict):
    """The targets of the operator, then those of flows, newest first."""

    targets: list[TargetResponse]


class TokenCreatedResponse(TypedDict):
    """A new access token."""

    token_id: str
    name: str
    scopes: list[Literal["chat", "run", "read"]]
    flows: list[str]
    created_at: str
    requests_per_minute: int | None
    executions_per_minute: int | None
    expires_at: str | None
    """From when on it is worth nothing, UTC; null for never."""
    created_by: PrincipalResponse | None
    """Who created it; null where an older planwave did."""
    last_used_at: str | None
    """When it was used last, UTC, to about a minute; null for never."""
    token: str
    """The text to send as `Authorization: Bearer …`; it is not stored, and never shown again."""


class TokenResponse(TypedDict):
    """An access token, without its text."""

    token_id: str
    name: str
    scopes: list[Literal["chat", "run", "read"]]
    flows: list[str]
    created_at: str
    requests_per_minute: int | None
    executions_per_minute: int | None
    expires_at: str | None
    """From when on it is worth nothing, UTC; null for never."""
    created_by: PrincipalResponse | None
    """Who created it; null where an older planwave did."""
    last_used_at: str | None
    """When it was used last, UTC, to about a minute; null for never."""


class TokensResponse(TypedDict):
    """All access tokens, newest first."""

    tokens: list[TokenResponse]


class DeliveryResponse(TypedDict):
    """One thing that a trigger received."""

    key: str
    """What identifies it: a repeated one has the same."""
    received_at: str
    outcome: str | None
    """What became of it, such as `started` or `rejected`; null while it is processed."""
    note: str
    execution_id: str | None
    """The execution that it started, or is starting."""


class TriggerResponse(TypedDict):
    """An entry node of a flow that is listened for."""

    trigger_id: str
    kind: str
    """The type of its node."""
    plan_id: str
    flow: str
    """The name of the flow."""
    revision: int | None
    """The revision that it is bound to; null for the live one."""
    live_revision: int | None
    """The revision that it starts now; null where it starts none, as `problem` says."""
    node_id: str
    enabled: bool
    problem: str | None
    """Why it starts nothing although it may be enabled; null without a problem."""
    created_at: str
    created_by: PrincipalResponse | None
    """Who set it up; null where an older planwave did."""
    details: dict[str, Any]
    """What only its kind has, such as the path of a webhook."""
    deliveries: list[DeliveryResponse]
    """The last ones, newest first."""


class TriggersResponse(TypedDict):
    """One page of triggers, newest first."""

    triggers: list[TriggerResponse]
    next_cursor: str | None
    """For the next page; null on the last one."""


class TurnResponse(TypedDict):
    """A new message of the user, and the reply to it."""

    chat_id: str
    message: MessageResponse
    user_message: MessageResponse
