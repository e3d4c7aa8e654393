import { useState } from "react";
import { errorText } from "@/api/errorText";
import { isEnded, titleOf } from "@/api/executionSummary";
import { type BulkFailure, useBulk } from "@/api/mutations";
import type { ExecutionSummary } from "@/api/types";
import styles from "@/screens/runs/BulkBar.module.css";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { formatAmount } from "@/ui/format";
import { Note } from "@/ui/Note";

interface BulkBarProps {
  /** The runs that are selected. */
  runs: readonly ExecutionSummary[];
  onAll: () => void;
  /** Nothing is selected any more but these, which something could not be done with. */
  onDone: (left: readonly string[]) => void;
  onClose: () => void;
}

/** What can be done with all selected runs; those that it cannot be done with stay selected and say why. */
export function BulkBar({ runs, onAll, onDone, onClose }: BulkBarProps) {
  const [asks, setAsks] = useState(false);
  const [failures, setFailures] = useState<readonly BulkFailure[]>([]);
  const cancel = useBulk("cancel");
  const remove = useBulk("delete");
  const running = runs.filter((run) => !isEnded(run));
  const ended = runs.filter(isEnded);
  const act = (bulk: typeof cancel, chosen: readonly ExecutionSummary[]) =>
    bulk.mutate(
      chosen.map((run) => run.execution_id),
      {
        onSuccess: (failed) => {
          setFailures(failed);
          onDone(failed.map((each) => each.executionId));
        },
      },
    );
  const isBusy = cancel.isPending || remove.isPending;
  const names = new Map(runs.map((run) => [run.execution_id, titleOf(run)]));
  return (
    <section className={styles.bar} aria-label="Selected runs">
      <p role="status" id="selected-runs">
        <b>{formatAmount(runs.length, "run")}</b> selected{" "}
        <span className={styles.aside}>
          {isBusy ? "at work" : whatCannotBeDone(running.length, ended.length)}
        </span>
      </p>
      <Button small onClick={onAll}>
        Select all shown
      </Button>
      <Button
        small
        icon="stop"
        disabledBy={isBusy || running.length === 0 ? "selected-runs" : undefined}
        onClick={() => act(cancel, running)}
      >
        Cancel {running.length > 0 && running.length}
      </Button>
      <Button
        small
        kind="danger"
        icon="trash"
        disabledBy={isBusy || ended.length === 0 ? "selected-runs" : undefined}
        onClick={() => setAsks(true)}
      >
        Delete {ended.length > 0 && ended.length}
      </Button>
      <span className={styles.done}>
        <Button small kind="quiet" onClick={onClose}>
          Done
        </Button>
      </span>
      {failures.length > 0 && (
        <Note kind="error" alert>
          <ul className={styles.failures}>
            {[...byReason(failures)].map(([reason, [first = "", ...others]]) => (
              <li key={reason}>
                <b>
                  {others.length > 0
                    ? formatAmount(others.length + 1, "run")
                    : (names.get(first) ?? first)}
                </b>
                : {reason}
              </li>
            ))}
          </ul>
        </Note>
      )}
      <Dialog
        open={asks}
        onClose={() => setAsks(false)}
        title={`Delete ${formatAmount(ended.length, "run")}`}
        footer={
          <>
            <Button onClick={() => setAsks(false)}>Keep them</Button>
            <Button
              kind="danger"
              icon="trash"
              onClick={() => {
                setAsks(false);
                act(remove, ended);
              }}
            >
              Delete
            </Button>
          </>
        }
      >
        <p>
          They go with their events, results and stored JSON. Their plans stay. Nothing brings the
          runs back.
        </p>
      </Dialog>
    </section>
  );
}

/** Which runs each reason is that of: they stay selected, so that many need no name here. */
function byReason(failures: readonly BulkFailure[]): Map<string, string[]> {
  const runs = new Map<string, string[]>();
  for (const { executionId, error } of failures) {
    const reason = errorText(error);
    runs.set(reason, [...(runs.get(reason) ?? []), executionId]);
  }
  return runs;
}

/** Why a button cannot be used, or not for all: it stands once for both, in the line above them. */
function whatCannotBeDone(running: number, ended: number): string {
  if (running + ended === 0) return "";
  if (running === 0) return "none of them runs";
  if (ended === 0) return "none of them has ended";
  return `${running} not ended: cancel first`;
}
