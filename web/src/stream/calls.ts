import type { NodeAnsweredEvent, NodeEventEvent, NodeWaitingEvent } from "@/api/types";
import { isObject, numberOf } from "@/json";
import { type Draft, type NodeDraft, splitPath } from "@/stream/draft";
import { fieldOf, toText } from "@/stream/json";
import type { CallStatus, NodeState, RunState, ToolCall } from "@/stream/runState";

const ENDED: ReadonlySet<CallStatus> = new Set<CallStatus>([
  "completed",
  "failed",
  "rejected",
  "cancelled",
]);
const CALL_EVENT = /^(?:tool|subagent)_call_(start|end|error|progress)$/;
const AGENT = "agent";

/** Return whether a call has its result, its error, or will never have one. */
export function isEnded({ status }: ToolCall): boolean {
  return ENDED.has(status);
}

/** Return what the type of an event says of a call; null of other events. */
export function callPhase(type: unknown): "start" | "end" | "error" | "progress" | null {
  const phase = typeof type === "string" ? CALL_EVENT.exec(type)?.[1] : undefined;
  return (phase as "start" | undefined) ?? null;
}

/** Change the call that an event is about. */
export function callEmitted(draft: Draft, event: NodeEventEvent): void {
  const phase = callPhase(event.data.event_type);
  const { data } = event.data;
  if (phase === null || !isObject(data) || typeof data.call_id !== "string") return;
  const node = draft.node(event.path);
  const call = callOf(node, data.call_id, event.attempt);
  // An attempt that is entered again tells the ends of its recorded calls once more.
  if (call !== undefined && isEnded(call)) return;
  if (phase === "progress") {
    if (call !== undefined) put(node, { ...call, progress: progressWords(data) });
    return;
  }
  const known = { ...(call ?? newCall(node, data.call_id, event.attempt)), ...factsOf(data) };
  if (phase === "start") put(node, started(known, data, event));
  else put(node, ended(known, data, event.at));
}

/** A question about a call has come: the call waits for its answer. */
export function callAsked(draft: Draft, { path, data, at }: NodeWaitingEvent): void {
  const tool = fieldOf(data.request, "tool");
  const id = fieldOf(tool, "call_id");
  const agent = agentPath(path);
  if (typeof id !== "string" || agent === null) return;
  const node = draft.node(agent);
  const call = callOf(node, id, undefined) ?? newCall(node, id, undefined);
  put(node, {
    ...call,
    name: toText(fieldOf(tool, "name")) || call.name,
    kind: toText(fieldOf(tool, "kind")) || call.kind,
    arguments: call.arguments ?? fieldOf(data.request, "value"),
    status: "waiting",
    requestId: data.request_id,
    askedAt: call.askedAt ?? at,
  });
}

/** The question about a call was answered: the call goes on, or is rejected. */
export function callAnswered(draft: Draft, { path, data }: NodeAnsweredEvent): void {
  const agent = agentPath(path);
  if (agent === null) return;
  const node = draft.node(agent);
  const call = node.calls.find((each) => each.requestId === data.request_id);
  if (call === undefined) return;
  const isRejected = fieldOf(data.answer, "decision") === "reject";
  put(node, {
    ...call,
    status: isRejected ? "waiting" : "running",
    requestId: null,
    answered: data,
  });
}

/** An attempt has ended: its calls that have not are over. */
export function closeCalls(node: NodeDraft, at: string): void {
  if (node.calls.every(isEnded)) return;
  node.calls = node.calls.map((call) =>
    isEnded(call) ? call : { ...call, status: "cancelled", endedAt: at, requestId: null },
  );
}

/** Return the path of the agent that asks about a call, given the path of the question. */
export function agentPath(path: string): string | null {
  const { prefix } = splitPath(path);
  return prefix === "" ? null : prefix.slice(0, prefix.lastIndexOf("["));
}

/** Return the node on which a request is shown: the agent, where it is about a call. */
export function askingPath(path: string, request: unknown): string {
  const isOfCall = typeof fieldOf(fieldOf(request, "tool"), "call_id") === "string";
  return isOfCall ? (agentPath(path) ?? path) : path;
}

/** Return whether a node is a question about a call, which the card of its agent shows. */
export function isQuestion(node: Pick<NodeState, "type">): boolean {
  return node.type === "tool_approval";
}

export type LinkedCall = { readonly caller: NodeState; readonly call: ToolCall };

/** Return the calls that agents have made of a linked node, by start. */
export function callsOfLinked(run: RunState, { id, prefix }: NodeState): LinkedCall[] {
  const found: LinkedCall[] = [];
  for (const caller of run.nodes.values()) {
    for (const call of caller.calls) {
      if (call.nodeId === id && linkPrefix(run, caller.prefix) === prefix) {
        found.push({ caller, call });
      }
    }
  }
  return found.sort((a, b) => (timeOf(a.call) < timeOf(b.call) ? -1 : 1));
}

/** Return the prefix of the graph whose links a node uses: agents that are called use those around. */
function linkPrefix(run: RunState, prefix: string): string {
  let at = prefix;
  for (let agent = agentPath(at); agent !== null; agent = agentPath(at)) {
    const calls = run.nodes.get(agent)?.calls ?? [];
    if (!calls.some((call) => call.runPrefix === at && call.kind === AGENT)) break;
    at = splitPath(agent).prefix;
  }
  return at;
}

/** Return the path of the agent that calls in the run of its call, where it gives the task; else null. */
export function callerInside(run: RunState, prefix: string): string | null {
  const agent = agentPath(prefix);
  const calls = (agent !== null && run.nodes.get(agent)?.calls) || [];
  const isCall = calls.some((call) => call.runPrefix === prefix && call.kind === AGENT);
  return agent !== null && isCall ? prefix + splitPath(agent).id : null;
}

function timeOf(call: ToolCall): string {
  return call.startedAt ?? call.askedAt ?? call.endedAt ?? "";
}

function callOf(node: NodeDraft, id: string, attempt: number | undefined): ToolCall | undefined {
  const number = attempt ?? node.attempt;
  return node.calls.find((call) => call.id === id && call.attempt === number);
}

function put(node: NodeDraft, call: ToolCall): void {
  const at = node.calls.findIndex(({ id, attempt }) => id === call.id && attempt === call.attempt);
  node.calls = at < 0 ? [...node.calls, call] : node.calls.with(at, call);
}

function newCall(node: NodeDraft, id: string, attempt: number | undefined): ToolCall {
  return {
    id,
    attempt: attempt ?? node.attempt,
    name: "",
    kind: "tool",
    nodeId: "",
    parentId: null,
    depth: 0,
    status: "running",
    arguments: undefined,
    requested: undefined,
    result: undefined,
    wholeChars: null,
    ordinal: null,
    error: null,
    progress: "",
    askedAt: null,
    startedAt: null,
    endedAt: null,
    runPrefix: null,
    requestId: null,
    answered: null,
  };
}

function factsOf(data: Record<string, unknown>) {
  return {
    name: toText(data.name),
    kind: toText(data.kind) || "tool",
    nodeId: toText(data.node_id),
    parentId: toText(data.parent_call_id) || null,
    depth: typeof data.depth === "number" ? data.depth : 0,
  };
}

function started(call: ToolCall, data: Record<string, unknown>, event: NodeEventEvent): ToolCall {
  return {
    ...call,
    status: "running",
    requestId: null,
    arguments: data.arguments,
    requested: data.requested_arguments,
    startedAt: event.at,
    runPrefix: data.run_key ? `${event.path}[${toText(data.run_key)}]/` : null,
  };
}

function ended(call: ToolCall, data: Record<string, unknown>, at: string): ToolCall {
  const over = { ...call, endedAt: at, requestId: null };
  if (!isObject(data.error)) {
    const wholeChars = data.truncated ? numberOf(data.chars) : null;
    return {
      ...over,
      status: "completed",
      result: data.result,
      wholeChars,
      ordinal: numberOf(data.ordinal),
    };
  }
  const code = toText(data.error.code);
  const message = toText(data.error.message) || code;
  return {
    ...over,
    status: code === "rejected" ? "rejected" : "failed",
    error: { code, message, hint: null, node: null },
  };
}

/** "3 of 10, reading the pages" */
function progressWords({ progress, total, message }: Record<string, unknown>): string {
  const count = numberOf(progress) === null ? "" : String(progress);
  const amount = count && numberOf(total) !== null ? `${count} of ${total}` : count;
  return [amount, toText(message)].filter(Boolean).join(", ");
}
