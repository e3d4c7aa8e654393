import type { GraphDocument } from "@/api/types";
import type { Layout } from "@/canvas/layout";
import { layoutPlan } from "@/canvas/planLayout";
import { positionOf } from "./graphEdits";

export const EDITOR_SIZES = { laneWidth: 268, cardWidth: 208, gap: 28 };

/** Lays a plan out by waves, but for the steps that a person has put elsewhere. */
export function layoutEditor(graph: GraphDocument, heightOf: (id: string) => number): Layout {
  const layout = layoutPlan(graph, heightOf, EDITOR_SIZES);
  const positions = new Map(layout.positions);
  for (const node of graph.nodes) {
    const own = positionOf(node);
    if (own) positions.set(node.id, own);
  }
  return { ...layout, positions };
}
