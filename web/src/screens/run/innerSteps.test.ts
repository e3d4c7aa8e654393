import { expect, test } from "vitest";
import type { ExecutionEvent } from "@/api/types";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { newRunState, type RunState } from "@/stream/runState";
import { amountInside, innerHeight, innerRows, isUnfolded } from "./innerSteps";

const NOW = Date.UTC(2026, 0, 1, 1);
const NOTHING_FOLDED = new Map<string, boolean>();

const fold = (events: readonly ExecutionEvent[]): RunState => applyEvents(newRunState("x"), events);

function recorded(name: string): RunState {
  return fold(goldenRuns().find((run) => run.name === `${name}.json 1`)?.events ?? []);
}

function shown(run: RunState, path: string, folds = NOTHING_FOLDED): string[] {
  return innerRows(run, path, folds, NOW).map(
    (row) => `${" ".repeat(row.depth)}${row.name}, ${row.status}`,
  );
}

test("a loop shows its rounds, and the steps of the last one", () => {
  const run = recorded("loop");
  expect(amountInside(run, "l")).toBe("3 rounds");
  expect(shown(run, "l")).toEqual([
    "Round 1, completed",
    "Round 2, completed",
    "Round 3, completed",
    " s, completed",
    " t, completed",
  ]);
});

test("rounds fold and unfold by path", () => {
  const folds = new Map([
    ["l[0]/", true],
    ["l[2]/", false],
  ]);
  expect(shown(recorded("loop"), "l", folds)).toEqual([
    "Round 1, completed",
    " s, completed",
    " t, completed",
    "Round 2, completed",
    "Round 3, completed",
  ]);
});

test("a sub-graph shows its steps, those too that have not started", () => {
  const { events } = goldenRuns().find(({ name }) => name === "inner.json 1") ?? { events: [] };
  const opened = events.findIndex(({ type }) => type === "node.event");
  const run = fold(events.slice(0, opened + 1));
  expect(shown(run, "in")).toEqual(["i, pending", "j, pending"]);
  expect(amountInside(run, "in")).toBe("2 steps");
  expect(shown(recorded("inner"), "in")).toEqual(["i, completed", "j, completed"]);
});

test("a step is unfolded by hand, and only if something is inside", () => {
  const run = recorded("loop");
  expect(isUnfolded(run, "l", NOTHING_FOLDED)).toBe(false);
  expect(innerHeight(run, "l", NOTHING_FOLDED)).toBe(0);
  expect(isUnfolded(run, "l", new Map([["l", true]]))).toBe(true);
  expect(isUnfolded(run, "l[0]/t", new Map([["l[0]/t", true]]))).toBe(false);
});

const PLANNER = { nodes: [{ id: "p", type: "planner", data: {} }], edges: [] };

function planning(...steps: object[]): RunState {
  const events = [
    { type: "execution.created", data: { graph: PLANNER, waves: 1 } },
    { type: "node.started", path: "p", attempt: 1, data: {} },
    ...steps.map((data) => ({
      type: "node.event",
      path: "p",
      data: { event_type: "planning", data },
    })),
  ];
  return fold(
    events.map((event, index) => ({
      execution_id: "x",
      seq: index + 1,
      at: "2026-01-01T00:00:00Z",
      ...event,
    })) as unknown as ExecutionEvent[],
  );
}

const DIG = { kind: "node", id: "dig", name: "Dig" };

test("a plan appears inside its step while it is written, and nothing moves", () => {
  const steps = [planning(), planning(DIG), planning(DIG, { kind: "node", id: "sow" })];
  expect(steps.map((run) => shown(run, "p"))).toEqual([
    [],
    ["Dig, pending"],
    ["Dig, pending", "sow, pending"],
  ]);
  expect(new Set(steps.map((run) => innerHeight(run, "p", NOTHING_FOLDED))).size).toBe(1);
});

test("a plan that is written again begins anew", () => {
  const again = { kind: "node", id: "sow", name: "Sow" };
  expect(shown(planning(DIG, { kind: "repair", attempt: 2 }, again), "p")).toEqual([
    "Sow, pending",
  ]);
});

test("an agent shows the agents that it calls, and neither itself nor questions about its calls", () => {
  const run = recorded("agents");
  expect(amountInside(run, "lead")).toBe("1 step");
  expect(shown(run, "lead")).toEqual(["Clerk, completed"]);
});
