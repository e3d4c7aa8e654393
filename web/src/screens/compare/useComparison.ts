import { useMemo } from "react";
import { useDiff, useDocument } from "@/api/queries";
import type { DocumentResponse } from "@/api/types";
import { nodesOf, type Pair, type StepPair, stepsOf } from "@/screens/compare/comparison";

interface Comparison {
  runs: Pair<DocumentResponse>;
  /** The steps that ran in either run. */
  steps: readonly StepPair[];
  /** The nodes of both graphs, those that others only use included. */
  nodes: readonly StepPair[];
}

/** Two runs beside each other, once all of it is there. */
export function useComparison(a: string, b: string) {
  const ofA = useDocument(a);
  const ofB = useDocument(b);
  const difference = useDiff(a, b);
  const comparison = useMemo((): Comparison | null => {
    if (!ofA.data || !ofB.data || !difference.data) return null;
    const runs = [ofA.data, ofB.data] as const;
    return {
      runs,
      steps: stepsOf(runs, difference.data),
      nodes: nodesOf(runs, difference.data),
    };
  }, [ofA.data, ofB.data, difference.data]);
  return { comparison, error: ofA.error ?? ofB.error ?? difference.error };
}
