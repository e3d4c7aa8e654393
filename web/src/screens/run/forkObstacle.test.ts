import { expect, test } from "vitest";
import { newNodeState } from "@/stream/runState";
import { forkObstacle, outerStep } from "./forkObstacle";

const pot = { ...newNodeState("pot"), name: "Each pot" };
const nodes = new Map([["pot", pot]]);
const inner = { path: "pot[1]/note", prefix: "pot[1]/" };

test.each([
  ["ended", "completed", "2026-01-01T00:00:00Z", pot, undefined],
  ["paused", "paused", null, pot, undefined],
  ["running", "executing", null, pot, /^Pause the run first/],
  [
    "ended, inside a step",
    "completed",
    "2026-01-01T00:00:00Z",
    inner,
    /inside Each pot, which runs again as a whole/,
  ],
] as const)("a step is forked where it can be: %s", (_, status, endedAt, step, obstacle) => {
  const found = forkObstacle({ status, endedAt, nodes }, step);
  if (obstacle) expect(found).toMatch(obstacle);
  else expect(found).toBeUndefined();
});

test.each([
  ["pot", "pot"],
  ["pot[1]/note", "pot"],
  ["pot[1]/inner[2]/note", "pot"],
])("the step of the graph that %s belongs to is %s", (path, outer) => {
  expect(outerStep(path)).toBe(outer);
});
