import { useMemo, useState } from "react";
import { useNavigate } from "react-router";
import { useCheck, useForkPreview } from "@/api/checks";
import { isEnded } from "@/api/executionSummary";
import { useFork } from "@/api/mutations";
import { useDocument, useExecutions } from "@/api/queries";
import { showError } from "@/api/showError";
import type { ExecutionSummary, RunOptionsModel } from "@/api/types";
import { Button } from "@/ui/Button";
import { formatMoment } from "@/ui/format";
import { Note } from "@/ui/Note";
import { changedWords } from "./changedWords";
import type { EditorStore, SavedPlan } from "./editorStore";

type RunChangedProps = {
  planId: string;
  goal: string;
  store: Pick<EditorStore, "getState">;
  /** The plan as the service has it. */
  saved: SavedPlan;
  /** How to run, where that is not as before. */
  options: RunOptionsModel;
  /** Saves what was changed; returns whether that succeeded. */
  flush: () => Promise<boolean>;
};

/** Offers to run only what has changed since the last run of a plan, at once, and says before what that is. */
export function RunChanged(props: RunChangedProps) {
  const last = useExecutions({ plan_id: props.planId, limit: 1 }).data?.pages[0]?.executions[0];
  return last && isEnded(last) ? <Offer key={last.execution_id} {...props} last={last} /> : null;
}

function Offer({ last, ...props }: RunChangedProps & { last: ExecutionSummary }) {
  const { planId, goal, saved, store, options, flush } = props;
  const { execution_id } = last;
  const asked = useMemo(() => forkOf(planId, goal, saved), [planId, goal, saved]);
  // What blocks a run is of the check before until the one of this graph is there.
  const check = useCheck(saved.graph, goal);
  const isSound =
    !check.isPlaceholderData &&
    check.data?.diagnostics.every(({ severity }) => severity !== "error") === true;
  const preview = useForkPreview(execution_id, asked, isSound).data;
  const isWorth = preview !== undefined && preview.reused.length > 0 && hasChanges(preview);
  const nodes = useDocument(execution_id, isWorth).data?.nodes;
  const fork = useFork(execution_id);
  const navigate = useNavigate();
  const [isStarting, setStarting] = useState(false);
  if (!isWorth) return null;
  const begin = async () => {
    if (!(await flush())) throw new Error("Not started: your last changes are not saved yet.");
    const body = forkOf(planId, goal, store.getState().saved);
    const chosen = Object.keys(options).length > 0 ? { options } : {};
    const made = await fork.mutateAsync({ ...body, ...chosen, start: true });
    navigate(`/runs/${made.execution_id}`);
  };
  const start = async () => {
    if (isStarting) return;
    setStarting(true);
    await begin()
      .catch(showError)
      .finally(() => setStarting(false));
  };
  const at = formatMoment(new Date(last.started_at ?? last.created_at));
  return (
    <Note>
      {changedWords(preview, saved.graph, nodes, at)}{" "}
      <Button
        small
        icon="play"
        onClick={() => void start()}
        disabledReason={isStarting ? "Starting …" : undefined}
      >
        Run only what changed
      </Button>
    </Note>
  );
}

/** The graph of a plan, which its hash tells from one that was changed since. */
function forkOf(planId: string, goal: string, { graph, title }: SavedPlan) {
  return { graph: { ...graph, plan_id: planId, title, user_prompt: goal } };
}

function hasChanges({ runs, undecided }: { runs: string[]; undecided: string[] }): boolean {
  return runs.length + undecided.length > 0;
}
