import { callerInside, isQuestion } from "@/stream/calls";
import type { NodeState, RunState, Span as StateSpan } from "@/stream/runState";
import { formatAmount, formatClock, formatDuration } from "@/ui/format";
import { type CallRow, callRows } from "./callRows";
import { criticalPath } from "./criticalPath";
import type { Folds } from "./folding";
import { type EarlierTimes, forecastSpans, NO_TIMES } from "./forecast";
import { changeTitle, refusalTitle } from "./planMoments";
import { durationOf } from "./stepSummary";
import type { Bar, ChangeMark, TimelineRow } from "./Timeline";
import type { Span } from "./timeScale";

/** Returns the rows of the timeline: steps by their start, nested ones below their parent.
 *
 * Steps below a folded one are left out. `earlier` gives the forecast of steps that have not started;
 * `now` is in ms. */
export function timelineRows(
  run: RunState,
  folds: Folds,
  now: number,
  earlier: EarlierTimes = NO_TIMES,
): TimelineRow[] {
  const zero = startOf(run, now);
  const critical = longestPath(run, now);
  const expected = forecastSpans(run, earlier, zero, now);
  const children = nestedBelow(run);
  const rows: TimelineRow[] = [];
  const add = (node: NodeState, depth: number) => {
    const nested = children.get(node.path) ?? [];
    const calls = callRows(run, node, depth + 1, { zero, now });
    const inside = below(calls, nested);
    const ahead = expected.get(node.path);
    rows.push({
      path: node.path,
      name: `${node.name}${roundLabel(node)}`,
      status: node.status,
      depth,
      ...(inside.length > 0 && { isFolded: folds.get(node.path) === false }),
      bars: [...barsOf(node, zero, now), ...(ahead ? [forecastBar(ahead)] : [])],
      label: ahead ? `about ${formatDuration(ahead.to - ahead.from)}` : labelOf(node, now),
      isCritical: critical.has(node.path),
    });
    if (folds.get(node.path) === false) return;
    for (const inner of inside) {
      if ("row" in inner) rows.push(inner.row);
      else add(inner.step, depth + inner.deeper);
    }
  };
  const top = [...run.nodes.values()].filter((node) => node.prefix === "" && hasTime(node));
  for (const node of byStart(top)) add(node, 0);
  return rows;
}

function startOf({ startedAt, createdAt }: RunState, now: number): number {
  return Date.parse(startedAt ?? createdAt ?? new Date(now).toISOString());
}

/** Returns when the plan of a run was changed, and when it was to be and was not, in the order of time. */
export function changeMarks(run: RunState): ChangeMark[] {
  const marks = [
    ...run.changes.map((change) => ({ ...change, title: changeTitle(change) })),
    ...run.refusals.map((refusal) => ({
      ...refusal,
      number: null,
      title: refusalTitle(refusal),
    })),
  ].map(({ number, at, title }) => ({ number, title, time: Date.parse(at) }));
  marks.sort((a, b) => a.time - b.time);
  return marks.map(({ number, title, time }) => ({
    number,
    at: Math.max(0, (time - startOf(run, time)) / 1000),
    title,
  }));
}

/** Returns the time in ms: `now` may be a second old, and a step has ended since. */
export function presentOf(run: RunState, now: number): number {
  let present = now;
  for (const { endedAt } of run.nodes.values()) {
    if (endedAt) present = Math.max(present, Date.parse(endedAt));
  }
  return present;
}

function hasTime(node: NodeState): boolean {
  return node.spans.length > 0 || node.status === "pending";
}

function byStart(nodes: readonly NodeState[]): NodeState[] {
  const key = (node: NodeState) => node.startedAt ?? "9999";
  return [...nodes].sort((a, b) => (key(a) < key(b) ? -1 : Number(key(a) > key(b))));
}

type Below = { row: TimelineRow } | { step: NodeState; deeper: number };

/** What is below a step: its calls, each with the steps that ran inside it, then all other steps. */
function below(calls: readonly CallRow[], nested: readonly NodeState[]): Below[] {
  const ofCalls = new Set(calls.map((call) => call.runPrefix));
  const others = nested.filter((child) => !ofCalls.has(child.prefix));
  return [
    ...calls.flatMap(({ row, runPrefix, isOfAgent }): Below[] => {
      const steps = byStart(nested.filter((child) => child.prefix === runPrefix));
      // An agent that is called stands for its call.
      if (isOfAgent && steps.length > 0) return steps.map((step) => ({ step, deeper: 1 }));
      return [{ row }, ...steps.map((step) => ({ step, deeper: 2 }))];
    }),
    ...byRound(others).map((step) => ({ step, deeper: 1 })),
  ];
}

/** Steps of the same round stand together. */
function byRound(nodes: readonly NodeState[]): NodeState[] {
  return byStart(nodes).sort((a, b) => roundOf(a) - roundOf(b));
}

function nestedBelow(run: RunState): Map<string, NodeState[]> {
  const children = new Map<string, NodeState[]>();
  for (const node of run.nodes.values()) {
    const parent = run.runs.get(node.prefix)?.parent;
    if (parent === undefined || isQuestion(node)) continue;
    if (node.path === callerInside(run, node.prefix)) continue;
    const group = children.get(parent);
    if (group) group.push(node);
    else children.set(parent, [node]);
  }
  return children;
}

/** Returns 2 of a step in `loop[2]/`, -1 where there are no rounds. */
function roundOf({ prefix }: NodeState): number {
  return Number(prefix.match(/\[(\d+)\]\/$/)?.[1] ?? -1);
}

/** Returns " 3" of a step in `loop[2]/`: people count from 1. */
function roundLabel(node: NodeState): string {
  const round = roundOf(node);
  return round < 0 ? "" : ` ${round + 1}`;
}

const KINDS = { queued: "queue", working: "work", waiting: "wait", backoff: "queue" } as const;

/** A result that is reused or given took no time. */
function barsOf(node: NodeState, zero: number, now: number): Bar[] {
  if (node.origin !== "run") return [];
  const last = node.spans.at(-1);
  return node.spans.map((span) => {
    const isLast = span === last;
    return {
      kind: KINDS[span.kind],
      status: barStatus(node, span, isLast),
      from: Math.max(0, (Date.parse(span.from) - zero) / 1000),
      to: Math.max(0, ((span.to ? Date.parse(span.to) : now) - zero) / 1000),
      ...(span.to === null && { isOpen: true }),
    };
  });
}

function forecastBar(span: Span): Bar {
  return { kind: "forecast", status: "pending", ...span };
}

/** An attempt that another one follows has failed; work that a person's answer follows has not. */
function barStatus(node: NodeState, span: StateSpan, isLast: boolean) {
  if (span.kind === "working" && span.attempt < node.attempt) return "failed";
  if (span.kind === "working" && node.status === "waiting") return "completed";
  return isLast || span.kind === "working" ? node.status : "pending";
}

/** How long it took, or how long it waited if that was longer. */
function labelOf(node: NodeState, now: number): string {
  const waited = secondsWaited(node);
  const isWait = node.endedAt !== null && waited > Math.max(1, node.durationS ?? 0);
  const duration = isWait ? `waited ${formatDuration(waited)}` : durationOf(node, now);
  if (node.status === "waiting") {
    const since = node.spans.at(-1)?.from;
    return since ? `waits ${formatClock((now - Date.parse(since)) / 1000)}` : "waits";
  }
  if (!duration) return "";
  return node.attempt > 1 ? `${formatAmount(node.attempt, "attempt")}, ${duration}` : duration;
}

/** How long a step has waited for a person or for a time, which its duration leaves out. */
function secondsWaited({ spans }: NodeState): number {
  return spans
    .filter(({ kind, to }) => kind === "waiting" && to !== null)
    .reduce((sum, { from, to }) => sum + (Date.parse(to ?? from) - Date.parse(from)) / 1000, 0);
}

function longestPath(run: RunState, now: number): Set<string> {
  const timed = [...run.nodes.values()].flatMap(({ path, prefix, startedAt, endedAt }) =>
    prefix === "" && startedAt
      ? [
          {
            id: path,
            startedAt: Date.parse(startedAt),
            endedAt: endedAt ? Date.parse(endedAt) : now,
          },
        ]
      : [],
  );
  const flow = (run.graph?.edges ?? []).filter((edge) => edge.data.channel === "flow");
  return criticalPath(timed, flow);
}
