import { useEffect } from "react";
import { useExecution } from "@/api/queries";
import type { WaitsForResponse } from "@/api/types";
import type { RunState } from "@/stream/runState";

/** No event says that a run waits for a process that can run it: it is asked while none comes. */
const QUIET_MS = 10_000;

/** What a run waits for that only some processes can do; undefined where it goes on. */
export function useWaitsFor(
  run: Pick<RunState, "executionId" | "status" | "lastSeq">,
): WaitsForResponse | undefined {
  const isActive = run.status === "starting" || run.status === "executing";
  const { data, dataUpdatedAt, refetch } = useExecution(run.executionId);
  const waits = isActive && data?.last_seq === run.lastSeq ? data.waits_for : undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each event and each answer begins it anew
  useEffect(() => {
    if (!isActive) return;
    const timer = setTimeout(refetch, QUIET_MS);
    return () => clearTimeout(timer);
  }, [isActive, run.lastSeq, dataUpdatedAt, refetch]);
  return waits;
}
