import type {
  ExecutionCancelledEvent,
  ExecutionCompletedEvent,
  ExecutionCreatedEvent,
  ExecutionEvent,
  ExecutionFailedEvent,
  ExecutionPausedEvent,
  ExecutionResumedEvent,
  ExecutionStartedEvent,
  ExecutionStatus,
  ExecutionWarnedEvent,
  PlanRevisedEvent,
  WaveCompletedEvent,
  WaveStartedEvent,
} from "@/api/types";
import { BUDGET, limitsOf, raised, raisedNames, startTime, stopTime } from "@/stream/budget";
import { closeSpan, Draft, runError } from "@/stream/draft";
import { fieldOf, toText } from "@/stream/json";
import { logEntry, pauseKind } from "@/stream/log";
import * as node from "@/stream/nodeEvents";
import { changePlan } from "@/stream/planChanges";
import { NO_TEXT, type NodeState, type RunState, type WaveState } from "@/stream/runState";
import { resumeExecution } from "@/stream/usage";
import { type WaveOptions, wavesOf } from "@/stream/waves";

/**
 * Return the state after some events. Events that the state has already change nothing, and so do
 * those after a gap: they come again, after the cursor `lastSeq`. Events of unknown types only move
 * the cursor.
 */
export function applyEvents(state: RunState, events: readonly ExecutionEvent[]): RunState {
  const draft = new Draft(state);
  let changes = 0;
  for (const event of events) {
    if (event.seq !== 0) {
      if (event.seq !== draft.state.lastSeq + 1) continue;
      draft.state.lastSeq = event.seq;
      const entry = logEntry(draft.state, event);
      if (entry !== null) draft.addLogEntry(entry);
    }
    const handle = HANDLERS[event.type] as ((draft: Draft, event: unknown) => void) | undefined;
    handle?.(draft, event);
    if (event.seq !== 0) draft.state.lastAt = event.at;
    changes += 1;
  }
  return changes === 0 ? state : draft.state;
}

function resumed(draft: Draft, { at, data }: ExecutionResumedEvent): void {
  const { active, lastAt } = draft.state;
  draft.state.active = startTime(stopTime(active, lastAt ?? at), at);
  draft.state.ledger = resumeExecution(draft.state.ledger, data.epoch);
  draft.state.status = "executing";
  draft.state.reason = draft.state.pause = null;
  if (data.reason === "recovery") recovered(draft, lastAt ?? at);
  if (data.request_id === undefined) return;
  const { state } = draft;
  const asked = state.requests.get(data.request_id)?.request;
  if (fieldOf(asked, "kind") === BUDGET) {
    state.budget = raised(state.budget, data.answer);
    const names = new Set(raisedNames(data.answer));
    state.warned = state.warned.filter((name) => !names.has(name));
  }
  const by = data.answer === undefined ? "cancelled" : "answered";
  node.closeRequest(draft, data.request_id, by);
}

/** Another process goes on: nothing has worked since the last event of the one before. */
function recovered(draft: Draft, lastAt: string): void {
  draft.state.recoveries += 1;
  for (const { path, spans } of [...draft.state.nodes.values()]) {
    const last = spans.at(-1);
    if (last?.kind === "working" && last.to === null) closeSpan(draft.node(path), lastAt);
  }
}

function warned({ state }: Draft, { data }: ExecutionWarnedEvent): void {
  const names = data.amounts ?? [];
  state.warned = [...state.warned, ...names.filter((name) => !state.warned.includes(name))];
}

function completed(draft: Draft, { at, data }: ExecutionCompletedEvent): void {
  draft.state.handledFailures = data.handled_failures ?? [];
  ended(draft, "completed", at);
}

function failed(draft: Draft, { at, data }: ExecutionFailedEvent): void {
  draft.state.error = runError(data.error);
  draft.state.failures = data.failures ?? [];
  ended(draft, "failed", at);
}

function cancelled(draft: Draft, { at, data }: ExecutionCancelledEvent): void {
  draft.state.cause = toText(data.cause) || null;
  ended(draft, "cancelled", at);
}

function created(draft: Draft, { at, data, execution_id }: ExecutionCreatedEvent): void {
  const { state } = draft;
  state.executionId = execution_id;
  state.createdAt = at;
  state.goal = data.goal ?? "";
  state.title = data.title ?? "";
  state.planId = data.plan_id ?? null;
  state.planHash = data.plan_hash ?? null;
  state.revision = data.revision ?? null;
  state.flow = data.flow ?? null;
  state.graph = data.graph ?? null;
  state.options = data.options ?? null;
  state.parent = data.parent ?? null;
  state.createdBy = data.created_by ?? null;
  state.budget = limitsOf(data.options?.budget);
  for (const { id } of state.graph?.nodes ?? []) draft.node(id);
  planWaves(draft, data.waves ?? 0);
}

function started(draft: Draft, { at, data }: ExecutionStartedEvent): void {
  const { state } = draft;
  state.status = "executing";
  state.startedAt ??= at;
  state.active = startTime(state.active, at);
  setShape(draft, data);
}

type Shape = { waves?: number; linked?: string[]; not_reached?: string[] };

/** Set which nodes do not run, and the waves of the others. */
function setShape(draft: Draft, { waves, linked, not_reached }: Shape): void {
  for (const id of linked ?? []) draft.node(id).status = "linked";
  for (const id of not_reached ?? []) draft.node(id).status = "not_reached";
  planWaves(draft, waves ?? 0, planOf(draft.state));
}

function closePlanRequest({ state }: Draft): void {
  state.planRequest = null;
  state.writtenChange = NO_TEXT;
}

function planRevised(draft: Draft, event: PlanRevisedEvent): void {
  closePlanRequest(draft);
  changePlan(draft, event);
  setShape(draft, event.data);
}

/** Return which nodes are in no wave, and the lowest waves of others. */
function planOf({ nodes, floors }: RunState): WaveOptions {
  const pathsOf = (chosen: (node: NodeState) => boolean) =>
    [...nodes.values()].filter(chosen).map((node) => node.path);
  return {
    linked: pathsOf((node) => node.status === "linked"),
    notReached: pathsOf((node) => node.status === "not_reached"),
    floors,
  };
}

function paused(draft: Draft, { at, data }: ExecutionPausedEvent): void {
  draft.state.status = "paused";
  draft.state.active = stopTime(draft.state.active, at);
  draft.state.reason = data.reason ?? null;
  draft.state.pause = pauseKind(data);
  if (data.request_id === undefined) return;
  // The execution itself asks: for approval of its plan, or for a higher budget.
  draft.map("requests").set(data.request_id, {
    request_id: data.request_id,
    path: null,
    request: data.request ?? null,
    since: at,
    timeout_s: null,
  });
}

function ended(draft: Draft, status: ExecutionStatus, at: string): void {
  const { state } = draft;
  state.status = status;
  state.endedAt = at;
  state.active = stopTime(state.active, at);
  state.reason = state.pause = null;
  closePlanRequest(draft);
  for (const requestId of state.requests.keys()) node.closeRequest(draft, requestId, "ended");
  state.wave = currentWave(state);
}

/** Set the waves that a run will have, before any of them starts. */
function planWaves(draft: Draft, total: number, options: WaveOptions = {}): void {
  const { state } = draft;
  const planned = state.graph === null ? [] : wavesOf(state.graph, options);
  state.waves = Array.from({ length: total }, (_, index) => ({
    startedAt: null,
    endedAt: null,
    ...state.waves[index],
    number: index + 1,
    nodes: planned[index] ?? [],
  }));
  planned.forEach((ids, index) => {
    for (const id of ids) draft.node(id).wave = index + 1;
  });
  state.wave = currentWave({ ...state, wave: { current: 0, total } });
}

function waveChanged(draft: Draft, event: WaveStartedEvent | WaveCompletedEvent): void {
  const { state } = draft;
  if (event.path !== undefined) return; // of a nested run
  if (state.waves.every((wave) => wave.startedAt === null)) {
    planWaves(draft, state.wave.total, planOf(state));
  }
  const index = event.data.wave - 1;
  const known: WaveState = state.waves[index] ?? {
    number: index + 1,
    nodes: (event.type === "wave.started" && event.data.nodes) || [],
    startedAt: null,
    endedAt: null,
  };
  const changed =
    event.type === "wave.started"
      ? { ...known, startedAt: event.at }
      : { ...known, endedAt: event.at };
  const waves = [...state.waves];
  waves[index] = changed;
  state.waves = waves;
  state.wave = currentWave(state);
}

/** Return the lowest unfinished wave; a wave in which no node ran is passed over. */
function currentWave({ status, wave, waves }: RunState): RunState["wave"] {
  const { total } = wave;
  if (status === "completed") return { current: total, total };
  const lastBegun = waves.findLastIndex((each) => each.startedAt !== null) + 1;
  let current = 1;
  while (waves[current - 1]?.endedAt || (current < lastBegun && !waves[current - 1]?.startedAt)) {
    current += 1;
  }
  return { current: Math.min(current, total), total };
}

type Handlers = {
  [Type in ExecutionEvent["type"]]: (
    draft: Draft,
    event: Extract<ExecutionEvent, { type: Type }>,
  ) => void;
};

const HANDLERS: Handlers = {
  "execution.created": created,
  "execution.started": started,
  "execution.paused": paused,
  "execution.resumed": resumed,
  "execution.warned": warned,
  "execution.completed": completed,
  "execution.failed": failed,
  "execution.cancelled": cancelled,
  "plan.requested": (draft, { at, data }) => {
    draft.state.planRequest = { at, ...data };
    draft.state.writtenChange = NO_TEXT;
  },
  "plan.revised": planRevised,
  "plan.refused": (draft, { at, data }) => {
    closePlanRequest(draft);
    draft.state.refusals = [...draft.state.refusals, { at, error: runError(data.error) }];
  },
  "wave.started": waveChanged,
  "wave.completed": waveChanged,
  "node.started": node.nodeStarted,
  "node.completed": node.nodeCompleted,
  "node.failed": node.nodeFailed,
  "node.retrying": node.nodeRetrying,
  "node.skipped": node.nodeSkipped,
  "node.blocked": node.nodeBlocked,
  "node.cancelled": node.nodeCancelled,
  "node.waiting": node.nodeWaiting,
  "node.answered": node.nodeAnswered,
  "node.parked": node.nodeParked,
  "node.unparked": node.nodeUnparked,
  "node.log": () => {}, // only in the log
  "node.event": node.nodeEmitted,
  "node.delta": node.nodeDelta,
  usage: node.usage,
};
