import type { GraphDocument } from "@/api/types";
import { linkedNodes, wavesOf } from "@/stream/waves";
import { type Layout, type LayoutNode, type LayoutSizes, layoutLanes } from "./layout";

/** Lays a plan out in lanes by the waves that it will run in. */
export function layoutPlan(
  graph: GraphDocument,
  heightOf: (id: string) => number,
  sizes: LayoutSizes,
): Layout {
  return layoutLanes(plannedNodes(graph, heightOf), graph.edges, sizes);
}

/** Returns the nodes of a plan with the waves that they will run in. */
export function plannedNodes(graph: GraphDocument, heightOf: (id: string) => number): LayoutNode[] {
  const waves = wavesOf(graph);
  const waveOf = new Map(waves.flatMap((ids, index) => ids.map((id) => [id, index + 1])));
  const linked = linkedNodes(graph);
  // Steps of a cycle have no wave; they are drawn after all others, to be mended.
  const beyond = waves.length + 1;
  return graph.nodes.map(({ id }) => ({
    id,
    wave: waveOf.get(id) ?? (linked.has(id) ? null : beyond),
    height: heightOf(id),
  }));
}
