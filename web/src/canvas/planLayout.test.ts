import { expect, test } from "vitest";
import { layoutPlan } from "./planLayout";

const node = (id: string) => ({ id, type: "agent" });
const edge = (source: string, target: string, channel = "flow") => ({
  source,
  target,
  data: { channel },
});
const lanesOf = (ids: string[], edges: ReturnType<typeof edge>[]) =>
  layoutPlan({ nodes: ids.map(node), edges }, () => 82, {
    laneWidth: 344,
    cardWidth: 256,
    gap: 12,
  }).lanes.map((lane) => lane.ids);

test("steps stand in the lane of their wave, linked ones in that of their consumer", () => {
  const edges = [edge("a", "b"), edge("model", "b", "link")];
  expect(lanesOf(["model", "a", "b"], edges)).toEqual([["a"], ["b", "model"]]);
});

test("a linked step that its consumer feeds is a step after it", () => {
  const edges = [edge("lead", "writer"), edge("writer", "lead", "link")];
  expect(lanesOf(["writer", "lead"], edges)).toEqual([["lead"], ["writer"]]);
});

test("steps of a cycle are drawn after all that can run", () => {
  expect(lanesOf(["a", "b", "c"], [edge("a", "b"), edge("b", "c"), edge("c", "b")])).toEqual([
    ["a"],
    ["b", "c"],
  ]);
});

test("an edge to a step that is not written yet is left out", () => {
  expect(lanesOf(["a"], [edge("a", "later")])).toEqual([["a"]]);
});
