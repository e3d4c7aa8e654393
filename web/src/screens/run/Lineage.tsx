import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { Link } from "react-router";
import { call } from "@/api/http";
import { queryKeys } from "@/api/queryKeys";
import type { ExecutionResponse } from "@/api/types";
import type { RunState } from "@/stream/runState";
import { formatMoment, formatTime } from "@/ui/format";
import styles from "./Lineage.module.css";

/** Runs before this one that are shown; older ones are reached from the first of them. */
const MOST = 6;

/** How a run came to be, from the first run to this one; nothing for a run of its own. */
export function Lineage({ run }: { run: RunState }) {
  const parentId = run.parent?.execution_id ?? null;
  const { data: before } = useQuery({
    queryKey: queryKeys.lineage(run.executionId),
    queryFn: ({ signal }) => runsBefore(parentId, signal),
    enabled: parentId !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!before || before.length === 0) return null;
  const ids = [...before.map((each) => each.execution_id), run.executionId];
  return (
    <nav className={styles.strip} aria-label="Where this run comes from">
      {before.map((each, index) => (
        <Fragment key={each.execution_id}>
          <Link to={`/runs/${each.execution_id}`} title={each.title || each.user_prompt}>
            {kindOf(each)} of {timeWords(each.created_at)}
          </Link>
          <Link
            className={styles.compare}
            to={`/runs/compare?a=${each.execution_id}&b=${ids[index + 1]}`}
            aria-label={`Compare the run of ${timeWords(each.created_at)} with the next`}
            title="Compare with the next"
          >
            →
          </Link>
        </Fragment>
      ))}
      <b>This {kindOf(run).toLowerCase()}</b>
    </nav>
  );
}

/** Reads the runs that a run was made from, the first one first; a deleted one ends the line. */
async function runsBefore(id: string | null, signal: AbortSignal): Promise<ExecutionResponse[]> {
  const found: ExecutionResponse[] = [];
  for (let next = id; next !== null && found.length < MOST; ) {
    try {
      const run = await call("getExecution", { path: { execution_id: next }, signal });
      found.unshift(run);
      next = run.parent?.execution_id ?? null;
    } catch {
      break;
    }
  }
  return found;
}

function kindOf({ parent }: Pick<RunState, "parent">): string {
  if (!parent) return "Run";
  return parent.retry ? "Retry" : "Fork";
}

function timeWords(at: string | null): string {
  if (at === null) return "";
  const time = new Date(at);
  const moment = formatMoment(time);
  return moment === formatTime(time) ? formatTime(time, true) : `${moment}, ${formatTime(time)}`;
}

/** Which revision of which plan or flow ran: each is a link. */
export function RunSource({ run }: { run: RunState }) {
  const { planId, revision, flow } = run;
  if (planId === null) return null;
  const words = revision === null ? "a changed plan" : `revision ${revision}`;
  return (
    <span>
      <Link to={editPath(run)}>{words}</Link>
      {flow !== null && (
        <>
          {" of "}
          <Link to={`/flows/${planId}`}>{flow}</Link>
        </>
      )}
    </span>
  );
}

/** Where the plan of a run is changed; the editor says which revision ran. */
export function editPath({ planId, revision }: Pick<RunState, "planId" | "revision">): string {
  return `/plans/${planId}${revision === null ? "" : `?ran=${revision}`}`;
}
