import { expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { unionOf } from "./graphUnion";

/** Returns the graph of "a>b b>c"; "m~c" is a link. */
function graph(edges: string): GraphDocument {
  const ends = edges.split(" ").map((edge) => edge.split(/[>~]/) as [string, string]);
  return {
    nodes: [...new Set(ends.flat())].map((id) => ({ id, type: "text" })),
    edges: edges.split(" ").map((edge, index) => ({
      id: `${edges} ${index}`,
      source: ends[index]?.[0] ?? "",
      target: ends[index]?.[1] ?? "",
      data: { channel: edge.includes("~") ? "link" : "flow" },
    })),
  };
}

function union(a: GraphDocument, b: GraphDocument) {
  return unionOf([a, b], [...new Set([...a.nodes, ...b.nodes].map(({ id }) => id))]);
}

test("an edge is in both graphs or only in one, whatever its id", () => {
  const { edges, edgeStatuses } = union(graph("a>b b>c"), graph("a>b b>d"));
  const statuses = edges.map(({ id, source, target }) => [
    `${source}>${target}`,
    edgeStatuses.get(id),
  ]);
  expect(statuses).toEqual([
    ["a>b", "plan"],
    ["b>c", "removed"],
    ["b>d", "added"],
  ]);
});

test("a step stands in its wave of B, else of A; what is only linked has none", () => {
  const { steps, edges } = union(graph("a>b b>c b>gone"), graph("a>c c>b m~b"));
  expect(Object.fromEntries(steps.map(({ id, wave }) => [id, wave]))).toEqual({
    a: 1,
    b: 3,
    c: 2,
    gone: 3,
    m: null,
  });
  expect(edges.filter(({ isLink }) => isLink).map(({ source }) => source)).toEqual(["m"]);
});

test("all edges are new beside a graph without any", () => {
  const empty: GraphDocument = { nodes: [], edges: [] };
  expect([...union(empty, graph("a>b")).edgeStatuses.values()]).toEqual(["added"]);
});
