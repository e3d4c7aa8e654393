import type {
  ExecutionStatus,
  GraphChangeDocument,
  GraphDocument,
  LogEntryResponse,
  NodeAnsweredData,
  NodeStatus,
  OpenRequestResponse,
  OptionsDocument,
  ParentDocument,
  PlanRequestResponse,
  PrincipalDocument,
  ReusedFrom,
  UsageResponse,
} from "@/api/types";
import type { ActiveTime } from "@/stream/budget";
import { emptyLedger, type UsageLedger } from "@/stream/usage";

/** The end of a text that is streamed; `offset` and `length` count characters (code points). */
export type StreamedText = {
  /** The last part of the text. */
  readonly tail: string;
  /** Where `tail` begins in the whole text. */
  readonly offset: number;
  readonly length: number;
};

/** What a node did in a part of an attempt; `queued` is the time from ready to started. */
export type SpanKind = "queued" | "working" | "waiting" | "backoff";

export type Span = {
  readonly kind: SpanKind;
  readonly attempt: number;
  /** UTC, ISO 8601. */
  readonly from: string;
  /** Null while it lasts. */
  readonly to: string | null;
};

/** The beginning of a node's main result as text; the whole is loaded on demand. */
export type ResultPreview = {
  readonly text: string;
  readonly isWhole: boolean;
  /** The result is a text, not JSON. */
  readonly isText: boolean;
};

/** Why something failed; `node` of a failure inside. */
export type RunError = {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly node: string | null;
};

/** The failed node that a node is blocked by, and its error. */
export type BlockedBy = { readonly node: string | null; readonly error: RunError };

/** A step of a plan that a node writes. */
export type WrittenStep = { readonly id: string; readonly name: string; readonly type: string };

/** `waiting` for a person's answer; `rejected` by one; `cancelled`: its agent ended before it did. */
export type CallStatus = "waiting" | "running" | "completed" | "failed" | "rejected" | "cancelled";

/** A call that the model of an agent has asked for: of a tool, or of another agent. */
export type ToolCall = {
  /** Unique within the attempt. */
  readonly id: string;
  readonly attempt: number;
  readonly name: string;
  /** `tool`, `mcp`, `http`, `flow` or `agent`. */
  readonly kind: string;
  /** The linked node that gives the tool; empty where there is none. */
  readonly nodeId: string;
  /** The call of the agent around this one, null for a stage of the graph. */
  readonly parentId: string | null;
  /** How many agents are above the one that calls. */
  readonly depth: number;
  readonly status: CallStatus;
  /** Undefined where the service has not said them: the call was not valid. */
  readonly arguments: unknown;
  /** Those of the model, where a person has changed them. */
  readonly requested: unknown;
  readonly result: unknown;
  /** The length of a result that is longer than what is shown of it. */
  readonly wholeChars: number | null;
  /** Its number in the record, which has such a result whole; null in runs of older versions. */
  readonly ordinal: number | null;
  readonly error: RunError | null;
  /** What it says about how far it is. */
  readonly progress: string;
  /** When a person was first asked about it, UTC; null where nobody was. */
  readonly askedAt: string | null;
  /** UTC; null before it was made. */
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** The path prefix of the run inside it, of another agent or of a flow. */
  readonly runPrefix: string | null;
  /** The id of the open question to a person about it. */
  readonly requestId: string | null;
  /** The last answer about it: who decided what; null where nobody has. */
  readonly answered: NodeAnsweredData | null;
};

/** How a completed node got its result. */
export type ResultOrigin = "run" | "given" | "changed" | "reused";

/** One node, nested or not. Inputs, prompt and whole outputs are loaded on demand. */
export type NodeState = {
  /** `loop[2]/summarise` for a nested node. */
  readonly path: string;
  /** The id in its graph. */
  readonly id: string;
  /** The path prefix of the run it is part of, `loop[2]/`; empty in the execution's own graph. */
  readonly prefix: string;
  readonly name: string;
  readonly type: string | null;
  readonly status: NodeStatus;
  readonly wave: number | null;
  /** Number of the newest attempt, 0 before the first. */
  readonly attempt: number;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly durationS: number | null;
  readonly spans: readonly Span[];
  readonly text: StreamedText;
  readonly reasoning: StreamedText;
  readonly result: ResultPreview | null;
  /** The handles that carry a value. */
  readonly handles: readonly string[];
  readonly origin: ResultOrigin;
  readonly reused: ReusedFrom | null;
  /** Of the newest failure, also while it is tried again. */
  readonly error: RunError | null;
  /** When the next attempt begins, UTC; null where it does not wait for one, or that is not known. */
  readonly retryAt: string | null;
  /** The failure was caught by the node's policy. */
  readonly handled: boolean;
  /** Why it was skipped. */
  readonly reason: string | null;
  /** The required input that got no value, for a skipped node. */
  readonly handle: string | null;
  readonly blockedBy: BlockedBy | null;
  /** Why it was cancelled. */
  readonly cause: string | null;
  /** The edge that won `join: any`. */
  readonly via: string | null;
  readonly provider: string | null;
  readonly model: string | null;
  readonly usage: UsageResponse;
  /** The steps so far of the plan that it writes; they run inside it once the plan is whole. */
  readonly written: readonly WrittenStep[];
  /** Whether its attempt has prompted a model. */
  readonly prompted: boolean;
  /** What its attempt has sent to models, as JSON; one that is entered again emits it again. */
  readonly prompts: readonly string[];
  /** The calls of tools and other agents that it has asked for, of all attempts, in their order. */
  readonly calls: readonly ToolCall[];
};

/** A graph that a node runs inside itself. */
export type NestedRun = {
  /** `loop[2]/`: its nodes' paths begin with it. */
  readonly prefix: string;
  /** The node that opened it. */
  readonly parent: string;
  readonly key: string;
  /** The hash of its graph; see `RunState.graphs`. */
  readonly graph: string;
  /** When it was there to be run: a round's turn, or the end of the planning of it. */
  readonly startedAt: string;
};

/** A change of the execution's own graph while it ran or waited. */
export type PlanChange = {
  /** From 1. */
  readonly number: number;
  readonly at: string;
  /** Why it was made; may be empty. */
  readonly note: string;
  readonly revisedBy: PrincipalDocument | null;
  readonly graphChange: GraphChangeDocument;
  /** The graph before it; null until the events have caught up with a snapshot, which has only the newest graph. */
  readonly before: GraphDocument | null;
  /** The steps that it dropped although they had begun, as they were by then. */
  readonly dropped: readonly NodeState[];
};

/** A change of the execution's own graph that was asked for, and not made. */
export type PlanRefusal = { readonly at: string; readonly error: RunError | null };

/** One wave of the execution's own graph. */
export type WaveState = {
  /** From 1. */
  readonly number: number;
  readonly nodes: readonly string[];
  readonly startedAt: string | null;
  readonly endedAt: string | null;
};

/** Whether a value has passed an edge; a `link` passes none. */
export type EdgeState = "pending" | "delivered" | "skipped" | "failed" | "link";

/** A line of the log: those of the service's typed log, with calls in words, what node types write
 * themselves (`log`), and the calls of tools. */
export type LogEntry = {
  readonly seq: number;
  readonly at: string;
  /** A node's path, or `system`. */
  readonly path: string;
  readonly type:
    | LogEntryResponse["type"]
    | "log"
    | "tool_call_start"
    | "tool_call_end"
    | "tool_call_error";
  readonly text: string;
};

export type PauseKind = "waiting" | "requested" | "set-aside";

/** The state of one execution, computed from its events. */
export type RunState = {
  readonly executionId: string;
  readonly status: ExecutionStatus;
  readonly goal: string;
  readonly title: string;
  readonly planId: string | null;
  readonly planHash: string | null;
  readonly revision: number | null;
  /** The name of the flow as which it was started; null for a plan. */
  readonly flow: string | null;
  /** After the last of the changes, as `planHash`. */
  readonly graph: GraphDocument | null;
  /** How its graph was changed while it ran or waited, in order. */
  readonly changes: readonly PlanChange[];
  /** The changes that were asked for and not made, in order. */
  readonly refusals: readonly PlanRefusal[];
  /** The change of its graph that it waits for; null without one. */
  readonly planRequest: PlanRequestResponse | null;
  /** What a model has written of it so far: lines of JSON, see `writtenGraph`; empty where that is not known. */
  readonly writtenChange: StreamedText;
  /** The lowest wave of nodes that had not begun at a change, by id. */
  readonly floors: ReadonlyMap<string, number>;
  readonly options: OptionsDocument | null;
  readonly parent: ParentDocument | null;
  /** Who created it; null where that is not known. */
  readonly createdBy: PrincipalDocument | null;
  /** What it may use, by amount; null where nothing limits it. */
  readonly budget: Readonly<Record<string, number>> | null;
  /** The amounts of it that are nearly used up, as the service says. */
  readonly warned: readonly string[];
  readonly active: ActiveTime;
  /** The time of the last stored event, UTC. */
  readonly lastAt: string | null;
  readonly createdAt: string | null;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** The number of the last event it has. */
  readonly lastSeq: number;
  readonly error: RunError | null;
  /** Why it is paused, and in which way. */
  readonly reason: string | null;
  readonly pause: PauseKind | null;
  /** Why it was cancelled. */
  readonly cause: string | null;
  /** How many times it went on in another process. */
  readonly recoveries: number;
  readonly failures: readonly string[];
  readonly handledFailures: readonly string[];
  readonly waves: readonly WaveState[];
  /** The lowest unfinished wave, the last one when all are finished; 0 without waves. */
  readonly wave: { readonly current: number; readonly total: number };
  /** By path, in graph order, nested nodes last. */
  readonly nodes: ReadonlyMap<string, NodeState>;
  /** By prefix. */
  readonly runs: ReadonlyMap<string, NestedRun>;
  /** The graphs of nested runs, by hash. */
  readonly graphs: ReadonlyMap<string, GraphDocument>;
  /** The open requests, oldest first, by id. */
  readonly requests: ReadonlyMap<string, OpenRequestResponse>;
  /** How each other request was closed: `timeout`, `cancelled`, or by whom it was answered. */
  readonly closedRequests: ReadonlyMap<string, string>;
  readonly usage: UsageResponse;
  readonly ledger: UsageLedger;
  readonly log: readonly LogEntry[];
};

export const NO_TEXT: StreamedText = { tail: "", offset: 0, length: 0 };

export const NO_USAGE: UsageResponse = {
  calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cost_usd: null,
  estimated: false,
};

/** Statuses that never change again within an execution. */
export const ENDED_NODE: ReadonlySet<NodeStatus> = new Set<NodeStatus>([
  "completed",
  "failed",
  "skipped",
  "blocked",
  "cancelled",
  "linked",
  "not_reached",
]);

/** Return the state before the first event. */
export function newRunState(executionId: string): RunState {
  return {
    executionId,
    status: "starting",
    goal: "",
    title: "",
    planId: null,
    planHash: null,
    revision: null,
    flow: null,
    graph: null,
    changes: [],
    refusals: [],
    planRequest: null,
    writtenChange: NO_TEXT,
    floors: new Map(),
    options: null,
    parent: null,
    createdBy: null,
    budget: null,
    warned: [],
    active: { seconds: 0, since: null },
    lastAt: null,
    createdAt: null,
    startedAt: null,
    endedAt: null,
    lastSeq: 0,
    error: null,
    reason: null,
    pause: null,
    cause: null,
    recoveries: 0,
    failures: [],
    handledFailures: [],
    waves: [],
    wave: { current: 0, total: 0 },
    nodes: new Map(),
    runs: new Map(),
    graphs: new Map(),
    requests: new Map(),
    closedRequests: new Map(),
    usage: NO_USAGE,
    ledger: emptyLedger(),
    log: [],
  };
}

/** Return the state of a node that no event has named yet. */
export function newNodeState(path: string): NodeState {
  const prefix = path.slice(0, path.lastIndexOf("/") + 1);
  const id = path.slice(prefix.length);
  return {
    path,
    id,
    prefix,
    name: id,
    type: null,
    status: "pending",
    wave: null,
    attempt: 0,
    startedAt: null,
    endedAt: null,
    durationS: null,
    spans: [],
    text: NO_TEXT,
    reasoning: NO_TEXT,
    result: null,
    handles: [],
    origin: "run",
    reused: null,
    error: null,
    retryAt: null,
    handled: false,
    reason: null,
    handle: null,
    blockedBy: null,
    cause: null,
    via: null,
    provider: null,
    model: null,
    usage: NO_USAGE,
    written: [],
    prompted: false,
    prompts: [],
    calls: [],
  };
}
