import { describe, expect, test } from "vitest";
import type { ExecutionEvent } from "@/api/types";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { newRunState, type RunState } from "@/stream/runState";
import { edgeId, edgeStatus } from "./edgeStatus";
import { innerRows } from "./innerSteps";
import { countStatuses, statusesByWave, statusWords, summariseWave } from "./runSummary";
import { reasonOf, summariseStep } from "./stepSummary";
import { timelineRows } from "./timelineRows";

const RUNS = goldenRuns();
const NOW = Date.UTC(2026, 0, 1, 1);

const fold = (events: readonly ExecutionEvent[]): RunState =>
  applyEvents(newRunState(events[0]?.execution_id ?? ""), events);

function recorded(name: string): RunState {
  const run = RUNS.find((each) => each.name.startsWith(name));
  if (!run) throw new Error(`no recorded run ${name}`);
  return fold(run.events);
}

describe.each(RUNS.map((run) => [run.name, run] as const))("%s", (_, { events }) => {
  test("every state on the way can be shown", () => {
    for (let end = 1; end <= events.length; end += 1) {
      const run = fold(events.slice(0, end));
      const own = [...run.nodes.values()].filter((node) => node.prefix === "");
      const counted = countStatuses(run).reduce((sum, each) => sum + each.count, 0);
      const unseen = own.filter((node) => ["linked", "not_reached"].includes(node.status)).length;
      expect(counted).toBe(own.length - unseen);
      for (const node of own) summariseStep(node, reasonOf(node, run), NOW);
      for (const node of own) innerRows(run, node.path, new Map(), NOW);
      const rows = timelineRows(run, new Map(), NOW);
      expect(new Set(rows.map((row) => row.path)).size).toBe(rows.length);
      for (const bar of rows.flatMap((row) => row.bars))
        expect(bar.to).toBeGreaterThanOrEqual(bar.from);
      expect(statusesByWave(run)).toHaveLength(run.waves.length);
    }
  });

  test("every wave of a run that has ended says what became of it", () => {
    const run = fold(events);
    if (run.endedAt === null) return;
    const words = run.waves.map((wave) => summariseWave(wave, run, NOW).words);
    expect(words.filter((each) => each === "" || each.includes("step"))).toEqual([]);
  });

  test("every flow edge has settled with its run, unless the run was cut off", () => {
    const run = fold(events);
    if (run.status !== "completed") return;
    const open = (run.graph?.edges ?? [])
      .map((edge, index) => edgeStatus(run, edgeId(edge, index)))
      .filter((status) => status === "waiting" || status === "live");
    expect(open).toEqual([]);
  });
});

test("the branch that was not taken is skipped", () => {
  const run = recorded("branches");
  const statuses = (run.graph?.edges ?? []).map((edge, index) =>
    edgeStatus(run, edgeId(edge, index)),
  );
  expect(new Set(statuses)).toEqual(new Set(["delivered", "skipped"]));
});

test("a run that waits for a person says so", () => {
  const { events } = RUNS.find((each) => each.name.startsWith("approvals")) ?? { events: [] };
  const waiting = events.findIndex((event) => event.type === "execution.paused");
  expect(statusWords(fold(events.slice(0, waiting + 1)))).toBe("Waiting for you");
});

test("a failed step says its error, and what it blocks names it", () => {
  const run = recorded("failure_goes_on");
  const nodes = [...run.nodes.values()];
  const failed = nodes.find((node) => node.status === "failed");
  const blocked = nodes.find((node) => node.status === "blocked");
  expect(failed && reasonOf(failed, run)).toBe(failed?.error?.message);
  expect(blocked && reasonOf(blocked, run)).toBe(`${failed?.name} failed`);
});

test("the timeline says how long a step has waited, and draws nothing for a result that was reused", () => {
  const rowOf = (run: RunState, path: string) =>
    timelineRows(run, new Map(), NOW).find((row) => row.path === path);
  const { events } = RUNS.find((each) => each.name.startsWith("approvals")) ?? { events: [] };
  const waiting = fold(
    events.slice(
      0,
      events.findIndex(({ type }) => type === "execution.paused"),
    ),
  );
  expect(rowOf(waiting, "ask")?.bars.map(({ kind, status }) => [kind, status])).toEqual([
    ["queue", "pending"],
    ["work", "completed"],
    ["wait", "waiting"],
  ]);
  expect(rowOf(fold(events), "ask")?.label).toBe("waited 3.0 s");
  const reusing = RUNS.map((run) => fold(run.events)).find((run) =>
    [...run.nodes.values()].some(({ origin }) => origin === "reused"),
  );
  const reused = [...(reusing?.nodes.values() ?? [])].find(({ origin }) => origin === "reused");
  expect(reusing && reused && rowOf(reusing, reused.path)?.bars).toEqual([]);
});
