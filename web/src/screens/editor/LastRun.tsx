import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "react-router";
import { isEnded } from "@/api/executionSummary";
import { call } from "@/api/http";
import { useExecute } from "@/api/mutations";
import { useLastRunOf } from "@/api/queries";
import { showError } from "@/api/showError";
import type { DocumentNode, ExecutionSummary, GraphDocument } from "@/api/types";
import { InputTab } from "@/inspector/InputTab";
import { Loaded } from "@/inspector/Loaded";
import { Output } from "@/inspector/OutputTab";
import { Button } from "@/ui/Button";
import { formatMoment } from "@/ui/format";
import { Note } from "@/ui/Note";
import { Status } from "@/ui/Status";
import styles from "./LastRun.module.css";
import { stepAlone } from "./stepAlone";

type LastRunProps = {
  planId: string;
  graph: GraphDocument;
  /** The id of the step. */
  id: string;
  /** Saves what was changed; returns whether that succeeded. */
  flush: () => Promise<boolean>;
  onSelect: (ids: string[]) => void;
};

type Found = { run: ExecutionSummary; node: DocumentNode };

/** What a step got and gave when it ran last; it can be run alone with what it got. */
export function LastRun(props: LastRunProps) {
  const { planId, id } = props;
  const last = useLastRunOf(planId, id);
  return (
    <Loaded query={last} label="Looking for the last run">
      {(found) =>
        found ? (
          <Values {...props} {...found} />
        ) : (
          <div className={styles.values}>
            <p>This step has not run yet.</p>
            <RunUpTo {...props} />
          </div>
        )
      }
    </Loaded>
  );
}

function Values({ run, node, onSelect, ...step }: LastRunProps & Found) {
  const at = run.started_at ?? run.created_at;
  return (
    <div className={styles.values}>
      <p className={styles.facts}>
        <Status status={node.status} />
        <Link to={`/runs/${run.execution_id}?step=${encodeURIComponent(node.path)}`}>
          {isEnded(run) ? "Run" : "Running"}, {formatMoment(new Date(at))}
        </Link>
      </p>
      <div className={styles.buttons}>
        <RunAlone {...step} run={run} />
        <RunUpTo {...step} />
      </div>
      <h3>It got</h3>
      <InputTab executionId={run.execution_id} node={node} onSelect={(path) => onSelect([path])} />
      <h3>It gave</h3>
      {node.error && <Note kind="error">{node.error}</Note>}
      {Object.entries(node.outputs ?? {}).map(([handle, output]) => (
        <Output key={handle} handle={handle} output={output} tokens={0} />
      ))}
    </div>
  );
}

/** Runs the step as it is now, and all before it, which it needs; what is not before it does not run. */
function RunUpTo({ planId, id, flush }: Omit<LastRunProps, "onSelect">) {
  const execute = useExecute();
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: async () => {
      if (!(await flush())) throw new Error("Not started: your last changes are not saved yet.");
      return execute.mutateAsync({ plan_id: planId, start: true, options: { run_to: [id] } });
    },
    onSuccess: (made) => navigate(`/runs/${made.execution_id}`),
    onError: showError,
  });
  return (
    <Button
      icon="play"
      onClick={() => start.mutate()}
      disabledReason={start.isPending ? "Starting …" : undefined}
    >
      Run up to here
    </Button>
  );
}

type RunAloneProps = Omit<LastRunProps, "onSelect"> & Pick<Found, "run">;

/** Runs the step as it is now; the steps before it give what they gave in the last run. */
function RunAlone({ planId, graph, id, flush, run }: RunAloneProps) {
  const execute = useExecute();
  const start = useMutation({
    mutationFn: async () => {
      if (!(await flush())) throw new Error("Not started: your last changes are not saved yet.");
      const read = (path: string) =>
        call("getNode", { path: { execution_id: run.execution_id, path } }).catch(() => null);
      const body = await stepAlone(graph, id, read);
      return execute.mutateAsync({ plan_id: planId, start: true, ...body });
    },
    onError: showError,
  });
  const isBusy = start.isPending || !isEnded(run);
  return (
    <Button
      icon="play"
      onClick={() => start.mutate()}
      disabledReason={isBusy ? "It runs." : undefined}
    >
      Run this step with what it got
    </Button>
  );
}
