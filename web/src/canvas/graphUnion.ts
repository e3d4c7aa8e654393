import type { EdgeDocument, GraphDocument } from "@/api/types";
import { writeJson } from "@/json";
import { isFlow, sourceHandle } from "@/stream/graphIndex";
import { wavesOf } from "@/stream/waves";
import type { CanvasEdge, CanvasStep } from "./flowElements";
import { CARD_HEIGHT } from "./layout";
import type { EdgeStatus } from "./WaveEdge";

/** Both graphs on one canvas: each step and edge, and which graph has it. */
export interface GraphUnion {
  steps: readonly CanvasStep[];
  edges: readonly CanvasEdge[];
  /** By the id of an edge. */
  edgeStatuses: ReadonlyMap<string, EdgeStatus>;
}

/**
 * Returns the union of two graphs, with the steps of these ids. A step stands in the wave that it has in
 * B, where B has it: a graph that has all edges of both may have a cycle.
 */
export function unionOf(
  graphs: readonly [a: GraphDocument, b: GraphDocument],
  ids: readonly string[],
): GraphUnion {
  const waveOf = new Map(
    graphs.flatMap((graph) =>
      wavesOf(graph).flatMap((wave, index) => wave.map((id) => [id, index + 1] as const)),
    ),
  );
  const known = new Set(ids);
  const [inA, inB] = graphs.map((graph) => edgesByKey(graph, known));
  const all = new Map([...(inA ?? []), ...(inB ?? [])]);
  return {
    steps: ids.map((id) => ({ id, wave: waveOf.get(id) ?? null, height: CARD_HEIGHT })),
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

/** Edges are equal if they connect the same ports; their ids and `ui` do not count. */
function edgesByKey(
  graph: GraphDocument,
  known: ReadonlySet<string>,
): ReadonlyMap<string, EdgeDocument> {
  const edges = graph.edges.filter(({ source, target }) => known.has(source) && known.has(target));
  return new Map(edges.map((edge) => [keyOf(edge), edge]));
}

/** Returns a text that is the same for edges that connect the same ports. */
export function keyOf(edge: EdgeDocument): string {
  const { source, target, targetHandle, data } = edge;
  return writeJson([source, sourceHandle(edge), target, targetHandle ?? "", data.channel]);
}

function edgeStatus(isInA = false, isInB = false): EdgeStatus {
  if (isInA && isInB) return "plan";
  return isInA ? "removed" : "added";
}
