import type { EdgeDocument, ForecastResponse, GraphDocument } from "@/api/types";
import type { ForkKind } from "./forkChange";

type Effect = ForecastResponse["effects"][number];

/** A step that acts on the world in the new run: itself, or as a tool of an agent that runs again. */
export type ForkEffect = { node: string; name: string; effect: Effect["effect"] };

/** Returns what acts on the world in a fork in which one step changes, as far as steps may run again.
 *
 * @param effects Those of all steps of the graph, as the service forecasts them. */
export function forkEffects(
  graph: GraphDocument,
  effects: readonly Effect[],
  kind: ForkKind,
  id: string,
): ForkEffect[] {
  const again = withLinked(graph, stepsAgain(graph, kind, id));
  const names = new Map(graph.nodes.map((node) => [node.id, node.name || node.id]));
  const found = new Map<string, ForkEffect>();
  for (const { node, effect } of effects) {
    if (!again.has(node) || found.get(node)?.effect === "once") continue;
    found.set(node, { node, name: names.get(node) ?? node, effect });
  }
  return [...found.values()];
}

/** The steps that may run again: the changed one, and all that depend on it. */
function stepsAgain(graph: GraphDocument, kind: ForkKind, id: string): Set<string> {
  const reached = reach(graph, id, (edge) => [edge.source, edge.target]);
  if (kind === "output") reached.delete(id);
  return reached;
}

/** Steps with everything that is linked into them. */
function withLinked(graph: GraphDocument, steps: ReadonlySet<string>): Set<string> {
  const all = new Set(steps);
  for (const step of steps) {
    const linked = reach(graph, step, (edge) =>
      edge.data.channel === "link" ? [edge.target, edge.source] : null,
    );
    for (const each of linked) all.add(each);
  }
  return all;
}

/** What can be reached from a node along edges, as each is gone along. */
function reach(
  graph: GraphDocument,
  start: string,
  along: (edge: EdgeDocument) => [from: string, to: string] | null,
): Set<string> {
  const ways = graph.edges.flatMap((edge) => {
    const way = along(edge);
    return way ? [way] : [];
  });
  const reached = new Set([start]);
  for (const node of reached) {
    for (const [from, to] of ways) if (from === node) reached.add(to);
  }
  return reached;
}
