import type { GraphDocument } from "@/api/types";
import { isObject } from "@/json";

/** A plan as a file has it, or why a document is none. */
export type ReadPlan = { graph: GraphDocument; title?: string } | { problem: string };

/** Reads a plan from JSON: `{"nodes", "edges", "title"?}`, or that below `graph`. */
export function readPlan(value: unknown): ReadPlan {
  const document = asObject(value);
  const inner = asObject(document?.graph) ?? document;
  if (!document || !inner) return { problem: "A plan is an object with nodes and edges." };
  const { nodes, edges } = inner;
  if (!Array.isArray(nodes)) return { problem: "“nodes” has to be a list." };
  if (!Array.isArray(edges)) return { problem: "“edges” has to be a list." };
  const problem = problemOfNodes(nodes) ?? problemOfEdges(edges);
  if (problem) return { problem };
  const graph = { nodes, edges } as GraphDocument;
  return typeof document.title === "string" ? { graph, title: document.title } : { graph };
}

function problemOfNodes(nodes: readonly unknown[]): string | null {
  const ids = new Set<unknown>();
  for (const [index, value] of nodes.entries()) {
    const node = asObject(value);
    if (typeof node?.id !== "string" || typeof node.type !== "string") {
      return `nodes[${index}] has to be an object with “id” and “type”.`;
    }
    if (node.data !== undefined && !asObject(node.data)) {
      return `“data” of the node “${node.id}” has to be an object.`;
    }
    if (ids.has(node.id)) return `Two nodes have the id “${node.id}”.`;
    ids.add(node.id);
  }
  return null;
}

function problemOfEdges(edges: readonly unknown[]): string | null {
  const index = edges.findIndex((value) => {
    const edge = asObject(value);
    const hasEnds = typeof edge?.source === "string" && typeof edge.target === "string";
    return !hasEnds || !asObject(edge.data);
  });
  return index < 0
    ? null
    : `edges[${index}] has to be an object with “source”, “target” and “data”.`;
}

function asObject(value: unknown): Record<string, unknown> | null {
  return isObject(value) ? value : null;
}
