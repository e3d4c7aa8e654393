import { useMemo } from "react";
import { useDiff, useLastCompleted } from "@/api/queries";
import type { RunState } from "@/stream/runState";
import { type EarlierTimes, earlierTimes, NO_TIMES } from "./forecast";

/** How long the steps of a run took in the last completed run of its plan; asked for while it runs. */
export function useEarlierTimes(run: RunState): EarlierTimes {
  const isOpen = run.status === "executing";
  const last = useLastCompleted(isOpen ? run.planId : null).data;
  const nodes = useDiff(last?.execution_id ?? null, isOpen ? run.executionId : null).data?.nodes;
  return useMemo(() => (nodes ? earlierTimes(nodes) : NO_TIMES), [nodes]);
}
