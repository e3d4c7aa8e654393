import { expect, test } from "vitest";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { type NodeState, newNodeState, newRunState, type RunState } from "@/stream/runState";
import { fixedSteps, notRunAgain } from "./fixedSteps";

/** The state of a recorded run before its event of a type. */
function before(name: string, type: string): RunState {
  const run = goldenRuns().find((each) => each.name.startsWith(name));
  const events = run?.events ?? [];
  const at = events.findIndex((event) => event.type === type);
  return applyEvents(newRunState("x"), events.slice(0, at));
}

test("what has begun is fixed, and says why; what failed can be taken out", () => {
  const fixed = fixedSteps(before("changes_while_it_waits", "plan.revised"));
  expect([...fixed.keys()].sort()).toEqual(["a", "f", "q"]);
  expect(fixed.get("a")).toEqual({ why: "it is done", canRemove: false });
  expect(fixed.get("q")).toEqual({ why: "it is waiting", canRemove: false });
  expect(fixed.get("f")).toEqual({ why: "it failed", canRemove: true });
});

test("what was skipped before a step that has begun is fixed with it", () => {
  const run = before("branches", "execution.completed");
  const isBegun = (id: string) => run.nodes.get(id)?.startedAt != null;
  const decided = [...fixedSteps(run)].filter(([id]) => !isBegun(id));
  for (const [, { why, canRemove }] of decided) {
    expect(why).toMatch(/began without it|uses it/);
    expect(canRemove).toBe(false);
  }
});

test("the other sources of a step that needed one are open", () => {
  const run = before("join_any", "execution.completed");
  expect(run.nodes.get("c")?.via).not.toBeNull();
  const started = { ...run, nodes: new Map([...run.nodes].filter(([id]) => id === "c")) };
  const fixed = fixedSteps(started);
  expect(fixed.has("fast")).toBe(true);
  expect(fixed.has("slow")).toBe(false);
});

const TWO: RunState["graph"] = {
  nodes: [
    { id: "look", type: "text", name: "Look" },
    { id: "join", type: "text", name: "Report" },
    { id: "note", type: "text" },
    { id: "alone", type: "text", name: "Alone" },
  ],
  edges: [
    { id: "e1", source: "look", target: "join", data: { channel: "flow" } },
    { id: "e2", source: "look", target: "note", data: { channel: "flow" } },
  ],
};

test.each<[Record<string, NodeState["status"]>, string | undefined]>([
  [{ look: "completed", alone: "completed" }, undefined],
  [{ look: "completed", join: "failed" }, undefined],
  [{ look: "completed", join: "running" }, "“Report” has begun and reads nothing new"],
  [{ look: "completed", join: "completed", note: "running" }, "“Report” and “note” have begun"],
])("where a last step has begun, a new one is asked for: %o", (begun, words) => {
  const states = Object.entries(begun).map(
    ([id, status]) => [id, { ...newNodeState(id), status }] as const,
  );
  const said = notRunAgain({ graph: TWO, nodes: new Map(states) });
  expect(said).toMatch(/^What has run is not run again\./);
  if (words === undefined) expect(said).not.toContain("new last step");
  else {
    expect(said).toContain(words);
    expect(said).toContain("needs a new last step");
  }
});
