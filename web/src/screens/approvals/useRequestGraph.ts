import { useExecution, useFlow, usePlan, useRevision, useRevisions } from "@/api/queries";
import type { GraphDocument, PendingRequest, PlanResponse } from "@/api/types";
import { readPlanRequest } from "./planRequestFields";

/** The graph that a request is about: what its run runs, or the revision that was to be approved. */
export function useRequestGraph(request: PendingRequest): {
  /** Null until it is known. */
  graph: GraphDocument | null;
  /** The plan of the run as it is now. */
  plan: PlanResponse | null;
  /** The plan was changed since. */
  isChanged: boolean;
} {
  const execution = useExecution(request.execution_id).data;
  const plan = usePlan(execution?.plan_id ?? null).data ?? null;
  const hasFlow = execution?.flow != null && execution.revision != null;
  const flow = useFlow(hasFlow ? execution.plan_id : null, execution?.revision ?? null).data;
  const hash = readPlanRequest(request).planHash ?? execution?.plan_hash;
  const isChanged = plan !== null && plan.hash !== hash && !hasFlow;
  const revisions = useRevisions(isChanged ? plan.plan_id : null).data?.revisions;
  const number = revisions?.find((each) => each.hash === hash)?.revision ?? 0;
  const revision = useRevision(plan?.plan_id ?? "", number).data ?? null;
  if (flow) return { graph: flow.graph, plan: null, isChanged: false };
  return { graph: isChanged ? revision : plan, plan, isChanged };
}
