import { applyMergePatch, mergePatch } from "@/api/mergePatch";
import type {
  EdgeDocument,
  GraphDocument,
  ImportReport,
  NodeDocument,
  PlanEditRequest,
  RenameOperation,
  ReplaceGraphOperation,
  SetGoalOperation,
} from "@/api/types";
import { writeJson } from "@/json";

/** What an editor changes of a plan. */
export type PlanContent = {
  title: string;
  graph: GraphDocument;
  /** What became of the file of another program that the graph was imported from. */
  imported?: ImportReport | undefined;
};

/** A change of a plan that the editor makes by itself, as `PATCH /api/plans/{id}` takes it. */
export type PlanOperation = Exclude<
  PlanEditRequest["operations"][number],
  RenameOperation | ReplaceGraphOperation | SetGoalOperation
>;

/** Returns the operations that lead from one content to another; nodes are known by id.
 *
 * Applied to a plan that somebody else has changed, they change only what differs here. */
export function operationsBetween(before: PlanContent, after: PlanContent): PlanOperation[] {
  const title =
    before.title === after.title ? [] : [{ op: "set_title", title: after.title } as const];
  return [
    ...title,
    ...nodeOperations(before.graph, after.graph),
    ...edgeOperations(before.graph, after.graph),
  ];
}

function nodeOperations(before: GraphDocument, after: GraphDocument): PlanOperation[] {
  const old = new Map(before.nodes.map((node) => [node.id, node]));
  const kept = new Set(after.nodes.map((node) => node.id));
  const removed = before.nodes.filter((node) => !kept.has(node.id));
  return [
    ...removed.map(({ id }) => ({ op: "remove_node", id }) as const),
    ...after.nodes.flatMap((node): PlanOperation[] => {
      const known = old.get(node.id);
      if (known === node) return [];
      if (!known) return [{ op: "add_node", node }];
      const set = mergePatch(known, node);
      return Object.keys(set).length > 0 ? [{ op: "update_node", id: node.id, set }] : [];
    }),
  ];
}

/** Edges of a removed node go with it. A changed edge is removed and added. */
function edgeOperations(before: GraphDocument, after: GraphDocument): PlanOperation[] {
  if (before.edges === after.edges && before.nodes.length === after.nodes.length) return [];
  const nodes = new Set(after.nodes.map((node) => node.id));
  const text = (edge: EdgeDocument) => writeJson(edge);
  const old = new Set(before.edges.map(text));
  const kept = new Set(after.edges.map(text));
  const removed = before.edges.filter(
    (edge) => !kept.has(text(edge)) && nodes.has(edge.source) && nodes.has(edge.target),
  );
  return [
    ...removed.flatMap(({ id }) => (id ? [{ op: "remove_edge", id } as const] : [])),
    ...after.edges
      .filter((edge) => !old.has(text(edge)))
      .map((edge) => ({ op: "add_edge", edge }) as const),
  ];
}

/** Returns a content after operations; those that do not fit it (any more) are returned too. */
export function applyOperations(
  content: PlanContent,
  operations: readonly PlanOperation[],
): { content: PlanContent; refused: PlanOperation[] } {
  const refused: PlanOperation[] = [];
  let current = content;
  for (const operation of operations) {
    const next = applyOperation(current, operation);
    if (next) current = next;
    else refused.push(operation);
  }
  return { content: current, refused };
}

function applyOperation(content: PlanContent, operation: PlanOperation): PlanContent | null {
  const { nodes, edges } = content.graph;
  const hasNode = (id: string) => nodes.some((node) => node.id === id);
  const withGraph = (graph: Partial<GraphDocument>) => ({
    ...content,
    graph: { ...content.graph, ...graph },
  });
  switch (operation.op) {
    case "set_title":
      return { ...content, title: operation.title };
    case "add_node":
      return hasNode(operation.node.id) ? null : withGraph({ nodes: [...nodes, operation.node] });
    case "update_node":
      if (!hasNode(operation.id)) return null;
      return withGraph({
        nodes: nodes.map((node) =>
          node.id === operation.id ? (applyMergePatch(node, operation.set) as NodeDocument) : node,
        ),
      });
    case "remove_node":
      return hasNode(operation.id) ? withGraph(withoutNode(content.graph, operation.id)) : null;
    case "add_edge": {
      const { source, target, data } = operation.edge;
      const edge = { ...operation.edge, data: { channel: "flow", ...data } };
      return hasNode(source) && hasNode(target) ? withGraph({ edges: [...edges, edge] }) : null;
    }
    case "remove_edge":
      return edges.some((edge) => edge.id === operation.id)
        ? withGraph({ edges: edges.filter((edge) => edge.id !== operation.id) })
        : null;
  }
}

function withoutNode({ nodes, edges }: GraphDocument, id: string): GraphDocument {
  return {
    nodes: nodes.filter((node) => node.id !== id),
    edges: edges.filter((edge) => edge.source !== id && edge.target !== id),
  };
}
