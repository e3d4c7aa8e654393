import { isWaiting } from "@/api/executionSummary";
import type { ExecutionSummary } from "@/api/types";
import { Status } from "@/ui/Status";

/** The status of a run in a list: "Waiting for you" where a step asks, "Interrupted" where nobody runs it. */
export function RunStatus({ run }: { run: ExecutionSummary }) {
  if (isWaiting(run)) return <Status status="waiting">Waiting for you</Status>;
  return <Status status={run.interrupted ? "interrupted" : run.status} />;
}
