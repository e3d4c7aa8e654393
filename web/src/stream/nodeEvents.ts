import type {
  BlockedCause,
  NodeAnsweredEvent,
  NodeBlockedEvent,
  NodeCancelledEvent,
  NodeCompletedEvent,
  NodeDeltaEvent,
  NodeEventEvent,
  NodeFailedEvent,
  NodeParkedEvent,
  NodeRetryingEvent,
  NodeSkippedEvent,
  NodeStartedEvent,
  NodeStatus,
  NodeUnparkedEvent,
  NodeWaitingEvent,
  UsageEvent,
} from "@/api/types";
import { isObject, numberOf } from "@/json";
import { callAnswered, callAsked, callEmitted, closeCalls } from "@/stream/calls";
import {
  beginAttempt,
  closeSpan,
  type Draft,
  discardText,
  graphAt,
  type NodeDraft,
  openSpan,
  runError,
} from "@/stream/draft";
import { indexOfGraph, isFlow } from "@/stream/graphIndex";
import { fieldOf, toText } from "@/stream/json";
import { resultValue } from "@/stream/log";
import {
  type BlockedBy,
  ENDED_NODE,
  type NodeState,
  type ResultPreview,
  type RunState,
} from "@/stream/runState";
import { putText, wholeText } from "@/stream/streamedText";
import { addUsage, enterAttempt, leaveAttempt, recordUsage } from "@/stream/usage";

/** Characters of a result that the state keeps. */
const KEPT_RESULT = 4_000;

type Outputs = Record<string, { type: string; value: unknown }>;
type OutcomeEvent =
  | NodeCompletedEvent
  | NodeFailedEvent
  | NodeSkippedEvent
  | NodeBlockedEvent
  | NodeCancelledEvent;

export function nodeStarted(draft: Draft, event: NodeStartedEvent): void {
  const { data, path } = event;
  const node = draft.begun(path);
  const isFirst = node.startedAt === null && node.spans.length === 0;
  node.status = "running";
  if (data.name) node.name = data.name;
  beginAttempt(node, event.attempt);
  node.error = null;
  node.retryAt = null;
  node.startedAt ??= event.at;
  node.wave = data.wave ?? node.wave;
  node.via = data.via ?? node.via;
  if (isFirst) {
    const ready = readyAt(draft.state, node);
    if (ready !== null && ready < event.at) openSpan(node, "queued", ready);
  }
  openSpan(node, "working", event.at);
  draft.state.ledger = enterAttempt(draft.state.ledger, path, event.attempt ?? null, !data.reentry);
}

/** Return the earliest start of a node: the end of its dependencies, or the start of its run. */
function readyAt(state: RunState, node: NodeState): string | null {
  const graph = graphAt(state, node.prefix);
  const edges = graph ? (indexOfGraph(graph).incoming.get(node.id) ?? []) : [];
  const nested = state.runs.get(node.prefix);
  let ready = nested ? nested.startedAt : openSince(state, node);
  for (const edge of edges) {
    if (!isFlow(edge) || (node.via !== null && edge.id !== node.via)) continue;
    const ended = state.nodes.get(node.prefix + edge.source)?.endedAt ?? null;
    if (ended !== null && (ready === null || ended > ready)) ready = ended;
  }
  return ready;
}

/** Return since when a node of the execution's own graph could run: one that had not begun at a change is as new. */
function openSince({ startedAt, floors, changes }: RunState, { path }: NodeState): string | null {
  return (floors.has(path) ? changes.at(-1)?.at : undefined) ?? startedAt;
}

export function nodeCompleted(draft: Draft, event: NodeCompletedEvent): void {
  const { data, path } = event;
  if (data.reused) draft.begun(path);
  const node = end(draft, event, "completed");
  if (data.reused) {
    const { execution_id, failed_inside = false } = data.reused;
    node.reused = { execution_id, path, failed_inside };
    node.origin = "reused";
  } else if (data.given || data.changed) {
    node.origin = data.given ? "given" : "changed";
  }
  node.wave = data.wave ?? node.wave;
  setOutputs(node, data.outputs ?? {});
  node.error = null;
}

export function nodeFailed(draft: Draft, event: NodeFailedEvent): void {
  const node = end(draft, event, "failed");
  node.error = runError(event.data.error);
  node.handled = Boolean(event.data.handled);
  if (event.data.outputs && Object.keys(event.data.outputs).length > 0) {
    setOutputs(node, event.data.outputs);
  }
}

export function nodeSkipped(draft: Draft, event: NodeSkippedEvent): void {
  const node = end(draft, event, "skipped");
  node.reason = event.data.reason ?? null;
  node.handle = event.data.handle ?? null;
}

export function nodeBlocked(draft: Draft, event: NodeBlockedEvent): void {
  end(draft, event, "blocked").blockedBy = blockedBy(event.data.cause);
}

export function nodeCancelled(draft: Draft, event: NodeCancelledEvent): void {
  end(draft, event, "cancelled").cause = toText(event.data.cause) || null;
}

export function nodeRetrying(draft: Draft, event: NodeRetryingEvent): void {
  const node = draft.node(event.path);
  node.status = "retrying";
  node.error = runError(event.data.error);
  restoreText(node, event.data.streamed);
  const delayS = numberOf(event.data.delay_s) ?? 0;
  node.retryAt = new Date(Date.parse(event.at) + 1000 * delayS).toISOString();
  openSpan(node, "backoff", event.at);
  closeCalls(node, event.at);
  draft.state.ledger = leaveAttempt(draft.state.ledger, event.path);
}

export function nodeWaiting(draft: Draft, event: NodeWaitingEvent): void {
  const { data, path, at } = event;
  const node = draft.node(path);
  node.status = "waiting";
  node.durationS = numberOf(data.duration_s) ?? node.durationS;
  openSpan(node, "waiting", at);
  draft.map("requests").set(data.request_id, {
    request_id: data.request_id,
    path,
    request: data.request ?? null,
    since: at,
    timeout_s: data.timeout_s ?? null,
  });
  callAsked(draft, event);
  // An interrupted attempt begins again, so it may repeat its calls.
  if (!data.interrupted) draft.state.ledger = leaveAttempt(draft.state.ledger, path);
}

export function nodeAnswered(draft: Draft, event: NodeAnsweredEvent): void {
  const { data, path, at } = event;
  const node = draft.node(path);
  closeRequest(draft, data.request_id, data.by || "answered");
  callAnswered(draft, event);
  const isOpen = [...draft.state.requests.values()].some((request) => request.path === path);
  if (node.status !== "waiting" || isOpen) return;
  node.status = "running";
  openSpan(node, "working", at);
}

export function nodeParked(draft: Draft, event: NodeParkedEvent): void {
  const node = draft.node(event.path);
  node.status = "waiting";
  node.durationS = numberOf(event.data.duration_s) ?? node.durationS;
  openSpan(node, "waiting", event.at);
}

export function nodeUnparked(draft: Draft, event: NodeUnparkedEvent): void {
  const node = draft.node(event.path);
  node.status = "running";
  openSpan(node, "working", event.at);
  draft.state.ledger = enterAttempt(draft.state.ledger, event.path, event.attempt ?? null, false);
}

export function nodeEmitted(draft: Draft, event: NodeEventEvent): void {
  const { event_type: type, data } = event.data;
  if (type === "prompt") {
    const node = draft.node(event.path);
    node.prompted = true;
    node.prompts = [...new Set([...node.prompts, toText(data)])];
  }
  if (type === "text_discarded") discardText(draft.node(event.path));
  callEmitted(draft, event);
  if (type === "planning" && isObject(data)) planGrew(draft.node(event.path), data);
  if (type !== "run_graph" || !isObject(data) || typeof data.graph !== "string") return;
  const prefix = `${event.path}[${data.key}]/`;
  const startedAt = draft.state.runs.get(prefix)?.startedAt ?? event.at;
  const run = { prefix, parent: event.path, key: String(data.key), graph: data.graph, startedAt };
  draft.map("runs").set(prefix, run);
  if (data.document) draft.map("graphs").set(data.graph, data.document as never);
}

/** A step more of the plan that a node writes; after a `repair` the model writes it again. */
function planGrew(node: NodeDraft, { kind, ...step }: Record<string, unknown>): void {
  if (kind === "repair") node.written = [];
  const id = toText(step.id);
  if (kind !== "node" || !id) return;
  const [name, type] = [toText(step.name) || id, toText(step.type) || "agent"];
  node.written = [...node.written, { id, name, type }];
}

/** The kind of a delta of the execution itself, with a change of its plan as it is written. */
const WRITTEN = "plan";

export function nodeDelta(draft: Draft, event: NodeDeltaEvent): void {
  const { kind, offset, text } = event.data;
  if (event.path === undefined) {
    const { state } = draft;
    if (kind !== WRITTEN || state.planRequest === null) return;
    state.writtenChange = putText(state.writtenChange, offset, text);
    return;
  }
  if (kind !== "text" && kind !== "reasoning") return;
  const known = draft.state.nodes.get(event.path);
  const newest = known?.attempt ?? 0;
  const attempt = event.attempt || newest;
  if (attempt < newest || (known && ENDED_NODE.has(known.status))) return;
  const node = draft.node(event.path);
  if (attempt > newest) beginAttempt(node, attempt);
  node[kind] = putText(node[kind], offset, text);
}

export function usage(draft: Draft, event: UsageEvent): void {
  const { state } = draft;
  const path = event.path ?? null;
  const { ledger, isPaid } = recordUsage(state.ledger, path, event.attempt ?? null, event.data);
  state.ledger = ledger;
  if (isPaid) state.usage = addUsage(state.usage, event.data);
  if (path === null) return;
  const node = draft.node(path);
  if (isPaid) node.usage = addUsage(node.usage, event.data);
  const { provider, model } = event.data;
  if (typeof provider === "string" && provider) node.provider = provider;
  if (typeof model === "string" && model) node.model = model;
}

/** Close an open request and record by whom. */
export function closeRequest(draft: Draft, requestId: string, by: string): void {
  if (draft.map("requests").delete(requestId)) draft.map("closedRequests").set(requestId, by);
}

/** Return the beginning of a result. */
export function preview(outputs: Outputs): ResultPreview {
  const text = toText(resultValue(outputs));
  return {
    text: text.slice(0, KEPT_RESULT),
    isWhole: text.length <= KEPT_RESULT,
    isText: typeof resultValue(outputs) === "string",
  };
}

/** Return the failure that blocked a node. */
export function blockedBy(cause: unknown): BlockedBy | null {
  if (!isBlockedCause(cause)) return null;
  const error = runError(cause.error);
  return error && { node: cause.node ?? null, error };
}

function isBlockedCause(cause: unknown): cause is BlockedCause {
  return isObject(fieldOf(cause, "error"));
}

/** Take what an attempt that did not complete had streamed, in place of the pieces of it. */
function restoreText(node: NodeDraft, streamed: Outputs | undefined) {
  if (!streamed) return;
  node.text = wholeText(toText(streamed.text?.value));
  node.reasoning = wholeText(toText(streamed.reasoning?.value));
}

function end(draft: Draft, event: OutcomeEvent, status: NodeStatus) {
  const node = draft.node(event.path);
  node.status = status;
  node.endedAt = event.at;
  if (event.attempt !== undefined) node.attempt = event.attempt;
  if ("duration_s" in event.data) node.durationS = numberOf(event.data.duration_s);
  if ("streamed" in event.data) restoreText(node, event.data.streamed);
  closeSpan(node, event.at);
  closeCalls(node, event.at);
  if (status === "completed" || status === "failed" || status === "cancelled") {
    draft.state.ledger = leaveAttempt(draft.state.ledger, event.path);
  }
  for (const request of draft.state.requests.values()) {
    if (request.path === event.path) closeRequest(draft, request.request_id, "cancelled");
  }
  return node;
}

function setOutputs(
  node: { handles: readonly string[]; result: ResultPreview | null },
  outputs: Outputs,
) {
  node.handles = Object.keys(outputs);
  node.result = preview(outputs);
}
