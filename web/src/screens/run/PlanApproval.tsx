import type { OpenRequestResponse } from "@/api/types";
import { BUDGET } from "@/stream/budget";
import { fieldOf } from "@/stream/json";
import type { RunState } from "@/stream/runState";
import { ButtonLink } from "@/ui/Button";
import { OpenRequest } from "./OpenRequest";
import styles from "./OpenRequest.module.css";

/** Returns the request that a run itself makes, if it is open: about its plan, or its budget. */
export function planRequestOf(run: RunState): OpenRequestResponse | undefined {
  for (const request of run.requests.values()) if (request.path === null) return request;
  return undefined;
}

/** The plan is to be approved before anything runs, here, or edited first; or the budget is raised. */
export function PlanApproval({ run, now }: { run: RunState; now: number }) {
  const request = planRequestOf(run);
  if (!request) return null;
  return (
    <>
      <OpenRequest executionId={run.executionId} request={request} now={now} without="edit" />
      {run.planId && fieldOf(request.request, "kind") !== BUDGET && (
        <p className={styles.edit}>
          <ButtonLink small icon="edit" to={`/plans/${run.planId}`}>
            Edit the plan
          </ButtonLink>
        </p>
      )}
    </>
  );
}
