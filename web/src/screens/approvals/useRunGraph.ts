import { useExecution, useFlow, usePlan } from "@/api/queries";
import type { GraphDocument, PlanResponse } from "@/api/types";

/** The graph that a run runs: null until it is known, and where its plan was changed since. */
export function useRunGraph(executionId: string): {
  graph: GraphDocument | null;
  /** The plan of the run as it is now. */
  plan: PlanResponse | null;
  /** The plan was changed since. */
  isChanged: boolean;
} {
  const execution = useExecution(executionId).data;
  const plan = usePlan(execution?.plan_id ?? null).data ?? null;
  const hasFlow = execution?.flow_version != null;
  const flow = useFlow(hasFlow ? execution.flow_id : null, execution?.flow_version ?? null).data;
  if (flow) return { graph: flow.graph, plan: null, isChanged: false };
  const isSame = plan !== null && plan.hash === execution?.plan_hash;
  return { graph: isSame ? plan : null, plan, isChanged: plan !== null && !isSame };
}
