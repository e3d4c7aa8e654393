import { PLAN_APPROVAL } from "@/screens/approvals/requestWords";
import { fieldOf } from "@/stream/json";
import type { RunState } from "@/stream/runState";

type Run = Pick<RunState, "startedAt" | "endedAt" | "options" | "requests">;

/** Returns why the plan of a run cannot be changed, in the order in which the service looks at it; undefined where it can. */
export function changeObstacle({ startedAt, endedAt, options, requests }: Run): string | undefined {
  const { run_to = [], run_from = [] } = options ?? {};
  if (endedAt !== null) return "The run has ended";
  if (startedAt === null) return "The run has not started yet";
  const asksForPlan = [...requests.values()].some(
    ({ path, request }) => path === null && fieldOf(request, "kind") === PLAN_APPROVAL,
  );
  if (asksForPlan) return "Its plan waits for an approval, which may change it";
  if (run_to.length + run_from.length > 0) return "The run is of a part of its plan only";
  return undefined;
}
