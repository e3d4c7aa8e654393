import { Link } from "react-router";
import { useExecution, useRequests } from "@/api/queries";
import type { PendingRequest } from "@/api/types";
import { readRequest } from "@/inspector/requestFields";
import { readPlanRequest } from "@/screens/approvals/planRequestFields";
import { PLAN_APPROVAL } from "@/screens/approvals/requestWords";
import { useTakeRevision } from "@/screens/approvals/useTakeRevision";
import { Button } from "@/ui/Button";
import { Note } from "@/ui/Note";
import type { EditorStore, SavedPlan } from "./editorStore";

type WaitingRunProps = {
  planId: string;
  store: Pick<EditorStore, "getState">;
  saved: SavedPlan;
  /** Why the plan cannot run, if so. */
  blocked: string | undefined;
  flush: () => Promise<boolean>;
};

/** Says that a run waits for the approval of this plan, and lets it take what was changed. */
export function WaitingRun(props: WaitingRunProps) {
  const pages = useRequests().data?.pages ?? [];
  const request = pages
    .flatMap((page) => page.requests)
    .find((each) => isAbout(each, props.planId));
  return request ? <Waiting {...props} request={request} /> : null;
}

function isAbout(request: PendingRequest, planId: string): boolean {
  const { kind } = readRequest(request);
  return kind === PLAN_APPROVAL && readPlanRequest(request).planId === planId;
}

function Waiting({
  request,
  store,
  saved,
  blocked,
  flush,
}: WaitingRunProps & { request: PendingRequest }) {
  const { execution_id } = request;
  const before = useExecution(execution_id).data?.plan_hash;
  const { take, isTaking } = useTakeRevision(request);
  const isChanged = before != null && before !== saved.hash;
  const takeIt = async () => {
    if (await flush()) take(store.getState().saved.hash);
  };
  return (
    <Note kind="warning">
      {isChanged
        ? "A run waits for the approval of this plan as it was before. "
        : "A run waits for the approval of this plan. "}
      {isChanged && (
        <Button
          small
          onClick={() => void takeIt()}
          disabledReason={blocked ?? (isTaking ? "Sending …" : undefined)}
        >
          Take revision {saved.revision} instead
        </Button>
      )}{" "}
      <Link to={`/runs/${execution_id}`}>Open the run</Link>
    </Note>
  );
}
