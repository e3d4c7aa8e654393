import { expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { pendingPlan } from "./pendingPlan";

/** Returns the graph with these steps and the wires "a>b". */
function graph(nodes: string, edges: string): GraphDocument {
  const ends = edges.split(" ").filter(Boolean);
  return {
    nodes: nodes.split(" ").map((id) => ({ id, type: "text" })),
    edges: ends.map((edge) => {
      const [source = "", target = ""] = edge.split(">");
      return { id: edge, source, target, data: { channel: "flow" } };
    }),
  };
}

const BEFORE = graph("a old end", "a>old old>end");
const WAVES = [["a"], ["old"], ["end"]];

test("a change lies over the plan: what is new, what goes, and where each of them stands", () => {
  const after = graph("a end new more", "a>new new>more more>end");
  const plan = pendingPlan(BEFORE, after, WAVES, 2);
  expect(plan.graph.nodes.map(({ id }) => id)).toEqual(["a", "old", "end", "new", "more"]);
  expect([...plan.steps.values()].map(({ node, change }) => [node.id, change])).toEqual([
    ["old", "only_a"],
    ["new", "only_b"],
    ["more", "only_b"],
  ]);
  expect(plan.waves).toEqual([["a"], ["old", "new"], ["more"], ["end"]]);
  expect([...plan.edges]).toEqual([
    ["a>old", "removed"],
    ["old>end", "removed"],
    [expect.stringContaining('"a"'), "added"],
    [expect.stringContaining('"more"'), "added"],
    [expect.stringContaining('"end"'), "added"],
  ]);
});

test("a wire that leads elsewhere under the same id is one that goes and one that comes", () => {
  const after = graph("a old end", "a>old");
  after.edges.push({ id: "old>end", source: "a", target: "end", data: { channel: "flow" } });
  const { graph: union, edges } = pendingPlan(BEFORE, after, WAVES, 1);
  expect(new Set(union.edges.map(({ id }) => id)).size).toBe(3);
  expect([...edges.values()]).toEqual(["removed", "added"]);
});

test("a new step comes in no wave before the last that has begun, and others keep their places", () => {
  const plan = pendingPlan(BEFORE, graph("a old end new", "a>old old>end"), WAVES, 2);
  expect(plan.waves).toEqual([["a"], ["old", "new"], ["end"]]);
});

test("steps that only others use, and those that do not run, are in no wave", () => {
  const before = graph("a b tool", "a>b");
  before.edges.push({ id: "t", source: "tool", target: "b", data: { channel: "link" } });
  const after = { nodes: [...before.nodes, { id: "new", type: "text" }], edges: before.edges };
  expect(pendingPlan(before, after, [["a"], ["b"]], 1).waves).toEqual([["a", "new"], ["b"]]);
});
