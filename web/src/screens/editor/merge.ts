import type { GraphDocument } from "@/api/types";
import { freeId } from "./graphEdits";
import {
  applyOperations,
  operationsBetween,
  type PlanContent,
  type PlanOperation,
} from "./operations";

export type Merge = {
  content: PlanContent;
  /** Own changes that no longer fit, in words: "the change of Assess way 3". */
  lost: string[];
};

/** Puts own changes, from `base` to `mine`, on top of what others have made of the plan meanwhile. */
export function merge(base: PlanContent, mine: PlanContent, theirs: PlanContent): Merge {
  const operations = withFreeIds(operationsBetween(base, mine), theirs.graph);
  const { content, refused } = applyOperations(theirs, operations);
  return { content, lost: refused.flatMap((each) => describe(each, mine.graph)) };
}

/** Gives new steps and edges other ids where somebody else has taken theirs meanwhile. */
function withFreeIds(operations: PlanOperation[], theirs: GraphDocument): PlanOperation[] {
  const nodeIds = new Set(theirs.nodes.map((node) => node.id));
  const edgeIds = new Set(theirs.edges.map((edge) => edge.id ?? ""));
  for (const operation of operations) {
    if (operation.op === "remove_edge") edgeIds.delete(operation.id);
  }
  const renamed = new Map<string, string>();
  const current = (id: string) => renamed.get(id) ?? id;
  const free = (taken: Set<string>, wanted: string) => {
    const id = freeId(taken, wanted);
    taken.add(id);
    return id;
  };
  return operations.map((operation) => {
    if (operation.op === "add_node") {
      const id = free(nodeIds, operation.node.id);
      renamed.set(operation.node.id, id);
      return { ...operation, node: { ...operation.node, id } };
    }
    if (operation.op !== "add_edge") return operation;
    const { edge } = operation;
    const ends = { source: current(edge.source), target: current(edge.target) };
    const id = edge.id && free(edgeIds, edge.id);
    return { ...operation, edge: { ...edge, ...ends, ...(id && { id }) } };
  });
}

/** What both have removed is no loss. */
function describe(refused: PlanOperation, mine: GraphDocument): string[] {
  const name = (id: string) => mine.nodes.find((node) => node.id === id)?.name || id;
  switch (refused.op) {
    case "update_node":
      return [`the change of ${name(refused.id)}`];
    case "add_edge":
      return [`the wire from ${name(refused.edge.source)} to ${name(refused.edge.target)}`];
    default:
      return [];
  }
}
