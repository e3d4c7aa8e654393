import { Link, useParams } from "react-router";
import { usePlan } from "@/api/queries";
import { ErrorNote } from "@/screens/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import styles from "./EditorScreen.module.css";
import { PlanEditor } from "./PlanEditor";

/** The editor of a plan, with a name or without. It starts from the plan as it was opened. */
export function EditorScreen() {
  const { planId = "" } = useParams();
  const plan = usePlan(planId);
  if (plan.data) return <PlanEditor key={planId} plan={plan.data} />;
  return (
    <div className={styles.message}>
      {plan.error ? (
        <>
          <h1>Plan</h1>
          <ErrorNote error={plan.error} />
          <Link to="/">New goal</Link>
        </>
      ) : (
        <Skeleton label="Loading the plan" lines={6} />
      )}
    </div>
  );
}
