import { Link } from "react-router";
import { isEnded, secondsOf, titleOf } from "@/api/executionSummary";
import { useExecutions } from "@/api/queries";
import type { ExecutionSummary } from "@/api/types";
import { RunStatus } from "@/canvas/RunStatus";
import { formatAmount, formatDuration, formatMoment } from "@/ui/format";
import { Skeleton } from "@/ui/Skeleton";
import styles from "./FlowScreen.module.css";

/** Runs that are listed; how often and how fast they end is told of the newest page. */
const SHOWN = 8;

/** The newest runs of a flow, how many of them succeeded, and how long one usually takes. */
export function FlowRuns({ planId }: { planId: string }) {
  const runs = useExecutions({ plan_id: planId }).data?.pages[0]?.executions;
  if (!runs) return <Skeleton label="Loading the runs" lines={3} />;
  if (runs.length === 0) return <p className={styles.faint}>It has not run yet.</p>;
  return (
    <>
      <p className={styles.faint}>{summaryWords(runs)}</p>
      <ol className={styles.versions} aria-label="Runs">
        {runs.slice(0, SHOWN).map((run) => (
          <li key={run.execution_id}>
            <Link to={`/runs/${run.execution_id}`} title={run.digest?.inputs || titleOf(run)}>
              <RunStatus run={run} />
              <span>{run.revision === null ? "changed" : `revision ${run.revision}`}</span>
              <span>{timeWords(run)}</span>
              <span className={styles.moment}>{formatMoment(new Date(run.created_at))}</span>
              {run.digest?.inputs && <span className={styles.given}>{run.digest.inputs}</span>}
            </Link>
          </li>
        ))}
      </ol>
    </>
  );
}

function timeWords(run: ExecutionSummary): string {
  const seconds = isEnded(run) ? secondsOf(run, 0) : null;
  return seconds === null ? "" : formatDuration(seconds);
}

/** Returns "9 of 10 runs succeeded; the median takes 24.9 s.". */
export function summaryWords(runs: readonly ExecutionSummary[]): string {
  const ended = runs.filter(isEnded);
  if (ended.length === 0) return "None has ended yet.";
  const completed = ended.filter(({ status }) => status === "completed");
  const times = completed
    .map((run) => secondsOf(run, 0))
    .filter((seconds) => seconds !== null)
    .sort((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  const usual = median === undefined ? "" : `; the median takes ${formatDuration(median)}`;
  return `${completed.length} of ${formatAmount(ended.length, "run")} succeeded${usual}.`;
}
