import { expect, test } from "vitest";
import type { DifferenceResponse, DocumentResponse } from "@/api/types";
import { nodesOf, type Pair } from "@/screens/compare/comparison";
import { unionOf } from "@/screens/compare/graphUnion";

/** Returns a run of "a>b b>c"; "m~c" is a link. */
function run(edges: string): DocumentResponse {
  const ends = edges.split(" ").map((edge) => edge.split(/[>~]/) as [string, string]);
  const ids = [...new Set(ends.flat())];
  const graph = {
    nodes: ids.map((id) => ({ id, type: "text" })),
    edges: edges.split(" ").map((edge, index) => ({
      id: `${edges} ${index}`,
      source: ends[index]?.[0],
      target: ends[index]?.[1],
      data: { channel: edge.includes("~") ? "link" : "flow" },
    })),
  };
  const nodes = ids.map((path) => ({ path, name: path, status: "completed" }));
  return { graph, nodes } as unknown as DocumentResponse;
}

function union(a: string, b: string) {
  const runs: Pair<DocumentResponse> = [run(a), run(b)];
  return unionOf(runs, nodesOf(runs, { nodes: [] } as unknown as DifferenceResponse), 82);
}

test("an edge is in both graphs or only in one, whatever its id", () => {
  const { edges, edgeStatuses } = union("a>b b>c", "a>b b>d");
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
  const { steps, edges } = union("a>b b>c b>gone", "a>c c>b m~b");
  expect(Object.fromEntries(steps.map(({ id, wave }) => [id, wave]))).toEqual({
    a: 1,
    b: 3,
    c: 2,
    gone: 3,
    m: null,
  });
  expect(edges.filter(({ isLink }) => isLink).map(({ source }) => source)).toEqual(["m"]);
});

test("a run without a graph has no edges", () => {
  const empty = { graph: null, nodes: [] } as unknown as DocumentResponse;
  const runs: Pair<DocumentResponse> = [empty, run("a>b")];
  const nodes = nodesOf(runs, { nodes: [] } as unknown as DifferenceResponse);
  expect([...unionOf(runs, nodes, 82).edgeStatuses.values()]).toEqual(["added"]);
});
