// Generated from the OpenAPI document by tools/gen_web_types.py; do not edit. Run: make generate
// It has what the page uses: what is imported from here, and the operations that are named.

import type { JsonNumber } from "@/json";

export type ExecutionStatus = "starting" | "executing" | "paused" | "completed" | "failed" | "cancelled";

export type NodeStatus = "pending" | "running" | "retrying" | "waiting" | "completed" | "failed" | "skipped" | "blocked" | "cancelled" | "linked" | "not_reached";

export type PlanStatus = "draft" | "executing" | "completed" | "failed";

/** How it is. */
export type Health = {
  /** `ok`; `disk-full`, `store-busy` or `store-unreachable`: writes are refused until that has passed; `store-read-only`: writes are refused until a restart. */
  status?: string;
};

/** The failure of a nested node, with its own code. */
export type ErrorCause = {
  node: string;
  code: string;
  message: string;
  hint?: string;
};

/** Why something failed. */
export type ErrorDocument = {
  code: string;
  message: string;
  hint?: string;
  /** The URL whose request failed, without credentials and query. */
  url?: string;
  /** The node whose failure is the first one of a nested run. */
  node?: string;
  /** The failure at which a nested run began to fail, however deep it is nested. */
  cause?: ErrorCause;
};

/** The failed node that a node was blocked by, and its error. */
export type BlockedCause = {
  node: string | null;
  error: ErrorDocument;
};

/** The operation that changes fields of a node. */
export type UpdateNodeSuggestion = {
  op: "update_node";
  id: string;
  /** A merge patch (RFC 7396) for the node: null removes a field. */
  set: Record<string, unknown>;
};

/** One wire. */
export type EdgeDocument = {
  id?: string | null;
  source: string;
  sourceHandle?: string | null;
  target: string;
  targetHandle?: string | null;
  type?: string | null;
  /** `{"channel": "flow" | "link"}`, and other fields of an editor. */
  data: Record<string, unknown>;
};

/** The operation that adds an edge at the end. */
export type AddEdgeSuggestion = {
  op: "add_edge";
  edge: EdgeDocument;
};

/** The operation that removes an edge. */
export type RemoveEdgeSuggestion = {
  op: "remove_edge";
  id: string;
};

/** The one way to correct a finding, for a person to accept. */
export type SuggestionResponse = {
  label: string;
  /** For `PATCH`, of the plan or the flow that has the graph. */
  operations: (UpdateNodeSuggestion | AddEdgeSuggestion | RemoveEdgeSuggestion)[];
};

/** One finding about a graph. */
export type DiagnosticResponse = {
  code: string;
  /** `error` stops a graph from running. */
  severity: "error" | "warning" | "info";
  message: string;
  /** JSON pointer into the graph. */
  pointer: string;
  node?: string;
  edge?: string;
  /** The nodes around a cycle. */
  path?: string[];
  /** The way out. */
  hint?: string;
  /** Corrections of the document, made only if its meaning was certain. */
  fix?: string;
  /** Only where there is one way to correct it. */
  suggestion?: SuggestionResponse;
};

/** One output of a node. */
export type OutputDocument = {
  type: string;
  value: unknown;
};

/** Why an execution or a node was cancelled; `streamed` of a node as in `node.failed`. */
export type CancelledData = {
  cause?: unknown;
  streamed?: Record<string, OutputDocument>;
};

export type ExecutionCancelledEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "execution.cancelled";
  path?: string;
  attempt?: number;
  data: CancelledData;
};

/** `handled_failures` are the paths of failed nodes whose policy handled the failure. */
export type CompletedData = {
  handled_failures?: string[];
};

export type ExecutionCompletedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "execution.completed";
  path?: string;
  attempt?: number;
  data: CompletedData;
};

/** One step. */
export type NodeDocument = {
  id: string;
  /** A node type; `GET /api/node-types` lists them. */
  type: string;
  name?: string | null;
  description?: string | null;
  /** The fields of the node type; see its schema. */
  data?: Record<string, unknown> | null;
  /** `{join, retry: {attempts, backoffS, on, notOn}, timeoutS, onError, default, effect}`, all optional. */
  policy?: Record<string, unknown> | null;
  /** Kept for editors, never read. */
  ui?: Record<string, unknown> | null;
};

/** Nodes and edges, as they are stored and drawn. */
export type GraphDocument = {
  nodes: NodeDocument[];
  edges: EdgeDocument[];
};

/** The options of an execution that differ from the defaults; see `RunOptions`. */
export type OptionsDocument = {
  scheduling?: "eager" | "waves";
  on_failure?: "continue" | "stop";
  max_parallel?: number | null;
  node_timeout_s?: JsonNumber | null;
  run_timeout_s?: JsonNumber | null;
  max_events?: number | null;
  max_result_bytes?: number | null;
  max_event_bytes?: number | null;
  max_state_bytes?: number | null;
  max_steps?: number | null;
  max_depth?: number | null;
  run_to?: string[];
  run_from?: string[];
  budget?: Record<string, JsonNumber | null> | null;
  replan?: Record<string, unknown> | null;
};

/** The request of a fork, with the execution that it forks. */
export type ParentDocument = {
  execution_id: string;
  retry?: boolean;
  rerun?: string[];
  given?: Record<string, Record<string, unknown>>;
};

/** The approval that an execution needs before any node starts. `plan_hash` is that of the graph that runs; `approved_in` is the earlier execution in which a person approved this hash, `approved_revision` the revision of the plan that is approved for all callers. */
export type ApprovalDocument = {
  plan_hash: string;
  approved_in?: string;
  approved_revision?: number;
};

/** The request for approval that an edited plan answers, and the note of that answer. `dropped_policies` are the ids of nodes that had a policy of the request, and are gone. */
export type SupersededDocument = {
  execution_id: string;
  request_id: string;
  note?: string;
  dropped_policies?: string[];
};

/** Who did something. */
export type PrincipalDocument = {
  /** `operator`: with the service's token; `session`: a browser that logged in with it; `token`: an access token; `trigger`; `chat`; `local`: the command line, or anybody where the service has no token; `library`: a Python program; `link`: whoever has a link that answers a request. */
  kind: "operator" | "session" | "token" | "trigger" | "chat" | "local" | "library" | "link";
  /** Of the session, token, trigger, chat or link; left out where there is none. */
  id?: string;
  /** The name of a token, the kind of a trigger, the target of the notification that had the link. */
  name?: string;
  /** Who set up the trigger or the chat, or created the link. */
  by?: PrincipalDocument;
};

/** The request of the client; `graph` has its `policies` already. `written_by`: not by a person. `model_plan_id`: the plan that it wrote, where not `plan_id`; `trace_id`: that of its spans, if traced. */
export type CreatedData = {
  goal?: string;
  title?: string;
  plan_id?: string | null;
  plan_hash?: string | null;
  revision?: number | null;
  flow?: string | null;
  graph?: GraphDocument | null;
  inputs?: Record<string, Record<string, unknown>> | null;
  options?: OptionsDocument | null;
  waves?: number;
  trigger?: unknown;
  parent?: ParentDocument | null;
  approval?: ApprovalDocument | null;
  policies?: Record<string, Record<string, unknown>> | null;
  supersedes?: SupersededDocument | null;
  created_by?: PrincipalDocument;
  trace_context?: Record<string, string>;
  trace_id?: string;
  goal_template?: string;
  written_by?: "model";
  model_plan_id?: string;
  flows?: string[];
};

export type ExecutionCreatedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "execution.created";
  path?: string;
  attempt?: number;
  data: CreatedData;
};

/** `failures` are the paths of all nodes whose failure was not handled. */
export type FailedData = {
  error?: ErrorDocument;
  failures?: string[];
};

export type ExecutionFailedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "execution.failed";
  path?: string;
  attempt?: number;
  data: FailedData;
};

/** Why the execution is paused; see `pause_kind` for events without `kind`. `request_id` and `request`: the execution itself asks, about its plan, a change of it, or its budget. */
export type PausedData = {
  reason?: string;
  kind?: string;
  request_id?: string;
  request?: unknown;
};

export type ExecutionPausedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "execution.paused";
  path?: string;
  attempt?: number;
  data: PausedData;
};

/** Why the execution goes on; `epoch` counts the processes that have owned it. `request_id` and `answer` are there where the request of the execution itself was answered; without `answer` it was closed, as nothing needs it. */
export type ResumedData = {
  reason?: string;
  epoch?: number;
  request_id?: string;
  answer?: unknown;
  answered_by?: PrincipalDocument;
};

export type ExecutionResumedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "execution.resumed";
  path?: string;
  attempt?: number;
  data: ResumedData;
};

/** The shape of the run; `linked` and `not_reached` are ids of nodes that do not run. */
export type StartedData = {
  waves?: number;
  linked?: string[];
  not_reached?: string[];
};

export type ExecutionStartedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "execution.started";
  path?: string;
  attempt?: number;
  data: StartedData;
};

/** A warning of the execution: `amounts` are those of its budget that are nearly used up. */
export type WarnedData = {
  message: string;
  amounts?: string[];
};

export type ExecutionWarnedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "execution.warned";
  path?: string;
  attempt?: number;
  data: WarnedData;
};

/** What a change makes of a graph: `nodes` and `edges` are new or changed ones, whole. */
export type GraphChangeDocument = {
  nodes: NodeDocument[];
  edges: EdgeDocument[];
  dropped_nodes: string[];
  dropped_edges: string[];
};

/** An answer; `by` is "timeout" where the request timed out, `answered_by` is who answered. */
export type NodeAnsweredData = {
  request_id: string;
  answer: unknown;
  by?: string;
  answered_by?: PrincipalDocument;
};

export type NodeAnsweredEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.answered";
  path: string;
  attempt?: number;
  data: NodeAnsweredData;
};

/** The failure that the node was blocked by. */
export type NodeBlockedData = {
  cause?: BlockedCause;
};

export type NodeBlockedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.blocked";
  path: string;
  attempt?: number;
  data: NodeBlockedData;
};

export type NodeCancelledEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.cancelled";
  path: string;
  attempt?: number;
  data: CancelledData;
};

/** Where a result was taken from; `failed_inside`: the node completed although one inside it failed. */
export type ReuseOrigin = {
  execution_id: string;
  failed_inside?: boolean;
};

/** A result; `given`: preset by the client, the node never ran. In a fork: `reused` from the parent, or `changed` by the client; `versions` are of the types that a reused result depends on, also inside the node. `wave`: of a node that did not start. `depends_on` hashes what the types declare that the result depends on; "" where that is not known. */
export type NodeCompletedData = {
  outputs?: Record<string, OutputDocument>;
  duration_s?: JsonNumber;
  wave?: number;
  given?: boolean;
  reused?: ReuseOrigin;
  changed?: boolean;
  versions?: Record<string, number>;
  depends_on?: string;
};

export type NodeCompletedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.completed";
  path: string;
  attempt?: number;
  data: NodeCompletedData;
};

/** Streamed text, `kind` "text" or "reasoning", or of no node "plan", a change of it; `offset` counts characters. */
export type NodeDeltaData = {
  kind: string;
  text: string;
  offset: number;
};

export type NodeDeltaEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.delta";
  path?: string;
  attempt?: number;
  data: NodeDeltaData;
};

/** An event that a node emits itself; `traceback` is taken out of its data, for the operator alone. */
export type NodeEventData = {
  event_type: unknown;
  data?: unknown;
  traceback?: string;
};

export type NodeEventEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.event";
  path: string;
  attempt?: number;
  data: NodeEventData;
};

/** The last failure of a node. `outputs` are those of its error policy; `retryable`: another execution may succeed. `traceback`: of an exception that is not planwave's own, without secrets. `streamed`: what the attempt had streamed, by kind; nothing follows from it. */
export type NodeFailedData = {
  error: ErrorDocument;
  handled?: boolean;
  outputs?: Record<string, OutputDocument>;
  streamed?: Record<string, OutputDocument>;
  duration_s?: JsonNumber;
  retryable?: boolean;
  traceback?: string;
};

export type NodeFailedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.failed";
  path: string;
  attempt?: number;
  data: NodeFailedData;
};

/** The times of an attempt that waits inside it, or (`budget`) for the budget; see `node.waiting`. */
export type NodeParkedData = {
  budget?: boolean;
  duration_s?: JsonNumber;
  own_time_s?: JsonNumber;
};

export type NodeParkedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.parked";
  path: string;
  attempt?: number;
  data: NodeParkedData;
};

/** The failure of one attempt, and when the next begins; `traceback`, `streamed` as in `node.failed`. */
export type NodeRetryingData = {
  error?: ErrorDocument;
  streamed?: Record<string, OutputDocument>;
  delay_s: JsonNumber;
  next_attempt: number;
  traceback?: string;
};

export type NodeRetryingEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.retrying";
  path: string;
  attempt?: number;
  data: NodeRetryingData;
};

/** `handle` is the required input that got no value. */
export type NodeSkippedData = {
  reason?: string;
  handle?: string;
};

export type NodeSkippedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.skipped";
  path: string;
  attempt?: number;
  data: NodeSkippedData;
};

/** The node whose result was taken in place of a run. */
export type ReusedFrom = {
  execution_id: string;
  path: string;
  /** Whether it completed although a node inside it failed, such as a loop that skips failed items. */
  failed_inside: boolean;
};

/** The tokens and the cost of all model calls. */
export type UsageResponse = {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: JsonNumber | null;
  estimated: boolean;
  /** Those of `input_tokens` that were read from a provider's cache; absent for 0. */
  cache_read_tokens?: number;
  /** Those of `input_tokens` that were written to it; absent for 0. */
  cache_write_tokens?: number;
  /** Those of `output_tokens` that the model thought with; absent for 0, and where its provider does not say. */
  reasoning_tokens?: number;
};

/** A node, nested or not, when a client connected. */
export type NodeSnapshot = {
  path: string;
  /** Of a nested node that has one; the graph has the names of the others. */
  name: string | null;
  status: NodeStatus;
  attempts: number;
  wave: number | null;
  started_at: string | null;
  completed_at: string | null;
  duration_s: JsonNumber | null;
  outputs: Record<string, OutputDocument> | null;
  error: ErrorDocument | null;
  /** Where the exception of its code came from; only for the operator. */
  traceback?: string;
  /** Its own policy caught its failure, as in `node.failed`; a node around it that completed is not counted here, but it is in the document. */
  handled: boolean;
  reason: string | null;
  /** The required handle that got no value, for a skipped node. */
  handle: string | null;
  cause: unknown;
  reused: ReusedFrom | null;
  /** The edge that won `join: any`. */
  via: string | null;
  answer: unknown;
  prompt: unknown;
  provider: unknown;
  model: unknown;
  usage: UsageResponse;
  /** Streamed so far by the newest attempt. */
  text: string;
  reasoning: string;
};

/** The start of an attempt. `via` is the edge that won `join: any`; `reentry` counts interruptions of this attempt; `name` is that of a nested node; `versions` are `{type: version}` of the types that the result depends on, where not 1. */
export type NodeStartedData = {
  wave?: number;
  via?: string;
  reentry?: number;
  name?: string;
  versions?: Record<string, number>;
};

export type NodeStartedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.started";
  path: string;
  attempt?: number;
  data: NodeStartedData;
};

/** The payload of an event that has none. */
export type NoData = Record<string, unknown>;

export type NodeUnparkedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.unparked";
  path: string;
  attempt?: number;
  data: NoData;
};

/** A request that a node waits for; `interrupted`: the driver asks about an interrupted attempt. `duration_s` and `own_time_s`: how long the attempt has run, and did its own work. `replan`: the change it asks for. */
export type NodeWaitingData = {
  request_id: string;
  request?: unknown;
  state?: unknown;
  timeout_s?: JsonNumber;
  timeout_answer?: unknown;
  interrupted?: boolean;
  duration_s?: JsonNumber;
  own_time_s?: JsonNumber;
  depends_on?: string;
  replan?: string;
};

export type NodeWaitingEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.waiting";
  path: string;
  attempt?: number;
  data: NodeWaitingData;
};

/** A question that a node waits on, or the whole execution. */
export type OpenRequestResponse = {
  request_id: string;
  /** Of the node that asks; null where the execution asks, for approval of its plan or of a change of it, or for a higher budget. */
  path: string | null;
  /** The request. An `approval` has `{kind, prompt, actions, form, value, editable}`, the approval of a plan (`plan-approval`) `{kind, prompt, actions, plan_hash, plan_id, title, goal, forecast}`, a higher budget (`budget`) `{kind, message, actions, limits, used, waiting, proposed}`, a change of the graph that is run (`plan-change`) `{kind, prompt, actions, change, by, path, request, answer, base, hash, graph_change, difference, additions, forecast}`; its `forecast` is that of the steps that have not begun. */
  request: unknown;
  /** When it was asked, UTC. */
  since: string;
  /** Seconds from then on after which the node goes on without an answer; null: it waits. */
  timeout_s: JsonNumber | null;
};

/** A change of the graph of an execution while it ran or waited. */
export type PlanChangeResponse = {
  /** Counts the changes from 1. */
  change: number;
  at: string;
  /** The hash of the graph before it. */
  base: string;
  hash: string;
  /** Why it was made, in the words of who asked for it; of a change that a model wrote, what the model says of it. */
  note: string;
  /** What asked for it: a step that failed, a step that found out, a person; null in executions of earlier versions. */
  by: "failure" | "node" | "person" | null;
  revised_by: PrincipalDocument | null;
  graph_change: GraphChangeDocument;
  /** The steps that it dropped although they had begun, as they were by then. */
  dropped: NodeSnapshot[];
  /** The request that a person answers before the change is made, where the plan needs an approval. */
  request_id?: string;
};

/** It is written again: all earlier parts are void. */
export type PlanRepair = {
  attempt: number;
  diagnostics: DiagnosticResponse[];
};

/** The model that a person has chosen to write a change; null is the default. */
export type ChangeWriterDocument = {
  provider: string | null;
  model: string | null;
};

/** A change of its own graph that an execution waits for; nothing starts until it is made or refused. */
export type PlanRequestResponse = {
  /** The number that it will have. */
  change: number;
  at: string;
  by: "failure" | "node" | "person";
  /** The node that failed, or that asks for it. */
  path?: string;
  /** What is asked for, in words. */
  request?: string;
  /** Who has a model write it. */
  requested_by?: PrincipalDocument;
  /** Whom a person asks to write it; absent where the person has written it. */
  writer?: ChangeWriterDocument;
};

/** A change of its own graph that an execution waits for: nothing starts until it is made or refused. `change` is the number that it will have. `by` says what asked for it: the failure of the node at `path`, that node itself, or a person; the last two with a `request` in words. `writer` is there where a person has a model write it, who without a `request` wants the steps replaced that failed; it is not where the person wrote it. */
export type PlanRequestedData = {
  change: number;
  by: "failure" | "node" | "person";
  request?: string;
  path?: string;
  requested_by?: PrincipalDocument;
  writer?: ChangeWriterDocument;
};

/** A change of the graph: `change` counts them from 1, `base` and `hash` are of the graphs before and after it. `by` says what asked for it, and `revised_by` which person did, or approved it. `floor` is the lowest wave of nodes that have not begun; `waves`, `linked` and `not_reached` as in `execution.started`. */
export type PlanRevisedData = {
  change: number;
  base: string;
  hash: string;
  graph_change: GraphChangeDocument;
  floor: number;
  waves?: number;
  linked?: string[];
  not_reached?: string[];
  note?: string;
  by?: "failure" | "node" | "person";
  revised_by?: PrincipalDocument;
};

export type PlanRevisedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "plan.revised";
  path?: string;
  attempt?: number;
  data: PlanRevisedData;
};

/** A change of its own graph that an execution asked for, and that was not made. */
export type RefusedChangeResponse = {
  change: number;
  at: string;
  /** Why. */
  error: ErrorDocument;
  diagnostics?: Record<string, unknown>[];
};

/** The approval of a plan; it holds for one hash. */
export type PlanApprovalResponse = {
  /** Of the graph that runs. */
  plan_hash: string;
  /** The earlier execution in which this hash was approved. */
  approved_in?: string;
  /** The revision of the flow that is approved for all callers. */
  approved_revision?: number;
  /** `{decision, note, value?}` once it was given here. */
  answer?: unknown;
  /** Who answered here. */
  answered_by?: PrincipalDocument;
};

/** How far an execution has come. */
export type WaveResponse = {
  /** The lowest unfinished wave. */
  current: number;
  total: number;
};

/** The budget of an execution, by amount: `usd`, `tokens`, `calls`, `wall_s`. */
export type BudgetResponse = {
  /** Those that hold now. */
  limits: Record<string, JsonNumber>;
  used: Record<string, JsonNumber>;
  /** Amounts that are nearly used up. */
  warned: string[];
};

/** The whole state of an execution when a client connected; it has all events up to `last_seq`. */
export type SnapshotMessage = {
  type: "snapshot";
  execution_id: string;
  status: ExecutionStatus;
  goal: string;
  title: string;
  plan_id: string | null;
  plan_hash: string | null;
  revision: number | null;
  flow: string | null;
  /** As the last of its changes left it. */
  graph: GraphDocument | null;
  /** What was changed in it while it ran or waited, in order; left out where nothing was. */
  changes?: PlanChangeResponse[];
  /** The changes that it asked for and that were not made, in order; left out where there are none. */
  refused_changes?: RefusedChangeResponse[];
  /** The change of its graph that it waits for; left out without one. */
  plan_request?: PlanRequestResponse;
  inputs: Record<string, Record<string, unknown>> | null;
  options: OptionsDocument | null;
  parent: ParentDocument | null;
  approval: PlanApprovalResponse | null;
  created_by: PrincipalDocument | null;
  created_at: string | null;
  started_at: string | null;
  completed_at: string | null;
  last_seq: number;
  error: ErrorDocument | null;
  reason: string | null;
  cause: unknown;
  failures: string[];
  handled_failures: string[];
  waves: WaveResponse;
  usage: UsageResponse;
  budget: BudgetResponse | null;
  waitingForInput: boolean;
  currentNodeId: string | null;
  requests: OpenRequestResponse[];
  nodes: NodeSnapshot[];
  /** The last sentences of its log. */
  logs: string[];
};

/** What a call of a model used; `recorded`: the call was served from its record. `duration_s` is from its first attempt to its end, `attempts` is left out where there was one. Any node may emit usage, so each value may be anything. */
export type UsageData = {
  provider?: unknown;
  model?: unknown;
  input_tokens?: unknown;
  output_tokens?: unknown;
  cache_read_tokens?: unknown;
  cache_write_tokens?: unknown;
  reasoning_tokens?: unknown;
  cost_usd?: unknown;
  estimated?: unknown;
  recorded?: unknown;
  duration_s?: unknown;
  attempts?: unknown;
};

export type UsageEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "usage";
  path?: string;
  attempt?: number;
  data: UsageData;
};

/** The number of the wave, from 1. */
export type WaveCompletedData = {
  wave: number;
};

export type WaveCompletedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "wave.completed";
  path?: string;
  attempt?: number;
  data: WaveCompletedData;
};

/** `nodes` are the ids of the wave's nodes, in graph order. */
export type WaveStartedData = {
  wave: number;
  nodes?: string[];
};

export type WaveStartedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "wave.started";
  path?: string;
  attempt?: number;
  data: WaveStartedData;
};

export type PlanRequestedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "plan.requested";
  path?: string;
  attempt?: number;
  data: PlanRequestedData;
};

/** Why a change that was requested is not made; the execution goes on, or ends, as it would have without it. `diagnostics` are those of the graph that it would have made. */
export type PlanRefusedData = {
  change: number;
  error: ErrorDocument;
  diagnostics?: Record<string, unknown>[];
};

export type PlanRefusedEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "plan.refused";
  path?: string;
  attempt?: number;
  data: PlanRefusedData;
};

/** A log line of a node; `kind` where programs act on it. */
export type NodeLogData = {
  message?: string;
  level?: unknown;
  kind?: string;
};

export type NodeLogEvent = {
  execution_id: string;
  seq: number;
  at: string;
  type: "node.log";
  path: string;
  attempt?: number;
  data: NodeLogData;
};

/** An event of an execution. */
export type ExecutionEvent = ExecutionCreatedEvent | ExecutionStartedEvent | ExecutionPausedEvent | ExecutionResumedEvent | ExecutionWarnedEvent | ExecutionCompletedEvent | ExecutionFailedEvent | ExecutionCancelledEvent | WaveStartedEvent | WaveCompletedEvent | PlanRequestedEvent | PlanRevisedEvent | PlanRefusedEvent | NodeStartedEvent | NodeRetryingEvent | NodeWaitingEvent | NodeAnsweredEvent | NodeParkedEvent | NodeUnparkedEvent | NodeLogEvent | NodeEventEvent | NodeDeltaEvent | UsageEvent | NodeCompletedEvent | NodeFailedEvent | NodeSkippedEvent | NodeBlockedEvent | NodeCancelledEvent;

/** A part of a message that is longer than `socket_frame_bytes`; the texts together are it. */
export type PartMessage = {
  type: "part";
  part: number;
  of: number;
  text: string;
};

/** The answer to a ping. */
export type PongMessage = {
  type: "pong";
};

/** The answer to a message that is no ping. */
export type ErrorMessage = {
  type: "error";
  code: string;
  detail: string;
  hint?: string;
};

/** The service goes down: come back in a moment, with `after`. */
export type DrainingMessage = {
  type: "server_draining";
  code: string;
  detail: string;
};

/** A message of the WebSocket with `mode=events`: one of these, or events. */
export type SocketMessage = SnapshotMessage | PartMessage | PongMessage | ErrorMessage | DrainingMessage | ExecutionEvent[];

/** Text of the model's reply, or of its reasoning. */
export type PlanText = {
  text: string;
  reasoning: boolean;
};

/** The title of the plan. */
export type PlanTitle = {
  title: string;
};

/** A node, once it is complete; fields that the model left out are missing. */
export type PlanNode = {
  id?: string;
  name?: string;
  description?: string;
  type?: string;
  provider?: string;
  model?: string;
};

/** An edge, once it is complete. */
export type PlanEdge = {
  source?: string;
  target?: string;
  channel?: string;
};

/** What a change does besides adding nodes and edges: `update_node`, `remove_node`, `remove_edge`, `rename`. */
export type PlanOperation = {
  op?: string;
  id?: string;
  set?: Record<string, unknown>;
  to?: string;
  source?: string;
  target?: string;
  source_handle?: string;
  target_handle?: string;
};

/** A correction of the model's reply. */
export type PlanFix = {
  fix: string;
};

/** The approval of a revision, for all callers of a flow. */
export type ApprovalResponse = {
  at: string;
  by: PrincipalDocument | null;
};

/** A revision of another plan. */
export type PlanOrigin = {
  plan_id: string;
  revision: number;
};

/** What differs from the source, and where. */
export type ImportNote = {
  code: string;
  message: string;
  /** JSON pointer into the source. */
  pointer: string;
  hint?: string;
};

/** What became of one node of the source. */
export type ImportedNode = {
  /** JSON pointer of the node in the source; of a Mermaid flowchart the line. */
  source: string;
  source_kind: string;
  source_name: string;
  /** `changed`: it runs, and differs as the notes say. `placeholder`: it has no counterpart and must be replaced. `dropped`: it is not in the graph. */
  outcome: "mapped" | "changed" | "placeholder" | "dropped";
  /** The nodes it became; those in the graph of another one as `loop/step`. */
  target: string[];
  notes: ImportNote[];
};

/** What became of one edge of the source. */
export type ImportedEdge = {
  source: string;
  outcome: "mapped" | "changed" | "placeholder" | "dropped";
  /** The edges it became; those in the graph of another node as `loop/e1`. */
  target: string[];
  notes: ImportNote[];
};

/** A part of the source that is not in the graph. */
export type LostPart = {
  pointer: string;
  code: string;
  /** The part as it was written, at most 200 characters, without secrets. */
  text: string;
  message: string;
};

/** A secret that stood in the source and was not copied. */
export type RemovedSecret = {
  pointer: string;
  name: string;
};

/** What the operator provides before the graph can run. */
export type ImportSetup = {
  what: "provider" | "mcp" | "secret" | "flow" | "tool";
  name: string;
  /** The nodes of the graph that need it. */
  used_by: string[];
};

/** How many nodes of the source came over, and how. */
export type ImportSummary = {
  mapped: number;
  changed: number;
  placeholder: number;
  dropped: number;
};

/** What became of a file: every node and edge of the source once. */
export type ImportReport = {
  kind: string;
  kind_version: string | null;
  title: string;
  source_sha256: string;
  /** Options of the run that the source had in its graph, such as `scheduling`. */
  options: Record<string, unknown>;
  nodes: ImportedNode[];
  edges: ImportedEdge[];
  /** What is said of the file as a whole. */
  notes: ImportNote[];
  lost: LostPart[];
  secrets: RemovedSecret[];
  setup: ImportSetup[];
  summary: ImportSummary;
};

/** Where a plan comes from: a file of another program, whose text is not kept. */
export type ImportRecord = {
  imported_at: string;
  /** What became of the file, as `POST /api/import` gave it; `source_sha256` tells the file again. */
  report: ImportReport;
};

/** One field that differs; a value that is missing on a side is left out. */
export type FieldDifference = {
  /** JSON pointer into the node or the edge. */
  pointer: string;
  before?: unknown;
  after?: unknown;
};

/** One node or edge that differs; an edge between other nodes was removed, and another one added. */
export type ElementDifference = {
  id: string | null;
  change: "added" | "removed" | "changed";
  /** Of a removed one: all of it. */
  before?: Record<string, unknown>;
  /** Of an added one, and of a changed edge: all of it. */
  after?: Record<string, unknown>;
  /** Of a changed one. */
  fields?: FieldDifference[];
};

/** What a proposal changes. */
export type ProposedDifference = {
  nodes: ElementDifference[];
  edges: ElementDifference[];
  /** Which lists have common members in another order. */
  reordered: ("nodes" | "edges")[];
  /** The title before and after; null if it stays. */
  title: string[] | null;
};

/** Something outside of a plan that it would reach and does not yet, or a safeguard that it would lose. */
export type AdditionDocument = {
  kind: "effect" | "tool" | "server" | "host" | "provider" | "model" | "flow" | "link" | "safeguard";
  /** Of an effect: the effect and the type, such as `write http_tool`; of a safeguard, what falls away. */
  name: string;
  /** The id of the step that reaches it, or that had the safeguard. */
  node: string;
};

/** A change of a plan that a model wrote and that nobody has taken yet. */
export type ProposalDocument = {
  /** What was asked for. */
  request: string;
  /** The sentence of the model on what it changes. */
  answer: string;
  /** The hash of the plan that it changes. */
  base: string;
  /** The hash of the plan that it makes: `accept` it by this one. */
  hash: string;
  title: string;
  /** The changes, as `PATCH /api/plans/{plan_id}` takes them. */
  operations: Record<string, unknown>[];
  difference: ProposedDifference;
  /** All that the plan would reach outside of itself and does not yet. */
  additions: AdditionDocument[];
  /** Warnings of the changed plan. */
  diagnostics: DiagnosticResponse[];
  provider: string;
  model: string;
  /** `{reply, finish_reason, diagnostics, usage}` of each call; `GET /api/spend` counts them as planning. */
  attempts: Record<string, unknown>[];
  created_at: string;
  created_by: PrincipalDocument;
};

/** An earlier plan whose goal and step names the model was shown; it may be deleted since. */
export type ShownPlan = {
  plan_id: string;
  title: string;
};

/** What a goal left open, and the answer under which its plan is written. */
export type PlanQuestion = {
  question: string;
  answer: string;
  /** Whether the model assumed the answer; otherwise a person gave it. */
  assumed: boolean;
  /** Answers to choose from, as the model named them; any other may be given too. */
  options: string[];
};

/** A plan in its newest revision: a titled graph made for a goal. */
export type PlanResponse = {
  nodes: NodeDocument[];
  edges: EdgeDocument[];
  plan_id: string;
  user_prompt: string;
  title: string;
  /** That of its newest execution; `draft` without one. */
  status: PlanStatus;
  revision: number;
  /** Of the graph; executions are bound to it. */
  hash: string;
  created_at: string;
  /** The name, for which it is a flow; null for a plan without one. */
  name: string | null;
  /** The purpose of a flow. */
  description: string;
  /** What a flow is published as; see `PUT /api/flows/{plan_id}/publication`. */
  published: ("model" | "tool")[];
  /** The revision that callers of a flow start: the newest one without errors and, where the operator requires it, with an approval; null without one. */
  live_revision: number | null;
  /** That of its hash; null where nobody approved it. */
  approval: ApprovalResponse | null;
  /** The flow that it was copied from; left out for all others. */
  origin?: PlanOrigin;
  /** The file that its first revision was imported from, or the last one since; left out for all others. A plan that is saved as a flow may say it too; one of another form is ignored. */
  imported_from?: ImportRecord;
  /** A change that a model wrote and that nobody has taken yet; left out without one. */
  proposal?: ProposalDocument;
  /** The earlier plans of the same person that the model was shown; left out without one. */
  examples?: ShownPlan[];
  /** The provider of the model that wrote it; null for a plan that no model wrote. */
  provider: string | null;
  model: string | null;
  diagnostics: DiagnosticResponse[];
  /** Corrections of the model's reply. */
  fixes: string[];
  /** What the goal left open, at most three; plan again with `answers` to change an answer. */
  questions: PlanQuestion[];
  /** `{reply, finish_reason, diagnostics, usage}` of each model call that wrote it; `GET /api/spend` counts them as planning. */
  attempts: Record<string, unknown>[];
  /** As of the revision, in the form of `GET …/forecast`; empty for a draft with errors. */
  forecast: Record<string, unknown>;
  /** The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read. */
  inputs: Record<string, unknown> | null;
};

/** A change of the graph of an execution that a model wrote, and that nobody has taken yet. */
export type ReplanResponse = {
  /** What was asked for. */
  request: string;
  /** The sentence of the model on what it changes. */
  answer: string;
  /** The hash of the plan that it changes. */
  base: string;
  /** The hash of the plan that it makes: `accept` it by this one. */
  hash: string;
  title: string;
  /** The changes, as `PATCH /api/plans/{plan_id}` takes them. */
  operations: Record<string, unknown>[];
  difference: ProposedDifference;
  /** All that the plan would reach outside of itself and does not yet. */
  additions: AdditionDocument[];
  /** Warnings of the changed plan. */
  diagnostics: DiagnosticResponse[];
  provider: string;
  model: string;
  /** `{reply, finish_reason, diagnostics, usage}` of each call; `GET /api/spend` counts them as planning. */
  attempts: Record<string, unknown>[];
  created_at: string;
  created_by: PrincipalDocument;
  execution_id: string;
  /** The changed graph: `POST /api/executions/{execution_id}/revise` lets the execution go on with it, and of one that has ended, `POST /api/executions/{execution_id}/fork` makes a new one. */
  graph: GraphDocument;
};

/** One error, warning or note. */
export type Issue = {
  /** Stable; branch on it. */
  code: string;
  /** The error and its location, one sentence. */
  message: string;
  /** JSON pointer into the document that was sent. */
  pointer: string;
  /** `error`, `warning` or `info`. */
  severity?: string | null;
  /** How to correct it. */
  hint?: string | null;
  /** Id of the node concerned. */
  node?: string | null;
  /** Id of the edge concerned. */
  edge?: string | null;
  /** Of a cycle: the node ids around it. */
  path?: string[] | null;
  /** The one way to correct it: `{label, operations}`, as a check gives it. */
  suggestion?: Record<string, unknown> | null;
  /** The query or header parameter concerned. */
  parameter?: string | null;
};

/** A failure (RFC 9457). */
export type Problem = {
  /** Always `about:blank`: `code` tells them apart. */
  type?: string;
  /** The code in words. */
  title: string;
  /** The HTTP status. */
  status: number;
  /** Stable and machine-readable; branch on it, never on `detail`. */
  code: string;
  /** The failure and its location, one sentence. */
  detail: string;
  /** The way out. */
  hint?: string | null;
  /** The id of the request in the log. */
  request_id?: string | null;
  /** All errors. */
  issues?: Issue[] | null;
  /** Of `plan-invalid`: each reply of the model, with its errors. */
  attempts?: Record<string, unknown>[] | null;
  /** The name of the limit that is exceeded, if it is one. */
  limit?: string | null;
  /** Of `limit-exceeded`: the limit. */
  value?: JsonNumber | null;
  /** Of `limit-exceeded`: the value that exceeds it. */
  met?: JsonNumber | null;
  /** Seconds until the next request may be sent. */
  retry_after_s?: JsonNumber | null;
  /** Of 412: the present hash, as in `ETag`. */
  current?: string | null;
  /** Of `unknown-format` and `ambiguous-format`: the kinds that the file may be read as. */
  kinds?: string[] | null;
};

/** An event of a plan, or of a change of one, while it is written: its name, and its data. */
export type PlanStreamEvent = {
  event: "delta";
  data: PlanText;
} | {
  event: "title";
  data: PlanTitle;
} | {
  event: "node";
  data: PlanNode;
} | {
  event: "edge";
  data: PlanEdge;
} | {
  event: "operation";
  data: PlanOperation;
} | {
  event: "repair";
  data: PlanRepair;
} | {
  event: "fix";
  data: PlanFix;
} | {
  event: "plan";
  data: PlanResponse;
} | {
  event: "proposal";
  data: ReplanResponse;
} | {
  event: "problem";
  data: Problem;
} | {
  event: "server_draining";
  data: Problem;
};

/** How a request was answered. */
export type AnswerResponse = {
  /** UTC. */
  at: string;
  /** `timeout`: nobody answered in time. */
  by: "person" | "timeout";
  /** Who answered; null after a timeout, or where an older planwave did not record it. */
  answered_by: PrincipalDocument | null;
  /** Of a request with actions `{decision, note, value?, form?}`. */
  answer: unknown;
};

/** What replies without a flow: an agent, made of these fields. */
export type ChatConfig = {
  provider?: string | null;
  model?: string | null;
  /** Who the model is. */
  system_prompt?: string | null;
  /** What else it is told, after a blank line. */
  instructions?: string | null;
  /** Names of registered tools that it may call. */
  tools?: string[] | null;
  temperature?: JsonNumber | null;
  reasoning_effort?: string | null;
  max_tokens?: number | null;
  /** When a person approves calls of its tools. */
  approval?: "never" | "always" | "write" | null;
  /** What becomes of a reply when the last client leaves that follows it. */
  on_disconnect?: "continue" | "cancel" | null;
};

/** What a reply has used so far. */
export type ReplyUsage = {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
  /** Null where the price of a model is not known. */
  costUsd: JsonNumber | null;
};

/** One message; see docs/chat.md for its blocks. */
export type MessageResponse = {
  message_id: string;
  chat_id: string;
  parent_id: string | null;
  role: "user" | "assistant";
  origin: "send" | "edit" | "retry" | "continue";
  created_at: string;
  /** The ids of all messages with this parent and role, in the order of creation. */
  siblings: string[];
  blocks: Record<string, unknown>[];
  execution_id: string | null;
  /** Of a reply; null in messages of the user. */
  status: ExecutionStatus | null;
  /** Of a reply: the events up to here are in `blocks`. */
  cursor: number | null;
  /** Of a reply, what its models used. */
  usage: ReplyUsage | null;
};

/** A chat with its messages. */
export type ChatResponse = {
  chat_id: string;
  title: string;
  created_at: string;
  /** Who opened it; null where it is not known. */
  created_by: PrincipalDocument | null;
  updated_at: string;
  plan_id: string | null;
  plan_revision: number | null;
  node_id: string | null;
  config: ChatConfig | null;
  /** The last message of the branch that is shown. */
  head: string | null;
  /** Counts the changes of the chat and of the status of its messages. */
  revision: number;
  /** Of the newest reply. */
  status: ExecutionStatus | null;
  /** In the order of creation. */
  messages: MessageResponse[];
};

/** A chat without its messages. */
export type ChatSummary = {
  chat_id: string;
  title: string;
  created_at: string;
  /** Who opened it; null where it is not known. */
  created_by: PrincipalDocument | null;
  updated_at: string;
  plan_id: string | null;
  plan_revision: number | null;
  node_id: string | null;
  config: ChatConfig | null;
  /** The last message of the branch that is shown. */
  head: string | null;
  /** Counts the changes of the chat and of the status of its messages. */
  revision: number;
  /** Of the newest reply. */
  status: ExecutionStatus | null;
};

/** One page of chats, newest first. */
export type ChatsResponse = {
  chats: ChatSummary[];
  next_cursor: string | null;
};

/** A named socket of a node type; one that takes flow and link edges is listed once for each. */
export type PortResponse = {
  /** The handle; `{i}` in it stands for a number, any other `{word}` for any text. */
  name: string;
  /** The socket type; `socket_types` lists them. */
  type: string;
  label: string;
  channel: "flow" | "link";
  /** Whether several flow edges may lead into it. */
  multiple: boolean;
  required: boolean;
  /** `left`, `right`, `top` or `bottom`; the same for all ports of a name. */
  side: string;
  /** That of the socket type on light pages. */
  color: string;
  /** That of the socket type: `circle`, `square`, `diamond`, `tab`. */
  shape: string;
  /** JSON Schema of its values, where it says more than `type`. */
  schema?: Record<string, unknown>;
};

/** The ports of one node. */
export type NodePortsResponse = {
  inputs: PortResponse[];
  outputs: PortResponse[];
};

/** From terse to talkative answers. */
export type Span = {
  low: JsonNumber;
  high: JsonNumber;
};

/** A node that changes the world. */
export type Effect = {
  node: string;
  type: string;
  effect: "write" | "once";
};

/** A model that the steps of a plan call. */
export type ForecastModel = {
  provider: string;
  model: string;
  calls: number;
  /** Why it is the embedded one, though no step names it. */
  reason?: string;
};

/** The forecast of a plan: calls, tokens and cost, before anything runs. */
export type ForecastResponse = {
  waves: number;
  nodes: number;
  /** Nodes in the widest wave. */
  width: number;
  depth: number;
  critical_path: string[];
  /** Model calls; those of a graph inside a node count once. */
  calls: number;
  /** Whether a node runs graphs, so that it may be more. */
  at_least?: boolean;
  tokens: Span;
  /** Null where a price is unknown. */
  cost_usd: Span | null;
  effects: Effect[];
  /** The models that its steps call, that of most calls first; left out where none does. */
  models?: ForecastModel[];
  /** The nodes of MCP servers, whose tools only a run knows: `tokens` leaves out what models read of them. */
  uncounted_tools?: string[];
};

/** The result of checking a graph. */
export type CheckResponse = {
  /** Whether it can run here, now. */
  valid: boolean;
  diagnostics: DiagnosticResponse[];
  /** As it is stored and run, with every handle and channel; null if a part cannot be read. */
  graph: GraphDocument | null;
  /** By node id, of the nodes whose data or edges decide about their ports; all others have those of their type. Without patterns: numbered and open ports are given by the handles there are. */
  ports: Record<string, NodePortsResponse>;
  /** Its forecast; null if it has errors other than those of providers. */
  forecast: ForecastResponse | null;
};

/** One thing that a trigger received. */
export type DeliveryResponse = {
  /** What identifies it: a repeated one has the same. */
  key: string;
  received_at: string;
  /** What became of it, such as `started` or `rejected`; null while it is processed. */
  outcome: string | null;
  note: string;
  /** The execution that it started, or is starting. */
  execution_id: string | null;
};

/** The number of nodes, by the kind of difference. */
export type DifferenceCounts = {
  same: number;
  changed: number;
  only_a: number;
  only_b: number;
};

/** A node that is not the same in both; pairs are of `a` and of `b`, null where it is not there. */
export type NodeDifference = {
  path: string;
  /** Its state, outputs or definition differ, or only one execution has it. */
  change: "same" | "changed" | "only_a" | "only_b";
  status: (NodeStatus | null)[];
  duration_s: (JsonNumber | null)[];
  usage: (UsageResponse | null)[];
  error?: (ErrorDocument | null)[];
  /** Fields of it in the graph that differ, such as `data.text`. */
  written?: string[];
  /** By handle: `{type, value}`; of a long value `{type, preview, sha256, chars}`. */
  outputs?: Record<string, (Record<string, unknown> | null)[]>;
  /** The unified diff of its main text. */
  result?: string;
};

/** The differences between two executions; pairs are of `a` and of `b`. */
export type DifferenceResponse = {
  a: string;
  b: string;
  status: ExecutionStatus[];
  /** Seconds from start to end; null before the end. */
  duration_s: (JsonNumber | null)[];
  usage: UsageResponse[];
  counts: DifferenceCounts;
  /** Those that are not the same, the first 200. */
  nodes: NodeDifference[];
  /** How many more there are. */
  left_off: number;
};

/** An external call of a node, as it is recorded. */
export type RecordedCallResponse = {
  /** Its number within the attempt. */
  ordinal: number;
  attempt: number;
  /** `model`, `tool`, `mcp`, `http`, `flow`, `agent` or `fetch`. */
  kind: string;
  name: string;
  request?: unknown;
  /** The size of a request that is too large to be shown. */
  request_bytes?: number;
  /** Of a model: `{text, finish_reason, reasoning?, tool_calls?, sources?}`. */
  result?: unknown;
  /** The size of a result that is too large to be shown. */
  result_bytes?: number;
  error?: ErrorDocument;
  /** Where the exception of a tool's code came from; only for the operator. */
  traceback?: string;
  /** The tokens and cost of a model call. */
  usage?: Record<string, unknown>;
  started_at?: string;
  duration_s?: JsonNumber;
};

/** All there is to know of one node, nested ones included. */
export type DocumentNode = {
  id: string;
  path: string;
  name: string;
  description: string;
  type: string | null;
  provider: string | null;
  model: string | null;
  status: NodeStatus;
  /** As text; null where there is none. */
  result: string | null;
  /** `{handle: {type, value}}`. */
  outputs: Record<string, unknown> | null;
  /** The `text` and the `reasoning` that its last attempt had streamed when it was cancelled or failed, which is no result; left out where there is none. */
  streamed?: Record<string, string>;
  /** Why it failed, as text. */
  error: string | null;
  error_detail: ErrorDocument | null;
  /** Where the exception of its code came from; only for the operator. */
  traceback?: string;
  /** Its failure was caught by its policy, or a node around it completed. */
  handled: boolean;
  /** Why it was skipped. */
  reason: string | null;
  /** Why it was blocked or cancelled. */
  cause: unknown;
  /** Where its result was taken from; null where the node ran. */
  reused: ReusedFrom | null;
  /** Seconds. */
  execution_time: JsonNumber | null;
  dependencies: string[];
  /** `{handle: {type, value}}` as they reached it. */
  inputs: Record<string, unknown>;
  /** The request to the model: `{system, prompt, provider, model}`. */
  prompt: unknown;
  wave: number | null;
  attempts: number;
  /** How often it was entered again because its process had ended. */
  reentries: number;
  /** The answers to its requests: `{request_id, at, by, answer, …}`. */
  answers: Record<string, unknown>[];
  /** Its external calls, by attempt and number. */
  calls: RecordedCallResponse[];
  started_at: string | null;
  completed_at: string | null;
  usage: UsageResponse;
};

/** A last node that should have delivered a result and did not. */
export type MissingResult = {
  path: string;
  name: string;
  /** `failed`, `blocked` by the failure of another node, `cancelled`, or `pending` where the execution ended before. */
  status: NodeStatus;
  /** The failure where it began: the node itself, the one that blocked it, or a node inside of these; its `node` is null where something else ended the execution. */
  cause: BlockedCause;
};

/** What the last nodes of an execution delivered. */
export type RunResultResponse = {
  /** The nodes that the value comes from: the `end` nodes that delivered something, or else the last nodes that did. */
  nodes: string[];
  /** The value of the only node; several give an object by node id, none gives null. */
  value: unknown;
};

/** The whole execution as one document; the same as `{execution_id}.json` in the storage. */
export type DocumentResponse = {
  status: ExecutionStatus;
  /** True where nobody alive runs it though its status says so: it goes on once it is resumed. Left out otherwise. */
  interrupted?: boolean;
  /** `partial`: it failed, and some of its last nodes delivered something; see `missing`. Null otherwise. */
  outcome: "partial" | null;
  /** Of a partial outcome: the last nodes without a result, and why. Empty otherwise. */
  missing: MissingResult[];
  schema_version: number;
  execution_id: string;
  plan_id: string | null;
  revision: number | null;
  plan_hash: string | null;
  flow: string | null;
  parent: ParentDocument | null;
  /** What started it, `{"id", "kind", "delivery"}`; null for a person or a program with a token. */
  trigger: unknown;
  /** Who created it; null where an older planwave did. */
  created_by: PrincipalDocument | null;
  /** The approval that its plan needs; null where it needs none. */
  approval: PlanApprovalResponse | null;
  user_prompt: string;
  title: string;
  timestamp: string;
  started_at: string | null;
  completed_at: string | null;
  last_seq: number;
  error: ErrorDocument | null;
  failures: string[];
  handled_failures: string[];
  reason: string | null;
  cause: unknown;
  waitingForInput: boolean;
  currentNodeId: string | null;
  requests: OpenRequestResponse[];
  waves: WaveResponse;
  usage: UsageResponse;
  /** What it may use; null where nothing limits it. */
  budget: BudgetResponse | null;
  inputs: Record<string, unknown> | null;
  result: RunResultResponse;
  nodes: DocumentNode[];
  node_results: Record<string, string>;
  execution_logs: string[];
  /** As the last of its changes left it. */
  graph: Record<string, unknown> | null;
  /** What was changed in it while it ran or waited, in order; left out where nothing was. */
  changes?: PlanChangeResponse[];
  /** The changes that it asked for and that were not made, in order; left out where there are none. */
  refused_changes?: RefusedChangeResponse[];
  /** The change of its graph that it waits for; left out without one. */
  plan_request?: PlanRequestResponse;
};

/** How many executions fit all filters but `status` and `waiting`. */
export type ExecutionCounts = {
  total: number;
  /** True where so many have the words of `q` that only the newest 1,000 were counted: each number may be higher. */
  at_least: boolean;
  /** Those that wait for an answer of a person; they are executing or paused too. */
  waiting: number;
  starting: number;
  executing: number;
  paused: number;
  completed: number;
  failed: number;
  cancelled: number;
};

/** An execution that was accepted; it is stored. */
export type ExecutionCreated = {
  execution_id: string;
  plan_id: string | null;
  revision: number | null;
  flow: string | null;
  status: ExecutionStatus;
  /** Place in the queue, 1 for the next one; null if it is not queued. */
  position: number | null;
};

/** The execution that another one was made out of. */
export type ForkedFrom = {
  execution_id: string;
  /** Whether this is a retry: failed nodes of the parent run again. */
  retry: boolean;
};

/** How far an execution is. */
export type ExecutionDigest = {
  /** Nodes of its own graph that run. */
  steps: number;
  /** Of each wave the number of nodes by status. */
  waves: Record<string, number>[];
  /** Those it has called. */
  models: string[];
  usage: UsageResponse;
  parent: ForkedFrom | null;
  waitingForInput: boolean;
  /** The values of its inputs on one line, shortened; empty without any. */
  inputs: string;
};

/** What an execution waits for that not every process can do. */
export type WaitsForResponse = {
  /** What a process has to be able to do: `local` is to run the embedded model. */
  capability: string;
  /** How many processes can. */
  processes: number;
};

/** The state of an execution. */
export type ExecutionResponse = {
  /** In place of the title; null where nobody gave one. */
  name: string | null;
  tags: string[];
  note: string;
  starred: boolean;
  status: ExecutionStatus;
  /** True where nobody alive runs it though its status says so: it goes on once it is resumed. Left out otherwise. */
  interrupted?: boolean;
  /** `partial`: it failed, and some of its last nodes delivered something; see `missing`. Null otherwise. */
  outcome: "partial" | null;
  /** Of a partial outcome: the last nodes without a result, and why. Empty otherwise. */
  missing: MissingResult[];
  execution_id: string;
  plan_id: string | null;
  /** The revision of the plan that it runs; null where its graph was changed since. */
  revision: number | null;
  plan_hash: string | null;
  /** The name of the plan at the start, where it was started as a flow; null for one of a plan. */
  flow: string | null;
  title: string;
  user_prompt: string;
  /** Status by node path, in graph order. */
  node_states: Record<string, NodeStatus>;
  logs: string[];
  wave: WaveResponse;
  queue_position: number | null;
  /** Why no process runs it: only some can. Left out otherwise. */
  waits_for?: WaitsForResponse;
  waitingForInput: boolean;
  /** The node of the oldest open request. */
  currentNodeId: string | null;
  /** The open ones, oldest first. */
  requests: OpenRequestResponse[];
  usage: UsageResponse;
  /** The change of its graph that it waits for; left out without one. */
  plan_request?: PlanRequestResponse;
  /** What the calls used that wrote its plan; as in lists. */
  planning: UsageResponse | null;
  /** What it may use; null where nothing limits it. */
  budget: BudgetResponse | null;
  /** Why it failed. */
  error: ErrorDocument | null;
  /** Paths of nodes that failed it. */
  failures: string[];
  /** Paths of nodes whose failure was handled. */
  handled_failures: string[];
  /** Why it is paused. */
  reason: string | null;
  /** Why it was cancelled. */
  cause: unknown;
  inputs: Record<string, unknown> | null;
  options: OptionsDocument | null;
  parent: ParentDocument | null;
  /** What started it, `{"id", "kind", "delivery"}`; null for a person or a program with a token. */
  trigger: unknown;
  /** Who created it; null where an older planwave did. */
  created_by: PrincipalDocument | null;
  /** The approval that its plan needs; null where it needs none. */
  approval: PlanApprovalResponse | null;
  /** The page of its trace, for the operator, where it was traced and the service knows such a page. */
  trace_url?: string;
  /** The last event this shows. */
  last_seq: number;
  created_at: string | null;
  started_at: string | null;
  completed_at: string | null;
};

/** An execution as lists show it. */
export type ExecutionSummary = {
  /** In place of the title; null where nobody gave one. */
  name: string | null;
  tags: string[];
  note: string;
  starred: boolean;
  status: ExecutionStatus;
  /** True where nobody alive runs it though its status says so: it goes on once it is resumed. Left out otherwise. */
  interrupted?: boolean;
  execution_id: string;
  plan_id: string | null;
  revision: number | null;
  flow: string | null;
  created_by: PrincipalDocument | null;
  title: string;
  user_prompt: string;
  /** `partial`: it failed, and delivered results all the same. Null otherwise. */
  outcome: "partial" | null;
  /** Why no process runs it: only some can. Left out otherwise. */
  waits_for?: WaitsForResponse;
  /** When it was made, UTC; the same as `created_at`. */
  timestamp: string;
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
  /** What the calls used that wrote its plan, which are paid once for all its executions and are not among its own `usage`; null for a plan that no model wrote. */
  planning: UsageResponse | null;
  /** Only with `digest=1`; left out where it takes long to find: it is there the next time. */
  digest?: ExecutionDigest;
};

/** One page of executions, newest first. */
export type ExecutionsResponse = {
  executions: ExecutionSummary[];
  /** For the next page; null on the last one. */
  next_cursor: string | null;
  /** Where asked for (`counts=1`). */
  counts?: ExecutionCounts;
};

/** Why a node ran, did not run, or waits. */
export type ExplainResponse = {
  path: string;
  status: NodeStatus;
  /** Stable; branch on it. */
  code: string;
  /** A sentence or two. */
  reason: string;
  /** The nodes it depends on: `{node, status, …}`. */
  because: Record<string, unknown>[];
  /** The inputs, by handle: `{text, arrivals: [{edge, source, value, text, …}]}`. */
  inputs: Record<string, Record<string, unknown>>;
  /** Its history, in order: `{seq, at, what, attempt?, …}`. */
  course: Record<string, unknown>[];
  /** Where its wired parameters came from: `{name: {channel, source, edge, handle?, over}}`. */
  parameters?: Record<string, Record<string, unknown>>;
  /** The last request to a model. */
  prompt?: unknown;
  error?: ErrorDocument;
  /** Where the exception of its code came from; only for the operator. */
  traceback?: string;
  /** Its open requests. */
  requests?: OpenRequestResponse[];
};

/** A revision as lists show it. */
export type RevisionSummary = {
  plan_id: string;
  /** 1 for the plan as it was made. */
  revision: number;
  /** Of the graph. */
  hash: string;
  title: string;
  author: "person" | "planner" | "api";
  note: string;
  created_at: string;
  /** Who made it; null where an older planwave did. */
  created_by: PrincipalDocument | null;
  node_count: number;
  /** With any error it is a draft, which cannot be executed. */
  error_count: number;
  /** That of its hash; null where nobody approved it. */
  approval: ApprovalResponse | null;
};

/** A flow: a plan that has a name, in the revision that callers start. */
export type FlowResponse = {
  /** The id of the plan that the flow is: see `GET /api/plans/{plan_id}` for its newest revision. */
  plan_id: string;
  /** Unique without regard to case. */
  name: string;
  title: string;
  /** Its purpose; its executions have it as their goal. */
  description: string;
  /** The revision that is shown: the one that callers start unless another one was asked for. */
  revision: number;
  /** The revision that callers start; null while none is approved. */
  live_revision: number | null;
  /** The newest revision, where callers do not start it: it has errors, or is not approved. Always null for an access token. */
  draft: RevisionSummary | null;
  created_at: string;
  /** When the revision was made, UTC. */
  updated_at: string;
  /** What the flow is published as; see `PUT /api/flows/{plan_id}/publication`. */
  published: ("model" | "tool")[];
  /** Of the graph: the `ETag`, which `If-Match` compares with the newest revision. */
  hash: string;
  /** The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read. */
  inputs: Record<string, unknown> | null;
  graph: GraphDocument;
};

/** The nodes of a fork by what it would do with them. */
export type ForkPreviewResponse = {
  /** Their results are reused, or set by the fork; they cost nothing. */
  reused: string[];
  /** They run. */
  runs: string[];
  /** They are reused if what comes before them gives the same as before; else they run or are left out. */
  undecided: string[];
};

/** The graph, with its title and goal where the source has them. */
export type ImportedDocument = {
  nodes: NodeDocument[];
  edges: EdgeDocument[];
  title?: string;
  user_prompt?: string;
};

/** A file of another program as a graph. */
export type ImportResponse = {
  report: ImportReport;
  document: ImportedDocument;
  /** The check of the graph; a placeholder is an error. */
  diagnostics: DiagnosticResponse[];
  /** A Python module with the programs of the file as node types, if asked for; else empty. */
  code: string;
  /** The id of the flow it was saved as. */
  saved: string | null;
};

/** Inputs of a flow that are saved under a name. */
export type InputSetResponse = {
  name: string;
  /** As `POST /api/execute` takes them. */
  inputs: Record<string, unknown>;
  created_at: string;
  /** When the inputs or the name were changed last. */
  updated_at: string;
  /** Who saved them last. */
  created_by: PrincipalDocument | null;
  /** What does not fit the live revision of the flow any more; pointers such as `/inputs/city`. */
  issues: DiagnosticResponse[];
};

/** The saved inputs of a flow, by name. */
export type InputSetsResponse = {
  input_sets: InputSetResponse[];
};

/** What people call an execution. */
export type LabelsResponse = {
  /** In place of the title; null where nobody gave one. */
  name: string | null;
  tags: string[];
  note: string;
  starred: boolean;
};

/** One limit. */
export type LimitResponse = {
  name: string;
  value: JsonNumber;
  default: JsonNumber;
  hard_cap: JsonNumber;
  unit: string;
  what: string;
  /** The environment variable that sets it. */
  variable: string;
};

/** The limits of the service. */
export type LimitsResponse = {
  limits: LimitResponse[];
};

/** A new link. */
export type LinkCreatedResponse = {
  link_id: string;
  /** `result`: shows the result; `run`: also what each step delivered; `request`: answers one request, once. */
  kind: "result" | "run" | "request";
  execution_id: string;
  /** Of `request`: which. */
  request_id: string | null;
  created_at: string;
  /** From when on it opens nothing, UTC. */
  expires_at: string;
  /** The target of the notification that has it; null where somebody created it. */
  target: string | null;
  /** Who created it; null where a notification has it. */
  created_by: PrincipalDocument | null;
  /** What opens it; it is not stored, and never shown again. */
  key: string;
  /** The address with the key. */
  url: string;
};

/** A link that still opens something, without its key. */
export type LinkResponse = {
  link_id: string;
  /** `result`: shows the result; `run`: also what each step delivered; `request`: answers one request, once. */
  kind: "result" | "run" | "request";
  execution_id: string;
  /** Of `request`: which. */
  request_id: string | null;
  created_at: string;
  /** From when on it opens nothing, UTC. */
  expires_at: string;
  /** The target of the notification that has it; null where somebody created it. */
  target: string | null;
  /** Who created it; null where a notification has it. */
  created_by: PrincipalDocument | null;
};

/** One page of links, newest first. */
export type LinksResponse = {
  links: LinkResponse[];
  /** For the next page; null on the last one. */
  next_cursor: string | null;
};

/** One line of the typed log. */
export type LogEntryResponse = {
  timestamp: string;
  /** A node's path, or `system`. */
  nodeId: string;
  type: "step_start" | "start_prompt" | "logic_check" | "wait_input" | "input_received" | "llm_response" | "llm_error" | "error" | "message" | "timer" | "tool_call_end" | "tool_call_error" | "subagent_call_start" | "subagent_call_end" | "subagent_call_error";
  content: string;
  level: "debug" | "info" | "warning" | "error";
  /** Where the exception of its code came from; only for the operator. */
  traceback?: string;
};

/** The typed log of an execution. */
export type LogEntriesResponse = {
  execution_id: string;
  status: ExecutionStatus;
  entries: LogEntryResponse[];
  /** The value of `after` for the next page. */
  last_seq: number;
};

/** An MCP server that the operator has set up. */
export type McpServerResponse = {
  /** What `mcp_server` nodes name it. */
  name: string;
  /** Whether it is a program, or at a URL. */
  kind: "stdio" | "http";
};

/** The MCP servers, sorted by name. */
export type McpServersResponse = {
  servers: McpServerResponse[];
};

/** One node type. */
export type NodeTypeResponse = {
  node_type: string;
  /** When to use it, as planners are told. */
  purpose: string;
  /** A few words for people who choose a type. */
  summary: string;
  inputs: PortResponse[];
  outputs: PortResponse[];
  /** Whether executions may be given values for it. */
  entry: boolean;
  /** Whether it runs as a step. */
  executes: boolean;
  /** Whether it can be a dependency of other nodes, over a link. */
  materializes: boolean;
  effect: "none" | "read" | "write" | "once";
  /** Fields of `data` in which `{{ … }}` is resolved; null means all. */
  template_fields: string[] | null;
  /** Raised where the same data and inputs give something else from then on. */
  version: number;
  /** Whether its result depends on the execution's goal by itself. */
  reads_goal: boolean;
  /** Whether one of its outputs alone carries a value. */
  chooses: boolean;
  /** The policy to write into a new node of the type, where it has one. */
  policy?: Record<string, unknown>;
  /** JSON Schema of `data`. */
  schema: Record<string, unknown>;
  /** A small graph that shows it at work and can be run; empty where there is none. */
  example: Record<string, unknown>;
};

/** How sockets of one type are drawn, and the types they accept. */
export type SocketTypeResponse = {
  type: string;
  label: string;
  /** On light pages, as `#rrggbb`. */
  color: string;
  /** On dark pages. */
  dark_color: string;
  shape: string;
  /** Other types whose values it takes. */
  accepts: string[];
};

/** The node types there are, and the types of their sockets. */
export type NodeTypesResponse = {
  node_types: NodeTypeResponse[];
  socket_types: SocketTypeResponse[];
};

/** One message to one target. */
export type NotificationResponse = {
  /** The `webhook-id` of the message, the same in every attempt. */
  notification_id: string;
  target_id: string;
  execution_id: string;
  /** What happened: `completed`, `failed`, `cancelled` or `waiting`. */
  event: string;
  /** `dead` if nobody accepted it in time; it can be sent again. */
  status: "pending" | "delivered" | "dead";
  created_at: string;
  /** How often it was sent, since a person had it sent again. */
  attempts: number;
  /** When it is sent next; null unless it is pending. */
  next_at: string | null;
  /** Why the last attempt failed; empty if none did. */
  error: string;
};

/** One page of notifications, newest first. */
export type NotificationsResponse = {
  notifications: NotificationResponse[];
  /** For the next page; null on the last one. */
  next_cursor: string | null;
};

/** The open requests of an execution. */
export type OpenRequestsResponse = {
  /** Oldest first. */
  requests: OpenRequestResponse[];
};

/** A question to a person, and the execution that waits for its answer. */
export type PendingRequest = {
  request_id: string;
  /** Of the node that asks; null where the execution asks, for approval of its plan or of a change of it, or for a higher budget. */
  path: string | null;
  /** The request. An `approval` has `{kind, prompt, actions, form, value, editable}`, the approval of a plan (`plan-approval`) `{kind, prompt, actions, plan_hash, plan_id, title, goal, forecast}`, a higher budget (`budget`) `{kind, message, actions, limits, used, waiting, proposed}`, a change of the graph that is run (`plan-change`) `{kind, prompt, actions, change, by, path, request, answer, base, hash, graph_change, difference, additions, forecast}`; its `forecast` is that of the steps that have not begun. */
  request: unknown;
  /** When it was asked, UTC. */
  since: string;
  /** Seconds from then on after which the node goes on without an answer; null: it waits. */
  timeout_s: JsonNumber | null;
  execution_id: string;
  title: string;
  user_prompt: string;
  node_name: string;
  /** When the node goes on without an answer, UTC; null: it waits. */
  deadline: string | null;
  /** Of `status=answered` only. */
  answered?: AnswerResponse;
};

/** One page of the requests of all executions to people. */
export type PendingRequestsResponse = {
  /** Open ones: the soonest deadline first; then those without one, oldest first. Answered ones: the newest answer first. */
  requests: PendingRequest[];
  /** How many there are on all pages. */
  total: number;
  /** For the next page; null on the last one. */
  next_cursor: string | null;
};

/** A plan, with a name or without, as lists show it: in its newest revision. */
export type PlanSummary = {
  plan_id: string;
  user_prompt: string;
  title: string;
  /** The name, for which it is a flow; null for a plan without one. */
  name: string | null;
  /** The purpose of a flow. */
  description: string;
  /** What a flow is published as. */
  published: ("model" | "tool")[];
  /** That of its newest execution; `draft` without one. */
  status: PlanStatus;
  revision: number;
  /** The revision that callers of a flow start; a lower number than `revision`, or null, under a draft. */
  live_revision: number | null;
  hash: string;
  created_at: string;
  /** When the revision was made, UTC. */
  updated_at: string;
  /** Who made the revision; null where it is not known. */
  updated_by: PrincipalDocument | null;
  provider: string | null;
  model: string | null;
  node_count: number;
  /** With any error it is a draft, which cannot be executed. */
  error_count: number;
};

/** One page of plans, newest first. */
export type PlansResponse = {
  plans: PlanSummary[];
  /** For the next page; null on the last one. */
  next_cursor: string | null;
};

/** A download of a model that is going on. */
export type ModelDownload = {
  model: string;
  done_bytes: number;
  size_bytes: number;
};

/** One provider, and why it can or cannot be used. */
export type ProviderDetails = {
  name: string;
  kind: string;
  available: boolean;
  reason: string;
  how_to_enable: string;
  models: string[];
  default_model: string | null;
  /** Whether names outside `models` are accepted too. */
  open_models: boolean;
  /** Of the embedded model, while it is downloaded; null: it is not. */
  download: ModelDownload | null;
};

/** The providers that can be used, by name, and details of all. */
export type ProvidersResponse = {
  providers: string[];
  default_models: Record<string, string | null>;
  models: Record<string, string[]>;
  details: ProviderDetails[];
};

/** A change of the graph of an execution that a model is writing; nothing of the execution starts meanwhile. */
export type ReplanAccepted = {
  execution_id: string;
  /** The number that it will have: of `plan.requested`, and then of `plan.revised` or `plan.refused`. */
  change: number;
};

/** A new reply, which may not have started. */
export type ReplyResponse = {
  chat_id: string;
  message: MessageResponse;
};

/** The result of an execution, so far or at its end. */
export type ResultResponse = {
  /** `partial`: it failed, and some of its last nodes delivered something; see `missing`. Null otherwise. */
  outcome: "partial" | null;
  /** Of a partial outcome: the last nodes without a result, and why. Empty otherwise. */
  missing: MissingResult[];
  execution_id: string;
  plan_id: string | null;
  status: ExecutionStatus;
  result: RunResultResponse;
  /** Results as text, by node path; nodes without one are left out. */
  node_results: Record<string, string>;
  execution_logs: string[];
  error: ErrorDocument | null;
  started_at: string | null;
  completed_at: string | null;
};

/** The differences between two revisions of a plan, without `ui`. */
export type RevisionDiffResponse = {
  nodes: ElementDifference[];
  edges: ElementDifference[];
  /** Which lists have common members in another order. */
  reordered: ("nodes" | "edges")[];
  plan_id: string;
  a: number;
  b: number;
  /** Of A and of B. */
  hash: string[];
  /** Of A and of B; null where they are the same. */
  title: string[] | null;
};

/** One revision of a plan. */
export type RevisionResponse = {
  plan_id: string;
  /** 1 for the plan as it was made. */
  revision: number;
  /** Of the graph. */
  hash: string;
  title: string;
  author: "person" | "planner" | "api";
  note: string;
  created_at: string;
  /** Who made it; null where an older planwave did. */
  created_by: PrincipalDocument | null;
  node_count: number;
  /** With any error it is a draft, which cannot be executed. */
  error_count: number;
  /** That of its hash; null where nobody approved it. */
  approval: ApprovalResponse | null;
  nodes: NodeDocument[];
  edges: EdgeDocument[];
  diagnostics: DiagnosticResponse[];
};

/** One page of revisions, newest first. */
export type RevisionsResponse = {
  plan_id: string;
  revisions: RevisionSummary[];
  /** For the next page; null on the last one. */
  next_cursor: string | null;
};

/** The sums of one day, flow or model. */
export type SpendGroup = {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  /** The known part; null where no call has a known price. */
  cost_usd: JsonNumber | null;
  /** Calls without a known price, whose cost is not in the sum. */
  unpriced_calls: number;
  /** Those of these tokens that wrote plans. */
  planning_tokens: number;
  /** That of these costs that wrote plans; null where none is known. */
  planning_cost_usd: JsonNumber | null;
  /** Executions, and plans that models wrote. */
  runs: number;
  /** The day, the id of the flow, or `provider/model`; empty for all that belongs to no flow. */
  key: string;
  /** The name of a flow. */
  name: string | null;
};

/** What calls of models used. Tokens are those of prompts and replies. */
export type SpendAmounts = {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  /** The known part; null where no call has a known price. */
  cost_usd: JsonNumber | null;
  /** Calls without a known price, whose cost is not in the sum. */
  unpriced_calls: number;
  /** Those of these tokens that wrote plans. */
  planning_tokens: number;
  /** That of these costs that wrote plans; null where none is known. */
  planning_cost_usd: JsonNumber | null;
  /** Executions, and plans that models wrote. */
  runs: number;
};

/** More was spent today than the operator wants to be warned of; nothing was stopped. */
export type SpendWarning = {
  day: string;
  cost_usd: JsonNumber;
  /** The setting `spend_warn_usd_per_day`. */
  warn_usd: JsonNumber;
};

/** What was spent from one day to another, both included, UTC; of executions up to their last pause or their end. */
export type SpendResponse = {
  since: string;
  until: string;
  by: "day" | "flow" | "model";
  /** Days: the newest first; others: the most tokens first, 1,000 at most. */
  groups: SpendGroup[];
  total: SpendAmounts;
  /** Of today. */
  warning: SpendWarning | null;
};

/** The stored events of an execution, without its streamed text. */
export type StoredEventsResponse = {
  execution_id: string;
  /** `ExecutionEvent`s, in order; none: there are no more yet. */
  events: Record<string, unknown>[];
  /** The value of `after` for the next page. */
  last_seq: number;
};

/** A URL that is notified of executions. */
export type TargetResponse = {
  /** Its id; of a target of the operator its name in `planwave.toml`. */
  target_id: string;
  /** The flow whose executions count; null for those of all, which only the operator sets. */
  plan_id: string | null;
  flow: string | null;
  url: string;
  /** The names of the secrets that sign. */
  secrets: string[];
  events: string[];
  /** Why it gets nothing; null without a problem. */
  problem: string | null;
  /** Null for a target of the operator. */
  created_at: string | null;
};

/** The targets of the operator, then those of flows, newest first. */
export type TargetsResponse = {
  targets: TargetResponse[];
};

/** Where a tool comes from. */
export type ToolOriginResponse = {
  kind: "module" | "package";
  /** The name of the module or of the installed package. */
  name: string;
};

/** One tool that `tool` and `toolset` nodes may name. */
export type ToolResponse = {
  name: string;
  /** What models read about it. */
  description: string;
  /** What a call does to the world; `once` must not happen twice. */
  effect: "none" | "read" | "write" | "once";
  /** When a person approves a call; `write`: where it may change something. */
  approval: "never" | "always" | "write";
  timeout_s: JsonNumber | null;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  origin: ToolOriginResponse;
};

/** The tools that the operator made available. */
export type ToolsResponse = {
  tools: ToolResponse[];
};

/** A request that was not authenticated; its sender was not told why. */
export type RejectionResponse = {
  at: string;
  /** Such as `signature-mismatch`. */
  reason: string;
};

/** An entry node of a flow that is listened for. */
export type TriggerResponse = {
  trigger_id: string;
  /** The type of its node. */
  kind: string;
  plan_id: string;
  /** The name of the flow. */
  flow: string;
  /** The revision that it is bound to; null for the live one. */
  revision: number | null;
  /** The revision that it starts now; null where it starts none, as `problem` says. */
  live_revision: number | null;
  node_id: string;
  enabled: boolean;
  /** Why it starts nothing although it may be enabled; null without a problem. */
  problem: string | null;
  created_at: string;
  /** Who set it up; null where an older planwave did. */
  created_by: PrincipalDocument | null;
  /** What only its kind has, such as the path of a webhook. */
  details: Record<string, unknown>;
  /** The last ones, newest first. */
  deliveries: DeliveryResponse[];
  /** The last request that was not authenticated, since the service began; null without one. */
  last_rejection: RejectionResponse | null;
};

/** One page of triggers, newest first. */
export type TriggersResponse = {
  triggers: TriggerResponse[];
  /** For the next page; null on the last one. */
  next_cursor: string | null;
};

/** A new message of the user, and the reply to it. */
export type TurnResponse = {
  chat_id: string;
  message: MessageResponse;
  user_message: MessageResponse;
};

/** The answer to a request. */
export type AnswerRequest = unknown;

/** Limits of what an execution may use, with everything inside it; null sets no limit. */
export type BudgetModel = {
  /** US dollars, as far as prices are known. */
  usd?: JsonNumber | null;
  /** Tokens that models read and write. */
  tokens?: number | null;
  /** Calls of models. */
  calls?: number | null;
  /** Seconds in which it is not paused. */
  wall_s?: JsonNumber | null;
};

/** The node to cancel, and the cause; without a body, the whole execution. */
export type CancelRequest = {
  /** Why; it is kept with the execution. */
  cause?: string;
  /** The path of one node: only it is stopped, and nodes that depend on it are blocked. */
  node?: string | null;
};

/** What replies: a flow, or a model. */
export type ChatCreateRequest = {
  /** By default the beginning of the first message. */
  title?: string;
  /** The flow. */
  plan_id?: string | null;
  /** The revision of the flow; without one the live one, whatever it is then. */
  plan_revision?: number | null;
  /** Its `chat_start` node; not needed where there is only one. */
  node_id?: string | null;
  /** In place of a flow. */
  config?: ChatConfig | null;
};

/** What changes of a chat. */
export type ChatUpdateRequest = {
  /** Its new title. */
  title?: string | null;
  /** The last message of the branch that is shown. */
  head?: string | null;
};

/** A graph to check; its problems are the response, not an error. */
export type CheckRequest = {
  /** `{nodes, edges}`, or a plan, whose goal `user_prompt` is checked too. */
  graph: Record<string, unknown>;
};

/** Whether a model changes the plan of an execution, where a step of it fails, or asks for that. */
export type ReplanModel = {
  /** Have a model write a change after a failure that nothing handles. */
  on_failure?: boolean;
  /** Let steps ask for a change: agents by the tool `change_plan`, others by the event `replan`. */
  by_nodes?: boolean;
  /** Changes of an execution, at most. */
  max?: number;
};

/** How to run; limits of the service hold in any case. */
export type ExecuteOptionsModel = {
  /** Start a node the moment it is ready, or wait for its wave. */
  scheduling?: "eager" | "waves";
  /** Finish nodes that do not depend on a failed node, or cancel them. */
  on_failure?: "continue" | "stop";
  /** Nodes working at the same time. */
  max_parallel?: number | null;
  /** Ids of nodes: only these and their dependencies run. */
  run_to?: string[];
  /** Ids of nodes: only these, later nodes and the dependencies of both run. */
  run_from?: string[];
  /** What the execution may use. Once nothing can go on within it, the execution is paused with a request of the kind `budget`. Amounts that are left out are those of the service's limits `budget_usd` and `budget_tokens`. */
  budget?: BudgetModel | null;
  /** Where a step fails and nothing handles that, or asks for it, a model writes a change of the plan. Nothing starts meanwhile. A person is asked about a change that reaches anything new. */
  replan?: ReplanModel | null;
  /** Node policies of this execution by node id, over those of the plan, field by field; null takes a field back to its default. */
  policies?: Record<string, Record<string, unknown>> | null;
};

/** The plan to execute: a stored plan, a flow, or a graph, which becomes a plan. */
export type ExecuteRequest = {
  /** A stored plan. */
  plan_id?: string | null;
  /** A flow, by its name or its id. */
  flow?: string | null;
  /** One of its revisions; else the newest of a plan, or the live one of a flow. */
  revision?: number | null;
  /** A graph, or a plan as `POST /api/plan` gave it. */
  graph?: GraphDocument | null;
  /** `{node_id: {handle: value}}`: nodes settled with these values instead of being run; `{handle: value}` where there is one entry node. */
  inputs?: Record<string, unknown> | null;
  options?: ExecuteOptionsModel;
  /** Ask a person before the first node starts: the execution is paused with a request of the kind `plan-approval`. The operator may require it in any case. */
  require_approval?: boolean;
  /** Start it at once; else `POST /api/execute/{execution_id}/start` does. */
  start?: boolean;
};

/** A graph that is not stored, and the format of the text. */
export type ExportRequest = {
  /** The format of the text. */
  to: "mermaid" | "dot" | "yaml" | "json-schema" | "python";
  /** `{nodes, edges}`; of no use to `json-schema`. */
  graph?: Record<string, unknown>;
  /** What the picture or the document is called. */
  title?: string;
};

/** A graph, or a stored plan, to be saved under a name. */
export type FlowCreateRequest = {
  /** What it is called; one line. */
  name: string;
  /** What it is for, which callers read; by default the title of a plan made for a goal. */
  description?: string | null;
  /** A graph, or a plan as `POST /api/plan` gave it. */
  graph?: GraphDocument | null;
  /** A stored plan, which gets the name; one that has a name is copied. */
  plan_id?: string | null;
  /** Whether a graph with errors is saved, too: as a draft that cannot be executed. */
  draft?: boolean;
};

/** Changes to a flow. */
export type FlowUpdateRequest = {
  /** Who makes the change: a person, or a program. */
  author?: "person" | "api";
  /** Why; it is stored with the revision. */
  note?: string;
  /** What it is called; one line. */
  name?: string | null;
  /** What it is for; see `goal_chars`. */
  description?: string | null;
  /** A graph, or a plan as `POST /api/plan` gave it. */
  graph?: GraphDocument | null;
  /** A stored plan whose graph it gets. */
  from_plan_id?: string | null;
  /** Whether a graph with errors is saved, too: as a draft that cannot be executed. */
  draft?: boolean;
};

/** How to run; limits of the service hold in any case. */
export type RunOptionsModel = {
  /** Start a node the moment it is ready, or wait for its wave. */
  scheduling?: "eager" | "waves";
  /** Finish nodes that do not depend on a failed node, or cancel them. */
  on_failure?: "continue" | "stop";
  /** Nodes working at the same time. */
  max_parallel?: number | null;
  /** Ids of nodes: only these and their dependencies run. */
  run_to?: string[];
  /** Ids of nodes: only these, later nodes and the dependencies of both run. */
  run_from?: string[];
  /** What the execution may use. Once nothing can go on within it, the execution is paused with a request of the kind `budget`. Amounts that are left out are those of the service's limits `budget_usd` and `budget_tokens`. */
  budget?: BudgetModel | null;
  /** Where a step fails and nothing handles that, or asks for it, a model writes a change of the plan. Nothing starts meanwhile. A person is asked about a change that reaches anything new. */
  replan?: ReplanModel | null;
};

/** Changes to the execution, and whether the new one is started; without a body there are none. */
export type ForkExecutionRequest = {
  /** A graph, or a plan with it, to run in place of that of the execution; the other changes are of it. Nodes are the same by their ids. */
  graph?: GraphDocument | null;
  /** Ids of nodes that run again in any case. */
  rerun?: string[];
  /** By node id, `{description?, data?}`: the node's new task, and a merge patch (RFC 7396) for its data; or `{outputs: {handle: value}}`: its outputs, without running it. */
  changes?: Record<string, Record<string, unknown>> | null;
  /** How to run, all of it; null: as the execution before it ran. */
  options?: RunOptionsModel | null;
  /** Queue it; else `POST /api/execute/{execution_id}/start` does. */
  start?: boolean;
};

/** Changes to the execution; without a body there are none. */
export type ForkPreviewRequest = {
  /** A graph, or a plan with it, to run in place of that of the execution; the other changes are of it. Nodes are the same by their ids. */
  graph?: GraphDocument | null;
  /** Ids of nodes that run again in any case. */
  rerun?: string[];
  /** By node id, `{description?, data?}`: the node's new task, and a merge patch (RFC 7396) for its data; or `{outputs: {handle: value}}`: its outputs, without running it. */
  changes?: Record<string, Record<string, unknown>> | null;
  /** How to run, all of it; null: as the execution before it ran. */
  options?: RunOptionsModel | null;
};

/** A file of another program, as text. */
export type ImportRequest = {
  /** JSON, YAML, or a Mermaid flowchart. */
  text: string;
  /** The format; without it the shape of the document tells. */
  kind?: string | null;
  /** Whether programs in the file become node types of a module, `code`. */
  write_code?: boolean;
  /** A provider in place of each that the file names. */
  provider?: string | null;
  /** A model of that provider; else its default. */
  model?: string | null;
  /** The name of a new flow that the graph is saved as; with placeholders it is a draft. */
  save_as_flow?: string | null;
};

/** Inputs to be saved, or another name for those that are saved. */
export type InputSetRequest = {
  /** As `POST /api/execute` takes them; left out, they stay. */
  inputs?: Record<string, unknown> | null;
  /** Another name: one line without a slash. */
  name?: string | null;
};

/** What people call an execution; a field that is left out stays as it is. */
export type LabelsRequest = {
  /** In place of the title; null or empty: the title. */
  name?: string | null;
  /** In place of those before, each once. */
  tags?: string[];
  /** Any text. */
  note?: string;
  /** Whether it has a star. */
  starred?: boolean;
};

/** What a link shows or answers. */
export type LinkCreateRequest = {
  /** `result`: shows the result. `run`: also what each step delivered. `request`: answers one request, once. */
  kind?: "result" | "run" | "request";
  /** Of `request`: which. */
  request_id?: string | null;
  /** Seconds for which it is valid; by default a week, of `request` the limit `answer_link_hours`. It never answers after the deadline of its request. */
  expires_in_s?: JsonNumber | null;
};

/** Adds a node at the end. */
export type AddNodeOperation = {
  op: "add_node";
  node: NodeDocument;
};

/** Changes fields of a node, but not its id. */
export type UpdateNodeOperation = {
  op: "update_node";
  id: string;
  /** A merge patch (RFC 7396) for the node: null removes a field. */
  set: Record<string, unknown>;
};

/** Removes a node and its edges. */
export type RemoveNodeOperation = {
  op: "remove_node";
  id: string;
};

/** One wire that an operation adds; a flow edge where it names no channel. */
export type AddedEdgeDocument = {
  id?: string | null;
  source: string;
  sourceHandle?: string | null;
  target: string;
  targetHandle?: string | null;
  type?: string | null;
  /** `{"channel": "flow" | "link"}`, `flow` by default, and other fields of an editor. */
  data?: Record<string, unknown> | null;
};

/** Adds an edge at the end; without an id it gets one, and without a channel it is a flow edge. */
export type AddEdgeOperation = {
  op: "add_edge";
  edge: AddedEdgeDocument;
};

/** Removes an edge. */
export type RemoveEdgeOperation = {
  op: "remove_edge";
  id: string;
};

/** Changes the id of a node, in its edges and in expressions too. */
export type RenameOperation = {
  op: "rename";
  id: string;
  to: string;
};

/** Changes the title of the plan, or the name of the flow. */
export type SetTitleOperation = {
  op: "set_title";
  /** One line of at most 200 characters. */
  title: string;
};

/** Changes the goal of the plan; of a flow also its description, which is the goal of its executions. */
export type SetGoalOperation = {
  op: "set_goal";
  /** A template over the inputs of the flow; see `goal_chars`. */
  goal: string;
};

/** Replaces the graph; a node without `ui` keeps that of the node of its id. */
export type ReplaceGraphOperation = {
  op: "replace_graph";
  graph: GraphDocument;
};

/** Changes to a plan or a flow, applied all or none. */
export type PlanEditRequest = {
  /** Who makes the change: a person, or a program. */
  author?: "person" | "api";
  /** Why; it is stored with the revision. */
  note?: string;
  /** Applied in order; see the limit `plan_operations`. */
  operations: (AddNodeOperation | UpdateNodeOperation | RemoveNodeOperation | AddEdgeOperation | RemoveEdgeOperation | RenameOperation | SetTitleOperation | SetGoalOperation | ReplaceGraphOperation)[];
};

/** A goal to be planned. */
export type PlanRequest = {
  /** The goal, in your words. */
  prompt: string;
  /** Who plans, and runs the steps the plan leaves open; else the default. */
  provider?: string | null;
  /** A model of that provider. */
  model?: string | null;
  /** Answers to the `questions` of an earlier plan of the goal, by question; what is not answered is assumed. */
  answers?: Record<string, string>;
};

/** A change in words, or the hash of a proposal to take. */
export type RefineRequest = {
  /** What is to be different, in your words. */
  request?: string | null;
  /** Who writes the change; else the default. */
  provider?: string | null;
  /** A model of that provider. */
  model?: string | null;
  /** Show the proposal without storing it. */
  dry_run?: boolean;
  /** The `hash` of the proposal that becomes a revision. */
  accept?: string | null;
  /** Who accepts it: a person, or a program. */
  author?: "person" | "api";
};

/** What is to be different. */
export type ReplanRequest = {
  /** What is to be different, in your words; without them, what replaces the steps that failed. */
  request?: string | null;
  /** Who writes the change; else the default. */
  provider?: string | null;
  /** A model of that provider. */
  model?: string | null;
  /** Only propose a change: the execution goes on as it is, or has ended. */
  dry_run?: boolean;
};

/** Without a body, it is started at once. */
export type RetryRequest = {
  /** Queue it; else `POST /api/execute/{execution_id}/start` does. */
  start?: boolean;
};

/** The changed graph. */
export type ReviseRequest = {
  /** A graph, or a plan with it, that the execution runs from now on. Nodes are the same by their ids. */
  graph: GraphDocument;
  /** Why; it is kept with the change. */
  note?: string;
};

/** The author of a revision that is restored or made of what ran; without a body, a program. */
export type RevisionRequest = {
  /** Who makes the change: a person, or a program. */
  author?: "person" | "api";
  /** Why; it is stored with the revision. */
  note?: string;
};

/** What a person says, and after which reply. */
export type SendMessageRequest = {
  /** The text. */
  message?: string;
  /** URLs (`https:` or `data:`) or files. */
  images?: (string | Record<string, unknown>)[];
  /** Files: `{name, mime, url}` or `{name, mime, data}`, the data in base64. */
  files?: Record<string, unknown>[];
  /** The reply that it follows; null: the beginning; left out: the head of the chat. */
  parent_id?: string | null;
};

/** The token that opens a session. */
export type SessionRequest = {
  /** What the service was started with. */
  token: string;
};

/** What to listen for. */
export type TriggerCreateRequest = {
  /** The flow. */
  plan_id: string;
  /** Its entry node; not needed where only one can be listened for. */
  node_id?: string | null;
  /** The revision of the flow that it starts; without one the live one, whatever it is then. */
  revision?: number | null;
};

/** A test delivery. */
export type TriggerFireRequest = {
  /** What it is to have received, such as the body of a request; without one, what is typical. */
  value?: unknown;
};

/** What a person says. */
export type UserMessageRequest = {
  /** The text. */
  message?: string;
  /** URLs (`https:` or `data:`) or files. */
  images?: (string | Record<string, unknown>)[];
  /** Files: `{name, mime, url}` or `{name, mime, data}`, the data in base64. */
  files?: Record<string, unknown>[];
};

/** The parameters, the body and the response of each operation. */
export type Operations = {
  /** Plan a goal: `POST /api/plan`. */
  createPlan: {
    path: Record<string, never>;
    query: {
      /** Tell how the plan is written, as server-sent events, before giving it. */
      stream?: boolean;
    };
    body: PlanRequest;
    answer: PlanResponse;
  };
  /** List plans: `GET /api/plans`. */
  listPlans: {
    path: Record<string, never>;
    query: {
      /** Only those with this in name, title, description or goal. */
      q?: string | null;
      /** Only the one with this name, whatever its case. */
      name?: string | null;
      /** Only flows; `false`: only plans without a name. */
      named?: boolean | null;
      /** The `next_cursor` of the page before. */
      cursor?: string | null;
      /** Items on the page, 50 by default; the limit `page_items` is the most. */
      limit?: number | null;
    };
    body: undefined;
    answer: PlansResponse;
  };
  /** Look at a plan: `GET /api/plans/{plan_id}`. */
  getPlan: {
    path: {
      /** A plan's id. */
      plan_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: PlanResponse;
  };
  /** Delete a plan: `DELETE /api/plans/{plan_id}`. */
  deletePlan: {
    path: {
      /** A plan's id. */
      plan_id: string;
    };
    query: {
      /** Remove what leads to the name of the flow, in place of an answer 409. */
      force?: boolean;
    };
    body: undefined;
    answer: undefined;
  };
  /** Change a plan: `PATCH /api/plans/{plan_id}`. */
  editPlan: {
    path: {
      /** A plan's id. */
      plan_id: string;
    };
    query: Record<string, never>;
    body: PlanEditRequest;
    answer: PlanResponse;
  };
  /** Check a graph: `POST /api/check`. */
  checkGraph: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: CheckRequest;
    answer: CheckResponse;
  };
  /** Change a plan in words: `POST /api/plans/{plan_id}/refine`. */
  refinePlan: {
    path: {
      /** A plan's id. */
      plan_id: string;
    };
    query: Record<string, never>;
    body: RefineRequest;
    answer: PlanResponse;
  };
  /** List the revisions of a plan: `GET /api/plans/{plan_id}/revisions`. */
  listRevisions: {
    path: {
      /** A plan's id. */
      plan_id: string;
    };
    query: {
      /** The `next_cursor` of the page before. */
      cursor?: string | null;
      /** Items on the page, 50 by default; the limit `page_items` is the most. */
      limit?: number | null;
    };
    body: undefined;
    answer: RevisionsResponse;
  };
  /** Look at a revision: `GET /api/plans/{plan_id}/revisions/{revision}`. */
  getRevision: {
    path: {
      /** A plan's id. */
      plan_id: string;
      /** The number of a revision. */
      revision: number;
    };
    query: Record<string, never>;
    body: undefined;
    answer: RevisionResponse;
  };
  /** Compare two revisions: `GET /api/plans/{plan_id}/revisions/{revision}/diff`. */
  diffRevisions: {
    path: {
      /** A plan's id. */
      plan_id: string;
      /** The number of a revision. */
      revision: number;
    };
    query: {
      /** The number of the other revision; else the current one. */
      to?: number | null;
    };
    body: undefined;
    answer: RevisionDiffResponse;
  };
  /** Restore a revision: `POST /api/plans/{plan_id}/revisions/{revision}/restore`. */
  restoreRevision: {
    path: {
      /** A plan's id. */
      plan_id: string;
      /** The number of a revision. */
      revision: number;
    };
    query: Record<string, never>;
    body: RevisionRequest | undefined;
    answer: PlanResponse;
  };
  /** Make what ran the newest revision of its plan: `POST /api/executions/{execution_id}/promote`. */
  promoteExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: RevisionRequest | undefined;
    answer: PlanResponse;
  };
  /** Approve a revision: `POST /api/plans/{plan_id}/revisions/{revision}/approve`. */
  approveRevision: {
    path: {
      /** A plan's id. */
      plan_id: string;
      /** The number of a revision. */
      revision: number;
    };
    query: Record<string, never>;
    body: undefined;
    answer: PlanResponse;
  };
  /** Make an execution: `POST /api/execute`. */
  createExecution: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: ExecuteRequest;
    answer: ExecutionCreated;
  };
  /** Start an execution: `POST /api/execute/{execution_id}/start`. */
  startExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ExecutionCreated;
  };
  /** Look at an execution: `GET /api/executions/{execution_id}`. */
  getExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ExecutionResponse;
  };
  /** Name, tag, note or star an execution: `PATCH /api/executions/{execution_id}`. */
  labelExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: LabelsRequest;
    answer: LabelsResponse;
  };
  /** Delete an execution: `DELETE /api/executions/{execution_id}`. */
  deleteExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** What an execution gave: `GET /api/executions/{execution_id}/result`. */
  getResult: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ResultResponse;
  };
  /** The whole execution as one document: `GET /api/executions/{execution_id}/document`. */
  getDocument: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: {
      /** As everybody but the operator sees it, to be handed on: without tracebacks. */
      public?: boolean;
    };
    body: undefined;
    answer: DocumentResponse;
  };
  /** All there is of one node: `GET /api/executions/{execution_id}/nodes/{path}`. */
  getNode: {
    path: {
      /** An execution's id. */
      execution_id: string;
      /** A node's id, or the path of a nested one. */
      path: string;
    };
    query: {
      /** The number of a call whose request and result are whole. */
      call?: number | null;
    };
    body: undefined;
    answer: DocumentNode;
  };
  /** Why a node ran, did not run, or waits: `GET /api/executions/{execution_id}/explain/{path}`. */
  explainNode: {
    path: {
      /** An execution's id. */
      execution_id: string;
      /** A node's id, or the path of a nested one. */
      path: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ExplainResponse;
  };
  /** List executions: `GET /api/executions`. */
  listExecutions: {
    path: Record<string, never>;
    query: {
      /** Only those that are this. */
      status?: ExecutionStatus | null;
      /** Only those that wait for an answer of a person. */
      waiting?: boolean;
      /** Tell of each how far it is: steps, waves, models, usage. */
      digest?: boolean;
      /** Tell how many there are of each status, on all pages. */
      counts?: boolean;
      /** The `next_cursor` of the page before. */
      cursor?: string | null;
      /** Items on the page, 50 by default; the limit `page_items` is the most. */
      limit?: number | null;
      /** Only those with all these words, or parts of words, whatever their case: in name, title, goal, tags, note, inputs, the tasks of their steps, or their result once they have paused or ended; or with this id. */
      q?: string | null;
      /** Only those made at this time or later, ISO 8601; without a zone, UTC. */
      since?: string | null;
      /** Only those made before this time, ISO 8601. */
      until?: string | null;
      /** Only those of this plan. */
      plan_id?: string | null;
      /** Only those with this tag. */
      tag?: string | null;
      /** Only starred ones; `false`: only those without a star. */
      starred?: boolean | null;
      /** By what they are sorted; equal ones by age. A duration, a cost or tokens that are not known yet count as the least. */
      sort?: "created" | "duration" | "cost" | "tokens" | "name";
      /** `desc`: the newest, longest or most first. */
      order?: "desc" | "asc";
    };
    body: undefined;
    answer: ExecutionsResponse;
  };
  /** Cancel an execution, or one node of it: `POST /api/executions/{execution_id}/cancel`. */
  cancelExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: CancelRequest | undefined;
    answer: ExecutionCreated;
  };
  /** Change the graph of an execution while it runs or waits: `POST /api/executions/{execution_id}/revise`. */
  reviseExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: ReviseRequest;
    answer: PlanChangeResponse;
  };
  /** Have a model write a change of an execution: `POST /api/executions/{execution_id}/replan`. */
  replanExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: {
      /** Tell how the plan is written, as server-sent events, before giving it. */
      stream?: boolean;
    };
    body: ReplanRequest;
    answer: ReplanResponse | ReplanAccepted;
  };
  /** Pause an execution: `POST /api/executions/{execution_id}/pause`. */
  pauseExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ExecutionCreated;
  };
  /** Have a paused execution go on: `POST /api/executions/{execution_id}/resume`. */
  resumeExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ExecutionCreated;
  };
  /** What an execution waits to be answered: `GET /api/executions/{execution_id}/requests`. */
  listRequests: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: OpenRequestsResponse;
  };
  /** What executions ask people, or asked them: `GET /api/requests`. */
  listPendingRequests: {
    path: Record<string, never>;
    query: {
      /** Those that wait, or those that are over. */
      status?: "open" | "answered";
      /** The `next_cursor` of the page before. */
      cursor?: string | null;
      /** Items on the page, 50 by default; the limit `page_items` is the most. */
      limit?: number | null;
    };
    body: undefined;
    answer: PendingRequestsResponse;
  };
  /** Answer a request: `POST /api/executions/{execution_id}/requests/{request_id}`. */
  answerRequest: {
    path: {
      /** An execution's id. */
      execution_id: string;
      /** A request's id, unique in its execution. */
      request_id: string;
    };
    query: Record<string, never>;
    body: AnswerRequest;
    answer: ExecutionCreated;
  };
  /** Run failed nodes again: `POST /api/executions/{execution_id}/retry`. */
  retryExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: RetryRequest | undefined;
    answer: ExecutionCreated;
  };
  /** Make a changed execution out of this one: `POST /api/executions/{execution_id}/fork`. */
  forkExecution: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: ForkExecutionRequest | undefined;
    answer: ExecutionCreated;
  };
  /** What a fork would reuse: `POST /api/executions/{execution_id}/fork/preview`. */
  previewFork: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: ForkPreviewRequest | undefined;
    answer: ForkPreviewResponse;
  };
  /** What differs between two executions: `GET /api/executions/{execution_id}/diff/{other_id}`. */
  diffExecutions: {
    path: {
      /** An execution's id. */
      execution_id: string;
      /** An execution's id. */
      other_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: DifferenceResponse;
  };
  /** Save a flow: `POST /api/flows`. */
  createFlow: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: FlowCreateRequest;
    answer: FlowResponse;
  };
  /** Look at a flow: `GET /api/flows/{plan_id}`. */
  getFlow: {
    path: {
      /** A flow's id. */
      plan_id: string;
    };
    query: {
      /** The revision to give; else the one that callers start. */
      revision?: number | null;
    };
    body: undefined;
    answer: FlowResponse;
  };
  /** Change a flow: `PUT /api/flows/{plan_id}`. */
  updateFlow: {
    path: {
      /** A flow's id. */
      plan_id: string;
    };
    query: {
      /** Remove what leads to the name of the flow, in place of an answer 409. */
      force?: boolean;
    };
    body: FlowUpdateRequest;
    answer: FlowResponse;
  };
  /** List the saved inputs of a flow: `GET /api/flows/{plan_id}/input-sets`. */
  listInputSets: {
    path: {
      /** A flow's id. */
      plan_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: InputSetsResponse;
  };
  /** Save inputs of a flow: `PUT /api/flows/{plan_id}/input-sets/{name}`. */
  saveInputSet: {
    path: {
      /** A flow's id. */
      plan_id: string;
      /** The name under which they are saved. */
      name: string;
    };
    query: Record<string, never>;
    body: InputSetRequest;
    answer: InputSetResponse;
  };
  /** Delete saved inputs of a flow: `DELETE /api/flows/{plan_id}/input-sets/{name}`. */
  deleteInputSet: {
    path: {
      /** A flow's id. */
      plan_id: string;
      /** The name under which they are saved. */
      name: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Import a file of another program: `POST /api/import`. */
  importFile: {
    path: Record<string, never>;
    query: {
      /** The format; without it the shape of the document tells. */
      kind?: string | null;
      /** Whether programs in the file become node types of a module, `code`. */
      write_code?: boolean;
      /** A provider in place of each that the file names. */
      provider?: string | null;
      /** A model of that provider; else its default. */
      model?: string | null;
      /** The name of a new flow that the graph is saved as; with placeholders it is a draft. */
      save_as_flow?: string | null;
    };
    body: ImportRequest;
    answer: ImportResponse;
  };
  /** Write a graph in another format: `POST /api/export`. */
  exportGraph: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: ExportRequest;
    answer: string;
  };
  /** Begin a chat: `POST /api/chats`. */
  createChat: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: ChatCreateRequest | undefined;
    answer: ChatResponse;
  };
  /** List chats: `GET /api/chats`. */
  listChats: {
    path: Record<string, never>;
    query: {
      /** Only those with this in the title. */
      q?: string | null;
      /** The `next_cursor` of the page before. */
      cursor?: string | null;
      /** Items on the page, 50 by default; the limit `page_items` is the most. */
      limit?: number | null;
    };
    body: undefined;
    answer: ChatsResponse;
  };
  /** Look at a chat: `GET /api/chats/{chat_id}`. */
  getChat: {
    path: {
      /** A chat's id. */
      chat_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ChatResponse;
  };
  /** Rename a chat, or show another branch: `PATCH /api/chats/{chat_id}`. */
  updateChat: {
    path: {
      /** A chat's id. */
      chat_id: string;
    };
    query: Record<string, never>;
    body: ChatUpdateRequest;
    answer: ChatResponse;
  };
  /** Delete a chat: `DELETE /api/chats/{chat_id}`. */
  deleteChat: {
    path: {
      /** A chat's id. */
      chat_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Say something: `POST /api/chats/{chat_id}/messages`. */
  sendMessage: {
    path: {
      /** A chat's id. */
      chat_id: string;
    };
    query: Record<string, never>;
    body: SendMessageRequest;
    answer: TurnResponse;
  };
  /** Say something else: `POST /api/chats/{chat_id}/messages/{message_id}/edit`. */
  editMessage: {
    path: {
      /** A chat's id. */
      chat_id: string;
      /** A message's id. */
      message_id: string;
    };
    query: Record<string, never>;
    body: UserMessageRequest;
    answer: TurnResponse;
  };
  /** Have a reply given again: `POST /api/chats/{chat_id}/messages/{message_id}/retry`. */
  retryMessage: {
    path: {
      /** A chat's id. */
      chat_id: string;
      /** A message's id. */
      message_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ReplyResponse;
  };
  /** Have a reply continued: `POST /api/chats/{chat_id}/messages/{message_id}/continue`. */
  continueMessage: {
    path: {
      /** A chat's id. */
      chat_id: string;
      /** A message's id. */
      message_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: ReplyResponse;
  };
  /** Cancel a reply: `POST /api/chats/{chat_id}/messages/{message_id}/cancel`. */
  cancelMessage: {
    path: {
      /** A chat's id. */
      chat_id: string;
      /** A message's id. */
      message_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: MessageResponse;
  };
  /** Listen for an entry node of a flow: `POST /api/triggers`. */
  createTrigger: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: TriggerCreateRequest;
    answer: TriggerResponse;
  };
  /** List triggers: `GET /api/triggers`. */
  listTriggers: {
    path: Record<string, never>;
    query: {
      /** Only those of this flow. */
      plan_id?: string | null;
      /** The `next_cursor` of the page before. */
      cursor?: string | null;
      /** Items on the page, 50 by default; the limit `page_items` is the most. */
      limit?: number | null;
    };
    body: undefined;
    answer: TriggersResponse;
  };
  /** Delete a trigger: `DELETE /api/triggers/{trigger_id}`. */
  deleteTrigger: {
    path: {
      /** A trigger's id. */
      trigger_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Enable a trigger: `POST /api/triggers/{trigger_id}/enable`. */
  enableTrigger: {
    path: {
      /** A trigger's id. */
      trigger_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: TriggerResponse;
  };
  /** Disable a trigger: `POST /api/triggers/{trigger_id}/disable`. */
  disableTrigger: {
    path: {
      /** A trigger's id. */
      trigger_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: TriggerResponse;
  };
  /** Fire a test delivery: `POST /api/triggers/{trigger_id}/fire`. */
  fireTrigger: {
    path: {
      /** A trigger's id. */
      trigger_id: string;
    };
    query: Record<string, never>;
    body: TriggerFireRequest | undefined;
    answer: ExecutionCreated;
  };
  /** List what is notified of executions: `GET /api/notification-targets`. */
  listNotificationTargets: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: TargetsResponse;
  };
  /** List notifications: `GET /api/notifications`. */
  listNotifications: {
    path: Record<string, never>;
    query: {
      /** Only those of this status. */
      status?: "pending" | "delivered" | "dead" | null;
      /** The `next_cursor` of the page before. */
      cursor?: string | null;
      /** Items on the page, 50 by default; the limit `page_items` is the most. */
      limit?: number | null;
    };
    body: undefined;
    answer: NotificationsResponse;
  };
  /** Send a notification again: `POST /api/notifications/{notification_id}/resend`. */
  resendNotification: {
    path: {
      /** A notification's id. */
      notification_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: NotificationResponse;
  };
  /** List providers and models: `GET /api/providers`. */
  listProviders: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: ProvidersResponse;
  };
  /** List MCP servers: `GET /api/mcp-servers`. */
  listMcpServers: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: McpServersResponse;
  };
  /** List node types: `GET /api/node-types`. */
  listNodeTypes: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: NodeTypesResponse;
  };
  /** List tools: `GET /api/tools`. */
  listTools: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: ToolsResponse;
  };
  /** List limits: `GET /api/limits`. */
  listLimits: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: LimitsResponse;
  };
  /** The events of an execution, as they happen: `GET /api/executions/{execution_id}/events`. */
  streamEvents: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: {
      /** The last `seq` already known. */
      after?: number;
      /** Without waiting, as one JSON document: `log`, entries for people; `json`, the next thousand stored events. */
      format?: "events" | "log" | "json";
    };
    body: undefined;
    answer: LogEntriesResponse | StoredEventsResponse | undefined;
  };
  /** Open a browser session: `POST /api/session`. */
  openSession: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: SessionRequest;
    answer: undefined;
  };
  /** Close the browser session: `DELETE /api/session`. */
  closeSession: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** Create a link to a result or a request: `POST /api/executions/{execution_id}/links`. */
  createLink: {
    path: {
      /** An execution's id. */
      execution_id: string;
    };
    query: Record<string, never>;
    body: LinkCreateRequest | undefined;
    answer: LinkCreatedResponse;
  };
  /** List links: `GET /api/links`. */
  listLinks: {
    path: Record<string, never>;
    query: {
      /** Only those to this execution. */
      execution_id?: string | null;
      /** The `next_cursor` of the page before. */
      cursor?: string | null;
      /** Items on the page, 50 by default; the limit `page_items` is the most. */
      limit?: number | null;
    };
    body: undefined;
    answer: LinksResponse;
  };
  /** Revoke a link: `DELETE /api/links/{link_id}`. */
  revokeLink: {
    path: {
      /** A link's id. */
      link_id: string;
    };
    query: Record<string, never>;
    body: undefined;
    answer: undefined;
  };
  /** What was spent by day, flow or model: `GET /api/spend`. */
  getSpend: {
    path: Record<string, never>;
    query: {
      /** What the groups are. */
      by?: "day" | "flow" | "model";
      /** A day, UTC, which is included. */
      since?: string | null;
      /** A day, UTC, which is included. */
      until?: string | null;
    };
    body: undefined;
    answer: SpendResponse;
  };
  /** Whether the service takes work: `GET /readyz`. */
  getReadiness: {
    path: Record<string, never>;
    query: Record<string, never>;
    body: undefined;
    answer: Health;
  };
};

/** The method and the path of each operation. */
export const ADDRESSES = {
  createPlan: ["POST", "/api/plan"],
  listPlans: ["GET", "/api/plans"],
  getPlan: ["GET", "/api/plans/{plan_id}"],
  deletePlan: ["DELETE", "/api/plans/{plan_id}"],
  editPlan: ["PATCH", "/api/plans/{plan_id}"],
  checkGraph: ["POST", "/api/check"],
  refinePlan: ["POST", "/api/plans/{plan_id}/refine"],
  listRevisions: ["GET", "/api/plans/{plan_id}/revisions"],
  getRevision: ["GET", "/api/plans/{plan_id}/revisions/{revision}"],
  diffRevisions: ["GET", "/api/plans/{plan_id}/revisions/{revision}/diff"],
  restoreRevision: ["POST", "/api/plans/{plan_id}/revisions/{revision}/restore"],
  promoteExecution: ["POST", "/api/executions/{execution_id}/promote"],
  approveRevision: ["POST", "/api/plans/{plan_id}/revisions/{revision}/approve"],
  createExecution: ["POST", "/api/execute"],
  startExecution: ["POST", "/api/execute/{execution_id}/start"],
  getExecution: ["GET", "/api/executions/{execution_id}"],
  labelExecution: ["PATCH", "/api/executions/{execution_id}"],
  deleteExecution: ["DELETE", "/api/executions/{execution_id}"],
  getResult: ["GET", "/api/executions/{execution_id}/result"],
  getDocument: ["GET", "/api/executions/{execution_id}/document"],
  getNode: ["GET", "/api/executions/{execution_id}/nodes/{path}"],
  explainNode: ["GET", "/api/executions/{execution_id}/explain/{path}"],
  listExecutions: ["GET", "/api/executions"],
  cancelExecution: ["POST", "/api/executions/{execution_id}/cancel"],
  reviseExecution: ["POST", "/api/executions/{execution_id}/revise"],
  replanExecution: ["POST", "/api/executions/{execution_id}/replan"],
  pauseExecution: ["POST", "/api/executions/{execution_id}/pause"],
  resumeExecution: ["POST", "/api/executions/{execution_id}/resume"],
  listRequests: ["GET", "/api/executions/{execution_id}/requests"],
  listPendingRequests: ["GET", "/api/requests"],
  answerRequest: ["POST", "/api/executions/{execution_id}/requests/{request_id}"],
  retryExecution: ["POST", "/api/executions/{execution_id}/retry"],
  forkExecution: ["POST", "/api/executions/{execution_id}/fork"],
  previewFork: ["POST", "/api/executions/{execution_id}/fork/preview"],
  diffExecutions: ["GET", "/api/executions/{execution_id}/diff/{other_id}"],
  createFlow: ["POST", "/api/flows"],
  getFlow: ["GET", "/api/flows/{plan_id}"],
  updateFlow: ["PUT", "/api/flows/{plan_id}"],
  listInputSets: ["GET", "/api/flows/{plan_id}/input-sets"],
  saveInputSet: ["PUT", "/api/flows/{plan_id}/input-sets/{name}"],
  deleteInputSet: ["DELETE", "/api/flows/{plan_id}/input-sets/{name}"],
  importFile: ["POST", "/api/import"],
  exportGraph: ["POST", "/api/export"],
  createChat: ["POST", "/api/chats"],
  listChats: ["GET", "/api/chats"],
  getChat: ["GET", "/api/chats/{chat_id}"],
  updateChat: ["PATCH", "/api/chats/{chat_id}"],
  deleteChat: ["DELETE", "/api/chats/{chat_id}"],
  sendMessage: ["POST", "/api/chats/{chat_id}/messages"],
  editMessage: ["POST", "/api/chats/{chat_id}/messages/{message_id}/edit"],
  retryMessage: ["POST", "/api/chats/{chat_id}/messages/{message_id}/retry"],
  continueMessage: ["POST", "/api/chats/{chat_id}/messages/{message_id}/continue"],
  cancelMessage: ["POST", "/api/chats/{chat_id}/messages/{message_id}/cancel"],
  createTrigger: ["POST", "/api/triggers"],
  listTriggers: ["GET", "/api/triggers"],
  deleteTrigger: ["DELETE", "/api/triggers/{trigger_id}"],
  enableTrigger: ["POST", "/api/triggers/{trigger_id}/enable"],
  disableTrigger: ["POST", "/api/triggers/{trigger_id}/disable"],
  fireTrigger: ["POST", "/api/triggers/{trigger_id}/fire"],
  listNotificationTargets: ["GET", "/api/notification-targets"],
  listNotifications: ["GET", "/api/notifications"],
  resendNotification: ["POST", "/api/notifications/{notification_id}/resend"],
  listProviders: ["GET", "/api/providers"],
  listMcpServers: ["GET", "/api/mcp-servers"],
  listNodeTypes: ["GET", "/api/node-types"],
  listTools: ["GET", "/api/tools"],
  listLimits: ["GET", "/api/limits"],
  streamEvents: ["GET", "/api/executions/{execution_id}/events"],
  openSession: ["POST", "/api/session"],
  closeSession: ["DELETE", "/api/session"],
  createLink: ["POST", "/api/executions/{execution_id}/links"],
  listLinks: ["GET", "/api/links"],
  revokeLink: ["DELETE", "/api/links/{link_id}"],
  getSpend: ["GET", "/api/spend"],
  getReadiness: ["GET", "/readyz"],
} as const;
