import { useMemo } from "react";
import type { GraphDocument, PendingRequest } from "@/api/types";
import { PlanLanes } from "@/canvas/PlanLanes";
import { viewOfPlan } from "@/screens/goal/planView";
import { ForecastStats } from "./ForecastStats";
import { readPlanRequest } from "./planRequestFields";
import styles from "./RequestDetail.module.css";

type PlanRequestProps = {
  request: PendingRequest;
  /** What was asked about; null until it is known. */
  graph: GraphDocument | null;
  /** It waits for an answer, and its plan was changed since. */
  isOutdated?: boolean;
};

/** A plan whose approval is asked: its goal, its steps, and what it will take. */
export function PlanRequest({ request, graph, isOutdated = false }: PlanRequestProps) {
  const { title, goal, forecast } = readPlanRequest(request);
  const view = useMemo(() => graph && viewOfPlan(graph), [graph]);
  return (
    <>
      <h3 className={styles.planTitle}>{title}</h3>
      {goal && <p className={styles.goal}>{goal}</p>}
      {isOutdated && (
        <p className={styles.goal}>
          The plan was changed since this was asked. Approve runs it as it was.
        </p>
      )}
      {forecast && <ForecastStats forecast={forecast} />}
      {view && (
        <div className={styles.lanes}>
          <PlanLanes steps={view.steps} edges={view.edges} />
        </div>
      )}
    </>
  );
}
