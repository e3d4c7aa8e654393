import type {
  EdgeDocument,
  GraphChangeDocument,
  GraphDocument,
  NodeDocument,
  NodeStatus,
  PlanChangeResponse,
  PlanRequestedData,
  PlanRevisedData,
  PlanRevisedEvent,
} from "@/api/types";
import type { Draft } from "@/stream/draft";
import { type NodeState, newNodeState, type PlanChange } from "@/stream/runState";

/** The statuses that a node without a start can have. */
const OPEN: ReadonlySet<NodeStatus> = new Set<NodeStatus>([
  "pending",
  "skipped",
  "blocked",
  "cancelled",
  "linked",
  "not_reached",
]);

/** Return whether a node was started, was cancelled by itself, or has a preset or a reused result. */
export function hasBegun(node: Pick<NodeState, "attempt" | "startedAt" | "status">): boolean {
  const isCancelled = node.status === "cancelled" && node.attempt > 0;
  return isCancelled || node.startedAt !== null || !OPEN.has(node.status);
}

/**
 * Take a change of the graph into the state, as the service does: nodes that never began are as new, or
 * gone; what had begun and is dropped stays with the change, with what ran inside it.
 */
export function changePlan(draft: Draft, { at, data }: PlanRevisedEvent): void {
  const { state } = draft;
  const { graph_change: change, floor } = data;
  const left = new Map(state.nodes);
  const dropped = new Set(change.dropped_nodes);
  const gone = [...left.values()].filter(({ path }) => dropped.has(path.split("[")[0] ?? path));
  for (const { path } of gone) left.delete(path);
  const before = state.graph ?? NO_GRAPH;
  state.changes = [...state.changes, changeOf(data, at, before, gone.filter(hasBegun))];
  state.graph = changedGraph(before, change);
  state.planHash = data.hash;
  const floors = new Map(state.floors);
  const own = state.graph.nodes.map((document) => {
    const node = left.get(document.id);
    left.delete(document.id);
    if (node !== undefined && hasBegun(node)) return node;
    floors.set(document.id, floor);
    return nodeOfDocument(document);
  });
  for (const id of change.dropped_nodes) floors.delete(id);
  state.floors = floors;
  draft.replaceNodes([...own, ...left.values()]); // nested nodes come last, as before
}

const NO_GRAPH: GraphDocument = { nodes: [], edges: [] };

function changeOf(
  data: PlanRevisedData,
  at: string,
  before: GraphDocument,
  dropped: readonly NodeState[],
): PlanChange {
  return {
    number: data.change,
    at,
    note: data.note ?? "",
    revisedBy: data.revised_by ?? null,
    graphChange: data.graph_change,
    before,
    dropped,
  };
}

/** Return a change as a snapshot has it; `nodeOf` gives the state of a node that it dropped. */
export function changeOfSnapshot(
  told: PlanChangeResponse,
  nodeOf: (node: PlanChangeResponse["dropped"][number]) => NodeState,
): PlanChange {
  return {
    number: told.change,
    at: told.at,
    note: told.note,
    revisedBy: told.revised_by,
    graphChange: told.graph_change,
    before: null,
    dropped: told.dropped.map(nodeOf),
  };
}

function nodeOfDocument({ id, name, type }: NodeDocument): NodeState {
  return { ...newNodeState(id), name: name || id, type };
}

/** Return a graph after a change: changed nodes and edges stay in their places, new ones come last. */
export function changedGraph(before: GraphDocument, change: GraphChangeDocument): GraphDocument {
  return {
    nodes: changed<NodeDocument>(before.nodes, change.nodes, change.dropped_nodes),
    edges: changed<EdgeDocument>(before.edges, change.edges, change.dropped_edges),
  };
}

function changed<Item extends { id?: string | null | undefined }>(
  items: readonly Item[],
  added: readonly Item[],
  dropped: readonly string[],
): Item[] {
  const byId = new Map(items.map((each) => [each.id ?? "", each]));
  for (const id of dropped) byId.delete(id);
  for (const each of added) byId.set(each.id ?? "", each);
  return [...byId.values()];
}

/** Return what a change of a graph was, in the words of the service's logs. */
export function changeText({ graph_change: change, note }: PlanRevisedData): string {
  const told = [
    ["new or changed", change.nodes.map(({ id }) => id)] as const,
    ["dropped", change.dropped_nodes] as const,
  ]
    .filter(([, ids]) => ids.length > 0)
    .map(([word, ids]) => `${word} ${ids.join(", ")}`);
  return `${told.join("; ") || "other edges"}${note ? ` - ${note}` : ""}`;
}

const REQUESTED_BY = {
  failure: (path: string) => `is being written as ${path} failed`,
  node: (path: string) => `is being written as ${path} asks for it`,
  person: () => "is proposed by a person",
};

/** Return what is said of a change that was requested, in the words of the service's logs. */
export function requestOfChange({ by, path, request, writer }: PlanRequestedData): string {
  const why = writer ? "is being written as a person asks for it" : REQUESTED_BY[by](path ?? "");
  return request ? `${why}: ${request}` : why;
}
