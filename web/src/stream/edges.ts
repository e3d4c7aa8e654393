import type { EdgeDocument } from "@/api/types";
import { graphAt } from "@/stream/draft";
import { indexOfGraph, isFlow, sourceHandle } from "@/stream/graphIndex";
import { type EdgeState, ENDED_NODE, type NodeState, type RunState } from "@/stream/runState";

/**
 * Return whether a value has passed an edge.
 *
 * @param prefix The path prefix of the run that the edge is part of.
 */
export function edgeState(state: RunState, edge: EdgeDocument, prefix = ""): EdgeState {
  if (!isFlow(edge)) return "link";
  const source = state.nodes.get(prefix + edge.source);
  return source === undefined ? "pending" : stateAfter(source, sourceHandle(edge));
}

function stateAfter(source: NodeState, handle: string): EdgeState {
  switch (source.status) {
    case "completed":
      return source.handles.includes(handle) ? "delivered" : "skipped";
    case "failed":
      if (!source.handled) return "failed";
      return source.handles.includes(handle) ? "delivered" : "skipped";
    case "skipped":
      return "skipped";
    case "blocked":
    case "cancelled":
      return "failed";
    default:
      return "pending";
  }
}

/** Return the nodes that a node gets values from, nested or not. */
export function parentsOf(state: RunState, { id, prefix }: NodeState): NodeState[] {
  const graph = graphAt(state, prefix);
  const edges = graph ? (indexOfGraph(graph).incoming.get(id) ?? []) : [];
  return edges.filter(isFlow).flatMap((edge) => state.nodes.get(prefix + edge.source) ?? []);
}

/** Return the nodes that a node still waits for. */
export function openParents(state: RunState, node: NodeState): NodeState[] {
  return parentsOf(state, node).filter(({ status }) => !ENDED_NODE.has(status));
}
