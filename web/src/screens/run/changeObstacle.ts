import type { ExecutionResponse } from "@/api/types";
import type { RunState } from "@/stream/runState";

type Run = Pick<RunState, "startedAt" | "endedAt" | "options">;

/** Returns why the plan of a run cannot be changed, in the order in which the service looks at it; undefined where it can.
 *
 * @param approval The approval that its plan needs, which holds for the plan as it is. */
export function changeObstacle(
  { startedAt, endedAt, options }: Run,
  { approval }: Pick<ExecutionResponse, "approval">,
): string | undefined {
  const { run_to = [], run_from = [] } = options ?? {};
  if (endedAt !== null) return "The run has ended";
  if (startedAt === null) return "The run has not started yet";
  if (approval !== null) return "Its plan needs an approval, which holds for the plan as it is";
  if (run_to.length + run_from.length > 0) return "The run is of a part of its plan only";
  return undefined;
}
