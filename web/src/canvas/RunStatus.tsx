import { isWaiting, waitsForWords } from "@/api/executionSummary";
import type { ExecutionSummary } from "@/api/types";
import { Status } from "@/ui/Status";

/** The status of a run in a list: "Waiting for you" where a step asks, "Interrupted" where nobody runs it,
 * "Waits for a worker" where only some processes can, "Failed in part" where results are there all the same. */
export function RunStatus({ run }: { run: ExecutionSummary }) {
  if (isWaiting(run)) return <Status status="waiting">Waiting for you</Status>;
  if (run.waits_for) {
    return (
      <span title={waitsForWords(run.waits_for)}>
        <Status status="waiting">Waits for a worker</Status>
      </span>
    );
  }
  return <Status status={run.interrupted ? "interrupted" : (run.outcome ?? run.status)} />;
}
