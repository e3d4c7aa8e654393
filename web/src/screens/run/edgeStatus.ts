import type { EdgeDocument, GraphDocument } from "@/api/types";
import type { EdgeStatus } from "@/canvas/WaveEdge";
import { edgeState } from "@/stream/edges";
import type { RunState } from "@/stream/runState";

const STATUS_OF_STATE = {
  link: "plan",
  pending: "waiting",
  delivered: "delivered",
  skipped: "skipped",
  failed: "failed",
} as const;

const byId = new WeakMap<GraphDocument, Map<string, EdgeDocument>>();

/** Returns the id under which an edge is drawn. */
export function edgeId(edge: EdgeDocument, index: number): string {
  return edge.id ?? `edge ${index}`;
}

/** Returns how far a value has come along an edge; live where it is being used right now. */
export function edgeStatus(run: RunState, id: string): EdgeStatus {
  const edge = run.graph ? edgesById(run.graph).get(id) : undefined;
  if (!edge) return "waiting";
  if (run.nodes.get(edge.source)?.status === "not_reached") return "skipped";
  const status = STATUS_OF_STATE[edgeState(run, edge)];
  const target = run.nodes.get(edge.target)?.status;
  const isLive = status === "delivered" && (target === "running" || target === "retrying");
  return isLive ? "live" : status;
}

function edgesById(graph: GraphDocument): Map<string, EdgeDocument> {
  let edges = byId.get(graph);
  if (!edges) {
    edges = new Map(graph.edges.map((edge, index) => [edgeId(edge, index), edge]));
    byId.set(graph, edges);
  }
  return edges;
}
