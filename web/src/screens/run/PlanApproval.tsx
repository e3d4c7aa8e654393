import { usePlan } from "@/api/queries";
import type { OpenRequestResponse } from "@/api/types";
import { ChangeRequest } from "@/screens/approvals/ChangeRequest";
import { PLAN_APPROVAL } from "@/screens/approvals/requestWords";
import { useTakeRevision } from "@/screens/approvals/useTakeRevision";
import { fieldOf } from "@/stream/json";
import type { RunState } from "@/stream/runState";
import { Button, ButtonLink } from "@/ui/Button";
import { OpenRequest } from "./OpenRequest";
import styles from "./OpenRequest.module.css";

/** Returns the request that a run itself makes, if it is open: about its plan, a change of it, or its budget. */
export function planRequestOf(run: RunState): OpenRequestResponse | undefined {
  for (const request of run.requests.values()) if (request.path === null) return request;
  return undefined;
}

/** The plan is to be approved before anything runs, here, or edited first; a change of it is; or the budget is raised. */
export function PlanApproval({ run, now }: { run: RunState; now: number }) {
  const request = planRequestOf(run);
  if (!request) return null;
  return (
    <>
      <OpenRequest executionId={run.executionId} request={request} now={now} without="edit">
        <ChangeRequest request={request} graph={run.graph} />
      </OpenRequest>
      {run.planId && fieldOf(request.request, "kind") === PLAN_APPROVAL && (
        <EditPlan run={run} planId={run.planId} requestId={request.request_id} />
      )}
    </>
  );
}

type EditPlanProps = { run: RunState; planId: string; requestId: string };

/** The way to the editor; where the plan was changed meanwhile, the way to run it as it is now. */
function EditPlan({ run, planId, requestId }: EditPlanProps) {
  const plan = usePlan(planId).data;
  const request = { execution_id: run.executionId, request_id: requestId };
  const { take, isTaking } = useTakeRevision(request);
  const isChanged = plan !== undefined && run.planHash !== null && plan.hash !== run.planHash;
  return (
    <>
      {isChanged && (
        <p className={styles.edit}>
          The plan was changed since this was asked. Approve runs it as it was.
        </p>
      )}
      <p className={styles.edit}>
        {isChanged && (
          <>
            <Button
              small
              onClick={() => take(plan.hash)}
              disabledReason={isTaking ? "Sending …" : undefined}
            >
              Take revision {plan.revision} instead
            </Button>{" "}
          </>
        )}
        <ButtonLink small icon="edit" to={`/plans/${planId}`}>
          Edit the plan
        </ButtonLink>
      </p>
    </>
  );
}
