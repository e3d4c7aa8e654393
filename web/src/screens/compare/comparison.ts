import { isEnded, secondsOf, tokensOf } from "@/api/executionSummary";
import type {
  DifferenceResponse,
  DocumentNode,
  DocumentResponse,
  GraphDocument,
  NodeDifference,
  NodeStatus,
} from "@/api/types";
import type { Change } from "@/canvas/ChangeMark";
import { numberOf } from "@/json";
import { costWords, tookWords } from "@/screens/runs/runWords";
import { wavesOf } from "@/stream/waves";
import { formatCount, formatDuration } from "@/ui/format";

/** Both sides of something: of A, then of B. */
export type Pair<T> = readonly [T, T];

export type Trend = "less" | "more" | "same" | "none";

/** A number of both runs in words; `trend` says how that of B is against that of A. */
export interface Fact {
  label: string;
  words: Pair<string>;
  trend: Trend;
}

/** Seconds and tokens that differ by less are the same. */
const SAME_SECONDS = 0.05;

/** Returns whether B is less or more; `none` if one side has no number. */
export function trendOf([a, b]: Pair<number | null>, tolerance = 0): Trend {
  if (a === null || b === null) return "none";
  if (Math.abs(a - b) <= tolerance) return "same";
  return b < a ? "less" : "more";
}

/** Returns the numbers of two runs, beside each other; `now` is in ms. */
export function factsOf(runs: Pair<DocumentResponse>, now: number): Fact[] {
  const both = <T>(value: (run: DocumentResponse) => T): Pair<T> => [
    value(runs[0]),
    value(runs[1]),
  ];
  const took = both((run) => secondsOf(run, now));
  const tokens = both(({ usage }) => tokensOf(usage));
  const costs = both(({ usage }) => numberOf(usage.cost_usd) ?? (usage.calls === 0 ? 0 : null));
  const calls = both(({ usage }) => usage.calls);
  return [
    {
      label: "Took",
      words: both((run) => durationWords(run, now)),
      trend: trendOf(took, SAME_SECONDS),
    },
    { label: "Tokens", words: inWords(tokens, formatCount), trend: trendOf(tokens) },
    { label: "Cost", words: both(({ usage }) => costWords(usage)), trend: trendOf(costs) },
    { label: "Calls", words: inWords(calls, formatCount), trend: trendOf(calls) },
  ];
}

function inWords<T>([a, b]: Pair<T>, format: (value: T) => string): Pair<string> {
  return [format(a), format(b)];
}

function durationWords(run: DocumentResponse, now: number): string {
  const seconds = secondsOf(run, now);
  return seconds === null ? "not started" : tookWords(seconds, isEnded(run));
}

/** "Same plan, same goal" */
export function relationOf([a, b]: Pair<DocumentResponse>): string {
  const goal = a.user_prompt === b.user_prompt ? "same goal" : "other goals";
  if (a.plan_hash !== null && a.plan_hash === b.plan_hash) return `Same plan, ${goal}`;
  if (a.plan_id !== null && a.plan_id === b.plan_id) return `Same plan, changed, ${goal}`;
  return `Other plans, ${goal}`;
}

/** One step of both runs. */
export interface StepPair {
  path: string;
  name: string;
  nodes: Pair<DocumentNode | undefined>;
  change: Change;
  /** What differs, in words, where both runs have it: "settings (userPrompt)", "output". */
  differs: readonly string[];
}

/** Returns the steps that ran in either run, those of A first; nested nodes are left out. */
export function stepsOf(
  runs: Pair<DocumentResponse>,
  difference: DifferenceResponse,
): readonly StepPair[] {
  return nodesOf(runs, difference).filter(({ nodes }) =>
    nodes.some((node) => node && node.status !== "linked"),
  );
}

/** Returns the nodes of both graphs, those that others only use included. */
export function nodesOf(
  [a, b]: Pair<DocumentResponse>,
  difference: DifferenceResponse,
): readonly StepPair[] {
  const differences = new Map(difference.nodes.map((each) => [each.path, each]));
  const sides = [nodesByPath(a), nodesByPath(b)] as const;
  return [...new Set([...sides[0].keys(), ...sides[1].keys()])].map((path) => {
    const nodes = [sides[0].get(path), sides[1].get(path)] as const;
    const found = differences.get(path);
    return {
      path,
      name: nodes[0]?.name || nodes[1]?.name || path,
      nodes,
      change: found?.change ?? changeOf(nodes),
      differs: found?.change === "changed" ? differingParts(found) : [],
    };
  });
}

/** The facts of a step beyond the first 200 that differ. */
function changeOf([a, b]: StepPair["nodes"]): Change {
  if (!a) return "only_b";
  if (!b) return "only_a";
  return a.status === b.status && a.result === b.result && a.error === b.error ? "same" : "changed";
}

const FIELD_WORDS: Record<string, string> = {
  data: "settings",
  description: "task",
  policy: "retries and timeouts",
};

/** "settings (userPrompt)" for the field `data.userPrompt` of a step. */
function fieldWords(field: string): string {
  const [head = field, ...inside] = field.split(".");
  const words = FIELD_WORDS[head] ?? head;
  return inside.length > 0 ? `${words} (${inside.join(".")})` : words;
}

function differingParts({ written, status, error, outputs }: NodeDifference): string[] {
  return [
    ...(written ?? []).map(fieldWords),
    ...(status[0] === status[1] ? [] : ["status"]),
    ...(error ? ["error"] : []),
    ...(outputs ? ["output"] : []),
  ];
}

function nodesByPath(run: DocumentResponse): Map<string, DocumentNode> {
  return new Map(
    run.nodes.filter(({ path }) => !path.includes("/")).map((node) => [node.path, node]),
  );
}

/** How long a step took in each run; null where it has not run, or its result was reused. */
export function secondsOfStep({ nodes }: StepPair): Pair<number | null> {
  return [secondsOfNode(nodes[0]), secondsOfNode(nodes[1])];
}

function secondsOfNode(node: DocumentNode | undefined): number | null {
  return node && !node.reused ? numberOf(node.execution_time) : null;
}

/** "4.1 s", "reused"; "" where there is no time. */
export function timeWords(node: DocumentNode): string {
  if (node.reused) return "reused";
  return node.execution_time === null ? "" : formatDuration(node.execution_time);
}

/** "4.4 s less", "same", "only in A" */
export function againstWords(step: StepPair): { words: string; trend: Trend } {
  if (!step.nodes[1]) return { words: "only in A", trend: "none" };
  if (!step.nodes[0]) return { words: "only in B", trend: "none" };
  const [a, b] = secondsOfStep(step);
  const trend = trendOf([a, b], SAME_SECONDS);
  if (a === null || b === null) return { words: "", trend };
  if (trend === "same") return { words: "same", trend };
  return { words: `${formatDuration(Math.abs(a - b))} ${trend}`, trend };
}

/** "5 of 6" steps that differ. */
export function changedWords(steps: readonly StepPair[]): string {
  const changed = steps.filter(({ change }) => change !== "same").length;
  return `${formatCount(changed)} of ${formatCount(steps.length)}`;
}

/** Returns the step that is looked at first: the last one that differs, as it has the result. */
export function firstChosen(steps: readonly StepPair[]): StepPair | undefined {
  return steps.findLast(({ change }) => change === "changed") ?? steps.at(-1);
}

/** Returns the statuses of the steps of each wave, for the wave glyph. */
export function glyphOf(run: DocumentResponse): NodeStatus[][] {
  if (run.graph === null) return [];
  const statuses = new Map(run.nodes.map(({ path, status }) => [path, status]));
  const waves = wavesOf(run.graph as unknown as GraphDocument);
  return waves.map((ids) => ids.map((id) => statuses.get(id) ?? "pending"));
}

/** What a step gave, or why it gave nothing. */
export function outputOf(node: DocumentNode | undefined): string {
  return node?.result ?? node?.error ?? "";
}
