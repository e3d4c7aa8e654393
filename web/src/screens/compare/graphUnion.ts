import type { DocumentResponse, EdgeDocument, GraphDocument } from "@/api/types";
import type { CanvasEdge, CanvasStep } from "@/canvas/flowElements";
import type { EdgeStatus } from "@/canvas/WaveEdge";
import { writeJson } from "@/json";
import type { Pair, StepPair } from "@/screens/compare/comparison";
import { isFlow, sourceHandle } from "@/stream/graphIndex";
import { wavesOf } from "@/stream/waves";

/** Both graphs on one canvas: each step and edge, and which graph has it. */
export interface GraphUnion {
  steps: readonly CanvasStep[];
  edges: readonly CanvasEdge[];
  /** By the id of an edge. */
  edgeStatuses: ReadonlyMap<string, EdgeStatus>;
}

const NO_GRAPH: GraphDocument = { nodes: [], edges: [] };

/**
 * Returns the union of two graphs. A step stands in the wave that it has in B, where B has it: a
 * graph that has all edges of both may have a cycle.
 */
export function unionOf(
  runs: Pair<DocumentResponse>,
  nodes: readonly StepPair[],
  height: number,
): GraphUnion {
  const graphs = runs.map(graphOf);
  const waveOf = new Map(
    graphs.flatMap((graph) =>
      wavesOf(graph).flatMap((ids, index) => ids.map((id) => [id, index + 1] as const)),
    ),
  );
  const known = new Set(nodes.map(({ path }) => path));
  const [inA, inB] = graphs.map((graph) => edgesByKey(graph, known));
  const all = new Map([...(inA ?? []), ...(inB ?? [])]);
  return {
    steps: nodes.map(({ path }) => ({ id: path, wave: waveOf.get(path) ?? null, height })),
    edges: [...all].map(([id, edge]) => ({
      id,
      source: edge.source,
      target: edge.target,
      isLink: !isFlow(edge),
    })),
    edgeStatuses: new Map(
      [...all.keys()].map((key) => [key, edgeStatus(inA?.has(key), inB?.has(key))]),
    ),
  };
}

function graphOf(run: DocumentResponse): GraphDocument {
  return (run.graph as GraphDocument | null) ?? NO_GRAPH;
}

/** Edges are equal if they connect the same ports; their ids and `ui` do not count. */
function edgesByKey(
  graph: GraphDocument,
  known: ReadonlySet<string>,
): ReadonlyMap<string, EdgeDocument> {
  const edges = graph.edges.filter(({ source, target }) => known.has(source) && known.has(target));
  return new Map(edges.map((edge) => [keyOf(edge), edge]));
}

function keyOf(edge: EdgeDocument): string {
  const { source, target, targetHandle, data } = edge;
  return writeJson([source, sourceHandle(edge), target, targetHandle ?? "", data.channel]);
}

function edgeStatus(isInA = false, isInB = false): EdgeStatus {
  if (isInA && isInB) return "plan";
  return isInA ? "removed" : "added";
}
