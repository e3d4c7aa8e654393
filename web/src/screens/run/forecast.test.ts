import { expect, test } from "vitest";
import type { GraphDocument, NodeDifference, NodeStatus } from "@/api/types";
import { type NodeState, newNodeState, newRunState, type RunState } from "@/stream/runState";
import { earlierTimes, forecastSpans } from "./forecast";
import { presentOf, timelineRows } from "./timelineRows";

const NOW = Date.UTC(2026, 0, 1, 0, 0, 10);
const at = (seconds: number) => new Date(NOW - 10_000 + seconds * 1000).toISOString();

const step = (id: string, fields: Partial<NodeState>): NodeState => ({
  ...newNodeState(id),
  type: "agent",
  ...fields,
});
const DONE = { status: "completed", startedAt: at(0), endedAt: at(4) } as const;
const RUNNING = { status: "running", startedAt: at(4) } as const;

function runOf(nodes: NodeState[], wires: string[]): RunState {
  const edges = wires.map((wire) => {
    const [source = "", target = ""] = wire.split(">");
    return { id: wire, source, target, data: { channel: "flow" } };
  });
  const graph = { nodes: nodes.map(({ id }) => ({ id, type: "agent" })), edges };
  return {
    ...newRunState("e"),
    status: "executing",
    startedAt: at(0),
    graph: graph as unknown as GraphDocument,
    nodes: new Map(nodes.map((node) => [node.id, node])),
  };
}

const forecast = (run: RunState, times: Record<string, number>) =>
  Object.fromEntries(forecastSpans(run, new Map(Object.entries(times)), Date.parse(at(0)), NOW));

const ALL = { first: 1, second: 9, third: 12, last: 5 };

const diamond = (second: Partial<NodeState>) =>
  runOf(
    [step("first", DONE), step("second", second), step("third", RUNNING), step("last", {})],
    ["first>second", "first>third", "second>last", "third>last"],
  );

test("a step is expected when the last one before it ends, for as long as it took before", () => {
  expect(forecast(diamond(RUNNING), ALL)).toEqual({ last: { from: 16, to: 21 } });
});

test("a step that takes longer than before ends now at the earliest", () => {
  const times = { first: 1, second: 2, third: 3, last: 5 };
  expect(forecast(diamond(RUNNING), times)).toEqual({ last: { from: 10, to: 15 } });
});

test.each([
  ["of a step before it nothing is known", RUNNING, { third: 12, last: 5 }],
  ["of the step itself nothing is known", RUNNING, { second: 9, third: 12 }],
  ["a step before it waits for a person", { status: "waiting", startedAt: at(4) } as const, ALL],
  ["a person is asked before it", { type: "approval" }, ALL],
])("there is no forecast where %s", (_, second, times) => {
  expect(forecast(diamond(second), times)).not.toHaveProperty("last");
});

test("a run that does not go on has no forecast", () => {
  expect(forecast({ ...diamond(RUNNING), status: "paused" }, ALL)).toEqual({});
});

test("the forecast is a bar of its own with its length in words", () => {
  const rows = timelineRows(diamond(RUNNING), new Map(), NOW, new Map(Object.entries(ALL)));
  const last = rows.find(({ path }) => path === "last");
  expect(last?.bars).toEqual([{ kind: "forecast", status: "pending", from: 16, to: 21 }]);
  expect(last?.label).toBe("about 5.0 s");
});

test("a step that has ended since the clock's last second has not ended in the future", () => {
  const run = diamond({ status: "completed", startedAt: at(4), endedAt: at(10.6) });
  expect(presentOf(run, NOW)).toBe(NOW + 600);
  expect(presentOf(diamond(RUNNING), NOW)).toBe(NOW);
});

test("only completed steps that are still the same tell how long they take", () => {
  const difference = (path: string, status: NodeStatus, written: string[] | null) =>
    ({ path, status: [status, "pending"], duration_s: [3, null], written }) as NodeDifference;
  const differences = [
    difference("same", "completed", null),
    difference("failed", "failed", null),
    difference("rewritten", "completed", ["data"]),
  ];
  expect([...earlierTimes(differences)]).toEqual([["same", 3]]);
});
