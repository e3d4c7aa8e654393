import { expect, test } from "vitest";
import type { EdgeDocument, GraphDocument, PortResponse } from "@/api/types";
import {
  addNode,
  connect,
  freeNodeId,
  moveNodes,
  PLACEHOLDER,
  partOf,
  paste,
  refusalOf,
  removeNodes,
  replaceType,
} from "./graphEdits";

const port = (name: string, channel: "flow" | "link" = "flow", type = "any"): PortResponse => ({
  name,
  channel,
  type,
  label: "",
  multiple: true,
  required: false,
  side: "",
  color: "",
  shape: "",
});

const GRAPH: GraphDocument = {
  nodes: [
    { id: "a", type: "text", data: { text: "A" }, ui: { position: { x: 0, y: 0 }, note: "kept" } },
    { id: "b", type: "agent" },
  ],
  edges: [
    { id: "e1", source: "a", target: "b", type: "bent", data: { channel: "flow", mine: { x: 1 } } },
  ],
};

test("a wire has the channel and the types of its ports", () => {
  const graph = addNode(GRAPH, { id: "c", type: "agent" });
  const made = connect(
    graph,
    { node: "b", port: port("output", "flow", "text") },
    { node: "c", port: port("input") },
  );
  expect(made.edges.at(-1)).toEqual({
    id: "b-c",
    source: "b",
    sourceHandle: "output",
    target: "c",
    targetHandle: "input",
    data: { channel: "flow", sourceType: "text", targetType: "any" },
  });
  expect(made.edges[0]).toBe(GRAPH.edges[0]);
});

test("ports of differing channels are not connected, and the reason is said", () => {
  const source = { node: "a", port: port("model", "link") };
  const target = { node: "b", port: port("input") };
  expect(refusalOf(source, target)).toBe("model is a link port, input a flow port.");
  expect(connect(GRAPH, source, target)).toBe(GRAPH);
});

test("the same wire is not drawn twice, and none leads back to its own step", () => {
  const ends = [
    { node: "a", port: port("output") },
    { node: "b", port: port("input") },
  ] as const;
  expect(connect(GRAPH, ...ends)).toBe(GRAPH);
  expect(connect(GRAPH, ends[0], { node: "a", port: port("input") })).toBe(GRAPH);
});

test("copies have new ids, and the edges between them come along unchanged", () => {
  const { graph, ids } = paste(GRAPH, partOf(GRAPH, new Set(["a", "b"])));
  expect(ids).toEqual(["a_2", "b_2"]);
  expect(graph.edges.at(-1)).toEqual({
    ...GRAPH.edges[0],
    id: "a_2-b_2",
    source: "a_2",
    target: "b_2",
  });
  expect(graph.nodes[2]?.ui).toEqual({ position: { x: 32, y: 32 }, note: "kept" });
});

test("a removed node takes its edges along", () => {
  expect(removeNodes(GRAPH, new Set(["a"]))).toEqual({ nodes: [GRAPH.nodes[1]], edges: [] });
});

test("moving a node changes nothing but its place", () => {
  const moved = moveNodes(GRAPH, new Map([["a", { x: 5, y: 6 }]]));
  expect(moved.nodes[0]).toEqual({
    ...GRAPH.nodes[0],
    ui: { position: { x: 5, y: 6 }, note: "kept" },
  });
  expect(moved.nodes[1]).toBe(GRAPH.nodes[1]);
});

test.each([
  ["a", "a_2"],
  ["Search notes!", "Search_notes_"],
  ["???", "_"],
])("a free id for %s is %s", (wanted, expected) => {
  expect(freeNodeId(GRAPH, wanted)).toBe(expected);
});

test("a step of another type keeps id, name, place and the edges that fit it", () => {
  const link = (source: string, target: string, handles: Partial<EdgeDocument>, channel = "flow") =>
    ({ source, target, ...handles, data: { channel } }) as EdgeDocument;
  const kept = { id: "p", name: "Send", policy: { timeoutS: 5 }, ui: { position: { x: 1, y: 2 } } };
  const graph: GraphDocument = {
    nodes: [
      { id: "a", type: "text" },
      { ...kept, type: PLACEHOLDER, data: { kind: "slack", parameters: { a: 1 } } },
    ],
    edges: [
      link("a", "p", {}),
      link("a", "p", { targetHandle: "main-2" }),
      link("a", "p", { targetHandle: "input" }, "link"),
      link("p", "a", { sourceHandle: "case-0" }),
      link("p", "a", { sourceHandle: "true" }),
      link("p", "a", { sourceHandle: "error" }),
    ],
  };
  const type = {
    node_type: "switch",
    inputs: [port("input")],
    outputs: [port("case-{i}"), port("{name}", "link")],
  };
  const replaced = replaceType(graph, "p", type);
  expect(replaced.nodes).toEqual([graph.nodes[0], { ...kept, type: "switch" }]);
  expect(replaced.edges).toEqual([graph.edges[0], graph.edges[3], graph.edges[5]]);
});
