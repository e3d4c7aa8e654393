import type { GraphDocument, NodeStatus } from "@/api/types";
import { planChangeWords, planSteps } from "@/canvas/planSteps";
import type { PlanChange, PlanRefusal, RunState } from "@/stream/runState";
import { formatTime } from "@/ui/format";
import { principalWords } from "@/ui/principalWords";

/** A moment of the plan of a run: 0 as it was made, 1 with its first change; null is now. */
export type PlanMoment = number | null;

type Changed = Pick<RunState, "graph" | "changes">;

/** Returns the graphs before and after a moment, the same of a plan as it was made; null where they are not known. */
export function graphsAt(
  { graph, changes }: Changed,
  moment: number,
): { before: GraphDocument; after: GraphDocument } | null {
  if (moment < 0) return null;
  const before = changes[Math.max(0, moment - 1)]?.before ?? null;
  const after = moment === 0 ? before : (changes[moment]?.before ?? graph);
  return before && after && { before, after };
}

/** "as made", "change 2 of 3, 10:31:02: 1 new, 1 dropped", "now" */
export function momentWords(run: Changed, moment: PlanMoment): string {
  if (moment === null) return "now";
  if (moment === 0) return "as made";
  const change = run.changes[moment - 1];
  const at = change ? `, ${formatTime(new Date(change.at), true)}` : "";
  const graphs = graphsAt(run, moment);
  const words = graphs && planChangeWords(planSteps(graphs.before, graphs.after));
  return `change ${moment} of ${run.changes.length}${at}${words ? `: ${words}` : ""}`;
}

/** "Change 1, 10:31:02, by the operator: also cover costs" */
export function changeTitle({ number, at, note, revisedBy }: PlanChange): string {
  const by = revisedBy ? `, by ${principalWords(revisedBy)}` : "";
  return `Change ${number}, ${formatTime(new Date(at), true)}${by}${note ? `: ${note}` : ""}`;
}

/** "Not changed, 10:31:02: No other source is known." */
export function refusalTitle({ at, error }: PlanRefusal): string {
  return `Not changed, ${formatTime(new Date(at), true)}${error ? `: ${error.message}` : ""}`;
}

/** Returns the status of a step as it is now, or as it was when a change dropped it; undefined of one that never began. */
export function statusAt(
  { nodes, changes }: Pick<RunState, "nodes" | "changes">,
  id: string,
): NodeStatus | undefined {
  const dropped = changes.flatMap((change) => change.dropped).find((node) => node.id === id);
  return (nodes.get(id) ?? dropped)?.status;
}
