import { expect, test } from "vitest";
import { readPlan } from "./readPlan";

const NODE = { id: "a", type: "text", data: { text: "A" } };

test("a plan is read as it is exported and as it is sent", () => {
  const graph = { nodes: [NODE], edges: [] };
  expect(readPlan({ title: "T", ...graph })).toEqual({ title: "T", graph });
  expect(readPlan({ graph })).toEqual({ graph });
});

test.each([
  [[], "A plan is an object with nodes and edges."],
  [{ nodes: 1, edges: [] }, "“nodes” has to be a list."],
  [{ nodes: [], edges: null }, "“edges” has to be a list."],
  [{ nodes: [{ id: 1 }], edges: [] }, "nodes[0] has to be an object with “id” and “type”."],
  [{ nodes: [NODE, NODE], edges: [] }, "Two nodes have the id “a”."],
  [{ nodes: [{ ...NODE, data: [] }], edges: [] }, "“data” of the node “a” has to be an object."],
  [
    { nodes: [], edges: [{ source: "a", target: "b" }] },
    "edges[0] has to be an object with “source”, “target” and “data”.",
  ],
])("what is no plan says why: %j", (value, problem) => {
  expect(readPlan(value)).toEqual({ problem });
});
