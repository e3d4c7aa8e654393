import { expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { applyOperations, operationsBetween, type PlanContent } from "./operations";

const content = (graph: Partial<GraphDocument>, title = "T"): PlanContent => ({
  title,
  graph: { nodes: [], edges: [], ...graph },
});
const node = (id: string, data = {}) => ({ id, type: "text", data });
const edge = (source: string, target: string) => ({
  id: `${source}-${target}`,
  source,
  target,
  data: { channel: "flow" },
});

const BEFORE = content({
  nodes: [node("a", { text: "1", old: 2 }), node("b")],
  edges: [edge("a", "b")],
});
const AFTER = content(
  { nodes: [node("a", { text: "2" }), node("c")], edges: [edge("a", "c")] },
  "New",
);

test("the operations between two contents lead from one to the other", () => {
  const operations = operationsBetween(BEFORE, AFTER);
  expect(operations).toEqual([
    { op: "set_title", title: "New" },
    { op: "remove_node", id: "b" },
    { op: "update_node", id: "a", set: { data: { text: "2", old: null } } },
    { op: "add_node", node: node("c") },
    { op: "add_edge", edge: edge("a", "c") },
  ]);
  expect(applyOperations(BEFORE, operations)).toEqual({ content: AFTER, refused: [] });
});

test("nothing changed needs no operation", () => {
  expect(operationsBetween(BEFORE, structuredClone(BEFORE))).toEqual([]);
});

test("an edge without a channel is a flow edge", () => {
  const ends = { id: "e", source: "a", target: "b" };
  const { content: changed } = applyOperations(BEFORE, [
    { op: "add_edge", edge: ends },
    { op: "add_edge", edge: { ...ends, data: { channel: "link" } } },
  ]);
  const channels = changed.graph.edges.slice(-2).map((each) => each.data.channel);
  expect(channels).toEqual(["flow", "link"]);
});

test("changes of different nodes by two editors are both kept", () => {
  const mine = content({
    ...BEFORE.graph,
    nodes: [node("a", { text: "mine", old: 2 }), node("b")],
  });
  const theirs = content({ ...BEFORE.graph, nodes: [...BEFORE.graph.nodes, node("theirs")] });
  const merged = applyOperations(theirs, operationsBetween(BEFORE, mine));
  expect(merged.refused).toEqual([]);
  expect(merged.content.graph.nodes.map((each) => [each.id, each.data])).toEqual([
    ["a", { text: "mine", old: 2 }],
    ["b", {}],
    ["theirs", {}],
  ]);
});

test("a change of a node that somebody else has removed is refused, not lost without a word", () => {
  const mine = content({
    ...BEFORE.graph,
    nodes: [node("a", { text: "1", old: 2 }), node("b", { x: 1 })],
  });
  const theirs = content({ nodes: [node("a", { text: "1", old: 2 })] });
  const merged = applyOperations(theirs, operationsBetween(BEFORE, mine));
  expect(merged.refused).toEqual([{ op: "update_node", id: "b", set: { data: { x: 1 } } }]);
  expect(merged.content).toEqual(theirs);
});
