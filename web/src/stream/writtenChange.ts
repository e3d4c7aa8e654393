import type { EdgeDocument, GraphDocument, NodeDocument } from "@/api/types";
import { isObject, readJson } from "@/json";
import { toText } from "@/stream/json";

/** A part of a change as a model writes it; see `PlanProgress` of the service. */
type Part = Readonly<Record<string, unknown>>;

/** Return a graph with what is written of a change so far: one part a line, the last of which may be cut off. */
export function writtenGraph(before: GraphDocument, lines: string): GraphDocument {
  return lines
    .split("\n")
    .flatMap(partOf)
    .reduce<GraphDocument>(
      (graph, part) => (part.kind === "repair" ? before : changedBy(graph, part)),
      before,
    );
}

function partOf(line: string): Part[] {
  try {
    const part: unknown = readJson(line);
    return isObject(part) ? [part] : [];
  } catch {
    return [];
  }
}

function changedBy(graph: GraphDocument, part: Part): GraphDocument {
  const { nodes, edges } = graph;
  const id = toText(part.id);
  switch (part.kind === "operation" ? part.op : part.kind) {
    case "node":
      return id
        ? { nodes: [...nodes.filter((each) => each.id !== id), nodeOf(part)], edges }
        : graph;
    case "edge":
      return part.source && part.target ? { nodes, edges: [...edges, edgeOf(part)] } : graph;
    case "update_node":
      return {
        nodes: nodes.map((each) => (each.id === id ? updated(each, part.set) : each)),
        edges,
      };
    case "remove_node":
      return {
        nodes: nodes.filter((each) => each.id !== id),
        edges: edges.filter(({ source, target }) => source !== id && target !== id),
      };
    case "remove_edge":
      return { nodes, edges: edges.filter((edge) => !isNamed(edge, part)) };
    case "rename":
      return part.to ? renamed(graph, id, toText(part.to)) : graph;
    default:
      return graph;
  }
}

function nodeOf(part: Part): NodeDocument {
  const [id, name, type] = [toText(part.id), toText(part.name), toText(part.type) || "agent"];
  return { id, name: name || id, type, description: toText(part.description), data: {} };
}

function updated(node: NodeDocument, set: unknown): NodeDocument {
  if (!isObject(set)) return node;
  const { data, name, type, description } = set;
  const texts = Object.entries({ name, type, description }).filter(
    ([, value]) => value && typeof value === "string",
  );
  return {
    ...node,
    ...Object.fromEntries(texts),
    ...(isObject(data) && { data: { ...node.data, ...data } }),
  };
}

function edgeOf({ source, target, channel }: Part): EdgeDocument {
  const data = { channel: channel === "link" ? "link" : "flow" } as const;
  return { source: toText(source), target: toText(target), data };
}

function isNamed(edge: EdgeDocument, part: Part): boolean {
  const { source_handle: from = edge.sourceHandle, target_handle: to = edge.targetHandle } = part;
  const isSame = edge.source === part.source && edge.target === part.target;
  return isSame && edge.sourceHandle === from && edge.targetHandle === to;
}

function renamed({ nodes, edges }: GraphDocument, id: string, to: string): GraphDocument {
  const now = (each: string) => (each === id ? to : each);
  return {
    nodes: nodes.map((node) => ({ ...node, id: now(node.id) })),
    edges: edges.map((edge) => ({ ...edge, source: now(edge.source), target: now(edge.target) })),
  };
}
