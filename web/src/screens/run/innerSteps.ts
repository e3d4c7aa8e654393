import type { NodeStatus } from "@/api/types";
import { callerInside, isQuestion } from "@/stream/calls";
import type { NestedRun, NodeState, RunState } from "@/stream/runState";
import { linkedNodes } from "@/stream/waves";
import { formatAmount, formatDuration } from "@/ui/format";
import type { Folds } from "./folding";
import { durationOf, isWorking } from "./stepSummary";

/** A step or a round inside a step. */
export type InnerRow = {
  /** Of a step `loop[2]/sum`, of a round `loop[2]/`. */
  path: string;
  name: string;
  status: NodeStatus;
  duration: string;
  /** Nesting, 0 for what is right inside. */
  depth: number;
  /** Whether the step has a state that can be looked at. */
  isKnown: boolean;
  /** Undefined where nothing is inside. */
  isOpen?: boolean;
};

const byParent = new WeakMap<RunState["runs"], Map<string, NestedRun[]>>();

/** Returns the graphs that a step has run inside itself, in their order; questions about calls are none. */
export function runsInside(run: RunState, path: string): readonly NestedRun[] {
  let groups = byParent.get(run.runs);
  if (!groups) {
    groups = new Map();
    for (const nested of run.runs.values()) {
      if (isAboutCall(run, nested)) continue;
      const group = groups.get(nested.parent);
      if (group) group.push(nested);
      else groups.set(nested.parent, [nested]);
    }
    byParent.set(run.runs, groups);
  }
  return groups.get(path) ?? [];
}

function isAboutCall(run: RunState, { graph }: NestedRun): boolean {
  const nodes = run.graphs.get(graph)?.nodes ?? [];
  return nodes.length > 0 && nodes.every(isQuestion);
}

/** Returns how much is inside a step: "3 rounds", "5 steps"; "" where there is nothing. */
export function amountInside(run: RunState, path: string): string {
  const nested = runsInside(run, path);
  if (isOfCalls(run, path)) {
    const steps = nested.reduce((sum, each) => sum + stepsOf(run, each).length, 0);
    return steps > 0 ? formatAmount(steps, "step") : "";
  }
  if (isInRounds(nested)) return formatAmount(nested.length, "round");
  const [only] = nested;
  const count = only ? stepsOf(run, only).length : (run.nodes.get(path)?.written.length ?? 0);
  return count > 0 ? formatAmount(count, "step") : "";
}

/** Returns whether a step shows what is inside it. A step that plans does so by itself. */
export function isUnfolded(run: RunState, path: string, folds: Folds): boolean {
  const chosen = folds.get(path);
  if (chosen !== undefined) return chosen && amountInside(run, path) !== "";
  const node = run.nodes.get(path);
  return node?.type === "planner" && node.origin === "run" && !NEVER_RAN.has(node.status);
}

const NEVER_RAN: ReadonlySet<NodeStatus> = new Set<NodeStatus>([
  "skipped",
  "blocked",
  "linked",
  "not_reached",
]);

/** Returns what is inside a step: its steps, by round where it has several. `now` is in ms. */
export function innerRows(run: RunState, path: string, folds: Folds, now: number): InnerRow[] {
  return rowsInside({ run, folds, now }, path, 0);
}

type Reading = { run: RunState; folds: Folds; now: number };

function rowsInside(reading: Reading, path: string, depth: number): InnerRow[] {
  const { run, folds } = reading;
  const nested = runsInside(run, path);
  const [first] = nested;
  if (!first) {
    const written = run.nodes.get(path)?.written ?? [];
    return written.map(({ id, name }) => ({ ...unknownRow(name, depth), path: `${path}/${id}` }));
  }
  if (isOfCalls(run, path)) return nested.flatMap((each) => stepRows(reading, each, depth));
  if (!isInRounds(nested)) return stepRows(reading, first, depth);
  return nested.flatMap((round, index) => {
    const isOpen = folds.get(round.prefix) ?? index === nested.length - 1;
    const row = { ...roundRow(reading, round), depth, isOpen };
    return isOpen ? [row, ...stepRows(reading, round, depth + 1)] : [row];
  });
}

function stepRows(reading: Reading, nested: NestedRun, depth: number): InnerRow[] {
  const { run, folds, now } = reading;
  return stepsOf(run, nested).flatMap(({ path, name }) => {
    const node = run.nodes.get(path);
    if (!node) return [{ ...unknownRow(name, depth), path }];
    const row = {
      path,
      name: node.name,
      status: node.status,
      duration: durationOf(node, now),
      depth,
      isKnown: true,
    };
    if (amountInside(run, path) === "") return [row];
    const isOpen = folds.get(path) ?? false;
    return [{ ...row, isOpen }, ...(isOpen ? rowsInside(reading, path, depth + 1) : [])];
  });
}

function unknownRow(name: string, depth: number) {
  return { name, status: "pending" as const, duration: "", depth, isKnown: false };
}

/** The steps of a nested run: those of its graph where it is known, else those that have a state. */
function stepsOf(run: RunState, { prefix, graph }: NestedRun): { path: string; name: string }[] {
  const document = run.graphs.get(graph);
  if (!document) return nodesOf(run, prefix);
  const linked = linkedNodes(document);
  return document.nodes
    .filter(({ id }) => !linked.has(id) || run.nodes.has(prefix + id))
    .filter(({ id }) => prefix + id !== callerInside(run, prefix))
    .map(({ id, name }) => ({ path: prefix + id, name: name || id }));
}

/** Whether what is inside a step belongs to its calls: other agents, flows. */
function isOfCalls(run: RunState, path: string): boolean {
  return run.nodes.get(path)?.calls.some((call) => call.runPrefix !== null) ?? false;
}

function nodesOf(run: RunState, prefix: string): NodeState[] {
  return [...run.nodes.values()].filter((node) => node.prefix === prefix);
}

/** A loop numbers its rounds; a sub-graph or a plan is run once, under a name. */
function isInRounds(nested: readonly NestedRun[]): boolean {
  return nested.length > 1 || nested.some(({ key }) => /^\d+$/.test(key));
}

function roundRow({ run, now }: Reading, round: NestedRun) {
  const { prefix, key } = round;
  const nodes = stepsOf(run, round).flatMap(({ path }) => run.nodes.get(path) ?? []);
  const starts = nodes.flatMap((node) => node.startedAt ?? []).sort();
  const ends = nodes.map((node) => (node.startedAt && !node.endedAt ? null : node.endedAt));
  const end = ends.includes(null) ? now : Date.parse(ends.sort().at(-1) ?? "");
  const seconds = (end - Date.parse(starts[0] ?? "")) / 1000;
  return {
    path: prefix,
    name: /^\d+$/.test(key) ? `Round ${Number(key) + 1}` : key,
    status: roundStatus(nodes),
    duration: Number.isNaN(seconds) ? "" : formatDuration(seconds),
    isKnown: false,
  };
}

function roundStatus(nodes: readonly NodeState[]): NodeStatus {
  const has = (status: NodeStatus) => nodes.some((node) => node.status === status);
  if (nodes.some(isWorking)) return "running";
  if (has("waiting")) return "waiting";
  if (nodes.some((node) => node.status === "failed" && !node.handled)) return "failed";
  if (has("cancelled")) return "cancelled";
  return nodes.length > 0 && nodes.every((node) => node.endedAt) ? "completed" : "pending";
}

/** At the zoom at which a canvas opens, it is 24 px high (WCAG 2.5.8). */
const ROW_HEIGHT = 32;
const MOST_ROWS = 6;
/** What a plan being written gets from the start, so that nothing moves while it grows. */
const ROWS_OF_PLANNER = 5;

/** Returns the height of what is inside a step, in pixels; 0 where it is folded. */
export function innerHeight(run: RunState, path: string, folds: Folds): number {
  if (!isUnfolded(run, path, folds)) return 0;
  const isPlanner = run.nodes.get(path)?.type === "planner";
  const rows = isPlanner ? ROWS_OF_PLANNER : innerRows(run, path, folds, 0).length;
  return Math.min(Math.max(rows, 1), MOST_ROWS) * ROW_HEIGHT;
}
