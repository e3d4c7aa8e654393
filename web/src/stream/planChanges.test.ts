import { describe, expect, it } from "vitest";
import type { ExecutionEvent } from "@/api/types";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { newRunState, type RunState } from "@/stream/runState";

const RUNS = goldenRuns();

function fold(events: readonly ExecutionEvent[]): RunState {
  return applyEvents(newRunState("x"), events);
}

describe("a change of the graph", () => {
  const run = RUNS.find((each) => each.name.startsWith("changes_while_it_waits"));
  const events = run?.events ?? [];

  it("keeps the graph before it, from which the changed one is made", () => {
    const { changes, graph } = fold(events);
    const [created] = events;
    expect(changes[0]?.before).toEqual(created?.type === "execution.created" && created.data.graph);
    const ids = [...changes.map(({ before }) => before), graph].map((each) =>
      each?.nodes.map(({ id }) => id),
    );
    expect(ids).toEqual([
      ["a", "q", "f", "g", "b", "c", "x"],
      ["a", "q", "g", "b", "c", "costs", "late"],
      ["a", "q", "g", "b", "c", "costs"],
    ]);
  });

  /** Events up to the first change, with some before it. */
  function changedAfter(...before: object[]): RunState {
    const at = events.findIndex(({ type }) => type === "plan.revised");
    const all = [...events.slice(0, at), ...before, events[at]];
    return fold(all.map((event, index) => ({ ...event, seq: index + 1 })) as ExecutionEvent[]);
  }

  it("takes what ran inside a step out with the step", () => {
    const at = "2026-01-01T00:00:00.000Z";
    const inside = { at, path: "f[k]/i", attempt: 1 };
    const error = { code: "gone", message: "no such page" };
    const { nodes, changes } = changedAfter(
      { ...inside, type: "node.started", data: { wave: 1 } },
      { ...inside, type: "node.failed", data: { error, handled: false } },
    );
    expect([...nodes.keys()].filter((path) => path.startsWith("f"))).toEqual([]);
    expect(changes[0]?.dropped.map(({ path }) => path)).toEqual(["f", "f[k]/i"]);
  });

  it("leaves a step as it is that was cancelled by itself before it had begun", () => {
    const at = "2026-01-01T00:00:00.000Z";
    const data = { cause: "enough" };
    const { nodes } = changedAfter({ at, type: "node.cancelled", path: "b", attempt: 1, data });
    expect([nodes.get("b")?.status, nodes.get("c")?.status]).toEqual(["cancelled", "pending"]);
  });

  it("leaves what a step that it drops has cost in the total", () => {
    const at = events.findIndex(({ type }) => type === "node.failed");
    const data = { input_tokens: 7, output_tokens: 3, cost_usd: 0.5, provider: "p", model: "m" };
    const usage = { ...events[at], type: "usage", data, seq: 0 };
    const paid = [...events.slice(0, at), usage, ...events.slice(at)] as ExecutionEvent[];
    const { usage: total, changes } = fold(
      paid.map((event, index) => ({ ...event, seq: index + 1 })),
    );
    expect(changes[0]?.dropped.map(({ id, usage: own }) => [id, own.cost_usd])).toEqual([
      ["f", 0.5],
    ]);
    expect([total.cost_usd, total.input_tokens]).toEqual([0.5, 7]);
  });
});
