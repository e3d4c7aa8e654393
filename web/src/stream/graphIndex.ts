import type { EdgeDocument, GraphDocument, NodeDocument } from "@/api/types";

/** A graph, indexed by node. */
export type GraphIndex = {
  readonly nodes: ReadonlyMap<string, NodeDocument>;
  readonly incoming: ReadonlyMap<string, readonly EdgeDocument[]>;
  readonly outgoing: ReadonlyMap<string, readonly EdgeDocument[]>;
};

const indexes = new WeakMap<GraphDocument, GraphIndex>();

/** Return the index of a graph; it is made once for the same object. */
export function indexOfGraph(graph: GraphDocument): GraphIndex {
  let index = indexes.get(graph);
  if (index === undefined) {
    index = {
      nodes: new Map(graph.nodes.map((node) => [node.id, node])),
      incoming: grouped(graph.edges, (edge) => edge.target),
      outgoing: grouped(graph.edges, (edge) => edge.source),
    };
    indexes.set(graph, index);
  }
  return index;
}

/** Return whether an edge passes values; the others link. */
export function isFlow(edge: EdgeDocument): boolean {
  return edge.data.channel === "flow";
}

/** Return the handle that an edge leaves through. */
export function sourceHandle(edge: EdgeDocument): string {
  return edge.sourceHandle ?? "output";
}

function grouped(edges: readonly EdgeDocument[], end: (edge: EdgeDocument) => string) {
  const groups = new Map<string, EdgeDocument[]>();
  for (const edge of edges) {
    const group = groups.get(end(edge));
    if (group === undefined) groups.set(end(edge), [edge]);
    else group.push(edge);
  }
  return groups;
}
