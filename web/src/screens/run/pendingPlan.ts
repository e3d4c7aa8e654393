import { useMemo } from "react";
import { useShallow } from "zustand/react/shallow";
import type { GraphChangeDocument, GraphDocument } from "@/api/types";
import { keyOf } from "@/canvas/graphUnion";
import { type PlanStep, planSteps } from "@/canvas/planSteps";
import type { EdgeStatus } from "@/canvas/WaveEdge";
import { isObject } from "@/json";
import { PLAN_CHANGE } from "@/screens/approvals/requestWords";
import { changedGraph } from "@/stream/planChanges";
import { useRun } from "@/stream/RunProvider";
import type { RunState } from "@/stream/runState";
import { linkedNodes, wavesOf } from "@/stream/waves";
import { writtenGraph } from "@/stream/writtenChange";
import { edgeId } from "./edgeStatus";

/** A change of the plan of a run that is not made yet, laid over the plan. */
export type PendingPlan = {
  /** All steps and edges, those that it drops among them. */
  graph: GraphDocument;
  waves: readonly (readonly string[])[];
  /** The steps that do not stay as they are, by id. */
  steps: ReadonlyMap<string, PlanStep>;
  /** The edges that it adds or drops, by the id under which they are drawn. */
  edges: ReadonlyMap<string, EdgeStatus>;
};

/** Returns the change that a model writes, as far as it has come, or that a person is asked about; null without one. */
export function usePendingPlan(): PendingPlan | null {
  const before = useRun((run) => run.graph);
  const asked = useRun(changeAskedAbout);
  const written = useRun((run) => (run.planRequest ? run.writtenChange.tail : ""));
  const waves = useRun(useShallow((run: RunState) => run.waves.map(({ nodes }) => nodes)));
  const begun = useRun((run) => run.waves.findLastIndex((wave) => wave.startedAt !== null) + 1);
  return useMemo(() => {
    if (before === null) return null;
    const after = asked ? changedGraph(before, asked) : writtenGraph(before, written);
    return after === before ? null : pendingPlan(before, after, waves, begun);
  }, [before, asked, written, waves, begun]);
}

function changeAskedAbout({ requests }: RunState): GraphChangeDocument | null {
  for (const { request } of requests.values()) {
    if (isObject(request) && request.kind === PLAN_CHANGE && isObject(request.graph_change))
      return request.graph_change as GraphChangeDocument;
  }
  return null;
}

/** Lays a graph over the one before it; new steps come in no wave before the last that has `begun`, from 1. */
export function pendingPlan(
  before: GraphDocument,
  after: GraphDocument,
  waves: readonly (readonly string[])[],
  begun: number,
): PendingPlan {
  const steps = planSteps(before, after);
  const [old, now] = [keysOf(before), keysOf(after)];
  // A wire that was moved has the id that it had.
  const added = after.edges
    .filter((edge) => !old.has(keyOf(edge)))
    .map((edge) => ({ ...edge, id: `new ${keyOf(edge)}` }));
  const graph = { nodes: steps.map(({ node }) => node), edges: [...before.edges, ...added] };
  return {
    graph,
    waves: pendingWaves(before, after, waves, begun),
    steps: new Map(
      steps.flatMap((step) => (step.change === "same" ? [] : [[step.node.id, step] as const])),
    ),
    edges: new Map(
      graph.edges.flatMap((edge, index) => {
        const status = statusOf(old.has(keyOf(edge)), now.has(keyOf(edge)));
        return status ? [[edgeId(edge, index), status] as const] : [];
      }),
    ),
  };
}

function keysOf({ edges }: GraphDocument): ReadonlySet<string> {
  return new Set(edges.map(keyOf));
}

function statusOf(wasThere: boolean, isThere: boolean): EdgeStatus | null {
  if (wasThere && isThere) return null;
  return isThere ? "added" : "removed";
}

/** Steps that there are stay in their waves, or come later; those that are dropped stay, too. */
function pendingWaves(
  before: GraphDocument,
  after: GraphDocument,
  waves: readonly (readonly string[])[],
  begun: number,
): string[][] {
  const waveOf = new Map(waves.flatMap((ids, index) => ids.map((id) => [id, index + 1] as const)));
  const known = new Set(before.nodes.map(({ id }) => id));
  const linked = linkedNodes(before);
  const floors = new Map(
    after.nodes.map(({ id }) => [id, known.has(id) ? (waveOf.get(id) ?? 1) : begun] as const),
  );
  const notReached = [...known].filter((id) => !waveOf.has(id) && !linked.has(id));
  const planned = wavesOf(after, { floors, notReached });
  const present = new Set(after.nodes.map(({ id }) => id));
  const count = Math.max(planned.length, waves.length);
  return Array.from({ length: count }, (_, index) => {
    const all = new Set(planned[index]);
    for (const id of waves[index] ?? []) if (!present.has(id)) all.add(id);
    return [...known, ...all].filter((id) => all.delete(id)); // in the order of the steps
  });
}
