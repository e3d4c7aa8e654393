import type { GraphDocument } from "@/api/types";
import { indexOfGraph, isFlow } from "@/stream/graphIndex";

export type WaveOptions = {
  /** Nodes that are never executed, besides those that have only outgoing links. */
  readonly linked?: Iterable<string>;
  /** Nodes that do not run. */
  readonly notReached?: Iterable<string>;
  /** The lowest waves of nodes, by id. */
  readonly floors?: ReadonlyMap<string, number>;
};

/**
 * Return the ids of a graph's nodes by wave, in graph order, as the service numbers them: wave 1 is
 * first. Nodes with preset results are in the wave of their depth. Nodes that are linked or in a cycle,
 * and those that do not run, are in none.
 */
export function wavesOf(graph: GraphDocument, options: WaveOptions = {}): string[][] {
  const linked = new Set([...linkedNodes(graph), ...(options.linked ?? [])]);
  const done = new Set(options.notReached ?? []);
  const depths = depthsOf(graph, linked, done, options.floors ?? new Map());
  const waves: string[][] = [];
  for (const { id } of graph.nodes) {
    const depth = depths.get(id);
    if (depth === undefined || linked.has(id) || done.has(id)) continue;
    while (waves.length <= depth) waves.push([]);
    waves[depth]?.push(id);
  }
  return waves;
}

/** Return how many executed nodes each node waits for in a row, or more where its wave has a floor; `done` are
 * waited for no more. */
function depthsOf(
  graph: GraphDocument,
  linked: ReadonlySet<string>,
  done: ReadonlySet<string>,
  floors: ReadonlyMap<string, number>,
) {
  const edges = effectiveEdges(graph, linked);
  const depths = new Map<string, number>();
  for (const node of sorted(graph, edges.outgoing, edges.incoming)) {
    const sources = (edges.incoming.get(node) ?? []).filter((source) => !done.has(source));
    const below = sources.map((source) => (depths.get(source) ?? 0) + (linked.has(source) ? 0 : 1));
    depths.set(
      node,
      below.reduce((deepest, each) => Math.max(deepest, each), (floors.get(node) ?? 1) - 1),
    );
  }
  return depths;
}

/**
 * Return the nodes that others only use: they have outgoing edges, and all of these are links. A node
 * that one of its users feeds runs after it, as a stage.
 */
export function linkedNodes(graph: GraphDocument): Set<string> {
  const { outgoing } = indexOfGraph(graph);
  const linked = new Set(
    [...outgoing].filter(([, edges]) => !edges.some(isFlow)).map(([id]) => id),
  );
  for (const stage of stagesAfterUsers(graph, linked)) linked.delete(stage);
  return linked;
}

/** Return the linked nodes that would wait for their own users. */
function stagesAfterUsers(graph: GraphDocument, linked: ReadonlySet<string>): string[] {
  const fed = graph.edges.filter(
    (edge) => isFlow(edge) && linked.has(edge.target) && !linked.has(edge.source),
  );
  if (fed.length === 0) return [];
  const { outgoing } = effectiveEdges(graph, linked);
  return fed
    .filter(({ source, target }) => reachedFrom(target, outgoing).has(source))
    .map(({ target }) => target);
}

function reachedFrom(start: string, outgoing: Neighbours): Set<string> {
  const reached = new Set<string>();
  const pending = [start];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    for (const next of outgoing.get(node) ?? []) {
      if (!reached.has(next)) pending.push(next);
      reached.add(next);
    }
  }
  return reached;
}

type Neighbours = Map<string, string[]>;

/** Return the dependencies of nodes: all flow edges, and the links of nodes that wait for others. */
function effectiveEdges(graph: GraphDocument, linked: ReadonlySet<string>) {
  const { nodes } = indexOfGraph(graph);
  const gates = gatesOf(graph, linked);
  const incoming: Neighbours = new Map();
  const outgoing: Neighbours = new Map();
  for (const edge of graph.edges) {
    if (!nodes.has(edge.source) || !nodes.has(edge.target)) continue;
    if (linked.has(edge.source) ? !gates.has(edge.source) : !isFlow(edge)) continue;
    add(outgoing, edge.source, edge.target);
    add(incoming, edge.target, edge.source);
  }
  return { incoming, outgoing };
}

/** Return the linked nodes that wait for another node. */
function gatesOf(graph: GraphDocument, linked: ReadonlySet<string>): Set<string> {
  const gates = new Set<string>();
  const feeds: Neighbours = new Map();
  for (const edge of graph.edges) {
    if (!linked.has(edge.target)) continue;
    if (linked.has(edge.source)) add(feeds, edge.source, edge.target);
    else if (isFlow(edge)) gates.add(edge.target);
  }
  const pending = [...gates];
  for (let gate = pending.pop(); gate !== undefined; gate = pending.pop()) {
    for (const target of feeds.get(gate) ?? []) {
      if (!gates.has(target)) pending.push(target);
      gates.add(target);
    }
  }
  return gates;
}

/** Return the ids in topological order; those in a cycle are left out. */
function sorted(graph: GraphDocument, outgoing: Neighbours, incoming: Neighbours): string[] {
  const open = new Map(graph.nodes.map(({ id }) => [id, incoming.get(id)?.length ?? 0]));
  const order = [...open].filter(([, count]) => count === 0).map(([id]) => id);
  for (const node of order) {
    for (const target of outgoing.get(node) ?? []) {
      const count = (open.get(target) ?? 0) - 1;
      open.set(target, count);
      if (count === 0) order.push(target);
    }
  }
  return order;
}

function add(groups: Neighbours, key: string, value: string): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [value]);
  else group.push(value);
}
