import { type GraphIndex, indexOfGraph, isFlow } from "@/stream/graphIndex";
import { hasBegun } from "@/stream/planChanges";
import type { NodeState, RunState } from "@/stream/runState";

/** Why a step of a run stays as it is; one that failed may still be taken out. */
export type FixedStep = { readonly why: string; readonly canRemove: boolean };

export type FixedSteps = ReadonlyMap<string, FixedStep>;

export const NOTHING_FIXED: FixedSteps = new Map();

/** Returns the steps of a run that cannot be changed any more, by id: those that have begun, what is linked into them,
 * and what was skipped before them. The service decides; this is what it says. */
export function fixedSteps({ graph, nodes }: Pick<RunState, "graph" | "nodes">): FixedSteps {
  if (graph === null) return NOTHING_FIXED;
  const index = indexOfGraph(graph);
  const fixed = new Map<string, FixedStep>();
  for (const { id } of graph.nodes) {
    const node = nodes.get(id);
    if (node && hasBegun(node)) fixed.set(id, { why: wordsOf(node), canRemove: isSpent(node) });
  }
  const pending = [...fixed.keys()];
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    const name = index.nodes.get(id)?.name || id;
    for (const edge of edgesThatDecided(index, id, nodes.get(id))) {
      if (fixed.has(edge.source)) continue;
      const why = isFlow(edge) ? `“${name}” began without it` : `“${name}” uses it`;
      fixed.set(edge.source, { why, canRemove: false });
      pending.push(edge.source);
    }
  }
  return fixed;
}

/** Returns the edges into a step but those that have decided nothing: where one was enough, the others. */
function edgesThatDecided(index: GraphIndex, id: string, node: NodeState | undefined) {
  const edges = index.incoming.get(id) ?? [];
  if (index.nodes.get(id)?.policy?.join !== "any") return edges;
  return edges.filter((edge) => !isFlow(edge) || edge.id === node?.via);
}

/** Says what a change of a run cannot do: run again what has run, and have a last step that has begun read what is new. */
export function notRunAgain({ graph, nodes }: Pick<RunState, "graph" | "nodes">): string {
  const index = graph && indexOfGraph(graph);
  const ends = graph?.nodes.filter(({ id }) => {
    const node = nodes.get(id);
    const isLast = index?.incoming.get(id)?.some(isFlow) && !index.outgoing.get(id)?.some(isFlow);
    return isLast && node !== undefined && hasBegun(node) && !isSpent(node);
  });
  const stays = "What has run is not run again.";
  if (!ends?.length) return stays;
  const names = NAMES.format(ends.map(({ id, name }) => `“${name || id}”`));
  const [have, read] = ends.length === 1 ? ["has", "reads"] : ["have", "read"];
  return `${stays} ${names} ${have} begun and ${read} nothing new: a change of the end result needs a new last step.`;
}

const NAMES = new Intl.ListFormat("en");

function isSpent({ status, handled }: NodeState): boolean {
  return status === "cancelled" || (status === "failed" && !handled);
}

function wordsOf({ status }: NodeState): string {
  const isAtWork = status === "running" || status === "waiting" || status === "retrying";
  return isAtWork ? `it is ${status}` : status === "completed" ? "it is done" : `it ${status}`;
}
