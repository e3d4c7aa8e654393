import { useNavigate } from "react-router";
import { useAnswer } from "@/api/mutations";
import { showError } from "@/api/showError";
import type { PendingRequest } from "@/api/types";

/** Has a run that waits for the approval of its plan take the plan as it is now: a new run, which
 * asks again, takes its place and is opened. */
export function useTakeRevision({
  execution_id,
  request_id,
}: Pick<PendingRequest, "execution_id" | "request_id">) {
  const answer = useAnswer();
  const navigate = useNavigate();
  // The events of the run may take the button off the page before the response is there.
  const take = (planHash: string) =>
    void answer
      .mutateAsync({
        executionId: execution_id,
        requestId: request_id,
        answer: { decision: "edit", note: "", value: { plan_hash: planHash } },
      })
      .then((made) => navigate(`/runs/${made.execution_id}`), showError);
  return { take, isTaking: answer.isPending };
}
