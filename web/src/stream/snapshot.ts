import type { NodeSnapshot, SnapshotMessage } from "@/api/types";
import { numberOf } from "@/json";
import { limitsOf } from "@/stream/budget";
import { runError, splitPath } from "@/stream/draft";
import { indexOfGraph } from "@/stream/graphIndex";
import { toText } from "@/stream/json";
import { blockedBy, preview } from "@/stream/nodeEvents";
import { changeOfSnapshot } from "@/stream/planChanges";
import {
  type NodeState,
  newNodeState,
  newRunState,
  type RunState,
  type Span,
  type WaveState,
} from "@/stream/runState";
import { wholeText } from "@/stream/streamedText";
import { wavesOf } from "@/stream/waves";

/**
 * Return the state that a snapshot shows. It has neither the log, nor the recoveries, nor the graphs of nested runs, and
 * of each node's past only start and end: those are in the events.
 */
export function stateOfSnapshot(message: SnapshotMessage): RunState {
  const nodes = message.nodes.map((node) => nodeOf(node, message));
  const waves = wavesAt(message, nodes);
  const numbers = new Map(waves.flatMap((wave) => wave.nodes.map((id) => [id, wave.number])));
  const placed = nodes.map((node) => ({
    ...node,
    wave: node.wave ?? numbers.get(node.path) ?? null,
  }));
  return {
    ...newRunState(message.execution_id),
    status: message.status,
    goal: message.goal,
    title: message.title,
    planId: message.plan_id,
    planHash: message.plan_hash,
    revision: message.revision,
    flow: message.flow,
    graph: message.graph,
    changes: (message.changes ?? []).map((each) =>
      changeOfSnapshot(each, (node) => nodeOf(node, message)),
    ),
    refusals: (message.refused_changes ?? []).map(({ at, error }) => ({
      at,
      error: runError(error),
    })),
    planRequest: message.plan_request ?? null,
    floors: floorsOf(message),
    options: message.options,
    parent: message.parent,
    createdBy: message.created_by,
    budget: limitsOf(message.budget?.limits),
    warned: message.budget?.warned ?? [],
    active: { seconds: numberOf(message.budget?.used.wall_s) ?? 0, since: null },
    createdAt: message.created_at,
    startedAt: message.started_at,
    endedAt: message.completed_at,
    lastSeq: message.last_seq,
    error: runError(message.error),
    reason: message.reason,
    pause: pauseOf(message),
    cause: toText(message.cause) || null,
    failures: message.failures,
    handledFailures: message.handled_failures,
    waves,
    wave: message.waves,
    nodes: new Map(placed.map((node) => [node.path, node])),
    requests: new Map(message.requests.map((request) => [request.request_id, request])),
    usage: message.usage,
  };
}

function nodeOf(node: NodeSnapshot, { graph }: SnapshotMessage): NodeState {
  const fresh = newNodeState(node.path);
  const isOwn = splitPath(node.path).prefix === "";
  const document = graph && isOwn ? indexOfGraph(graph).nodes.get(node.path) : undefined;
  const outputs = node.outputs ?? {};
  return {
    ...fresh,
    name: document?.name || node.name || fresh.name,
    type: document?.type ?? null,
    status: node.status,
    wave: node.wave,
    attempt: node.attempts,
    startedAt: node.started_at,
    endedAt: node.completed_at,
    durationS: numberOf(node.duration_s),
    spans: spansOf(node),
    text: wholeText(node.text),
    reasoning: wholeText(node.reasoning),
    result: node.outputs === null ? null : preview(outputs),
    handles: Object.keys(outputs),
    origin: node.reused === null ? "run" : "reused",
    reused: node.reused,
    error: runError(node.error),
    handled: node.handled,
    reason: node.reason,
    handle: node.handle,
    blockedBy: node.status === "blocked" ? blockedBy(node.cause) : null,
    cause: node.status === "cancelled" ? toText(node.cause) || null : null,
    via: node.via,
    provider: typeof node.provider === "string" ? node.provider : null,
    model: typeof node.model === "string" ? node.model : null,
    usage: node.usage,
    prompted: node.prompt !== null,
    prompts: node.prompt === null ? [] : [toText(node.prompt)],
  };
}

function spansOf({ attempts, started_at: from, completed_at: to, status }: NodeSnapshot): Span[] {
  if (from === null) return [];
  return [{ kind: status === "waiting" ? "waiting" : "working", attempt: attempts, from, to }];
}

/** Return the waves; a snapshot says how far they are, and their nodes say when they were run. */
function wavesAt(message: SnapshotMessage, nodes: readonly NodeState[]): WaveState[] {
  const byPath = new Map(nodes.map((node) => [node.path, node]));
  const planned = message.graph === null ? [] : wavesOf(message.graph, planOf(message));
  return Array.from({ length: message.waves.total }, (_, index) => {
    const ids = planned[index] ?? [];
    const times = ids.map((id) => byPath.get(id));
    const started = times.flatMap((node) => node?.startedAt ?? []).sort();
    const ended = times.flatMap((node) => node?.endedAt ?? []).sort();
    const isOver = message.status === "completed" || index + 1 < message.waves.current;
    return {
      number: index + 1,
      nodes: ids,
      startedAt: started[0] ?? null,
      endedAt: isOver ? (ended.at(-1) ?? null) : null,
    };
  });
}

function planOf(message: SnapshotMessage) {
  const withStatus = (status: string) =>
    message.nodes.filter((node) => node.status === status).map((node) => node.path);
  return {
    linked: withStatus("linked"),
    notReached: withStatus("not_reached"),
    floors: floorsOf(message),
  };
}

/** Return the lowest waves of the nodes of a changed graph: of those that have begun it is their own, and those that
 * have not come in no wave that is over. */
function floorsOf({ changes, nodes, waves }: SnapshotMessage): ReadonlyMap<string, number> {
  if (!changes?.length) return new Map();
  return new Map(
    nodes.flatMap(({ path, status, wave }) => {
      const floor = wave ?? (status === "pending" ? waves.current : null);
      return floor === null ? [] : [[path, floor] as const];
    }),
  );
}

/** A snapshot has only the sentence; one that waits has requests. */
function pauseOf({ status, reason, requests }: SnapshotMessage): RunState["pause"] {
  if (status !== "paused") return null;
  if (reason === "paused by request") return "requested";
  return requests.length > 0 ? "waiting" : "set-aside";
}
