import { Link } from "react-router";
import { isEnded, secondsOf, statusesByWave, tokensOf } from "@/api/executionSummary";
import { useExecutions, usePlans } from "@/api/queries";
import type { ExecutionSummary, PlanSummary } from "@/api/types";
import { RunStatus } from "@/canvas/RunStatus";
import { RunTitle } from "@/canvas/RunTitle";
import { WaveGlyph } from "@/canvas/WaveGlyph";
import { nameOf, planPath } from "@/screens/flows/planWords";
import styles from "@/screens/goal/RecentGoals.module.css";
import { formatAmount, formatClock } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { Status } from "@/ui/Status";
import { useNow } from "@/ui/useNow";

const ROWS = 4;

/** The last goals: runs, and plans that did not run yet; each leads to its page. */
export function RecentGoals() {
  const runs = useExecutions({ limit: ROWS }).data?.pages[0]?.executions ?? [];
  const plans = usePlans({ limit: ROWS }).data?.pages[0]?.plans ?? [];
  const drafts = plans.filter((plan) => plan.status === "draft");
  const recent = [...runs, ...drafts]
    .sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at))
    .slice(0, ROWS);
  if (recent.length === 0) return null;
  return (
    <section aria-labelledby="recent">
      <div className={styles.head}>
        <h2 id="recent" className={styles.title}>
          Recent
        </h2>
        {runs.length > 0 && <Link to="/runs">All runs</Link>}
      </div>
      <ul className={styles.list}>
        {recent.map((each) =>
          "execution_id" in each ? (
            <li key={each.execution_id}>
              <RecentRun run={each} />
            </li>
          ) : (
            <li key={each.plan_id}>
              <RecentPlan plan={each} />
            </li>
          ),
        )}
      </ul>
    </section>
  );
}

function RecentPlan({ plan }: { plan: PlanSummary }) {
  return (
    <Link className={styles.row} to={planPath(plan)}>
      <span className={styles.glyph}>
        <Icon name="edit" />
      </span>
      <span className={styles.name} title={plan.user_prompt || nameOf(plan)}>
        {nameOf(plan)}
      </span>
      <Status status="draft">Not run yet</Status>
      <span className={styles.number} />
      <span className={styles.number}>{formatAmount(plan.node_count, "step")}</span>
    </Link>
  );
}

function RecentRun({ run }: { run: ExecutionSummary }) {
  const seconds = secondsOf(run, useNow(!isEnded(run)));
  return (
    <Link className={styles.row} to={`/runs/${run.execution_id}`}>
      <span className={styles.glyph}>
        <WaveGlyph waves={statusesByWave(run.digest)} />
      </span>
      <RunTitle run={run} />
      <RunStatus run={run} />
      <span className={styles.number}>{seconds !== null && formatClock(seconds)}</span>
      <span className={styles.number}>
        {run.digest && formatAmount(tokensOf(run.digest.usage), "token")}
      </span>
    </Link>
  );
}
